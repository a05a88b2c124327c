/// \file
/// What a search is made of: its islands, their walks, and who walks them.
#pragma once

#include <vector>

#include "../../codelets/qap/selection.hpp"
#include "../common/partition.hpp"
#include "search.hpp"

namespace asterism::qap {

/// An island, whatever its rank.
struct IslandPlan {
  SelectionArguments arguments;
  TabuRule rule = TabuRule::pair;
  Index walks = 0;
  int rank = 0;
};

struct Plan {
  std::vector<IslandPlan> islands;
  Index capacity = 0;  ///< of every walk's list
};

/// @throw Error: a setting that makes no sense
Plan plan_of(const SearchSettings& settings, Index n, int ranks);

/// Tenures that leave moves which are not tabu: of lists of this length at most half of them are.
Index longest_tenure(Index n);

}  // namespace asterism::qap
