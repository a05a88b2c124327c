/// \file
/// The elimination tree of a symmetric pattern, and its supernodes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "../../../codelets/decomposition/supernodes/nodes.hpp"
#include "../cut/adjacency.hpp"

namespace asterism::decomposition {

struct EliminationTree {
  std::vector<std::int32_t> parents;  ///< of each column of L: the first row below the diagonal; -1: none
  std::vector<std::int32_t> below;    ///< entries of each column below the diagonal
  Index fill = 0;                     ///< of all columns
};

/// Row by row along the tree, [Liu 1986]. None: there are more than `most` entries.
std::optional<EliminationTree> elimination_tree(const Adjacency& graph,
                                                const std::vector<std::int32_t>& old_of_new, Index most);

/// A block's rows in supernodes.
struct SupernodalOrder {
  std::vector<std::int32_t> old_of_new;
  Supernodes supernodes;
};

/// Supernodes of an order of elimination, which becomes another one with the same fill: columns with the same rows below
/// make one, and small ones join their parents while this pads them with few zeros, [Ashcraft, Grimes 1989].
/// @param tree of that order
SupernodalOrder supernodes_of(const Adjacency& graph, const std::vector<std::int32_t>& old_of_new,
                              const EliminationTree& tree);

/// The supernodes of several matrices, one behind the other: a forest.
Supernodes joined(const std::vector<Supernodes>& parts);

}  // namespace asterism::decomposition
