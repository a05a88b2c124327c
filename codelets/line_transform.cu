#include "line_transform.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <mutex>
#include <utility>

#include "../runtime/cuda.hpp"
#include "line_phases.cuh"

namespace asterism::kernels::cuda {
namespace {

using asterism::cuda::check;

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

/// A block has at most so many threads, and a multiprocessor so many blocks at least, of its 65,536 registers.
template <class T>
constexpr int most_threads = sizeof(T) == 8 ? 512 : 1024;

template <class Kinds, class T, int... phase>
__device__ void run_phases(const BlockLines<T>& lines, Transform kind, Complex<T>* shared, const Complex<T>* tables,
                           std::integer_sequence<int, phase...>) {
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  ((Kinds::template run<phase>(lines, kind, shared, tables, thread, threads), __syncthreads()), ...);
}

template <class Kinds, class T>
__global__ void __launch_bounds__(most_threads<T>)
    transform_lines(GridLines<T> grid, Transform kind, const Complex<T>* __restrict__ tables) {
  extern __shared__ __align__(16) unsigned char memory[];
  run_phases<Kinds>(grid.block(blockIdx.x), kind, reinterpret_cast<Complex<T>*>(memory), tables,
                    std::make_integer_sequence<int, Kinds::phases>{});
}

/// How a block does its lines.
struct BlockShape {
  int log_lines, threads, pitch;
};

template <class T>
std::size_t shared_bytes(const BlockShape& shape) {
  return (std::size_t{1} << shape.log_lines) * static_cast<std::size_t>(shape.pitch) * sizeof(Complex<T>);
}

constexpr int warp = 32;

/// @param numbers complex numbers of a line in shared memory
template <class T>
BlockShape block_shape(int bits, int numbers, Index width) {
  constexpr int bytes_together = 64;  // that lines side by side are to be loaded in
  const bool side_by_side = width > 1;
  const int few = 4096 / numbers;  // lines of so many numbers keep the threads busy
  int lines = std::max(1, few);
  if (side_by_side) {
    const int most = static_cast<int>((Index{200} << 10) / (numbers * static_cast<Index>(sizeof(Complex<T>))));
    lines = std::max(lines, bytes_together / static_cast<int>(sizeof(T)));
    lines = std::max(1, std::min(lines, most));
    lines = std::min<int>(lines, static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(width))));
  }
  lines = static_cast<int>(std::bit_floor(static_cast<unsigned>(lines)));
  BlockShape shape{};
  shape.log_lines = std::countr_zero(static_cast<unsigned>(lines));
  const int work = numbers * lines / 16;
  shape.threads = std::clamp((work + warp - 1) / warp * warp, 64, most_threads<T> / 2);
  // Neighbouring lines meet in no bank.
  constexpr int together = 128 / static_cast<int>(sizeof(Complex<T>));
  shape.pitch = numbers + (lines > 1 ? std::max(1, together / lines) : 0);
  (void)bits;
  return shape;
}

/// The shared memory that a block may have on the current device.
std::size_t most_shared_bytes() {
  int device = 0, bytes = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) != cudaSuccess) {
    cudaGetLastError();  // no device: nothing that a later check should find
    return 0;
  }
  return static_cast<std::size_t>(bytes);
}

/// The tables of the current device.
template <class T>
const Complex<T>* tables() {
  static std::mutex mutex;
  static auto& of_devices = *new std::map<int, Complex<T>*>;  // never destroyed, like the memory
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  const std::scoped_lock lock(mutex);
  Complex<T>*& table = of_devices[device];
  if (table == nullptr) {
    static const auto& numbers = *new std::vector<Complex<T>>(LineTables::make<T>());
    const std::size_t bytes = numbers.size() * sizeof(Complex<T>);
    Complex<T>* memory = nullptr;
    check(cudaMalloc(&memory, bytes), "memory for the tables of transforms");
    check(cudaMemcpy(memory, numbers.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    // A copy from pageable memory may still be on its way, and streams without blocking do not wait for it.
    check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
    table = memory;
  }
  return table;
}

template <class T>
struct Family {
  int numbers;
  void (*kernel)(GridLines<T>, Transform, const Complex<T>*);
};

constexpr int least_bits = 2;
/// The longest lines whose numbers 227 KiB, the most that any device gives a block, hold.
template <class T>
constexpr int most_bits = sizeof(T) == 8 ? 14 : 15;

template <class T, template <class, int> class Kinds, int... i>
constexpr auto families(std::integer_sequence<int, i...>) {
  return std::array<Family<T>, sizeof...(i)>{
      Family<T>{Kinds<T, least_bits + i>::numbers, &transform_lines<Kinds<T, least_bits + i>, T>}...};
}

constexpr bool is_first(Transform kind) { return kind == Transform::dst1 || kind == Transform::dct1; }

/// log2 of the length of the FFT, or -1 where that is no power of two within the limits.
template <class T>
int bits_of(Transform kind, Index length) {
  const Index N = fft_length(kind, length);
  if (N < 1 || !std::has_single_bit(static_cast<std::uint64_t>(N))) return -1;
  const int bits = std::countr_zero(static_cast<std::uint64_t>(N));
  return bits < least_bits || bits > most_bits<T> ? -1 : bits;
}

template <class T>
const Family<T>& family(Transform kind, int bits) {
  constexpr auto sizes = std::make_integer_sequence<int, most_bits<T> - least_bits + 1>{};
  static const auto first = families<T, FirstKinds>(sizes), even = families<T, EvenKinds>(sizes);
  return (is_first(kind) ? first : even)[static_cast<std::size_t>(bits - least_bits)];
}

}  // namespace

template <class T>
Index line_transform_memory(Transform kind, Index length, Index width) {
  const int bits = bits_of<T>(kind, length);
  if (bits < 0) return 0;
  return static_cast<Index>(shared_bytes<T>(block_shape<T>(bits, family<T>(kind, bits).numbers, width)));
}

template <class T>
bool line_transform_fits(Transform kind, Index length, Index width) {
  const Index bytes = line_transform_memory<T>(kind, length, width);
  return bytes > 0 && static_cast<std::size_t>(bytes) <= most_shared_bytes();
}

template <class T>
void line_transform(Stream stream, Transform kind, const Lines<const T>& from, const Lines<T>& to) {
  const int bits = bits_of<T>(kind, from.length);
  const Complex<T>* const table = tables<T>();
  if (from.count < 1 || from.width < 1) return;
  const Family<T>& f = family<T>(kind, bits);
  const BlockShape shape = block_shape<T>(bits, f.numbers, from.width);
  const bool side_by_side = from.width > 1;
  const Index per_block = Index{1} << shape.log_lines,
              blocks_per_group = side_by_side ? (from.width + per_block - 1) / per_block : 1,
              blocks = side_by_side ? from.count * blocks_per_group : (from.count + per_block - 1) / per_block;
  const GridLines<T> grid{{from.data, to.data, side_by_side ? 1 : from.distance, side_by_side ? 1 : to.distance,
                           static_cast<int>(from.stride), static_cast<int>(to.stride), 0, shape.log_lines, side_by_side, shape.pitch},
                          from.distance,
                          to.distance,
                          from.count,
                          from.width,
                          static_cast<int>(blocks_per_group)};
  const std::size_t bytes = shared_bytes<T>(shape);
  check(cudaFuncSetAttribute(f.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        "shared memory of a transform");
  f.kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(shape.threads), bytes,
             asterism::cuda::native(stream)>>>(grid, kind, table);
  asterism::cuda::check_launch("transform of lines");
}

#define ASTERISM_INSTANTIATE(T)                                    \
  template Index line_transform_memory<T>(Transform, Index, Index); \
  template bool line_transform_fits<T>(Transform, Index, Index);    \
  template void line_transform<T>(Stream, Transform, const Lines<const T>&, const Lines<T>&);
ASTERISM_INSTANTIATE(double)
#ifndef ONLY_DOUBLE
ASTERISM_INSTANTIATE(float)
#endif

}  // namespace asterism::kernels::cuda
