/// \file
/// How lines are dealt to the blocks of a kernel that transforms them in shared memory. For `.cu` files only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>

#include "../../runtime/cuda.hpp"
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
  int device = 0, bytes = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) != cudaSuccess) {
    cudaGetLastError();  // no device: nothing that a later check should find
    return 227 << 10;
  }
  return static_cast<std::size_t>(bytes);
}

/// How a block does its lines.
struct BlockShape {
  int log_lines, threads, pitch;
  std::size_t bytes;  ///< of shared memory; 0 where it has not enough
};

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
              blocks_per_group = side_by_side ? (from.width + per_block - 1) / per_block : 1,
              blocks =
                  side_by_side ? from.count * blocks_per_group : (from.count + per_block - 1) / per_block;
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
