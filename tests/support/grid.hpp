/// \file
/// Grids of all conditions and centerings for tests, with their operator by definition in long double.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "codelets/grid/laplacian.hpp"
#include "matrix.hpp"
#include "worst.hpp"

namespace asterism::test {

using namespace asterism::grid;

using Real = long double;
using Reals = std::vector<Real>;
constexpr Real pi = 3.141592653589793238462643383279502884L;

/// One axis by definition, in long double: from the table of axis.hpp, or from coordinates.
struct PlainAxis {
  Axis axis;
  Reals before, after;  ///< weights of (A1)
  Reals width, position;

  /// Calls term(k, D_ik) for what stands in line i of D, some of it perhaps several times.
  template <class Term>
  void line(Index i, Term term) const {
    const auto k = static_cast<std::size_t>(i);
    const Index n = axis.n;
    term(i, -(before[k] + after[k]));
    if (i > 0 || axis.periodic()) term((i + n - 1) % n, before[k]);
    if (i + 1 < n || axis.periodic()) term((i + 1) % n, after[k]);
  }

  /// D as a matrix.
  [[nodiscard]] Matrix<Real> matrix() const {
    Matrix<Real> d = Matrix<Real>(axis.n, axis.n).fill([](Index, Index) { return 0; });
    for (Index i = 0; i < axis.n; ++i) line(i, [&](Index k, Real weight) { d(i, k) += weight; });
    return d;
  }
};

inline PlainAxis plain(const Axis& axis) {
  const auto n = static_cast<std::size_t>(axis.n);
  const bool node = axis.centering == Centering::node;
  const bool lower_neumann = axis.lower == Condition::neumann,
             upper_neumann = axis.upper == Condition::neumann;
  const Real intervals = axis.periodic() || !node ? static_cast<Real>(n)
                                                  : static_cast<Real>(n + 1) - lower_neumann - upper_neumann;
  const Real h = static_cast<Real>(axis.length) / intervals;
  PlainAxis a{axis, Reals(n, 1 / (h * h)), Reals(n, 1 / (h * h)), Reals(n, h), Reals(n)};
  const Real first = !node ? 0.5L : axis.lower == Condition::dirichlet ? 1.0L : 0.0L;
  for (std::size_t i = 0; i < n; ++i) a.position[i] = (static_cast<Real>(i) + first) * h;
  if (node) {
    if (lower_neumann) a.after[0] *= 2, a.before[0] = 0, a.width[0] /= 2;
    if (upper_neumann) a.before[n - 1] *= 2, a.after[n - 1] = 0, a.width[n - 1] /= 2;
    if (lower_neumann) a.before[0] = 0;
  } else {
    a.before[0] *= axis.lower == Condition::dirichlet ? 2 : lower_neumann ? 0 : 1;
    a.after[n - 1] *= axis.upper == Condition::dirichlet ? 2 : upper_neumann ? 0 : 1;
  }
  return a;
}

/// An axis whose nodes (or faces) lie where `where` takes those of equal spacings, fractions of the length.
template <class Where>
inline PlainAxis stretched(const Axis& axis, Where where) {
  const auto n = static_cast<std::size_t>(axis.n);
  const bool node = axis.centering == Centering::node;
  PlainAxis a{axis, Reals(n), Reals(n), Reals(n), Reals(n)};
  const Real length = axis.length, cells = static_cast<Real>(axis.cells());
  const auto at = [&](Real i) { return length * where(i / cells); };
  const std::size_t shift = node && axis.lower == Condition::dirichlet ? 1 : 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Real c = static_cast<Real>(i + shift);
    const bool first = i == 0, last = i == n - 1;
    const auto centre = [&](Real cell) { return (at(cell) + at(cell + 1)) / 2; };
    const auto distance = [&](Real from, Real to) {  // between nodes, around a periodic axis
      if (from < 0) from += cells, to += cells;
      return node ? at(to) - at(from)
                  : centre(to < cells ? to : to - cells) + (to < cells ? 0 : length) - centre(from);
    };
    Real h_before = distance(c - 1, c), h_after = distance(c, c + 1);
    if (node) {
      if (first && axis.lower == Condition::neumann) h_before = 0;
      if (last && axis.upper == Condition::neumann) h_after = 0;
      a.width[i] = (h_before + h_after) / 2;
      a.position[i] = at(c);
    } else {
      a.width[i] = at(c + 1) - at(c);
      a.position[i] = centre(c);
      if (first && !axis.periodic()) h_before = axis.lower == Condition::neumann ? 0 : a.width[i] / 2;
      if (last && !axis.periodic()) h_after = axis.upper == Condition::neumann ? 0 : a.width[i] / 2;
    }
    a.before[i] = h_before == 0 ? 0 : 1 / (h_before * a.width[i]);
    a.after[i] = h_after == 0 ? 0 : 1 / (h_after * a.width[i]);
  }
  return a;
}

inline PlainAxis stretched(const Axis& axis) {
  return stretched(axis, [](Real t) { return t + std::sin(2 * pi * t) / 10 - t * (1 - t) / 5; });
}

/// A grid, its AxisRows, and its operator by definition.
struct Grid {
  PlainAxis slow;
  Operator a;
  double unit;          ///< of the AxisRows
  Matrix<double> rows;  ///< AxisRows
  PlainAxis y, x;

  Grid(PlainAxis slow_axis, const Operator& op, double unit_of_length = 0.37)
      : slow(std::move(slow_axis)),
        a(op),
        unit(unit_of_length),
        rows(slow.axis.n, axis_columns),
        y(plain(op.y)),
        x(plain(op.x)) {
    rows.fill([&](Index i, Index column) {
      const auto k = static_cast<std::size_t>(i);
      switch (column) {
        case link_before:
          return slow.before[k] * slow.width[k] * unit;
        case link_after:
          return slow.after[k] * slow.width[k] * unit;
        case width_column:
          return slow.width[k] * unit;
        default:
          return slow.position[k];
      }
    });
  }

  [[nodiscard]] Index m() const { return slow.axis.n; }
  [[nodiscard]] Index plane() const { return a.plane(); }
  [[nodiscard]] ModelProblem problem(Model model) const { return {model, 42, slow.axis, a}; }
  [[nodiscard]] std::vector<AxisRow> axis_rows() const {
    std::vector<AxisRow> list;
    for (Index i = 0; i < m(); ++i)
      list.push_back(
          {rows(i, link_before), rows(i, link_after), rows(i, width_column), rows(i, position_column)});
    return list;
  }

  /// A u at one node; `size`, where given, becomes the sum of the magnitudes of what is added up.
  template <class T>
  Real apply(const Matrix<T>& u, Index i, Index j, Real* size = nullptr) const {
    Real sum = 0, magnitude = 0;
    const auto add = [&](Real weight, T value) {
      sum += weight * static_cast<Real>(value);
      magnitude += std::abs(weight * static_cast<Real>(value));
    };
    const Index nx = a.x.n, row = j / nx, col = j % nx;
    slow.line(i, [&](Index k, Real weight) { add(weight, u(k, j)); });
    y.line(row, [&](Index k, Real weight) { add(weight, u(i, k * nx + col)); });
    x.line(col, [&](Index k, Real weight) { add(weight, u(i, row * nx + k)); });
    add(static_cast<Real>(a.lambda), u(i, j));
    if (size != nullptr) *size = magnitude;
    return sum;
  }

  /// W of moments.
  [[nodiscard]] Real volume(Index i, Index j) const {
    const auto at = [](const PlainAxis& axis, Index k) { return axis.width[static_cast<std::size_t>(k)]; };
    return at(slow, i) * unit * at(y, j / a.x.n) / a.y.spacing() * at(x, j % a.x.n) / a.x.spacing();
  }
};

/// All conditions and centerings, of n nodes each where they can have as few.
inline std::vector<Axis> all_axes(Index n, double length) {
  using enum Condition;
  std::vector<Axis> axes;
  for (const Centering centering : {Centering::node, Centering::cell})
    for (const auto& [lower, upper] : std::vector<std::pair<Condition, Condition>>{{dirichlet, dirichlet},
                                                                                   {dirichlet, neumann},
                                                                                   {neumann, dirichlet},
                                                                                   {neumann, neumann},
                                                                                   {periodic, periodic}}) {
      const bool two = centering == Centering::node && lower == neumann && upper == neumann;
      axes.push_back({two ? std::max(n, Index{2}) : n, length, lower, upper, centering});
    }
  return axes;
}

/// Calls check(grid) for grids of all combinations of conditions, in two and three dimensions, of few nodes
/// each.
template <class Check>
void for_all_grids(Check check) {
  const std::vector<std::array<Index, 2>> flat = {{1, 1}, {1, 2}, {2, 1}, {2, 2}, {3, 5}, {5, 18}, {6, 3}};
  for (const auto& [m, nx] : flat)
    for (const Axis& slow : all_axes(m, 1.25))
      for (const Axis& x : all_axes(nx, 0.75)) {
        check(Grid(plain(slow), {no_axis, x, nx == 2 ? 0.0 : -1.5}));
        check(Grid(stretched(slow), {no_axis, x, 0.5}));
      }
  const std::vector<std::array<Index, 3>> solid = {{1, 2, 1}, {2, 1, 2}, {4, 3, 5}};
  for (const auto& [m, ny, nx] : solid)
    for (const Axis& slow : all_axes(m, 1.25))
      for (const Axis& y : all_axes(ny, 2.0))
        for (const Axis& x : all_axes(nx, 0.75)) check(Grid(stretched(slow), {y, x, m == 2 ? 0.0 : -1.5}));
}

/// A few grids, large enough for the kernels' inner loops.
inline std::vector<Grid> some_grids() {
  using enum Condition;
  const auto axis = [](Index n, Condition lower, Condition upper, Centering centering) {
    return Axis{n, 1.5, lower, upper, centering};
  };
  constexpr Centering node = Centering::node, cell = Centering::cell;
  const Axis dd = axis(1, dirichlet, dirichlet, node);
  std::vector<Grid> grids;
  grids.emplace_back(plain(dd), Operator{no_axis, dd, 0.0});
  grids.emplace_back(plain(axis(33, dirichlet, dirichlet, node)),
                     Operator{no_axis, axis(257, dirichlet, dirichlet, node), 0.0});
  grids.emplace_back(stretched(axis(70, neumann, dirichlet, node)),
                     Operator{no_axis, axis(300, periodic, periodic, node), -2.0});
  grids.emplace_back(stretched(axis(1000, periodic, periodic, cell)),
                     Operator{no_axis, axis(1, neumann, dirichlet, node), 0.0});
  grids.emplace_back(plain(axis(5, neumann, dirichlet, cell)),
                     Operator{no_axis, axis(1031, neumann, neumann, node), 0.0});
  grids.emplace_back(stretched(axis(37, dirichlet, neumann, cell)),
                     Operator{axis(9, neumann, dirichlet, cell), axis(70, dirichlet, neumann, node), -1.0});
  grids.emplace_back(plain(axis(3, neumann, neumann, node)),
                     Operator{axis(66, periodic, periodic, cell), axis(131, neumann, neumann, cell), 0.5});
  grids.emplace_back(stretched(axis(65, periodic, periodic, node)),
                     Operator{axis(2, neumann, neumann, node), axis(3, dirichlet, dirichlet, cell), 0.0});
  return grids;
}

inline std::vector<Index> slab_heights(const Grid& grid) {
  std::vector<Index> heights{grid.m()};
  for (const Index height : {Index{1}, Index{2}})
    if (height < grid.m()) heights.push_back(height);
  return heights;
}

/// Calls submit(first, planes) for the slabs of a grid.
template <class Submit>
void for_slabs(const Grid& grid, Index height, Submit submit) {
  for (Index i = 0; i < grid.m(); i += height) submit(i, std::min(height, grid.m() - i));
}

template <class T>
Matrix<T> planes_of(const Matrix<T>& whole, Index first, Index planes) {
  return Matrix<T>(planes, whole.cols()).fill([&](Index i, Index j) { return whole(first + i, j); });
}

/// The slabs of a grid that GPU cases look at: all of it, one with a neighbour on either side, its first
/// plane.
inline std::vector<std::pair<Index, Index>> gpu_slabs(const Grid& grid) {
  std::vector<std::pair<Index, Index>> slabs{{0, grid.m()}, {0, 1}};
  if (grid.m() > 2) slabs.push_back({grid.m() / 3, grid.m() - grid.m() / 3 - 1});
  return slabs;
}

/// Large grids and small ones of all conditions.
template <class Check>
void for_gpu_grids(Check check) {
  for (const Grid& grid : some_grids()) check(grid);
  // More patches than blocks that sum.
  const Axis tall{33'000, 2.0, Condition::periodic, Condition::periodic, Centering::node};
  check(Grid(stretched(tall),
             {no_axis, {1, 1.0, Condition::neumann, Condition::dirichlet, Centering::cell}, 0.0}));
  for (const Axis& slow : all_axes(3, 1.25))
    for (const Axis& x : all_axes(4, 0.75)) check(Grid(stretched(slow), {no_axis, x, 0.5}));
  for (const Axis& y : all_axes(5, 1.25))
    for (const Axis& x : all_axes(3, 0.75)) check(Grid(stretched(y), {y, x, -1.5}));
}

/// The largest difference and the largest value.
template <class T>
std::pair<double, double> compare(const Matrix<T>& made, const Matrix<T>& expected) {
  Worst worst, largest;
  for (Index i = 0; i < made.rows(); ++i)
    for (Index j = 0; j < made.cols(); ++j) {
      const auto value = static_cast<double>(expected(i, j));
      worst.take_in(static_cast<double>(made(i, j)) - value);
      largest.take_in(value);
    }
  return {static_cast<double>(worst.value()), static_cast<double>(largest.value())};
}

}  // namespace asterism::test
