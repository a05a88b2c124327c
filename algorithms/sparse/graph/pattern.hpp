/// \file
/// Where a matrix has entries, without their values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "../csr.hpp"

namespace asterism::sparse {

/// The places of the entries of a square matrix, all of its rows, compressed as in a Csr.
struct Pattern {
  Array<Index> row_begin = {0};
  Array<Index> columns;  ///< of each entry, ascending in each row

  [[nodiscard]] Index rows() const { return static_cast<Index>(row_begin.size()) - 1; }
  [[nodiscard]] Index entries() const { return row_begin.back(); }
};

/// The pattern of a matrix, or of a Pattern, where it lies.
class PatternView {
 public:
  PatternView(const Pattern& pattern) : row_begin_(pattern.row_begin), columns_(pattern.columns) {}
  /// @throw Error: some rows are missing, or it is not square
  template <class T>
  PatternView(const Csr<T>& matrix) : row_begin_(matrix.row_begin), columns_(matrix.columns) {
    refuse_unless_square(matrix.first_row, matrix.rows(), matrix.total_rows, matrix.cols);
  }

  [[nodiscard]] Index rows() const { return static_cast<Index>(row_begin_.size()) - 1; }
  [[nodiscard]] Index entries() const { return row_begin_.back(); }
  /// Of all entries, row after row.
  [[nodiscard]] std::span<const Index> columns() const { return columns_; }
  /// Where the entries of a row begin among all; those of row rows() where they end.
  [[nodiscard]] Index begin(Index row) const { return row_begin_[static_cast<std::size_t>(row)]; }
  /// The columns of a row's entries.
  [[nodiscard]] std::span<const Index> row(Index i) const {
    return columns_.subspan(static_cast<std::size_t>(begin(i)),
                            static_cast<std::size_t>(begin(i + 1) - begin(i)));
  }

 private:
  static void refuse_unless_square(Index first_row, Index rows, Index total_rows, Index cols);

  std::span<const Index> row_begin_, columns_;
};

/// A number that all patterns of rows but one in 2^64 have not: whether rows are those of before.
std::uint64_t fingerprint(std::span<const Index> row_begin, std::span<const Index> columns);

Pattern copied(PatternView pattern, int threads);

/// The pattern with rows and columns exchanged.
Pattern transposed(PatternView pattern);

/// Whether there is an entry (j, i) for every entry (i, j).
bool is_symmetric(PatternView pattern, int threads);

/// Neighbours in the graph of A + A^T: row i has the columns j != i with an entry (i, j) or (j, i).
Pattern neighbours(PatternView pattern, int threads);

/// The graph of A + A^T for those who walk in it: A itself where its pattern is symmetric. A row may be its own
/// neighbour. The pattern has to live as long.
class Graph {
 public:
  Graph(PatternView pattern, int threads)
      : made_(is_symmetric(pattern, threads) ? Pattern{} : neighbours(pattern, threads)),
        view_(made_.rows() == pattern.rows() ? PatternView(made_) : pattern) {}
  Graph(const Graph&) = delete;  // the view is of what was made
  Graph& operator=(const Graph&) = delete;

  [[nodiscard]] PatternView view() const { return view_; }

 private:
  Pattern made_;
  PatternView view_;
};

}  // namespace asterism::sparse
