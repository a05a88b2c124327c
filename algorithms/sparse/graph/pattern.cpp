#include "pattern.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>

#include <fmt/format.h>

#include "../../../runtime/error.hpp"
#include "rows.hpp"

namespace asterism::sparse {
namespace {

/// Calls take(j) for the columns j != row of both rows, ascending, each once.
template <class Take>
void for_union(std::span<const Index> a, std::span<const Index> b, Index row, const Take& take) {
  for (std::size_t i = 0, k = 0; i < a.size() || k < b.size();) {
    const bool of_a = k == b.size() || (i < a.size() && a[i] <= b[k]);
    const bool of_b = i == a.size() || (k < b.size() && b[k] <= a[i]);
    const Index column = of_a ? a[i] : b[k];
    if (of_a) ++i;
    if (of_b) ++k;
    if (column != row) take(column);
  }
}

}  // namespace

void PatternView::refuse_unless_square(Index first_row, Index rows, Index total_rows, Index cols) {
  if (first_row != 0 || rows != total_rows)
    throw Error(fmt::format("rows {} to {} of a matrix of {} rows are given: all of them are needed",
                            first_row, first_row + rows, total_rows));
  if (rows != cols)
    throw Error(fmt::format(
        "the matrix is {} x {}: give a square one, its rows and columns are the same unknowns", rows, cols));
}

std::uint64_t fingerprint(std::span<const Index> row_begin, std::span<const Index> columns) {
  const auto mixed = [](std::uint64_t a) {
    a = (a ^ (a >> 30)) * 0xbf58476d1ce4e5b9ULL;
    a = (a ^ (a >> 27)) * 0x94d049bb133111ebULL;
    return a ^ (a >> 31);
  };
  std::atomic<std::uint64_t> sum = 0;
  const auto add = [&](std::span<const Index> numbers, std::uint64_t seed) {
    in_parts(static_cast<Index>(numbers.size()), 0, [&](Index first, Index end) {
      std::uint64_t part = 0;
      for (Index n = first; n < end; ++n)
        part +=
            mixed(mixed(static_cast<std::uint64_t>(n) + seed) + static_cast<std::uint64_t>(numbers[at(n)]));
      sum += part;
    });
  };
  add(row_begin, 0);
  add(columns, 0x9e3779b97f4a7c15ULL);
  return sum;
}

Pattern copied(PatternView pattern, int threads) {
  Pattern copy;
  copy.row_begin =
      row_begins(pattern.rows(), threads, [&](Index i) { return pattern.begin(i + 1) - pattern.begin(i); });
  copy.columns.resize(at(pattern.entries()));
  in_parts(pattern.entries(), threads, [&](Index first, Index end) {
    std::copy(pattern.columns().begin() + first, pattern.columns().begin() + end,
              copy.columns.begin() + first);
  });
  return copy;
}

Pattern transposed(PatternView pattern) {
  Pattern result;
  result.row_begin = Array<Index>(at(pattern.rows() + 1), 0);
  result.columns.resize(at(pattern.entries()));
  for (Index i = 0; i < pattern.rows(); ++i)
    for (const Index j : pattern.row(i)) ++result.row_begin[at(j + 1)];
  for (Index i = 0; i < pattern.rows(); ++i) result.row_begin[at(i + 1)] += result.row_begin[at(i)];
  std::vector<Index> next(result.row_begin.begin(), result.row_begin.end() - 1);
  for (Index i = 0; i < pattern.rows(); ++i)
    for (const Index j : pattern.row(i)) result.columns[at(next[at(j)]++)] = i;
  return result;
}

/// As many entries are below the diagonal as above it, and those above have their mirror images.
bool is_symmetric(PatternView pattern, int threads) {
  std::atomic<Index> surplus = 0;  // of entries above the diagonal
  std::atomic<bool> lacks = false;
  in_parts(pattern.rows(), threads, [&](Index first, Index end) {
    Index above = 0, below = 0;
    for (Index i = first; i < end && !lacks; ++i) {
      const std::span<const Index> row = pattern.row(i);
      for (const Index j : row) {
        below += j < i;
        if (j <= i) continue;
        ++above;
        if (!std::ranges::binary_search(pattern.row(j), i)) lacks = true;
      }
    }
    surplus += above - below;
  });
  return !lacks && surplus == 0;
}

Pattern neighbours(PatternView pattern, int threads) {
  const Pattern other = transposed(pattern);
  const PatternView others = other;
  Pattern result;
  result.row_begin = Array<Index>(at(pattern.rows() + 1), 0);
  in_parts(pattern.rows(), threads, [&](Index first, Index end) {
    for (Index i = first; i < end; ++i)
      for_union(pattern.row(i), others.row(i), i, [&](Index) { ++result.row_begin[at(i + 1)]; });
  });
  for (Index i = 0; i < pattern.rows(); ++i) result.row_begin[at(i + 1)] += result.row_begin[at(i)];
  result.columns.resize(at(result.row_begin.back()));
  in_parts(pattern.rows(), threads, [&](Index first, Index end) {
    Index* to = result.columns.data() + result.row_begin[at(first)];
    for (Index i = first; i < end; ++i)
      for_union(pattern.row(i), others.row(i), i, [&](Index j) { *to++ = j; });
  });
  return result;
}

}  // namespace asterism::sparse
