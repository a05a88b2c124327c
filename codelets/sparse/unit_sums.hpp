/// \file
/// Sums over units on a CPU.
#pragma once

#include <algorithm>
#include <array>

#include "../sums/sums.hpp"
#include "row_products.hpp"
#include "units.hpp"

namespace asterism::sparse::cpu {

/// Calls body(first, end) for the chunks of a unit's rows.
template <class Body>
void for_each_chunk(Index unit, Index unit_rows, Index rows, Body body) {
  const Index end = std::min(rows, (unit + 1) * unit_rows);
  for (Index first = unit * unit_rows; first < end; first += chunk_rows)
    body(first, std::min(first + chunk_rows, end));
}

/// Calls body(first, end) for all chunks of a block, unit by unit.
template <class Body>
void for_each_chunk(Index unit_rows, Index rows, Body body) {
  for (Index u = 0; u < units_of(rows, unit_rows); ++u) for_each_chunk(u, unit_rows, rows, body);
}

/// sums[u] = the sum of part(first, end) over the chunks of unit u, for all units of a block.
template <class Part>
void sum_units(Index unit_rows, Index rows, double* sums, Part part) {
  for (Index u = 0; u < units_of(rows, unit_rows); ++u) {
    double sum = 0;
    for_each_chunk(u, unit_rows, rows, [&](Index first, Index end) { sum += part(first, end); });
    sums[u] = sum;
  }
}

/// The sum of a[i] b[i] for i from `first` to `end`.
template <class T>
double dot(const T* a, const T* b, Index first, Index end) {
  return sums::cpu::sum_of(end - first, [&](Index i) {
    return static_cast<double>(a[first + i]) * static_cast<double>(b[first + i]);
  });
}

/// What the units of all blocks add up to: by halves, as GPUs do it, so that all blocks decide alike whatever they
/// run on.
/// @param list which of the lists of sums that every block has, one after the other, `lists` in all
inline double total(const Many<In<double>>& blocks, Index list = 0, Index lists = 1) {
  std::array<double, static_cast<std::size_t>(most_units)> all{};
  double* next = all.data();
  for (const In<double>& block : blocks)
    next = std::copy_n(block.data + list * (block.cols / lists), block.cols / lists, next);
  for (std::size_t half = all.size() / 2; half > 0; half /= 2)
    for (std::size_t u = 0; u < half; ++u) all[u] += all[u + half];
  return all.front();
}

}  // namespace asterism::sparse::cpu
