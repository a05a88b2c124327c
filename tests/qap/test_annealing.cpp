// Walks at a temperature against the textbook's: every change from scratch.

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "../support/skip.hpp"
#include "codelets/qap/annealing.hpp"
#include "task_walks.hpp"

using namespace asterism;
using namespace asterism::test;

namespace {

Walk textbook(const Problem& problem, std::uint64_t stream, const Permutation& start, double temperature,
              Index iterations) {
  Walk walk{start, start, cost_of(problem, start), cost_of(problem, start), 0, 0};
  while (walk.iterations < iterations) {
    const Proposal move = proposal(stream, walk.iterations++, problem.n, minus_logs().of);
    const Cost delta =
        swap_delta(problem.n, problem.d.data(), problem.f.data(), walk.p.data(), move.r, move.s);
    if (!accepts(delta, temperature, move.minus_log)) continue;
    walk.p = swapped(walk.p, move.r, move.s);
    walk.cost += delta;
    if (walk.cost >= walk.best_cost) continue;
    walk.best_cost = walk.cost;
    walk.best = walk.p;
    walk.best_iteration = walk.iterations;
  }
  return walk;
}

template <class E>
void check_walks(Runtime& runtime, const Problem& problem, Where where) {
  for (const double temperature : {0.01, 3.0, 1e9}) {
    CAPTURE(problem.n);
    CAPTURE(temperature);
    const auto starts = some_starts(problem.n, 2);
    TaskWalks<E> tasks(runtime, problem, {TabuRule::pair, 0, 0}, starts, where, temperature);
    for (const Index iterations : {700, 1, 299})
      tasks.go(iterations, std::numeric_limits<Cost>::min(), qap::codelets::anneal<E>());
    const auto found = tasks.walks();
    for (std::size_t k = 0; k < starts.size(); ++k)
      CHECK(found[k] == textbook(problem, k, starts[k], temperature, 1000));
  }
}

void check_all(Runtime& runtime, Where where) {
  for (const Kind kind : {Kind::symmetric, Kind::asymmetric})
    for (const Index n : {2, 3, 9, 34}) {
      check_walks<std::int16_t>(runtime, random_problem(n, kind, Diagonals::zero, 0, 5), where);
      check_walks<std::int32_t>(runtime, random_problem(n, kind, Diagonals::any, -300, 999), where);
      check_walks<std::int64_t>(runtime, random_problem(n, kind, Diagonals::even, 0, 5000000), where);
    }
}

}  // namespace

TEST_CASE("walks at a temperature are the textbook's, move by move" * doctest::skip(shape_is("gpu"))) {
  Runtime runtime(one_core());
  check_all(runtime, Where::cpu);
}

TEST_CASE("gpu: walks at a temperature are the textbook's, move by move") {
  Runtime runtime;
  check_all(runtime, Where::cuda);
}

TEST_CASE("proposals are moves, each as likely as any other" * doctest::skip(shape_is("gpu"))) {
  for (const Index n : {2, 3, 7}) {
    std::vector<int> counts(static_cast<std::size_t>(n * n));
    const Index moves = n * (n - 1) / 2, each = 2000;
    double sum = 0;
    for (Index i = 0; i < moves * each; ++i) {
      const Proposal move = proposal(11, i, n, minus_logs().of);
      REQUIRE(move.r >= 0);
      REQUIRE(move.r < move.s);
      REQUIRE(move.s < n);
      ++counts[static_cast<std::size_t>(move.r * n + move.s)];
      sum += move.minus_log;
    }
    for (Index r = 0; r < n; ++r)
      for (Index s = r + 1; s < n; ++s)
        CHECK(std::abs(counts[static_cast<std::size_t>(r * n + s)] - each) <
              250);  // more than five deviations
    // -ln of an even random number is 1 on average.
    CHECK(std::abs(sum / static_cast<double>(moves * each) - 1) < 0.12);
  }
}
