/// \file
/// Who walks how many of an island's walks.
#pragma once

#include <vector>

#include "../../codelets/qap/tabu_search.hpp"
#include "../../runtime/runtime.hpp"
#include "../../runtime/tile.hpp"
#include "search.hpp"

namespace asterism::qap {

/// Walks of one task.
struct Batch {
  Index walks = 0;
  Hints hints;
};

/// Cuts an island's walks: equal batches where its rank has cores alone, one for each; or else by measured speed, so
/// that GPUs and cores finish together. With several ranks: collective, the same on all.
/// @param a of the tasks, but for rule and stop
template <class E>
std::vector<Batch> batches_of(Runtime& runtime, const TabuArguments& a, const std::vector<Tile<E>>& matrices,
                              Index walks, int rank, Walkers walkers);

}  // namespace asterism::qap
