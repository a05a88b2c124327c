/// \file
/// Tiles that lie in arrays of the host, without a copy.
#pragma once

#include "../../runtime/tile.hpp"

namespace asterism {

/// A row of numbers that no task writes; an empty tile where there are none.
/// @param mine of the owner: outlives the tile
template <class T>
Tile<T> lent(Runtime& runtime, const T* mine, Index size, int owner) {
  if (size == 0) return {};
  return Tile<T>(runtime, owner == runtime.rank() ? const_cast<T*>(mine) : nullptr, 1, size, size, owner);
}

}  // namespace asterism
