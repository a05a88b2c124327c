/// \file
/// The problem that `asterism relax` is told to solve.
#pragma once

#include <optional>
#include <vector>

#include "../../algorithms/relaxation/problem.hpp"
#include "../files/npy/npy.hpp"
#include "options.hpp"

namespace asterism::tools {

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

}  // namespace asterism::tools
