/// \file
/// Preconditioned conjugate gradients, serial: iteration counts tell how good a factorisation is.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "../../algorithms/sparse/csr.hpp"

namespace asterism::test {

using Vector = std::vector<double>;
using Preconditioner = std::function<Vector(const Vector&)>;

inline std::size_t at(Index i) { return static_cast<std::size_t>(i); }

inline Vector product(const sparse::Csr<double>& a, const Vector& x) {
  Vector y(x.size());
  for (Index i = 0; i < a.rows(); ++i)
    for (Index n = a.row_begin[at(i)]; n < a.row_begin[at(i + 1)]; ++n)
      y[at(i)] += a.values[at(n)] * x[at(a.columns[at(n)])];
  return y;
}

inline double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// How many iterations from 0 reduce the residual's norm to that part of b's; most + 1 where they do not.
inline Index iterations(const sparse::Csr<double>& a, const Vector& b, const Preconditioner& solve,
                        double tolerance, Index most = 20'000) {
  Vector r = b, z = solve(r), p = z;
  double rz = dot(r, z);
  const double end = tolerance * std::sqrt(dot(b, b));
  for (Index k = 1; k <= most; ++k) {
    const Vector ap = product(a, p);
    const double alpha = rz / dot(p, ap);
    for (std::size_t i = 0; i < r.size(); ++i) r[i] -= alpha * ap[i];
    if (std::sqrt(dot(r, r)) <= end) return k;
    z = solve(r);
    const double before = rz;
    rz = dot(r, z);
    for (std::size_t i = 0; i < p.size(); ++i) p[i] = z[i] + rz / before * p[i];
  }
  return most + 1;
}

/// Which diagonal a triangular solve takes: the matrix's own, or ones.
enum class Diagonal { own, ones };

inline Vector solve_lower(const sparse::Csr<double>& l, Vector x, Diagonal diagonal) {
  for (Index i = 0; i < l.rows(); ++i) {
    double pivot = 1;
    for (Index n = l.row_begin[at(i)]; n < l.row_begin[at(i + 1)]; ++n) {
      if (l.columns[at(n)] < i) x[at(i)] -= l.values[at(n)] * x[at(l.columns[at(n)])];
      if (l.columns[at(n)] == i && diagonal == Diagonal::own) pivot = l.values[at(n)];
    }
    x[at(i)] /= pivot;
  }
  return x;
}

inline Vector solve_upper(const sparse::Csr<double>& u, Vector x) {
  for (Index i = u.rows() - 1; i >= 0; --i) {
    double pivot = 1;
    for (Index n = u.row_begin[at(i)]; n < u.row_begin[at(i + 1)]; ++n) {
      if (u.columns[at(n)] > i) x[at(i)] -= u.values[at(n)] * x[at(u.columns[at(n)])];
      if (u.columns[at(n)] == i) pivot = u.values[at(n)];
    }
    x[at(i)] /= pivot;
  }
  return x;
}

inline Preconditioner lu_preconditioner(const sparse::Csr<double>& lu) {
  return [&lu](const Vector& r) { return solve_upper(lu, solve_lower(lu, r, Diagonal::ones)); };
}

/// L L^T: the second solve goes through L by columns.
inline Preconditioner cholesky_preconditioner(const sparse::Csr<double>& l) {
  return [&l](const Vector& r) {
    Vector x = solve_lower(l, r, Diagonal::own);
    for (Index i = l.rows() - 1; i >= 0; --i) {
      const Index diagonal = l.row_begin[at(i + 1)] - 1;
      x[at(i)] /= l.values[at(diagonal)];
      for (Index n = l.row_begin[at(i)]; n < diagonal; ++n)
        x[at(l.columns[at(n)])] -= l.values[at(n)] * x[at(i)];
    }
    return x;
  };
}

inline Vector diagonal_of(const sparse::Csr<double>& a) {
  Vector diagonal(at(a.rows()));
  for (Index i = 0; i < a.rows(); ++i)
    for (Index n = a.row_begin[at(i)]; n < a.row_begin[at(i + 1)]; ++n)
      if (a.columns[at(n)] == i) diagonal[at(i)] = a.values[at(n)];
  return diagonal;
}

inline Preconditioner diagonal_preconditioner(const sparse::Csr<double>& a) {
  return [d = diagonal_of(a)](Vector r) {
    for (std::size_t i = 0; i < r.size(); ++i) r[i] /= d[i];
    return r;
  };
}

/// (D + L) D^-1 (D + R), symmetric Gauss-Seidel.
inline Preconditioner gauss_seidel_preconditioner(const sparse::Csr<double>& a) {
  return [&a, d = diagonal_of(a)](const Vector& r) {
    Vector x = solve_lower(a, r, Diagonal::own);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] *= d[i];
    return solve_upper(a, x);
  };
}

}  // namespace asterism::test
