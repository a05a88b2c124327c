// The solver of multi-layer SSOR: iterates, residuals, ends and counts of sweeps, however the grid is cut.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "algorithms/relaxation/mlssor.hpp"
#include "mlssor_twin.hpp"
#include "relaxation_solves.hpp"

using namespace asterism;
using namespace asterism::relaxation;
using namespace asterism::test;

namespace {

template <class T>
using MultiLayerRun = Run<T, relaxation::mlssor::Settings>;

template <class T>
MultiLayerRun<T> run_multi_layer(Runtime& runtime, const Problem& problem,
                                 const relaxation::mlssor::Settings& settings, const std::vector<T>& f,
                                 const std::vector<T>& guess) {
  return test::run<T, relaxation::mlssor::Solver, relaxation::mlssor::Settings>(runtime, problem, settings, f,
                                                                                guess);
}

/// Sides of all sorts.
Problem some_problem(Index m, Index n) {
  Problem p{.shape = {m, n}, .lengths = {1, 1.5}};
  p.y_lower.value = 0.75;
  p.y_upper.values = random_numbers<double>(n, 21);
  p.x_lower.values = random_numbers<double>(m, 22);
  p.x_upper.value = -1.25;
  return p;
}

/// The iterate after some sweeps by definition.
template <class T>
std::vector<T> twin_solution(const Problem& p, const relaxation::mlssor::Settings& s, const std::vector<T>& f,
                             const std::vector<T>& guess) {
  const Index m = p.shape[0], n = p.shape[1];
  const Discretisation a = discretise_five_point(m, n, p.lengths[0], p.lengths[1]);
  Grid<T> grid(m, n);
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) {
      grid.v[grid.place(i, j)] = guess[at(i * n + j)];
      if (!f.empty())
        grid.g[grid.place(i, j)] = static_cast<T>(-static_cast<double>(f[at(i * n + j)]) / a.diagonal);
    }
  for (Index j = 0; j < n; ++j) {
    grid.v[grid.place(-1, j)] = static_cast<T>(relaxation::value_at(p.y_lower, j));
    grid.v[grid.place(m, j)] = static_cast<T>(relaxation::value_at(p.y_upper, j));
  }
  for (Index i = 0; i < m; ++i) {
    grid.v[grid.place(i, -1)] = static_cast<T>(relaxation::value_at(p.x_lower, i));
    grid.v[grid.place(i, n)] = static_cast<T>(relaxation::value_at(p.x_upper, i));
  }
  std::mt19937_64 engine(1);
  const Index layers = s.layers > 0 ? s.layers : most_layers(s.subdomain);
  MultiLayerTwin<T> twin(grid, s.subdomain, layers, a.weights<T>(),
                         static_cast<T>(s.omega.value_or(a.optimal_omega())));
  for (Index k = 0; k * layers < s.sweeps; ++k)
    twin.sweep(s.alternate && k % 2 == 1 ? Direction::backward : Direction::forward, engine);
  std::vector<T> result;
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) result.push_back(grid.v[grid.place(i, j)]);
  return result;
}

/// By how much GPUs, which round once where CPUs round twice, may differ after some sweeps: numbers are
/// about 1.
template <class T>
double leeway(const Runtime& runtime, Index sweeps) {
  if (runtime.machine().count(WorkerKind::cuda) == 0) return 0;
  return 8.0 * static_cast<double>(sweeps) * eps<T>;
}

}  // namespace

TEST_CASE_TEMPLATE("the solver's iterates do not depend on stripes, workers and ranks", T, float, double) {
  Runtime runtime;
  struct Shape {
    Index m, n, subdomain, layers;
    std::vector<Index> stripes;
  };
  for (const Shape& c : std::vector<Shape>{{1, 1, 16, 0, {0, 1}},
                                           {3, 40, 4, 0, {0}},
                                           {17, 5, 16, 0, {0, 1}},
                                           {37, 29, 4, 0, {0, 1, 2, 5, 9}},
                                           {37, 29, 4, 1, {3}},
                                           {67, 43, 7, 0, {0, 2, 9}},
                                           {67, 43, 8, 3, {8}},
                                           {2, 9, 2, 0, {1}},
                                           {23, 9, 2, 0, {0, 11}},
                                           {100, 35, 16, 0, {2, 3, 6}}})
    for (const auto& [alternate, has_source] : {std::pair{true, true}, {false, true}, {true, false}}) {
      const Problem problem = some_problem(c.m, c.n);
      const std::vector<T> guess = random_numbers<T>(c.m * c.n, 31);
      std::vector<T> f;
      if (has_source) f = random_numbers<T>(c.m * c.n, 32);
      for (T& number : f) number *= 100;
      relaxation::mlssor::Settings settings{
          .subdomain = c.subdomain, .layers = c.layers, .alternate = alternate};
      settings.omega = 1.5;
      const Index layers = c.layers > 0 ? c.layers : most_layers(c.subdomain);
      for (const Index times : {2, 5}) {
        settings.sweeps = times * layers;
        const std::vector<T> expected = twin_solution(problem, settings, f, guess);
        for (const Index stripes : c.stripes) {
          settings.stripes = stripes;
          const MultiLayerRun<T> found = run_multi_layer(runtime, problem, settings, f, guess);
          CAPTURE(stripes);
          CAPTURE(times);
          INFO((Case{c.m, c.n, c.subdomain, layers}));
          CHECK(found.report.reason == Reason::solved);
          CHECK(found.report.iterations == settings.sweeps);
          CHECK(static_cast<Index>(found.shares.size()) == found.settings.stripes);
          REQUIRE(largest_difference(found.u, expected) <= leeway<T>(runtime, settings.sweeps));
        }
      }
    }
}

TEST_CASE("residuals are [Czapinski 2014] (4.13), and the tolerance ends the sweeps") {
  Runtime runtime;
  const Index m = 45, n = 38;
  const Problem problem = some_problem(m, n);
  const std::vector<double> f = random_numbers<double>(m * n, 1), guess = random_numbers<double>(m * n, 2);
  for (const Index stripes : {1, 3}) {
    relaxation::mlssor::Settings settings{
        .subdomain = 8, .tolerance = 1e-9, .check_every = 8, .stripes = stripes};
    const MultiLayerRun<double> found = run_multi_layer(runtime, problem, settings, f, guess);
    CHECK(found.report.reason == Reason::solved);
    CHECK(found.report.residual_history.back() <= 1e-9);
    CHECK(found.report.iterations == 8 * (static_cast<Index>(found.report.residual_history.size()) - 1));

    // The equations at every node of the result, in the differential equation's own terms.
    const double hy = 1.0 / (m + 1), hx = 1.5 / (n + 1);
    double r2 = 0, u2 = 0, b2 = 0;
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j) {
        double b = f[at(i * n + j)], a = 0;
        const auto take = [&](Index r, Index c, double weight) {
          if (r < 0 || r >= m || c < 0 || c >= n)
            b -= weight * (r < 0    ? relaxation::value_at(problem.y_lower, c)
                           : r >= m ? relaxation::value_at(problem.y_upper, c)
                           : c < 0  ? relaxation::value_at(problem.x_lower, r)
                                    : relaxation::value_at(problem.x_upper, r));
          else
            a += weight * found.u[at(r * n + c)];
        };
        for (const Index step : {-1, 1}) {
          take(i + step, j, 1 / (hy * hy));
          take(i, j + step, 1 / (hx * hx));
        }
        take(i, j, -2 / (hy * hy) - 2 / (hx * hx));
        r2 += (b - a) * (b - a);
        b2 += b * b;
        u2 += found.u[at(i * n + j)] * found.u[at(i * n + j)];
      }
    const double norm = 4 / (hy * hy) + 4 / (hx * hx);
    const double scaled = std::sqrt(r2) / (norm * std::sqrt(u2) + std::sqrt(b2));
    CHECK(scaled == doctest::Approx(found.report.residual_history.back()).epsilon(1e-3));
  }
}

TEST_CASE("the scale of the problem is of no account") {
  Runtime runtime;
  const auto solve = [&]<class T>(const Problem& p, const std::vector<T>& f, const std::vector<T>& guess) {
    return run_multi_layer<T>(runtime, p,
                              {.subdomain = 4, .tolerance = 1e-5, .check_every = 10, .stripes = 2}, f, guess);
  };
  check_scaling<double>(some_problem(19, 14), {-900, -600, 600, 900}, solve);
  check_scaling<float>(some_problem(19, 14), {-80, 80}, solve);
}

TEST_CASE("ends other than the tolerance") {
  Runtime runtime;
  const Problem problem{.shape = {40, 40}, .lengths = {1, 1}};
  const std::vector<double> f(1600, 1.0), guess(1600, 0.0);
  relaxation::mlssor::Settings settings{.subdomain = 8, .sweeps = 10, .tolerance = 1e-10};
  MultiLayerRun<double> found = run_multi_layer(runtime, problem, settings, f, guess);
  CHECK(found.report.reason == Reason::iteration_limit);
  CHECK(found.report.iterations == 12);  // whole sweeps of 4 layers

  std::vector<double> infinite = f;
  infinite[77] = std::numeric_limits<double>::infinity();
  found = run_multi_layer(runtime, problem, settings, infinite, guess);
  CHECK(found.report.reason == Reason::not_finite);

  settings = {.subdomain = 8, .tolerance = 1e-30, .stripes = 1};
  found = run_multi_layer(runtime, {.shape = {20, 20}, .lengths = {1, 1}}, settings,
                          std::vector<double>(400, 1.0), std::vector<double>(400, 0.0));
  CHECK(found.report.reason == Reason::stagnation);

  // The solution itself as the first guess.
  found = run_multi_layer(runtime, problem, {.tolerance = 1e-6}, std::vector<double>(1600, 0.0), guess);
  CHECK(found.report.reason == Reason::solved);
  CHECK(found.report.iterations == 0);
}

TEST_CASE("what cannot be is refused") {
  Runtime runtime;
  const Problem problem{.shape = {40, 40}};
  const auto refused = [&](relaxation::mlssor::Settings settings, const char* message) {
    if (settings.sweeps == 0) settings.sweeps = 10;
    CHECK_THROWS_WITH_AS((relaxation::mlssor::Solver<double>(runtime, problem, settings)), message, Error);
  };
  refused({.subdomain = 1}, "a subdomain of 1 x 1 nodes (--subdomain): it must have at least 2 x 2");
  refused({.subdomain = 8, .layers = 5},
          "5 layers (--layers): subdomains of 8 nodes (--subdomain) allow 1 to 4");
  refused({.subdomain = 8, .stripes = 6},
          "6 stripes: 40 rows are 5 whole rows of subdomains of 8, and a stripe needs one; ask for at most 5 (--stripes)");
  refused({.omega = 2.0}, "omega is 2: SOR converges for 0 < omega < 2 only");
  CHECK_THROWS_AS((relaxation::mlssor::Solver<double>(runtime, problem, {})), Error);
  CHECK_THROWS_AS((relaxation::mlssor::Solver<double>(runtime, {.shape = {0, 4}}, {.sweeps = 1})), Error);
}

namespace {

/// A rank's workers, of unknown speed.
std::vector<relaxation::mlssor::Candidate> workers_of(int rank, int gpus, int cores) {
  std::vector<relaxation::mlssor::Candidate> workers;
  for (int k = 0; k < gpus; ++k)
    workers.push_back({.rank = rank, .where = Where::cuda, .worker = k, .memory = 141e9});
  for (int k = 0; k < cores; ++k) workers.push_back({.rank = rank, .where = Where::cpu, .worker = k});
  return workers;
}

Index count(const std::vector<relaxation::mlssor::Share>& shares, Where where) {
  return std::count_if(shares.begin(), shares.end(),
                       [&](const relaxation::mlssor::Share& share) { return share.where == where; });
}

}  // namespace

TEST_CASE("who takes part: GPUs, the cores of ranks without; and a rank that has nobody is named") {
  std::vector<relaxation::mlssor::Candidate> all = workers_of(0, 2, 4);
  for (const relaxation::mlssor::Candidate& worker : workers_of(1, 0, 3)) all.push_back(worker);
  const std::vector<relaxation::mlssor::Candidate> some = relaxation::mlssor::choose_workers(all, 2, 16);
  REQUIRE(some.size() == 5);
  CHECK(some[1].where == Where::cuda);
  CHECK(some[2].where == Where::cpu);
  CHECK(some[2].rank == 1);
  const Index large = 2 * cuda::largest_subdomain;
  CHECK(relaxation::mlssor::choose_workers(all, 2, large).size() == 7);  // on cores
  // Every rank knows of all workers, and refuses.
  all = workers_of(0, 0, 4);
  for (const relaxation::mlssor::Candidate& worker : workers_of(1, 2, 0)) all.push_back(worker);
  CHECK(relaxation::mlssor::choose_workers(all, 2, 16).size() == 6);
  CHECK_THROWS_AS(relaxation::mlssor::choose_workers(all, 2, large), Error);
}

TEST_CASE("the stripes: whole subdomains, in proportion, of some size and not beyond memory") {
  const auto cut = [](const std::vector<relaxation::mlssor::Candidate>& workers, Index rows, Index columns,
                      Index stripes = 0) {
    return relaxation::mlssor::cut_rows<double>(workers, {.shape = {rows, columns}},
                                                {.subdomain = 16, .layers = 8, .stripes = stripes});
  };
  // Two GPUs share a grid that is worth it.
  CHECK(cut(workers_of(0, 2, 0), 512, 512).size() == 1);
  CHECK(cut(workers_of(0, 2, 0), 4096, 4096).size() == 2);
  CHECK(cut(workers_of(0, 0, 4), 64, 64).size() == 1);
  CHECK(cut(workers_of(0, 0, 4), 1024, 1024).size() == 4);
  CHECK(cut(workers_of(0, 0, 4), 64, 64, 4).size() == 4);
  // 16 cores of a rank without GPUs beside a GPU.
  std::vector<relaxation::mlssor::Candidate> ranks = workers_of(0, 1, 0);
  for (const relaxation::mlssor::Candidate& worker : workers_of(1, 0, 16)) ranks.push_back(worker);
  const auto unequal = cut(ranks, 32768 + 5, 1024);
  REQUIRE(unequal.size() == 17);
  CHECK(unequal[0].rows == doctest::Approx(32768 * 200.0 / 216).epsilon(0.01));
  Index next = 0;
  for (const relaxation::mlssor::Share& share : unequal) {
    CHECK(share.first_row == next);
    CHECK(share.first_row % 16 == 0);
    next += share.rows;
  }
  CHECK(next == 32768 + 5);
  // 5 x 65536^2 x 8 bytes are 172e9, and tiles have up to 2^32 - 1 elements.
  const auto large = cut(workers_of(0, 1, 0), 65536, 65536);
  CHECK(large.size() == 2);
  CHECK(count(large, Where::cuda) == 2);
  CHECK(cut(workers_of(0, 0, 1), 65536, 65536).size() == 2);
  std::vector<relaxation::mlssor::Candidate> little = workers_of(0, 1, 0);
  little[0].memory = 1e6;
  CHECK_THROWS_AS(cut(little, 65536, 65536), Error);
}

// Table II of the paper, on a smaller grid: sweeps with alternating directions, and in one.
TEST_CASE("fewer sweeps with alternation than without, fewer with larger subdomains, fewest without any") {
  Runtime runtime;
  const Index n = 96;
  const Problem problem{.shape = {n, n}, .lengths = {1, 1}};
  const double best = discretise_five_point(n, n, 1, 1).optimal_omega();
  const std::vector<double> f(at(n * n), -1.0), guess(at(n * n), 0.0);
  const auto sweeps = [&](Index subdomain, Index layers, bool alternate) {
    relaxation::mlssor::Settings settings{.subdomain = subdomain, .layers = layers, .alternate = alternate};
    settings.omega = 2 - 2 * (2 - best);
    settings.tolerance = 1e-6;
    settings.sweeps = 3000;
    settings.check_every = 16;
    settings.stripes = 1;  // few tasks
    const Report report = run_multi_layer(runtime, problem, settings, f, guess).report;
    const auto& history = report.residual_history;
    const auto reached = std::find_if(history.begin(), history.end(), [](double r) { return r <= 1e-6; });
    return 16 * (reached - history.begin());
  };
  const auto ssor = sweeps(2 * n, 16, true);
  std::ptrdiff_t before = 3000;
  for (const Index subdomain : {4, 8, 16, 32}) {
    const auto alternating = sweeps(subdomain, 0, true), forward = sweeps(subdomain, 0, false);
    CAPTURE(subdomain);
    CHECK(alternating < forward);
    CHECK(alternating < before);
    CHECK(alternating > ssor);
    before = alternating;
  }
}
