// The Poisson solver by dense transforms: its kernels against definitions, its solutions against the solver
// by fast ones.

#include "algorithms/poisson/gemm_solver.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "../support/matrix.hpp"
#include "../support/tiles.hpp"
#include "../support/worst.hpp"
#include "poisson_solves.hpp"

using namespace asterism;
using namespace asterism::test;
using grid::Model;
using poisson::Centering;
using poisson::Condition;
using poisson::Ends;
using poisson::Problem;
using poisson::Product;
using poisson::Result;
using transforms::Transform;

namespace {

constexpr Transform kinds[] = {Transform::dst1, Transform::dst2, Transform::dst3, Transform::dst4,
                               Transform::dct1, Transform::dct2, Transform::dct3, Transform::dct4,
                               Transform::dft,  Transform::idft};

/// cos(pi a / b) and sin(pi a / b) in long double.
long double cosine(Index a, Index b) {
  return std::cos(std::numbers::pi_v<long double> * static_cast<long double>(a % (2 * b)) /
                  static_cast<long double>(b));
}
long double sine(Index a, Index b) {
  return std::sin(std::numbers::pi_v<long double> * static_cast<long double>(a % (2 * b)) /
                  static_cast<long double>(b));
}

/// What x_j adds to Y_k, read off (T1).
long double by_definition(Transform kind, Index n, Index j, Index k) {
  const long double alternating = k % 2 == 0 ? 1 : -1;
  switch (kind) {
    case Transform::dst1:
      return 2 * sine((j + 1) * (k + 1), n + 1);
    case Transform::dst2:
      return 2 * sine((2 * j + 1) * (k + 1), 2 * n);
    case Transform::dst3:
      return j < n - 1 ? 2 * sine((j + 1) * (2 * k + 1), 2 * n) : alternating;
    case Transform::dst4:
      return 2 * sine((2 * j + 1) * (2 * k + 1), 4 * n);
    case Transform::dct1:
      if (n == 1) return 1;
      return j > 0 && j < n - 1 ? 2 * cosine(j * k, n - 1) : j == 0 ? 1 : alternating;
    case Transform::dct2:
      return 2 * cosine((2 * j + 1) * k, 2 * n);
    case Transform::dct3:
      return j > 0 ? 2 * cosine(j * (2 * k + 1), 2 * n) : 1;
    case Transform::dct4:
      return 2 * cosine((2 * j + 1) * (2 * k + 1), 4 * n);
    case Transform::dft:
      return k <= n / 2 ? cosine(2 * j * k, n) : -sine(2 * j * (n - k), n);
    case Transform::idft: {  // Re(X_l exp(2 pi i k l / n)), for X_l and its conjugate X_{n-l}
      if (j == 0) return 1;
      if (2 * j == n) return alternating;
      return j < n - j ? 2 * cosine(2 * j * k, n) : -2 * sine(2 * (n - j) * k, n);
    }
  }
  return 0;
}

}  // namespace

TEST_CASE("entries of all transforms are those of their definitions, to the last digits of a double") {
  for (const Transform kind : kinds)
    for (const Index n : {1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 31, 64}) {
      Worst worst;
      for (Index j = 0; j < n; ++j)
        for (Index k = 0; k < n; ++k) {
          const long double expected = by_definition(kind, n, j, k), magnitude = std::abs(expected);
          const double entry = poisson::transform_entry(kind, n, j, k);
          if (magnitude < 1e-17)  // the zeros, which long double misses
            CHECK(entry == 0);
          else
            worst.take_in((entry - expected) / magnitude);
        }
      CAPTURE(std::string(transforms::name(kind)));
      CAPTURE(n);
      CHECK(worst.value() <= 3 * eps<double>);
    }
}

// With the argument reduced in floating point the entries in the corner would be wrong from the eleventh
// digit on.
TEST_CASE("entries of long transforms keep all digits") {
  for (const Transform kind : kinds)
    for (const Index n : {49151, 65535, 65536})
      for (Index j = n - 40; j < n; ++j)
        for (Index k = n - 40; k < n; ++k) {
          const auto error = static_cast<double>(
              std::abs(poisson::transform_entry(kind, n, j, k) - by_definition(kind, n, j, k)));
          REQUIRE(error <= 4 * eps<double>);
        }
}

TEST_CASE("entries at the exact places are exact") {
  for (const Index n : {4, 8, 20}) {
    for (Index k = 0; k < n; ++k) {
      CHECK(poisson::transform_entry(Transform::dft, n, 0, k) == (2 * k <= n ? 1 : 0));
      CHECK(poisson::transform_entry(Transform::dft, n, k, n / 2) == (k % 2 == 0 ? 1 : -1));
    }
    CHECK(poisson::transform_entry(Transform::dft, n, 1, n / 4) == 0);
    CHECK(poisson::transform_entry(Transform::dst1, n - 1, n / 2 - 1, 0) == 2);
    CHECK(poisson::transform_entry(Transform::dst1, n - 1, n / 2 - 1, 1) == 0);
  }
}

namespace {

template <class T>
Matrix<T> part_of(Transform kind, Index n, Index first_row, Index first_column, Index rows, Index cols) {
  Matrix<T> matrix(rows, cols);
  poisson::cpu::transform_matrix<T>({kind, n, first_row, first_column}, matrix.out());
  CHECK(matrix.guarded());
  return matrix;
}

template <class T>
long double product_at(const Matrix<T>& a, Index i, const Matrix<T>& b, Index j) {
  long double sum = 0;
  for (Index k = 0; k < b.rows(); ++k) sum += static_cast<long double>(a(i, k)) * b(k, j);
  return sum;
}

/// The largest error of C = from ... A B (+ before) over what the rounding of K products may add up to: K eps
/// sum |a| |b|.
template <class T>
double product_error(const Product& p, const Matrix<T>& a, const Matrix<T>& b, const Matrix<T>& before,
                     const Matrix<T>& c) {
  Worst worst;
  for (Index i = 0; i < c.rows(); ++i)
    for (Index j = 0; j < c.cols(); ++j) {
      if (i < p.to || i >= p.to + p.rows) {  // whatever it was
        const bool same = c(i, j) == before(i, j) || (std::isnan(c(i, j)) && std::isnan(before(i, j)));
        if (!same) return std::numeric_limits<double>::infinity();
        continue;
      }
      const Index row = p.from + i - p.to;
      long double expected = product_at(a, row, b, j), magnitude = 0;
      for (Index k = 0; k < b.rows(); ++k)
        magnitude += std::abs(static_cast<long double>(a(row, k)) * b(k, j));
      if (p.result == Result::adds) {
        expected += before(i, j);
        magnitude += std::abs(before(i, j));
      }
      worst.take_in((c(i, j) - expected) / (static_cast<long double>(b.rows() + 1) * magnitude));
    }
  return static_cast<double>(worst.value()) / eps<T>;
}

struct Sizes {
  Index rows, inner, cols;
};
constexpr Sizes product_sizes[] = {{1, 1, 1},   {2, 3, 1},    {1, 5, 7},    {7, 1, 3},     {13, 11, 17},
                                   {16, 32, 8}, {37, 41, 43}, {64, 63, 65}, {5, 300, 129}, {130, 257, 2}};

}  // namespace

TEST_CASE_TEMPLATE("parts of transforms' matrices", T, float, double) {
  for (const Transform kind : kinds) {
    const Matrix<T> part = part_of<T>(kind, 11, 3, 5, 7, 4);
    for (Index i = 0; i < 7; ++i)
      for (Index j = 0; j < 4; ++j)
        CHECK(part(i, j) == static_cast<T>(poisson::transform_entry(kind, 11, 3 + i, 5 + j)));
  }
}

TEST_CASE_TEMPLATE("products of dense matrices: strided, of some rows, replacing and adding", T, float,
                   double) {
  for (const auto& [rows, inner, cols] : product_sizes)
    for (const Result result : {Result::replaces, Result::adds}) {
      CAPTURE(rows);
      CAPTURE(inner);
      CAPTURE(cols);
      const Matrix<T> a = Matrix<T>(rows + 5, inner).fill_random(1),
                      b = Matrix<T>(inner, cols, 2).fill_random(2);
      const Matrix<T> a_before = a, b_before = b;
      Matrix<T> c(rows + 3, cols, 4);
      if (result == Result::adds) c.fill_random(3);
      const Matrix<T> before = c;
      const Product product{rows, 4, 2, result};
      poisson::cpu::multiply<T>(product, a.in(), b.in(), c.inout());
      CHECK(product_error(product, a, b, before, c) <= 1);
      CHECK(c.guarded());
      CHECK(a == a_before);
      CHECK(b == b_before);
    }
}

TEST_CASE_TEMPLATE("the matrices are those of the fast transforms", T, float, double) {
  for (const Transform kind : kinds)
    for (const Index n : {1, 2, 3, 5, 8, 31, 60}) {
      if (kind == Transform::dct1 && n == 1) continue;
      const Matrix<T> x = Matrix<T>(3, n).fill_random(5);
      Matrix<T> fast = x, dense(3, n);
      const transforms::Lines<T> lines{&fast(0, 0), 3, n + 3, n, 1, 1};
      transforms::cpu::plan_transform(kind, lines);
      transforms::cpu::transform(kind, lines);
      poisson::cpu::multiply<T>({3}, x.in(), part_of<T>(kind, n, 0, 0, n, n).in(), dense.inout());
      double error = 0, norm = 0;
      for (Index i = 0; i < 3; ++i)
        for (Index k = 0; k < n; ++k) {
          error += std::pow(static_cast<double>(dense(i, k)) - static_cast<double>(fast(i, k)), 2);
          norm += std::pow(static_cast<double>(fast(i, k)), 2);
        }
      CAPTURE(std::string(transforms::name(kind)));
      CAPTURE(n);
      CHECK(std::sqrt(error / norm) <= (4 + 2 * std::sqrt(static_cast<double>(n))) * eps<T>);
    }
}

TEST_CASE_TEMPLATE("there and back in blocks is the round trip's factor", T, float, double) {
  for (const Transform kind : kinds)
    for (const Index n : {1, 2, 3, 7, 16, 45}) {
      const Index blocks = std::min<Index>(n, 4);
      Matrix<T> sum(n, n);
      for (Index p = 0; p < blocks; ++p) {
        const Index first = n * p / blocks, modes = n * (p + 1) / blocks - first;
        poisson::cpu::multiply<T>(
            {n, 0, 0, p == 0 ? Result::replaces : Result::adds}, part_of<T>(kind, n, 0, first, n, modes).in(),
            part_of<T>(transforms::inverse(kind), n, first, 0, modes, n).in(), sum.inout());
      }
      const double factor = transforms::round_trip(kind, n);
      Worst worst;
      for (Index i = 0; i < n; ++i)
        for (Index j = 0; j < n; ++j)
          worst.take_in(static_cast<double>(sum(i, j)) / factor - (i == j ? 1 : 0));
      CAPTURE(std::string(transforms::name(kind)));
      CAPTURE(n);
      CHECK(worst.value() <= (2 + std::sqrt(static_cast<double>(n))) * eps<T>);
    }
}

TEST_CASE_TEMPLATE("rows and first columns", T, float, double) {
  const Matrix<T> from = Matrix<T>(9, 5).fill_random(1), column = Matrix<T>(9, 1, 2).fill_random(2);
  Matrix<T> rows(4, 5, 1), whole = from;
  poisson::cpu::copy_rows<T>(3, from.in(), rows.out());
  poisson::cpu::set_first_column<T>(column.in(), whole.inout());
  for (Index i = 0; i < 9; ++i)
    for (Index j = 0; j < 5; ++j) {
      if (i < 4) CHECK(rows(i, j) == from(3 + i, j));
      CHECK(whole(i, j) == (j == 0 ? column(i, 0) : from(i, j)));
    }
  CHECK(rows.guarded());
  CHECK(whole.guarded());
}

namespace {

/// ||a - b||_2 / ||b||_2 over all ranks.
template <class T>
double distance(const Runtime& runtime, const std::vector<T>& a, const std::vector<T>& b) {
  double sums[] = {0, 0};
  for (std::size_t i = 0; i < a.size(); ++i) {
    sums[0] += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    sums[1] += std::pow(static_cast<double>(b[i]), 2);
  }
  sum_over_ranks(runtime, sums, 2);
  return std::sqrt(sums[0] / sums[1]);
}

/// Every number of V is a sum of n products, rounded n times. The roundings add up to at most n eps sum |f
/// t|, and, as they are independent, to about sqrt(n) eps |f| |t|; the same on the way back. A relative error
/// r of the modes of f is a residual of r ||f||, one of u a residual of r ||A|| ||u||: both are r of the
/// scaled residual. What else there is (entries, tridiagonal systems, the rounded u) adds a few eps whatever
/// the size.
template <class T>
double residual_bound(Index n) {
  return (1.5 + 0.25 * std::sqrt(static_cast<double>(n))) * eps<T>;
}

/// Such an error r of f's modes, spread over all m n of them, is the larger in u the smaller the eigenvalue
/// of its mode: the smooth modes, 1 of sqrt(m n) of its norm each, have nearly all of it. ||f|| <= ||A||
/// ||u||.
template <class T>
double difference_bound(const Problem& problem) {
  const poisson::Grid grid = poisson::discretise(problem);
  const Index m = grid.slow.n, n = grid.a.x.n;
  const double norm = grid.operator_norm();
  std::vector<double> along_x;
  for (Index k = 0; k < n; ++k) along_x.push_back(grid::eigenvalue(grid.a.x, k));
  double smallest = norm;
  for (Index j = 0; j < m; ++j) {
    const double along_y = grid::eigenvalue(grid.slow, j);
    for (const double x : along_x) {
      const double value = std::abs(along_y + x - grid.a.lambda);
      if (value > 1e-9 * norm) smallest = std::min(smallest, value);  // the mean is found alone
    }
  }
  const double modes = std::sqrt(static_cast<double>(m) * static_cast<double>(n));
  return 4 * eps<T> + 2 * residual_bound<T>(n) * norm / (smallest * modes);
}

}  // namespace

TEST_CASE_TEMPLATE("every combination of conditions: the solution is the fast solver's", T, float, double) {
  Runtime runtime;
  for (const std::vector<Index>& shape : {std::vector<Index>{13, 9}, {8, 14}})
    for (Problem problem : all_combinations(shape))
      for (const double lambda : {0.0, -2.75}) {
        problem.lambda = lambda;
        CAPTURE(description(problem));
        const poisson::Settings settings{.slab_planes = 3};
        const auto dense = solve_model<T, poisson::GemmSolver>(runtime, problem, Model::random, settings);
        const auto fast = solve_model<T, poisson::Solver>(runtime, problem, Model::random, settings);
        CHECK(dense.check.scaled_residual <= residual_bound<T>(shape[1]));
        if (dense.check.error) CHECK(*dense.check.error < 1e3 * eps<T>);
        CHECK(distance(runtime, dense.u, fast.u) < difference_bound<T>(problem));
      }
}

TEST_CASE_TEMPLATE("scaled residual and the fast solver's solution, any extents, any slabs", T, float,
                   double) {
  Runtime runtime;
  const std::vector<Index> grids[] = {{1, 1},   {1, 2},   {2, 1},    {2, 3},     {1, 31},   {31, 1},
                                      {37, 31}, {64, 63}, {97, 101}, {101, 256}, {127, 508}};
  for (const std::vector<Index>& shape : grids)
    for (const Index slab : {Index{0}, Index{1}, (shape[0] + 1) / 2, shape[0]}) {
      if (slab == 1 && shape[0] > 40) continue;
      CAPTURE(poisson::to_string(shape));
      CAPTURE(slab);
      const Problem problem{.shape = shape};
      for (const Model model : {Model::sine, Model::random}) {
        const auto dense =
            solve_model<T, poisson::GemmSolver>(runtime, problem, model, {.slab_planes = slab});
        CHECK(dense.check.scaled_residual <= residual_bound<T>(shape[1]));
        if (slab > 0) CHECK(dense.layout.slab_planes <= slab);
        if (model == Model::sine) continue;  // zero where the only column lies on the model's zero
        const auto fast = solve_model<T, poisson::Solver>(runtime, problem, model,
                                                          {.slab_planes = dense.layout.slab_planes});
        CHECK(distance(runtime, dense.u, fast.u) < difference_bound<T>(problem));
      }
    }
}

TEST_CASE_TEMPLATE("stretched slowest axis, with given values at all ends", T, float, double) {
  Runtime runtime;
  for (const Centering centering : {Centering::node, Centering::cell})
    for (const Condition lower : {Condition::dirichlet, Condition::neumann}) {
      Problem problem{.shape = {23, 17}, .centering = centering, .lambda = -1};
      problem.ends = {{{lower, 0.5}, {Condition::dirichlet, -2}},
                      {{Condition::neumann, 1}, {Condition::dirichlet, 3}}};
      const Index cells = poisson::discretise(problem).slow.cells();
      for (Index i = 0; i <= cells; ++i)
        problem.coordinates.push_back(std::pow(static_cast<double>(i) + 1, 1.5));
      const auto dense =
          solve_model<T, poisson::GemmSolver>(runtime, problem, Model::random, {.slab_planes = 5});
      const auto fast = solve_model<T, poisson::Solver>(runtime, problem, Model::random, {.slab_planes = 5});
      CHECK(dense.check.scaled_residual <= residual_bound<T>(17));
      CHECK(distance(runtime, dense.u, fast.u) < 300 * eps<T>);
    }
}

TEST_CASE("a batch is solved as its problems are one by one") {
  Runtime runtime;
  Problem problem{.shape = {14, 11}, .batch = 3};
  problem.ends = {all_ends[4], all_ends[1]};
  const auto dense =
      solve_model<double, poisson::GemmSolver>(runtime, problem, Model::random, {.slab_planes = 4});
  const auto fast = solve_model<double, poisson::Solver>(runtime, problem, Model::random, {.slab_planes = 4});
  CHECK(dense.check.scaled_residual <= residual_bound<double>(11));
  CHECK(distance(runtime, dense.u, fast.u) < difference_bound<double>(problem));
}

TEST_CASE_TEMPLATE("no end held: the mean of f must vanish, that of u does", T, float, double) {
  Runtime runtime;
  for (const Centering centering : {Centering::node, Centering::cell})
    for (const Ends& y : {all_ends[3], all_ends[4]})
      for (const Ends& x : {all_ends[3], all_ends[4]}) {
        const Problem problem{.shape = {18, 15}, .centering = centering, .ends = {y, x}, .batch = 2};
        CAPTURE(description(problem));
        const auto one = [](const auto& solver, Index c, Tile<T>& f) {
          const HostView<T> view(f, HostView<T>::Access::write);
          for (Index i = 0; i < view.rows(); ++i)
            for (Index j = 0; j < view.cols(); ++j)
              view(i, j) =
                  static_cast<T>(1 + std::sin(static_cast<double>(solver.first_plane(c) + i + 3 * j)));
        };
        CHECK_THROWS_WITH_AS((solve_from<T, poisson::GemmSolver>(runtime, problem, {.slab_planes = 4}, one)),
                             doctest::Contains("there is no solution unless it vanishes"), Error);
        const poisson::Settings settings{.slab_planes = 4, .mean = poisson::Mean::project};
        const auto dense = solve_from<T, poisson::GemmSolver>(runtime, problem, settings, one);
        const auto fast = solve_from<T>(runtime, problem, settings, one);
        CHECK(dense.check.scaled_residual <= residual_bound<T>(15));
        CHECK(distance(runtime, dense.u, fast.u) < difference_bound<T>(problem));
      }
}

TEST_CASE("tiles of another cut are refused") { check_tiles_of_another_cut<poisson::GemmSolver>(); }

TEST_CASE("one solver, many right-hand sides: linear, and zero for zero") {
  check_many_right_hand_sides<poisson::GemmSolver>({.shape = {50, 40}});
}

TEST_CASE("every worker has a block of modes, unless there are fewer modes") {
  Runtime runtime;
  const Machine machine = runtime.machine();
  const int gpus = machine.count(WorkerKind::cuda);
  double workers[] = {static_cast<double>(gpus > 0 ? gpus : machine.count(WorkerKind::cpu))};
  sum_over_ranks(runtime, workers, 1);
  for (const Index n : {1, 2, 3, 5, 64}) {
    const poisson::GemmSolver<double> solver(runtime, {.shape = {6, n}});
    CHECK(solver.block_count() == std::min(n, static_cast<Index>(workers[0])));
  }
}

TEST_CASE_TEMPLATE("what crosses between ranks: f to every rank, and the modes to those of their rows" *
                       doctest::skip(!shape_is("mpi")),
                   T, float, double) {
  Runtime runtime;
  const Index ranks = runtime.ranks(), m = 16 * ranks, n = 12 * ranks;  // one worker each
  const auto bytes = [&](Index batch, Index slab, bool floats) {
    Problem problem{.shape = {m, n}, .batch = batch};
    if (floats) problem.ends = {all_ends[4], all_ends[3]};
    const auto solved =
        solve_model<T, poisson::GemmSolver>(runtime, problem, Model::random, {.slab_planes = slab});
    return solved.report.traffic.between_ranks;
  };
  for (const Index slab : {Index{16}, Index{8}, Index{2}})
    for (const bool floats : {false, true})
      for (const Index batch : {Index{1}, ranks}) {
        const Index unknowns = batch * m * n;
        const Index expected = (ranks - 1) * unknowns / ranks + (ranks - 1) * unknowns / (ranks * ranks);
        CHECK(bytes(batch, slab, floats) == static_cast<std::int64_t>(sizeof(T)) * expected);
      }
}

TEST_CASE("not a number in f is a result, not a crash") {
  Runtime runtime;
  poisson::GemmSolver<double> solver(runtime, {.shape = {20, 20}}, {.slab_planes = 4});
  std::vector<double> u(static_cast<std::size_t>(solver.plane_count() * 20),
                        std::numeric_limits<double>::quiet_NaN());
  Tiles<double> slabs = solver.borrow(u.data());
  solver.solve(slabs);
  const auto fill = [&](Index c, Tile<double>& f) { solver.fill(c, f, {Model::random, 1}); };
  CHECK(std::isnan(solver.check(slabs, fill).scaled_residual));
}

TEST_CASE("the scale of f is of no account") {
  check_scaling<double, poisson::GemmSolver>({-900, -600, 600, 900});
  check_scaling<float, poisson::GemmSolver>({-80, 80});
}

TEST_CASE_TEMPLATE("a solve is judged by its residual", T, float, double) {
  check_judgement<T, poisson::GemmSolver>();
}

TEST_CASE("what cannot be is said before anything runs") {
  Runtime runtime({.cpu_memory = std::size_t{64} << 20, .gpu_memory = std::size_t{64} << 20});
  const auto message = [&](const Problem& problem, const poisson::Settings& settings = {}) -> std::string {
    try {
      const poisson::GemmSolver<double> solver(runtime, problem, settings);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message({.shape = {4, 5, 6}}) ==
        "--method gemm solves in two dimensions, the grid is 4 x 5 x 6: use --method fft");
  CHECK(message({.shape = {9, 5}}, {.mode = poisson::Mode::streaming}) ==
        "--method gemm needs all of the grid at once and cannot stream it: use --method fft");
  CHECK(message({.shape = {9, 5}}, {.slab_planes = -3}) == "slabs of -3 rows: a slab needs at least 1");
  CHECK(message({.shape = {0, 5}}) == "grid is 0 x 5: every extent must be at least 1");
  CHECK(message({.shape = {3000, 3000}}).find("for 3000 x 3000 unknowns they take") != std::string::npos);
}

#ifdef ASTERISM_WITH_CUDA

TEST_CASE_TEMPLATE("gpu: parts of transforms' matrices are the CPU's", T, float, double) {
  Runtime runtime({.gpus = 1});
  for (const Transform kind : kinds)
    for (const Index n : {1, 5, 300, 1000}) {
      const Index rows = std::min<Index>(n, 257), cols = std::max<Index>(1, n / 2);
      const Tile<T> tile(runtime, rows, cols);
      poisson::codelets::transform_matrix<T>({kind, n, n - rows, n - cols}, tile, {.where = Where::cuda});
      runtime.wait();
      const Matrix<T> made = download(tile), expected = part_of<T>(kind, n, n - rows, n - cols, rows, cols);
      CAPTURE(std::string(transforms::name(kind)));
      CAPTURE(n);
      CHECK(largest_difference(made, expected) <= 4 * eps<T>);
    }
}

TEST_CASE_TEMPLATE("gpu: products of dense matrices", T, float, double) {
  Runtime runtime({.gpus = 1});
  for (const auto& [rows, inner, cols] : product_sizes)
    for (const Result result : {Result::replaces, Result::adds}) {
      CAPTURE(rows);
      CAPTURE(inner);
      CAPTURE(cols);
      const Matrix<T> a = Matrix<T>(rows + 5, inner).fill_random(1),
                      b = Matrix<T>(inner, cols).fill_random(2);
      Matrix<T> before(rows + 3, cols);  // NaN
      if (result == Result::adds) before.fill_random(3);
      const Tile<T> a_tile = upload(runtime, a), b_tile = upload(runtime, b),
                    c_tile = upload(runtime, before);
      const Product product{rows, 4, 2, result};
      poisson::codelets::multiply<T>(product, {.a = a_tile, .b = b_tile, .c = c_tile}, {.where = Where::cuda});
      const Product whole{rows + 5, 0, 0, Result::replaces};
      const Tile<T> new_tile(runtime, rows + 5, cols);
      poisson::codelets::multiply_anew<T>(whole, {.a = a_tile, .b = b_tile, .c = new_tile}, {.where = Where::cuda});
      runtime.wait();
      CHECK(product_error(product, a, b, before, download(c_tile)) <= 1);
      CHECK(product_error(whole, a, b, before, download(new_tile)) <= 1);
    }
}

TEST_CASE_TEMPLATE("gpu: rows and first columns", T, float, double) {
  Runtime runtime({.gpus = 1});
  const Matrix<T> from = Matrix<T>(900, 50).fill_random(1), column = Matrix<T>(900, 1).fill_random(2);
  const Tile<T> from_tile = upload(runtime, from), column_tile = upload(runtime, column),
                rows(runtime, 400, 50);
  poisson::codelets::copy_rows<T>(300, from_tile, rows, {.where = Where::cuda});
  poisson::codelets::set_first_column<T>({}, column_tile, from_tile, {.where = Where::cuda});
  runtime.wait();
  const Matrix<T> copied = download(rows), whole = download(from_tile);
  for (Index i = 0; i < 900; ++i)
    for (Index j = 0; j < 50; ++j) {
      if (i < 400) CHECK(copied(i, j) == from(300 + i, j));
      CHECK(whole(i, j) == (j == 0 ? column(i, 0) : from(i, j)));
    }
}

TEST_CASE_TEMPLATE("gpu: large grids, as fast transforms solve them", T, float, double) {
  Runtime runtime;
  for (const Problem& problem :
       {Problem{.shape = {2000, 1999}}, Problem{.shape = {1000, 2500}, .ends = {all_ends[4], all_ends[2]}}}) {
    const auto dense = solve_model<T, poisson::GemmSolver>(runtime, problem, Model::random);
    const auto fast = solve_model<T, poisson::Solver>(runtime, problem, Model::random);
    CHECK(dense.layout.where == Where::cuda);
    CHECK(dense.check.scaled_residual <= residual_bound<T>(problem.shape[1]));
    CHECK(distance(runtime, dense.u, fast.u) < difference_bound<T>(problem));
  }
}

#endif
