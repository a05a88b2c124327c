/// \file
/// Norms of vectors that all ranks have a share of, on the host. With several ranks all of these are collective.
#pragma once

#include <algorithm>
#include <vector>

#include "../../../codelets/sparse/units.hpp"
#include "../../common/partition.hpp"
#include "../../common/team.hpp"

namespace asterism::sparse {

/// The root of what the units of all ranks add up to, unit by unit, which no division into ranks changes.
double root_of_sum(const Runtime& runtime, const std::vector<double>& mine);

/// The Euclidean norm. @param value value(i): an element of this rank
template <class Value>
double norm(const Runtime& runtime, Index rows, Index unit, const Value& value) {
  std::vector<double> sums(static_cast<std::size_t>(units_of(rows, unit)));
  const auto add_up = [&](Index first, Index end) {
    for (Index u = first; u < end; ++u)
      for (Index i = u * unit; i < std::min(rows, (u + 1) * unit); ++i) {
        const double its = value(i);
        sums[u] += its * its;
      }
  };
  in_parts(units_of(rows, unit), 0, add_up, units_of(least_copied, unit));
  return root_of_sum(runtime, sums);
}

/// Magnitudes of a right-hand side and a first guess.
struct Largest {
  double b = 0, x = 0;
};
/// Those of all ranks. @param mine the rows of this rank, which b and x have
/// @throw Error: b or x is not finite; the row
template <class T>
Largest largest_of(const Runtime& runtime, const Partition::Range& mine, const T* b, const T* x);

}  // namespace asterism::sparse
