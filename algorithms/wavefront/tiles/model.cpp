#include "model.hpp"

#include <iterator>
#include <string>

#include "../../../runtime/error.hpp"

namespace asterism::wavefront::tile_model {
namespace {

/// A measured function of a whole number, between its arguments linear, beyond them constant.
double at(const std::map<int, double>& measured, int argument) {
  if (measured.empty()) return 0;
  const auto above = measured.lower_bound(argument);
  if (above == measured.begin()) return above->second;
  const auto below = std::prev(above);
  if (above == measured.end()) return below->second;
  const double part = static_cast<double>(argument - below->first) / (above->first - below->first);
  return below->second + part * (above->second - below->second);
}

double value_of(const TileCosts& costs, const TileProfile& tile) {
  const Terms x = tile.terms_of(costs.threads);
  double seconds = 0;
  for (std::size_t k = 0; k < terms; ++k) seconds += costs.coefficients[k] * x[k];
  return seconds;
}

}  // namespace

double Costs::thread_barriers(const TileProfile& tile, int threads) const {
  return static_cast<double>(tile.wavefronts() + 2) * at(thread, threads);
}

double Costs::block_barrier(int blocks) const { return at(block, blocks); }

double Costs::tile_seconds(const TileProfile& tile, int threads, int tiles_beside) const {
  const TileCosts *below = nullptr, *above = nullptr;
  for (const TileCosts& c : tiles) {
    if (c.threads != threads) continue;
    if (c.tiles_beside <= tiles_beside && (below == nullptr || c.tiles_beside > below->tiles_beside))
      below = &c;
    if (c.tiles_beside >= tiles_beside && (above == nullptr || c.tiles_beside < above->tiles_beside))
      above = &c;
  }
  if (below == nullptr && above == nullptr)
    throw Error("no costs of blocks of " + std::to_string(threads) + " threads were measured");
  const double fixed = thread_barriers(tile, threads);
  if (below == nullptr) return fixed + value_of(*above, tile);
  const double lower = value_of(*below, tile);
  if (above == nullptr)  // throughput is used up
    return fixed + lower * tiles_beside / below->tiles_beside;
  if (above == below) return fixed + lower;
  const double part = static_cast<double>(tiles_beside - below->tiles_beside) /
                      static_cast<double>(above->tiles_beside - below->tiles_beside);
  return fixed + lower + part * (value_of(*above, tile) - lower);
}

std::vector<double> seconds_by_tiles_beside(const Costs& costs, const TileProfile& tile, int threads,
                                            int most) {
  std::vector<double> seconds{0};
  for (int b = 1; b <= most; ++b) seconds.push_back(costs.tile_seconds(tile, threads, b));
  return seconds;
}

Parts parts_of(const Costs& costs, const LayoutOnGrid& layout) {
  const Index blocks = layout.blocks;
  const double barrier = costs.block_barrier(layout.blocks);
  Parts sums{.fixed = costs.kernel, .columns = layout.columns};
  for (const TileWavefront& w : layout.wavefronts) {
    sums.fixed += barrier;
    sums.wavefronts += 1;
    sums.strands += static_cast<double>(parts(w.strands, warp));
    if (w.tiles == 0) continue;
    const Index rounds = parts(w.tiles, blocks), last = w.tiles - (rounds - 1) * blocks;
    const double full_share = static_cast<double>(w.full) / static_cast<double>(w.tiles);
    const double before_last = static_cast<double>(rounds - 1) * layout.seconds_beside.back();
    const double in_last =
        layout.seconds_beside[static_cast<std::size_t>(parts(last, layout.multiprocessors))];
    sums.fixed += before_last * full_share + (w.full > 0 ? in_last : 0);
    sums.border += before_last * (1 - full_share) + (w.full > 0 ? 0 : in_last);
    if (w.full < w.tiles) sums.turns += static_cast<double>(rounds) * layout.columns;
  }
  return sums;
}

double total(const Costs& costs, const Parts& parts) {
  return parts.fixed + costs.border * parts.border + costs.turn * parts.turns + costs.column * parts.columns +
         costs.strands * parts.strands;
}

double columns_by_thread(int dimensions, const WavefrontTile& tile, int threads) {
  return static_cast<double>(points_of_tile(dimensions, tile) / tile.points[2]) / threads;
}

Parts parts_of(const Costs& costs, int multiprocessors, const WavefrontArgs& args) {
  const WavefrontLayout& layout = args.layout;
  const TileProfile tile(args.dimensions, layout.tile, args.has_source);
  const int beside = (layout.blocks + multiprocessors - 1) / multiprocessors;
  const std::vector<TileWavefront> wavefronts = tile_wavefronts(args);
  const std::vector<double> seconds = seconds_by_tiles_beside(costs, tile, layout.threads, beside);
  return parts_of(costs,
                  {wavefronts, seconds, columns_by_thread(args.dimensions, layout.tile, layout.threads),
                   multiprocessors, layout.blocks});
}

double predicted_seconds(const Costs& costs, int multiprocessors, const WavefrontArgs& args) {
  return total(costs, parts_of(costs, multiprocessors, args));
}

}  // namespace asterism::wavefront::tile_model
