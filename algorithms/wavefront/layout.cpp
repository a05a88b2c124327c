#include "layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "../../runtime/error.hpp"
#include "../common/workers.hpp"

namespace asterism::wavefront {
namespace {

/// Points of a slice and its frame.
Index slice_size(const WavefrontArgs& grid) {
  if (grid.dimensions == 1) return 1;
  return (grid.dimensions > 2 ? grid.nodes[1] + 2 : 1) * (grid.nodes[2] + 2);
}

/// Slices of a block on CPUs so that the blocks of as many tasks as are in flight, three of the grid and two
/// of g each, fit in main memory; all that there are where no disk takes those of the others.
/// @throw Error: without a disk, a grid and a g that do not fit; with one, not even slices that do
Index most_slices(const Machine& machine, const WavefrontArgs& grid, std::size_t element) {
  const Index slices = cpu::wavefront_slices(grid);
  const double room = static_cast<double>(machine.capacity(MemoryKind::main)),
               slice = static_cast<double>(slice_size(grid)) * static_cast<double>(element);
  const std::optional<std::size_t> tasks = tasks_in_memory(machine);
  if (!tasks && 2 * slice * static_cast<double>(slices) > room)
    throw Error(
        fmt::format("{} unknowns and their f take {}, main memory has {} for them; allow more (--memory), or "
                    "name a folder for what does not fit (--spill)",
                    fmt::join(grid.nodes.end() - grid.dimensions, grid.nodes.end(), " x "),
                    human_bytes(2 * slice * static_cast<double>(slices)), human_bytes(room)),
        Blame::machine);
  if (!tasks) return slices;
  constexpr double share = 0.9, blocks = 5;  // the rest is for what is small
  const double most = share * room / (blocks * slice * static_cast<double>(*tasks));
  if (most < 1)
    throw Error(
        fmt::format(
            "slices of {} each along the slowest axis: main memory, {}, has no room for {} of them at "
            "a time for each of {} tasks; allow more (--memory)",
            human_bytes(slice), human_bytes(room), blocks, *tasks),
        Blame::machine);
  return static_cast<Index>(std::min(most, static_cast<double>(slices)));
}

/// For CPUs. Blocks as high as the caches allow for, since a task can do as many sweeps as they have slices,
/// but enough of them that all workers find some that do not depend on each other, a few of them one after the other for
/// the sweeps that there are, and high enough for tasks that are worth their cost.
/// @param most slices of a block
WavefrontLayout choose_cpu_layout(const WavefrontArgs& grid, std::size_t element, int workers, Index most) {
  constexpr double cache = 512 << 10, worth = 4.5e4;  // bytes; points
  const auto size = static_cast<double>(slice_size(grid));
  const Index slices = cpu::wavefront_slices(grid);
  const double in_cache = cache / (2 * size * static_cast<double>(element)),
               shared = static_cast<double>(slices) / (12 * workers),
               in_turn = static_cast<double>(grid.sweeps) / 4;
  const double height = std::max(std::min({in_cache, shared, in_turn}), std::sqrt(worth / size));
  WavefrontLayout layout;
  const Index blocks_of = std::clamp<Index>(static_cast<Index>(std::ceil(height)), 1, std::min(slices, most));
  height_of(layout, grid.dimensions) = blocks_of;
  layout.tile.sweeps = std::min<Index>(blocks_of, grid.dimensions == 1 ? 256 : 64);
  return layout;
}

/// Blocks of a layout that the GPU can have at once; 0: none.
template <class T>
int most_blocks(const WavefrontArgs& grid, const WavefrontLayout& layout) {
  const std::size_t shared = cuda::wavefront_shared_bytes<T>(grid.dimensions, layout.tile, grid.has_source);
  return cuda::wavefront_blocks_per_sm<T>(grid.dimensions, layout.threads, shared) * cuda::multiprocessors();
}

/// At least as many as an inter-tile wavefront has tiles: along one axis it has one at a place.
double tiles_at_once(const WavefrontArgs& grid, const WavefrontTile& tile) {
  double all = std::ceil(static_cast<double>(grid.sweeps) / static_cast<double>(tile.sweeps)), most = all;
  for (std::size_t axis = static_cast<std::size_t>(3 - grid.dimensions); axis < 3; ++axis) {
    const double tiles = std::ceil(static_cast<double>(grid.nodes[axis] + tile.sweeps) /
                                   static_cast<double>(tile.points[axis])) +
                         1;
    all *= tiles;
    most = std::max(most, tiles);
  }
  return all / most;
}

/// For a GPU, where nothing has been measured: 256 columns for as many threads, long along x, and no larger
/// than the grid.
constexpr int untuned_threads = 256;
WavefrontTile untuned_tile(const WavefrontArgs& grid) {
  WavefrontTile tile = grid.dimensions == 1   ? WavefrontTile{256, {1, 1, 1024}}
                       : grid.dimensions == 2 ? WavefrontTile{16, {1, 16, 64}}
                                              : WavefrontTile{4, {8, 8, 32}};
  for (std::size_t axis = static_cast<std::size_t>(3 - grid.dimensions); axis < 3; ++axis)
    tile.points[axis] = std::min(tile.points[axis], grid.nodes[axis]);
  tile.sweeps = std::min(tile.sweeps, grid.sweeps);
  return tile;
}

/// What no GPU can run, before the CUDA runtime is asked.
void require_sound(const WavefrontLayout& layout, int dimensions) {
  if (!cuda::is_possible(dimensions, layout.tile)) {
    const auto m = tile_extents(dimensions, layout.tile);
    throw Error(fmt::format(
        "tiles of {} sweeps x {} points (--tile): each extent must be from 1 to {}, but for that "
        "along x, and their sum at most {}",
        m[0], fmt::join(m.end() - dimensions, m.end(), " x "), cuda::most_tile_extent, cuda::most_tile_sum));
  }
  if (layout.threads < 32 || layout.threads > 1024 || layout.threads % 32 != 0)
    throw Error(
        fmt::format("blocks of {} threads: a multiple of 32 from 32 to 1024 is wanted", layout.threads));
}

/// What this GPU cannot run.
void require_blocks(const GpuLayout& made) {
  const WavefrontLayout& layout = made.layout;
  if (layout.blocks < 1 || layout.blocks > made.most_blocks[0])
    throw Error(fmt::format(
        "the layout has {} blocks of {} threads: with its tiles, {} sweeps x {} points, 1 to {} blocks "
        "can be on the GPU at once",
        layout.blocks, layout.threads, layout.tile.sweeps, fmt::join(layout.tile.points, " x "),
        made.most_blocks[0]));
}

}  // namespace

WavefrontLayout layout_on_cpus(const Machine& machine, const WavefrontArgs& grid, std::size_t element,
                               const std::optional<WavefrontLayout>& given) {
  const Index most = most_slices(machine, grid, element);
  WavefrontLayout layout =
      given ? *given : choose_cpu_layout(grid, element, machine.count(WorkerKind::cpu), most);
  Index& height = height_of(layout, grid.dimensions);
  Index& sweeps = layout.tile.sweeps;
  if (sweeps < 1 || height < sweeps)
    throw Error(
        fmt::format("tiles of {} sweep{} x {} slice{} along the slowest axis (--tile): on CPUs a tile has at "
                    "least 1 sweep and no more sweeps than slices",
                    sweeps, sweeps == 1 ? "" : "s", height, height == 1 ? "" : "s"));
  height = std::min(height, most);
  sweeps = std::min({sweeps, height, grid.sweeps});
  return layout;
}

template <class T>
GpuLayout layout_on_gpu(Runtime& runtime, const WavefrontArgs& grid,
                        const std::optional<WavefrontLayout>& given) {
  GpuLayout made;
  if constexpr (built_with_cuda) {
    WavefrontLayout& layout = made.layout;
    layout = given.value_or(WavefrontLayout{untuned_tile(grid)});
    if (layout.threads == 0) layout.threads = untuned_threads;
    require_sound(layout, grid.dimensions);
    runtime.on_worker(WorkerKind::cuda, 0, [&] {
      WavefrontArgs with = grid;
      for (const bool has_source : {false, true}) {  // which takes more room
        with.has_source = has_source;
        made.most_blocks[has_source ? 1 : 0] = most_blocks<T>(with, layout);
      }
    });
    if (made.most_blocks[0] == 0)
      throw Error(fmt::format(
          "tiles of {} sweeps x {} points (--tile) do not fit in a block of the GPU: choose smaller ones",
          layout.tile.sweeps, fmt::join(layout.tile.points, " x ")));
    if (layout.blocks == 0)
      layout.blocks = static_cast<int>(std::min<double>(made.most_blocks[made.most_blocks[1] > 0 ? 1 : 0],
                                                        std::ceil(tiles_at_once(grid, layout.tile))));
    require_blocks(made);
  }
  return made;
}

template GpuLayout layout_on_gpu<float>(Runtime&, const WavefrontArgs&,
                                        const std::optional<WavefrontLayout>&);
template GpuLayout layout_on_gpu<double>(Runtime&, const WavefrontArgs&,
                                         const std::optional<WavefrontLayout>&);

}  // namespace asterism::wavefront
