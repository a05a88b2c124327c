// The tile-size model against its equations worked out by hand, its fit against known costs.

#include "algorithms/wavefront/tiles/model.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>
#include <vector>

#include "algorithms/wavefront/tiles/counts.hpp"
#include "algorithms/wavefront/tiles/fit.hpp"
#include "wavefront_problem.hpp"

using namespace asterism;
using namespace asterism::wavefront;
using namespace asterism::wavefront::tile_model;
using namespace asterism::test;
using doctest::Approx;

namespace {

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

}  // namespace

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
