/// \file
/// Instances of the quadratic assignment problem in QAPLIB's files: n, then two n x n matrices of whole numbers.
#pragma once

#include <filesystem>

#include "../../algorithms/qap/problem.hpp"

namespace asterism::tools {

/// The first matrix becomes d, the second f, as their costs in QAPLIB are sums of a[i][j] b[p(i)][p(j)].
/// @throw Error: what is wrong, with its line; a problem that qap::facts_of() refuses
qap::Problem read_instance(const std::filesystem::path& path);

/// Writes one, complete or not at all. @throw Error
void write_instance(const std::filesystem::path& target, const qap::Problem& problem);

}  // namespace asterism::tools
