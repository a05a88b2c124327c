/// \file
/// Matrices for other libraries: indices of 32 bits, as their own examples have them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "../../../algorithms/sparse/csr.hpp"
#include "../../../runtime/error.hpp"

namespace asterism::tools {

/// All rows of a square matrix, compressed.
template <class T>
struct NarrowRows {
  std::vector<std::int32_t> begins, columns;
  std::vector<T> values;

  /// @throw Error: more entries than 32 bits count
  explicit NarrowRows(const sparse::Csr<T>& a)
      : begins(a.row_begin.begin(), a.row_begin.end()),
        columns(a.columns.begin(), a.columns.end()),
        values(a.values.begin(), a.values.end()) {
    if (a.entries() > std::numeric_limits<std::int32_t>::max())
      throw Error(fmt::format(
          "the matrix has {} entries: the solvers that it is compared with count up to {}; choose a "
          "smaller model",
          a.entries(), std::numeric_limits<std::int32_t>::max()));
  }
  [[nodiscard]] std::int32_t rows() const { return static_cast<std::int32_t>(begins.size()) - 1; }
  [[nodiscard]] std::int32_t entries() const { return begins.back(); }
};

/// 1 over each diagonal entry.
template <class T>
std::vector<T> inverse_diagonal(const NarrowRows<T>& a) {
  std::vector<T> inverse(static_cast<std::size_t>(a.rows()));
  for (std::int32_t i = 0; i < a.rows(); ++i)
    for (std::int32_t k = a.begins[i]; k < a.begins[i + 1]; ++k)
      if (a.columns[k] == i) inverse[i] = 1 / a.values[k];
  return inverse;
}

}  // namespace asterism::tools
