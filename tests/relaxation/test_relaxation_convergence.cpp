// How fast the methods converge, to what, and when they end.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/common/iteration/iteration.hpp"
#include "algorithms/common/set.hpp"
#include "relaxation_solves.hpp"

using namespace asterism;
using namespace asterism::test;

namespace {

/// ||v|| after more and more sweeps where the solution is zero: of the error itself, and without any level of
/// rounding.
class ErrorNorms {
 public:
  ErrorNorms(Runtime& runtime, Index n, Settings settings)
      : runtime_(runtime),
        problem_{.shape = {n, n}},
        settings_(settings),
        v_(random_numbers<double>(n * n, 5, 0)) {}

  double after(Index sweeps) {
    settings_.sweeps = sweeps - done_;
    v_ = run(runtime_, problem_, settings_, {}, v_).u;
    done_ = sweeps;
    return norm(v_);
  }

 private:
  Runtime& runtime_;
  Problem problem_;
  Settings settings_;
  std::vector<double> v_;
  Index done_ = 0;
};

/// What Convergence and the reader want to know: not only the reduction per sweep but its logarithm is within
/// 2 %.
void check_reduction(double observed, double expected) {
  CHECK(observed == doctest::Approx(expected).epsilon(0.02));
  CHECK(std::log(observed) == doctest::Approx(std::log(expected)).epsilon(0.02));
}

}  // namespace

// Iterates are the same on several ranks, but these are many thousand of them.
TEST_CASE("n = 128: the error falls by the spectral radius every sweep" * doctest::skip(shape_is("mpi"))) {
  Runtime runtime;
  const Index n = 128;
  const double h = 1.0 / static_cast<double>(n + 1), c = std::cos(pi * h);
  const relaxation::Discretisation grid = relaxation::discretise_five_point(n, n, 1, 1);

  SUBCASE("Jacobi: cos(pi h)") {
    // The slowest mode is left after some thousand sweeps, with its counterpart of eigenvalue -cos(pi h): an
    // even number.
    ErrorNorms error(runtime, n, {.method = Method::jacobi});
    const double before = error.after(10000), after = error.after(11000);
    check_reduction(std::pow(after / before, 1.0 / 1000), c);
    CHECK(relaxation::spectral_radius(Method::jacobi, 1, grid.jacobi_radius) ==
          doctest::Approx(c).epsilon(1e-12));
  }
  SUBCASE("Gauss-Seidel: its square") {
    ErrorNorms error(runtime, n, {.method = Method::gauss_seidel});
    const double before = error.after(5000), after = error.after(5500);
    check_reduction(std::pow(after / before, 1.0 / 500), c * c);
    CHECK(relaxation::spectral_radius(Method::gauss_seidel, 1, grid.jacobi_radius) == doctest::Approx(c * c));
  }
  SUBCASE("SOR with the best omega: omega - 1 = (cos(pi h) / (1 + sin(pi h)))^2") {
    // All eigenvalues have this modulus, and the one of the slowest mode is double with a single eigenvector:
    // its part of the error is (a + b k) lambda^k, and in the end dominates by its factor k, which is divided
    // out here.
    const double lambda = std::pow(c / (1 + std::sin(pi * h)), 2);
    ErrorNorms error(runtime, n, {.method = Method::sor});
    const double before = error.after(400), after = error.after(1600);
    check_reduction(std::pow(after / before * 400 / 1600, 1.0 / 1200), lambda);
    CHECK(relaxation::spectral_radius(Method::sor, grid.optimal_omega(), grid.jacobi_radius) ==
          doctest::Approx(lambda).epsilon(1e-6));
  }
}

TEST_CASE("other omegas: spectral_radius is what is observed, and symmetric SOR has none better than 1" *
          doctest::skip(shape_is("mpi"))) {
  Runtime runtime;
  const Index n = 32;
  const double radius = relaxation::discretise_five_point(n, n, 1, 1).jacobi_radius;
  const auto observed = [&](Method method, double omega) {
    ErrorNorms error(runtime, n, {.method = method, .omega = omega});
    const double before = error.after(1200);
    return std::pow(error.after(1600) / before, 1.0 / 400);
  };
  for (const double omega : {0.7, 1.0, 1.5, 1.95})
    check_reduction(observed(Method::sor, omega), relaxation::spectral_radius(Method::sor, omega, radius));
  for (const double omega : {0.7, 1.0, 1.5})
    check_reduction(observed(Method::ssor, omega), relaxation::spectral_radius(Method::ssor, omega, radius));
  const double natural_order_best = 2 / (1 + std::sqrt(2 * (1 - radius)));
  CHECK(observed(Method::ssor, natural_order_best) > observed(Method::ssor, 1));
  CHECK(relaxation::Solver<float>(runtime, {.shape = {n, n}}, {.method = Method::ssor, .sweeps = 1})
            .settings()
            .omega == 1);
}

TEST_CASE("sweeps to a tolerance grow like n^2 for Gauss-Seidel, like n for SOR" *
          doctest::skip(shape_is("mpi"))) {
  Runtime runtime;
  for (const Method method : {Method::gauss_seidel, Method::sor}) {
    std::vector<double> sweeps;
    for (const Index n : {32, 64, 128}) {
      const Problem problem{.shape = {n, n}};
      const std::vector<double> f = on_grid<double>(problem, [&](Index i, Index j) {
        return std::sin(pi * position(i, n)) * std::sin(pi * position(j, n));
      });
      const Index every = method == Method::sor ? 4 : 2 * n;
      const Settings settings{.method = method,
                              .tolerance = 1e-12,
                              .check_every = every,
                              .sweeps_per_task = method == Method::sor ? 4 : 32};
      const Run<double> r = run(runtime, problem, settings, f, zeros<double>(problem));
      CHECK(r.report.reason == Reason::solved);
      const std::vector<double>& history = r.report.residual_history;
      const auto reached = std::find_if(history.begin(), history.end(), [](double x) { return x <= 1e-12; });
      sweeps.push_back(static_cast<double>(
          r.report.residual_iterations[static_cast<std::size_t>(reached - history.begin())]));
      CHECK(static_cast<double>(r.report.iterations) <= sweeps.back() + static_cast<double>(every));
      CHECK(history.back() <= 1e-12);
    }
    const double exponent = method == Method::sor ? 1 : 2;
    for (const std::size_t i : {0U, 1U})
      CHECK(std::abs(std::log2(sweeps[i + 1] / sweeps[i]) - exponent) < 0.15);
  }
}

TEST_CASE("stale halos slow SOR down, or break it ([Czapinski 2014] 4.2, figure 4.6)") {
  Runtime runtime;
  const Index n = 48;
  const Problem problem{.shape = {n, n}};
  const std::vector<double> f = random_numbers<double>(n * n, 6);
  const auto solve = [&](Exchange exchange, Index stripes, std::optional<double> omega, double tolerance) {
    return run(runtime, problem,
               {.method = Method::sor,
                .omega = omega,
                .sweeps = tolerance > 0 ? 600 : 150,
                .tolerance = tolerance,
                .check_every = 20,
                .sweeps_per_task = 1,
                .exchange = exchange,
                .stripes = stripes,
                .balance = Balance::equal},
               f, zeros<double>(problem))
        .report;
  };
  // With the best omega two subdomains converge much more slowly, four do not at all,
  const Report good = solve(Exchange::blocking, 2, {}, 1e-10), alone = solve(Exchange::stale, 1, {}, 1e-10);
  CHECK(good.reason == Reason::solved);
  CHECK(alone.iterations == good.iterations);  // a single one has no halos
  const Report two = solve(Exchange::stale, 2, {}, 1e-10);
  CHECK((two.reason != Reason::solved || two.iterations > 5 * good.iterations / 4));
  CHECK(solve(Exchange::stale, 4, {}, 1e-10).reason == Reason::divergence);
  // nor do 16 with a smaller one.
  CHECK(solve(Exchange::stale, 16, 1.8, 1e-10).reason == Reason::divergence);
  // Gauss-Seidel does not mind.
  CHECK(solve(Exchange::stale, 4, 1.0, 0).residual_history.back() ==
        doctest::Approx(solve(Exchange::blocking, 4, 1.0, 0).residual_history.back()).epsilon(0.1));
}

namespace {

/// The Laplace model of [Czapinski 2014] (3.2): sin^2(pi y) on the side x = 0, zero on the others. Its solution as a
/// Fourier series: sum over odd k of c_k sin(k pi y) sinh(k pi (1 - x)) / sinh(k pi), c_k = 2 int_0^1
/// sin^2(pi y) sin(k pi y) dy = -8 / (pi k (k^2 - 4)).
double laplace_model(double y, double x) {
  double sum = 0;
  for (int k = 1; k < 400; k += 2) {
    const double decay = (std::exp(-k * pi * x) - std::exp(-k * pi * (2 - x))) / (1 - std::exp(-2 * k * pi));
    sum += -8 / (pi * k * (static_cast<double>(k) * k - 4)) * std::sin(k * pi * y) * decay;
  }
  return sum;
}

/// Orders of convergence from the largest errors on finer and finer grids.
void check_second_order(const std::vector<double>& errors) {
  for (std::size_t i = 0; i + 1 < errors.size(); ++i) {
    CHECK(std::log2(errors[i] / errors[i + 1]) > 1.8);
    CHECK(std::log2(errors[i] / errors[i + 1]) < 2.3);
  }
  CHECK(errors.size() >= 2);
  CHECK(errors.back() < 0.01);
}

}  // namespace

TEST_CASE(
    "Laplace's equation with sin^2(pi y) at x = 0: second order convergence to the series, by every method") {
  Runtime runtime;
  for (const Method method : all_methods) {
    std::vector<double> errors;
    for (const Index n : {7, 15, 31}) {
      if (n == 31 && method != Method::sor) continue;  // it would take thousands of sweeps
      Problem problem{.shape = {n, n}};
      for (Index i = 0; i < n; ++i)
        problem.x_lower.values.push_back(std::pow(std::sin(pi * position(i, n)), 2));
      const Run<double> r =
          run(runtime, problem,
              {.method = method, .tolerance = 1e-9, .check_every = 120, .stripes = n > 7 ? 2 : 1}, {},
              zeros<double>(problem));
      CHECK(r.report.reason == Reason::solved);
      const auto exact = on_grid<double>(
          problem, [&](Index i, Index j) { return laplace_model(position(i, n), position(j, n)); });
      errors.push_back(largest_difference(r.u, exact));
    }
    check_second_order(errors);
  }
}

TEST_CASE("Poisson's equation on rectangles, with values on every side: second order") {
  Runtime runtime;
  const double ly = 1.5, lx = 0.7;
  const auto exact = [&](double y, double x) {
    return std::sin(pi * y / ly) * std::sin(pi * x / lx) + std::exp(y - 2 * x);
  };
  const auto source = [&](double y, double x) {
    return -(pi * pi / (ly * ly) + pi * pi / (lx * lx)) * std::sin(pi * y / ly) * std::sin(pi * x / lx) +
           5 * std::exp(y - 2 * x);
  };
  std::vector<double> errors;
  for (const Index refined : {1, 2, 4}) {
    const Index m = 10 * refined - 1, n = 7 * refined - 1;  // h_y = 0.15, h_x = 0.1
    Problem problem{.shape = {m, n}, .lengths = {ly, lx}};
    for (Index j = 0; j < n; ++j) {
      problem.y_lower.values.push_back(exact(0, position(j, n, lx)));
      problem.y_upper.values.push_back(exact(ly, position(j, n, lx)));
    }
    for (Index i = 0; i < m; ++i) {
      problem.x_lower.values.push_back(exact(position(i, m, ly), 0));
      problem.x_upper.values.push_back(exact(position(i, m, ly), lx));
    }
    const auto at_nodes = [&](const auto& value) {
      return on_grid<double>(problem,
                             [&](Index i, Index j) { return value(position(i, m, ly), position(j, n, lx)); });
    };
    const Run<double> r =
        run(runtime, problem, {.tolerance = 1e-11, .stripes = 2}, at_nodes(source), zeros<double>(problem));
    CHECK(r.report.reason == Reason::solved);
    errors.push_back(largest_difference(r.u, at_nodes(exact)));
  }
  check_second_order(errors);
}

TEST_CASE("why a solve ends") {
  Runtime runtime;
  const Problem problem{.shape = {40, 40}};
  std::vector<double> f = random_numbers<double>(1600, 8);
  const std::vector<double> zero = zeros<double>(problem);
  const auto solve = [&](const Settings& settings, const std::vector<double>& source) {
    return run(runtime, problem, settings, source, zero).report;
  };

  const Report limited = solve({.sweeps = 30, .tolerance = 1e-10, .check_every = 7, .sweeps_per_task = 1}, f);
  CHECK(limited.reason == Reason::iteration_limit);
  CHECK(limited.iterations == 30);
  CHECK(limited.residual_history.size() == 6);   // 0, 7, 14, 21, 28, 30
  CHECK(limited.residual_history.front() == 1);  // v = 0

  const Report no_tolerance = solve({.sweeps = 30}, f);
  CHECK(no_tolerance.reason == Reason::solved);
  CHECK(no_tolerance.residual_history.size() == 2);

  const Report solved = solve({.tolerance = 1e-10}, f);
  CHECK(solved.reason == Reason::solved);
  CHECK(solved.residual_history.back() <= 1e-10);

  const Report at_once =
      solve({.tolerance = 1e-10, .check_every = 4, .sweeps_per_task = 1}, {});  // u = 0 it is
  CHECK(at_once.reason == Reason::solved);
  CHECK(at_once.iterations <= 4);
  CHECK(at_once.residual_history.front() == 0);

  const Report too_much = solve({.tolerance = 1e-30}, f);
  CHECK(too_much.reason == Reason::stagnation);
  CHECK(too_much.residual_history.back() < 1e-15);

  f[777] = std::numeric_limits<double>::quiet_NaN();
  const Report broken = solve({.sweeps = 10000, .tolerance = 1e-10}, f);
  CHECK(broken.reason == Reason::not_finite);
  CHECK(broken.iterations < 100);
  CHECK(solve({.sweeps = 5}, f).reason == Reason::not_finite);
}

TEST_CASE("the scale of the problem is of no account") {
  Runtime runtime;
  for (const Method method : all_methods)
    for (const Arrangement arrangement : {Arrangement::natural, Arrangement::separated}) {
      if (left_out_when_sanitized(arrangement == Arrangement::natural)) continue;
      const auto solve = [&]<class T>(const Problem& p, const std::vector<T>& f,
                                      const std::vector<T>& guess) {
        Settings settings{.tolerance = 1e-5, .check_every = 10, .sweeps_per_task = 2, .stripes = 2};
        settings.method = method;
        settings.arrangement = arrangement;
        settings.balance = Balance::equal;  // every run on the same workers: cores and GPUs round differently
        return run(runtime, p, settings, f, guess);
      };
      check_scaling<double>(with_sides(19, 14), {-900, -600, 600, 900}, solve);
      check_scaling<float>(with_sides(19, 14), {-80, 80}, solve);
    }
}

TEST_CASE("f at the ends of the range of double") {
  Runtime runtime;
  const Problem problem{.shape = {15, 15}};
  const Settings settings{
      .tolerance = 1e-10, .check_every = 10, .sweeps_per_task = 2, .stripes = 2};  // not by speed
  const auto solve = [&](double value) {
    return run(runtime, problem, settings, std::vector<double>(225, value), zeros<double>(problem)).report;
  };
  for (const double value : {1e-200, 1e200, 1e308}) {
    CAPTURE(value);
    const Report report = solve(value);
    CHECK(report.reason == Reason::solved);
    CHECK(report.iterations == solve(std::ldexp(value, -std::ilogb(value))).iterations);
  }
}

TEST_CASE("residuals come when they were asked for, however often that is") {
  Runtime runtime;
  const Problem problem{.shape = {40, 40}};
  const std::vector<double> f = random_numbers<double>(1600, 8);
  const Run<double> fives = run(runtime, problem,
                                {.sweeps = 12,
                                 .tolerance = 1e-10,
                                 .check_every = 5,
                                 .sweeps_per_task = 3,
                                 .stripes = 2,
                                 .balance = Balance::equal},
                                f, zeros<double>(problem));
  CHECK(fives.settings.sweeps_per_task == 3);
  CHECK(fives.settings.check_every == 5);
  CHECK(fives.report.residual_history.size() == 4);  // 0, 5, 10, 12
  const Run<double> each =
      run(runtime, problem, {.sweeps = 12, .tolerance = 1e-10, .check_every = 1, .balance = Balance::equal},
          f, zeros<double>(problem));
  REQUIRE(each.report.residual_history.size() == 13);
  CHECK(each.report.residual_history[5] == doctest::Approx(fives.report.residual_history[1]));
  CHECK(each.report.residual_history[10] == doctest::Approx(fives.report.residual_history[2]));

  constexpr Index never = std::numeric_limits<Index>::max();
  const Run<double> once =
      run(runtime, problem, {.sweeps = 12, .tolerance = 1e-10, .check_every = never, .sweeps_per_task = 4}, f,
          zeros<double>(problem));
  CHECK(once.report.iterations == 12);
  CHECK(once.report.residual_history.size() == 2);
  static_assert(rounded_up(never, 8) == never - 7);
  static_assert(rounded_up(never - 7, 8) == never - 7);
  static_assert(rounded_up(9, 4) == 12);
}

TEST_CASE("the observer is told every residual; what it throws ends the solve, and u is as it was") {
  Runtime runtime;
  const Problem problem{.shape = {40, 40}};
  const std::vector<double> f = random_numbers<double>(1600, 8), guess = random_numbers<double>(1600, 9);
  for (const Method method : all_methods) {
    std::vector<IterationState> told;
    Settings settings{.method = method,
                      .sweeps = 50,
                      .tolerance = 1e-10,
                      .check_every = 4,
                      .sweeps_per_task = 2,
                      .stripes = 2};
    settings.observer = [&](const IterationState& state) { told.push_back(state); };
    const Report report = run(runtime, problem, settings, f, guess).report;
    REQUIRE(told.size() == report.residual_history.size());
    for (std::size_t i = 0; i < told.size(); ++i) {
      CHECK(told[i].iteration == report.residual_iterations[i]);
      CHECK(told[i].residual == report.residual_history[i]);
      CHECK(report.residual_iterations[i] == std::min<Index>(static_cast<Index>(4 * i), report.iterations));
    }
  }

  // Thrown on one rank.
  bool throws = runtime.rank() + 1 == runtime.ranks();
  Settings settings{.sweeps = 50, .tolerance = 1e-10, .check_every = 4, .stripes = 2};
  settings.observer = [&](const IterationState& state) {
    if (throws && state.iteration == 8) throw Error("stop it");
  };
  relaxation::Solver<double> solver(runtime, problem, settings);
  const auto first = solver.first_row() * 40, count = solver.row_count() * 40;
  const std::vector<double> before(guess.begin() + first, guess.begin() + first + count);
  std::vector<double> u = before;
  CHECK_THROWS_WITH_AS(solver.solve(f.data() + first, u.data()), doctest::Contains("stop it"), Error);
  CHECK(u == before);
  throws = false;  // the same solver once more
  CHECK(solver.solve(f.data() + first, u.data()).iterations == 50);
  CHECK((count == 0 || u != before));
}

TEST_CASE("sweeps end soon after a task has failed, on all ranks") {
  static const Codelet<int, Out<double>> failing{"test_failing_sweep",
                                                 +[](const int&, Out<double>) { throw Error("on purpose"); }};
  Runtime runtime;
  const std::vector<asterism::Part> stripes{{.rank = runtime.ranks() - 1}};
  const relaxation::ResidualSums sums(runtime, stripes);
  const Tile<double> tile(runtime, 1, 1, runtime.ranks() - 1);
  const auto set_sums = [&](Index number) {
    set(runtime, sums.sums(0, number), [](Index, Index) { return sums::SquareSum{1, {}}; });
  };
  Index calls = 0;
  const Steps steps{.load = [] {},
                    .step =
                        [&](Index) {
                          if (++calls == 3) failing(0, tile);
                        },
                    .submit_residual = set_sums,
                    .norms = [&](Index number) { return sums.norms(number, 1, 0); },
                    .store = [] {}};
  const StoppingRule rule{.tolerance = 1e-9, .operator_norm = 8, .spectral_radius = 1};
  CHECK_THROWS_AS(iterate(runtime, {.limit = 100000, .check_every = 1, .rule = rule}, steps), TaskFailure);
  CHECK(calls >= 3);
  CHECK(calls < 50000);  // the failure is noticed when the task runs
}
