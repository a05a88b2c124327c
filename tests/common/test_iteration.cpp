// The loop of iterative methods: when it ends, what it reports, whom it tells.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/common/all_reduce.hpp"
#include "algorithms/common/iteration/iteration.hpp"
#include "runtime/collectives.hpp"

using namespace asterism;

namespace {

/// A method that computes nothing: its residual after k iterations, of an iterate and a right-hand side of norm 1.
class Pretended {
 public:
  explicit Pretended(std::function<double(Index)> residual) : residual_(std::move(residual)) {}

  [[nodiscard]] Steps steps() {
    return {.load = [this] { done_ = 0; },
            .step = [this](Index iterations) { done_ += iterations; },
            .submit_residual = [this](Index number) { submitted_[number % 2] = done_; },
            .norms =
                [this](Index number) {
                  return Norms{residual_(submitted_[number % 2]), 1, 1};
                },
            .store = [this] { stored_ = true; }};
  }
  [[nodiscard]] bool has_stored() const { return stored_; }

 private:
  std::function<double(Index)> residual_;
  Index done_ = 0, submitted_[2] = {};
  bool stored_ = false;
};

Report iterated(Runtime& runtime, const IterationSettings& settings, std::function<double(Index)> residual) {
  Pretended method(std::move(residual));
  return iterate(runtime, settings, method.steps());
}

constexpr Look looks[] = {Look::later, Look::at_once};

}  // namespace

TEST_CASE("residuals are formed more rarely the more iterations there have been, as far as one allows") {
  Runtime runtime;
  const Report report = iterated(runtime, {.limit = 400, .check_every = 5, .rarest_check = 20},
                                 [](Index k) { return 1.0 / static_cast<double>(k + 1); });
  const std::vector<Index>& at = report.residual_iterations;
  REQUIRE(at.size() > 20);
  for (std::size_t k = 1; k + 1 < at.size(); ++k) {
    const Index between = at[k] - at[k - 1];
    CHECK(between == std::clamp<Index>(at[k - 1] / 8, 5, 20));
  }
  CHECK(at.back() == 400);
}

TEST_CASE("a long iteration has a report of bounded size") {
  Runtime runtime;
  const Report report = iterated(runtime, {.limit = 100'001, .check_every = 3},
                                 [](Index k) { return 1.0 / static_cast<double>(k + 1); });
  CHECK(report.iterations == 100'001);
  CHECK(report.residual_history.size() == report.residual_iterations.size());
  CHECK(report.residual_history.size() <= 4096);
  CHECK(report.residual_history.size() > 2048);
  CHECK(report.residual_iterations.front() == 0);
  CHECK(report.residual_iterations[1] == 3 * 16);
  CHECK(report.residual_iterations.back() == 100'001);
  for (std::size_t i = 0; i < report.residual_history.size(); ++i)
    CHECK(report.residual_history[i] == 1.0 / static_cast<double>(report.residual_iterations[i] + 1));
}

TEST_CASE("why an iteration ends, and when, whenever residuals are looked at") {
  Runtime runtime;
  const auto halved = [](Index k) { return std::ldexp(1.0, static_cast<int>(-k)); };
  for (const Look look : looks) {
    const Index late = look == Look::later ? 4 : 0;  // the steps that were submitted before the decision
    Report report = iterated(runtime, {.check_every = 4, .rule = {.tolerance = 1e-3}, .look = look}, halved);
    CHECK(report.reason == Reason::solved);
    CHECK(report.iterations == 12 + late);
    CHECK(report.residual_iterations.back() == report.iterations);
    report =
        iterated(runtime, {.limit = 10, .check_every = 4, .rule = {.tolerance = 1e-6}, .look = look}, halved);
    CHECK(report.reason == Reason::iteration_limit);
    CHECK(report.residual_iterations == std::vector<Index>{0, 4, 8, 10});
    CHECK(report.residual_history == std::vector<double>{1, halved(4), halved(8), halved(10)});
    report = iterated(runtime, {.limit = 10, .check_every = 10, .look = look}, halved);
    CHECK(report.reason == Reason::solved);
    CHECK(report.residual_iterations == std::vector<Index>{0, 10});
    report = iterated(runtime, {.check_every = 5, .rule = {.tolerance = 1e-3}, .look = look},
                      [](Index) { return 1e-4; });
    CHECK(report.reason == Reason::solved);
    CHECK(report.iterations == 0);
    report = iterated(runtime, {.check_every = 5, .rule = {.tolerance = 1e-3}, .look = look},
                      [](Index) { return 0.1; });
    CHECK(report.reason == Reason::stagnation);
    CHECK(report.iterations == 500 + (look == Look::later ? 5 : 0));
    report = iterated(runtime, {.check_every = 5, .rule = {.tolerance = 1e-3}, .look = look},
                      [](Index k) { return k < 50 ? 0.1 : std::nan(""); });
    CHECK(report.reason == Reason::not_finite);
  }
}

TEST_CASE("iterations that go along together end where each ends alone") {
  Runtime runtime;
  const std::vector<std::function<double(Index)>> residuals{
      [](Index k) { return std::ldexp(1.0, static_cast<int>(-k)); }, [](Index) { return 1e-9; },
      [](Index k) { return k < 20 ? 0.1 : std::nan(""); },
      [](Index k) { return std::pow(0.9, static_cast<double>(k)); }};
  for (const Look look : looks) {
    std::vector<Pretended> methods(residuals.begin(), residuals.end());
    std::vector<JoinedIteration> together;
    for (std::size_t k = 0; k < methods.size(); ++k)
      together.push_back(
          {{.limit = k == 3 ? 50 : 0, .check_every = 4, .rule = {.tolerance = 1e-6}, .look = look},
           methods[k].steps()});
    const std::vector<Report> reports =
        iterate_together(runtime, together, [&](const std::vector<Index>& counts) {
          for (std::size_t k = 0; k < counts.size(); ++k)
            if (counts[k] > 0) together[k].steps.step(counts[k]);
        });
    for (std::size_t k = 0; k < residuals.size(); ++k) {
      CAPTURE(k);
      const Report alone = iterated(runtime, together[k].settings, residuals[k]);
      CHECK(reports[k].reason == alone.reason);
      CHECK(reports[k].iterations == alone.iterations);
      CHECK(reports[k].residual_iterations == alone.residual_iterations);
      CHECK(methods[k].has_stored());
    }
  }
}

TEST_CASE("the observer is told what the history has, in order, and each rank has its own") {
  Runtime runtime;
  for (const Look look : looks)
    for (const bool on_last_rank_only : {false, true}) {
      std::vector<IterationState> told;
      Observer observer;
      const bool mine = !on_last_rank_only || runtime.rank() + 1 == runtime.ranks();
      if (mine) observer = [&](const IterationState& state) { told.push_back(state); };
      const Report report = iterated(
          runtime,
          {.limit = 30, .check_every = 4, .rule = {.tolerance = 1e-6}, .look = look, .observer = observer},
          [](Index k) { return std::ldexp(1.0, static_cast<int>(-k)); });
      REQUIRE(told.size() == (mine ? report.residual_history.size() : 0));
      for (std::size_t i = 0; i < told.size(); ++i) {
        CHECK(told[i].iteration == report.residual_iterations[i]);
        CHECK(told[i].residual == report.residual_history[i]);
        CHECK(told[i].seconds >= (i > 0 ? told[i - 1].seconds : 0));
        if (i > 0) CHECK(told[i].iteration > told[i - 1].iteration);
      }
    }
}

TEST_CASE("what an observer throws ends the iteration on all ranks") {
  Runtime runtime;
  const std::string rank = "rank " + std::to_string(runtime.ranks() - 1);
  for (const Index when : {0, 8, 20}) {
    Pretended method([](Index) { return 0.5; });
    const bool throws = runtime.rank() + 1 == runtime.ranks();
    const Observer observer = [&](const IterationState& state) {
      if (throws && state.iteration == when) throw std::runtime_error("enough is enough");
    };
    std::string said;
    try {
      iterate(runtime, {.limit = 20, .check_every = 4, .observer = observer}, method.steps());
    } catch (const std::exception& error) {
      said = error.what();
    }
    CHECK(said.find("enough is enough") != std::string::npos);
    if (runtime.ranks() > 1) CHECK(said.find(rank) != std::string::npos);
    CHECK(!method.has_stored());
  }
  // The Runtime can go on.
  CHECK(iterated(runtime, {.limit = 3, .check_every = 3}, [](Index) { return 0.5; }).iterations == 3);
}

// --- A method whose steps yield norms as tiles on every rank, as those of Krylov methods do
// --------------------------------

namespace {

/// v += (b - a v) / 2, a and b from the numbers of the elements.
double matrix(Index i) { return 1 + 0.5 * std::sin(static_cast<double>(i)); }
double source(Index i) { return std::cos(static_cast<double>(i)); }

const Codelet<Index, Out<double>> zero{"test_zero", +[](const Index&, Out<double> v) {
                                         for (Index i = 0; i < v.cols; ++i) v.data[i] = 0;
                                       }};
const Codelet<Index, InOut<double>> improve{"test_improve", +[](const Index& first, InOut<double> v) {
                                              for (Index i = 0; i < v.cols; ++i)
                                                v.data[i] +=
                                                    (source(first + i) - matrix(first + i) * v.data[i]) / 2;
                                            }};
const Codelet<Index, In<double>, Out<double>> squares{
    "test_squares", +[](const Index& first, In<double> v, Out<double> sums) {
      double r2 = 0, v2 = 0, b2 = 0;
      for (Index i = 0; i < v.cols; ++i) {
        const double b = source(first + i), r = b - matrix(first + i) * v.data[i];
        r2 += r * r, v2 += v.data[i] * v.data[i], b2 += b * b;
      }
      sums.data[0] = r2, sums.data[1] = v2, sums.data[2] = b2;
    }};

class InTiles {
 public:
  static constexpr Index size = 10, parts = 6;

  explicit InTiles(Runtime& runtime) : runtime_(runtime), totals_{{runtime, 1, 3}, {runtime, 1, 3}} {
    for (Index k = 0; k < parts; ++k) {
      const int rank = static_cast<int>(k) % runtime.ranks();
      v_.emplace_back(runtime, 1, size, rank);
      for (auto& sums : sums_) sums.emplace_back(runtime, 1, 3, rank);
    }
  }
  [[nodiscard]] Steps steps() {
    return {.load =
                [this] {
                  for (const Tile<double>& v : v_) zero(0, v);
                },
            .step =
                [this](Index iterations) {
                  for (Index k = 0; k < iterations * parts; ++k) improve(k % parts * size, v_[at(k % parts)]);
                },
            .submit_residual =
                [this](Index number) {
                  for (Index k = 0; k < parts; ++k) squares(k * size, v_[at(k)], sums_[number % 2][at(k)]);
                  all_reduce<double>(sums_[number % 2], totals_[number % 2]);
                },
            .norms = [this](Index number) -> std::optional<Norms> {
              const Tile<double>& mine = totals_[number % 2].mine();
              mine.wait();
              if (any(runtime_, runtime_.task_has_failed())) return {};
              const HostView<double> total(mine, HostView<double>::Access::read);
              return Norms{std::sqrt(total(0, 0)), std::sqrt(total(0, 1)), std::sqrt(total(0, 2))};
            },
            .store = [this] { runtime_.wait(); }};
  }

 private:
  static std::size_t at(Index k) { return static_cast<std::size_t>(k); }

  Runtime& runtime_;
  std::vector<Tile<double>> v_, sums_[2];
  PerRank<double> totals_[2];
};

}  // namespace

TEST_CASE("norms that tasks leave on every rank: the same residuals on all of them") {
  Runtime runtime;
  InTiles method(runtime);
  std::vector<double> expected;  // ||r|| / ||b||
  {
    std::vector<double> v(InTiles::size * InTiles::parts);
    for (int sweep = 0; sweep <= 60; ++sweep) {
      double r2 = 0, b2 = 0;
      for (std::size_t i = 0; i < v.size(); ++i) {
        const double b = source(static_cast<Index>(i)), r = b - matrix(static_cast<Index>(i)) * v[i];
        r2 += r * r, b2 += b * b;
        v[i] += r / 2;
      }
      expected.push_back(std::sqrt(r2 / b2));
    }
  }
  for (const Look look : looks) {
    const Report report = iterate(
        runtime, {.limit = 60, .check_every = 3, .rule = {.tolerance = 1e-6}, .look = look}, method.steps());
    CHECK(report.reason == Reason::solved);
    for (std::size_t i = 0; i < report.residual_history.size(); ++i) {
      const double theirs = broadcast(runtime, report.residual_history[i]);
      CHECK(report.residual_history[i] == theirs);
      CHECK(theirs ==
            doctest::Approx(expected[static_cast<std::size_t>(report.residual_iterations[i])]).epsilon(1e-9));
    }
    // And it ends while tasks are under way.
    const Observer observer = [&](const IterationState& state) {
      if (state.iteration == 6) throw Error("no more of this");
    };
    CHECK_THROWS_WITH_AS(
        iterate(runtime, {.check_every = 3, .rule = {.tolerance = 1e-6}, .look = look, .observer = observer},
                method.steps()),
        doctest::Contains("no more of this"), Error);
  }
}
