// Given boundary values, lifted into the right-hand side.

#include "codelets/grid/lift.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "../support/grid.hpp"
#include "../support/worst.hpp"
#include "model_grids.hpp"

#ifdef ASTERISM_WITH_CUDA
#include "../support/tiles.hpp"
#endif

using namespace asterism;
using namespace asterism::grid;
using namespace asterism::test;

namespace {

/// A polynomial along an axis of which the lifted differences are exact.
struct Polynomial {
  std::array<Real, 3> c;
  [[nodiscard]] Real value(Real t) const { return c[0] + t * (c[1] + t * c[2]); }
  [[nodiscard]] Real slope(Real t) const { return c[1] + 2 * t * c[2]; }
  [[nodiscard]] Real second() const { return 2 * c[2]; }
  /// What is given at an end of the axis.
  [[nodiscard]] Real given(const Axis& axis, Real t) const {
    const Condition end = t == 0 ? axis.lower : axis.upper;
    return end == Condition::dirichlet ? value(t)
           : end == Condition::neumann ? slope(t)
                                       : std::numeric_limits<Real>::quiet_NaN();
  }
};

/// Of second degree where that is exact: not next to a Dirichlet end half a cell away, nor in cells of
/// several widths.
Polynomial exact_polynomial(const Axis& axis, bool stretch) {
  if (axis.periodic()) return {{1.25L, 0, 0}};
  const bool linear = axis.centering == Centering::cell &&
                      (stretch || axis.lower == Condition::dirichlet || axis.upper == Condition::dirichlet);
  if (linear) return {{0.5L, -0.75L, 0}};
  return {{0.5L, -0.75L, 0.625L}};
}

/// A grid with the product of a polynomial for each axis on it, and what is given at its ends.
struct LiftCase {
  Grid grid;
  bool is_stretched;
  Polynomial z, y, x;

  LiftCase(Grid on, bool stretch)
      : grid(std::move(on)),
        is_stretched(stretch),
        z(exact_polynomial(grid.slow.axis, stretch)),
        y(inert(grid.a.y) ? Polynomial{{1, 0, 0}} : exact_polynomial(grid.a.y, false)),
        x(exact_polynomial(grid.a.x, false)) {}

  [[nodiscard]] Real z_at(Index i) const { return z.value(grid.slow.position[static_cast<std::size_t>(i)]); }
  [[nodiscard]] Real y_at(Index j) const { return y.value(grid.y.position[static_cast<std::size_t>(j)]); }
  [[nodiscard]] Real x_at(Index j) const { return x.value(grid.x.position[static_cast<std::size_t>(j)]); }

  template <class T>
  [[nodiscard]] Matrix<T> solution() const {
    const Index nx = grid.a.x.n;
    return Matrix<T>(grid.m(), grid.plane()).fill([&](Index i, Index j) {
      return z_at(i) * y_at(j / nx) * x_at(j % nx);
    });
  }
  template <class T>
  [[nodiscard]] Matrix<T> rhs() const {
    const Index nx = grid.a.x.n;
    return Matrix<T>(grid.m(), grid.plane()).fill([&](Index i, Index j) {
      const Real p = z_at(i), q = y_at(j / nx), r = x_at(j % nx);
      return z.second() * q * r + p * y.second() * r + p * q * x.second() +
             static_cast<Real>(grid.a.lambda) * p * q * r;
    });
  }
  [[nodiscard]] Matrix<double> x_sides() const {
    const Index ny = grid.a.y.n;
    return Matrix<double>(grid.m(), 2 * ny).fill([&](Index i, Index j) {
      return z_at(i) * y_at(j % ny) * x.given(grid.a.x, j < ny ? 0 : static_cast<Real>(grid.a.x.length));
    });
  }
  [[nodiscard]] Matrix<double> y_sides() const {
    if (inert(grid.a.y)) return Matrix<double>(1, 1);  // NaN: not read
    const Index nx = grid.a.x.n;
    return Matrix<double>(grid.m(), 2 * nx).fill([&](Index i, Index j) {
      return z_at(i) * y.given(grid.a.y, j < nx ? 0 : static_cast<Real>(grid.a.y.length)) * x_at(j % nx);
    });
  }
  [[nodiscard]] Matrix<double> z_sides() const {
    const Index nx = grid.a.x.n;
    return Matrix<double>(2, grid.plane()).fill([&](Index end, Index j) {
      const Axis& axis = grid.slow.axis;
      return z.given(axis, end == 0 ? 0 : static_cast<Real>(axis.length)) * y_at(j / nx) * x_at(j % nx);
    });
  }
  [[nodiscard]] LiftedSlab slab(Index first, Index planes) const {
    return {grid.a, grid.slow.axis, !is_stretched, grid.unit, first == 0, first + planes == grid.m()};
  }
};

/// The tile of sides that a slab has: in two dimensions y has one element, and so has z away from the ends.
Matrix<double> none() { return Matrix<double>(1, 1); }

template <class T>
Matrix<T> lifted(const LiftCase& c, Matrix<T> f, Index height) {
  const Matrix<double> x = c.x_sides(), y = c.y_sides(), z = c.z_sides(), nothing = none();
  const Matrix<double> x_before = x, y_before = y, z_before = z;
  for_slabs(c.grid, height, [&](Index first, Index planes) {
    const LiftedSlab slab = c.slab(first, planes);
    cpu::lift<T>(slab, f.inout(first, planes), x.in(first, planes),
                 y.rows() == c.grid.m() && y.cols() > 1 ? y.in(first, planes) : y.in(),
                 slab.first || slab.last ? z.in() : nothing.in(), c.grid.rows.in(first, planes));
  });
  CHECK(f.guarded());
  return f;
}

}  // namespace

TEST_CASE_TEMPLATE("lifted values: the difference equation of a polynomial holds exactly", T, float, double) {
  constexpr Real epsilon = std::numeric_limits<T>::epsilon();
  const auto check = [&](const LiftCase& c) {
    const Grid& grid = c.grid;
    const Matrix<Real> u = c.solution<Real>();
    for (const Index height : slab_heights(grid)) {
      const Matrix<T> f = lifted(c, c.template rhs<T>(), height);
      bool right = true;
      for (Index i = 0; i < f.rows(); ++i)
        for (Index j = 0; j < f.cols(); ++j) {
          Real size = 0;
          const Real exact = grid.apply(u, i, j, &size);
          right = right && std::abs(static_cast<Real>(f(i, j)) - exact) <= 4 * epsilon * (size + 1);
        }
      CHECK(right);
    }
  };
  const std::vector<std::array<Index, 3>> shapes = {{1, 1, 1}, {2, 1, 2}, {4, 3, 5}, {3, 4, 1}};
  for (const auto& [m, ny, nx] : shapes)
    for (const Axis& slow : all_axes(m, 1.25))
      for (const Axis& x : all_axes(nx, 0.75)) {
        check({Grid(plain(slow), {no_axis, x, -1.0}), false});
        check({Grid(stretched(slow), {no_axis, x, 0.0}, 2.0), true});
        for (const Axis& y : all_axes(ny, 2.0)) check({Grid(stretched(slow), {y, x, -1.0}), true});
      }
}

TEST_CASE("lifted values: solutions converge with second order, whatever the conditions") {
  // u = exp(t) on one axis, f = u'' - 2 u = -u; the largest error of the solution.
  const auto error_at = [](const Axis& axis, bool slowest) {
    const Axis& slow = slowest ? axis : no_axis;
    const Grid grid(plain(slow), {no_axis, slowest ? no_axis : axis, -2.0});
    const PlainAxis& line = slowest ? grid.slow : grid.x;
    const Index n = axis.n;
    const auto exact = [&](Index i) { return std::exp(line.position[static_cast<std::size_t>(i)]); };
    Matrix<double> f = Matrix<double>(grid.m(), grid.plane()).fill([&](Index i, Index j) {
      return -exact(slowest ? i : j);
    });
    // Both what is given and its derivative are exp at the end.
    const auto at_ends = [&](Index, Index end) { return end == 0 ? 1.0 : std::exp(axis.length); };
    const Matrix<double> x = Matrix<double>(1, 2).fill(at_ends),
                         z = Matrix<double>(2, 1).fill([&](Index end, Index) { return at_ends(0, end); }),
                         nothing = none();
    cpu::lift<double>({grid.a, slow, true, grid.unit, true, true}, f.inout(), slowest ? nothing.in() : x.in(),
                      nothing.in(), slowest ? z.in() : nothing.in(), grid.rows.in());
    Matrix<Real> a = line.matrix();
    Reals u;
    for (Index i = 0; i < n; ++i) {
      a(i, i) += static_cast<Real>(grid.a.lambda);
      u.push_back(slowest ? f(i, 0) : f(0, i));
    }
    // Gaussian elimination, upwards and then downwards.
    for (Index i = n - 1; i > 0; --i) {
      const Real factor = a(i - 1, i) / a(i, i);
      a(i - 1, i - 1) -= factor * a(i, i - 1);
      u[static_cast<std::size_t>(i - 1)] -= factor * u[static_cast<std::size_t>(i)];
    }
    Worst worst;
    for (Index i = 0; i < n; ++i) {
      auto& value = u[static_cast<std::size_t>(i)];
      if (i > 0) value -= a(i, i - 1) * u[static_cast<std::size_t>(i - 1)];
      value /= a(i, i);
      worst.take_in(value - exact(i));
    }
    return static_cast<double>(worst.value());
  };
  for (const Axis& axis : all_axes(20, 1.25)) {
    if (axis.periodic()) continue;
    Axis refined = axis;
    refined.n += axis.cells();
    for (const bool slowest : {true, false}) {
      const double ratio = error_at(axis, slowest) / error_at(refined, slowest);
      CHECK(ratio > 3.6);
      CHECK(ratio < 4.4);
    }
  }
}

TEST_CASE("lifted values by hand") {
  // h = 1/2: -1/h^2 = -4 at a Dirichlet end that is a node, -8 half a cell away; 2/h = 4 at a Neumann end
  // node, 1/h = 2 at the face of a cell.
  using enum Condition;
  const auto factors = [](Condition lower, Condition upper, Centering centering) {
    Axis axis{3, 1.0, lower, upper, centering};
    axis.length = 0.5 * static_cast<double>(axis.cells());
    const LiftFactors f = lift_factors(axis);
    CHECK(f.lower.rest == 0);
    CHECK(f.upper.rest == 0);
    return std::pair(f.lower.value, f.upper.value);
  };
  CHECK(factors(dirichlet, dirichlet, Centering::node) == std::pair(-4.0, -4.0));
  CHECK(factors(dirichlet, dirichlet, Centering::cell) == std::pair(-8.0, -8.0));
  CHECK(factors(neumann, neumann, Centering::node) == std::pair(4.0, -4.0));
  CHECK(factors(neumann, neumann, Centering::cell) == std::pair(2.0, -2.0));
  CHECK(factors(dirichlet, neumann, Centering::node) == std::pair(-4.0, -4.0));
  CHECK(factors(neumann, dirichlet, Centering::cell) == std::pair(2.0, -8.0));
  CHECK(factors(periodic, periodic, Centering::node) == std::pair(0.0, 0.0));
}

TEST_CASE_TEMPLATE("lifted values: what the ends at a corner give is added up at once", T, float, double) {
  // Weights of 16 and 4, values that cancel one another, and in the other corner all of f but its last digits.
  const Axis slow{3, 2.0, Condition::dirichlet, Condition::dirichlet, Centering::node},
      fast{3, 1.0, Condition::dirichlet, Condition::dirichlet, Centering::node};
  const Grid grid(plain(slow), {no_axis, fast, 0.0});
  const double large = 0x1p40, small = 0.7;
  const auto f_at = [&](Index i, Index j) {
    return i == 2 && j == 2 ? static_cast<T>(large / 3) : static_cast<T>(small);
  };
  Matrix<T> f = Matrix<T>(3, 3).fill(f_at);
  const Matrix<double> z =
      Matrix<double>(2, 3).fill([&](Index end, Index j) { return end == 0 && j == 0 ? 4 * large : 0.0; });
  const Matrix<double> x = Matrix<double>(3, 2).fill([&](Index i, Index end) {
    return end == 0 && i == 0 ? -large : end == 1 && i == 2 ? static_cast<double>(f_at(2, 2)) / 16 + 1 : 0.0;
  });
  const Matrix<double> nothing = none();
  cpu::lift<T>({grid.a, slow, true, grid.unit, true, true}, f.inout(), x.in(), nothing.in(), z.in(),
               grid.rows.in());
  // In float64 the value given at (2, 2) is rounded, the products and sums are not.
  CHECK(static_cast<double>(f(2, 2)) == std::fma(-16.0, x(2, 1), static_cast<double>(f_at(2, 2))));
  for (Index i = 0; i < 3; ++i)
    for (Index j = 0; j < 3; ++j)
      if (i != 2 || j != 2) CHECK(f(i, j) == static_cast<T>(small));
}

TEST_CASE("lifted values: what nearly cancels is right to its last digits, along any axis") {
  const Axis axis{1, 1.1593923331189309, Condition::dirichlet, Condition::neumann, Centering::node};
  const Real length = axis.length;  // h
  const double value = 0.7, derivative = -0.7 / axis.length * 1.001;
  const Real expected = -2 / (length * length) * value - 2 / length * derivative;
  const Matrix<double> nothing = none(), sides = Matrix<double>(1, 2).fill(
                                             [&](Index, Index end) { return end == 0 ? value : derivative; });
  for (const int direction : {0, 1, 2}) {
    CAPTURE(direction);
    const Axis cell{1, 1.0, Condition::neumann, Condition::neumann, Centering::cell};
    const Axis slow = direction == 0 ? axis : cell;
    const Grid grid(plain(slow), {direction == 1 ? axis : cell, direction == 2 ? axis : cell, 0.0});
    const Matrix<double> z = Matrix<double>(2, 1).fill([&](Index end, Index) { return sides(0, end); });
    Matrix<double> f = Matrix<double>(1, 1).fill([](Index, Index) { return 0; });
    cpu::lift<double>({grid.a, slow, true, grid.unit, true, true}, f.inout(),
                      direction == 2 ? sides.in() : nothing.in(), direction == 1 ? sides.in() : nothing.in(),
                      direction == 0 ? z.in() : nothing.in(), grid.rows.in());
    CHECK(std::abs(static_cast<Real>(f(0, 0)) - expected) <=
          std::numeric_limits<double>::epsilon() * std::abs(expected));
  }
}

TEST_CASE("lifted values: an axis of one cell has derivatives given at its ends") {
  const Axis line{3, 1.0, Condition::dirichlet, Condition::dirichlet, Centering::cell},
      cell{1, 0.5, Condition::neumann, Condition::neumann, Centering::cell};
  const Grid grid(plain(line), {cell, line, 0.0});
  Matrix<double> f = Matrix<double>(3, 3).fill([](Index, Index) { return 1; });
  const Matrix<double> y = Matrix<double>(3, 6).fill([](Index, Index j) { return j < 3 ? 3 : 1; }),
                       nothing = none();
  cpu::lift<double>({grid.a, line, true, grid.unit, true, true}, f.inout(), nothing.in(), y.in(),
                    nothing.in(), grid.rows.in());
  CHECK(f == Matrix<double>(3, 3).fill([](Index, Index) { return 5; }));  // 1 + (3 - 1) / 0.5
}

TEST_CASE("no sides, no change") {
  const Axis axis{3, 1.0, Condition::dirichlet, Condition::neumann, Centering::node};
  const LiftCase c{Grid(plain(axis), {axis, axis, 0.0}), false};
  Matrix<double> f = Matrix<double>(3, 9).fill_random(1);
  const Matrix<double> before = f, nothing = none();
  cpu::lift<double>(c.slab(0, 3), f.inout(), nothing.in(), nothing.in(), nothing.in(), c.grid.rows.in());
  CHECK(f == before);
}
#ifdef ASTERISM_WITH_CUDA

TEST_CASE_TEMPLATE("gpu: lifted values", T, float, double) {
  Runtime runtime;
  for_gpu_grids([&](const Grid& grid) {
    const LiftCase c{grid, true};
    const Matrix<T> f = Matrix<T>(grid.m(), grid.plane()).fill_random(1);
    const Matrix<double> x = c.x_sides(), y = c.y_sides(), z = c.z_sides();
    const bool solid = y.cols() > 1;
    for (const auto& [first, planes] : gpu_slabs(grid)) {
      const LiftedSlab slab = c.slab(first, planes);
      const Matrix<double> x_part = planes_of(x, first, planes),
                           y_part = solid ? planes_of(y, first, planes) : y,
                           axis_part = planes_of(grid.rows, first, planes);
      Matrix<T> expected = planes_of(f, first, planes);
      const Tile<T> f_tile = upload(runtime, expected);
      const Tile<double> x_tile = upload(runtime, x_part), y_tile = upload(runtime, y_part),
                         z_tile = upload(runtime, z), axis = upload(runtime, axis_part);
      grid::codelets::lift<T>(slab, {.f = f_tile, .x_sides = x_tile, .y_sides = y_tile, .z_sides = z_tile, .axis = axis}, on_gpu);
      runtime.wait();
      cpu::lift<T>(slab, expected.inout(), x_part.in(), y_part.in(), z.in(), axis_part.in());
      const auto [worst, largest] = compare(download(f_tile), expected);
      CHECK(worst <= 2.0 * std::numeric_limits<T>::epsilon() * largest);
    }
  });
}

#endif
