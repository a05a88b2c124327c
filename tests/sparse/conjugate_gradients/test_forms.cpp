// Conjugate gradients. Forms of an iteration with fewer reductions: the same bits in every division, the iterations of the other.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "cases.hpp"

namespace asterism::test {

TEST_CASE("one reduction an iteration: the same bits in every division, as many iterations as with two" *
          doctest::skip(shape_is("gpu"))) {  // a single block
  Runtime runtime;
  const bool unlike = ranks_have_gpus();
  for (const char* name : models({"poisson2d:40x33", "ecology-like:30x30", "circuit-like:200"})) {
    const Csr<double> a = model(name);
    const std::vector<double> b = row_sums(a);
    for (const sparse::Reductions form : forms())
      for (const char* preconditioner : {"none", "diagonal", "mc-sgs"}) {
        if (form == sparse::Reductions::two) continue;
        CAPTURE(name);
        CAPTURE(static_cast<int>(form));
        CAPTURE(preconditioner);
        const auto by = [&](sparse::Reductions reductions, Index blocks, Rows rows, Index most = 0) {
          LinearSettings settings = with(preconditioner, blocks);
          settings.reductions = reductions;
          settings.max_iterations = most;
          return solve<double>(runtime, a, b, settings, rows);
        };
        if (runtime.ranks() == 1 || unlike) {  // on more the same iterates are shown below
          const LinearSolution<double> two = by(sparse::Reductions::two, 2, Rows::shared);
          const LinearSolution<double> one = by(form, 2, Rows::shared);
          CHECK(one.facts.reductions == form);
          CHECK(one.report.reason == Reason::solved);
          CHECK(one.report.restarts == 0);
          CHECK(distance_from_ones(one.x) < 1e-3);
          CHECK(std::abs(one.report.iterations - two.report.iterations) <= 1 + two.report.iterations / 50);
          CHECK(one.x != two.x);  // it was another way
        }
        for (const Index steps :
             more_than_two_ranks() ? std::vector<Index>{17} : std::vector<Index>{1, 12, 17}) {
          const std::vector<double> x = by(form, 2, Rows::on_rank_0, steps).x;
          if (!unlike) {
            CHECK(by(form, 3, Rows::on_rank_0, steps).x == x);
            CHECK(by(form, 2, Rows::shared, steps).x == x);
          }
          const std::vector<double> by_two = by(sparse::Reductions::two, 2, Rows::shared, steps).x;
          CHECK(largest_difference(x, by_two) <=
                1e-9 * largest_difference(by_two, std::vector<double>(x.size())));
        }
      }
  }
}

TEST_CASE("the fastest of the forms is one of them, chosen by all ranks alike" *
          doctest::skip(more_than_two_ranks())) {
  Runtime runtime;
  const Csr<double> a = model("ecology-like:20x21");
  LinearSettings settings = with("diagonal", 2);
  settings.reductions = sparse::Reductions::fastest;
  const auto solved = solve<double>(runtime, a, row_sums(a), settings);
  CHECK(solved.report.reason == Reason::solved);
  CHECK(distance_from_ones(solved.x) < 1e-3);
  REQUIRE(solved.facts.reductions);
  CHECK(solved.facts.reductions != sparse::Reductions::fastest);
  const auto choices = gather(runtime, *solved.facts.reductions);
  CHECK(std::ranges::all_of(choices, [&](auto choice) { return choice == choices.front(); }));
  if (!shape_is("gpu")) CHECK(solved.facts.seconds.at("try") > 0);  // one task on all GPUs has one form
  settings.reductions = *solved.facts.reductions;                   // as it would be if it had been asked for
  CHECK(solve<double>(runtime, a, row_sums(a), settings).x == solved.x);
}

}  // namespace asterism::test
