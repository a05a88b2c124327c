/// \file
/// In which order the rows of a block are eliminated, and the fill that this makes, before any factorisation.
#pragma once

#include <cstdint>
#include <vector>

#include "../cut/subdomains.hpp"

namespace asterism::decomposition {

struct EliminationOrder {
  std::vector<std::int32_t> old_of_new;
  /// Entries of L below the diagonal; of an L without symmetry, as long as pivots are on the diagonal.
  Index fill = 0;
};

/// The natural order where its fill is small (a narrow band: a tridiagonal block has none), else METIS' nested
/// dissection where that has less.
EliminationOrder elimination_order(const Adjacency& graph);

}  // namespace asterism::decomposition
