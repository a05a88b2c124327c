#include "red_elimination.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "../../common/team.hpp"
#include "../graph/rows.hpp"

namespace asterism::sparse {

bool is_sound_pivot(double pivot, double largest, MatrixClass matrix_class) {
  const double size = matrix_class == MatrixClass::positive_definite ? pivot : std::abs(pivot);
  return size > std::numeric_limits<double>::epsilon() * largest && std::isfinite(pivot);
}

template <class T>
RedElimination<T>::RedElimination(const Csr<T>& mine, const Array<double>& diagonal,
                                  std::span<const Index> numbers, const SharedElements& neighbours)
    : mine_(mine), diagonal_(diagonal), numbers_(numbers), neighbours_(neighbours) {
  const auto own = [&](Index number) { return own_row(number - mine.first_row); };
  their_columns_ = neighbours.tell_lists<Index>([&](Index number) { return own(number).columns; });
  their_values_ = neighbours.tell_lists<T>([&](Index number) { return own(number).values; });
  their_diagonal_ = neighbours.tell<double>([&](Index number) { return own(number).diagonal; });
}

template <class T>
typename RedElimination<T>::Row RedElimination<T>::own_row(Index i) const {
  const std::size_t begin = at(mine_.row_begin[at(i)]), count = at(mine_.row_begin[at(i + 1)]) - begin;
  return {std::span(mine_.columns).subspan(begin, count), std::span(mine_.values).subspan(begin, count),
          diagonal_[at(i)]};
}

template <class T>
typename RedElimination<T>::Row RedElimination<T>::row(Index number) const {
  const Index own = number - mine_.first_row;
  if (0 <= own && own < mine_.rows()) return own_row(own);
  const Index place = neighbours_.place(number);
  return {their_columns_.of(place), their_values_.of(place), their_diagonal_[at(place)]};
}

template <class T>
Index RedElimination<T>::terms(std::span<const Index> black) const {
  std::atomic<Index> count = 0;
  const auto add = [&](Index first, Index end) {
    Index here = 0;
    for (Index k = first; k < end; ++k) {
      ++here;
      for (const Index j : own_row(black[at(k)]).columns)
        if (is_red(numbers_[at(j)])) here += static_cast<Index>(row(j).columns.size()) - 1;
    }
    count += here;
  };
  in_parts(static_cast<Index>(black.size()), 0, add, least_rows_seen);
  return count;
}

template <class T>
void RedElimination<T>::find_terms(Index i, Terms& terms) const {
  terms.columns.clear();
  terms.values.clear();
  terms.largest = 0;
  const auto add = [&](Index column, double value) {
    terms.columns.push_back(numbers_[at(column)]);
    terms.values.push_back(value);
  };
  const Row its = own_row(i);
  for (std::size_t n = 0; n < its.columns.size(); ++n) {
    const Index j = its.columns[n];
    const auto a_ij = static_cast<double>(its.values[n]);
    terms.largest = std::max(terms.largest, std::abs(a_ij));
    if (!is_red(numbers_[at(j)])) {
      add(j, a_ij);
      continue;
    }
    const Row through = row(j);
    for (std::size_t m = 0; m < through.columns.size(); ++m)
      if (const Index k = through.columns[m]; k != j)
        add(k, -(a_ij * static_cast<double>(through.values[m]) / through.diagonal));
  }
  sort_row(terms.columns.data(), terms.values.data(), static_cast<Index>(terms.values.size()));
}

template <class T>
bool RedElimination<T>::append(std::span<const Index> black, MatrixClass matrix_class,
                               RowsInTheMaking<T>& to) const {
  Terms terms;
  bool all_sound = true;
  for (const Index i : black) {
    find_terms(i, terms);
    for (std::size_t n = 0; n < terms.columns.size();) {
      const Index column = terms.columns[n];
      double sum = 0;
      for (; n < terms.columns.size() && terms.columns[n] == column; ++n) sum += terms.values[n];
      to.add(column, static_cast<T>(sum));
      if (column == numbers_[at(mine_.first_row + i)] &&
          !is_sound_pivot(static_cast<double>(to.values.back()), terms.largest, matrix_class))
        all_sound = false;
    }
    to.end_row();
  }
  return all_sound;
}

template class RedElimination<float>;
template class RedElimination<double>;

}  // namespace asterism::sparse
