/// \file
/// Who walks how many of an island's walks.
#pragma once

#include <vector>

#include "../../codelets/qap/tabu_search.hpp"
#include "../../runtime/runtime.hpp"
#include "../../runtime/tile.hpp"
#include "../common/workers.hpp"
#include "search.hpp"

namespace asterism::qap {

/// Walks of one task.
struct Batch {
  Index walks = 0;
  Hints hints;
};

/// How many walks each worker gets, in proportion to speeds. Beside GPUs a core gets no more than it makes while they
/// make theirs, which may be none: a generation waits for its last walk, of which a core has one at a time, a GPU many.
std::vector<Index> share_walks(Index walks, const std::vector<Candidate>& workers);

/// Cuts an island's walks in at most a batch for each worker of its rank: equal ones where it has cores alone; or else by
/// measured speed. With several ranks: collective, the same on all.
/// @param a of the tasks, but for rule and stop
template <class E>
std::vector<Batch> batches_of(Runtime& runtime, const TabuArguments& a, const std::vector<Tile<E>>& matrices,
                              Index walks, int rank, Walkers walkers);

}  // namespace asterism::qap
