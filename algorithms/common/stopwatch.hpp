/// \file
/// The times of an algorithm's parts.
#pragma once

#include <chrono>
#include <utility>

namespace asterism {

/// The seconds since it was last asked.
class Stopwatch {
 public:
  double lap() {
    const auto now = Clock::now();
    return std::chrono::duration<double>(now - std::exchange(last_, now)).count();
  }

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point last_ = Clock::now();
};

}  // namespace asterism
