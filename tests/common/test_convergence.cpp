// When an iteration ends, by the norms of its iterates, and what is kept of its residuals.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/common/iteration/convergence.hpp"
#include "algorithms/common/iteration/residual_history.hpp"
#include "runtime/error.hpp"

using namespace asterism;

TEST_CASE("Convergence: sequences of norms") {
  const StoppingRule rule{.tolerance = 1e-3, .operator_norm = 8, .growth = 200, .spectral_radius = 0.9};
  const auto judged = [&](const std::vector<double>& residuals) {
    Convergence convergence(rule);
    for (std::size_t k = 0; k < residuals.size(); ++k)
      if (const auto reason =
              convergence.judge({residuals[k], k == 0 ? 0.0 : 1.0, 2}, static_cast<Index>(20 * k)))
        return std::to_string(k) + " " + to_string(*reason);
    return std::string("goes on");
  };
  CHECK(judged({2, 1, 0.5, 0.011}) == "goes on");
  CHECK(judged({2, 1, 0.5, 0.0099}) == "3 solved");
  CHECK(judged({2, 390, 100, 30, 10}) == "goes on");  // may grow at first
  CHECK(judged({2, 390, 401}) == "2 divergence");     // 200 * 2
  CHECK(judged({500, 390, 401}) == "goes on");        // from a bad first guess
  CHECK(judged({500, 100'001}) == "1 divergence");    // 200 * 500
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
      if (const auto reason = convergence.judge({residual(k), 0, 1}, k))
        return std::pair(k, to_string(*reason));
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
  CHECK(judged(
            rule, [](Index) { return 0.5; }, 1000) == std::pair(Index{100}, std::string("stagnation")));
  CHECK(judged(
            {.tolerance = 1e-30, .patience = 7}, [](Index) { return 0.5; }, 1000)
            .first == 7);
  // A tenth of a per cent each, from the beginning: that is slow, and no stagnation; nor is a pace that falls, nor
  // are plateaus that are shorter than the way there.
  CHECK(judged(
            rule, [&](Index k) { return power(0.999, k); }, 20000)
            .second == "goes on");
  CHECK(judged(
            rule, [](Index k) { return 1 / std::sqrt(1 + static_cast<double>(k)); }, 100000)
            .second == "goes on");
  const auto in_steps = [&](Index k) {
    return power(0.1, static_cast<Index>(std::log(static_cast<double>(k + 10)) / std::log(1.8)));
  };
  CHECK(judged(rule, in_steps, 100000).second == "goes on");
  // It grows, but never beyond the limit.
  const auto grows = [](Index k) { return k < 50 ? std::pow(0.8, static_cast<double>(k)) : 5.0; };
  CHECK(judged(rule, grows, 1000).second == "divergence");
  CHECK(judged(
            rule, [&](Index k) { return power(2, k); }, 1000) ==
        std::pair(Index{27}, std::string("divergence")));
  // Without a tolerance as many iterations are made as were asked for.
  CHECK(judged(
            {}, [](Index) { return 0.5; }, 1000)
            .second == "goes on");
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
      if (static_cast<std::size_t>(k) < most)
        REQUIRE(kept.size() == static_cast<std::size_t>(k) + 1);  // all of them
      if (kept.size() < 2) continue;
      REQUIRE(
          2 * kept.size() + 1 >=
          std::min<std::size_t>(most, static_cast<std::size_t>(k)));  // no more than every second is missed
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
