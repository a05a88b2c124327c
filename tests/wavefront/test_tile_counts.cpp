// What the tile-size model counts (points, tiles, terms), against counting and by hand.

#include "algorithms/wavefront/tiles/counts.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <map>
#include <numeric>
#include <vector>

#include "wavefront_counts.hpp"
#include "wavefront_problem.hpp"

using namespace asterism;
using namespace asterism::wavefront;
using namespace asterism::wavefront::tile_model;
using namespace asterism::test;

namespace {

/// Points by tile, by visiting every point of every sweep: tile (T, S_z, S_y, S_x) of the point i of sweep t.
std::map<std::array<Index, 4>, Index> points_by_tile(const WavefrontArgs& args) {
  std::map<std::array<Index, 4>, Index> points;
  const auto nodes = [&](std::size_t axis) {
    return static_cast<int>(axis) >= 3 - args.dimensions ? args.nodes[axis] : 1;
  };
  for (Index t = 0; t < args.sweeps; ++t)
    for (Index z = 0; z < nodes(0); ++z)
      for (Index y = 0; y < nodes(1); ++y)
        for (Index x = 0; x < nodes(2); ++x) {
          const std::array<Index, 3> i{z, y, x};
          std::array<Index, 4> tile{t / args.layout.tile.sweeps, 0, 0, 0};
          for (std::size_t axis = static_cast<std::size_t>(3 - args.dimensions); axis < 3; ++axis)
            tile[axis + 1] = (i[axis] + t) / args.layout.tile.points[axis];
          ++points[tile];
        }
  return points;
}

Index sum(const std::array<Index, 4>& tile) { return std::accumulate(tile.begin(), tile.end(), Index{0}); }

const std::vector<WavefrontArgs> small_problems{
    problem({1}, 1, {1, {1, 1, 1}}),          problem({13}, 7, {2, {1, 1, 3}}),
    problem({5}, 9, {4, {1, 1, 4}}),          problem({64}, 16, {8, {1, 1, 16}}),
    problem({3}, 20, {20, {1, 1, 2}}),        problem({7, 11}, 5, {2, {1, 3, 4}}),
    problem({16, 16}, 8, {4, {1, 4, 4}}),     problem({1, 9}, 6, {3, {1, 2, 5}}),
    problem({17, 4}, 12, {1, {1, 1, 1}}),     problem({5, 6, 7}, 4, {2, {2, 3, 4}}),
    problem({12, 12, 12}, 6, {2, {4, 4, 4}}), problem({9, 2, 5}, 7, {3, {8, 1, 2}}),
};

}  // namespace

TEST_CASE("the points of a box by diagonals") {
  CHECK(diagonals({3}) == std::vector<Index>{1, 1, 1});
  CHECK(diagonals({2, 3}) == std::vector<Index>{1, 2, 2, 1});
  CHECK(diagonals({1, 1, 1, 1}) == std::vector<Index>{1});
  for (const std::vector<Index>& extents :
       std::vector<std::vector<Index>>{{4, 7}, {5, 1, 3}, {2, 3, 4, 5}, {31, 17}}) {
    WavefrontTile tile{extents[0], {1, 1, 1}};
    const int dimensions = static_cast<int>(extents.size()) - 1;
    for (std::size_t k = 1; k < extents.size(); ++k) tile.points[3 - extents.size() + k] = extents[k];
    const std::vector<Index> counted = diagonals(extents);
    REQUIRE(static_cast<Index>(counted.size()) == wavefront::wavefronts_of_tile(dimensions, tile));
    for (std::size_t e = 0; e < counted.size(); ++e)
      CHECK(counted[e] == wavefront::points_of_wavefront(dimensions, tile, static_cast<Index>(e)));
  }
}

TEST_CASE("tiles of inter-tile wavefronts, against visiting every point") {
  for (const WavefrontArgs& args : small_problems) {
    CAPTURE(args.dimensions);
    CAPTURE(args.nodes);
    CAPTURE(args.layout.tile.points);
    const std::vector<TileWavefront> counted = tile_wavefronts(args);
    REQUIRE(static_cast<Index>(counted.size()) == wavefront::wavefronts_of_grid(args));
    std::map<Index, Index> with_points, full;
    for (const auto& [tile, points] : points_by_tile(args)) {
      ++with_points[sum(tile)];
      if (points == wavefront::points_of_tile(args.dimensions, args.layout.tile)) ++full[sum(tile)];
    }
    for (std::size_t w = 0; w < counted.size(); ++w) {
      CAPTURE(w);
      const auto wavefront = static_cast<Index>(w);
      const wavefront::TileCount kernels_count = wavefront::tiles_of_wavefront(args, wavefront);
      CHECK(counted[w].strands == kernels_count.strands);
      CHECK(counted[w].tiles == kernels_count.tiles);
      CHECK(counted[w].full == kernels_count.full);
      CHECK(counted[w].full == full[wavefront]);
      // The corners that have no points, in two dimensions and more, are dealt out all the same.
      if (args.dimensions == 1)
        CHECK(counted[w].tiles == with_points[wavefront]);
      else
        CHECK(counted[w].tiles >= with_points[wavefront]);
    }
  }
}

TEST_CASE("the terms of a tile, by hand") {
  // 4 sweeps x 40 points: wavefronts of 1, 2, 3, 4 (37 times), 3, 2, 1 points.
  const TileProfile narrow(1, {4, {1, 1, 40}}, false);
  CHECK(narrow.wavefronts() == 43);
  CHECK(narrow.points() == 160);
  CHECK(narrow.widest() == 4);
  CHECK(narrow.memory() == (40 + 2 + 3) + (40 + 3));
  const Terms x = narrow.terms_of(32);
  CHECK(x[warps] == 43);
  CHECK(x[points] == 160);
  CHECK(x[accesses] == 2 + 2);  // of 45 and 43 values
  CHECK(x[rows] == 1);
  CHECK(x[wavefronts] == 43);
  CHECK(x[rounds] == 43);
  CHECK(x[tile] == 1);

  // 100 sweeps x 100 points: wavefronts of 1, 2, ... 99, 100, 99, ... 1 points; 1, 2, 3, 4 warps: 32, 32, 32
  // and 3 points wide on the way up, with 100, so 64, 64, 64 and 7 of them.
  const TileProfile square(1, {100, {1, 1, 100}}, true);
  const Terms of_square = square.terms_of(64);
  CHECK(of_square[warps] == 64 * 1 + 64 * 2 + 64 * 3 + 7 * 4);
  CHECK(of_square[rounds] == 64 + 64 + 2 * 64 + 2 * 7);
  CHECK(of_square[points] == 10000);
  CHECK(square.memory() == (102 + 99) + 2 * (100 + 99));
  CHECK(of_square[accesses] == 3 * 7);

  // 2 sweeps x 3 x 40 points: a box of 6 rows. All of them are touched, 42 to 43 nodes wide; the four in the
  // middle are changed, 40 to 41 wide.
  const Terms of_rows = TileProfile(2, {2, {1, 3, 40}}, true).terms_of(32);
  CHECK(of_rows[rows] == 6);
  CHECK(of_rows[accesses] == 6 * 2 + 2 * 4 * 2);
}
