#include "numbering.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "../../runtime/error.hpp"
#include "team.hpp"

namespace asterism::sparse {
namespace {

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

/// Appends the rows [first, end) of the old order, sorted by colour, with their segments.
void append_unit(Numbering& numbering, const Colouring& colours, Index first, Index end) {
  std::vector<Index> next(at(colours.count) + 1, 0);
  for (Index i = first; i < end; ++i) ++next[at(colours.of_rows[at(i)]) + 1];
  next[0] = first;  // a unit keeps its place
  for (int c = 0; c < colours.count; ++c) {
    const Index begin = next[at(c)];
    next[at(c) + 1] += begin;
    if (next[at(c) + 1] > begin) numbering.segments.push_back({begin, next[at(c) + 1], c});
  }
  for (Index i = first; i < end; ++i) {
    const Index place = next[at(colours.of_rows[at(i)])]++;
    numbering.new_of_old[at(i)] = place;
    numbering.old_of_new[at(place)] = i;
  }
}

}  // namespace

Numbering number_by_colour(const Colouring& colours, Index unit) {
  if (unit < 1) throw Error(fmt::format("units of {} rows are asked for: they have at least 1", unit));
  const Index rows = static_cast<Index>(colours.of_rows.size());
  Numbering numbering;
  numbering.new_of_old.resize(at(rows));
  numbering.old_of_new.resize(at(rows));
  for (Index first = 0; first < rows; first += std::min(unit, rows - first))
    append_unit(numbering, colours, first, first + std::min(unit, rows - first));
  numbering.of_colours.resize(at(colours.count));
  for (const Numbering::Segment& segment : numbering.segments)
    numbering.of_colours[at(segment.colour)].push_back(segment);
  return numbering;
}

template <class T>
Csr<T> permuted(const Csr<T>& matrix, const Numbering& numbering, int threads) {
  const PatternView pattern = matrix;
  const Index rows = pattern.rows();
  if (rows != numbering.rows())
    throw Error(fmt::format("the matrix has {} rows, the numbering {}: give the one of this matrix", rows,
                            numbering.rows()));
  Csr<T> result;
  result.total_rows = result.cols = rows;
  result.row_begin.reserve(at(rows) + 1);
  for (const Index old : numbering.old_of_new)
    result.row_begin.push_back(result.row_begin.back() + pattern.begin(old + 1) - pattern.begin(old));
  result.columns.resize(matrix.columns.size());
  result.values.resize(matrix.values.size());
  in_parts(rows, threads, [&](Index first, Index end) {
    std::vector<std::pair<Index, T>> row;
    for (Index i = first; i < end; ++i) {
      row.clear();
      const Index old = numbering.old_of_new[at(i)];
      for (Index k = pattern.begin(old); k < pattern.begin(old + 1); ++k)
        row.emplace_back(numbering.new_of_old[at(matrix.columns[at(k)])], matrix.values[at(k)]);
      std::ranges::sort(row, {}, &std::pair<Index, T>::first);
      Index to = result.row_begin[at(i)];
      for (const auto& [column, value] : row) {
        result.columns[at(to)] = column;
        result.values[at(to++)] = value;
      }
    }
  });
  return result;
}

template Csr<float> permuted(const Csr<float>&, const Numbering&, int);
template Csr<double> permuted(const Csr<double>&, const Numbering&, int);

}  // namespace asterism::sparse
