// The operator with all its conditions, model problems, residual, lifting, moments and norm, against their
// definitions in long double.

#include "codelets/laplacian.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "matrix.hpp"

#ifdef ASTERISM_WITH_CUDA
#include "tiles.hpp"
#endif

using namespace asterism;
using namespace asterism::kernels;
using namespace asterism::test;

namespace {

using Real = long double;
constexpr Real pi = 3.141592653589793238462643383279502884L;

using Sums = std::array<double, residual_sums>;
using Reals = std::vector<Real>;

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

PlainAxis plain(const Axis& axis) {
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
PlainAxis stretched(const Axis& axis, Where where) {
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

PlainAxis stretched(const Axis& axis) {
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
std::vector<Axis> all_axes(Index n, double length) {
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
std::vector<Grid> some_grids() {
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

std::vector<Index> slab_heights(const Grid& grid) {
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
Matrix<T> rhs_of(const Grid& grid, Model model, Index height) {
  Matrix<T> f(grid.m(), grid.plane());
  for_slabs(grid, height, [&](Index first, Index planes) {
    cpu::model_rhs<T>(grid.problem(model), first, grid.rows.in(first, planes), f.out(first, planes));
  });
  CHECK(f.guarded());
  return f;
}

/// The sine model's factors by their definition.
Reals plain_sines(const PlainAxis& axis) {
  Reals factors;
  for (const Real position : axis.position) {
    const Real xi = position / static_cast<Real>(axis.axis.length);
    const bool lower = axis.axis.lower == Condition::neumann, upper = axis.axis.upper == Condition::neumann;
    factors.push_back(inert(axis.axis) ? 1
                      : lower && upper ? std::cos(2 * pi * xi)
                      : lower          ? std::cos(1.5L * pi * xi)
                      : upper          ? std::sin(1.5L * pi * xi)
                                       : std::sin(2 * pi * xi));
  }
  return factors;
}

template <class T>
Matrix<T> solution_of(const Grid& grid, Model model) {
  const ModelProblem problem = grid.problem(model);
  const Reals z = plain_sines(grid.slow), y = plain_sines(grid.y), x = plain_sines(grid.x);
  return Matrix<T>(grid.m(), grid.plane()).fill([&](Index i, Index j) {
    const auto at = [](const Reals& factors, Index k) { return factors[static_cast<std::size_t>(k)]; };
    return model == Model::random ? random_solution(problem, i, j)
                                  : at(z, i) * at(y, j / grid.a.x.n) * at(x, j % grid.a.x.n);
  });
}

SlabProblem slab_of(const Grid& grid, Model model, Index first_row = 0, bool known = true) {
  return {grid.problem(model), first_row, known};
}

/// The plane of u that `residual` wants beside a slab: i = -1 ... m.
template <class T>
Matrix<T> plane_beside(const Grid& grid, const Matrix<T>& u, Index i) {
  const bool inside = i >= 0 && i < grid.m();
  const Index wrapped = (i + grid.m()) % grid.m();
  return Matrix<T>(1, u.cols()).fill([&](Index, Index j) {
    return inside || grid.slow.axis.periodic() ? u(wrapped, j) : T{0};
  });
}

/// The sums over the planes of a slab.
template <class T>
Sums residual_of(const Grid& grid, const SlabProblem& slab, const Matrix<T>& u, const Matrix<T>& f,
                 Index planes) {
  const Index first = slab.first_row;
  const Matrix<T> before = plane_beside(grid, u, first - 1), after = plane_beside(grid, u, first + planes);
  Matrix<double> sums(1, residual_sums);
  cpu::residual<T>(slab, u.in(first, planes), before.in(), after.in(), f.in(first, planes),
                   grid.rows.in(first, planes), sums.out());
  CHECK(sums.guarded());
  Sums result;
  for (Index s = 0; s < residual_sums; ++s) result[static_cast<std::size_t>(s)] = sums(0, s);
  return result;
}

/// The sums over a whole grid, node by node.
template <class T>
Sums plain_sums(const Grid& grid, Model model, const Matrix<T>& u, const Matrix<T>& f) {
  std::array<Real, residual_sums> sums{};
  const Matrix<Real> known = solution_of<Real>(grid, model);
  for (Index i = 0; i < u.rows(); ++i)
    for (Index j = 0; j < u.cols(); ++j) {
      const Real value = u(i, j), rhs = f(i, j), r = rhs - grid.apply(u, i, j), exact = known(i, j);
      sums[residual2] += r * r;
      sums[rhs2] += rhs * rhs;
      sums[solution2] += value * value;
      sums[error2] += (value - exact) * (value - exact);
      sums[known2] += exact * exact;
    }
  Sums result;
  for (std::size_t s = 0; s < result.size(); ++s) result[s] = static_cast<double>(sums[s]);
  return result;
}

/// Checks the sums of slabs of a height against those of the whole grid.
template <class T>
void check_sums(const Grid& grid, Model model, const Matrix<T>& u, const Matrix<T>& f, Index height) {
  const Sums expected = plain_sums(grid, model, u, f);
  Sums total{};
  for_slabs(grid, height, [&](Index first, Index planes) {
    const Sums part = residual_of(grid, slab_of(grid, model, first), u, f, planes);
    for (std::size_t s = 0; s < total.size(); ++s) total[s] += part[s];
  });
  for (std::size_t s = 0; s < total.size(); ++s) {
    CAPTURE(s);
    CHECK(std::abs(total[s] - expected[s]) <= 1e-12 * expected[s] + 1e-28);
  }
}

}  // namespace

TEST_CASE("sin(pi x) and cos(pi x) are exact where they can be and accurate elsewhere") {
  for (const double x : {0.0, 1.0, -1.0, 2.0, 1e9, -3.0}) {
    CHECK(sin_pi(x) == 0.0);
    CHECK(cos_pi(x + 0.5) == 0.0);
  }
  CHECK(sin_pi(0.5) == 1.0);
  CHECK(sin_pi(-0.5) == -1.0);
  CHECK(sin_pi(1.5) == -1.0);
  CHECK(cos_pi(0.0) == 1.0);
  CHECK(cos_pi(-1.0) == -1.0);
  CHECK(cos_pi(2.0) == 1.0);
  for (double x = -4.0; x < 4.0; x += 0.0137) {
    const Real sine = std::sin(pi * static_cast<Real>(x)), cosine = std::cos(pi * static_cast<Real>(x));
    CHECK(std::abs(static_cast<Real>(sin_pi(x)) - sine) <= 4e-16L * std::abs(sine) + 2e-18L);
    CHECK(std::abs(static_cast<Real>(cos_pi(x)) - cosine) <= 4e-16L * std::abs(cosine) + 2e-18L);
  }
}

TEST_CASE("the random solution is uniform, exact in float32 and different at every node") {
  const Axis axis{100, 1.0, Condition::dirichlet, Condition::dirichlet, Centering::node};
  ModelProblem problem{Model::random, 42, axis, {axis, axis, 0.0}};
  double sum = 0, square = 0;
  std::array<int, 16> counts{};
  std::vector<double> first_plane;
  for (Index i = 0; i < 100; ++i)
    for (Index j = 0; j < 10'000; ++j) {
      const double u = random_solution(problem, i, j);
      if (!(std::abs(u) < 1.0) || static_cast<double>(static_cast<float>(u)) != u) FAIL("bad value " << u);
      sum += u;
      square += u * u;
      ++counts[static_cast<std::size_t>((u + 1.0) * 8.0)];
    }
  CHECK(std::abs(sum / 1e6) < 4 * std::sqrt(1.0 / 3.0) / 1e3);
  CHECK(square / 1e6 == doctest::Approx(1.0 / 3.0).epsilon(5e-3));
  for (const int count : counts) CHECK(count == doctest::Approx(62'500).epsilon(0.02));

  CHECK(random_solution(problem, -1, 7) == 0.0);
  CHECK(random_solution(problem, 100, 7) == 0.0);
  ModelProblem other = problem;
  other.seed = 43;
  CHECK(random_solution(other, 3, 4) != random_solution(problem, 3, 4));
  // Nodes are told apart beyond 2^32 of them.
  CHECK(random_solution(problem, 0, 5) != random_solution(problem, 0, 5 + (Index{1} << 32)));

  problem.slow.lower = problem.slow.upper = Condition::periodic;
  CHECK(random_solution(problem, -1, 7) == random_solution(problem, 99, 7));
  CHECK(random_solution(problem, 100, 7) == random_solution(problem, 0, 7));
}

TEST_CASE("the table and coordinates say the same of equal spacings") {
  for (const Index n : {1, 2, 5})
    for (const Axis& axis : all_axes(n, 1.25)) {
      const PlainAxis table = plain(axis), coordinates = stretched(axis, [](Real t) { return t; });
      for (std::size_t i = 0; i < table.width.size(); ++i) {
        CHECK(std::abs(table.before[i] - coordinates.before[i]) <= 1e-17L * table.before[i]);
        CHECK(std::abs(table.after[i] - coordinates.after[i]) <= 1e-17L * table.after[i]);
        CHECK(std::abs(table.width[i] - coordinates.width[i]) <= 1e-18L);
        CHECK(std::abs(table.position[i] - coordinates.position[i]) <= 1e-18L);
      }
    }
}

TEST_CASE_TEMPLATE("random right-hand sides are the dense matrix times the solution, however the grid is cut",
                   T, float, double) {
  constexpr Real epsilon = std::numeric_limits<T>::epsilon();
  const auto check = [&](const Grid& grid) {
    const Matrix<double> u = solution_of<double>(grid, Model::random);
    for (const Index height : slab_heights(grid)) {
      const Matrix<T> f = rhs_of<T>(grid, Model::random, height);
      bool right = true;
      for (Index i = 0; i < f.rows(); ++i)
        for (Index j = 0; j < f.cols(); ++j) {
          Real size = 0;
          const Real exact = grid.apply(u, i, j, &size);
          right = right &&
                  std::abs(static_cast<Real>(f(i, j)) - exact) <= epsilon * std::abs(exact) + 2e-15L * size;
        }
      CHECK(right);
    }
  };
  for_all_grids(check);
}

TEST_CASE_TEMPLATE("sine right-hand sides are the differential operator's, however the grid is cut", T, float,
                   double) {
  constexpr Real epsilon = std::numeric_limits<T>::epsilon();
  const auto check = [&](const Grid& grid) {
    const Matrix<Real> u = solution_of<Real>(grid, Model::sine);
    const auto kappa = [](const Axis& axis) {
      return inert(axis) ? 0.0L
                         : (axis.lower == axis.upper ? 2.0L : 1.5L) * pi / static_cast<Real>(axis.length);
    };
    const Real kappa_z = kappa(grid.slow.axis), kappa_y = kappa(grid.a.y), kappa_x = kappa(grid.a.x);
    const Real scale =
        static_cast<Real>(grid.a.lambda) - kappa_z * kappa_z - kappa_y * kappa_y - kappa_x * kappa_x;
    for (const Index height : slab_heights(grid)) {
      const Matrix<T> f = rhs_of<T>(grid, Model::sine, height);
      bool right = true;
      for (Index i = 0; i < f.rows(); ++i)
        for (Index j = 0; j < f.cols(); ++j) {
          const Real exact = scale * u(i, j);
          right = right && std::abs(static_cast<Real>(f(i, j)) - exact) <=
                               epsilon * std::abs(exact) + 3e-15L * std::abs(scale);
        }
      CHECK(right);
    }
  };
  for_all_grids(check);
}

TEST_CASE_TEMPLATE("sums agree with those taken node by node, and slabs add up to the whole", T, float,
                   double) {
  const auto check = [](const Grid& grid, Model model) {
    const Matrix<T> u = Matrix<T>(grid.m(), grid.plane()).fill_random(1), u_before = u;
    const Matrix<T> f = Matrix<T>(grid.m(), grid.plane()).fill_random(2), f_before = f;
    for (const Index height : slab_heights(grid)) check_sums(grid, model, u, f, height);
    CHECK(u == u_before);
    CHECK(f == f_before);
  };
  for_all_grids([&](const Grid& grid) { check(grid, grid.m() % 2 == 0 ? Model::random : Model::sine); });
  const Axis x{97, 1.0, Condition::neumann, Condition::neumann, Centering::node};
  const Axis y{6, 2.0, Condition::periodic, Condition::periodic, Centering::cell};
  const Axis slow{4, 3.0, Condition::dirichlet, Condition::neumann, Centering::cell};
  for (const Model model : {Model::sine, Model::random}) check(Grid(stretched(slow), {y, x, -0.25}), model);
}

TEST_CASE("sums by hand") {
  // One node between Dirichlet ends at distance 1 along z and x, u = 2, f = 1: A u = -2 u - 2 u = -8.
  const Axis one{1, 2.0, Condition::dirichlet, Condition::dirichlet, Centering::node};
  const Matrix<double> u = Matrix<double>(1, 1).fill([](Index, Index) { return 2; }),
                       f = Matrix<double>(1, 1).fill([](Index, Index) { return 1; });
  const Grid node(plain(one), {no_axis, one, 0.0}), shifted(plain(one), {no_axis, one, 3.0});
  CHECK(residual_of(node, slab_of(node, Model::sine, 0, false), u, f, 1) == Sums{81.0, 1.0, 4.0, 0.0, 0.0});
  CHECK(residual_of(shifted, slab_of(shifted, Model::sine, 0, false), u, f, 1) ==
        Sums{9.0, 1.0, 4.0, 0.0, 0.0});

  // Half a unit from the ends instead: A u = -4 u - 4 u in two dimensions, -12 u in three.
  const Axis cell{1, 1.0, Condition::dirichlet, Condition::dirichlet, Centering::cell};
  const Grid flat(plain(cell), {no_axis, cell, 0.0}, 0.5), solid(plain(cell), {cell, cell, 0.0}, 0.5);
  CHECK(residual_of(flat, slab_of(flat, Model::sine, 0, false), u, f, 1) == Sums{289.0, 1.0, 4.0, 0.0, 0.0});
  CHECK(residual_of(solid, slab_of(solid, Model::sine, 0, false), u, f, 1) ==
        Sums{625.0, 1.0, 4.0, 0.0, 0.0});

  // u = 1 everywhere, f = 0: A u is minus the number of Dirichlet ends beside a node.
  const auto uniform = [](Index m, Index nx) {
    const auto axis = [](Index n) {
      return Axis{n, static_cast<double>(n + 1), Condition::dirichlet, Condition::dirichlet, Centering::node};
    };
    const Grid grid(plain(axis(m)), {no_axis, axis(nx), 0.0}, 1.0);
    const Matrix<double> ones = Matrix<double>(m, nx).fill([](Index, Index) { return 1; }),
                         zeros = Matrix<double>(m, nx).fill([](Index, Index) { return 0; });
    return residual_of(grid, slab_of(grid, Model::sine, 0, false), ones, zeros, m);
  };
  CHECK(uniform(1, 5) == Sums{2 * 9.0 + 3 * 4.0, 0.0, 5.0, 0.0, 0.0});
  CHECK(uniform(5, 1) == Sums{2 * 9.0 + 3 * 4.0, 0.0, 5.0, 0.0, 0.0});
  CHECK(uniform(3, 3) == Sums{4 * 4.0 + 4 * 1.0, 0.0, 9.0, 0.0, 0.0});
}

TEST_CASE_TEMPLATE("the known solution solves its problem", T, float, double) {
  const double epsilon = std::numeric_limits<T>::epsilon();
  for (const Grid& grid : some_grids()) {
    const Matrix<T> u = solution_of<T>(grid, Model::random), f = rhs_of<T>(grid, Model::random, grid.m());
    const Sums sums = residual_of(grid, slab_of(grid, Model::random), u, f, grid.m());
    CHECK(sums[residual2] <= epsilon * epsilon * sums[rhs2]);
    CHECK(sums[error2] == 0.0);
    CHECK(sums[known2] == sums[solution2]);
  }
  // Differences are of second order: the residual of the sine model's exact solution is (kappa h)^2 / 12 of
  // f.
  const Axis axis{127, 2.0, Condition::dirichlet, Condition::dirichlet, Centering::node};
  const Grid grid(plain(axis), {no_axis, axis, 0.0});
  const Matrix<T> u = solution_of<T>(grid, Model::sine);
  const Sums sums = residual_of(grid, slab_of(grid, Model::sine), u, rhs_of<T>(grid, Model::sine, 127), 127);
  CHECK(std::sqrt(sums[residual2] / sums[rhs2]) ==
        doctest::Approx(static_cast<double>(pi * pi) / (12 * 64 * 64)).epsilon(5e-3));
  CHECK(sums[error2] <= epsilon * epsilon * sums[known2]);
}

TEST_CASE(
    "the sine model's solution satisfies the difference equation to second order, whatever the conditions") {
  // The largest residual away from the ends, over the largest f.
  const auto residual_at = [](const Axis& slow, const Axis& y, const Axis& x, bool stretch) {
    const Grid grid(stretch ? stretched(slow) : plain(slow), {y, x, -1.0});
    const Matrix<double> u = solution_of<double>(grid, Model::sine), f = rhs_of<double>(grid, Model::sine, 3);
    Real worst = 0, largest = 0;
    const auto inside = [](const Axis& axis, Index i) { return axis.n == 1 || (i > 0 && i < axis.n - 1); };
    for (Index i = 0; i < grid.m(); ++i)
      for (Index j = 0; j < grid.plane(); ++j) {
        largest = std::max(largest, std::abs(static_cast<Real>(f(i, j))));
        if (inside(slow, i) && inside(y, j / x.n) && inside(x, j % x.n))
          worst = std::max(worst, std::abs(static_cast<Real>(f(i, j)) - grid.apply(u, i, j)));
      }
    CHECK(residual_of(grid, slab_of(grid, Model::sine), u, f, grid.m())[error2] <= 1e-28);
    return static_cast<double>(worst / largest);
  };
  // Axes of 16 or so and twice as many cells.
  const auto refined = [](Axis axis) {
    axis.n += axis.cells();
    return axis;
  };
  const Axis y{6, 1.5, Condition::neumann, Condition::dirichlet, Centering::cell};
  for (const Axis& slow : all_axes(16, 1.0))
    for (const Axis& x : all_axes(16, 1.5)) {
      const double ratio =
          residual_at(slow, no_axis, x, false) / residual_at(refined(slow), no_axis, refined(x), false);
      CHECK(ratio > 3.5);
      CHECK(ratio < 4.5);
    }
  for (const Axis& axis : all_axes(12, 1.0)) {
    const double ratio =
        residual_at(axis, y, axis, false) / residual_at(refined(axis), refined(y), refined(axis), false);
    CHECK(ratio > 3.2);
    CHECK(ratio < 4.8);
  }
  // Nodes of a smooth map are equally spaced to second order, so that order stays.
  const Axis slow{63, 1.0, Condition::dirichlet, Condition::neumann, Centering::node};
  const double ratio = residual_at(slow, no_axis, refined(y), true) /
                       residual_at(refined(slow), no_axis, refined(refined(y)), true);
  CHECK(ratio > 3.5);
  CHECK(ratio < 4.5);
}

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
  Polynomial z, y, x;

  LiftCase(Grid on, bool stretch)
      : grid(std::move(on)),
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
    const Axis& axis = grid.slow.axis;
    return {grid.a, axis.lower, axis.upper, grid.unit, first == 0, first + planes == grid.m()};
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
    cpu::lift<double>({grid.a, slow.lower, slow.upper, grid.unit, true, true}, f.inout(),
                      slowest ? nothing.in() : x.in(), nothing.in(), slowest ? z.in() : nothing.in(),
                      grid.rows.in());
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
    Real worst = 0;
    for (Index i = 0; i < n; ++i) {
      auto& value = u[static_cast<std::size_t>(i)];
      if (i > 0) value -= a(i, i - 1) * u[static_cast<std::size_t>(i - 1)];
      value /= a(i, i);
      worst = std::max(worst, std::abs(value - exact(i)));
    }
    return static_cast<double>(worst);
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
    return std::pair(f.lower, f.upper);
  };
  CHECK(factors(dirichlet, dirichlet, Centering::node) == std::pair(-4.0, -4.0));
  CHECK(factors(dirichlet, dirichlet, Centering::cell) == std::pair(-8.0, -8.0));
  CHECK(factors(neumann, neumann, Centering::node) == std::pair(4.0, -4.0));
  CHECK(factors(neumann, neumann, Centering::cell) == std::pair(2.0, -2.0));
  CHECK(factors(dirichlet, neumann, Centering::node) == std::pair(-4.0, -4.0));
  CHECK(factors(neumann, dirichlet, Centering::cell) == std::pair(2.0, -8.0));
  CHECK(factors(periodic, periodic, Centering::node) == std::pair(0.0, 0.0));
}

TEST_CASE("no sides, no change") {
  const Axis axis{3, 1.0, Condition::dirichlet, Condition::neumann, Centering::node};
  const LiftCase c{Grid(plain(axis), {axis, axis, 0.0}), false};
  Matrix<double> f = Matrix<double>(3, 9).fill_random(1);
  const Matrix<double> before = f, nothing = none();
  cpu::lift<double>(c.slab(0, 3), f.inout(), nothing.in(), nothing.in(), nothing.in(), c.grid.rows.in());
  CHECK(f == before);
}

TEST_CASE("the norm is that of the dense matrix") {
  const auto check = [](Grid grid) {
    const Matrix<Real> dz = grid.slow.matrix(), dy = grid.y.matrix(), dx = grid.x.matrix();
    for (const double lambda : {0.0, -2.0, 3.0, 1e3}) {
      grid.a.lambda = lambda;
      const Index ny = grid.a.y.n, nx = grid.a.x.n;
      Real largest = 0;
      for (Index i = 0; i < grid.m(); ++i)
        for (Index y = 0; y < ny; ++y)
          for (Index x = 0; x < nx; ++x) {
            Real sum = std::abs(dz(i, i) + dy(y, y) + dx(x, x) + static_cast<Real>(lambda));
            const auto beside = [&](const Matrix<Real>& d, Index line) {
              for (Index k = 0; k < d.cols(); ++k)
                if (k != line) sum += std::abs(d(line, k));
            };
            beside(dz, i);
            beside(dy, y);
            beside(dx, x);
            largest = std::max(largest, sum);
          }
      CHECK(operator_norm(grid.a, grid.slow.axis, grid.axis_rows()) ==
            doctest::Approx(static_cast<double>(largest)).epsilon(1e-14));
    }
  };
  for_all_grids(check);
}

TEST_CASE_TEMPLATE("moments weigh with the volumes of cells, and slabs add up to the whole", T, float,
                   double) {
  const auto check = [](const Grid& grid) {
    const Matrix<T> f = Matrix<T>(grid.m(), grid.plane()).fill_random(3), f_before = f;
    Real first = 0, absolute = 0, volume = 0;
    for (Index i = 0; i < f.rows(); ++i)
      for (Index j = 0; j < f.cols(); ++j) {
        volume += grid.volume(i, j);
        first += grid.volume(i, j) * static_cast<Real>(f(i, j));
        absolute += grid.volume(i, j) * std::abs(static_cast<Real>(f(i, j)));
      }
    for (const Index height : slab_heights(grid)) {
      std::array<double, moments_count> total{};
      for_slabs(grid, height, [&](Index slab, Index planes) {
        Matrix<double> sums(1, moments_count);
        cpu::moments<T>(grid.a, f.in(slab, planes), grid.rows.in(slab, planes), sums.out());
        CHECK(sums.guarded());
        for (std::size_t s = 0; s < total.size(); ++s) total[s] += sums(0, static_cast<Index>(s));
      });
      CHECK(std::abs(static_cast<Real>(total[first_moment]) - first) <= 1e-14L * absolute);
      CHECK(std::abs(static_cast<Real>(total[absolute_moment]) - absolute) <= 1e-14L * absolute);
    }
    CHECK(std::abs(static_cast<Real>(measure(grid.a, grid.axis_rows())) - volume) <= 1e-14L * volume);
    CHECK(f == f_before);
  };
  for_all_grids(check);
  for (const Grid& grid : some_grids()) check(grid);
}

TEST_CASE("the second difference of anything has no first moment between Neumann ends") {
  using enum Condition;
  for (const Centering centering : {Centering::node, Centering::cell}) {
    const Axis axis{7, 1.0, neumann, neumann, centering}, around{5, 2.0, periodic, periodic, centering};
    for (const Grid& grid :
         {Grid(stretched(axis), {around, axis, 0.0}), Grid(stretched(around), {axis, axis, 0.0})}) {
      const Matrix<double> f = rhs_of<double>(grid, Model::random, 2);
      Matrix<double> sums(1, moments_count);
      cpu::moments<double>(grid.a, f.in(), grid.rows.in(), sums.out());
      CHECK(std::abs(sums(0, first_moment)) <= 1e-14 * sums(0, absolute_moment));
    }
  }
}

TEST_CASE_TEMPLATE("a NaN anywhere ends in the sums", T, float, double) {
  const T nan = std::numeric_limits<T>::quiet_NaN();
  for (const Grid& grid : some_grids()) {
    const Index m = grid.m(), n = grid.plane();
    for (const auto& [i, j] : std::vector<std::pair<Index, Index>>{{0, 0}, {m / 2, n - 1}, {m - 1, n / 2}}) {
      Matrix<T> u = Matrix<T>(m, n).fill_random(1), f = Matrix<T>(m, n).fill_random(2);
      const T kept = u(i, j);
      u(i, j) = nan;
      Sums sums = residual_of(grid, slab_of(grid, Model::sine), u, f, m);
      CHECK(std::isnan(sums[residual2]));
      CHECK(std::isnan(sums[solution2]));
      CHECK(std::isnan(sums[error2]));
      u(i, j) = kept;
      f(i, j) = nan;
      sums = residual_of(grid, slab_of(grid, Model::sine), u, f, m);
      CHECK(std::isnan(sums[residual2]));
      CHECK(std::isnan(sums[rhs2]));
      CHECK(!std::isnan(sums[solution2]));
      Matrix<double> two(1, moments_count);
      cpu::moments<T>(grid.a, f.in(), grid.rows.in(), two.out());
      CHECK(std::isnan(two(0, first_moment)));
      CHECK(std::isnan(two(0, absolute_moment)));
    }
  }
}

#ifdef ASTERISM_WITH_CUDA

namespace {

const Hints on_gpu{.where = Where::cuda};

template <class T>
Matrix<T> planes_of(const Matrix<T>& whole, Index first, Index planes) {
  return Matrix<T>(planes, whole.cols()).fill([&](Index i, Index j) { return whole(first + i, j); });
}

/// The slabs of a grid that GPU cases look at: all of it, one with a neighbour on either side, its first
/// plane.
std::vector<std::pair<Index, Index>> gpu_slabs(const Grid& grid) {
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
  double worst = 0, largest = 0;
  for (Index i = 0; i < made.rows(); ++i)
    for (Index j = 0; j < made.cols(); ++j) {
      const auto value = static_cast<double>(expected(i, j));
      const double error = std::abs(static_cast<double>(made(i, j)) - value);
      largest = std::max(largest, std::abs(value));
      worst = error > worst || std::isnan(error) ? error : worst;
    }
  return {worst, largest};
}

}  // namespace

TEST_CASE_TEMPLATE("gpu: right-hand sides", T, float, double) {
  Runtime runtime;
  for_gpu_grids([&](const Grid& grid) {
    for (const Model model : {Model::sine, Model::random})
      for (const auto& [first, planes] : gpu_slabs(grid)) {
        const Tile<T> f(runtime, planes, grid.plane());
        const Tile<double> axis = upload(runtime, planes_of(grid.rows, first, planes));
        codelets::model_rhs<T>({grid.problem(model), first}, axis, f, on_gpu);
        runtime.wait();
        const Matrix<T> expected = rhs_of<T>(grid, model, grid.m());
        const double worst = compare(download(f), planes_of(expected, first, planes)).first;
        // Three sines of up to 2 ulp each on the device, and their product with the eigenvalue.
        CHECK(worst <= 8.0 * std::numeric_limits<T>::epsilon() * compare(expected, expected).second);
      }
  });
}

TEST_CASE_TEMPLATE("gpu: residual sums", T, float, double) {
  Runtime runtime;
  for_gpu_grids([&](const Grid& grid) {
    const Matrix<T> u = Matrix<T>(grid.m(), grid.plane()).fill_random(1),
                    f = Matrix<T>(grid.m(), grid.plane()).fill_random(2);
    const Tile<double> work(runtime, 1, cuda::residual_scratch);
    for (const auto& [first, planes] : gpu_slabs(grid)) {
      const Tile<T> u_tile = upload(runtime, planes_of(u, first, planes)),
                    f_tile = upload(runtime, planes_of(f, first, planes)),
                    before = upload(runtime, plane_beside(grid, u, first - 1)),
                    after = upload(runtime, plane_beside(grid, u, first + planes));
      const Tile<double> axis = upload(runtime, planes_of(grid.rows, first, planes));
      for (const Model model : {Model::sine, Model::random})
        for (const bool known : {true, false}) {
          const SlabProblem slab = slab_of(grid, model, first, known);
          const Tile<double> sums(runtime, 1, residual_sums), again(runtime, 1, residual_sums);
          codelets::residual<T>(slab, u_tile, before, after, f_tile, axis, sums, work, on_gpu);
          codelets::residual<T>(slab, u_tile, before, after, f_tile, axis, again, work, on_gpu);
          runtime.wait();
          const Sums expected = residual_of(grid, slab, u, f, planes);
          const Matrix<double> made = download(sums), repeated = download(again);
          for (Index s = 0; s < residual_sums; ++s) {
            CAPTURE(s);
            const double value = expected[static_cast<std::size_t>(s)];
            CHECK(std::abs(made(0, s) - value) <= 1e-12 * value + 1e-28);
            CHECK(made(0, s) == repeated(0, s));
          }
        }
    }
  });
}

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
      codelets::lift<T>(slab, f_tile, x_tile, y_tile, z_tile, axis, on_gpu);
      runtime.wait();
      cpu::lift<T>(slab, expected.inout(), x_part.in(), y_part.in(), z.in(), axis_part.in());
      const auto [worst, largest] = compare(download(f_tile), expected);
      CHECK(worst <= 2.0 * std::numeric_limits<T>::epsilon() * largest);
    }
  });
}

TEST_CASE_TEMPLATE("gpu: moments", T, float, double) {
  Runtime runtime;
  for_gpu_grids([&](const Grid& grid) {
    const Matrix<T> f = Matrix<T>(grid.m(), grid.plane()).fill_random(3);
    const Tile<double> work(runtime, 1, cuda::moments_scratch);
    for (const auto& [first, planes] : gpu_slabs(grid)) {
      const Tile<T> f_tile = upload(runtime, planes_of(f, first, planes));
      const Tile<double> axis = upload(runtime, planes_of(grid.rows, first, planes)),
                         sums(runtime, 1, moments_count), again(runtime, 1, moments_count);
      codelets::moments<T>(grid.a, f_tile, axis, sums, work, on_gpu);
      codelets::moments<T>(grid.a, f_tile, axis, again, work, on_gpu);
      runtime.wait();
      Matrix<double> expected(1, moments_count);
      cpu::moments<T>(grid.a, f.in(first, planes), grid.rows.in(first, planes), expected.out());
      const Matrix<double> made = download(sums);
      CHECK(compare(made, expected).first <= 1e-13 * expected(0, absolute_moment));
      CHECK(made == download(again));
    }
  });
}

#endif
