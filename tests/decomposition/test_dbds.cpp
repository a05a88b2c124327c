// DBDS and DCG: their iterates are those of [Czapinski 2014] algorithms 7.1 to 7.3, on any ranks; they converge as figures
// 7.3, 7.5 and 7.6 show and as fast as rho says.
#include <doctest/doctest.h>

#include "../support/messages.hpp"
#include "../support/skip.hpp"
#include "subdomain_solves.hpp"

namespace asterism::test {
namespace {

using namespace decomposition;
using sparse::LinearSettings;

struct Problem {
  sparse::Csr<double> a;
  std::vector<double> b;
  explicit Problem(const std::string& name) : a(model(name)), b(scattered(a.total_rows)) {}
  [[nodiscard]] DenseVector right() const { return dense(b); }
};

LinearSettings exactly(Index iterations) {
  LinearSettings settings;
  settings.tolerance = 0;
  settings.max_iterations = iterations;
  return settings;
}

/// For what cannot differ between ranks, where the iterates do not: once is enough.
doctest::skip once() { return doctest::skip(!shape_is("cpu")); }

/// How often a residual is above the one before.
std::ptrdiff_t rises(const sparse::LinearReport& report) {
  std::ptrdiff_t count = 0;
  for (std::size_t k = 1; k < report.residual_history.size(); ++k)
    count += report.residual_history[k] > 1.001 * report.residual_history[k - 1] ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("DBDS' iterates are those of algorithm 7.2, by rows and by graph, with and without overlap") {
  Runtime runtime;
  for (const char* name : {"poisson2d:11x13", "convection2d:9x16"}) {
    const Problem problem(name);
    for (const Cut cut : {Cut::rows, Cut::graph})
      for (const Index overlap : {0, 2})
        for (const Index count : {1, 3, 8}) {
          if (cut == Cut::graph && count == 8 && overlap == 2) continue;
          CAPTURE(name);
          CAPTURE(static_cast<int>(cut));
          CAPTURE(overlap);
          CAPTURE(count);
          const SubdomainSettings subdomains{.count = count, .cut = cut, .overlap = overlap};
          SchwarzSettings schwarz{.subdomains = subdomains};
          if (std::string(name) != "poisson2d:11x13")
            schwarz.factors.matrix_class = sparse::MatrixClass::general;
          const auto found =
              solve_by_schwarz<Dbds<double>>(runtime, problem.a, problem.b, schwarz, exactly(4));
          CHECK(found.report.iterations == 4);
          CHECK(difference(found.x, twin_of_dbds(dense(problem.a), problem.right(),
                                                 cut_into_subdomains(problem.a, subdomains), 4)) < 1e-12);
        }
  }
}

TEST_CASE("DCG's iterates are those of algorithm 7.1") {
  Runtime runtime;
  const Problem problem("poisson2d:11x13");
  for (const Cut cut : {Cut::rows, Cut::graph})
    for (const Index overlap : {0, 2})
      for (const Index count : {1, 2, 5}) {
        CAPTURE(static_cast<int>(cut));
        CAPTURE(overlap);
        CAPTURE(count);
        const SubdomainSettings subdomains{.count = count, .cut = cut, .overlap = overlap};
        const auto found = solve_by_dcg(runtime, problem.a, problem.b, subdomains, exactly(12));
        CHECK(difference(found.x, twin_of_dcg(dense(problem.a), problem.right(),
                                              cut_into_subdomains(problem.a, subdomains), 12)) < 1e-9);
      }
}

TEST_CASE("figure 7.3: DBDS' residual falls smoothly, DCG's does not; with many subdomains they are alike" *
          once() * quick_enough()) {
  Runtime runtime;
  const Problem problem("poisson2d:24x24");
  LinearSettings settings;
  settings.tolerance = 1e-6;
  settings.check_every = 1;
  Index slowest = 0;
  for (const Index count : {4, 20}) {
    CAPTURE(count);
    const auto direct = solve_by_schwarz<Dbds<double>>(runtime, problem.a, problem.b,
                                                       {.subdomains = {.count = count}}, settings);
    const auto distributive = solve_by_dcg(runtime, problem.a, problem.b, {.count = count}, settings);
    CHECK(direct.report.reason == Reason::solved);
    CHECK(distributive.report.reason == Reason::solved);
    CHECK(rises(direct.report) == 0);
    CHECK(direct.report.iterations > 3 * slowest);  // both get slower
    slowest = direct.report.iterations;
    if (count == 4)
      CHECK(rises(distributive.report) > 5);
    else
      CHECK(std::abs(distributive.report.iterations - slowest) < slowest / 20);
  }
}

TEST_CASE("figure 7.5: overlap brings DBDS near the iterations of conjugate gradients, DCG gains little" *
          once() * quick_enough()) {
  Runtime runtime;
  const Problem problem("poisson2d:64x64");
  const Index cg =
      solve<double>(runtime, problem.a, problem.b, {.preconditioner = sparse::parse_preconditioner("none")})
          .report.iterations;
  Index before = 10'000;
  for (const Index overlap : {0, 64, 256}) {
    CAPTURE(overlap);
    const auto found = solve_by_schwarz<Dbds<double>>(runtime, problem.a, problem.b,
                                                      {.subdomains = {.count = 4, .overlap = overlap}});
    CHECK(found.report.reason == Reason::solved);
    CHECK(2 * found.report.iterations < before);
    before = found.report.iterations;
  }
  CHECK(before <= cg);
  const auto distributive = [&](Index overlap) {
    return solve_by_dcg(runtime, problem.a, problem.b, {.count = 4, .overlap = overlap}, {})
        .report.iterations;
  };
  CHECK(2 * distributive(256) > distributive(0));
}

TEST_CASE(
    "figure 7.6: mixed precision reaches the residual of f64 in as many iterations; f32 alone does not" *
    once()) {
  Runtime runtime;
  const Problem problem("poisson2d:40x40");
  const SchwarzSettings schwarz{.subdomains = {.count = 5, .overlap = 160}};
  LinearSettings settings;
  settings.tolerance = 1e-12;
  const auto in_double = solve_by_schwarz<Dbds<double>>(runtime, problem.a, problem.b, schwarz, settings);
  const auto mixed = solve_by_schwarz<Dbds<double>, float>(runtime, problem.a, problem.b, schwarz, settings);
  CHECK(in_double.report.reason == Reason::solved);
  CHECK(mixed.report.reason == Reason::solved);
  CHECK(mixed.report.true_residual <= 1.1e-12);
  CHECK(std::abs(mixed.report.iterations - in_double.report.iterations) <= 2);
  const auto mine = rows_of_this_rank<float>(runtime, problem.a);
  Dbds<float> single(runtime, mine, settings, std::make_shared<Schwarz<float>>(runtime, mine, schwarz));
  const auto in_single = solve_from_zero<Dbds<float>, float>(runtime, single, problem.b);
  CHECK(in_single.report.reason != Reason::solved);
  CHECK(in_single.report.true_residual < 1e-4);
}

TEST_CASE("rho: (7.35) for a line in each subdomain, and the rate that is observed") {
  Runtime runtime;
  for (const Index n : {8, 16}) {
    if (left_out_when_sanitized(n == 16)) continue;
    CAPTURE(n);
    const Problem problem("poisson2d:" + std::to_string(n) + "x" + std::to_string(n));
    const double known = 2 / (2 - std::cos(std::acos(-1.0) / static_cast<double>(n + 1))) - 1;
    const auto mine = rows_of_this_rank(runtime, problem.a);
    const auto schwarz =
        std::make_shared<Schwarz<double>>(runtime, mine, SchwarzSettings{.subdomains = {.count = n}});
    LinearSettings settings = exactly(40 * n);
    settings.check_every = 1;
    Dbds<double> solver(runtime, mine, settings, schwarz);
    const auto found = solve_from_zero(runtime, solver, problem.b);
    const auto& history = found.report.residual_history;
    const auto& at = found.report.residual_iterations;
    const std::size_t last = 10 * static_cast<std::size_t>(n);
    REQUIRE(history.size() > last);
    const double rate =
        std::pow(history[last] / history[last / 2], 1.0 / static_cast<double>(at[last] - at[last / 2]));
    CHECK(std::abs(rate - known) < 1e-3);
    const double rho = solver.spectral_radius(problem.b.data() + solver.first_row(), 1e-6, 20'000);
    CHECK(std::abs(rho - known) < 1e-5);
  }
}

TEST_CASE("factors are kept for further right-hand sides, and a first guess is used") {
  Runtime runtime;
  const Problem problem("triangulation-like:20x20");
  const auto mine = rows_of_this_rank(runtime, problem.a);
  Dbds<double> solver(runtime, mine, {},
                      std::make_shared<Schwarz<double>>(
                          runtime, mine, SchwarzSettings{.subdomains = {.count = 4, .overlap = 40}}));
  const auto rows = static_cast<std::size_t>(solver.row_count());
  const auto first = problem.b.begin() + solver.first_row();
  std::vector<double> b, x(2 * rows);
  for (std::size_t i = 0; i < rows; ++i) {
    b.push_back(first[static_cast<std::ptrdiff_t>(i)]);
    b.push_back(1);
  }
  for (const sparse::LinearReport& report : solver.solve(b.data(), x.data(), 2)) {
    CHECK(report.reason == Reason::solved);
    CHECK(report.true_residual <= 1.1e-8);
    CHECK(report.iterations > 2);
  }
  for (const sparse::LinearReport& report : solver.solve(b.data(), x.data(), 2))
    CHECK(report.iterations == 0);
}

TEST_CASE("other values need a new solver") {
  Runtime runtime;
  const Problem problem("poisson2d:8x8");
  const auto mine = rows_of_this_rank(runtime, problem.a);
  Dbds<double> solver(runtime, mine, {}, std::make_shared<Schwarz<double>>(runtime, mine, SchwarzSettings{}));
  message_has(message_of([&] { solver.refresh(mine); }), {"of another family", "set up a solver anew"});
}

}  // namespace asterism::test
