/// \file
/// Quadratic assignment problems: find the permutation p for which C(p) = sum_ij d[i][j] f[p(i)][p(j)] is least.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "../../runtime/ports.hpp"

namespace asterism::qap {

using Cost = std::int64_t;
/// p[i], from 0 on, is the facility at location i.
using Permutation = std::vector<std::int32_t>;

struct Problem {
  Index n = 0;
  std::vector<Cost> d, f;  ///< n x n each, row-major: distances between locations, flows between facilities
};

/// Locations at most: the tables of moves grow with their square.
constexpr Index most_locations = 16384;
/// Every cost is below this in magnitude, so that differences of costs fit in 64 bits.
constexpr Cost most_cost = Cost{1} << 62;

enum class Symmetry {
  both,  ///< d and f are symmetric
  one,   ///< one of them, so that the problem can be stated with both
  none,
};

struct ProblemFacts {
  Symmetry symmetry = Symmetry::both;
  bool has_diagonals = false;  ///< whether diagonals of d and f change the costs of permutations
  Cost largest_cost = 0;       ///< no permutation's cost is larger in magnitude
  Cost least_cost = 0;     ///< nor is any less than this: the least sum of products of the matrices' numbers
  Cost largest_delta = 0;  ///< nor the difference by a swap, or 2^63 - 1
};

/// Looks at a problem.
/// @throw Error: n is negative or beyond most_locations; matrices of another size; a permutation's cost might reach
/// most_cost
ProblemFacts facts_of(const Problem& problem);

/// C(p), from scratch. @throw Error: p is no permutation of the problem's size
Cost cost_of(const Problem& problem, std::span<const std::int32_t> p);

/// @param what names it in the message @throw Error: not n different numbers from 0 to n - 1
void require_permutation(std::span<const std::int32_t> p, Index n, const char* what);

Permutation inverse_of(std::span<const std::int32_t> p);

}  // namespace asterism::qap
