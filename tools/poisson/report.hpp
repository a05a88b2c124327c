/// \file
/// What `asterism poisson` tells about a run.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "../../algorithms/poisson/slabbed_problem.hpp"
#include "../cli/options.hpp"
#include "../cli/solver_run.hpp"
#include "options.hpp"

namespace asterism::tools {

struct PoissonOutcome {
  poisson::Layout layout;
  Index slabs = 0;   ///< of the whole batch
  Index blocks = 0;  ///< of modes, each with a worker of its own; 0: the method has none
  Report report;     ///< traffic: of all ranks
  std::optional<poisson::Check> check;
  std::optional<double> condition;  ///< poisson::Grid::condition
  bool error_lacks_mean = false;  ///< whether u is known up to its mean
  Workers workers;

  /// Whether there is a u that is worth keeping, if only to look at it.
  [[nodiscard]] bool has_result() const {
    return report.reason == Reason::solved || report.reason == Reason::inaccurate;
  }
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

/// The problem as a report says it: dimensions, grid, lengths, conditions, centering, lambda; model and seed.
/// @param seed of the model random
nlohmann::ordered_json as_json(const StatedProblem& stated, std::uint64_t seed);

/// @param input the file of f, where there is one
void print_text(const PoissonRun& run, const std::string& input);
void print_json(const PoissonRun& run);

}  // namespace asterism::tools
