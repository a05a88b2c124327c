/// \file
/// A tile on every rank.
#pragma once

#include <vector>

#include "../../runtime/runtime.hpp"
#include "../../runtime/tile.hpp"

namespace asterism {

/// For what each rank needs in full, or works in: element r, of rows x cols, belongs to rank r.
template <class T = double>
std::vector<Tile<T>> one_per_rank(Runtime& runtime, Index rows, Index cols) {
  std::vector<Tile<T>> tiles;
  for (int rank = 0; rank < runtime.ranks(); ++rank) tiles.emplace_back(runtime, rows, cols, rank);
  return tiles;
}

}  // namespace asterism
