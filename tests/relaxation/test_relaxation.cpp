// The iterates are those of the definitions, however the grid is cut.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "relaxation_solves.hpp"

using namespace asterism;
using namespace asterism::test;

namespace {

std::string message_of(Runtime& runtime, const Problem& problem, const Settings& settings) {
  try {
    const relaxation::Solver<double> solver(runtime, problem, settings);
  } catch (const Error& error) {
    CHECK(error.blame() == Blame::input);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE_TEMPLATE("any stripes, sweeps per task, exchange and arrangement: the same iterates", T, float,
                   double) {
  Runtime runtime;
  const Problem problem = with_sides(61, 37);
  const std::vector<T> guess = random_numbers<T>(61 * 37, 3), f = random_numbers<T>(61 * 37, 4), no_f;
  constexpr Index sweeps = 7;
  unsigned turn = 0;  // arrangements, exchanges, balances and sources take turns, each at its own pace
  for (const Method method : all_methods) {
    const double omega = method == Method::sor ? 1.7 : method == Method::ssor ? 1.2 : 1;
    Twin<T> twins[] = {{problem, f, guess}, {problem, no_f, guess}};
    for (Twin<T>& twin : twins)
      for (Index k = 0; k < sweeps; ++k) twin.sweep(method, omega);
    std::vector<T> first[2][2];
    for (const Index stripes : sizeof(T) == 4 ? std::vector<Index>{1, 3} : std::vector<Index>{1, 2, 3, 5})
      for (Index per_task = 1; per_task <= 5; ++per_task, ++turn) {
        const unsigned laplace = turn % 3 == 2;
        const Settings settings{
            .method = method,
            .omega = omega,
            .sweeps = sweeps,
            .sweeps_per_task = per_task,
            .arrangement = turn / 2 % 2 == 0 ? Arrangement::separated : Arrangement::natural,
            .exchange = turn % 2 == 0 ? Exchange::overlapped : Exchange::blocking,
            .stripes = stripes,
            .balance = turn % 7 == 0 ? Balance::measured : Balance::equal};
        CAPTURE(description(settings));
        const Run<T> r = run(runtime, problem, settings, laplace ? no_f : f, guess);
        CHECK(r.report.reason == Reason::solved);
        CHECK(r.report.iterations == sweeps);
        CHECK(static_cast<Index>(r.stripes.size()) == stripes);
        CHECK(largest_difference(r.u, twins[laplace].v()) <= 64 * eps<T>);
        // Bit for bit, on cores; and on GPUs, which round otherwise.
        const auto on_gpus =
            std::count_if(r.stripes.begin(), r.stripes.end(),
                          [](const asterism::Part& stripe) { return stripe.where == Where::cuda; });
        if (on_gpus > 0 && on_gpus < stripes) continue;
        std::vector<T>& expected = first[laplace][on_gpus > 0];
        if (expected.empty()) expected = r.u;
        CHECK(r.u == expected);
      }
  }
}

TEST_CASE("a solver solves again: another right-hand side, with and without f") {
  Runtime runtime;
  const Problem problem = with_sides(23, 30);
  relaxation::Solver<double> solver(runtime, problem, {.sweeps = 5, .sweeps_per_task = 1, .stripes = 2});
  const auto first = static_cast<std::ptrdiff_t>(solver.first_row() * 30);
  const auto count = static_cast<std::size_t>(solver.row_count() * 30);
  for (const unsigned seed : {1U, 2U, 3U}) {
    const std::vector<double> guess = random_numbers<double>(23 * 30, seed);
    const std::vector<double> f =
        seed == 2 ? std::vector<double>{} : random_numbers<double>(23 * 30, seed + 9);
    std::vector<double> u(guess.begin() + first, guess.begin() + first + static_cast<std::ptrdiff_t>(count));
    const std::vector<double> f_before = f;
    const Report report = solver.solve(f.empty() ? nullptr : f.data() + first, u.data());
    CHECK(f == f_before);
    Twin<double> twin(problem, f, guess);
    for (int k = 0; k < 5; ++k) twin.sweep(Method::sor, *solver.settings().omega);
    for (std::size_t i = 0; i < count; ++i)
      CHECK(std::abs(u[i] - twin.v()[i + static_cast<std::size_t>(first)]) <= 128 * eps<double>);
    for (const char* part : {"load", "sweeps", "residual", "spread", "store"})
      CHECK(report.seconds.at(part) >= 0);
    CHECK(report.seconds.at("spread") <= report.seconds.at("residual"));
  }
}

#ifdef __SSE2__
TEST_CASE("values that move into zeros leave no denormal numbers on cores, which would be slow with them") {
  Runtime runtime({.gpus = 0});
  for (const Method method : {Method::jacobi, Method::sor}) {
    relaxation::Solver<float> solver(runtime, {.shape = {300, 50}, .y_lower = {.value = 1}},
                                     {.method = method, .omega = 1, .sweeps = 280, .sweeps_per_task = 4});
    std::vector<float> u(static_cast<std::size_t>(solver.row_count() * 50));
    solver.solve(nullptr, u.data());
    CAPTURE(method == Method::sor);
    CHECK(std::ranges::none_of(u, [](float value) { return std::fpclassify(value) == FP_SUBNORMAL; }));
  }
}
#endif

TEST_CASE("the residuals of the history are those of the iterates") {
  Runtime runtime;
  const Problem problem = with_sides(19, 26);
  const std::vector<double> guess = random_numbers<double>(19 * 26, 3),
                            f = random_numbers<double>(19 * 26, 4);
  const Run<double> r = run(runtime, problem,
                            {.method = Method::gauss_seidel,
                             .sweeps = 10,
                             .check_every = 3,
                             .sweeps_per_task = 3,
                             .exchange = Exchange::blocking,
                             .stripes = 2,
                             .balance = Balance::equal},
                            f, guess);
  REQUIRE(r.report.residual_history.size() == 5);  // before, after 3, 6, 9 and 10 sweeps

  const double y = std::pow(20 / 1.5, 2), x = std::pow(27 / 0.8, 2);
  Twin<double> twin(problem, f, guess);
  for (int k = 0, number = 0; k <= 10; ++k) {
    if (k % 3 == 0 || k == 10) {
      const auto& v = twin.v();
      double residual = 0, source = 0;
      for (Index i = 0; i < 19; ++i)
        for (Index j = 0; j < 26; ++j) {
          const auto at = [&](Index a, Index b) { return v[static_cast<std::size_t>(a * 26 + b)]; };
          double b = f[static_cast<std::size_t>(i * 26 + j)], av = -2 * (y + x) * at(i, j);
          i > 0 ? av += y * at(i - 1, j) : b -= y * value_at(problem.y_lower, j);
          i < 18 ? av += y * at(i + 1, j) : b -= y * value_at(problem.y_upper, j);
          j > 0 ? av += x * at(i, j - 1) : b -= x * value_at(problem.x_lower, i);
          j < 25 ? av += x * at(i, j + 1) : b -= x * value_at(problem.x_upper, i);
          residual += (b - av) * (b - av);
          source += b * b;
        }
      const double scaled = std::sqrt(residual) / (4 * (y + x) * norm(v) + std::sqrt(source));
      CHECK(r.report.residual_history[static_cast<std::size_t>(number++)] ==
            doctest::Approx(scaled).epsilon(1e-10));
    }
    twin.sweep(Method::gauss_seidel, 1);
  }
}

TEST_CASE("grids of all proportions, also lower than the stripes and tasks asked for") {
  Runtime runtime;
  unsigned turn = 0;
  for (const auto& [rows, nodes] : std::vector<std::pair<Index, Index>>{{1, 1},
                                                                        {1, 2},
                                                                        {2, 1},
                                                                        {1, 23},
                                                                        {23, 1},
                                                                        {2, 2},
                                                                        {3, 3},
                                                                        {5, 16},
                                                                        {7, 17},
                                                                        {13, 15},
                                                                        {4, 31},
                                                                        {29, 3}})
    for (const Method method : all_methods) {
      const Problem problem = with_sides(rows, nodes);
      const std::vector<double> guess = random_numbers<double>(rows * nodes, 1),
                                f = random_numbers<double>(rows * nodes, 2);
      Twin<double> twin(problem, f, guess);
      ++turn;
      // No stripes asked for: as many as make sense, with as many ranks as there are; sweeps per task that do
      // not fit become fewer where stripes were asked for.
      const Index blocking_least = method == Method::jacobi ? 1 : method == Method::ssor ? 3 : 2;
      const Settings settings{.method = method,
                              .sweeps = 9,
                              .sweeps_per_task = turn % 2 == 0 ? 50 : 3,
                              .arrangement = turn % 3 == 0 ? Arrangement::natural : Arrangement::separated,
                              .exchange = turn % 2 == 0 ? Exchange::blocking : Exchange::overlapped,
                              .stripes = turn % 2 == 0 ? std::max<Index>(1, rows / blocking_least) : 0};
      CAPTURE(rows);
      CAPTURE(nodes);
      CAPTURE(description(settings));
      const Run<double> r = run(runtime, problem, settings, f, guess);
      for (int k = 0; k < 9; ++k) twin.sweep(method, *r.settings.omega);
      CHECK(largest_difference(r.u, twin.v()) <= 256 * eps<double>);
      CHECK(r.report.iterations == 9);
      Index next = 0;
      for (const asterism::Part& stripe : r.stripes) {
        CHECK(stripe.first == next);
        CHECK(stripe.size >= 1);
        next += stripe.size;
      }
      CHECK(next == rows);
    }
}

TEST_CASE("bad input is refused, with the value and what to do") {
  Runtime runtime;
  const Problem good{.shape = {8, 8}};
  const auto refuses = [&](const Problem& problem, const Settings& settings, const std::string& part) {
    const std::string message = message_of(runtime, problem, settings);
    CAPTURE(message);
    CAPTURE(part);
    CHECK(message.find(part) != std::string::npos);
  };
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  refuses({.shape = {0, 5}}, {.sweeps = 1}, "grid is 0 x 5: every extent must be at least 1");
  refuses({.shape = {4, 5, 6}}, {.sweeps = 1}, "the grid has 3 axes");
  refuses({.shape = {8, Index{1} << 40}}, {.sweeps = 1}, "no extent may be above");
  refuses({.shape = {1, 1431655743}}, {.sweeps = 1}, "rows of more than 1431655742 unknowns");
  refuses({.shape = {8, 8}, .lengths = {1}}, {.sweeps = 1}, "1 lengths for 2 axes");
  refuses({.shape = {8, 8}, .lengths = {1, -2}}, {.sweeps = 1}, "lengths are 1 x -2: all must be positive");
  refuses({.shape = {8, 8}, .y_lower = {.value = nan}}, {.sweeps = 1}, "lower y side: the value is nan");
  refuses({.shape = {8, 9}, .x_upper = {.values = {1, 2, 3}}}, {.sweeps = 1},
          "upper x side: 3 values are given, the side has 8 nodes");
  refuses({.shape = {8, 2}, .y_upper = {.values = {1, nan}}}, {.sweeps = 1},
          "upper y side: value number 1 is nan");
  for (const double omega : {0.0, 2.0, -1.0, 2.5, nan})
    for (const Method method : {Method::sor, Method::ssor})
      refuses(good, {.method = method, .omega = omega, .sweeps = 1}, "converges for 0 < omega < 2 only");
  refuses(good, {.method = Method::jacobi, .omega = 1.5, .sweeps = 1},
          "Jacobi's method has no omega other than 1");
  refuses(good, {.method = Method::gauss_seidel, .omega = 1.5, .sweeps = 1}, "leave it away, or choose SOR");
  refuses(good, {}, "neither a number of sweeps nor a tolerance");
  refuses(good, {.sweeps = -3}, "-3 sweeps");
  refuses(good, {.sweeps = 3, .check_every = -1}, "-1 sweeps between residuals");
  refuses(good, {.sweeps = 3, .sweeps_per_task = -2}, "-2 sweeps per task");
  refuses(good, {.sweeps = 3, .stripes = -2}, "-2 stripes");
  refuses(good, {.tolerance = -1e-3}, "the tolerance is -0.001");
  refuses(good, {.tolerance = nan}, "the tolerance is nan");
  refuses(good, {.sweeps = 3, .exchange = Exchange::overlapped, .stripes = 3}, "3 stripes of 8 rows");
  refuses(good, {.sweeps = 3, .exchange = Exchange::overlapped, .stripes = 3}, "at most 2 stripes");
  refuses(good, {.sweeps = 3, .exchange = Exchange::blocking, .stripes = 5}, "at most 4 stripes");
  CHECK(message_of(runtime, good, {.omega = 1.5, .sweeps = 3, .stripes = 2}).empty());
}

#ifdef ASTERISM_WITH_CUDA
TEST_CASE_TEMPLATE("gpu: the iterates of the cores, for every method, arrangement and number of stripes", T,
                   float, double) {
  struct Case {
    Problem problem;
    Settings settings;
    bool has_source;
  };
  std::vector<Case> cases;
  for (const auto& [rows, nodes] : {std::pair<Index, Index>{200, 333}, {1031, 512}})
    for (const Method method : all_methods)
      for (const Index stripes : {0, 1, 2, 3}) {
        const auto turn = static_cast<Index>(cases.size());
        cases.push_back({with_sides(rows, nodes),
                         {.method = method,
                          .sweeps = 21,
                          .sweeps_per_task = turn % 3 == 0 ? 0 : turn % 8 + 1,
                          .arrangement = turn % 2 == 0 ? Arrangement::separated : Arrangement::natural,
                          .exchange = turn / 2 % 2 == 0 ? Exchange::overlapped : Exchange::blocking,
                          .stripes = stripes,
                          .balance = turn % 4 == 1 ? Balance::measured : Balance::equal},
                         turn % 5 != 0});
      }
  const auto solve_all = [&](int gpus) {
    Runtime runtime({.gpus = gpus});
    std::vector<Run<T>> runs;
    for (const Case& c : cases) {
      const Index count = c.problem.shape[0] * c.problem.shape[1];
      runs.push_back(run(runtime, c.problem, c.settings,
                         c.has_source ? random_numbers<T>(count, 4) : std::vector<T>{},
                         random_numbers<T>(count, 3)));
    }
    return runs;
  };
  const std::vector<Run<T>> on_cores = solve_all(0), on_gpus = solve_all(-1);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(description(cases[i].settings));
    if (cases[i].settings.balance == Balance::equal)  // cores join where they are fast enough
      CHECK(std::all_of(on_gpus[i].stripes.begin(), on_gpus[i].stripes.end(),
                        [](const asterism::Part& stripe) { return stripe.where == Where::cuda; }));
    CHECK(largest_difference(on_gpus[i].u, on_cores[i].u) <= 256 * eps<T>);
    CHECK(
        on_gpus[i].report.residual_history.front() ==
        doctest::Approx(on_cores[i].report.residual_history.front()).epsilon(sizeof(T) == 4 ? 1e-3 : 1e-10));
    CHECK(on_gpus[i].report.residual_history.back() ==
          doctest::Approx(on_cores[i].report.residual_history.back()).epsilon(sizeof(T) == 4 ? 1e-3 : 1e-10));
  }
}

TEST_CASE("gpu: all GPUs share the rows, and a tolerance is reached") {
  Runtime runtime;
  const int gpus = runtime.machine().count(WorkerKind::cuda);
  const Problem problem{.shape = {1024, 1024}};
  const auto f = on_grid<double>(problem, [&](Index i, Index j) {
    return std::sin(pi * position(i, 1024)) * std::sin(pi * position(j, 1024));
  });
  const Run<double> r =
      run(runtime, problem, {.tolerance = 1e-12, .stripes = 2 * gpus, .balance = Balance::equal}, f,
          zeros<double>(problem));
  CHECK(r.report.reason == Reason::solved);
  for (int gpu = 0; gpu < gpus; ++gpu)
    CHECK(std::count_if(r.stripes.begin(), r.stripes.end(),
                        [&](const asterism::Part& stripe) { return stripe.worker == gpu; }) == 2);
  // The discrete solution: f / -(lambda_y + lambda_x).
  const double h = 1.0 / 1025, lambda = 2 * std::pow(2 / h * std::sin(pi * h / 2), 2);
  std::vector<double> exact = f;
  for (double& value : exact) value /= -lambda;
  CHECK(largest_difference(r.u, exact) < 1e-6 / lambda);
}
#endif
