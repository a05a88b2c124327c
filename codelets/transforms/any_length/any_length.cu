#include "any_length.hpp"

#include <algorithm>
#include <bit>

#include "../grid_lines.cuh"
#include "../halves.hpp"
#include "clusters.cuh"
#include "device_plans.cuh"
#include "kinds.cuh"
#include "symmetric_kinds.cuh"
#include "ways.hpp"

namespace asterism::transforms::cuda {
namespace {

/// Phase after phase, from `first` on.
template <class Block, class T, class View>
__global__ void __launch_bounds__(most_block_threads<T>)
    transform_lines_of_any_length(GridLines<T> grid, const __grid_constant__ View plan, int first, int points,
                                  unsigned ahead) {
  extern __shared__ __align__(16) unsigned char memory[];
  if (const unsigned later = blockIdx.x + ahead; later < gridDim.x) send_for(grid.block(later), points);
  const Block block(grid.block(blockIdx.x), plan, reinterpret_cast<Complex<T>*>(memory),
                    static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x));
  const int phases = block.phases(plan);
  for (int phase = first; phase < phases; ++phase) {
    block.run(phase);
    __syncthreads();
  }
}

/// Threads of each of so many blocks that share the registers of a multiprocessor.
template <class T>
constexpr int threads_of(int blocks) {
  return std::max(most_block_threads<T> / blocks / warp * warp, least_threads);
}

/// Threads of blocks that have so many bytes of shared memory: of as many blocks at once as there is memory for, or of fewer
/// where they have an eighth more threads in all (of 512, 6 blocks have 64 each, 5 have 96) or where there are no more.
template <class T>
int block_threads(std::size_t bytes, Index all_blocks) {
  constexpr std::size_t reserved_bytes = 1 << 10, numbers_per_thread = 8;
  const auto there_are = (all_blocks + asterism::cuda::multiprocessors() - 1) / asterism::cuda::multiprocessors();
  const int most = std::clamp<int>(static_cast<int>(std::min<Index>(
                                       there_are, (most_shared_bytes() + reserved_bytes) / (bytes + reserved_bytes))),
                                   1, most_block_threads<T> / least_threads);
  int blocks = most;
  for (int fewer = most - 1; fewer > 0; --fewer)
    if (8 * fewer * threads_of<T>(fewer) > 9 * blocks * threads_of<T>(blocks)) blocks = fewer;
  const int useful = static_cast<int>(bytes / sizeof(Complex<T>) / numbers_per_thread) / warp * warp;
  return std::max(std::min(threads_of<T>(blocks), useful), least_threads);
}

/// Contiguous lines: one, or so many short ones that they have few_numbers: of 1, 2, 4 and 8 lines nearly always
/// the fastest on an H200 (of 601 numbers in float64 4 lines are, by a fifth). Lines side by side: more, so that
/// accesses cover whole sectors of memory, or nearly. How many threads is decided at the launch.
template <class T>
BlockShape any_length_shape(Transform kind, int numbers, Index width) {
  constexpr int number_bytes = sizeof(Complex<T>), bytes_together = 64, sector_bytes = 32, least_bytes_together = 16,
                few_numbers = sizeof(T) == 8 ? 1024 : 2048;
  if (numbers < 1) return {};
  const int most_numbers = static_cast<int>(most_shared_bytes()) / number_bytes,
            together = lines_together(kind), pitch = numbers | 1;
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

  const auto bytes = static_cast<std::size_t>(lines * pitch) * number_bytes;
  return {std::countr_zero(static_cast<unsigned>(lines * together)), least_threads, pitch, bytes};
}

/// How lines are done.
struct Way {
  BlockShape shape;
  SymmetricWay symmetric;  ///< none: by foldings
  bool in_clusters;
};

template <class T>
Way way_of(Transform kind, Index length, Index width, Care care = Care::usual) {
  const auto choices = in_order(ways_of(kind, length), fft_length(kind, length), care);
  for (const auto& [numbers, symmetric] : choices)
    if (const BlockShape shape = any_length_shape<T>(kind, numbers, width); shape.bytes > 0)
      return {shape, symmetric, false};
  for (const auto& [numbers, symmetric] : choices)
    if (const BlockShape shape = cluster_shape<T>(kind, numbers, width); shape.bytes > 0)
      return {shape, symmetric, true};
  return {};
}

template <class Block, class T, class View>
void launch(Stream stream, Transform kind, const Lines<const T>& from, const Lines<T>& to, const Way& way,
            const View& plan, bool padded) {
  const BlockShape& shape = way.shape;
  if (way.in_clusters) return transform_in_clusters(stream, kind, from, to, shape, plan, padded);
  const auto [grid, blocks] = deal_lines(from, to, shape);
  const int threads = block_threads<T>(shape.bytes, blocks);
  const auto kernel = transform_lines_of_any_length<Block, T, View>;
  asterism::cuda::allow_all_shared_memory(kernel);
  kernel<<<blocks, static_cast<unsigned>(threads), shape.bytes, asterism::cuda::native(stream)>>>(
      grid, plan, padded ? 0 : 1, static_cast<int>(from.length), blocks_ahead(shape));
  asterism::cuda::check_launch("transform of lines of any length");
}

}  // namespace

template <class T>
bool any_length_fits(Transform kind, Index length, Index width) {
  return way_of<T>(kind, length, width).shape.bytes > 0;
}

template <class T>
bool any_length_wants_halves(Transform kind, Index length) {
  // On an H200, Gcell/s of Poisson's solver, whole and by halves: N = 2 593 8.1 and 5.5 (float32 9.0 and 7.1), 4 467 10.0 and
  // 7.8 (11.9 and 10.2), 2 1237 7.5 and 8.1 (10.2 and 10.4), 4 3 373 8.5 and 10.4 (16.2 and 14.9), 2 3539 8.4 and 9.8 (12.7 and
  // 14.6), 2 5003 in float32 8.8 and 14.1; of N numbers, 6000, 21 and 9.8 (26 and 13).
  const Index N = fft_length(kind, length);
  const Way way = way_of<T>(kind, length, 1);
  return way.shape.bytes == 0 || way.in_clusters || (N >= least_in_halves && is_padded(way.shape.pitch, N));
}

template <class T>
void any_length_transform(Stream stream, Transform kind, const Lines<const T>& from, const Lines<T>& to) {
  const Way way = way_of<T>(kind, from.length, from.width, from.care);
  if (way.shape.bytes == 0)
    throw Error("lines of " + std::to_string(from.length) + " points, " + std::to_string(from.width) +
                    " side by side, do not fit into the shared memory of a kernel's blocks",
                Blame::task);
  check_strides<T>(from, to);
  if (way.symmetric.divisor > 0) {
    const SymmetricView<T>& plan = device_plan<SymmetricDevicePlan<T>>(kind, from.length, way.symmetric);
    if (from.count < 1 || from.width < 1) return;
    launch<BlockOfSymmetricLines<T>>(stream, kind, from, to, way, plan, plan.rows.padded);
  } else {
    const AnyLength<T>& plan = device_plan<DevicePlan<T>>(kind, from.length, {});
    if (from.count < 1 || from.width < 1) return;
    launch<BlockOfAnyLength<T>>(stream, kind, from, to, way, plan, plan.fft.padded);
  }
}

template bool any_length_fits<double>(Transform, Index, Index);
template bool any_length_fits<float>(Transform, Index, Index);
template bool any_length_wants_halves<double>(Transform, Index);
template bool any_length_wants_halves<float>(Transform, Index);
template void any_length_transform(Stream, Transform, const Lines<const double>&, const Lines<double>&);
template void any_length_transform(Stream, Transform, const Lines<const float>&, const Lines<float>&);

}  // namespace asterism::transforms::cuda
