// Tabu walks of tasks against the textbook's: every change from scratch, every tenure in a table.

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "../support/messages.hpp"
#include "../support/skip.hpp"
#include "codelets/qap/annealing.hpp"
#include "codelets/qap/moves.hpp"
#include "task_walks.hpp"

using namespace asterism;
using namespace asterism::test;

namespace {

/// One after the other: all moves, the first of the least that are allowed.
class TextbookWalk {
 public:
  TextbookWalk(const Problem& problem, const Tenures& tenures, std::uint64_t stream, const Permutation& start)
      : problem_(problem),
        tenures_(tenures),
        until_(static_cast<std::size_t>(problem.n * problem.n)),
        walk_{start, start, cost_of(problem, start), cost_of(problem, start), 0, 0} {
    head_.least_tenure = tenures.least;
    head_.most_tenure = tenures.most;
    head_.stream = stream;
  }

  void step() {
    const Index n = problem_.n;
    Cost least = std::numeric_limits<Cost>::max();
    Index u = -1, v = -1;
    for (Index r = 0; r < n; ++r)
      for (Index s = r + 1; s < n; ++s) {
        const Cost delta = swap_delta(n, problem_.d.data(), problem_.f.data(), walk_.p.data(), r, s);
        const bool allowed = !is_tabu(r, s) || walk_.cost + delta < walk_.best_cost;
        if (!allowed || delta >= least) continue;
        least = delta;
        u = r;
        v = s;
      }
    REQUIRE(u >= 0);
    const TabuEntry entry =
        entry_of(head_, walk_.iterations, static_cast<std::int32_t>(u), static_cast<std::int32_t>(v), 0, 0);
    if (tenures_.rule == TabuRule::pair) {
      until(u, v) = entry.until_r;
    } else {
      until(u, at(u)) = entry.until_r;
      until(v, at(v)) = entry.until_s;
    }
    walk_.p = swapped(walk_.p, u, v);
    walk_.cost += least;
    ++walk_.iterations;
    if (walk_.cost >= walk_.best_cost) return;
    walk_.best_cost = walk_.cost;
    walk_.best = walk_.p;
    walk_.best_iteration = walk_.iterations;
  }
  [[nodiscard]] const Walk& walk() const { return walk_; }

 private:
  Index& until(Index i, Index j) { return until_[static_cast<std::size_t>(i * problem_.n + j)]; }
  [[nodiscard]] Index at(Index i) const { return walk_.p[static_cast<std::size_t>(i)]; }
  bool is_tabu(Index r, Index s) {
    const Index now = walk_.iterations;
    if (tenures_.rule == TabuRule::pair) return until(r, s) > now;
    return until(r, at(s)) > now && until(s, at(r)) > now;
  }

  const Problem& problem_;
  const Tenures tenures_;
  std::vector<Index> until_;
  WalkHead head_{};
  Walk walk_;
};

const std::initializer_list<Tenures> all_tenures = {{TabuRule::pair, 0, 0},
                                                    {TabuRule::pair, 5, 5},
                                                    {TabuRule::pair, 2, 9},
                                                    {TabuRule::assignment, 6, 6},
                                                    {TabuRule::assignment, 3, 12}};

template <class E>
void check_against_textbook(Runtime& runtime, const Problem& problem, Where where) {
  for (const Tenures& tenures : all_tenures) {
    if (4 * tenures.most > problem.n * (problem.n - 1)) continue;  // all moves might be tabu
    CAPTURE(problem.n);
    CAPTURE(static_cast<int>(tenures.rule));
    CAPTURE(tenures.most);
    const auto starts = some_starts(problem.n, 2);
    TaskWalks<E> tasks(runtime, problem, tenures, starts, where);
    tasks.go(17);
    tasks.go(0);
    tasks.go(23);  // goes on where the first ended
    const auto found = tasks.walks();
    for (std::size_t k = 0; k < starts.size(); ++k) {
      TextbookWalk expected(problem, tenures, k, starts[k]);
      for (int i = 0; i < 40; ++i) expected.step();
      CHECK(found[k] == expected.walk());
    }
  }
}

void check_all(Runtime& runtime, Where where, std::initializer_list<Index> sizes) {
  for (const Kind kind : kinds)
    for (const Index n : sizes) {
      if (left_out_when_sanitized(n > 17)) continue;
      check_against_textbook<std::int16_t>(runtime, random_problem(n, kind, Diagonals::zero, 0, 5), where);
      check_against_textbook<std::int32_t>(runtime, random_problem(n, kind, Diagonals::any, -300, 999),
                                           where);
      check_against_textbook<std::int64_t>(runtime, random_problem(n, kind, Diagonals::even, 0, 5000000),
                                           where);
    }
}

void check_stopped(Runtime& runtime, Where where) {
  const Problem problem = random_problem(12, Kind::symmetric, Diagonals::zero, 0, 9);
  TaskWalks<std::int16_t> tasks(runtime, problem, {TabuRule::pair, 5, 5}, some_starts(12, 3), where, 1.0);
  const std::vector<Walk> begun = tasks.walks();
  *tasks.stop = true;
  tasks.go(20);
  tasks.go(20, std::numeric_limits<Cost>::min(), qap::codelets::anneal<std::int16_t>());
  CHECK(tasks.walks() == begun);
}

template <class E>
void check_against_core(Runtime& runtime, const Problem& problem) {
  const Index n = problem.n;
  CAPTURE(n);
  CAPTURE(sizeof(E));
  const Tenures tenures{TabuRule::assignment, n, 2 * n};
  TaskWalks<E> on_core(runtime, problem, tenures, some_starts(n, 4), Where::cpu),
      on_gpu(runtime, problem, tenures, some_starts(n, 4), Where::cuda);
  on_core.go(300);
  on_gpu.go(300);
  CHECK(on_gpu.walks() == on_core.walks());
}

}  // namespace

TEST_CASE("tabu walks are the textbook's, move by move" * doctest::skip(shape_is("gpu"))) {
  Runtime runtime(one_core());
  check_all(runtime, Where::cpu, {2, 3, 5, 8, 17, 33});
}

TEST_CASE("gpu: tabu walks are the textbook's, move by move") {
  Runtime runtime;
  check_all(runtime, Where::cuda, {2, 3, 5, 8, 17, 33});
}

TEST_CASE("gpu: walks are a core's bit by bit, in shared memory and beyond it") {
  Runtime runtime;
  for (const Kind kind : {Kind::symmetric, Kind::asymmetric})
    for (const Index n : {64, 100, 131, 257, 300}) {
      check_against_core<std::int16_t>(runtime, random_problem(n, kind, Diagonals::zero, 0, 1));
      check_against_core<std::int32_t>(runtime, random_problem(n, kind, Diagonals::zero, 0, 9));
    }
}

TEST_CASE("gpu: a tabu list for which shared memory is too small") {
  Runtime runtime;
  const Problem problem = random_problem(5, Kind::symmetric, Diagonals::zero, 0, 9);
  TaskWalks<std::int16_t> walks(runtime, problem, {TabuRule::pair, 100000, 100000}, some_starts(5, 1),
                                Where::cuda);
  std::string reason;
  try {
    walks.go(1);
    runtime.wait();
  } catch (const TaskFailure& failure) {
    reason = failure.what();
  }
  message_has(reason, {"a tabu list of 100002 moves", "of a GPU's shared memory", "take shorter tenures"});
}

TEST_CASE("a walk ends at its target" * doctest::skip(shape_is("gpu"))) {
  Runtime runtime(one_core());
  const Problem problem = random_problem(12, Kind::symmetric, Diagonals::zero, 0, 9);
  const Tenures tenures{TabuRule::pair, 5, 5};
  TaskWalks<std::int16_t> free(runtime, problem, tenures, some_starts(12, 1), Where::cpu);
  free.go(100);
  const Walk far = free.walks()[0];
  REQUIRE(far.best_iteration > 0);
  TaskWalks<std::int16_t> aimed(runtime, problem, tenures, some_starts(12, 1), Where::cpu);
  aimed.go(100, far.best_cost);
  CHECK(aimed.walks()[0].iterations == far.best_iteration);
  CHECK(aimed.walks()[0].best_cost == far.best_cost);
  CHECK(aimed.walks()[0].p == far.best);
}

TEST_CASE("walks that are stopped before they begin stay where they are" * doctest::skip(shape_is("gpu"))) {
  Runtime runtime(one_core());
  check_stopped(runtime, Where::cpu);
}

TEST_CASE("gpu: walks that are stopped before they begin stay where they are") {
  Runtime runtime;
  check_stopped(runtime, Where::cuda);
}

TEST_CASE("every cost of a long walk is the cost of its permutation" * doctest::skip(shape_is("gpu"))) {
  Runtime runtime(one_core());
  for (const Kind kind : kinds) {
    const Problem problem = random_problem(40, kind, Diagonals::any, 0, 7);
    TaskWalks<std::int32_t> tasks(runtime, problem, {TabuRule::assignment, 36, 44}, some_starts(40, 3),
                                  Where::cpu);
    tasks.go(3000);
    for (const Walk& walk : tasks.walks()) {
      CHECK(walk.iterations == 3000);
      CHECK(walk.cost == cost_of(problem, walk.p));
      CHECK(walk.best_cost == cost_of(problem, walk.best));
      CHECK(walk.best_cost <= walk.cost);
    }
  }
}
