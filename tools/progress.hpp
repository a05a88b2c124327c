/// \file
/// A progress line for people.
#pragma once

#include <chrono>
#include <mutex>
#include <string>

namespace asterism::tools {

enum class Verbosity { normal, quiet };

/// A line on standard error that says how far the work is; erased when it ends. It shows only on a terminal,
/// and only once the work has taken a second.
class Progress {
 public:
  explicit Progress(Verbosity verbosity);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  /// May be called as often as is convenient, from any thread: the line is drawn at most ten times a second.
  /// \param fraction  of the whole work, from 0 to 1.
  void update(double fraction, const std::string& what);

 private:
  using Clock = std::chrono::steady_clock;

  std::mutex mutex_;
  bool shows_, drawn_ = false;
  Clock::time_point start_ = Clock::now(), next_ = start_ + std::chrono::seconds(1);
};

}  // namespace asterism::tools
