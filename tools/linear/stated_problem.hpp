/// \file
/// The system that `asterism linear` is told to solve.
#pragma once

#include <string>

#include "options.hpp"

namespace asterism::tools {

/// What the options say, complete and consistent; files are not read yet.
struct StatedLinear {
  std::string matrix;                                ///< the file's name, or the model as it was written
  RightHandSide rhs = RightHandSide::ones_solution;  ///< where there is no file
  Precision precision = Precision::f64, preconditioner_precision = Precision::f64;
  double tolerance = 0;
};

/// Whether numbers are drawn from --seed.
bool uses_seed(const LinearOptions& options, const StatedLinear& stated);

/// @throw Error: options that do not go together
StatedLinear state_linear(const LinearOptions& options);

sparse::LinearSettings settings_of(const LinearOptions& options, const StatedLinear& stated);

}  // namespace asterism::tools
