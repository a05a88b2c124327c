/// \file
/// In which order the rows of a block are eliminated, and the fill that this makes, before any factorisation.
#pragma once

#include <cstdint>
#include <vector>

#include "elimination_tree.hpp"

namespace asterism::decomposition {

struct EliminationOrder {
  std::vector<std::int32_t> old_of_new;
  /// Its fill is entries of L below the diagonal; of an L without symmetry, as long as pivots are on the diagonal.
  EliminationTree tree;
};

/// For each graph the natural order where its fill is small (a narrow band: a tridiagonal block has none), else that of
/// nested dissection (METIS) where it has less. By several threads, whose number changes nothing.
/// @param threads 0: all cores
std::vector<EliminationOrder> elimination_orders(const std::vector<const Adjacency*>& graphs,
                                                 int threads = 0);

}  // namespace asterism::decomposition
