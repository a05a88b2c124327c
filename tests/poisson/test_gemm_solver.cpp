// The Poisson solver by dense transforms: its solutions against those of the solver by fast ones.

#include "algorithms/poisson/gemm_solver.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "poisson_solves.hpp"
#include "runtime/collectives.hpp"

using namespace asterism;
using namespace asterism::test;
using grid::Model;
using poisson::Centering;
using poisson::Condition;
using poisson::Ends;
using poisson::Problem;

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
        if (left_out_when_sanitized(lambda == 0 && shape[0] == 8)) continue;
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
