/// \file
/// The options that state a Poisson problem, for all subcommands that solve one.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "../../algorithms/poisson/layout.hpp"
#include "../../algorithms/poisson/problem/problem.hpp"
#include "../grid/options.hpp"

namespace asterism::tools {

struct Conditions {
  poisson::Condition lower = poisson::Condition::dirichlet, upper = poisson::Condition::dirichlet;
};

/// "dirichlet", "neumann", "periodic", or what it begins with: d, n, p; for both ends, or "LOWER,UPPER".
/// @throw Error
Conditions parse_conditions(const std::string& text);

/// What the command line says of the problem. Options of single axes: z, y, x.
struct PoissonProblemOptions {
  GridOptions grid;
  std::optional<grid::Model> model;
  Conditions conditions;
  std::array<std::optional<Conditions>, 3> axis_conditions;
  poisson::Centering centering = poisson::Centering::node;
  double lambda = 0;
  std::filesystem::path coordinates;
  std::optional<Index> batch;
};

/// --grid, --lengths, --bc, --value-x, --centering, --lambda, --coordinates, --batch and their kin
void add_poisson_problem(CLI::App& app, PoissonProblemOptions& options);

/// --model
void add_poisson_model(CLI::App& app, PoissonProblemOptions& options);

enum class PoissonMethod {
  fft,   ///< poisson::Solver
  gemm,  ///< poisson::GemmSolver
};

struct PoissonMethodOptions {
  PoissonMethod method = PoissonMethod::fft;
  poisson::Settings settings;
};

/// All that `asterism poisson` is told.
struct PoissonOptions {
  CommonOptions common;
  PoissonProblemOptions problem;
  PoissonMethodOptions method;
  bool check = true;
};

/// --method, --mode, --slab, --project-mean
void add_poisson_method(CLI::App& app, PoissonMethodOptions& options);

// Values of options as they are written.
const char* name(PoissonMethod method);
const char* name(poisson::Mode mode);
const char* name(poisson::Condition condition);
const char* name(poisson::Centering centering);
const char* name(grid::Model model);

}  // namespace asterism::tools
