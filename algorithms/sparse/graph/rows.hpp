/// \file
/// Rows of compressed matrices as they are made: first how many entries each has, then the entries, by several threads.
#pragma once

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "../../common/team.hpp"

namespace asterism::sparse {

/// Of std::vector, whose places have no sign.
inline std::size_t at(Index i) { return static_cast<std::size_t>(i); }

/// Where each row begins, and the last one ends. @param count count(i): how many entries row i has
template <class Count>
std::vector<Index> row_begins(Index rows, int threads, const Count& count) {
  std::vector<Index> begins(at(rows) + 1);
  in_parts(rows, threads, [&](Index first, Index end) {
    for (Index i = first; i < end; ++i) begins[at(i + 1)] = count(i);
  });
  for (std::size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
  return begins;
}

/// Sorts a row's entries by their columns. Rows are short, and most nearly in order.
template <class T>
void sort_row(Index* columns, T* values, Index count) {
  constexpr Index short_row = 32;
  if (count > short_row) {
    std::vector<std::pair<Index, T>> row;
    row.reserve(static_cast<std::size_t>(count));
    for (Index n = 0; n < count; ++n) row.emplace_back(columns[n], values[n]);
    std::ranges::sort(row, {}, &std::pair<Index, T>::first);
    for (Index n = 0; n < count; ++n) std::tie(columns[n], values[n]) = row[static_cast<std::size_t>(n)];
    return;
  }
  for (Index n = 1; n < count; ++n) {
    const Index column = columns[n];
    if (columns[n - 1] < column) continue;
    const T value = values[n];
    Index to = n;
    for (; to > 0 && columns[to - 1] > column; --to) {
      columns[to] = columns[to - 1];
      values[to] = values[to - 1];
    }
    columns[to] = column;
    values[to] = value;
  }
}

}  // namespace asterism::sparse
