/// \file
/// The times of an algorithm's parts.
#pragma once

#include <chrono>
#include <utility>

namespace asterism {

class Stopwatch {
 public:
  /// The seconds since it was last asked.
  double lap() {
    const auto now = Clock::now();
    return std::chrono::duration<double>(now - std::exchange(last_, now)).count();
  }
  /// Those since the beginning.
  [[nodiscard]] double total() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point start_ = Clock::now(), last_ = start_;
};

}  // namespace asterism
