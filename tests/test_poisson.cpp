#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "algorithms/poisson.hpp"

using namespace asterism;
using kernels::Model;
using kernels::ModelProblem;

namespace {

constexpr double pi = std::numbers::pi;

template <class T>
constexpr double eps = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53;

bool shape_is(const std::string& name) {
  const char* shape = std::getenv("ASTERISM_SHAPE");
  return shape != nullptr && name == shape;
}

ModelProblem model_on(const poisson::Grid& grid, Model model) {
  const double corner = model == Model::sine ? -1 : 0;
  return {model, 7, grid.rows, grid.cols, corner, corner, grid.hx(), grid.hy()};
}

poisson::Grid grid_of(Index rows, Index cols, Model model) {
  const double length = model == Model::sine ? 2 : 1;
  return {rows, cols, length, length};
}

template <class T>
typename poisson::Solver<T>::Source made_from(const ModelProblem& problem) {
  return [problem](Index first_row, Tile<T>& f) { codelets::model_rhs<T>({problem, first_row}, f); };
}

/// What a solve leaves: u of this rank's rows (all of them on one rank) and how good it is.
template <class T>
struct Solved {
  poisson::Check check;
  Report report;
  poisson::Layout layout;
  Index first_row = 0;
  std::vector<T> u;
};

/// Solves a model, in memory that the runtime owns, as with a disk, or else in the caller's.
template <class T>
Solved<T> solve_model(Runtime& runtime, const poisson::Grid& grid, Model model, const poisson::Settings& settings) {
  const ModelProblem problem = model_on(grid, model);
  poisson::Solver<T> solver(runtime, grid, settings);
  Solved<T> result;
  result.layout = solver.layout();
  result.first_row = solver.first_row();
  result.u.assign(static_cast<std::size_t>(solver.row_count() * grid.cols), std::numeric_limits<T>::quiet_NaN());
  {
    Tiles<T> slabs = shape_is("disk") ? solver.own() : solver.borrow(result.u.data());
    for (Index c = 0; c < slabs.count(); ++c)
      if (slabs[c].owner() == runtime.rank()) made_from<T>(problem)(c * solver.layout().slab_rows, slabs[c]);
    result.report = solver.solve(slabs);
    result.check = solver.check(slabs, made_from<T>(problem), &problem);
    if (shape_is("disk"))
      for (Index c = 0; c < slabs.count(); ++c) {
        const HostView<T> view(slabs[c], HostView<T>::Access::read);
        for (Index i = 0; i < view.rows(); ++i)
          std::copy_n(view.row(i), grid.cols,
                      result.u.data() + (c * solver.layout().slab_rows + i) * grid.cols);
      }
  }
  return result;
}

/// The slow, obvious twin: sums of sines by their definition, one tridiagonal system after the other, in long double.
std::vector<double> solve_slowly(const poisson::Grid& grid, const std::vector<double>& f) {
  using Long = long double;
  const Index m = grid.rows, n = grid.cols;
  const auto at = [n](Index i, Index j) { return static_cast<std::size_t>(i * n + j); };
  const auto sine = [n](Index j, Index k) {
    return std::sin(std::numbers::pi_v<Long> * static_cast<Long>((j + 1) * (k + 1) % (2 * (n + 1))) /
                    static_cast<Long>(n + 1));
  };
  std::vector<Long> modes(f.size());
  for (Index i = 0; i < m; ++i)
    for (Index k = 0; k < n; ++k)
      for (Index j = 0; j < n; ++j) modes[at(i, k)] += 2 / static_cast<Long>(n + 1) * sine(j, k) * f[at(i, j)];
  const Long hx = grid.hx(), hy = grid.hy();
  for (Index k = 0; k < n; ++k) {
    const Long s = std::sin(std::numbers::pi_v<Long> * static_cast<Long>(k + 1) / (2 * static_cast<Long>(n + 1)));
    const Long d = 2 + 4 * hy * hy / (hx * hx) * s * s;
    std::vector<Long> pivot(static_cast<std::size_t>(m));
    for (Index i = 0; i < m; ++i) {  // Thomas on v[i-1] - d v[i] + v[i+1] = hy^2 f
      const Long before = i == 0 ? 0 : pivot[static_cast<std::size_t>(i - 1)];
      pivot[static_cast<std::size_t>(i)] = 1 / (-d - before);
      modes[at(i, k)] = (hy * hy * modes[at(i, k)] - (i == 0 ? 0 : modes[at(i - 1, k)])) *
                        pivot[static_cast<std::size_t>(i)];
    }
    for (Index i = m - 2; i >= 0; --i) modes[at(i, k)] -= pivot[static_cast<std::size_t>(i)] * modes[at(i + 1, k)];
  }
  std::vector<double> u(f.size());
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) {
      Long sum = 0;
      for (Index k = 0; k < n; ++k) sum += sine(j, k) * modes[at(i, k)];
      u[at(i, j)] = static_cast<double>(sum);
    }
  return u;
}

/// ||a - b||_2 / ||b||_2, where a holds rows of b from first_row on.
template <class A, class B>
double distance(const std::vector<A>& a, const std::vector<B>& b, Index first = 0) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double other = b[static_cast<std::size_t>(first) + i];
    difference += (static_cast<double>(a[i]) - other) * (static_cast<double>(a[i]) - other);
    norm += other * other;
  }
  return a.empty() ? 0 : std::sqrt(difference / norm);
}

struct Extents {
  Index rows, cols;
};

const Extents small_grids[] = {{1, 1}, {1, 2},   {2, 1},   {2, 2},   {1, 31},  {31, 1},   {3, 5},
                               {13, 7}, {37, 31}, {64, 63}, {97, 101}, {101, 256}, {127, 508}};

}  // namespace

TEST_CASE_TEMPLATE("scaled residual of both models, any extents, any slabs, both modes", T, float, double) {
  Runtime runtime;
  for (const auto& [rows, cols] : small_grids)
    for (const Model model : {Model::sine, Model::random})
      for (const poisson::Mode mode : {poisson::Mode::incore, poisson::Mode::streaming})
        for (const Index slab : {Index{0}, Index{1}, (rows + 1) / 2, Index{32}, rows}) {
          CAPTURE(rows);
          CAPTURE(cols);
          CAPTURE(slab);
          const Solved<T> solved =
              solve_model<T>(runtime, grid_of(rows, cols, model), model, {.mode = mode, .slab_rows = slab});
          CHECK(solved.check.scaled_residual <= 2 * eps<T>);
          // An odd number of columns has a node on a zero of the model: with one column u is zero everywhere.
          if (model == Model::random) CHECK(solved.check.error.value() < 1e4 * eps<T>);
          if (slab > 0) CHECK(solved.layout.slab_rows <= slab);
        }
}

TEST_CASE_TEMPLATE("the solution is the slow twin's", T, float, double) {
  Runtime runtime;
  for (const auto& [rows, cols] : {Extents{1, 1}, Extents{1, 9}, Extents{9, 1}, Extents{17, 12}, Extents{40, 33}}) {
    const poisson::Grid grid{rows, cols, 0.5, 3};
    const ModelProblem problem = model_on(grid, Model::random);
    std::vector<double> f(static_cast<std::size_t>(rows * cols));
    kernels::cpu::model_rhs<double>(problem, 0, {f.data(), rows, cols, cols});
    const std::vector<double> expected = solve_slowly(grid, f);
    for (const Index slab : {Index{1}, Index{7}, rows}) {
      const Solved<T> solved = solve_model<T>(runtime, grid, Model::random, {.slab_rows = slab});
      CHECK(distance(solved.u, expected, solved.first_row * cols) < 100 * eps<T>);
    }
  }
}

TEST_CASE("second order convergence to the exact solution of the sine model") {
  Runtime runtime;
  double before = 0;
  for (const Index n : {15, 31, 63, 127, 255}) {
    const Solved<double> solved = solve_model<double>(runtime, grid_of(n, n, Model::sine), Model::sine, {});
    const double error = solved.check.error.value();
    if (before > 0) CHECK(std::log2(before / error) == doctest::Approx(2).epsilon(0.02));
    before = error;
  }
}

TEST_CASE_TEMPLATE("any cut into slabs and either mode give the same solution to rounding", T, float, double) {
  Runtime runtime;
  const poisson::Grid grid{301, 255, 1, 1};
  const Solved<T> whole = solve_model<T>(runtime, grid, Model::random, {.slab_rows = 301});
  for (const poisson::Mode mode : {poisson::Mode::incore, poisson::Mode::streaming})
    for (const Index slab : {1, 2, 31, 32, 33, 64, 100, 150, 151, 300}) {
      const Solved<T> cut = solve_model<T>(runtime, grid, Model::random, {.mode = mode, .slab_rows = slab});
      CHECK(cut.layout.slabs == (301 + cut.layout.slab_rows - 1) / cut.layout.slab_rows);
      if (runtime.ranks() == 1) CHECK(distance(cut.u, whole.u) < 60 * eps<T>);
      CHECK(cut.check.scaled_residual <= 2 * eps<T>);
    }
}

TEST_CASE("ranks share the rows, and every row once") {
  Runtime runtime;
  for (const Index rows : {1, 2, 3, 4, 5, 17, 64}) {
    poisson::Solver<double> solver(runtime, {rows, 8}, {});
    double mine[] = {static_cast<double>(solver.row_count())};
    runtime.sum_over_ranks(mine, 1);
    CHECK(mine[0] == static_cast<double>(rows));
    CHECK(solver.first_row() + solver.row_count() <= rows);
  }
}

// In float32 the smooth modes of a long line have d_k = 2 + 4e-9, which float32 cannot tell from 2: a solver that
// forms d_k there returns them wrong by a factor while its residual looks perfect.
TEST_CASE("float32 keeps the smooth modes of very long lines") {
  if (shape_is("disk")) return;
  Runtime runtime;
  const poisson::Grid grid{500, 49151, 1, 1};
  const double wave = pi / (static_cast<double>(grid.cols) + 1), rise = pi / (static_cast<double>(grid.rows) + 1);
  const double eigenvalue = -4 * (std::pow(std::sin(wave / 2) / grid.hx(), 2) + std::pow(std::sin(rise / 2) / grid.hy(), 2));
  const auto exact = [&](Index i, Index j) {
    return std::sin(rise * static_cast<double>(i + 1)) * std::sin(wave * static_cast<double>(j + 1));
  };
  poisson::Solver<float> solver(runtime, grid, {});
  std::vector<float> u(static_cast<std::size_t>(solver.row_count() * grid.cols));
  for (Index i = 0; i < solver.row_count(); ++i)
    for (Index j = 0; j < grid.cols; ++j)
      u[static_cast<std::size_t>(i * grid.cols + j)] =
          static_cast<float>(eigenvalue * exact(solver.first_row() + i, j));
  {
    Tiles<float> slabs = solver.borrow(u.data());
    solver.solve(slabs);
  }
  double error = 0, norm = 0;
  for (Index i = 0; i < solver.row_count(); ++i)
    for (Index j = 0; j < grid.cols; ++j) {
      const double expected = exact(solver.first_row() + i, j);
      error += std::pow(u[static_cast<std::size_t>(i * grid.cols + j)] - expected, 2);
      norm += expected * expected;
    }
  CHECK(std::sqrt(error / norm) < 1e-6);
}

TEST_CASE("one solver, many right-hand sides: linear, and zero for zero") {
  if (shape_is("disk")) return;
  Runtime runtime;
  const poisson::Grid grid{50, 40, 2, 1};
  poisson::Solver<double> solver(runtime, grid, {.slab_rows = 7});
  const auto solve = [&](double factor) {
    std::vector<double> u(static_cast<std::size_t>(solver.row_count() * grid.cols));
    for (std::size_t i = 0; i < u.size(); ++i) u[i] = factor * std::sin(static_cast<double>(i % 97));
    Tiles<double> slabs = solver.borrow(u.data());
    const Report report = solver.solve(slabs);
    CHECK(report.reason == Reason::solved);
    CHECK(report.seconds.at("solve") > 0);
    slabs = {};
    return u;
  };
  const std::vector<double> once = solve(1), thrice = solve(3), none = solve(0);
  for (std::size_t i = 0; i < once.size(); ++i) {
    CHECK(thrice[i] == doctest::Approx(3 * once[i]).epsilon(1e-12));
    CHECK(none[i] == 0);
  }
}

TEST_CASE_TEMPLATE("stretched rectangles", T, float, double) {
  Runtime runtime;
  for (const auto& [ly, lx] : {std::pair{1e-4, 1.0}, {1.0, 1e-4}, {1e6, 1.0}, {1.0, 1e6}, {3e-7, 2e-7}}) {
    const poisson::Grid grid{65, 48, ly, lx};
    const Solved<T> solved = solve_model<T>(runtime, grid, Model::random, {.slab_rows = 16});
    CHECK(solved.check.scaled_residual <= 2 * eps<T>);
  }
}

TEST_CASE("solve in the caller's own memory") {
  Runtime runtime;
  const poisson::Grid grid{33, 65};
  std::vector<double> u(33 * 65);
  if (runtime.ranks() > 1) {
    CHECK_THROWS_AS(poisson::solve(runtime, grid, u.data()), Error);
    return;
  }
  const ModelProblem problem = model_on(grid, Model::random);
  kernels::cpu::model_rhs<double>(problem, 0, {u.data(), 33, 65, 65});
  poisson::solve(runtime, grid, u.data());
  for (Index i = 0; i < 33; ++i)
    for (Index j = 0; j < 65; ++j)
      CHECK(u[static_cast<std::size_t>(i * 65 + j)] == doctest::Approx(kernels::random_solution(problem, i, j)).epsilon(1e-10));
}

TEST_CASE("not a number in f is a result, not a crash") {
  Runtime runtime;
  const poisson::Grid grid{20, 20};
  poisson::Solver<double> solver(runtime, grid, {.slab_rows = 4});
  std::vector<double> u(static_cast<std::size_t>(solver.row_count() * 20), std::numeric_limits<double>::quiet_NaN());
  Tiles<double> slabs = solver.borrow(u.data());
  solver.solve(slabs);
  const ModelProblem problem = model_on(grid, Model::random);
  CHECK(std::isnan(solver.check(slabs, made_from<double>(problem)).scaled_residual));
}

TEST_CASE("what cannot be is said before anything runs") {
  Runtime runtime;
  const auto message = [&](const poisson::Grid& grid, const poisson::Settings& settings) -> std::string {
    try {
      const poisson::Solver<double> solver(runtime, grid, settings);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message({0, 5}, {}) == "grid is 0 x 5: every extent must be at least 1");
  CHECK(message({5, -1}, {}) == "grid is 5 x -1: every extent must be at least 1");
  CHECK(message({5, 5, 0, 1}, {}) == "lengths are 0 x 1: both must be positive and finite");
  CHECK(message({5, 5, 1, std::numeric_limits<double>::infinity()}, {}) ==
        "lengths are 1 x inf: both must be positive and finite");
  CHECK(message({5, 5}, {.slab_rows = -3}) == "slabs of -3 rows: a slab needs at least 1");
}

TEST_CASE("a slab that cannot fit in the limited memory is refused") {
  if (!shape_is("disk")) return;
  Runtime runtime;
  CHECK_THROWS_WITH_AS(poisson::Solver<double>(runtime, {4000, 4000}, {.slab_rows = 2000}),
                       doctest::Contains("do not fit in"), Error);
}

TEST_CASE("a grid larger than main memory streams through it to the disk") {
  if (!shape_is("disk")) return;
  Runtime runtime;  // 48 MiB of main memory; the grid has 128
  const Solved<double> solved = solve_model<double>(runtime, grid_of(4095, 4095, Model::random), Model::random, {});
  CHECK(solved.layout.mode == poisson::Mode::streaming);
  CHECK(solved.report.traffic.to_disk > 0);
  CHECK(solved.check.scaled_residual <= 2 * eps<double>);
}

TEST_CASE_TEMPLATE("gpu: streaming through a small device memory equals in core", T, float, double) {
  const poisson::Grid grid{16000, 4095, 1, 1};
  std::vector<T> in_core, streamed;
  {
    Runtime runtime({.gpus = 1});
    in_core = solve_model<T>(runtime, grid, Model::random, {}).u;
  }
  {
    Runtime runtime({.gpus = 1, .gpu_memory = sizeof(T) * (std::size_t{32} << 20)});
    const Solved<T> solved = solve_model<T>(runtime, grid, Model::random, {.slab_rows = 512});
    CHECK(solved.layout.mode == poisson::Mode::streaming);
    CHECK(solved.check.scaled_residual <= 2 * eps<T>);
    streamed = solved.u;
  }
  CHECK(distance(streamed, in_core) < 1e3 * eps<T>);
}
