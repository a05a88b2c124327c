/// \file
/// What a block does with a tile of wavefront-tiled SOR, and how blocks meet: for the kernel and for the
/// probes that time its parts.
#pragma once

#include <cuda_pipeline_primitives.h>

#include "../../runtime/cuda.hpp"
#include "schedule.hpp"

namespace asterism::wavefront::cuda {

constexpr int most_threads = 1024;  ///< of a block
constexpr unsigned everyone = 0xffffffffu;

/// A column in 32 bits.
constexpr int packed_bits = 10;
static_assert(most_tile_extent < 1 << packed_bits && most_tile_sum < 1 << WavefrontPlan<1>::Turns::bits);
template <class Column>
__device__ unsigned pack(const Column& c) {
  return static_cast<unsigned>(c.tau) << 2 * packed_bits | static_cast<unsigned>(c.z) << packed_bits |
         static_cast<unsigned>(c.y);
}
template <class Column>
__device__ Column unpack(unsigned packed) {
  constexpr unsigned mask = (1u << packed_bits) - 1;
  return {static_cast<int>(packed >> 2 * packed_bits), static_cast<int>(packed >> packed_bits & mask),
          static_cast<int>(packed & mask)};
}

/// The whole grid in global memory, node (0, 0, 0) at `v`; backward sweeps go through it with negative
/// distances.
template <class T>
struct GlobalGrid {
  T* v;
  Index plane, row, point;
  GlobalGrid(T* data, const SweptGrid& at)
      : v(data + at.origin), plane(at.plane), row(at.row), point(at.point) {}
};

template <int dims, class T>
struct Sweeps {
  WavefrontPlan<dims> plan;
  WavefrontWeights<T> weights;
  GlobalGrid<T> u;
  GlobalGrid<const T> g;
  bool has_source;
  unsigned* meeting;  ///< of wavefront_scratch elements, 0

  /// For the tile-size model: instead of the sweeps, so many wavefronts of one full tile for each block,
  /// taken in turn from these of the first sweeps. They overlap, as the tiles of a real wavefront do not; on
  /// zeros that is of no consequence.
  int probed_wavefronts = 0;
  typename WavefrontPlan<dims>::Range probed = {};

  [[nodiscard]] __device__ typename WavefrontPlan<dims>::Tile probed_tile(unsigned number) const {
    int s[dims];
    for (int axis = dims - 1; axis >= 0; --axis) {
      const unsigned count = static_cast<unsigned>(probed.last[axis] - probed.first[axis] + 1);
      s[axis] = probed.first[axis] + static_cast<int>(number % count);
      number /= count;
    }
    return plan.tile(0, s);
  }
};

/// Launches the kernel. `layout` and `shared`, the bytes of shared memory of a block, are such as the GPU can
/// run.
template <int dims, class T>
void launch_wavefront(Stream stream, Sweeps<dims, T> sweeps, const WavefrontLayout& layout,
                      std::size_t shared);

/// What a block has in shared memory: the box, that of g, the list of columns, when it is their turn in the
/// tile at hand, and where those of a sum begin in the list.
template <int dims, class T>
struct SharedMemory {
  T *box, *source;
  int* offsets;
  unsigned *columns, *turns;
  int* columns_below;  ///< [s]: columns whose sum is below s, for s = 0 ... sums

  __device__ SharedMemory(unsigned char* memory, const Sweeps<dims, T>& sweeps) {
    box = reinterpret_cast<T*>(memory);
    source = box + sweeps.plan.box;
    offsets = reinterpret_cast<int*>(sweeps.has_source ? source + sweeps.plan.box : source);
    columns = reinterpret_cast<unsigned*>(offsets + sweeps.plan.columns);
    turns = columns + sweeps.plan.columns;
    columns_below = reinterpret_cast<int*>(turns + sweeps.plan.columns);
  }

  __device__ void list_columns(const WavefrontPlan<dims>& plan) const {
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    for (int k = thread; k < plan.columns; k += threads) {
      const auto column = plan.column(k);
      const int place = plan.place(column);
      offsets[place] = plan.offset(column);
      columns[place] = pack(column);
    }
    for (int s = thread; s <= plan.sums; s += threads)
      columns_below[s] = s == 0 ? 0 : plan.columns_up_to(s - 1);
  }

  __device__ void list_turns(const WavefrontPlan<dims>& plan,
                             const typename WavefrontPlan<dims>::Tile& tile) const {
    for (int k = static_cast<int>(threadIdx.x); k < plan.columns; k += static_cast<int>(blockDim.x))
      turns[k] = plan.turns(tile, unpack<typename WavefrontPlan<dims>::Column>(columns[k])).packed();
  }
};

template <class T>
std::size_t shared_bytes(int box, int columns, int sums, bool has_source) {
  return static_cast<std::size_t>(box) * (has_source ? 2 : 1) * sizeof(T) +
         (3 * static_cast<std::size_t>(columns) + static_cast<std::size_t>(sums) + 1) * sizeof(int);
}

/// Calls visit(place in the box, pointer to the node) for the nodes of the box that a tile changes, or
/// touches; see WavefrontPlan::span. Threads of a warp go along x.
template <int dims, class T, class Visit>
__device__ void for_box(const WavefrontPlan<dims>& plan, const typename WavefrontPlan<dims>::Tile& tile,
                        int margin, const GlobalGrid<T>& grid, const Visit& visit) {
  constexpr int warp = 32;
  const int m1 = plan.sweeps_of_tile;
  if constexpr (dims == 1) {
    const auto span = plan.span(tile, 0, 0, margin);
    T* const from = grid.v + (tile.origin[0] - m1) * grid.point;
    for (int l = span.begin + static_cast<int>(threadIdx.x); l < span.end; l += static_cast<int>(blockDim.x))
      visit(l, from + l * grid.point);
  } else {
    const int lane = static_cast<int>(threadIdx.x) % warp, rows = plan.width(dims - 2);
    const int planes = dims > 2 ? plan.width(0) : 1;
    int lz = 0, ly = static_cast<int>(threadIdx.x) / warp;
    for (;; ly += static_cast<int>(blockDim.x) / warp) {
      for (; ly >= rows; ly -= rows) ++lz;
      if (lz >= planes) break;
      const auto span = plan.span(tile, lz, ly, margin);
      if (span.begin >= span.end) continue;
      T* from =
          grid.v + (tile.origin[dims - 1] - m1) * grid.point + (tile.origin[dims - 2] + ly - m1) * grid.row;
      if constexpr (dims > 2) from += (tile.origin[0] + lz - m1) * grid.plane;
      const int place = lz * (dims > 2 ? plan.plane : 0) + ly * plan.row;
      for (int l = span.begin + lane; l < span.end; l += warp) visit(place + l, from + l * grid.point);
    }
  }
}

/// The wavefronts of a tile in shared memory. Border tiles take the same path as full ones, by the turns of
/// their columns, and so the same time.
template <int dims, class T>
__device__ void sweep_tile(const Sweeps<dims, T>& sweeps, const SharedMemory<dims, T>& memory,
                           const typename WavefrontPlan<dims>::Tile& tile) {
  const WavefrontPlan<dims>& plan = sweeps.plan;
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  // The thread's next column, and the end of the wavefront's. Those of wavefront e have sums from e - m_x + 1
  // to e.
  const auto begin_of = [&](int e) {
    return memory.columns_below[max(e - plan.points[plan.x] + 1, 0)] + thread;
  };
  const auto end_of = [&](int e) { return memory.columns_below[min(e + 1, plan.sums)]; };
  struct Turn {
    int offset;
    unsigned turns;
  };
  const auto turn_of = [&](int k, int end) {
    return k < end ? Turn{memory.offsets[k], memory.turns[k]} : Turn{0, 0};
  };
  int e = tile.wavefront_begin;
  int k = begin_of(e), end = end_of(e);
  Turn turn = turn_of(k, end);
  for (; e < tile.wavefront_end; ++e) {
    // What the next wavefront begins with is fetched while this one is being computed.
    const int next_k = begin_of(e + 1), next_end = end_of(e + 1);
    const Turn next_turn = turn_of(next_k, next_end);
    while (k < end) {
      if (plan.has_turn(turn.turns, e)) {
        T* const v = memory.box + (turn.offset + e);
        const T g = sweeps.has_source ? memory.source[turn.offset + e] : T{0};
        *v = relaxed_at<dims>(sweeps.weights, v, plan.plane, plan.row, 1, g);
      }
      k += threads;
      turn = turn_of(k, end);
    }
    __syncthreads();
    k = next_k;
    end = next_end;
    turn = next_turn;
  }
}

/// @param turns_of_full whether the turns that are listed are those of a full tile; kept up to date.
template <int dims, class T>
__device__ void run_tile(const Sweeps<dims, T>& sweeps, const SharedMemory<dims, T>& memory,
                         const typename WavefrontPlan<dims>::Tile& tile, bool& turns_of_full) {
  if (tile.empty()) return;
  for_box(sweeps.plan, tile, 1, sweeps.u,
          [&](int place, const T* node) { __pipeline_memcpy_async(memory.box + place, node, sizeof(T)); });
  if (sweeps.has_source)
    for_box(sweeps.plan, tile, 0, sweeps.g, [&](int place, const T* node) {
      __pipeline_memcpy_async(memory.source + place, node, sizeof(T));
    });
  __pipeline_commit();
  if (!tile.full || !turns_of_full) memory.list_turns(sweeps.plan, tile);
  turns_of_full = tile.full;
  __pipeline_wait_prior(0);
  __syncthreads();
  sweep_tile(sweeps, memory, tile);
  for_box(sweeps.plan, tile, 0, sweeps.u, [&](int place, T* node) { *node = memory.box[place]; });
  __syncthreads();  // the box serves the next tile
}

/// All blocks meet for the `times`-th time, from 1. `count` is 0 at first.
inline __device__ void meet(unsigned* count, unsigned times) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(count, 1u);
    const unsigned all = times * gridDim.x;
    // The count may wrap around; blocks are never 2^31 arrivals apart.
    while (static_cast<int>(*static_cast<volatile unsigned*>(count) - all) < 0) {
    }
    __threadfence();
  }
  __syncthreads();
}

/// A number for the block, from 0, so that as many blocks as there are multiprocessors have numbers that
/// follow each other and are on different ones: blockIdx does not promise that, and a wavefront of few tiles
/// would keep some multiprocessors busy and others not at all. All blocks meet once.
/// @param shared one element in shared memory, which may be used again at once
inline __device__ int number_of_block(unsigned* meeting, unsigned* shared) {
  unsigned* const blocks_on = meeting + 1;
  unsigned multiprocessors;
  asm("mov.u32 %0, %%nsmid;" : "=r"(multiprocessors));
  if (threadIdx.x == 0) {  // one thread for all: a block that is interrupted may go on somewhere else
    unsigned here;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(here));
    *shared = here << 16 | atomicAdd(blocks_on + here, 1u);
  }
  meet(meeting, 1);
  const unsigned here = *shared >> 16, before_on_this = *shared & 0xffffu;
  __syncthreads();
  unsigned before = 0;
  for (unsigned other = threadIdx.x % 32; other < multiprocessors; other += 32) {
    const unsigned there = __ldcg(blocks_on + other);
    before += min(there, before_on_this) + (other < here && there > before_on_this ? 1 : 0);
  }
  for (int distance = 16; distance > 0; distance /= 2) before += __shfl_xor_sync(everyone, before, distance);
  return static_cast<int>(before);
}

}  // namespace asterism::wavefront::cuda
