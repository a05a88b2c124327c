/// \file
/// What `asterism poisson` tells about a run.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../algorithms/poisson_slabs.hpp"
#include "options.hpp"
#include "poisson_options.hpp"

namespace asterism::tools {

/// The wall time of the parts of a run, in the order they happen.
class Stopwatch {
 public:
  /// Ends the part that runs now and gives it its name.
  void lap(const std::string& part) {
    const auto now = Clock::now();
    laps_.emplace_back(part, std::chrono::duration<double>(now - last_).count());
    last_ = now;
  }
  [[nodiscard]] const std::vector<std::pair<std::string, double>>& laps() const { return laps_; }
  [[nodiscard]] double total() const { return std::chrono::duration<double>(last_ - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;

  std::vector<std::pair<std::string, double>> laps_;
  Clock::time_point start_ = Clock::now(), last_ = start_;
};

struct PoissonOutcome {
  poisson::Layout layout;
  Index slabs = 0;   ///< of the whole batch
  Index blocks = 0;  ///< of modes, each with a worker of its own; 0: the method has none
  Report report;     ///< traffic: of all ranks
  std::optional<poisson::Check> check;
  int cpus = 0, gpus = 0, ranks = 1;  ///< workers of all ranks
};

/// A run and all that is to be said of it.
struct PoissonRun {
  const CommonOptions& options;
  const StatedProblem& stated;
  Method method;
  Precision precision;
  const PoissonOutcome& outcome;
  const Stopwatch& stopwatch;
};

/// @param input the file of f, where there is one
void print_text(const PoissonRun& run, const std::string& input);
void print_json(const PoissonRun& run);

}  // namespace asterism::tools
