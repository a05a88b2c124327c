/// \file
/// A progress line for people.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "../../algorithms/common/iteration/observer.hpp"

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

  /// The same where nobody can tell how much is left: the time and what is going on.
  void update(const std::string& what);

  /// Joins the line that update(what) draws, until the next note: how far it is, from the thread that knows, while
  /// another one draws.
  void note(const std::string& state);

  [[nodiscard]] bool shows() const { return shows_; }

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }
  /// Whether it is time to draw again, and nobody else does.
  [[nodiscard]] std::unique_lock<std::mutex> turn();
  void draw(std::string line);

  std::mutex mutex_, note_mutex_;
  std::string note_;
  bool shows_, drawn_ = false;
  Clock::time_point start_ = Clock::now(), next_ = start_ + std::chrono::seconds(1);
};

/// Draws the progress line while what tells nothing, the solver or a search for tiles, is at work.
class WhileWorking {
 public:
  WhileWorking(Progress& progress, std::string what);

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread ticker_;  // ends first
};

/// Puts residuals into the progress line, where there is one. @param unit what is iterated: "sweep"
Observer told_to(Progress& progress, const std::string& unit = "sweep");

}  // namespace asterism::tools
