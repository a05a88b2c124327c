/// \file
/// Dense matrices, for what the algorithms say one step after the other.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <valarray>
#include <vector>

#include "algorithms/sparse/csr.hpp"

namespace asterism::test {

using Vector = std::valarray<double>;

/// Zeros at first.
class Dense {
 public:
  Dense(Index rows, Index cols) : rows_(rows), cols_(cols), values_(static_cast<std::size_t>(rows * cols)) {}
  [[nodiscard]] Index rows() const { return rows_; }
  [[nodiscard]] Index cols() const { return cols_; }
  double& operator()(Index i, Index j) { return values_[static_cast<std::size_t>(i * cols_ + j)]; }
  double operator()(Index i, Index j) const { return values_[static_cast<std::size_t>(i * cols_ + j)]; }

 private:
  Index rows_, cols_;
  std::vector<double> values_;
};

inline Dense diagonal(Index n, double value) {
  Dense a(n, n);
  for (Index i = 0; i < n; ++i) a(i, i) = value;
  return a;
}

inline Dense transposed(const Dense& a) {
  Dense t(a.cols(), a.rows());
  for (Index i = 0; i < a.rows(); ++i)
    for (Index j = 0; j < a.cols(); ++j) t(j, i) = a(i, j);
  return t;
}

inline Dense operator*(const Dense& a, const Dense& b) {
  Dense product(a.rows(), b.cols());
  for (Index i = 0; i < a.rows(); ++i)
    for (Index k = 0; k < a.cols(); ++k)
      for (Index j = 0; a(i, k) != 0 && j < b.cols(); ++j) product(i, j) += a(i, k) * b(k, j);
  return product;
}

inline Vector operator*(const Dense& a, const Vector& x) {
  Vector product(static_cast<std::size_t>(a.rows()));
  for (Index i = 0; i < a.rows(); ++i)
    for (Index j = 0; j < a.cols(); ++j)
      product[static_cast<std::size_t>(i)] += a(i, j) * x[static_cast<std::size_t>(j)];
  return product;
}

inline double dot(const Vector& x, const Vector& y) { return (x * y).sum(); }

/// The rows of a list, and their columns in another.
inline Dense part_of(const Dense& a, const std::vector<Index>& rows, const std::vector<Index>& columns) {
  Dense part(static_cast<Index>(rows.size()), static_cast<Index>(columns.size()));
  for (Index i = 0; i < part.rows(); ++i)
    for (Index j = 0; j < part.cols(); ++j)
      part(i, j) = a(rows[static_cast<std::size_t>(i)], columns[static_cast<std::size_t>(j)]);
  return part;
}
inline Vector part_of(const Vector& x, const std::vector<Index>& rows) {
  Vector part(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) part[i] = x[static_cast<std::size_t>(rows[i])];
  return part;
}

/// A^-1 b, by elimination with the largest pivot of each column.
inline Vector solve_dense(Dense a, Vector b) {
  const Index n = a.rows();
  for (Index k = 0; k < n; ++k) {
    Index pivot = k;
    for (Index i = k + 1; i < n; ++i)
      if (std::abs(a(i, k)) > std::abs(a(pivot, k))) pivot = i;
    for (Index j = 0; j < n; ++j) std::swap(a(k, j), a(pivot, j));
    std::swap(b[static_cast<std::size_t>(k)], b[static_cast<std::size_t>(pivot)]);
    for (Index i = k + 1; i < n; ++i) {
      const double factor = a(i, k) / a(k, k);
      if (factor == 0) continue;
      for (Index j = k; j < n; ++j) a(i, j) -= factor * a(k, j);
      b[static_cast<std::size_t>(i)] -= factor * b[static_cast<std::size_t>(k)];
    }
  }
  for (Index i = n; i-- > 0;) {
    for (Index j = i + 1; j < n; ++j)
      b[static_cast<std::size_t>(i)] -= a(i, j) * b[static_cast<std::size_t>(j)];
    b[static_cast<std::size_t>(i)] /= a(i, i);
  }
  return b;
}

inline Dense dense(const sparse::Csr<double>& a) {
  Dense full(a.total_rows, a.cols);
  for (Index i = 0; i < a.rows(); ++i)
    for (Index k = a.row_begin[static_cast<std::size_t>(i)]; k < a.row_begin[static_cast<std::size_t>(i) + 1];
         ++k)
      full(i, a.columns[static_cast<std::size_t>(k)]) = a.values[static_cast<std::size_t>(k)];
  return full;
}

inline sparse::Csr<double> csr_of(const Dense& full) {
  sparse::Csr<double> a;
  a.total_rows = a.cols = full.rows();
  for (Index i = 0; i < full.rows(); ++i) {
    for (Index j = 0; j < full.cols(); ++j)
      if (full(i, j) != 0) {
        a.columns.push_back(j);
        a.values.push_back(full(i, j));
      }
    a.row_begin.push_back(static_cast<Index>(a.columns.size()));
  }
  return a;
}

}  // namespace asterism::test
