/// \file
/// Sparse matrices as maps, for tests: slow, obvious, and without any order of their own.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <utility>

#include "algorithms/sparse/csr.hpp"

namespace asterism::test {

/// The value at (row, column), from 0.
using Entries = std::map<std::pair<Index, Index>, double>;

/// Those of the rows that are here; checks that they are in order and none is there twice.
inline Entries entries_of(const sparse::Csr<double>& matrix) {
  REQUIRE(matrix.row_begin.front() == 0);
  REQUIRE(matrix.columns.size() == static_cast<std::size_t>(matrix.entries()));
  REQUIRE(matrix.values.size() == matrix.columns.size());
  REQUIRE(matrix.first_row + matrix.rows() <= matrix.total_rows);
  Entries entries;
  for (Index r = 0; r < matrix.rows(); ++r) {
    Index before = -1;
    for (auto i = static_cast<std::size_t>(matrix.row_begin[static_cast<std::size_t>(r)]);
         i < static_cast<std::size_t>(matrix.row_begin[static_cast<std::size_t>(r) + 1]); ++i) {
      REQUIRE(matrix.columns[i] > before);
      before = matrix.columns[i];
      entries[{matrix.first_row + r, before}] = matrix.values[i];
    }
    REQUIRE(before < matrix.cols);
  }
  return entries;
}

inline sparse::Csr<double> csr_of(Index rows, Index cols, const Entries& entries) {
  sparse::Csr<double> matrix;
  matrix.total_rows = rows;
  matrix.cols = cols;
  auto entry = entries.begin();
  for (Index r = 0; r < rows; ++r) {
    for (; entry != entries.end() && entry->first.first == r; ++entry) {
      matrix.columns.push_back(entry->first.second);
      matrix.values.push_back(entry->second);
    }
    matrix.row_begin.push_back(static_cast<Index>(matrix.columns.size()));
  }
  REQUIRE(entry == entries.end());
  return matrix;
}

}  // namespace asterism::test
