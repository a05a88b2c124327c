/// \file
/// What `asterism relax` tells about a run.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../../algorithms/wavefront/tile_choice.hpp"
#include "../../runtime/report.hpp"
#include "../cli/solver_run.hpp"
#include "options.hpp"

namespace asterism::tools {

/// What the solver chose where the options left it the choice; 0 or none: it has no such thing.
struct RelaxChoice {
  std::optional<double> omega;
  std::optional<relaxation::Arrangement> layout;
  Index stripes = 0, sweeps_per_task = 0, check_every = 0, subdomain = 0, layers = 0;
  std::optional<wavefront::TileChoice> tiles = {};
};

struct RelaxOutcome {
  RelaxChoice choice;
  Report report;                ///< traffic: of all ranks
  std::optional<double> error;  ///< ||u - known||_2 / ||known||_2
  Workers workers;
};

/// A run and all that is to be said of it.
struct RelaxRun {
  const RelaxOptions& options;
  const StatedRelaxation& stated;
  Precision precision;
  const RelaxOutcome& outcome;
  const Stopwatch& stopwatch;
};

/// Whether there is a u to write: all endings but one have one.
bool has_result(const Report& report);

/// Bytes of main or device memory that a sweep moves by the seeds' model: 2 n^2 s for Jacobi (u read, u
/// written), 3 n^2 s for all others (f read as well). @param unknowns n^2 on a square
double bytes_of_sweep(RelaxMethod method, Index unknowns, Precision precision);

void print_text(const RelaxRun& run);
void print_json(const RelaxRun& run);

}  // namespace asterism::tools
