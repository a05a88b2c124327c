/// \file
/// What `asterism relax` tells about a run.
#pragma once

#include <optional>

#include "../../algorithms/wavefront/tiles/choice.hpp"
#include "../cli/report.hpp"
#include "stated_problem.hpp"

namespace asterism::tools {

/// What the solver chose where the options left it the choice; 0 or none: it has no such thing.
struct RelaxChoice {
  std::optional<double> omega;
  std::optional<relaxation::Arrangement> layout;
  Index stripes = 0, sweeps_per_task = 0, check_every = 0, subdomain = 0, layers = 0;
  std::optional<wavefront::TileChoice> tiles = {};
};

struct RelaxOutcome {
  SolverRun run = {};
  RelaxChoice choice = {};
  std::optional<double> error = {};  ///< ||u - known||_2 / ||known||_2
};

/// Bytes of main or device memory that a sweep moves by the seeds' model: 2 n^2 s for Jacobi (u read, u
/// written), 3 n^2 s for all others (f read as well). @param unknowns n^2 on a square
double bytes_of_sweep(RelaxMethod method, Index unknowns, Precision precision);

SolverReport report_of(const RelaxOptions& options, const StatedRelaxation& stated,
                       const RelaxOutcome& outcome);

}  // namespace asterism::tools
