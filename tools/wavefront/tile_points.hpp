/// \file
/// How reports write the tiles of wavefronts.
#pragma once

#include <cstddef>
#include <vector>

#include "../../codelets/wavefront/sweeps.hpp"

namespace asterism::tools {

/// The extents of a tile that are meant in so many dimensions, the slowest first.
inline std::vector<Index> points_of(const wavefront::WavefrontTile& tile, std::size_t dimensions) {
  return {tile.points.end() - static_cast<std::ptrdiff_t>(dimensions), tile.points.end()};
}

}  // namespace asterism::tools
