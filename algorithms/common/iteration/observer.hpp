/// \file
/// Who is told how an iteration goes.
#pragma once

#include <functional>

#include "../../../runtime/ports.hpp"

namespace asterism {

/// An iterate whose residual is known.
struct IterationState {
  Index iteration = 0;  ///< iterations that were made before the residual was taken; grows from call to call
  double residual = 0;  ///< scaled; NaN or infinite in the last call of one that breaks down
  double seconds = 0;   ///< since the solve began
};

/// Called for every residual, the first before any iteration, by the thread that solves, when it looks at the
/// residual: the workers may be further on. With several ranks every rank calls its own, and may have none: each is
/// told the same iterations and residuals.
///
/// What it throws ends the solve, once the tasks that are under way are done; u then holds what it was given. With
/// several ranks all of them throw it, as an Error with the number of the rank.
using Observer = std::function<void(const IterationState&)>;

}  // namespace asterism
