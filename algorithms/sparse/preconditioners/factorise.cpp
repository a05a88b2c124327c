#include "factorise.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "../../../runtime/error.hpp"

namespace asterism::sparse {
namespace {

constexpr Index nowhere = -1;

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

enum class Part { lower, whole };

void check(const PatternView& matrix, PatternView pattern, double shift) {
  if (!(shift >= 0) || !std::isfinite(shift))
    throw Error(fmt::format(
        "the diagonal is to be shifted by {} of itself: give a finite share of at least 0", shift));
  if (matrix.rows() != pattern.rows())
    throw Error(fmt::format("the matrix has {} rows, the pattern {}: give one of the same size",
                            matrix.rows(), pattern.rows()));
  for (Index i = 0; i < pattern.rows(); ++i)
    if (!std::ranges::binary_search(pattern.row(i), i))
      throw Error(fmt::format("the pattern has no diagonal entry in row {}: add it", i));
}

/// The pattern, or its lower triangle, with the values of A + shift diag(A).
Csr<double> on_pattern(const Csr<double>& matrix, PatternView pattern, double shift, Part part) {
  Csr<double> result;
  result.total_rows = result.cols = pattern.rows();
  result.row_begin.reserve(at(pattern.rows()) + 1);
  for (Index i = 0; i < pattern.rows(); ++i) {
    Index from = matrix.row_begin[at(i)];
    const Index end = matrix.row_begin[at(i + 1)];
    for (const Index j : pattern.row(i)) {
      if (part == Part::lower && j > i) break;
      while (from < end && matrix.columns[at(from)] < j) ++from;
      const double value = from < end && matrix.columns[at(from)] == j ? matrix.values[at(from)] : 0;
      result.columns.push_back(j);
      result.values.push_back(j == i ? value + shift * value : value);
    }
    result.row_begin.push_back(static_cast<Index>(result.columns.size()));
  }
  return result;
}

/// Where the columns of one row are among the entries, while it is worked on.
class Places {
 public:
  explicit Places(const Csr<double>& matrix) : matrix_(&matrix), place_(at(matrix.rows()), nowhere) {}

  void enter(Index row) {
    for (Index n = matrix_->row_begin[at(row)]; n < matrix_->row_begin[at(row + 1)]; ++n)
      place_[at(matrix_->columns[at(n)])] = n;
  }
  void leave(Index row) {
    for (Index n = matrix_->row_begin[at(row)]; n < matrix_->row_begin[at(row + 1)]; ++n)
      place_[at(matrix_->columns[at(n)])] = nowhere;
  }
  [[nodiscard]] Index operator[](Index column) const { return place_[at(column)]; }

 private:
  const Csr<double>* matrix_;
  std::vector<Index> place_;
};

/// The largest entry of a row of A, to which its pivot is compared.
double largest(const Csr<double>& matrix, Index row) {
  double result = 0;
  for (Index n = matrix.row_begin[at(row)]; n < matrix.row_begin[at(row + 1)]; ++n)
    result = std::max(result, std::abs(matrix.values[at(n)]));
  return result;
}

/// The rows before it are taken off a row. @param diagonal where their diagonals are @return where its own is
Index eliminate_row(Csr<double>& lu, Index row, const std::vector<Index>& diagonal, const Places& places) {
  Index n = lu.row_begin[at(row)];
  for (; lu.columns[at(n)] < row; ++n) {
    const Index k = lu.columns[at(n)];
    const double multiplier = lu.values[at(n)] /= lu.values[at(diagonal[at(k)])];
    for (Index u = diagonal[at(k)] + 1; u < lu.row_begin[at(k + 1)]; ++u)
      if (const Index place = places[lu.columns[at(u)]]; place != nowhere)
        lu.values[at(place)] -= multiplier * lu.values[at(u)];
  }
  return n;
}

/// The row of L but its diagonal's root. @return the pivot
double cholesky_row(Csr<double>& lower, Index row, const Places& places) {
  const Index diagonal = lower.row_begin[at(row + 1)] - 1;
  double pivot = lower.values[at(diagonal)];
  for (Index n = lower.row_begin[at(row)]; n < diagonal; ++n) {
    const Index k = lower.columns[at(n)], end = lower.row_begin[at(k + 1)] - 1;
    double value = lower.values[at(n)];
    for (Index m = lower.row_begin[at(k)]; m < end; ++m)
      if (const Index place = places[lower.columns[at(m)]]; place != nowhere)
        value -= lower.values[at(place)] * lower.values[at(m)];
    value /= lower.values[at(end)];
    lower.values[at(n)] = value;
    pivot -= value * value;
  }
  return pivot;
}

}  // namespace

Factorisation incomplete_lu(const Csr<double>& matrix, PatternView pattern, double shift) {
  check(matrix, pattern, shift);
  Factorisation result{on_pattern(matrix, pattern, shift, Part::whole), shift, std::nullopt};
  Places places(result.factor);
  std::vector<Index> diagonal;
  diagonal.reserve(at(matrix.rows()));
  for (Index i = 0; i < matrix.rows(); ++i) {
    places.enter(i);
    diagonal.push_back(eliminate_row(result.factor, i, diagonal, places));
    places.leave(i);
    const double pivot = result.factor.values[at(diagonal.back())];
    const double least = std::numeric_limits<double>::epsilon() * largest(matrix, i);
    if (std::abs(pivot) > least && std::isfinite(pivot)) continue;
    result.breakdown = Breakdown{i, pivot};
    break;
  }
  return result;
}

Factorisation incomplete_cholesky(const Csr<double>& matrix, PatternView pattern, double shift) {
  check(matrix, pattern, shift);
  Factorisation result{on_pattern(matrix, pattern, shift, Part::lower), shift, std::nullopt};
  Places places(result.factor);
  for (Index i = 0; i < matrix.rows(); ++i) {
    places.enter(i);
    const double pivot = cholesky_row(result.factor, i, places);
    places.leave(i);
    if (!(pivot > 0) || !std::isfinite(pivot)) {
      result.breakdown = Breakdown{i, pivot};
      break;
    }
    result.factor.values[at(result.factor.row_begin[at(i + 1)] - 1)] = std::sqrt(pivot);
  }
  return result;
}

Factorisation with_growing_shift(const std::function<Factorisation(double shift)>& factorise) {
  constexpr double first_shift = 1e-3, largest_shift = 1000;
  Factorisation result = factorise(0);
  for (double shift = first_shift; result.breakdown && result.shift <= largest_shift; shift *= 2)
    result = factorise(shift);
  return result;
}

}  // namespace asterism::sparse
