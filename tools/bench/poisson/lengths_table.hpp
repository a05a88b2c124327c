/// \file
/// The fast Poisson solver on grids whose FFTs have good and poor lengths.
#pragma once

#include <optional>

#include "../../poisson/options.hpp"
#include "../figures.hpp"
#include "fastest_solve.hpp"

namespace asterism::tools {

/// A line for each grid that the machine has room for, with cells a second and the scaled residual in units of rounding;
/// the same as an array "grids" of the report for programs.
/// @param problem what grids have in common: conditions, centering, lambda
/// @param precision the only one; none: both
void print_lengths_table(Runtime& runtime, const PoissonProblemOptions& problem, const Repetition& repetition,
                         std::optional<Precision> precision, Figures& figures);

}  // namespace asterism::tools
