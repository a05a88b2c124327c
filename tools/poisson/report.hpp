/// \file
/// What `asterism poisson` tells about a run.
#pragma once

#include <cstdint>
#include <optional>

#include "../../algorithms/poisson/slabbed_problem.hpp"
#include "../cli/report.hpp"
#include "../grid/report.hpp"
#include "stated_problem.hpp"

namespace asterism::tools {

struct PoissonOutcome {
  SolverRun run = {};
  poisson::Layout layout = {};
  Index slabs = 0;   ///< of the whole batch
  Index blocks = 0;  ///< of modes, each with a worker of its own; 0: the method has none
  std::optional<poisson::Check> check = {};
  std::optional<double> condition = {};  ///< poisson::Grid::condition
  bool error_lacks_mean = false;         ///< whether u is known up to its mean
};

/// What was asked for; with conditions where they are not the usual ones, centering and lambda.
/// @param seed of the model random
Section problem_section(const PoissonProblemOptions& options, const StatedPoisson& stated,
                        Precision precision, std::uint64_t seed);

SolverReport report_of(const PoissonOptions& options, const StatedPoisson& stated,
                       const PoissonOutcome& outcome);

}  // namespace asterism::tools
