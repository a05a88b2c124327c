/// \file
/// The optimum of small quadratic assignment problems.
#pragma once

#include <algorithm>
#include <limits>
#include <numeric>

#include "algorithms/qap/problem.hpp"

namespace asterism::test {

/// The least cost of all permutations.
inline qap::Cost least_of_all(const qap::Problem& problem) {
  qap::Permutation p(static_cast<std::size_t>(problem.n));
  std::iota(p.begin(), p.end(), 0);
  qap::Cost least = std::numeric_limits<qap::Cost>::max();
  do {
    least = std::min(least, cost_of(problem, p));
  } while (std::next_permutation(p.begin(), p.end()));
  return least;
}

}  // namespace asterism::test
