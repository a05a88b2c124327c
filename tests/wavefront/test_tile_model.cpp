// The tile-size model against its equations worked out by hand, its counts against counting, its fit against
// known costs, its search against trying everything. On a GPU: against runs of the kernel.

#include "algorithms/wavefront/tiles/model.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "algorithms/wavefront/tiles/fit.hpp"
#include "algorithms/wavefront/tiles/probe.hpp"
#include "algorithms/wavefront/tiles/search.hpp"
#include "plausible_costs.hpp"
#include "wavefront_counts.hpp"

using namespace asterism;
using namespace asterism::wavefront;
using namespace asterism::wavefront::tile_model;
using namespace asterism::test;
using doctest::Approx;

namespace {

WavefrontArgs problem(std::vector<Index> nodes, Index sweeps, const WavefrontTile& tile = {}) {
  WavefrontArgs args;
  args.dimensions = static_cast<int>(nodes.size());
  for (std::size_t k = 0; k < nodes.size(); ++k) args.nodes[3 - nodes.size() + k] = nodes[k];
  args.sweeps = sweeps;
  args.layout.tile = tile;
  return args;
}

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

/// Costs with one coefficient each, easy to reckon with.
Costs round_costs() {
  Costs costs;
  costs.kernel = 1000;
  costs.thread = {{32, 1}, {64, 3}};
  costs.block = {{4, 100}, {8, 200}};
  costs.border = 0.5;
  TileCosts one{.threads = 32, .tiles_beside = 1}, two{.threads = 32, .tiles_beside = 2};
  one.coefficients[warps] = 10;
  one.coefficients[points] = 0.5;
  one.coefficients[accesses] = 2;
  two.coefficients[warps] = 20;
  two.coefficients[points] = 1;
  two.coefficients[accesses] = 4;
  costs.tiles = {one, two};
  return costs;
}

/// A GPU that exists here only: 4 multiprocessors, as many blocks on each as its threads and shared memory
/// allow.
Gpu toy_gpu(int dimensions) {
  constexpr std::size_t shared = 16384;
  return {.name = "toy",
          .multiprocessors = 4,
          .most_shared_bytes = shared,
          .shared_bytes =
              [dimensions](const WavefrontTile& tile) {
                std::size_t box = 8;
                for (int axis = 3 - dimensions; axis < 3; ++axis)
                  box *=
                      static_cast<std::size_t>(tile.points[static_cast<std::size_t>(axis)] + tile.sweeps + 1);
                return box;
              },
          .blocks_per_sm =
              [](int threads, std::size_t bytes) {
                return std::min(256 / threads, static_cast<int>(shared / std::max<std::size_t>(bytes, 1)));
              }};
}

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

TEST_CASE("equations (8) to (12) by hand") {
  const Costs costs = round_costs();
  const TileProfile tile(1, {4, {1, 1, 40}}, false);
  const double t1 = 10 * 43 + 45 * 1 + 0.5 * 160 + 2 * 4;  // (8)
  const double t2 = 20 * 43 + 45 * 1 + 1.0 * 160 + 4 * 4;
  CHECK(costs.tile_seconds(tile, 32, 1) == Approx(t1));
  CHECK(costs.tile_seconds(tile, 32, 2) == Approx(t2));
  CHECK_THROWS_AS((void)costs.tile_seconds(tile, 64, 1), Error);

  // Sixteen rows of sweeps on 78 nodes.
  WavefrontArgs args = problem({78}, 64, {4, {1, 1, 40}});
  args.layout.threads = 32;
  for (const int blocks : {4, 8}) {
    args.layout.blocks = blocks;
    double expected = costs.kernel;
    for (const TileWavefront& count : tile_wavefronts(args)) {
      expected += blocks == 4 ? 100 : 200;
      REQUIRE(count.tiles <= 4);  // one round, one tile on a multiprocessor
      expected += count.full > 0 ? t1 : count.tiles > 0 ? 0.5 * t1 : 0;
    }
    CHECK(predicted_seconds(costs, 4, args) == Approx(expected));
  }

  // One tile after the other: a row of sweeps, three tiles without a border among five.
  WavefrontArgs row = problem({160}, 4, {4, {1, 1, 40}});
  row.layout.threads = 32;
  row.layout.blocks = 4;
  CHECK(predicted_seconds(costs, 4, row) == Approx(1000 + 5 * 100 + 3 * t1 + 2 * 0.5 * t1));

  // Wavefronts of many tiles on two multiprocessors: rounds of 4 (two on each) or 3, then what is left. A
  // tile of 4 columns and 32 threads lists the turns of border tiles with an eighth of a column for each.
  Costs with_turns = costs;
  with_turns.turn = 80;
  for (const int blocks : {4, 3}) {
    WavefrontArgs wide = problem({4000}, 160, {4, {1, 1, 40}});
    wide.layout.threads = 32;
    wide.layout.blocks = blocks;
    double expected = 1000;
    Index most = 0;
    for (const TileWavefront& count : tile_wavefronts(wide)) {
      most = std::max(most, count.tiles);
      expected += 100;
      if (count.tiles == 0) continue;
      const Index full_rounds = (count.tiles - 1) / blocks, left = count.tiles - blocks * full_rounds;
      const double border_share = 1 - static_cast<double>(count.full) / static_cast<double>(count.tiles);
      expected += static_cast<double>(full_rounds) * t2 * (1 - 0.5 * border_share) +
                  (count.full > 0 ? 1 : 0.5) * (left > 2 ? t2 : t1);
      if (border_share > 0) expected += static_cast<double>(full_rounds + 1) * 80 * 0.125;
    }
    CHECK(most > 12);
    CHECK(predicted_seconds(with_turns, 2, wide) == Approx(expected));
  }
}

TEST_CASE("(T4): columns and strands, by hand, and found again from runs") {
  Costs costs = round_costs();
  WavefrontArgs args = problem({40, 50}, 12, {3, {1, 8, 10}});
  args.layout.threads = 32;
  args.layout.blocks = 8;
  const double without = predicted_seconds(costs, 4, args);
  costs.column = 64;
  CHECK(predicted_seconds(costs, 4, args) == Approx(without + 64 * 24.0 / 32));
  costs.column = 0;
  costs.strands = 7;
  // In two dimensions at most a strand for each of the four rows of sweeps: always one look.
  CHECK(predicted_seconds(costs, 4, args) ==
        Approx(without + 7.0 * static_cast<double>(tile_wavefronts(args).size())));

  costs.column = 400;
  costs.strands = 30;
  costs.border = 0.7;
  costs.turn = 12;
  std::vector<Run> runs;
  for (const Index m1 : {1, 2, 3, 4})
    for (const Index m : {2, 5, 9})
      for (const int blocks : {4, 8})
        for (const Index n : {20, 50}) {
          Run run{problem({n, 30, 2 * n}, 12, {m1, {m, 4, 7}}), 0};
          run.args.layout.threads = 32;
          run.args.layout.blocks = blocks;
          run.seconds = predicted_seconds(costs, 4, run.args);
          runs.push_back(run);
        }
  Costs found = round_costs();
  found.block = {{4, 80}, {8, 180}};  // 20 too little
  calibrate(found, 4, runs);
  CHECK(found.border == Approx(0.7));
  CHECK(found.turn == Approx(12));
  CHECK(found.column == Approx(400));
  CHECK(found.strands == Approx(30));
  CHECK(found.block.at(4) == Approx(100));
  CHECK(found.block.at(8) == Approx(200));
}

TEST_CASE("costs between and beyond those that were measured") {
  Costs costs = round_costs();
  costs.tiles[1].tiles_beside = 3;
  const TileProfile tile(1, {4, {1, 1, 40}}, false);
  const double t1 = costs.tile_seconds(tile, 32, 1), t3 = costs.tile_seconds(tile, 32, 3);
  CHECK(costs.tile_seconds(tile, 32, 2) == Approx((t1 + t3) / 2));
  CHECK(costs.tile_seconds(tile, 32, 6) == Approx(2 * (t3 - 45) + 45));
}

TEST_CASE("the fit finds known costs again, in spite of noise") {
  std::mt19937 random(3);
  std::normal_distribution<double> noise(0, 0.01);
  std::vector<TileProfile> tiles;
  for (const Index m1 : {1, 2, 5, 9, 16, 24})
    for (const Index m : {3, 8, 17, 32})
      for (const Index n : {5, 16, 60}) tiles.emplace_back(2, WavefrontTile{m1, {1, m, n}}, false);
  for (const int threads : {32, 128})
    for (const int b : {1, 4}) {
      Terms known{};
      known[warps] = 3e-8;
      known[wavefronts] = 2e-7;
      known[rounds] = threads == 32 ? 1e-7 : 0;
      known[accesses] = 1e-8;
      std::vector<Terms> counted;
      std::vector<double> exact, noisy;
      for (const TileProfile& tile : tiles) {
        counted.push_back(tile.terms_of(threads));
        exact.push_back(std::inner_product(known.begin(), known.end(), counted.back().begin(), 0.0));
        noisy.push_back(exact.back() * (1 + noise(random)));
      }
      const auto value = [](const Terms& c, const Terms& x) {
        return std::inner_product(c.begin(), c.end(), x.begin(), 0.0);
      };
      const Terms from_exact = fit(counted, exact), from_noisy = fit(counted, noisy);
      for (std::size_t i = 0; i < counted.size(); ++i) {
        CHECK(value(from_exact, counted[i]) == Approx(exact[i]).epsilon(1e-6));
        CHECK(value(from_noisy, counted[i]) == Approx(exact[i]).epsilon(0.015));
      }
      for (std::size_t k = 0; k < terms; ++k) CHECK(from_noisy[k] >= 0);
      // warps and rounds are the same number when a round is one warp, and points are nearly that.
      if (threads == 128 && b == 1) {
        CHECK(from_exact[wavefronts] == Approx(known[wavefronts]).epsilon(1e-3));
        CHECK(from_exact[warps] == Approx(known[warps]).epsilon(1e-3));
        CHECK(from_exact[accesses] == Approx(known[accesses]).epsilon(1e-3));
      }
    }
}

TEST_CASE("a cost that would be negative is none") {
  std::vector<Terms> counted;
  std::vector<double> seconds;
  double sum = 0, squares = 0;
  for (int i = 1; i <= 10; ++i) {
    Terms x{};
    x[warps] = i;
    x[tile] = 1;
    counted.push_back(x);
    seconds.push_back(i - 0.5);
    const double ratio = i / seconds.back();
    sum += ratio;
    squares += ratio * ratio;
  }
  const Terms c = fit(counted, seconds);
  CHECK(c[tile] == 0);
  CHECK(c[warps] == Approx(sum / squares));
}

TEST_CASE("the search finds what trying everything finds") {
  const Costs costs = plausible_costs();
  for (WavefrontArgs args : {problem({3000}, 300), problem({100, 120}, 30), problem({20, 30, 40}, 10)}) {
    CAPTURE(args.dimensions);
    const Gpu gpu = toy_gpu(args.dimensions);
    const Space space = space_of(args);
    const Choice choice = search(costs, gpu, args, space);
    CHECK(choice.layouts > 10);

    double least = 1e300;
    for (const Index sweeps : space.sweeps)
      for (const Index z : space.points[0])
        for (const Index y : space.points[1])
          for (const Index x : space.points[2]) {
            args.layout.tile = {sweeps, {z, y, x}};
            const TileProfile tile(args.dimensions, args.layout.tile, false);
            if (gpu.shared_bytes(args.layout.tile) > gpu.most_shared_bytes ||
                tile.reuse() < space.least_reuse)
              continue;
            for (const TileCosts& c : costs.tiles) {
              if (gpu.blocks_per_sm(c.threads, gpu.shared_bytes(args.layout.tile)) < c.tiles_beside) continue;
              if (c.threads > 32 && c.threads / 2 >= (tile.widest() + 31) / 32 * 32) continue;
              if (tile.widest() > 8 * c.threads) continue;
              args.layout.threads = c.threads;
              args.layout.blocks = c.tiles_beside * gpu.multiprocessors;
              least = std::min(least, predicted_seconds(costs, gpu.multiprocessors, args));
            }
          }
    // Small steps from the best one make it better, if anything.
    CHECK(choice.seconds <= least * (1 + 1e-12));
    CHECK(choice.seconds >= least / 2);
    args.layout = choice.layout;
    CHECK(predicted_seconds(costs, gpu.multiprocessors, args) == Approx(choice.seconds));
    CHECK(gpu.shared_bytes(choice.layout.tile) <= gpu.most_shared_bytes);
    CHECK(TileProfile(args.dimensions, choice.layout.tile, false).reuse() >= space.least_reuse);
  }
}

TEST_CASE("no layout fits") {
  Gpu gpu = toy_gpu(1);
  gpu.most_shared_bytes = 8;
  const WavefrontArgs args = problem({100}, 10);
  CHECK_THROWS_WITH_AS((void)search(plausible_costs(), gpu, args, space_of(args)),
                       doctest::Contains("no tile layout of wavefront SOR fits in a block of the GPU toy"),
                       Error);
}

TEST_CASE("random layouts are those that the search may choose, and differ") {
  const Costs costs = plausible_costs();
  for (const WavefrontArgs& args :
       {problem({3000}, 300), problem({100, 120}, 30), problem({20, 30, 40}, 10)}) {
    const Gpu gpu = toy_gpu(args.dimensions);
    const Space space = space_of(args);
    const auto layouts = random_layouts(costs, gpu, args, space, 100, 1);
    REQUIRE(layouts.size() == 100);
    std::set<std::array<Index, 6>> different;
    for (const WavefrontLayout& layout : layouts) {
      const auto& m = layout.tile.points;
      different.insert({layout.tile.sweeps, m[0], m[1], m[2], layout.threads, layout.blocks});
      CHECK(gpu.blocks_per_sm(layout.threads, gpu.shared_bytes(layout.tile)) * 4 >= layout.blocks);
      CHECK(layout.blocks % 4 == 0);
      CHECK(TileProfile(args.dimensions, layout.tile, false).reuse() >= space.least_reuse);
      CHECK(layout.tile.sweeps <= args.sweeps);
    }
    CHECK(different.size() > 80);
    CHECK(random_layouts(costs, gpu, args, space, 100, 1).front().tile.points == layouts.front().tile.points);
  }
}

// --- On a GPU -------------------------------------------------------------------------------------------

#ifdef ASTERISM_WITH_CUDA

TEST_CASE("gpu: the counts of shared memory and blocks are those of the kernel") {
  Runtime runtime;
  const Probe<double> probe(runtime, 2, false);
  const Gpu& gpu = probe.gpu();
  CHECK(gpu.multiprocessors > 0);
  CHECK(gpu.most_shared_bytes >= 48 << 10);
  CHECK(gpu.blocks_per_sm(32, gpu.most_shared_bytes + 1) == 0);
  CHECK(gpu.blocks_per_sm(32, gpu.most_shared_bytes) >= 1);
  CHECK(gpu.blocks_per_sm(128, 20 << 10) >= gpu.blocks_per_sm(128, 60 << 10));
  // What it says can run does; what it says cannot is refused, not tried.
  WavefrontArgs args = problem({200, 300}, 20);
  args.along = {0, 0.25, 0.25};
  WavefrontLayout layout{{4, {1, 16, 16}}, 64, 0};
  layout.blocks = gpu.blocks_per_sm(64, gpu.shared_bytes(layout.tile)) * gpu.multiprocessors;
  WavefrontLayout beyond = layout;
  beyond.blocks += gpu.multiprocessors;
  const std::vector<double> seconds = probe.run(args, {layout, beyond}, 3);
  REQUIRE(seconds.size() == 2);
  CHECK(seconds[0] > 0);
  CHECK(seconds[0] < 1);
  CHECK(std::isinf(seconds[1]));
}

TEST_CASE("gpu: predictions against runs of random layouts, the choice against the best of them") {
  Runtime runtime;
  const Probe<double> probe(runtime, 2, false);
  const Costs costs = probe.measure();
  REQUIRE(costs.tiles.size() > 5);
  CHECK(costs.kernel > 0);
  CHECK(costs.border <= 1);
  WavefrontArgs args = problem({1500, 1700}, 100);
  args.along = {0, 0.25, 0.25};
  const Space space = space_of(args);

  const auto cpu_seconds = [] {  // of this thread: others may be on its core
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double start = cpu_seconds();
  const Choice choice = search(costs, probe.gpu(), args, space);
  CHECK(cpu_seconds() - start < 10);

  auto layouts = random_layouts(costs, probe.gpu(), args, space, 50, 5);
  REQUIRE(layouts.size() == 50);
  layouts.push_back(choice.layout);
  const std::vector<double> seconds = probe.run(args, layouts, 3);
  std::vector<double> errors;
  for (std::size_t k = 0; k < 50; ++k) {
    REQUIRE(std::isfinite(seconds[k]));
    args.layout = layouts[k];
    errors.push_back(std::abs(predicted_seconds(costs, probe.gpu().multiprocessors, args) / seconds[k] - 1));
    REQUIRE(std::isfinite(errors.back()));
  }
  std::sort(errors.begin(), errors.end());
  CAPTURE(errors.back());
  CHECK(errors[25] < 0.06);
  CHECK(seconds[50] < 1.06 * *std::min_element(seconds.begin(), seconds.begin() + 50));
}

#endif
