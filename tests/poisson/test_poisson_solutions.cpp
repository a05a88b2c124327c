// Solutions by their residuals, by the order in which they converge, and against a slow twin's, for every combination
// of conditions and however the grid is cut.

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include "poisson_solves.hpp"

using namespace asterism;
using namespace asterism::test;
using grid::Model;
using poisson::Ends;
using poisson::Problem;
using std::numbers::pi;

TEST_CASE_TEMPLATE("every combination of conditions, centering and dimension: the residual is rounding" *
                       quick_enough(),
                   T, float, double) {
  Runtime runtime;
  int cases = 0;
  for (const std::vector<Index>& shape : {std::vector<Index>{13, 9}, {7, 6, 5}, {6, 9, 8}})
    for (Problem problem : combinations(shape))
      for (const bool special : {false, true}) {
        if (special) {  // lambda and stretching, too
          problem.lambda = -2.75;
          problem.coordinates = stretched(problem, problem.lengths[0]);
        }
        CAPTURE(description(problem));
        const bool streaming = cases++ % 2 == 0;
        const Solved<T> solved =
            solve_model<T>(runtime, problem, Model::random,
                           {.mode = streaming ? poisson::Mode::streaming : poisson::Mode::incore,
                            .slab_planes = std::vector<Index>{0, 1, 3, 4}[static_cast<std::size_t>(cases) % 4]});
        CHECK(solved.check.scaled_residual <= 2 * eps<T>);
        if (solved.check.error) CHECK(*solved.check.error < 1e4 * eps<T>);
      }
  if (!is_brief()) CHECK(cases >= 150);
}

TEST_CASE("every combination: second order convergence to the solution of the differential equation") {
  Runtime runtime;
  for (const std::size_t axes : {2, 3})
    for (const bool is_stretched : {false, true})
      for (Problem problem : combinations(std::vector<Index>(axes, 4))) {
        if (axes == 3 && (is_stretched || (letters(problem.ends).substr(2, 2) != letters(problem.ends).substr(4, 2))))
          continue;  // y and x go through the same code
        problem.lambda = letters(problem.ends).find('D') == std::string::npos ? 0 : -1.5;
        double before = 0;
        for (const Index n : {axes == 2 ? 24 : 12, axes == 2 ? 48 : 24}) {
          problem.shape.assign(axes, n);
          problem.coordinates.clear();
          if (is_stretched) problem.coordinates = stretched(problem, problem.lengths[0]);
          CAPTURE(description(problem));
          const double error = solve_model<double>(runtime, problem, Model::sine).check.error.value();
          CHECK(error < 0.1);
          if (before > 0) CHECK(std::log2(before / error) > 1.8);
          before = error;
        }
      }
}

TEST_CASE_TEMPLATE("scaled residual of both models, any extents, any slabs, both modes" * quick_enough(), T,
                   float, double) {
  Runtime runtime;
  const std::vector<Index> grids[] = {{1, 1},    {1, 2},    {2, 1},      {1, 31},     {31, 1},   {37, 31},
                                      {64, 63},  {97, 101}, {101, 256},  {127, 508},  {1, 1, 1}, {1, 5, 1},
                                      {2, 1, 3}, {5, 1, 1}, {33, 7, 16}, {40, 31, 33}};
  for (const std::vector<Index>& shape : grids)
    for (const Model model : {Model::sine, Model::random})
      for (const poisson::Mode mode : {poisson::Mode::incore, poisson::Mode::streaming})
        for (const Index slab : {Index{0}, Index{1}, (shape[0] + 1) / 2, Index{32}, shape[0]}) {
          CAPTURE(poisson::to_string(shape));
          CAPTURE(slab);
          const Solved<T> solved =
              solve_model<T>(runtime, {.shape = shape}, model, {.mode = mode, .slab_planes = slab});
          CHECK(solved.check.scaled_residual <= 2 * eps<T>);
          // An odd number of columns has a node on a zero of the sine model: with one column u is zero everywhere.
          if (model == Model::random) CHECK(solved.check.error.value() < 1e4 * eps<T>);
          if (slab > 0) CHECK(solved.layout.slab_planes <= slab);
        }
}

namespace {

/// The slow, obvious twin where u = 0 on the border: sums of sines by their definition, one tridiagonal system after
/// the other, in long double.
std::vector<double> solve_slowly(const Problem& problem, const std::vector<double>& f) {
  using Long = long double;
  const Index m = problem.shape[0], n = problem.shape[1];
  const auto at = [n](Index i, Index j) { return static_cast<std::size_t>(i * n + j); };
  const auto sine = [n](Index j, Index k) {
    return std::sin(std::numbers::pi_v<Long> * static_cast<Long>((j + 1) * (k + 1) % (2 * (n + 1))) /
                    static_cast<Long>(n + 1));
  };
  std::vector<Long> modes(f.size());
  for (Index i = 0; i < m; ++i)
    for (Index k = 0; k < n; ++k)
      for (Index j = 0; j < n; ++j) modes[at(i, k)] += 2 / static_cast<Long>(n + 1) * sine(j, k) * f[at(i, j)];
  const Long hx = static_cast<Long>(problem.lengths[1]) / static_cast<Long>(n + 1),
             hy = static_cast<Long>(problem.lengths[0]) / static_cast<Long>(m + 1);
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

}  // namespace

TEST_CASE_TEMPLATE("the solution is the slow twin's", T, float, double) {
  Runtime runtime;
  for (const std::vector<Index>& shape : std::vector<std::vector<Index>>{{1, 1}, {1, 9}, {9, 1}, {17, 12}, {40, 33}}) {
    const Problem problem{.shape = shape, .lengths = {0.5, 3}};
    std::vector<double> f(static_cast<std::size_t>(shape[0] * shape[1]));
    for (std::size_t i = 0; i < f.size(); ++i) f[i] = std::cos(static_cast<double>(i * i % 89)) + 0.3;
    const std::vector<double> expected = solve_slowly(problem, f);
    const poisson::Grid grid = poisson::discretise(problem);
    const auto source =
        from_values<T>([&](Index i, Index j) { return f[static_cast<std::size_t>(i * grid.columns() + j)]; });
    for (const Index slab : {Index{1}, Index{7}, grid.planes}) {
      const Solved<T> solved = solve_from<T>(runtime, problem, {.slab_planes = slab}, source);
      CHECK(distance(solved.u, expected, solved.first_plane * grid.columns()) < 100 * eps<T>);
    }
  }
}

TEST_CASE_TEMPLATE("any cut into slabs and either mode give the same solution to rounding", T, float, double) {
  Runtime runtime;
  const auto check = [&](const Problem& problem, std::vector<Index> slabs, double bound) {
    const Index planes = problem.shape[0];
    const Solved<T> whole = solve_model<T>(runtime, problem, Model::random, {.slab_planes = planes});
    slabs.insert(slabs.end(), {1, 2, 31, 32, 33, 64, planes / 2, planes / 2 + 1, planes - 1});
    for (const poisson::Mode mode : {poisson::Mode::incore, poisson::Mode::streaming})
      for (const Index slab : slabs) {
        if (left_out_when_sanitized(slab % 2 == 0)) continue;
        const Solved<T> cut = solve_model<T>(runtime, problem, Model::random, {.mode = mode, .slab_planes = slab});
        CHECK(cut.layout.slabs == (planes + cut.layout.slab_planes - 1) / cut.layout.slab_planes);
        if (runtime.ranks() == 1) CHECK(distance(cut.u, whole.u) < bound * eps<T>);
        CHECK(cut.check.scaled_residual <= 2 * eps<T>);
      }
  };
  check({.shape = {301, 255}}, {100}, 80);  // up to 61 where cuFFT transforms
  // Where fewer ends are held the smooth modes are the larger, and so is what rounding leaves in them: about 2 n. Where
  // GPUs transform, lines go in pairs, whose rounding depends on the cut: up to 803 on an H200.
  const double bound = shape_is("gpu") ? 1000 : 300;
  for (const Ends& ends : all_ends) check({.shape = {151, 125}, .ends = {ends, all_ends[1]}}, {}, bound);
}

TEST_CASE("a batch is solved as its problems are one by one") {
  Runtime runtime;
  for (const Ends& ends : {all_ends[0], all_ends[3], all_ends[4]}) {
    Problem problem{.shape = {17, 6, 8}, .ends = {ends, all_ends[3], all_ends[4]}, .batch = 3};
    for (const Index slab : {0, 1, 5, 17}) {
      const Solved<double> together = solve_model<double>(runtime, problem, Model::random, {.slab_planes = slab});
      CHECK(together.check.scaled_residual <= 2 * eps<double>);
      if (runtime.ranks() > 1) continue;
      Problem one = problem;
      one.batch = 1;
      for (Index b = 0; b < 3; ++b) {
        const Known<double> known{Model::random, 7 + static_cast<std::uint64_t>(b)};
        const Solved<double> alone = solve_from<double>(
            runtime, one, {.slab_planes = 4},
            [&](const poisson::SlabbedProblem<double>& solver, Index c, Tile<double>& f) {
              solver.fill(c, f, known);
            },
            known);
        CHECK(distance(alone.u, together.u, b * 17 * 48) < 1e-13);
      }
    }
  }
}

// In float32 the smooth modes of a long line have d_k = 2 + 4e-9, which float32 cannot tell from 2: a solver that
// forms d_k there returns them wrong by a factor while its residual looks perfect.
// The slabs' interfaces are joined on a rank, and between two; other shapes do nothing else.
TEST_CASE("float32 keeps the smooth modes of very long lines" *
          doctest::skip(shape_is("disk") || shape_is("one_worker") || shape_is("mpi4")) * quick_enough()) {
  Runtime runtime;
  const Problem problem{.shape = {500, 49151}};
  const poisson::Grid grid = poisson::discretise(problem);
  const double eigenvalue = -grid::eigenvalue(grid.slow, 0) - grid::eigenvalue(grid.a.x, 0);
  const auto exact = [&](Index i, Index j) {
    return std::sin(pi * grid.slow.fraction(i)) * std::sin(pi * grid.a.x.fraction(j));
  };
  const Solved<float> solved = solve_from<float>(
      runtime, problem, {}, from_values<float>([&](Index i, Index j) { return eigenvalue * exact(i, j); }));
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < solved.u.size(); ++i) {
    const Index node = static_cast<Index>(i);
    const double expected = exact(solved.first_plane + node / 49151, node % 49151);
    error += std::pow(solved.u[i] - expected, 2);
    norm += expected * expected;
  }
  if (!solved.u.empty()) CHECK(std::sqrt(error / norm) < 1e-6);  // ranks may have no rows
}

TEST_CASE("one solver, many right-hand sides: linear, and zero for zero" * doctest::skip(shape_is("disk"))) {
  check_many_right_hand_sides<poisson::Solver>({.shape = {50, 40}, .lengths = {2, 1}});
}

TEST_CASE_TEMPLATE("boxes of very unequal sides", T, float, double) {
  Runtime runtime;
  for (const std::vector<double>& lengths : std::vector<std::vector<double>>{
           {1e-4, 1}, {1, 1e-4}, {1e6, 1}, {1, 1e6}, {3e-7, 2e-7}, {1, 1e-3, 1e3}, {1e3, 1, 1e-3}}) {
    Problem problem{.shape = {65, 48}, .lengths = lengths};
    if (lengths.size() == 3) problem.shape = {33, 16, 20};
    const Solved<T> solved = solve_model<T>(runtime, problem, Model::random, {.slab_planes = 16});
    CHECK(solved.check.scaled_residual <= 2 * eps<T>);
  }
}

TEST_CASE("gpu: the solution on GPUs is that on CPUs, for every combination") {
  std::vector<std::vector<double>> on_gpu;
  std::vector<Problem> problems = combinations({67, 33});
  for (const Problem& problem : combinations({35, 16, 17})) problems.push_back(problem);
  {
    Runtime runtime;
    for (const Problem& problem : problems)
      on_gpu.push_back(solve_model<double>(runtime, problem, Model::random, {.slab_planes = 33}).u);
  }
  Runtime runtime({.gpus = 0});
  for (std::size_t i = 0; i < problems.size(); ++i) {
    CAPTURE(description(problems[i]));
    CHECK(distance(solve_model<double>(runtime, problems[i], Model::random, {.slab_planes = 33}).u, on_gpu[i]) < 1e-11);
  }
}
