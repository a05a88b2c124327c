/// \file
/// What the tile-size model counts of tiles and their wavefronts: the X of (T2), and the tiles of each
/// inter-tile wavefront. The model and its equations are in model.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <vector>

#include "../../../codelets/wavefront/sweeps.hpp"

namespace asterism::wavefront::tile_model {

/// Threads of a warp.
constexpr Index warp = 32;

/// The axes of the space that are meant: the last ones.
constexpr std::size_t first_axis(int dimensions) { return static_cast<std::size_t>(3 - dimensions); }

/// The X of (T2).
enum Term : std::size_t { warps, points, accesses, wavefronts, rounds, rows, tile, terms };
using Terms = std::array<double, terms>;
const char* name(Term term);

/// The cells of a box on each of its diagonals: those whose coordinates have the sum 0, 1, 2, ...
std::vector<Index> diagonals(const std::vector<Index>& extents);

/// What the model counts of a full tile: O(E), once for all thread organisations.
class TileProfile {
 public:
  TileProfile(int dimensions, const WavefrontTile& tile, bool has_source);

  [[nodiscard]] Terms terms_of(int threads) const;
  [[nodiscard]] Index wavefronts() const { return wavefronts_; }  ///< E
  [[nodiscard]] Index points() const { return points_; }          ///< L_TILE
  [[nodiscard]] Index memory() const { return memory_; }          ///< values loaded and stored
  [[nodiscard]] Index widest() const { return widest_; }          ///< max H_e
  /// D, points for each of these values
  [[nodiscard]] double reuse() const { return static_cast<double>(points_) / static_cast<double>(memory_); }

 private:
  Index wavefronts_, points_, memory_, widest_ = 0;
  BoxAccesses accesses_;
  std::map<Index, Index> wavefronts_by_warps_;
};

/// One inter-tile wavefront: its tiles, a few of which at corners may have no points; those of them with all
/// of a tile's points, the others being border tiles; and how many strands the blocks look through for them.
struct TileWavefront {
  Index tiles, full, strands;
};
/// All of them in one go: O(tiles of the sweeps + wavefronts).
std::vector<TileWavefront> tile_wavefronts(const WavefrontArgs& args);

}  // namespace asterism::wavefront::tile_model
