/// \file
/// How fast the workers relax.
#pragma once

#include <vector>

#include "../../../runtime/runtime.hpp"
#include "../../common/workers.hpp"
#include "../problem.hpp"

namespace asterism::relaxation {

/// The workers of all ranks (all_workers), with their speeds where settings.balance asks for them and there is
/// something to compare: GPUs and the cores beside them, or the workers of several ranks. In nodes relaxed per
/// second. Of ranks that share their GPUs one has these where the grid fits. With several ranks: collective; the same on every
/// rank.
/// @param settings complete (omega) @throw TaskFailure, Stall
template <class T>
std::vector<Candidate> measured_workers(Runtime& runtime, const Problem& problem, const Settings& settings);

}  // namespace asterism::relaxation
