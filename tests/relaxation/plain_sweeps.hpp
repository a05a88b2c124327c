/// \file
/// The papers' plain loops on the whole grid, in long double: the slow twins of the relaxation kernels.
#pragma once

#include "../support/matrix.hpp"
#include "../support/worst.hpp"
#include "codelets/relaxation/sweeps.hpp"
#include "stripe_work.hpp"

namespace asterism::test {

using namespace asterism::relaxation;

using Real = long double;

/// [Czapinski 2014] (4.12) on the whole grid, in long double.
struct Plain {
  Index m, n;
  Matrix<Real> v, g;
  Real y, x;

  template <class T>
  Plain(const FramedGrid<T>& grid, bool has_source)
      : m(grid.m),
        n(grid.n),
        v(Matrix<Real>(m + 2, n + 2).fill([&](Index i, Index j) { return grid.v(i, j); })),
        g(Matrix<Real>(m, n).fill([&](Index i, Index j) {
          return has_source ? -static_cast<Real>(grid.f(i, j)) / static_cast<Real>(grid.a.diagonal) : Real{0};
        })),
        y(static_cast<Real>(grid.a.along_y)),
        x(static_cast<Real>(grid.a.along_x)) {}

  /// The right-hand side of (R1) at node (i, j), from the values in `from`.
  [[nodiscard]] Real right_hand_side(const Matrix<Real>& from, Index i, Index j) const {
    return y * (from(i, j + 1) + from(i + 2, j + 1)) + x * (from(i + 1, j) + from(i + 1, j + 2)) + g(i, j);
  }
  void jacobi() {
    const Matrix<Real> old = v;
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j) v(i + 1, j + 1) = right_hand_side(old, i, j);
  }
  void relax(Colour colour, Real omega) { relax(colour, omega, 0, m, v); }
  /// Rows [begin, end) alone, with the other rows as they are in `others`.
  void relax(Colour colour, Real omega, Index begin, Index end, const Matrix<Real>& others) {
    const auto beside = [&](Index i, Index j) {
      return i - 1 >= begin && i - 1 < end ? v(i, j + 1) : others(i, j + 1);
    };
    for (Index i = begin; i < end; ++i)
      for (Index j = 0; j < n; ++j) {
        if (is_red(i, j) != (colour == Colour::red)) continue;
        const Real sum =
            y * (beside(i, j) + beside(i + 2, j)) + x * (v(i + 1, j) + v(i + 1, j + 2)) + g(i, j);
        v(i + 1, j + 1) = (1 - omega) * v(i + 1, j + 1) + omega * sum;
      }
  }
  void sweep(const Work& work) {
    const auto omega = static_cast<Real>(work.omega);
    if (work.jacobi) return jacobi();
    relax(Colour::red, omega);
    relax(Colour::black, omega);
    if (work.order == Sweep::red_black) return;
    relax(Colour::black, omega);
    relax(Colour::red, omega);
  }
  [[nodiscard]] Real largest() const {
    Worst largest;
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j) largest.take_in(v(i + 1, j + 1));
    return largest.value();
  }
};

template <class T>
Real distance(const Plain& plain, const Matrix<T>& v) {
  Worst worst;
  for (Index i = 0; i < plain.m; ++i)
    for (Index j = 0; j < plain.n; ++j) worst.take_in(plain.v(i + 1, j + 1) - v(i, j));
  return worst.value();
}

}  // namespace asterism::test
