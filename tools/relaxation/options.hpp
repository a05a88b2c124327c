/// \file
/// The options of `asterism relax`, and the problem that they state.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "../../algorithms/relaxation/solver.hpp"
#include "../cli/grid_options.hpp"
#include "../files/npy.hpp"

namespace asterism::tools {

enum class RelaxMethod { jacobi, gauss_seidel, sor, ssor, mlssor, wavefront };

enum class RelaxModel {
  laplace,  ///< [Czapinski 2014] (3.2): f = 0, sin^2(pi y) on the side x = 0, zero on the others
  sine,     ///< kernels::Model's
  random,
};

struct RelaxOptions {
  CommonOptions common;
  GridOptions grid;
  std::optional<RelaxModel> model;
  std::filesystem::path initial;  ///< empty: zero
  RelaxMethod method = RelaxMethod::sor;

  // As they were given: which of them a method takes, and what it chooses without, is the method's to say.
  std::optional<double> omega, tolerance;
  std::optional<Index> sweeps, check_every, sweeps_per_task, stripes, subdomain, layers;
  std::optional<kernels::Arrangement> layout;
  std::optional<std::vector<Index>> tile;  ///< sweeps, then points
  std::optional<int> threads;
  bool blocking = false, no_alternation = false, untuned = false;
};

/// The values on both sides of an axis.
struct Sides {
  relaxation::Side lower, upper;
};

/// A problem, complete and consistent.
struct StatedRelaxation {
  std::vector<Index> shape;
  std::vector<double> lengths;  ///< along each axis
  std::vector<Sides> sides;     ///< of each axis
  std::optional<NpyReader> source,
      initial;  ///< files of f and of the first guess; a row for each of the first axis
  RelaxModel model = RelaxModel::sine;   ///< where there is no file
  Precision precision = Precision::f64;  ///< of the run
  double tolerance = 0;                  ///< 0: none, only sweeps
  bool model_is_exact = false;           ///< whether the model's solution is that of the problem

  [[nodiscard]] Index unknowns() const;
  /// Unknowns that a row of the files holds.
  [[nodiscard]] Index row_size() const { return unknowns() / shape.front(); }
  [[nodiscard]] bool has_source() const { return source || model != RelaxModel::laplace; }
};

/// Whether the problem is drawn from --seed.
bool uses_seed(const StatedRelaxation& stated);

/// @throw Error: options that do not go together, or with the files they name
StatedRelaxation state_relaxation(const RelaxOptions& options);

/// The scaled residual at which a solve ends when neither --tolerance nor --sweeps is given.
double default_tolerance(Precision precision);

void add_relax_options(CLI::App& app, RelaxOptions& options);

// Values of options as they are written.
const char* name(RelaxMethod method);
const char* name(RelaxModel model);
const char* name(kernels::Arrangement layout);

/// Whether the method relaxes red nodes and black ones in turn, in stripes.
bool is_by_colours(RelaxMethod method);

}  // namespace asterism::tools
