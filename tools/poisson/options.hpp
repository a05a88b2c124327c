/// \file
/// The options that state a Poisson problem, for all subcommands that solve one.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "../../algorithms/poisson/layout.hpp"
#include "../../algorithms/poisson/problem.hpp"
#include "../cli/grid_options.hpp"
#include "../files/npy.hpp"

namespace asterism::tools {

struct Conditions {
  poisson::Condition lower = poisson::Condition::dirichlet, upper = poisson::Condition::dirichlet;
};

/// "dirichlet", "neumann", "periodic", or what it begins with: d, n, p; for both ends, or "LOWER,UPPER".
/// @throw Error
Conditions parse_conditions(const std::string& text);

/// What the command line says of the problem. Options of single axes: z, y, x.
struct ProblemOptions {
  GridOptions grid;
  std::optional<kernels::Model> model;
  Conditions conditions;
  std::array<std::optional<Conditions>, 3> axis_conditions;
  poisson::Centering centering = poisson::Centering::node;
  double lambda = 0;
  std::filesystem::path coordinates;
  std::optional<Index> batch;
};

/// A problem, complete and consistent.
struct StatedProblem {
  poisson::Problem problem;
  std::optional<NpyReader> reader;  ///< f comes from here, a row of it a plane, or else from the model
  kernels::Model model = kernels::Model::sine;
  std::vector<Index> array;     ///< the shape of f and u
  bool model_is_exact = false;  ///< whether the model's solution is that of the problem
  double rounding = 0;  ///< to which numbers of f's file and those of given values were rounded; 0: no file

  [[nodiscard]] std::size_t dimensions() const { return problem.shape.size(); }
};

/// @throw Error: options that do not go together, or with the files they name
StatedProblem state_problem(const ProblemOptions& options);

/// Warns of options that were given and have no effect on the problem.
void warn_of_unused(const CLI::App& app, const ProblemOptions& options, const StatedProblem& stated);

/// How many numbers f has. @throw Error when they cannot be counted.
Index count_unknowns(const poisson::Problem& problem);

/// --grid, --lengths, --bc, --value-x, --centering, --lambda, --coordinates, --batch and their kin
void add_poisson_options(CLI::App& app, ProblemOptions& options);

/// --model
void add_model_option(CLI::App& app, ProblemOptions& options);

enum class Method {
  fft,   ///< poisson::Solver
  gemm,  ///< poisson::GemmSolver
};

struct MethodOptions {
  Method method = Method::fft;
  poisson::Settings settings;
};

/// All that `asterism poisson` is told.
struct PoissonOptions {
  CommonOptions common;
  ProblemOptions problem;
  MethodOptions method;
  bool check = true;
};

/// --method, --mode, --slab, --project-mean
void add_method_options(CLI::App& app, MethodOptions& options);

// Values of options as they are written.
const char* name(Method method);
const char* name(poisson::Mode mode);
const char* name(poisson::Condition condition);
const char* name(poisson::Centering centering);
const char* name(kernels::Model model);

/// "z", "y" or "x": axis `a` of a problem, the slowest first.
const char* axis_name(const poisson::Problem& problem, std::size_t a);

}  // namespace asterism::tools
