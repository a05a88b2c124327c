#include "stated_problem.hpp"

#include "decomposition.hpp"

#include <fmt/format.h>

namespace asterism::tools {
namespace {

void require_one_matrix(const LinearOptions& o) {
  if (o.matrix.empty() && !o.model)
    throw Error("there is no matrix; give a file, or --model poisson2d:1000x1000, say");
  if (!o.matrix.empty() && o.model)
    throw Error(
        fmt::format("{} and --model {}: the matrix is either; leave one away", o.matrix, o.model_text));
  if (o.model && o.pattern_values != PatternValues::refused)
    throw Error("--pattern-values: they are for a file without values; a model has them");
}

void require_one_right_hand_side(const LinearOptions& o) {
  if (!o.right_hand_side.empty() && o.rhs)
    throw Error(fmt::format("{} and --rhs {}: the right-hand side is either; leave one away",
                            o.right_hand_side, name(*o.rhs)));
}

void require_analysis_alone(const LinearOptions& o) {
  if (o.task != LinearTask::analyse) return;
  if (!o.right_hand_side.empty() || o.rhs)
    throw Error("--analyse looks at the matrix alone; leave the right-hand side away");
  if (!o.common.output.empty())
    throw Error(fmt::format("--analyse solves nothing: there is nothing to write to {}; leave -o away",
                            o.common.output.string()));
}

}  // namespace

bool uses_seed(const LinearOptions& o, const StatedLinear& stated) {
  return o.task == LinearTask::analyse || (o.right_hand_side.empty() && stated.rhs == RightHandSide::random);
}

StatedLinear state_linear(const LinearOptions& o) {
  require_one_matrix(o);
  require_one_right_hand_side(o);
  require_analysis_alone(o);
  StatedLinear stated;
  stated.matrix = o.model ? o.model_text : o.matrix;
  stated.rhs = o.rhs.value_or(RightHandSide::ones_solution);
  stated.precision = o.common.precision.value_or(Precision::f64);
  stated.preconditioner_precision = o.preconditioner_precision.value_or(stated.precision);
  if (stated.preconditioner_precision == Precision::f64 && stated.precision == Precision::f32)
    throw Error(
        "--preconditioner-precision f64: the arithmetic is in f32 (--precision), and its preconditioner, too");
  require_decomposition(o, stated);
  stated.tolerance = o.tolerance.value_or(default_tolerance_of_linear(stated.precision));
  return stated;
}

sparse::LinearSettings settings_of(const LinearOptions& o, const StatedLinear& stated) {
  sparse::LinearSettings settings;
  settings.preconditioner = o.preconditioner;
  settings.shift = o.shift;
  settings.tolerance = stated.tolerance;
  settings.max_iterations = o.max_iterations.value_or(0);
  settings.check_every = o.check_every.value_or(0);
  if (o.restart) settings.restart = *o.restart;
  settings.reductions = o.reductions;
  settings.format = o.format;
  settings.workers = o.workers;
  return settings;
}

}  // namespace asterism::tools
