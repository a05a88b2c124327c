/// \file
/// Who walks, and how fast.
#pragma once

#include <vector>

#include "../../codelets/qap/tabu_search.hpp"
#include "../../runtime/per_rank.hpp"
#include "../../runtime/runtime.hpp"
#include "../common/workers.hpp"
#include "plan.hpp"

namespace asterism::qap {

/// What tasks need beside walks.
template <class E>
struct Givens {
  const PerRank<E>& matrices;
  const PerRank<Index>& costs;          ///< d, below it f
  const PerRank<std::int32_t>& starts;  ///< as found_island() wants them
};

/// All workers that walk; where a rank has GPUs and cores with their speeds, measured by the search's own walks from an
/// island's starts, a GPU's by as many as it might get. With several ranks: collective, the same on all.
/// @param a of the walks' tasks, but for target and stop @throw as measure_speeds
template <class E>
std::vector<Candidate> walking_workers(Runtime& runtime, const Plan& plan, const TabuArguments& a,
                                       const Givens<E>& givens, Walkers walkers);

}  // namespace asterism::qap
