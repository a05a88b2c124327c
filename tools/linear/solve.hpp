/// \file
/// The steps of `asterism linear`.
#pragma once

#include "../../runtime/runtime.hpp"
#include "report.hpp"

namespace asterism::tools {

/// Reads, checks, sets up, solves for one right-hand side after the other, writes. @throw Error: bad input
LinearOutcome solve_linear(Runtime& runtime, const LinearOptions& options, const StatedLinear& stated);

}  // namespace asterism::tools
