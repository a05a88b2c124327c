/// \file
/// StarPU's own tasks: what codelets cost beside them.
#pragma once

#include "../runtime.hpp"

namespace asterism {

/// Wall time from the first task's submission.
struct TaskTimesOfRound {
  double submitted;  ///< until all are submitted
  double completed;  ///< until all have ended
};

/// Submits tasks of StarPU's own, with as little as a user of its C interface can write: a task on one tile, read and
/// changed by a kernel for CPUs that does nothing, with a performance model, as the schedulers want. Call it while no other
/// task runs, on one rank.
/// @param tiles that the tasks are given in turns
TaskTimesOfRound run_bare_tasks(Runtime& runtime, Index tasks, Index tiles);

}  // namespace asterism
