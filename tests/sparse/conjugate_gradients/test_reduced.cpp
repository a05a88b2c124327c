// Conjugate gradients. Of two colours one is eliminated: what is left is iterated on, formed or not.
#include <doctest/doctest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "../columns_together.hpp"
#include "cases.hpp"

namespace asterism::test {

TEST_CASE("of two colours half of the rows are iterated on, in every division with the same bits") {
  Runtime runtime;
  const Csr<double> a = model("ecology-like:31x27");
  const std::vector<double> b = scattered(a.total_rows);
  LinearSettings refreshed = with("mc-ilu0", 2);
  refreshed.values = sparse::Values::refreshed;
  const auto whole = solve<double>(runtime, a, b, refreshed);
  CHECK(whole.facts.preconditioner.reduced_rows == 0);
  const bool has_gpu = shape_is("gpu") || ranks_have_gpus();
  std::optional<LinearSolution<double>> first;
  struct Division {
    Rows rows;
    Index blocks;
    const char* preconditioner = "mc-ilu0";
  };
  std::vector<Division> divisions{{Rows::shared, 2}, {Rows::unequal, 3}};
  if (!left_out_when_sanitized(runtime.ranks() > 1))
    divisions.insert(divisions.end(), {{Rows::shared, 1}, {Rows::unequal, 1}, {Rows::on_rank_0, 2}});
  if (!has_gpu) divisions.push_back({Rows::shared, 2, "auto"});  // of so few rows it is the diagonal there
  for (const auto& [rows, blocks, preconditioner] : divisions) {
    CAPTURE(preconditioner);
    CAPTURE(blocks);
    const auto solved = solve<double>(runtime, a, b, with(preconditioner, blocks), rows);
    CHECK(solved.report.reason == Reason::solved);
    CHECK(solved.report.true_residual <= 1.1e-8);
    CHECK(solved.facts.preconditioner.reduced_rows == a.total_rows / 2);
    CHECK(to_string(solved.facts.preconditioner.choice) == "mc-ilu0");
    if (!first) first = solved;
    // As above: one block on a GPU, and ranks with and without one, add up in other ways.
    const bool alike = !ranks_have_gpus() && (blocks > 1 || !has_gpu);
    const Index iterations = first->report.iterations;
    CHECK(std::abs(solved.report.iterations - iterations) <= (alike ? 0 : iterations / 20));
    CHECK((alike ? solved.x == first->x : largest_difference(solved.x, first->x) < 1e-4));
  }
  // In exact arithmetic both make the same iterates; norms differ by the red residual before the first one.
  CHECK(std::abs(first->report.iterations - whole.report.iterations) <= 1 + whole.report.iterations / 20);
  CHECK(largest_difference(first->x, whole.x) < 1e-4);
}

TEST_CASE("a GPU keeps on its chip what a Schur complement consists of, where there is room" *
          doctest::skip(!shape_is("gpu"))) {
  Runtime runtime;
  struct Case {
    const char* name;
    bool is_kept;
  };
  // Blocks of rows whose neighbours they need all, some or none of; with and without room for all of the halo; last
  // blocks of a few rows; too wide; too large.
  for (const auto& [name, is_kept] : {Case{"ecology-like:40x40", true},
                                      {"ecology-like:101x99", true},
                                      {"ecology-like:255x256", true},
                                      {"ecology-like:301x300", true},
                                      {"ecology-like:700x701", true},
                                      {"ecology-like:999x1001", true},
                                      {"ecology-like:1000x1000", true},
                                      {"ecology-like:2000x300", true},
                                      {"ecology-like:20x20", false},
                                      {"ecology-like:30x333", true},
                                      {"ecology-like:333x30", false},
                                      {"ecology-like:1500x1500", false}}) {
    CAPTURE(name);
    const Csr<double> a = model(name);
    const std::vector<double> b = row_sums(a);
    LinearSettings settings = with("mc-ilu0");
    settings.tolerance = 1e-7;
    const auto kept = solve<double>(runtime, a, b, settings);
    CHECK((kept.facts.formats.front() == sparse::Format::schur) == is_kept);
    if (!is_kept) continue;
    CHECK(kept.report.reason == Reason::solved);
    CHECK(kept.report.true_residual <= 1.1e-7);
    CHECK(kept.facts.preconditioner.reduced_rows == a.total_rows / 2);
    settings.check_every = 7;  // sweeps begin in other places
    const auto again = solve<double>(runtime, a, b, settings);
    CHECK(again.x == kept.x);
    CHECK(again.report.iterations == kept.report.iterations);
    settings.format = sparse::Format::diagonals;
    const auto formed = solve<double>(runtime, a, b, settings);
    CHECK(formed.facts.formats.front() == sparse::Format::diagonals);
    CHECK(std::abs(formed.report.iterations - kept.report.iterations) <= 2 + kept.report.iterations / 100);
    CHECK(distance_from_ones(kept.x) <= 2 * distance_from_ones(formed.x) + 1e-9);
  }
  const Csr<double> a = model("ecology-like:123x77");
  LinearSettings settings = with("mc-ilu0");
  settings.max_iterations = 25;
  const auto stopped = solve<double>(runtime, a, row_sums(a), settings);
  CHECK(stopped.report.reason == Reason::iteration_limit);
  CHECK(stopped.report.iterations == 25);
  settings.max_iterations = 0;
  const auto in_float = solve<double, float>(runtime, a, row_sums(a), settings);
  CHECK(in_float.facts.formats.front() == sparse::Format::schur);
  CHECK(distance_from_ones(in_float.x) < 1e-4);
  // A first guess, and one right-hand side after the other.
  sparse::ConjugateGradients<double> solver(runtime, a, settings);
  const std::vector<double> b = row_sums(a);
  std::vector<double> x(b.size(), 1);
  CHECK(solver.solve(b.data(), x.data()).iterations == 0);
  check_columns_together(solver);
}

}  // namespace asterism::test
