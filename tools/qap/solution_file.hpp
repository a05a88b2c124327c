/// \file
/// Solutions of quadratic assignment problems in QAPLIB's files: n, a cost, then a permutation from 1 on.
#pragma once

#include <filesystem>

#include "../../algorithms/qap/problem.hpp"

namespace asterism::tools {

/// What the numbers of a .sln file are, with d the instance's first matrix and f its second.
enum class Convention {
  facilities,  ///< number i is p(i): cost = sum d[i][j] f[p(i)][p(j)]
  locations,   ///< number i is where p has i: the inverse
  either,      ///< both have the cost that the file tells
};

struct Solution {
  qap::Permutation permutation;  ///< p, whatever the file has
  qap::Cost cost = 0;
  Convention convention = Convention::facilities;
};

/// @throw Error: what is wrong, with its line; another size than the problem's; a cost that is neither that of the
/// permutation nor that of its inverse
Solution read_solution(const std::filesystem::path& path, const qap::Problem& problem);

/// Writes p(i) as number i, complete or not at all. @throw Error
void write_solution(const std::filesystem::path& target, const qap::Permutation& p, qap::Cost cost);

/// "number i is the facility at location i", ...
const char* words_of(Convention convention);

}  // namespace asterism::tools
