/// \file
/// Sums of squares over the ranks.
#pragma once

#include <vector>

#include "../../codelets/common/sums.hpp"
#include "../../runtime/runtime.hpp"

namespace asterism {

/// As Runtime::sum_over_ranks. Collective.
inline void sum_over_ranks(const Runtime& runtime, std::vector<kernels::SquareSum>& sums) {
  std::vector<double> parts;
  for (const kernels::SquareSum& sum : sums)
    parts.insert(parts.end(), {sum.middle, sum.extremes[0], sum.extremes[1]});
  runtime.sum_over_ranks(parts.data(), static_cast<Index>(parts.size()));
  const double* part = parts.data();
  for (kernels::SquareSum& sum : sums) {
    sum = {part[0], {part[1], part[2]}};
    part += 3;
  }
}

}  // namespace asterism
