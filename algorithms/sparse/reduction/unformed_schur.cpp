#include "unformed_schur.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>

#include "../../common/each_once.hpp"
#include "../../common/team.hpp"
#include "../graph/rows.hpp"
#include "red_elimination.hpp"

namespace asterism::sparse {
namespace {

/// Columns of G minus rows, ascending; more than most_schur_diagonals of them only if there are more.
std::vector<Index> diagonals_of(const Csr<double>& a, std::span<const Index> numbers,
                                std::span<const Index> black) {
  std::vector<Index> all;
  std::mutex mutex;
  const auto look = [&](Index first, Index end) {
    std::vector<Index> here;
    for (Index k = first; k < end && here.size() <= most_schur_diagonals; ++k)
      for (Index n = a.row_begin[at(black[at(k)])]; n < a.row_begin[at(black[at(k)] + 1)]; ++n) {
        const Index number = numbers[at(a.columns[at(n)])];
        if (!is_red(number)) continue;
        const Index offset = red_number(number) - k;
        if (std::ranges::find(here, offset) == here.end()) here.push_back(offset);
      }
    const std::lock_guard lock(mutex);
    all.insert(all.end(), here.begin(), here.end());
  };
  in_parts(static_cast<Index>(black.size()), 0, look, least_rows_seen);
  keep_each_once(all);
  return all;
}

}  // namespace

std::optional<UnformedSchur> UnformedSchur::of(const Csr<double>& a, const Array<double>& diagonal,
                                               std::span<const Index> numbers, std::span<const Index> black,
                                               const KeepsSchur& keeps) {
  UnformedSchur schur;
  schur.diagonals_ = diagonals_of(a, numbers, black);
  const Index rows = static_cast<Index>(black.size()), count = static_cast<Index>(schur.diagonals_.size());
  if (count == 0 || count > most_schur_diagonals) return {};
  schur.arrays_.shape = {.format = Format::schur,
                         .rows = rows,
                         .cols = rows,
                         .reach = schur.diagonals_.back() - schur.diagonals_.front()};
  if (!keeps(schur.arrays_.shape, static_cast<int>(count))) return {};
  schur.take_roots(diagonal, numbers);
  if (!schur.fill(a, diagonal, numbers, black) || !schur.is_symmetric(a, numbers)) return {};
  return schur;
}

void UnformedSchur::take_roots(const Array<double>& diagonal, std::span<const Index> numbers) {
  roots_.resize(numbers.size() - at(rows()));
  const auto take = [&](Index first, Index end) {
    for (Index i = first; i < end; ++i)
      if (is_red(numbers[at(i)])) roots_[at(red_number(numbers[at(i)]))] = std::sqrt(diagonal[at(i)]);
  };
  in_parts(static_cast<Index>(numbers.size()), 0, take, least_rows_seen);
}

/// @return whether all pivots can be divided by
bool UnformedSchur::fill(const Csr<double>& a, const Array<double>& diagonal, std::span<const Index> numbers,
                         std::span<const Index> black) {
  const Index count = static_cast<Index>(diagonals_.size());
  arrays_.columns = Uncleared<std::int32_t>(count);
  std::ranges::copy(diagonals_, arrays_.columns.data());
  arrays_.values = Uncleared<double>((1 + count) * rows());
  inverse_diagonal_.resize(at(rows()));
  double *const c = arrays_.values.data(), *const g = c + rows();
  std::atomic<bool> all_sound = true;
  std::atomic<Index> entries = 0;
  const auto fill = [&](Index first, Index end) {
    Index its_entries = end - first;
    for (Index d = 0; d < count; ++d) std::fill_n(g + d * rows() + first, end - first, 0.0);
    for (Index k = first; k < end; ++k) {
      const Index i = black[at(k)];
      double pivot = diagonal[at(i)], largest = std::abs(pivot);
      c[k] = pivot;
      for (Index n = a.row_begin[at(i)]; n < a.row_begin[at(i + 1)]; ++n) {
        const Index j = a.columns[at(n)];
        if (j == i) continue;
        const Index red = red_number(numbers[at(j)]);
        const double g_ij = a.values[at(n)] / roots_[at(red)];
        g[(std::ranges::find(diagonals_, red - k) - diagonals_.begin()) * rows() + k] = g_ij;
        pivot -= g_ij * g_ij;
        largest = std::max(largest, std::abs(a.values[at(n)]));
        ++its_entries;
      }
      inverse_diagonal_[at(k)] = 1 / pivot;
      if (!is_sound_pivot(pivot, largest, MatrixClass::positive_definite)) all_sound = false;
    }
    entries += its_entries;
  };
  in_parts(rows(), 0, fill, least_rows_seen);
  entries_ = entries;
  return all_sound;
}

/// Whether red rows have the entries that black ones have in them, and no others.
bool UnformedSchur::is_symmetric(const Csr<double>& a, std::span<const Index> numbers) const {
  std::atomic<bool> all_equal = true;
  std::atomic<Index> entries = 0;
  const auto compare = [&](Index first, Index end) {
    Index its_entries = 0;
    for (Index i = first; i < end; ++i) {
      if (!is_red(numbers[at(i)])) continue;
      const Index red = red_number(numbers[at(i)]);
      for (Index n = a.row_begin[at(i)]; n < a.row_begin[at(i + 1)]; ++n) {
        const Index k = numbers[at(a.columns[at(n)])];
        if (is_red(k)) continue;  // the diagonal
        const auto d = std::ranges::find(diagonals_, red - k) - diagonals_.begin();
        const bool is_there = d < static_cast<std::ptrdiff_t>(diagonals_.size());
        if (!is_there || g()[d * rows() + k] != a.values[at(n)] / roots_[at(red)]) all_equal = false;
        ++its_entries;
      }
    }
    entries += its_entries;
  };
  in_parts(static_cast<Index>(numbers.size()), 0, compare, least_rows_seen);
  return all_equal && entries == entries_ - rows();
}

double UnformedSchur::product_of_black(Index number, const double* red) const {
  double sum = 0;
  for (std::size_t d = 0; d < diagonals_.size(); ++d)
    if (const Index j = number + diagonals_[d]; j >= 0 && j < static_cast<Index>(roots_.size()))
      sum += g()[static_cast<Index>(d) * rows() + number] * roots_[at(j)] * red[j];
  return sum;
}

double UnformedSchur::product_of_red(Index number, const double* black) const {
  double sum = 0;
  for (std::size_t d = 0; d < diagonals_.size(); ++d)
    if (const Index k = number - diagonals_[d]; k >= 0 && k < rows())
      sum += g()[static_cast<Index>(d) * rows() + k] * black[k];
  return roots_[at(number)] * sum;
}

}  // namespace asterism::sparse
