/// \file
/// Rows of compressed matrices as they are made: first how many entries each has, then the entries, by several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <tuple>
#include <utility>
#include <vector>

#include "../../common/team.hpp"
#include "../csr.hpp"

namespace asterism::sparse {

/// Of std::vector, whose places have no sign.
inline std::size_t at(Index i) { return static_cast<std::size_t>(i); }

/// Parts of the rows, the same for any number of threads.
inline constexpr Index rows_of_part = Index{1} << 15;
constexpr Index parts_of(Index rows) { return parts(rows, rows_of_part); }
/// Calls body(part, first, end) for all of them.
template <class Body>
void for_each_part(Index rows, int threads, const Body& body) {
  asterism::one_by_one(at(parts_of(rows)), threads, [&](std::size_t p) {
    const auto part = static_cast<Index>(p);
    body(part, part * rows_of_part, std::min(rows, (part + 1) * rows_of_part));
  });
}

/// Numbers rows in their order: sums over all rows before each. @param count count(i), of row i, which may be called twice
/// @param put put(i, sum)
/// @return the sum of all
template <class Count, class Put>
Index add_up(Index rows, int threads, const Count& count, const Put& put) {
  std::vector<Index> before(at(parts_of(rows)) + 1, 0);
  for_each_part(rows, threads, [&](Index part, Index first, Index end) {
    for (Index i = first; i < end; ++i) before[at(part + 1)] += count(i);
  });
  for (std::size_t part = 1; part < before.size(); ++part) before[part] += before[part - 1];
  for_each_part(rows, threads, [&](Index part, Index first, Index end) {
    Index sum = before[at(part)];
    for (Index i = first; i < end; ++i) {
      const Index its = count(i);
      put(i, sum);
      sum += its;
    }
  });
  return before.back();
}

/// Where each row begins, and the last one ends. @param count count(i): how many entries row i has
template <class Count>
Array<Index> row_begins(Index rows, int threads, const Count& count) {
  Array<Index> begins(at(rows) + 1);
  in_parts(rows, threads, [&](Index first, Index end) {
    for (Index i = first; i < end; ++i) begins[at(i)] = count(i);
  });
  begins.back() = add_up(
      rows, threads, [&](Index i) { return begins[at(i)]; },
      [&](Index i, Index sum) { begins[at(i)] = sum; });
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

/// Some rows, one after the other.
template <class T>
struct RowsInTheMaking {
  std::vector<Index> begin = {0}, columns;
  std::vector<T> values;

  [[nodiscard]] Index rows() const { return static_cast<Index>(begin.size()) - 1; }
  void clear() {
    begin.resize(1);
    columns.clear();
    values.clear();
  }
  void add(Index column, T value) {
    columns.push_back(column);
    values.push_back(value);
  }
  void end_row() { begin.push_back(static_cast<Index>(columns.size())); }
};

/// Fills a matrix with rows of whose entries nobody knows how many there will be, by several threads; with no more memory
/// than it takes in the end, as what nobody touches is not there.
/// @param most entries, at most @param make make(first, end, to): appends these rows
template <class T, class Make>
void make_rows(Csr<T>& matrix, Index rows, Index most, const Make& make) {
  // Large pieces, so that threads do not meet on a huge page that nobody has touched: each would clear it.
  constexpr Index least = 2048, largest = Index{1} << 15, unknown = -1, failed = -2;
  const Index rows_of_piece = std::clamp(rows / team_size(0) + 1, least, largest);
  const Index pieces = parts(rows, rows_of_piece);
  matrix.row_begin.resize(at(rows) + 1);
  matrix.columns.resize(at(most));
  matrix.values.resize(at(most));
  std::vector<std::atomic<Index>> begins(at(pieces) + 1);
  for (std::atomic<Index>& begin : begins) begin = unknown;
  begins.front() = matrix.row_begin.front() = 0;
  const auto tell = [&](Index piece, Index begin) {
    begins[at(piece)] = begin;
    begins[at(piece)].notify_one();
  };
  std::atomic<Index> next = 0;
  in_team(static_cast<int>(std::clamp<Index>(pieces, 1, team_size(0))), [&](int) {
    RowsInTheMaking<T> made;
    for (Index piece = next++; piece < pieces; piece = next++) {
      const Index first = piece * rows_of_piece;
      made.clear();
      try {
        make(first, std::min(rows, first + rows_of_piece), made);
      } catch (...) {
        tell(piece + 1, failed);
        throw;
      }
      begins[at(piece)].wait(unknown);
      const Index begin = begins[at(piece)];
      tell(piece + 1, begin == failed ? failed : begin + made.begin.back());
      if (begin == failed) return;
      for (Index i = 0; i < made.rows(); ++i)
        matrix.row_begin[at(first + i + 1)] = begin + made.begin[at(i + 1)];
      std::ranges::copy(made.columns, matrix.columns.begin() + begin);
      std::ranges::copy(made.values, matrix.values.begin() + begin);
    }
  });
  matrix.columns.resize(at(begins.back()));
  matrix.values.resize(at(begins.back()));
}

}  // namespace asterism::sparse
