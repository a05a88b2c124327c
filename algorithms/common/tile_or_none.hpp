/// \file
/// Tiles of which there need not be any, for ports that are Optional.
#pragma once

#include "../../runtime/codelet.hpp"

namespace asterism {

/// Nothing where the tile is empty (default-constructed).
template <class T>
OptionalTile<T> tile_or_none(const Tile<T>& tile) {
  return tile.state() == nullptr ? nullptr : &tile;
}

}  // namespace asterism
