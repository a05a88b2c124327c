/// \file
/// How dot products are added up: in units, consecutive rows whose number follows from n alone. A block has whole
/// units. A product's sum over a unit is formed in one way, and the sums of all units are added in one way, so that
/// it has the same bits in every division into blocks; on GPUs other ones than on cores. The units' sums are added by
/// halves on both, padded with zeros: a_u += a_(u + 512), then a_u += a_(u + 256), ...: then all blocks decide alike,
/// whatever they run on.
#pragma once

#include "../../runtime/codelet.hpp"

namespace asterism::sparse {

/// At most so many units are all rows.
inline constexpr Index most_units = 1024;

/// At most so many blocks: what a GPU's kernel is told of all of them travels with its launch.
inline constexpr Index most_blocks = 256;

/// Matrices with fewer entries are not divided among GPUs: a kernel's work would not be worth a task of its own. Only
/// they get kernels that add up in an order of their own, which no number of GPUs then changes.
inline constexpr Index least_divided_entries = 40'000'000;

/// Rows of a unit, of n in all; the last unit may be shorter.
constexpr Index unit_rows(Index n) {
  constexpr Index least = 32;
  const Index even = parts(n, most_units), whole = parts(even, 32) * 32;
  return whole < least ? least : whole;
}

/// Blocks begin at multiples of so many rows of n: 64 grains, each of whole units, within which rows may get other
/// places.
constexpr Index grain_rows(Index n) {
  const Index unit = unit_rows(n), even = parts(n, 64);
  return parts(even, unit) * unit;
}

/// Units of so many rows.
constexpr Index units_of(Index rows, Index unit) { return parts(rows, unit); }

}  // namespace asterism::sparse
