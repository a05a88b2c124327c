/// \file
/// Solutions of quadratic assignment problems in QAPLIB's files: n, a cost, then a permutation from 1 on.
#pragma once

#include <filesystem>

#include "../../algorithms/qap/problem.hpp"
#include "../files/output_file.hpp"

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

/// Where a solution is to be written, complete or not at all.
class PermutationFile {
 public:
  /// @throw Error: it cannot be written there
  explicit PermutationFile(const std::filesystem::path& target) : target_(target), file_(target) {}
  /// p(i) as number i. @throw Error
  void write(const qap::Permutation& p, qap::Cost cost);

 private:
  std::filesystem::path target_;
  OutputFile file_;
};

/// "number i is the facility at location i", ...
const char* words_of(Convention convention);

}  // namespace asterism::tools
