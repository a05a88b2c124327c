/// \file
/// How StarPU is started as a Runtime's options want it, and ended. Private to runtime/.
#pragma once

#include "state.hpp"

namespace asterism {

/// Checks the options, starts StarPU with them, and checks that it is what was asked for.
/// @param running whether StarPU has to be ended, even where this throws
/// @throw Error
void start_starpu(Runtime::State& state, bool& running);

void end_starpu(Runtime::State& state);

}  // namespace asterism
