#include "search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "../../../runtime/error.hpp"

namespace asterism::wavefront::tile_model {
namespace {

/// 1, 2, 3, 4, 6, 8, 12, ... and `most`.
std::vector<Index> steps_up_to(Index most) {
  std::vector<Index> steps;
  for (Index size = 1; size < most; size *= 2) {
    steps.push_back(size);
    if (size > 1 && size / 2 * 3 < most) steps.push_back(size / 2 * 3);
  }
  steps.push_back(most);
  return steps;
}

/// The largest extents that a tile may have.
WavefrontTile largest_tile(const WavefrontArgs& args, const Space& space) {
  WavefrontTile largest{space.sweeps.back(), {1, 1, 1}};
  for (std::size_t axis = first_axis(args.dimensions); axis < 3; ++axis)
    largest.points[axis] = space.points[axis].back();
  return largest;
}

/// Section 4.1's constraint on threads: most warps have some work to do in the largest wavefront, and not too
/// much.
bool has_sensible_threads(const TileProfile& tile, int threads) {
  constexpr Index most_rounds = 8;
  const Index warps_of_widest = parts(tile.widest(), warp);
  return (threads == warp || threads / 2 < warps_of_widest * warp) && tile.widest() <= most_rounds * threads;
}

/// Looks at tiles, with all thread organisations each, and keeps the best layout.
class Searching {
 public:
  Searching(const Costs& costs, const Gpu& gpu, const WavefrontArgs& args, const Space& space)
      : costs_(costs), gpu_(gpu), args_(args), space_(space) {
    best_.seconds = std::numeric_limits<double>::infinity();
  }

  /// @return whether it has become the best
  bool consider(const WavefrontTile& tile) {
    const std::size_t bytes = gpu_.shared_bytes(tile);
    if (bytes > gpu_.most_shared_bytes) return false;
    const TileProfile profile(args_.dimensions, tile, args_.has_source);
    if (profile.reuse() < space_.least_reuse) return false;
    args_.layout.tile = tile;
    const std::vector<TileWavefront> wavefronts = tile_wavefronts(args_);
    bool better = false;
    for (std::size_t k = 0; k < costs_.tiles.size();) {
      const int threads = costs_.tiles[k].threads;
      std::vector<int> beside;  // those that were measured
      for (; k < costs_.tiles.size() && costs_.tiles[k].threads == threads; ++k)
        beside.push_back(costs_.tiles[k].tiles_beside);
      if (!has_sensible_threads(profile, threads)) continue;
      const int fitting = gpu_.blocks_per_sm(threads, bytes);
      std::erase_if(beside, [&](int b) { return b > fitting; });
      if (beside.empty()) continue;
      std::vector<double> seconds = seconds_by_tiles_beside(costs_, profile, threads, beside.back());
      const double columns = columns_by_thread(args_.dimensions, tile, threads);
      for (; !beside.empty(); beside.pop_back()) {
        seconds.resize(static_cast<std::size_t>(beside.back()) + 1);
        const LayoutOnGrid layout{wavefronts, seconds, columns, gpu_.multiprocessors,
                                  beside.back() * gpu_.multiprocessors};
        better = consider(layout, threads) || better;
      }
    }
    return better;
  }

  [[nodiscard]] const Choice& best() const { return best_; }

 private:
  bool consider(const LayoutOnGrid& layout, int threads) {
    ++best_.layouts;
    const double seconds = total(costs_, parts_of(costs_, layout));
    if (!(seconds < best_.seconds)) return false;
    best_.seconds = seconds;
    best_.layout = {args_.layout.tile, threads, layout.blocks};
    return true;
  }

  const Costs& costs_;
  const Gpu& gpu_;
  WavefrontArgs args_;
  const Space& space_;
  Choice best_;
};

}  // namespace

Space space_of(const WavefrontArgs& args) {
  // Shared memory holds a box of more than the tile's points; 32 Ki numbers are more than there is.
  constexpr Index most_points = Index{1} << 15, most_extent = cuda::most_tile_extent;
  Space space;
  space.sweeps = steps_up_to(std::min(args.sweeps, args.dimensions == 1 ? most_extent : Index{256}));
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const bool meant = axis >= first_axis(args.dimensions);
    const Index most = args.dimensions == 1 ? most_points : args.dimensions == 2 ? most_extent : 128;
    space.points[axis] = meant ? steps_up_to(std::min(args.nodes[axis], most)) : std::vector<Index>{1};
  }
  // The paper's are 300, 6 and 1, for large problems; a small one wants its wavefronts wide rather than its
  // tiles large.
  constexpr std::array<double, 3> reuse{8, 1.5, 0.4};
  TileProfile largest(args.dimensions, largest_tile(args, space), args.has_source);
  space.least_reuse = std::min(reuse[static_cast<std::size_t>(args.dimensions - 1)], largest.reuse() / 4);
  return space;
}

Choice search(const Costs& costs, const Gpu& gpu, const WavefrontArgs& args, const Space& space) {
  Searching searching(costs, gpu, args, space);
  for (const Index sweeps : space.sweeps)
    for (const Index z : space.points[0])
      for (const Index y : space.points[1])
        for (const Index x : space.points[2]) searching.consider({sweeps, {z, y, x}});
  if (searching.best().layout.threads == 0)
    throw Error("no tile layout of wavefront SOR fits in a block of the GPU " + gpu.name, Blame::machine);

  // From the best one on, extents that are not in the lists.
  const WavefrontTile largest = largest_tile(args, space);
  for (const double part : {0.2, 0.05}) {
    bool better = true;
    while (better) {
      better = false;
      const WavefrontTile from = searching.best().layout.tile;
      const auto try_sizes_of = [&](auto extent_of, Index most) {
        WavefrontTile tile = from;
        const Index extent = extent_of(tile);
        const Index step =
            std::max(Index{1}, static_cast<Index>(std::llround(static_cast<double>(extent) * part)));
        for (const Index size : {extent - step, extent + step}) {
          extent_of(tile) = size;
          if (size >= 1 && size <= most) better = searching.consider(tile) || better;
        }
      };
      try_sizes_of([](WavefrontTile& t) -> Index& { return t.sweeps; }, largest.sweeps);
      for (std::size_t axis = first_axis(args.dimensions); axis < 3; ++axis)
        try_sizes_of([axis](WavefrontTile& t) -> Index& { return t.points[axis]; }, largest.points[axis]);
    }
  }
  return searching.best();
}

std::vector<WavefrontLayout> random_layouts(const Costs& costs, const Gpu& gpu, const WavefrontArgs& args,
                                            const Space& space, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto between = [&](Index most) {
    const double exponent =
        std::generate_canonical<double, 53>(random) * std::log(static_cast<double>(most) + 1);
    return std::clamp<Index>(static_cast<Index>(std::exp(exponent)), 1, most);
  };
  const WavefrontTile largest = largest_tile(args, space);
  std::vector<WavefrontLayout> layouts;
  for (std::size_t tries = 0; layouts.size() < count && tries < 100000 + 10000 * count; ++tries) {
    WavefrontTile tile{between(largest.sweeps), {1, 1, 1}};
    for (std::size_t axis = first_axis(args.dimensions); axis < 3; ++axis)
      tile.points[axis] = between(largest.points[axis]);
    const TileCosts& organisation = costs.tiles[random() % costs.tiles.size()];
    const std::size_t bytes = gpu.shared_bytes(tile);
    if (bytes > gpu.most_shared_bytes) continue;
    if (gpu.blocks_per_sm(organisation.threads, bytes) < organisation.tiles_beside) continue;
    const TileProfile profile(args.dimensions, tile, args.has_source);
    if (profile.reuse() < space.least_reuse || !has_sensible_threads(profile, organisation.threads)) continue;
    layouts.push_back({tile, organisation.threads, organisation.tiles_beside * gpu.multiprocessors});
  }
  return layouts;
}

}  // namespace asterism::wavefront::tile_model
