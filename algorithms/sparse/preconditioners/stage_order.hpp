/// \file
/// In which order the rows of a triangular preconditioner (Q3) are worked on.
#pragma once

#include "../../common/partition.hpp"
#include "../graph/colouring.hpp"
#include "../graph/numbering.hpp"
#include "preconditioner.hpp"

namespace asterism::sparse {

/// Colours, or levels of the natural order, and the rows' numbers by them. The same on every rank.
struct StageOrder {
  Colouring stages;  ///< of all rows, by their natural numbers: each has its turn with those of its stage
  bool sequential =
      false;  ///< whether rows are worked on in their natural order, and blocks follow each other as a whole
  /// Whether rows of a grain and a stage follow each other, as they may have entries in common: for cores.
  bool grains_in_order = false;
  Numbering numbering;            ///< within grains by stage; empty where it is sequential
  std::vector<int> stage_of_row;  ///< by the new numbers; all 0 where it is sequential
};

/// A row's level is its colour: one more than the highest of the rows before it that it has an entry in common with.
Colouring by_level(PatternView graph);

/// Colours for mc_ssor and mc_ilu; for ic0 and ilu0 levels, in which a row comes after all those before it that it has an
/// entry in common with. Cores, for which these would be too many, work on grains at the same time, each in its natural
/// order, and then on the rows between grains; where most rows are between grains, on one block after the other.
/// @param pattern of all rows
StageOrder stage_order(PatternView pattern, const PreconditionerChoice& choice, const Partition& blocks,
                       int threads);

}  // namespace asterism::sparse
