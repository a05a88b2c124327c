/// \file
/// Rows whose entries came in any order, some of them twice.
#pragma once

#include <filesystem>

#include "../../../algorithms/sparse/csr.hpp"

namespace asterism::tools {

/// How many entries had the place of one before.
struct Duplicates {
  Index lower = 0;  ///< on and below the diagonal
  Index upper = 0;  ///< above it
};

/// Brings the entries of each row into the order of their columns, and makes one of those with the same column: their
/// sum, in the order in which they came.
/// @param path  for messages
/// @throw Error: a sum is not finite
Duplicates order_entries(sparse::Csr<double>& matrix, const std::filesystem::path& path);

}  // namespace asterism::tools
