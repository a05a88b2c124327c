/// \file
/// Sparse matrices in main memory, as files, generators and users give them.
#pragma once

#include <span>
#include <vector>

#include "../../runtime/ports.hpp"
#include "../common/array.hpp"

namespace asterism::sparse {

/// Consecutive rows of a sparse matrix, compressed (CSR): all of its rows, or those that a rank has.
///
/// Row i of the matrix, first_row <= i < first_row + rows(), has the entries row_begin[i - first_row] to
/// row_begin[i - first_row + 1], in ascending order of their columns, none of them twice. Indices begin at 0.
template <class T>
struct Csr {
  Index first_row = 0;   ///< of those that are here
  Index total_rows = 0;  ///< of the whole matrix
  Index cols = 0;
  Array<Index> row_begin = {0};  ///< rows() + 1 numbers; the first is 0
  Array<Index> columns;                ///< of each entry
  Array<T> values;                     ///< of each entry

  [[nodiscard]] Index rows() const { return static_cast<Index>(row_begin.size()) - 1; }
  [[nodiscard]] Index entries() const { return row_begin.back(); }
};

/// Some of them, where they lie.
template <class T>
struct RowsView {
  const Csr<T>& all;
  Index first_row;                   ///< in the whole matrix
  std::span<const Index> row_begin;  ///< rows() + 1 numbers, which count the entries of all

  /// @param first in the whole matrix
  RowsView(const Csr<T>& of, Index first, Index count)
      : all(of),
        first_row(first),
        row_begin(std::span(of.row_begin)
                      .subspan(static_cast<std::size_t>(first - of.first_row),
                               static_cast<std::size_t>(count + 1))) {}

  [[nodiscard]] Index rows() const { return static_cast<Index>(row_begin.size()) - 1; }
  [[nodiscard]] Index entries() const { return row_begin.back() - row_begin.front(); }
  [[nodiscard]] std::span<const Index> columns() const { return mine(all.columns); }
  [[nodiscard]] std::span<const T> values() const { return mine(all.values); }

 private:
  template <class X>
  [[nodiscard]] std::span<const X> mine(const Array<X>& of_all) const {
    return std::span(of_all).subspan(static_cast<std::size_t>(row_begin.front()),
                                     static_cast<std::size_t>(entries()));
  }
};

}  // namespace asterism::sparse
