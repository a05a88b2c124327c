#include "numbering.hpp"

#include <algorithm>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include "../../../runtime/error.hpp"
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

std::vector<Index> row_begins(PatternView pattern, const Numbering& numbering) {
  std::vector<Index> begins{0};
  begins.reserve(at(pattern.rows()) + 1);
  for (const Index old : numbering.old_of_new)
    begins.push_back(begins.back() + pattern.begin(old + 1) - pattern.begin(old));
  return begins;
}

/// The entries' old places, in their new order.
std::vector<Index> entries_in_new_order(PatternView pattern, const Numbering& numbering, int threads) {
  if (pattern.rows() != numbering.rows())
    throw Error(fmt::format("the matrix has {} rows, the numbering {}: give the one of this matrix",
                            pattern.rows(), numbering.rows()));
  const std::vector<Index> begins = row_begins(pattern, numbering);
  std::vector<Index> order(at(pattern.entries()));
  in_parts(pattern.rows(), threads, [&](Index first, Index end) {
    for (Index i = first; i < end; ++i) {
      const std::span<Index> row(order.data() + begins[at(i)], order.data() + begins[at(i + 1)]);
      std::iota(row.begin(), row.end(), pattern.begin(numbering.old_of_new[at(i)]));
      std::ranges::sort(row, {},
                        [&](Index entry) { return numbering.new_of_old[at(pattern.columns()[at(entry)])]; });
    }
  });
  return order;
}

std::vector<Index> new_columns(std::span<const Index> columns, const Numbering& numbering,
                               const std::vector<Index>& order) {
  std::vector<Index> result;
  result.reserve(order.size());
  for (const Index entry : order) result.push_back(numbering.new_of_old[at(columns[at(entry)])]);
  return result;
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
  const std::vector<Index> order = entries_in_new_order(pattern, numbering, threads);
  return {row_begins(pattern, numbering), new_columns(pattern.columns(), numbering, order)};
}

template <class T>
Csr<T> permuted(const Csr<T>& matrix, const Numbering& numbering, int threads) {
  const std::vector<Index> order = entries_in_new_order(matrix, numbering, threads);
  Csr<T> result;
  result.total_rows = result.cols = matrix.rows();
  result.row_begin = row_begins(matrix, numbering);
  result.columns = new_columns(matrix.columns, numbering, order);
  result.values.reserve(order.size());
  for (const Index entry : order) result.values.push_back(matrix.values[at(entry)]);
  return result;
}

template Csr<float> permuted(const Csr<float>&, const Numbering&, int);
template Csr<double> permuted(const Csr<double>&, const Numbering&, int);

}  // namespace asterism::sparse
