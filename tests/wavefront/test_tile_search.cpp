// The search for tiles against trying everything. On a GPU: the model against runs of the kernel.

#include "algorithms/wavefront/tiles/search.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <ctime>
#include <set>
#include <vector>

#include "algorithms/wavefront/tiles/counts.hpp"
#include "algorithms/wavefront/tiles/model.hpp"
#include "plausible_costs.hpp"
#include "wavefront_problem.hpp"

#ifdef ASTERISM_WITH_CUDA
#include "algorithms/wavefront/tiles/probe.hpp"
#endif

using namespace asterism;
using namespace asterism::wavefront;
using namespace asterism::wavefront::tile_model;
using namespace asterism::test;
using doctest::Approx;

namespace {

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
