/// \file
/// Dense matrices and vectors: what the algorithms say, one step after the other, and sparse ones as dense.
#pragma once

#include <cmath>
#include <functional>
#include <initializer_list>
#include <numeric>
#include <optional>
#include <utility>
#include <valarray>
#include <vector>

#include "algorithms/sparse/csr.hpp"
#include "algorithms/sparse/graph/pattern.hpp"

namespace asterism::test {

using DenseVector = std::valarray<double>;

/// Zeros at first.
class Dense {
 public:
  Dense(Index rows, Index cols) : rows_(rows), cols_(cols), values_(static_cast<std::size_t>(rows * cols)) {}
  Dense(std::initializer_list<std::initializer_list<double>> rows)
      : rows_(static_cast<Index>(rows.size())), cols_(static_cast<Index>(rows.begin()->size())) {
    for (const std::initializer_list<double>& row : rows) values_.insert(values_.end(), row);
  }
  [[nodiscard]] Index rows() const { return rows_; }
  [[nodiscard]] Index cols() const { return cols_; }
  double& operator()(Index i, Index j) { return values_[static_cast<std::size_t>(i * cols_ + j)]; }
  double operator()(Index i, Index j) const { return values_[static_cast<std::size_t>(i * cols_ + j)]; }
  bool operator==(const Dense&) const = default;
  [[nodiscard]] const std::vector<double>& values() const { return values_; }

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

inline DenseVector operator*(const Dense& a, const DenseVector& x) {
  DenseVector product(static_cast<std::size_t>(a.rows()));
  for (Index i = 0; i < a.rows(); ++i)
    for (Index j = 0; j < a.cols(); ++j)
      product[static_cast<std::size_t>(i)] += a(i, j) * x[static_cast<std::size_t>(j)];
  return product;
}

inline Dense operator-(Dense a, const Dense& b) {
  for (Index i = 0; i < a.rows(); ++i)
    for (Index j = 0; j < a.cols(); ++j) a(i, j) -= b(i, j);
  return a;
}

inline double dot(const DenseVector& x, const DenseVector& y) {
  return std::inner_product(begin(x), end(x), begin(y), 0.0);
}
inline double norm(const DenseVector& x) { return std::sqrt(dot(x, x)); }
inline double norm(const Dense& a) { return norm(DenseVector(a.values().data(), a.values().size())); }

/// What it has where that is true of row and column.
template <class Which>
Dense entries_where(Dense a, const Which& which) {
  for (Index i = 0; i < a.rows(); ++i)
    for (Index j = 0; j < a.cols(); ++j)
      if (!which(i, j)) a(i, j) = 0;
  return a;
}
inline Dense lower(const Dense& a) { return entries_where(a, std::greater_equal<Index>{}); }
inline Dense upper(const Dense& a) { return entries_where(a, std::less_equal<Index>{}); }

/// The rows of a list, and their columns in another.
inline Dense part_of(const Dense& a, const std::vector<Index>& rows, const std::vector<Index>& columns) {
  Dense part(static_cast<Index>(rows.size()), static_cast<Index>(columns.size()));
  for (Index i = 0; i < part.rows(); ++i)
    for (Index j = 0; j < part.cols(); ++j)
      part(i, j) = a(rows[static_cast<std::size_t>(i)], columns[static_cast<std::size_t>(j)]);
  return part;
}
inline DenseVector part_of(const DenseVector& x, const std::vector<Index>& rows) {
  DenseVector part(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) part[i] = x[static_cast<std::size_t>(rows[i])];
  return part;
}

/// A^-1 b, by elimination with the largest pivot of each column.
inline DenseVector solve_dense(Dense a, DenseVector b) {
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

/// L of A = L L^T; nothing, if A is not positive definite.
inline std::optional<Dense> cholesky(Dense a) {
  for (Index k = 0; k < a.rows(); ++k) {
    if (!(a(k, k) > 0)) return {};
    a(k, k) = std::sqrt(a(k, k));
    for (Index i = k + 1; i < a.rows(); ++i) a(i, k) /= a(k, k);
    for (Index j = k + 1; j < a.rows(); ++j)
      for (Index i = j; i < a.rows(); ++i) a(i, j) -= a(i, k) * a(j, k);
  }
  return lower(a);
}

inline DenseVector dense(const std::vector<double>& x) { return DenseVector(x.data(), x.size()); }

/// 1 where there is an entry.
inline Dense dense(sparse::PatternView pattern) {
  Dense full(pattern.rows(), pattern.rows());
  for (Index i = 0; i < pattern.rows(); ++i)
    for (const Index j : pattern.row(i)) full(i, j) += 1;
  return full;
}

inline Dense dense(const sparse::Csr<double>& a) {
  Dense full(a.total_rows, a.cols);
  for (Index i = 0; i < a.rows(); ++i)
    for (Index k = a.row_begin[static_cast<std::size_t>(i)]; k < a.row_begin[static_cast<std::size_t>(i) + 1];
         ++k)
      full(i, a.columns[static_cast<std::size_t>(k)]) += a.values[static_cast<std::size_t>(k)];
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
