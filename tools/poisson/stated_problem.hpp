/// \file
/// The Poisson problem that a command line states.
#pragma once

#include <optional>
#include <vector>

#include "../../algorithms/poisson/problem/problem.hpp"
#include "../files/npy/npy.hpp"
#include "options.hpp"

namespace asterism::tools {

/// A problem, complete and consistent.
struct StatedPoisson {
  poisson::Problem problem;
  std::optional<NpyReader> reader;  ///< f comes from here, a row of it a plane, or else from the model
  grid::Model model = grid::Model::sine;
  std::vector<Index> array;     ///< the shape of f and u
  bool model_is_exact = false;  ///< whether the model's solution is that of the problem
  double rounding = 0;  ///< to which numbers of f's file and those of given values were rounded; 0: no file

  [[nodiscard]] std::size_t dimensions() const { return problem.shape.size(); }
};

/// @throw Error: options that do not go together, or with the files they name
StatedPoisson state_poisson(const PoissonProblemOptions& options);

/// Warns of options that were given and have no effect on the problem.
void warn_of_unused(const CLI::App& app, const PoissonProblemOptions& options, const StatedPoisson& stated);

/// What the problem, solved so, wants of a machine: its scheduler.
void fit_machine_to_problem(Options& machine, PoissonMethod method, const StatedPoisson& stated);

/// How many numbers f has. @throw Error when they cannot be counted.
Index count_unknowns(const poisson::Problem& problem);

/// "z", "y" or "x": axis `a` of a problem, the slowest first.
const char* axis_name(const poisson::Problem& problem, std::size_t a);

}  // namespace asterism::tools
