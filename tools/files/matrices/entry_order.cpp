#include "entry_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "../../../runtime/error.hpp"

namespace asterism::tools {
namespace {

using Entry = std::pair<Index, double>;

void sort_row(sparse::Csr<double>& matrix, std::size_t begin, std::size_t end, std::vector<Entry>& row) {
  row.clear();
  for (std::size_t i = begin; i < end; ++i) row.emplace_back(matrix.columns[i], matrix.values[i]);
  std::ranges::stable_sort(row, {}, &Entry::first);
  for (std::size_t i = begin; i < end; ++i) std::tie(matrix.columns[i], matrix.values[i]) = row[i - begin];
}

/// Of entries [begin, end) of row `row`, which are in order, those that have the column of the one before.
Duplicates duplicates_in(const sparse::Csr<double>& matrix, Index row, std::size_t begin, std::size_t end) {
  Duplicates found;
  for (std::size_t i = begin + 1; i < end; ++i)
    if (matrix.columns[i] == matrix.columns[i - 1]) ++(matrix.columns[i] <= row ? found.lower : found.upper);
  return found;
}

/// Moves the entries [begin, end) of row `row`, which are in order, to `into`, summed where they have the same column.
/// @return where they end
std::size_t sum_row(sparse::Csr<double>& matrix, Index row, std::size_t begin, std::size_t end,
                    std::size_t into, const std::filesystem::path& path) {
  for (std::size_t i = begin; i < end; ++i) {
    const Index col = matrix.columns[i];
    if (i == begin || col != matrix.columns[into - 1]) {
      matrix.columns[into] = col;
      matrix.values[into++] = matrix.values[i];
      continue;
    }
    const double sum = matrix.values[into - 1] += matrix.values[i];
    if (!std::isfinite(sum))
      throw Error(
          fmt::format("{}: the entries in row {} and column {} have the sum {}: every number must be finite",
                      path.string(), row + 1, col + 1, sum));
  }
  return into;
}

void shorten(sparse::Csr<double>& matrix, std::size_t entries) {
  if (entries == matrix.columns.size()) return;
  matrix.columns = {matrix.columns.begin(), matrix.columns.begin() + entries};
  matrix.values = {matrix.values.begin(), matrix.values.begin() + entries};
}

}  // namespace

Duplicates order_entries(sparse::Csr<double>& matrix, const std::filesystem::path& path) {
  Duplicates all;
  std::vector<Entry> sorted;
  std::size_t begin = 0, into = 0;
  for (Index r = 0; r < matrix.rows(); ++r) {
    Index& row_end = matrix.row_begin[static_cast<std::size_t>(r) + 1];
    const auto end = static_cast<std::size_t>(row_end);
    const std::span columns(matrix.columns.data() + begin, end - begin);
    Duplicates here;
    if (std::ranges::adjacent_find(columns, std::greater_equal<>()) != columns.end()) {
      if (!std::ranges::is_sorted(columns)) sort_row(matrix, begin, end, sorted);
      here = duplicates_in(matrix, matrix.first_row + r, begin, end);
      all.lower += here.lower;
      all.upper += here.upper;
    }
    const bool in_place = into == begin && here.lower + here.upper == 0;
    into = in_place ? end : sum_row(matrix, matrix.first_row + r, begin, end, into, path);
    begin = end;
    row_end = static_cast<Index>(into);
  }
  shorten(matrix, into);
  return all;
}

}  // namespace asterism::tools
