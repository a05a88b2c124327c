// One cooperative launch does all sweeps of a task. Between two inter-tile wavefronts all blocks meet at a
// barrier of their own; the tiles of a wavefront, numbered strand by strand, are dealt to the blocks in turn,
// to one on each multiprocessor first.
// A block brings what a tile touches to shared memory, goes through the tile's wavefronts there, with a
// barrier of its threads after each, and takes back what has changed.
#include <string>

#include "../../runtime/cuda.hpp"
#include "../common/occupancy.cuh"
#include "../sums/block_sums.cuh"
#include "schedule.hpp"
#include "tile.cuh"

namespace asterism::wavefront::cuda {

using asterism::cuda::check;
using asterism::cuda::check_launch;
using asterism::cuda::native;

namespace {

template <int dims, class T>
__global__ void __launch_bounds__(most_threads, 1) wavefront_kernel(const Sweeps<dims, T> sweeps) {
  extern __shared__ __align__(16) unsigned char bytes[];
  const WavefrontPlan<dims>& plan = sweeps.plan;
  const int block = number_of_block(sweeps.meeting, reinterpret_cast<unsigned*>(bytes));
  const SharedMemory<dims, T> memory(bytes, sweeps);
  memory.list_columns(plan);
  __syncthreads();

  using Strand = typename WavefrontPlan<dims>::Strand;
  const bool probes = sweeps.probed_wavefronts > 0;
  const int lane = static_cast<int>(threadIdx.x) % 32, blocks = static_cast<int>(gridDim.x);
  const int wavefronts = probes ? sweeps.probed_wavefronts : plan.wavefronts();
  typename WavefrontPlan<dims>::SweepTiles at;
  bool turns_of_full = false;
  for (int w = 0; w < wavefronts; ++w) {
    if (!probes) at.advance(plan, w);
    // Every warp finds the block's tiles by itself: 32 strands at a time, the tiles before them counted by a
    // scan.
    const int strands = probes ? 1 : plan.strands(at);
    int next = block, before = 0;  // the block's next tile; tiles of earlier strands
    for (int first = 0; first < strands; first += 32) {
      Strand strand{0, 0, 0, 0};
      if (first + lane < strands)
        strand = probes ? Strand{0, 0, 0, blocks} : plan.strand(at, w, first + lane);
      int up_to = strand.count;
#pragma unroll
      for (int step = 1; step < 32; step *= 2) {
        const int other = __shfl_up_sync(everyone, up_to, step);
        if (lane >= step) up_to += other;
      }
      const int all = __shfl_sync(everyone, up_to, 31);
      for (; next < before + all; next += blocks) {
        const int owner = __ffs(static_cast<int>(__ballot_sync(everyone, before + up_to > next))) - 1;
        const Strand its{__shfl_sync(everyone, strand.sweep_tile, owner),
                         __shfl_sync(everyone, strand.z, owner), __shfl_sync(everyone, strand.first, owner),
                         __shfl_sync(everyone, strand.count, owner)};
        const int number = next - before - (__shfl_sync(everyone, up_to, owner) - its.count);
        run_tile(sweeps, memory,
                 probes ? sweeps.probed_tile(static_cast<unsigned>(w * blocks + number))
                        : plan.tile(w, its, number),
                 turns_of_full);
      }
      before += all;
    }
    if (w + 1 < wavefronts) meet(sweeps.meeting, static_cast<unsigned>(w) + 2);
  }
}

template <class T>
const void* kernel_of(int dimensions) {
  return with_dimensions(
      dimensions, [](auto dims) { return reinterpret_cast<const void*>(wavefront_kernel<dims(), T>); });
}

/// @throw Error when the layout cannot be run.
template <class T>
void require_sound(const WavefrontArgs& args, std::size_t shared) {
  const WavefrontLayout& layout = args.layout;
  const auto text = [](auto number) { return std::to_string(number); };
  constexpr Index most_nodes = Index{1} << 30, most_wavefronts = Index{1} << 31;
  const auto m = tile_extents(args.dimensions, layout.tile);
  if (!is_possible(args.dimensions, layout.tile))
    throw Error("a tile of " + text(m[0]) + " sweeps x " + text(m[1]) + " x " + text(m[2]) + " x " +
                text(m[3]) + " points: each must be at least 1, all but the last at most " +
                text(most_tile_extent) + ", and their sum at most " + text(most_tile_sum));
  Index wavefronts = (args.sweeps + m[0] - 1) / m[0];
  for (int axis = 3 - args.dimensions; axis < 3; ++axis) {
    const Index n = args.nodes[static_cast<std::size_t>(axis)];
    if (n + args.sweeps >= most_nodes)
      throw Error("an axis of " + text(n) + " nodes and " + text(args.sweeps) +
                  " sweeps: their sum must be below " + text(most_nodes) + "; submit fewer sweeps at once");
    wavefronts += (n + args.sweeps) / m[static_cast<std::size_t>(axis) + 1];
  }
  if (wavefronts >= most_wavefronts)
    throw Error(text(wavefronts) + " wavefronts of tiles: there must be fewer than " + text(most_wavefronts) +
                "; choose larger tiles, or submit fewer sweeps at once");
  if (multiprocessors() > most_multiprocessors)
    throw Error("a GPU of " + text(multiprocessors()) + " multiprocessors: the kernel counts up to " +
                text(most_multiprocessors));
  if (layout.threads < 32 || layout.threads > most_threads || layout.threads % 32 != 0)
    throw Error("blocks of " + text(layout.threads) + " threads: it must be a multiple of 32 from 32 to " +
                text(most_threads));
  if (shared > most_shared_bytes())
    throw Error("a tile takes " + text(shared) + " bytes of shared memory, a block can have " +
                text(most_shared_bytes()) + ": choose a smaller tile");
  const int resident =
      wavefront_blocks_per_sm<T>(args.dimensions, layout.threads, shared) * multiprocessors();
  if (layout.blocks < 1 || layout.blocks > resident)
    throw Error("a grid of " + text(layout.blocks) + " blocks of " + text(layout.threads) + " threads with " +
                text(shared) + " bytes of shared memory: 1 to " + text(resident) +
                " can be on the GPU at once, and all have to");
}

constexpr int summing_threads = 256;

struct ResidualGrid {
  int dimensions;
  Index nodes[3], count;
  double along[3];
  SweptGrid u_at, g_at;
  bool has_source;
};

template <class T>
__global__ void __launch_bounds__(summing_threads)
    residual_kernel(const ResidualGrid grid, const T* u, const T* g, sums::SquareSum* work) {
  sums::SquareSum squares[wavefront_sums] = {};
  for (Index k = Index{blockIdx.x} * summing_threads + threadIdx.x; k < grid.count;
       k += Index{gridDim.x} * summing_threads) {
    const Index x = k % grid.nodes[2], row = k / grid.nodes[2], y = row % grid.nodes[1],
                z = row / grid.nodes[1];
    const auto at = [&](const SweptGrid& place) {
      return place.origin + z * place.plane + y * place.row + x * place.point;
    };
    const T* const v = u + at(grid.u_at);
    double balance = 0, given = 0;  // the part of the neighbours' sum that belongs to the right-hand side
    const auto add = [&](int axis, Index i, Index distance) {
      const double before = grid.along[axis] * static_cast<double>(v[-distance]);
      const double after = grid.along[axis] * static_cast<double>(v[distance]);
      balance += before + after;
      if (i == 0) given += before;
      if (i == grid.nodes[axis] - 1) given += after;
    };
    add(2, x, 1);
    if (grid.dimensions > 1) add(1, y, grid.u_at.row);
    if (grid.dimensions > 2) add(0, z, grid.u_at.plane);
    const double here = static_cast<double>(*v),
                 s = grid.has_source ? static_cast<double>(g[at(grid.g_at)]) : 0;
    const double r = balance + s - here;
    squares[wavefront_residual_squares].add(r);
    squares[wavefront_solution_squares].add(here);
    squares[wavefront_source_squares].add(s + given);
  }
  for (int which = 0; which < wavefront_sums; ++which) {
    const sums::SquareSum sum =
        sums::cuda::sum_of_block<summing_threads>(squares[which], static_cast<int>(threadIdx.x));
    if (threadIdx.x == 0) work[blockIdx.x * wavefront_sums + static_cast<unsigned>(which)] = sum;
  }
}

__global__ void __launch_bounds__(summing_threads)
    add_kernel(const sums::SquareSum* work, sums::SquareSum* sums) {
  for (int which = 0; which < wavefront_sums; ++which) {
    sums::SquareSum mine{};
    for (Index k = threadIdx.x; k < wavefront_residual_blocks; k += summing_threads)
      mine += work[k * wavefront_sums + which];
    const sums::SquareSum sum =
        sums::cuda::sum_of_block<summing_threads>(mine, static_cast<int>(threadIdx.x));
    if (threadIdx.x == 0) sums[which] = sum;
  }
}

}  // namespace

template <class T>
std::size_t wavefront_shared_bytes(int dimensions, const WavefrontTile& tile, bool has_source) {
  constexpr double most = 1 << 30;  // far more than any GPU has, and its places still are 32-bit numbers
  double box = static_cast<double>(sizeof(T));
  for (int axis = 3 - dimensions; axis < 3; ++axis)
    box *= static_cast<double>(tile.points[static_cast<std::size_t>(axis)] + tile.sweeps + 2);
  if (!(box < most)) return static_cast<std::size_t>(most);
  WavefrontArgs args;
  args.layout.tile = tile;
  return with_dimensions(dimensions, [&](auto dims) {
    const WavefrontPlan<dims> plan(args);
    return shared_bytes<T>(plan.box, plan.columns, plan.sums, has_source);
  });
}

template <class T>
int wavefront_blocks_per_sm(int dimensions, int threads, std::size_t shared) {
  const void* const kernel = kernel_of<T>(dimensions);
  if (shared > most_shared_bytes()) return 0;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(most_shared_bytes())),
        "cudaFuncSetAttribute");
  int blocks = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared),
        "wavefront's occupancy");
  return blocks;
}

int multiprocessors() { return asterism::cuda::multiprocessors(); }

std::size_t most_shared_bytes() {
  return asterism::cuda::most_shared_bytes();
}

template <int dims, class T>
void launch_wavefront(Stream stream, Sweeps<dims, T> sweeps, const WavefrontLayout& layout,
                      std::size_t shared) {
  check(cudaMemsetAsync(sweeps.meeting, 0, wavefront_scratch * sizeof(unsigned), native(stream)),
        "wavefront's barrier");
  void* parameters[] = {&sweeps};
  check(cudaLaunchCooperativeKernel(kernel_of<T>(dims), dim3(static_cast<unsigned>(layout.blocks)),
                                    dim3(static_cast<unsigned>(layout.threads)), parameters, shared,
                                    native(stream)),
        "wavefront");
  check_launch("wavefront");
}

template <class T>
void wavefront(Stream stream, const WavefrontArgs& args, InOut<T> u, In<T> g, Scratch<unsigned> meeting) {
  if (args.sweeps < 1) return;
  const std::size_t shared = wavefront_shared_bytes<T>(args.dimensions, args.layout.tile, args.has_source);
  require_sound<T>(args, shared);
  with_dimensions(args.dimensions, [&](auto dims) {
    launch_wavefront<dims, T>(stream,
                              {WavefrontPlan<dims>(args),
                               wavefront_weights<T>(args),
                               {u.data, swept_grid(args, u.ld)},
                               {g.data, swept_grid(args, g.ld)},
                               args.has_source,
                               meeting.data},
                              args.layout, shared);
  });
}

template <class T>
void wavefront_residual(Stream stream, const WavefrontArgs& args, In<T> u, In<T> g, Out<sums::SquareSum> sums,
                        Scratch<sums::SquareSum> work) {
  ResidualGrid grid{args.dimensions, {1, 1, args.nodes[2]}, args.nodes[2], {}, {}, {}, args.has_source};
  WavefrontArgs forward = args;
  forward.backward = false;
  grid.u_at = swept_grid(forward, u.ld);
  grid.g_at = swept_grid(forward, g.ld);
  for (int axis = 0; axis < 3; ++axis) {
    const auto k = static_cast<std::size_t>(axis);
    grid.along[axis] = args.along[k];
    if (axis < 2 && axis >= 3 - args.dimensions) grid.count *= grid.nodes[axis] = args.nodes[k];
  }
  residual_kernel<T>
      <<<wavefront_residual_blocks, summing_threads, 0, native(stream)>>>(grid, u.data, g.data, work.data);
  check_launch("wavefront_residual");
  add_kernel<<<1, summing_threads, 0, native(stream)>>>(work.data, sums.data);
  check_launch("wavefront_residual: sums");
}

#define ASTERISM_INSTANTIATE(T)                                                                         \
  template void launch_wavefront<1, T>(Stream, Sweeps<1, T>, const WavefrontLayout&, std::size_t);      \
  template void launch_wavefront<2, T>(Stream, Sweeps<2, T>, const WavefrontLayout&, std::size_t);      \
  template void launch_wavefront<3, T>(Stream, Sweeps<3, T>, const WavefrontLayout&, std::size_t);      \
  template void wavefront<T>(Stream, const WavefrontArgs&, InOut<T>, In<T>, Scratch<unsigned>);         \
  template std::size_t wavefront_shared_bytes<T>(int, const WavefrontTile&, bool);                      \
  template int wavefront_blocks_per_sm<T>(int, int, std::size_t);                                       \
  template void wavefront_residual<T>(Stream, const WavefrontArgs&, In<T>, In<T>, Out<sums::SquareSum>, \
                                      Scratch<sums::SquareSum>);
ASTERISM_INSTANTIATE(float)
ASTERISM_INSTANTIATE(double)
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::wavefront::cuda
