/// \file
/// What `asterism linear` tells about a run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "../../algorithms/sparse/linear_solver.hpp"
#include "../cli/report.hpp"
#include "decomposition.hpp"
#include "system.hpp"

namespace asterism::tools {

struct LinearOutcome {
  SolverRun run = {};  ///< its report: of all right-hand sides together (summary_of)
  Index rows = 0, entries = 0;
  Numbering number = {};  ///< of rows, in messages
  Index duplicates = 0;   ///< in the file
  ChosenMethod chosen = {};
  sparse::LinearFacts facts = {};
  std::optional<DecompositionOutcome> decomposition = {};
  std::vector<sparse::LinearReport> columns = {};  ///< of each right-hand side
  std::optional<double> error = {};                ///< ||x - known||_2 / ||known||_2
};

/// Of several solves one report: iterations, seconds and traffic of all of them; the reason and the residuals of the
/// first that was not solved, or else of that which took the most iterations. @param columns at least one
Report summary_of(const std::vector<sparse::LinearReport>& columns);
/// Whose reason and residuals these are.
std::size_t hardest_of(const std::vector<sparse::LinearReport>& columns);

/// Why a solve ended without a solution, in words, and what to do; empty where it has one, or the reason says it all.
std::string explanation_of(const LinearOptions& options, const LinearOutcome& outcome);

/// What is odd about a run, a sentence each.
std::vector<std::string> warnings_of(const LinearOutcome& outcome);

SolverReport report_of(const LinearOptions& options, const StatedLinear& stated,
                       const LinearOutcome& outcome);

}  // namespace asterism::tools
