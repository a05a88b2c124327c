#include "numbering.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "../../../runtime/error.hpp"
#include "rows.hpp"

namespace asterism::sparse {
namespace {

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

void refuse_unless_of(PatternView pattern, const Numbering& numbering) {
  if (pattern.rows() != numbering.rows())
    throw Error(fmt::format("the matrix has {} rows, the numbering {}: give the one of this matrix",
                            pattern.rows(), numbering.rows()));
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

Numbering renumbering(const Numbering& from, const Numbering& to) {
  if (from.rows() != to.rows())
    throw Error(fmt::format("numberings of {} rows and {} are given: they have to be of the same matrix",
                            from.rows(), to.rows()));
  Numbering result = to;
  for (Index i = 0; i < from.rows(); ++i) {
    const Index old = from.old_of_new[at(i)];
    result.new_of_old[at(i)] = to.new_of_old[at(old)];
    result.old_of_new[at(to.new_of_old[at(old)])] = i;
  }
  return result;
}

Pattern permuted(PatternView pattern, const Numbering& numbering, int threads) {
  refuse_unless_of(pattern, numbering);
  Pattern result;
  result.row_begin = row_begins(pattern.rows(), threads, [&](Index i) {
    return static_cast<Index>(pattern.row(numbering.old_of_new[at(i)]).size());
  });
  result.columns.resize(at(pattern.entries()));
  in_parts(pattern.rows(), threads, [&](Index first, Index end) {
    for (Index i = first; i < end; ++i) {
      Index* const to = result.columns.data() + result.row_begin[at(i)];
      Index* end_of_row = to;
      for (const Index j : pattern.row(numbering.old_of_new[at(i)]))
        *end_of_row++ = numbering.new_of_old[at(j)];
      std::sort(to, end_of_row);
    }
  });
  return result;
}

template <class T>
Csr<T> permuted(const Csr<T>& matrix, const Numbering& numbering, int threads) {
  refuse_unless_of(matrix, numbering);
  return permuted_rows(matrix, numbering, threads);
}

template <class T>
Csr<T> permuted_rows(const Csr<T>& mine, const Numbering& numbering, int threads) {
  const auto old_row = [&](Index i) { return numbering.old_of_new[at(mine.first_row + i)] - mine.first_row; };
  Csr<T> result;
  result.first_row = mine.first_row;
  result.total_rows = mine.total_rows;
  result.cols = mine.cols;
  result.row_begin = row_begins(mine.rows(), threads, [&](Index i) {
    return mine.row_begin[at(old_row(i) + 1)] - mine.row_begin[at(old_row(i))];
  });
  result.columns.resize(mine.columns.size());
  result.values.resize(mine.values.size());
  in_parts(mine.rows(), threads, [&](Index first, Index end) {
    for (Index i = first; i < end; ++i) {
      const Index old = old_row(i), count = mine.row_begin[at(old + 1)] - mine.row_begin[at(old)];
      const Index from = mine.row_begin[at(old)], to = result.row_begin[at(i)];
      for (Index n = 0; n < count; ++n) {
        result.columns[at(to + n)] = numbering.new_of_old[at(mine.columns[at(from + n)])];
        result.values[at(to + n)] = mine.values[at(from + n)];
      }
      sort_row(result.columns.data() + to, result.values.data() + to, count);
    }
  });
  return result;
}

template Csr<float> permuted_rows(const Csr<float>&, const Numbering&, int);
template Csr<double> permuted_rows(const Csr<double>&, const Numbering&, int);
template Csr<float> permuted(const Csr<float>&, const Numbering&, int);
template Csr<double> permuted(const Csr<double>&, const Numbering&, int);

}  // namespace asterism::sparse
