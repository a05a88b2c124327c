/// \file
/// How lines are dealt to the blocks of a kernel that transforms them in shared memory. For `.cu` files only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>

#include "../../runtime/cuda.hpp"
#include "../common/occupancy.cuh"
#include "block_lines.cuh"
#include "transform.hpp"

namespace asterism::transforms::cuda {

/// The lines of all blocks.
template <class T>
struct GridLines {
  BlockLines<T> first;  ///< block 0, of as many lines as a block has
  Index from_distance, to_distance;
  Index count, width;
  int blocks_per_group;  ///< of lines side by side

  __device__ BlockLines<T> block(Index b) const {
    BlockLines<T> lines = first;
    const Index per_block = Index{1} << first.log_lines;
    const Index group = first.side_by_side ? b / blocks_per_group : b * per_block,
                line = first.side_by_side ? b % blocks_per_group * per_block : 0,
                left = first.side_by_side ? width - line : count - group;
    lines.from += group * from_distance + line;
    lines.to += group * to_distance + line;
    lines.present = static_cast<int>(left < per_block ? left : per_block);
    return lines;
  }
};

/// The shared memory that a block may have on the current device, or, where there is none, on the target.
inline std::size_t most_shared_bytes() {
  if (int device = 0; cudaGetDevice(&device) != cudaSuccess) {
    cudaGetLastError();  // no device: nothing that a later check should find
    return 227 << 10;
  }
  return asterism::cuda::most_shared_bytes();
}

/// Sends for the first `points` of lines, which a block will load, into the cache that all multiprocessors share.
template <class Lines>
__device__ void send_for(const Lines& lines, int points) {
  constexpr int together = 128 / sizeof(*lines.from);  // elements that are sent together
  const bool is_contiguous = lines.from_stride == 1;
  const int line_step = is_contiguous ? 1 : together, point_step = is_contiguous ? together : 1;
  for (int line = 0; line < lines.present; line += line_step)
    for (int j = static_cast<int>(threadIdx.x) * point_step; j < points; j += static_cast<int>(blockDim.x) * point_step)
      asm volatile("prefetch.global.L2 [%0];" ::"l"(lines.source(line, j)));
}

/// Threads of a block are warps, and no fewer than these.
constexpr int warp = 32, least_threads = 64;

/// How a block does its lines.
struct BlockShape {
  int log_lines, threads, pitch;
  std::size_t bytes;  ///< of shared memory; 0 where it has not enough
};

/// By how many blocks earlier than a block loads its lines another one sends for them: a quarter of those that run at once, by
/// the shared memory that they have. A pass over 8191 lines of 8191 points takes 0.98 of the time (H200; float32 0.94), with
/// a sixteenth to a half.
inline unsigned blocks_ahead(const BlockShape& shape) {
  return static_cast<unsigned>(most_shared_bytes() / shape.bytes) *
         static_cast<unsigned>(asterism::cuda::multiprocessors()) / 4;
}

template <class T>
void check_strides(const Lines<const T>& from, const Lines<T>& to) {
  if (const Index stride = std::max(from.stride, to.stride); stride > std::numeric_limits<int>::max())
    throw Error(
        "points of a line " + std::to_string(stride) + " elements apart: at most 2^31 - 1 are possible",
        Blame::task);
}

template <class T>
struct DealtLines {
  GridLines<T> grid;
  unsigned blocks;
};

/// Lines of equal extents, to blocks of this shape.
template <class T>
DealtLines<T> deal_lines(const Lines<const T>& from, const Lines<T>& to, const BlockShape& shape) {
  const bool side_by_side = from.width > 1;
  const Index per_block = Index{1} << shape.log_lines,
              blocks_per_group = side_by_side ? parts(from.width, per_block) : 1,
              blocks =
                  side_by_side ? from.count * blocks_per_group : parts(from.count, per_block);
  return {{{from.data, to.data, side_by_side ? 1 : from.distance, side_by_side ? 1 : to.distance,
            static_cast<int>(from.stride), static_cast<int>(to.stride), 0, shape.log_lines, side_by_side,
            shape.pitch},
           from.distance,
           to.distance,
           from.count,
           from.width,
           static_cast<int>(blocks_per_group)},
          static_cast<unsigned>(blocks)};
}

}  // namespace asterism::transforms::cuda
