/// \file
/// What `asterism qap` tells about a run.
#pragma once

#include "../../algorithms/qap/search.hpp"
#include "../cli/report.hpp"
#include "options.hpp"
#include "solution_file.hpp"

namespace asterism::tools {

struct QapOutcome {
  SolverRun run = {};
  Index n = 0;
  qap::ProblemFacts facts = {};
  std::optional<Solution> start = {};
  qap::SearchReport search = {};
  bool verified = false;  ///< the cost is that of the permutation, from scratch in 64 bits
};

SolverReport report_of(const QapOptions& options, const QapOutcome& outcome);

}  // namespace asterism::tools
