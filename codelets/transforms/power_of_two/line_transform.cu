#include "line_transform.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "../../../runtime/cuda.hpp"
#include "../grid_lines.cuh"
#include "even_kinds.cuh"
#include "first_kinds.cuh"

namespace asterism::transforms::cuda {
namespace {

using asterism::cuda::check;

template <class Kinds, class Lines, class T, int... phase>
__device__ void run_phases(const Lines& lines, Transform kind, Complex<T>* shared, const Tables<T>& tables,
                           std::integer_sequence<int, phase...>) {
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const auto run = [&](auto p) {
    if constexpr (p > 0) __syncthreads();
    Kinds::template run<p>(lines, kind, shared, tables, thread, threads);
  };
  (run(std::integral_constant<int, phase>{}), ...);
}

/// @tparam Lines BlockLines<T> or ContiguousLines<T>
/// @param ahead by how many blocks what is loaded is sent for earlier
template <class Kinds, class Lines, class T>
__global__ void __launch_bounds__(Kinds::most_threads, Kinds::least_blocks)
    transform_lines(GridLines<T> grid, Transform kind, Tables<T> tables, unsigned ahead) {
  extern __shared__ __align__(16) unsigned char memory[];
  if (const unsigned later = blockIdx.x + ahead; later < gridDim.x) send_for(Lines(grid.block(later)), Kinds::points);
  run_phases<Kinds>(Lines(grid.block(blockIdx.x)), kind, reinterpret_cast<Complex<T>*>(memory), tables,
                    std::make_integer_sequence<int, Kinds::phases>{});
}

template <class Element>
const Element* to_device(const std::vector<Element>& table) {
  const std::size_t bytes = table.size() * sizeof(Element);
  Element* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "memory for the tables of transforms");
  check(cudaMemcpy(memory, table.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  // A copy from pageable memory may still be on its way, and streams without blocking do not wait for it.
  check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  return memory;
}

/// The tables of the current device.
template <class T>
const Tables<T>& tables() {
  static std::mutex mutex;
  static auto& of_devices = *new std::map<int, Tables<T>>;  // never destroyed, like the memory
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  const std::scoped_lock lock(mutex);
  const auto found = of_devices.find(device);
  if (found != of_devices.end()) return found->second;
  static const auto& numbers = *new std::vector<Complex<T>>(LineTables::make<T>());
  return of_devices[device] = {to_device(numbers), to_device(output_places<T>())};
}

/// What all lines of one length and family have in common.
template <class T>
struct Family {
  using Kernel = void (*)(GridLines<T>, Transform, Tables<T>, unsigned);
  Kernel kernel, kernel_of_contiguous;
  int bits, numbers, most_threads;  ///< as in EvenKinds and FirstKinds
  KernelShape contiguous, side_by_side;

  template <class Kinds>
  static Family of(int bits) {
    return {&transform_lines<Kinds, BlockLines<T>, T>,
            &transform_lines<Kinds, ContiguousLines<T>, T>,
            bits,
            Kinds::numbers,
            Kinds::most_threads,
            Kinds::contiguous,
            Kinds::side_by_side};
  }
};

/// Lines side by side: so many that every access covers whole sectors of memory, or nearly.
template <class T>
BlockShape block_shape(const Family<T>& family, Index width) {
  constexpr int bank_bytes = 128, number_bytes = sizeof(Complex<T>), least_bytes_together = 16;
  const int most_numbers = static_cast<int>(most_shared_bytes()) / number_bytes;
  // Lines lie so far apart that those side by side meet in no bank.
  const auto pitch = [&](int lines) {
    return family.numbers + (lines > 1 ? std::max(1, bank_bytes / number_bytes / lines) : 0);
  };

  const KernelShape& shape = width > 1 ? family.side_by_side : family.contiguous;
  int lines = std::max(1, shape.points >> family.bits);
  while (width > 1 && lines / 2 >= width) lines /= 2;
  while (lines > 1 && lines * pitch(lines) > most_numbers) lines /= 2;
  const bool too_few = lines < std::min<Index>(width, least_bytes_together / sizeof(T));
  if (too_few || lines * pitch(lines) > most_numbers) return {};

  const int threads = (lines << family.bits) * shape.threads_per_128_points / 128 / warp * warp;
  return {std::countr_zero(static_cast<unsigned>(lines)),
          std::clamp(threads, least_threads, family.most_threads), pitch(lines),
          static_cast<std::size_t>(lines * pitch(lines)) * sizeof(Complex<T>)};
}

constexpr int least_bits = 2;
/// The longest lines whose numbers 227 KiB, the most that any device gives a block, hold.
template <class T>
constexpr int most_bits = sizeof(T) == 8 ? 14 : 15;

template <class T, template <class, int> class Kinds, int... i>
auto families(std::integer_sequence<int, i...>) {
  return std::array<Family<T>, sizeof...(i)>{
      Family<T>::template of<Kinds<T, least_bits + i>>(least_bits + i)...};
}

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
  return (is_first_kind(kind) ? first : even)[static_cast<std::size_t>(bits - least_bits)];
}

}  // namespace

template <class T>
bool line_transform_fits(Transform kind, Index length, Index width) {
  const int bits = bits_of<T>(kind, length);
  return bits >= 0 && block_shape(family<T>(kind, bits), width).bytes > 0;
}

template <class T>
void line_transform(Stream stream, Transform kind, const Lines<const T>& from, const Lines<T>& to) {
  const int bits = bits_of<T>(kind, from.length);
  if (!line_transform_fits<T>(kind, from.length, from.width))
    throw Error("lines of " + std::to_string(from.length) + " points, " + std::to_string(from.width) +
                    " side by side, do not fit into a kernel's shared memory",
                Blame::task);
  check_strides<T>(from, to);
  const Tables<T>& table = tables<T>();
  if (from.count < 1 || from.width < 1) return;
  const Family<T>& f = family<T>(kind, bits);
  const BlockShape shape = block_shape(f, from.width);
  const auto [grid, blocks] = deal_lines(from, to, shape);
  const bool is_contiguous = from.width == 1 && from.stride == 1 && to.stride == 1;
  const auto kernel = is_contiguous ? f.kernel_of_contiguous : f.kernel;
  asterism::cuda::allow_all_shared_memory(kernel);
  kernel<<<blocks, static_cast<unsigned>(shape.threads), shape.bytes, asterism::cuda::native(stream)>>>(
      grid, kind, table, blocks_ahead(shape));
  asterism::cuda::check_launch("transform of lines");
}

#define ASTERISM_INSTANTIATE(T)                                  \
  template bool line_transform_fits<T>(Transform, Index, Index); \
  template void line_transform<T>(Stream, Transform, const Lines<const T>&, const Lines<T>&);
ASTERISM_INSTANTIATE(double)
ASTERISM_INSTANTIATE(float)

}  // namespace asterism::transforms::cuda
