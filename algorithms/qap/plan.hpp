/// \file
/// What a search is made of: its islands, their walks, and who walks them.
#pragma once

#include <vector>

#include "../../codelets/qap/annealing.hpp"
#include "../../codelets/qap/selection.hpp"
#include "../common/partition.hpp"
#include "search.hpp"

namespace asterism::qap {

/// An island, whatever its rank.
struct IslandPlan {
  SelectionArguments arguments = {};
  Index walks = 0;
  int rank = 0;
};

struct Plan {
  std::vector<IslandPlan> islands;
  Index capacity = 0;  ///< of every walk's list
};

/// What makes the walks of a search: tempering islands are among themselves.
template <class E>
const WalkCodelet<E>& walk_codelet(const Plan& plan) {
  return plan.islands.front().arguments.kind == IslandKind::tempering ? codelets::anneal<E>()
                                                                      : codelets::tabu_search<E>();
}

/// Of all islands of a rank.
Index walks_of_rank(const Plan& plan, int rank);

/// @throw Error: a setting that makes no sense
Plan plan_of(const SearchSettings& settings, Index n, int ranks);

/// Tenures that leave moves which are not tabu: of lists of this length at most half of them are.
Index longest_tenure(Index n);

}  // namespace asterism::qap
