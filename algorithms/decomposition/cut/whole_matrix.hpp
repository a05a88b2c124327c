/// \file
/// All rows of a matrix, for set-ups that look at its graph as a whole.
#pragma once

#include "../../../runtime/collectives.hpp"
#include "../../sparse/csr.hpp"

namespace asterism::decomposition {

/// All rows, on every rank. @param mine this rank's rows, in the order of ranks. With several ranks: collective.
template <class T>
sparse::Csr<T> whole_matrix(const Runtime& runtime, const sparse::Csr<T>& mine) {
  if (runtime.ranks() == 1) return mine;
  sparse::Csr<T> whole;
  whole.total_rows = mine.total_rows;
  whole.cols = mine.cols;
  std::vector<Index> lengths;
  for (Index i = 0; i < mine.rows(); ++i) lengths.push_back(mine.row_begin[i + 1] - mine.row_begin[i]);
  for (const Index length : gather_lists(runtime, lengths))
    whole.row_begin.push_back(whole.row_begin.back() + length);
  whole.columns = gather_lists(runtime, mine.columns);
  whole.values = gather_lists(runtime, mine.values);
  return whole;
}

}  // namespace asterism::decomposition
