// The loop of iterative methods: when it ends, what it keeps of the residuals, whom it tells.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "algorithms/common/all_reduce.hpp"
#include "algorithms/common/iteration.hpp"
#include "algorithms/common/residual_history.hpp"
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
            .norms = [this](Index number) { return Norms{residual_(submitted_[number % 2]), 1, 1}; },
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

TEST_CASE("Convergence: sequences of norms") {
  const StoppingRule rule{.tolerance = 1e-3, .operator_norm = 8, .growth = 200, .spectral_radius = 0.9};
  const auto judged = [&](const std::vector<double>& residuals) {
    Convergence convergence(rule);
    for (std::size_t k = 0; k < residuals.size(); ++k)
      if (const auto reason = convergence.judge({residuals[k], k == 0 ? 0.0 : 1.0, 2}, static_cast<Index>(20 * k)))
        return std::to_string(k) + " " + to_string(*reason);
    return std::string("goes on");
  };
  CHECK(judged({2, 1, 0.5, 0.011}) == "goes on");
  CHECK(judged({2, 1, 0.5, 0.0099}) == "3 solved");
  CHECK(judged({2, 390, 100, 30, 10}) == "goes on");  // may grow at first
  CHECK(judged({2, 390, 401}) == "2 divergence");     // 200 * 2
  // 0.9^140 < 1e-6 <= 0.9^120
  CHECK(judged({2, 2, 2, 2, 2, 2, 2}) == "goes on");
  CHECK(judged({0.2, 2, 2, 2, 2, 2, 2, 2}) == "7 stagnation");
  CHECK(judged({0.2, 2, 2, 2, 2, 2, 2, 2.01}) == "7 divergence");
  CHECK(judged({2, std::numeric_limits<double>::infinity()}) == "1 not finite");
  Convergence nothing(rule);
  CHECK(nothing.judge({0, 0, 0}, 0) == Reason::solved);
  CHECK(nothing.scaled_residual() == 0);
}

TEST_CASE("Convergence without a spectral radius: stagnation by the pace so far") {
  /// @return iterations until the verdict, and the verdict
  const auto judged = [](const StoppingRule& rule, const std::function<double(Index)>& residual, Index most) {
    Convergence convergence(rule);
    for (Index k = 0; k <= most; ++k)
      if (const auto reason = convergence.judge({residual(k), 0, 1}, k)) return std::pair(k, to_string(*reason));
    return std::pair(most, std::string("goes on"));
  };
  const auto power = [](double base, Index k) { return std::pow(base, static_cast<double>(k)); };
  const StoppingRule rule{.tolerance = 1e-30};

  // At the level of rounding: 1e-16 after 1000 iterations, and then up and down a little.
  const auto rounded = [&](Index k) {
    return std::max(power(std::pow(10, -0.016), k), 1e-16 * (1 + 0.02 * std::sin(static_cast<double>(k))));
  };
  const auto [end, why] = judged(rule, rounded, 10000);
  CHECK(why == "stagnation");
  CHECK(end >= 1900);
  CHECK(end <= 2100);  // as many again
  // Never any progress: after `patience` residuals.
  CHECK(judged(rule, [](Index) { return 0.5; }, 1000) == std::pair(Index{100}, std::string("stagnation")));
  CHECK(judged({.tolerance = 1e-30, .patience = 7}, [](Index) { return 0.5; }, 1000).first == 7);
  // A tenth of a per cent each, from the beginning: that is slow, and no stagnation; nor is a pace that falls, nor are
  // plateaus that are shorter than the way there.
  CHECK(judged(rule, [&](Index k) { return power(0.999, k); }, 20000).second == "goes on");
  CHECK(judged(rule, [](Index k) { return 1 / std::sqrt(1 + static_cast<double>(k)); }, 100000).second == "goes on");
  const auto in_steps = [&](Index k) { return power(0.1, static_cast<Index>(std::log(static_cast<double>(k + 10)) / std::log(1.8))); };
  CHECK(judged(rule, in_steps, 100000).second == "goes on");
  // It grows, but never beyond the limit.
  const auto grows = [](Index k) { return k < 50 ? std::pow(0.8, static_cast<double>(k)) : 5.0; };
  CHECK(judged(rule, grows, 1000).second == "divergence");
  CHECK(judged(rule, [&](Index k) { return power(2, k); }, 1000) == std::pair(Index{27}, std::string("divergence")));
  // Without a tolerance as many iterations are made as were asked for.
  CHECK(judged({}, [](Index) { return 0.5; }, 1000).second == "goes on");
}

TEST_CASE("a history keeps the first and the last residual, and what is between them at even distances") {
  for (const std::size_t most : {2, 3, 4, 5, 8, 100}) {
    ResidualHistory history(most);
    for (Index k = 0; k < 1000; ++k) {
      history.add(7 * k, std::ldexp(1.0, static_cast<int>(-k)));
      const std::vector<Index>& kept = history.iterations();
      CAPTURE(most);
      CAPTURE(k);
      REQUIRE(kept.size() <= most);
      REQUIRE(kept.size() == history.residuals().size());
      REQUIRE(kept.front() == 0);
      REQUIRE(kept.back() == 7 * k);
      if (static_cast<std::size_t>(k) < most) REQUIRE(kept.size() == static_cast<std::size_t>(k) + 1);  // all of them
      if (kept.size() < 2) continue;
      REQUIRE(2 * kept.size() + 1 >= std::min<std::size_t>(most, static_cast<std::size_t>(k)));  // no more than every second is missed
      for (std::size_t i = 1; i < kept.size(); ++i) {
        REQUIRE(history.residuals()[i] == std::ldexp(1.0, static_cast<int>(-kept[i] / 7)));
        if (i + 1 < kept.size())
          REQUIRE(kept[i] - kept[i - 1] == kept[1]);
        else
          REQUIRE(kept[i] - kept[i - 1] <= std::max<Index>(kept[1], 7));
      }
    }
  }
  CHECK_THROWS_WITH_AS(ResidualHistory(1), doctest::Contains("a history of 1 residuals"), Error);
}

TEST_CASE("a long iteration has a report of bounded size") {
  Runtime runtime;
  const Report report = iterated(runtime, {.limit = 100'001, .check_every = 3}, [](Index k) { return 1.0 / static_cast<double>(k + 1); });
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
    report = iterated(runtime, {.limit = 10, .check_every = 4, .rule = {.tolerance = 1e-6}, .look = look}, halved);
    CHECK(report.reason == Reason::iteration_limit);
    CHECK(report.residual_iterations == std::vector<Index>{0, 4, 8, 10});
    CHECK(report.residual_history == std::vector<double>{1, halved(4), halved(8), halved(10)});
    report = iterated(runtime, {.limit = 10, .check_every = 10, .look = look}, halved);
    CHECK(report.reason == Reason::solved);
    CHECK(report.residual_iterations == std::vector<Index>{0, 10});
    report = iterated(runtime, {.check_every = 5, .rule = {.tolerance = 1e-3}, .look = look}, [](Index) { return 1e-4; });
    CHECK(report.reason == Reason::solved);
    CHECK(report.iterations == 0);
    report = iterated(runtime, {.check_every = 5, .rule = {.tolerance = 1e-3}, .look = look}, [](Index) { return 0.1; });
    CHECK(report.reason == Reason::stagnation);
    CHECK(report.iterations == 500 + (look == Look::later ? 5 : 0));
    report = iterated(runtime, {.check_every = 5, .rule = {.tolerance = 1e-3}, .look = look},
                      [](Index k) { return k < 50 ? 0.1 : std::nan(""); });
    CHECK(report.reason == Reason::not_finite);
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
          runtime, {.limit = 30, .check_every = 4, .rule = {.tolerance = 1e-6}, .look = look, .observer = observer},
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

// --- A method whose steps yield norms as tiles on every rank, as those of Krylov methods do --------------------------------

namespace {

/// v += (b - a v) / 2, a and b from the numbers of the elements.
double matrix(Index i) { return 1 + 0.5 * std::sin(static_cast<double>(i)); }
double source(Index i) { return std::cos(static_cast<double>(i)); }

const Codelet<Index, Out<double>> zero{"test_zero", +[](const Index&, Out<double> v) {
  for (Index i = 0; i < v.cols; ++i) v.data[i] = 0;
}};
const Codelet<Index, InOut<double>> improve{"test_improve", +[](const Index& first, InOut<double> v) {
  for (Index i = 0; i < v.cols; ++i) v.data[i] += (source(first + i) - matrix(first + i) * v.data[i]) / 2;
}};
const Codelet<Index, In<double>, Out<double>> squares{"test_squares", +[](const Index& first, In<double> v, Out<double> sums) {
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

  explicit InTiles(Runtime& runtime)
      : runtime_(runtime), totals_{one_per_rank(runtime, 1, 3), one_per_rank(runtime, 1, 3)} {
    for (Index k = 0; k < parts; ++k) {
      const int rank = static_cast<int>(k) % runtime.ranks();
      v_.emplace_back(runtime, 1, size, rank);
      for (auto& sums : sums_) sums.emplace_back(runtime, 1, 3, rank);
    }
  }
  [[nodiscard]] Steps steps() {
    return {.load = [this] { for (const Tile<double>& v : v_) zero(0, v); },
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
              const Tile<double>& mine = totals_[number % 2][at(runtime_.rank())];
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
  std::vector<Tile<double>> v_, sums_[2], totals_[2];
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
    const Report report = iterate(runtime, {.limit = 60, .check_every = 3, .rule = {.tolerance = 1e-6}, .look = look}, method.steps());
    CHECK(report.reason == Reason::solved);
    for (std::size_t i = 0; i < report.residual_history.size(); ++i) {
      const double theirs = broadcast(runtime, report.residual_history[i]);
      CHECK(report.residual_history[i] == theirs);
      CHECK(theirs == doctest::Approx(expected[static_cast<std::size_t>(report.residual_iterations[i])]).epsilon(1e-9));
    }
    // And it ends while tasks are under way.
    const Observer observer = [&](const IterationState& state) {
      if (state.iteration == 6) throw Error("no more of this");
    };
    CHECK_THROWS_WITH_AS(iterate(runtime, {.check_every = 3, .rule = {.tolerance = 1e-6}, .look = look, .observer = observer}, method.steps()),
                         doctest::Contains("no more of this"), Error);
  }
}
