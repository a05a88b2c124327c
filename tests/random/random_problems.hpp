/// \file
/// Random problems: how they are drawn, and what is found out about one of them.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/runtime.hpp"

namespace asterism::test {

/// Random numbers that depend on what they are drawn for alone, so that every case can be drawn again by
/// itself; the same with every compiler and library (splitmix64).
class Draw {
 public:
  Draw(std::uint64_t seed, std::uint64_t number) : state_(seed * 0xd1342543de82ef95ULL + number) {
    state_ = bits();
  }

  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  double uniform(double from, double to) {
    return from + (to - from) * static_cast<double>(bits() >> 11) * 0x1p-53;
  }
  /// 10 to a power that is uniform between those of `from` and `to`.
  double logarithmic(double from, double to) {
    return std::pow(10, uniform(std::log10(from), std::log10(to)));
  }
  /// From `from` to `to`, both included.
  Index integer(Index from, Index to) {
    return from + static_cast<Index>(bits() % static_cast<std::uint64_t>(to - from + 1));
  }
  bool chance(double probability) { return uniform(0, 1) < probability; }
  template <class T>
  T pick(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(integer(0, static_cast<Index>(values.size()) - 1))];
  }

 private:
  std::uint64_t state_;
};

/// What came out of a case.
struct Findings {
  std::vector<std::string> faults;  ///< in words; none: the case passed
  std::map<std::string, double>
      figures;  ///< by name ("error/(eps cond)"): the worst of all cases is told at the end

  /// Notes a figure, and a fault unless it is within its bound (which no NaN is).
  void expect(const std::string& name, double value, double bound);
};

/// A problem, drawn but not solved.
struct Trial {
  std::string words;
  std::function<Findings(Runtime&)> check;  ///< collective; the same findings on every rank
};

Trial draw_poisson(Draw& draw);    ///< lambda <= 0
Trial draw_helmholtz(Draw& draw);  ///< lambda > 0
Trial draw_relax(Draw& draw);
Trial draw_linear(Draw& draw);
Trial draw_assignment(Draw& draw);

}  // namespace asterism::test
