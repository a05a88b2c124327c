#include "any_length.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <utility>

#include "../grid_lines.cuh"
#include "clusters.cuh"
#include "device_plans.cuh"
#include "kinds.cuh"
#include "symmetric_kinds.cuh"

namespace asterism::transforms::cuda {
namespace {

using asterism::cuda::check;

/// Phase after phase, from `first` on.
template <class Block, class T, class View>
__global__ void __launch_bounds__(most_block_threads<T>)
    transform_lines_of_any_length(GridLines<T> grid, const __grid_constant__ View plan, int first) {
  extern __shared__ __align__(16) unsigned char memory[];
  const Block block(grid.block(blockIdx.x), plan, reinterpret_cast<Complex<T>*>(memory),
                    static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x));
  const int phases = block.phases(plan);
  for (int phase = first; phase < phases; ++phase) {
    block.run(phase);
    __syncthreads();
  }
}

/// How many numbers of shared memory a line, or two together, takes, by each way of doing it; 0: it is none.
struct Numbers {
  int symmetric, plain;
};

Numbers numbers_of(Transform kind, Index length) {
  static std::mutex mutex;
  static auto& known = *new std::map<std::pair<bool, Index>, Numbers>;
  if (length < 1) return {};
  const bool is_first = kind == Transform::dst1 || kind == Transform::dct1;
  const Index N = fft_length(kind, length);
  const std::scoped_lock lock(mutex);
  const auto [at, is_new] = known.try_emplace({is_first, N});
  if (is_new) at->second = {is_first ? symmetric_numbers(N) : 0, fft_plan_numbers(N)};
  return at->second;
}

/// Contiguous lines: one, or so many short ones that they have few_numbers: of 1, 2, 4 and 8 lines nearly always
/// the fastest on an H200 (of 601 numbers in float64 4 lines are, by a fifth). Lines side by side: more, so that
/// accesses cover whole sectors of memory, or nearly.
template <class T>
BlockShape any_length_shape(Transform kind, int numbers, Index width) {
  constexpr int warp = 32, least_threads = 64, number_bytes = sizeof(Complex<T>), bytes_together = 64,
                sector_bytes = 32, least_bytes_together = 16, numbers_per_thread = 8,
                few_numbers = sizeof(T) == 8 ? 1024 : 2048;
  const int most_numbers = static_cast<int>(most_shared_bytes()) / number_bytes,
            together = lines_together(kind), pitch = numbers | 1;
  if (numbers < 1) return {};
  // In lines of shared memory, a power of two of them.
  int lines = std::max<int>(1, std::bit_floor(static_cast<unsigned>(few_numbers / numbers)));
  if (width > 1) {
    lines = std::max<int>(lines, bytes_together / static_cast<int>(sizeof(T)) / together);
    while (lines * together / 2 >= width && lines > 1) lines /= 2;
    while (lines * together > sector_bytes / static_cast<int>(sizeof(T)) && 2 * lines * pitch > most_numbers)
      lines /= 2;
  }
  while (lines > 1 && lines * pitch > most_numbers) lines /= 2;
  const bool too_few = lines * together < std::min<Index>(width, least_bytes_together / sizeof(T));
  if (too_few || lines * pitch > most_numbers) return {};

  // All the threads that a multiprocessor has registers for, in as many blocks as it has memory for.
  const int block_bytes = lines * pitch * number_bytes, reserved_bytes = 1 << 10,
            blocks =
                (static_cast<int>(most_shared_bytes()) + reserved_bytes) / (block_bytes + reserved_bytes),
            useful = lines * numbers / numbers_per_thread,
            threads = std::min(most_block_threads<T> / blocks, useful) / warp * warp;
  return {std::countr_zero(static_cast<unsigned>(lines * together)), std::max(threads, least_threads), pitch,
          static_cast<std::size_t>(block_bytes)};
}

/// How lines are done.
struct Way {
  BlockShape shape;
  bool symmetric, in_clusters;
};

template <class T>
Way way_of(Transform kind, Index length, Index width) {
  const auto [symmetric, plain] = numbers_of(kind, length);
  if (const BlockShape shape = any_length_shape<T>(kind, symmetric, width); shape.bytes > 0)
    return {shape, true, false};
  if (const BlockShape shape = any_length_shape<T>(kind, plain, width); shape.bytes > 0)
    return {shape, false, false};
  return {cluster_shape<T>(kind, plain, width), false, true};
}

template <class Block, class T, class View>
void launch(Stream stream, const Lines<const T>& from, const Lines<T>& to, const BlockShape& shape,
            const View& plan, bool padded) {
  const auto [grid, blocks] = deal_lines(from, to, shape);
  const auto kernel = transform_lines_of_any_length<Block, T, View>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(most_shared_bytes())),
        "shared memory of a transform");
  kernel<<<blocks, static_cast<unsigned>(shape.threads), shape.bytes, asterism::cuda::native(stream)>>>(
      grid, plan, padded ? 0 : 1);
  asterism::cuda::check_launch("transform of lines of any length");
}

}  // namespace

template <class T>
bool any_length_fits(Transform kind, Index length, Index width) {
  return way_of<T>(kind, length, width).shape.bytes > 0;
}

template <class T>
void any_length_transform(Stream stream, Transform kind, const Lines<const T>& from, const Lines<T>& to) {
  const Way way = way_of<T>(kind, from.length, from.width);
  if (way.shape.bytes == 0)
    throw Error("lines of " + std::to_string(from.length) + " points, " + std::to_string(from.width) +
                    " side by side, do not fit into the shared memory of a kernel's blocks",
                Blame::task);
  check_strides<T>(from, to);
  if (way.symmetric) {
    const SymmetricView<T>& plan = device_plan<SymmetricDevicePlan<T>>(kind, from.length);
    if (from.count < 1 || from.width < 1) return;
    launch<BlockOfSymmetricLines<T>>(stream, from, to, way.shape, plan, plan.rows.padded);
  } else {
    const AnyLength<T>& plan = device_plan<DevicePlan<T>>(kind, from.length);
    if (from.count < 1 || from.width < 1) return;
    if (way.in_clusters)
      transform_in_clusters(stream, kind, from, to, way.shape, plan);
    else
      launch<BlockOfAnyLength<T>>(stream, from, to, way.shape, plan, plan.fft.padded);
  }
}

template bool any_length_fits<double>(Transform, Index, Index);
template bool any_length_fits<float>(Transform, Index, Index);
template void any_length_transform(Stream, Transform, const Lines<const double>&, const Lines<double>&);
template void any_length_transform(Stream, Transform, const Lines<const float>&, const Lines<float>&);

}  // namespace asterism::transforms::cuda
