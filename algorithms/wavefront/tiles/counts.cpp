#include "counts.hpp"

#include <algorithm>
#include <utility>

namespace asterism::wavefront::tile_model {
namespace {

std::vector<Index> extents_of(int dimensions, const WavefrontTile& tile) {
  std::vector<Index> extents{tile.sweeps};
  for (std::size_t axis = first_axis(dimensions); axis < 3; ++axis) extents.push_back(tile.points[axis]);
  return extents;
}

/// Tiles along one axis, first to last.
struct Range {
  Index first, last;
};

/// Counts of boxes by diagonals, many boxes at a time: sum over x of count(x) z^x = (sum of z^first prod (1 -
/// z^n)) / (1 - z)^d, so a box is 2^d numbers here and 1 / (1 - z) a running sum.
class DiagonalSums {
 public:
  DiagonalSums(Index diagonals, int dimensions)
      : dimensions_(dimensions), sums_(static_cast<std::size_t>(diagonals)) {}

  void add(Index offset, const std::vector<Range>& box) {
    if (std::any_of(box.begin(), box.end(), [](const Range& r) { return r.first > r.last; })) return;
    for (unsigned far = 0; far < 1U << box.size(); ++far) {
      Index at = offset, sign = 1;
      for (std::size_t axis = 0; axis < box.size(); ++axis) {
        const bool beyond = (far >> axis & 1U) != 0;
        at += beyond ? box[axis].last + 1 : box[axis].first;
        if (beyond) sign = -sign;
      }
      if (at < static_cast<Index>(sums_.size())) sums_[static_cast<std::size_t>(at)] += sign;
    }
  }

  std::vector<Index> finish() {
    for (int d = 0; d < dimensions_; ++d)
      for (std::size_t k = 1; k < sums_.size(); ++k) sums_[k] += sums_[k - 1];
    return std::move(sums_);
  }

 private:
  int dimensions_;
  std::vector<Index> sums_;
};

}  // namespace

const char* name(Term term) {
  constexpr std::array<const char*, terms> names{"warps",  "points", "accesses", "wavefronts",
                                                 "rounds", "rows",   "tile"};
  return names[term];
}

std::vector<Index> diagonals(const std::vector<Index>& extents) {
  Index count = 1;
  std::vector<Range> box;
  for (const Index extent : extents) {
    count += extent - 1;
    box.push_back({0, extent - 1});
  }
  DiagonalSums sums(count, static_cast<int>(extents.size()));
  sums.add(0, box);
  return sums.finish();
}

TileProfile::TileProfile(int dimensions, const WavefrontTile& tile, bool has_source)
    : wavefronts_(wavefronts_of_tile(dimensions, tile)),
      points_(points_of_tile(dimensions, tile)),
      memory_(traffic_of_tile(dimensions, tile, has_source).total()),
      accesses_(accesses_of_tile(dimensions, tile, has_source)) {
  for (const Index width : diagonals(extents_of(dimensions, tile))) {
    widest_ = std::max(widest_, width);
    ++wavefronts_by_warps_[parts(width, warp)];
  }
}

Terms TileProfile::terms_of(int threads) const {
  Terms x{};
  const Index warps_at_once = threads / warp;
  for (const auto& [width, count] : wavefronts_by_warps_) {
    x[Term::warps] += static_cast<double>(width * count);
    x[Term::rounds] += static_cast<double>(parts(width, warps_at_once) * count);
  }
  x[Term::points] = static_cast<double>(points_);
  x[Term::accesses] = static_cast<double>(accesses_.accesses);
  x[Term::wavefronts] = static_cast<double>(wavefronts_);
  x[Term::rows] = static_cast<double>(accesses_.rows);
  x[Term::tile] = 1;
  return x;
}

std::vector<TileWavefront> tile_wavefronts(const WavefrontArgs& args) {
  const WavefrontTile& tile = args.layout.tile;
  const std::size_t first = first_axis(args.dimensions);
  const Index rows = parts(args.sweeps, tile.sweeps);
  // The node i of sweep t is at i + t.
  const auto tiles_at = [&](Index row, std::size_t axis) {
    const Index last_sweep = std::min(args.sweeps, (row + 1) * tile.sweeps) - 1, m = tile.points[axis];
    return Range{row * tile.sweeps / m, (last_sweep + args.nodes[axis] - 1) / m};
  };
  const auto full_at = [&](Index row, std::size_t axis) {
    const Index begin = row * tile.sweeps, m = tile.points[axis];
    return Range{parts(begin + tile.sweeps - 1, m), (begin + args.nodes[axis]) / m - 1};
  };
  Index wavefronts = rows;
  for (std::size_t axis = first; axis < 3; ++axis) wavefronts += tiles_at(rows - 1, axis).last;

  DiagonalSums all(wavefronts, args.dimensions), full(wavefronts, args.dimensions);
  for (Index row = 0; row < rows; ++row) {
    std::vector<Range> box, full_box;
    for (std::size_t axis = first; axis < 3; ++axis) {
      box.push_back(tiles_at(row, axis));
      full_box.push_back(full_at(row, axis));
    }
    all.add(row, box);
    if ((row + 1) * tile.sweeps <= args.sweeps) full.add(row, full_box);
  }
  const std::vector<Index> of_all = all.finish(), of_full = full.finish();

  // Strands: those of the rows of sweeps, times the tiles along z, that a wavefront may have.
  const auto sum_of = [&](Index row, Index Range::*end) {
    Index sum = row;
    for (std::size_t axis = first; axis < 3; ++axis) sum += tiles_at(row, axis).*end;
    return sum;
  };
  std::vector<TileWavefront> counts;
  Index begin = 0, end = 0;
  for (Index w = 0; w < wavefronts; ++w) {
    while (end < rows && sum_of(end, &Range::first) <= w) ++end;
    while (begin < end && sum_of(begin, &Range::last) < w) ++begin;
    Index strands = end - begin;
    if (strands > 0 && first == 0) strands *= tiles_at(end - 1, 0).last - tiles_at(begin, 0).first + 1;
    const auto k = static_cast<std::size_t>(w);
    counts.push_back({of_all[k], of_full[k], strands});
  }
  return counts;
}

}  // namespace asterism::wavefront::tile_model
