/// \file
/// Tiles and points of wavefront SOR counted as its kernel comes to them.
#pragma once

#include "codelets/wavefront/schedule.hpp"

namespace asterism::wavefront {

/// H_e1: points of a full tile in the intra-tile wavefront e.
[[nodiscard]] inline Index points_of_wavefront(int dimensions, const WavefrontTile& tile, Index e) {
  // Points of the simplex, all coordinates from 0, less those with a coordinate too large, by inclusion and
  // exclusion.
  const auto m = tile_extents(dimensions, tile);
  Index points = 0;
  for (unsigned outside = 0; outside < 16; ++outside) {
    Index rest = e, sign = 1;
    for (unsigned axis = 0; axis < 4; ++axis)
      if ((outside >> axis & 1) != 0) {
        rest -= m[axis];
        sign = -sign;
      }
    if (rest >= 0) points += sign * ((rest + 1) * (rest + 2) / 2 * (rest + 3) / 3);
  }
  return points;
}

/// Inter-tile wavefronts of all sweeps: their sums are 0 ... this - 1.
inline Index wavefronts_of_grid(const WavefrontArgs& args) {
  return with_dimensions(args.dimensions,
                         [&](auto dims) -> Index { return WavefrontPlan<dims>(args).wavefronts(); });
}

/// The tiles of one inter-tile wavefront.
struct TileCount {
  Index tiles;    ///< dealt out to the blocks; a few at corners may turn out to have no points
  Index full;     ///< of those, the ones with all of a tile's points; the others are border tiles
  Index strands;  ///< that the blocks look through for them
};
inline TileCount tiles_of_wavefront(const WavefrontArgs& args, Index wavefront) {
  return with_dimensions(args.dimensions, [&](auto dims) {
    const WavefrontPlan<dims> plan(args);
    const int w = static_cast<int>(wavefront);
    typename WavefrontPlan<dims>::SweepTiles at;
    at.advance(plan, w);
    TileCount count{0, 0, 0};
    count.strands = plan.strands(at);
    for (int k = 0; k < plan.strands(at); ++k) {
      count.tiles += plan.strand(at, w, k).count;
      count.full += plan.strand(at, w, k, [&](int sweep_tile) { return plan.full_tiles(sweep_tile); }).count;
    }
    return count;
  });
}

}  // namespace asterism::wavefront
