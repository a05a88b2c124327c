#include "any_length.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include "../grid_lines.cuh"
#include "../rounds.hpp"
#include "kinds.cuh"
#include "radices.hpp"

namespace asterism::transforms::cuda {
namespace {

using asterism::cuda::check;

/// The most threads of a block: so few that each has registers for the largest butterflies.
template <class T>
constexpr int most_block_threads = sizeof(T) == 8 ? 512 : 640;

template <class T>
__global__ void __launch_bounds__(most_block_threads<T>)
    transform_lines_of_any_length(GridLines<T> grid, const __grid_constant__ AnyLength<T> plan) {
  extern __shared__ __align__(16) unsigned char memory[];
  const BlockOfAnyLength<T> block(grid.block(blockIdx.x), plan, reinterpret_cast<Complex<T>*>(memory),
                                  static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x));
  const int phases = block.phases(plan);
  for (int phase = plan.fft.padded ? 0 : 1; phase < phases; ++phase) {
    block.run(phase);
    __syncthreads();
  }
}

/// The FFT's numbers of a line, or 0, found once for each length.
int numbers_of(Index N) {
  static std::mutex mutex;
  static auto& known = *new std::map<Index, int>;
  const std::scoped_lock lock(mutex);
  const auto [at, is_new] = known.try_emplace(N, 0);
  if (is_new) at->second = fft_plan_numbers(N);
  return at->second;
}

/// The FFT of one length on one device.
template <class T>
class DeviceFft {
 public:
  explicit DeviceFft(Index N) : DeviceFft(FftPlan<T>(N)) {}

  [[nodiscard]] const FftView<T>& view() const { return view_; }

 private:
  explicit DeviceFft(const FftPlan<T>& plan)
      : view_(plan.view), in_(plan.in), out_(plan.out), tables_(plan.tables) {
    view_.in = in_.data();
    view_.out = out_.data();
    view_.tables = tables_.data();
  }

  FftView<T> view_;
  Table<std::uint16_t> in_, out_;
  Table<Complex<T>> tables_;
};

/// All that lines of one kind and length need on one device.
template <class T>
class DevicePlan {
 public:
  DevicePlan(Transform kind, Index n, const FftView<T>& fft)
      : fold_(fold_rotations<T>(kind, n)),
        unfold_(unfold_rotations<T>(kind, n)),
        plan_{kind, static_cast<int>(n), fft, fold_.data(), unfold_.data()} {}

  [[nodiscard]] const AnyLength<T>& plan() const { return plan_; }

 private:
  Table<Complex<T>> fold_, unfold_;
  AnyLength<T> plan_;
};

/// The plan of the calling thread's current device.
template <class T>
const AnyLength<T>& device_plan(Transform kind, Index n) {
  // Never destroyed: at the process's end CUDA may be gone before static objects are.
  static std::mutex mutex;
  static auto& ffts = *new std::map<std::pair<int, Index>, std::unique_ptr<DeviceFft<T>>>;
  static auto& plans = *new std::map<std::tuple<int, Transform, Index>, std::unique_ptr<DevicePlan<T>>>;
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  const std::scoped_lock lock(mutex);
  auto& plan = plans[{device, kind, n}];
  if (plan == nullptr) {
    const Index N = fft_length(kind, n);
    auto& fft = ffts[{device, N}];
    if (fft == nullptr) fft = std::make_unique<DeviceFft<T>>(N);
    plan = std::make_unique<DevicePlan<T>>(kind, n, fft->view());
  }
  return plan->plan();
}

int tuned(const char* name, int otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr ? std::atoi(value) : otherwise;
}

/// Contiguous lines: one, or so many short ones that they have few_numbers, since small blocks wait less at their barriers.
/// Lines side by side: more, so that every access covers whole sectors of memory, or nearly.
template <class T>
BlockShape any_length_shape(Transform kind, int numbers, Index width) {
  constexpr int warp = 32, least_threads = 64, number_bytes = sizeof(Complex<T>), bytes_together = 64,
                sector_bytes = 32, least_bytes_together = 16;
  static const int few_numbers = tuned("AF_FEW", sizeof(T) == 8 ? 1024 : 2048),
                   numbers_per_thread = tuned("AF_PER", 16);
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

  const int threads = (lines * numbers / numbers_per_thread + warp - 1) / warp * warp;
  return {std::countr_zero(static_cast<unsigned>(lines * together)),
          std::clamp(threads, least_threads, most_block_threads<T>), pitch,
          static_cast<std::size_t>(lines * pitch) * sizeof(Complex<T>)};
}

}  // namespace

template <class T>
bool any_length_fits(Transform kind, Index length, Index width) {
  const int numbers = length < 1 ? 0 : numbers_of(fft_length(kind, length));
  return numbers > 0 && any_length_shape<T>(kind, numbers, width).bytes > 0;
}

template <class T>
void any_length_transform(Stream stream, Transform kind, const Lines<const T>& from, const Lines<T>& to) {
  if (!any_length_fits<T>(kind, from.length, from.width))
    throw Error("lines of " + std::to_string(from.length) + " points, " + std::to_string(from.width) +
                    " side by side, do not fit into a kernel's shared memory",
                Blame::task);
  check_strides<T>(from, to);
  const AnyLength<T>& plan = device_plan<T>(kind, from.length);
  if (from.count < 1 || from.width < 1) return;
  const BlockShape shape = any_length_shape<T>(kind, plan.fft.numbers, from.width);
  const auto [grid, blocks] = deal_lines(from, to, shape);
  check(cudaFuncSetAttribute(transform_lines_of_any_length<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(most_shared_bytes())),
        "shared memory of a transform");
  transform_lines_of_any_length<T>
      <<<blocks, static_cast<unsigned>(shape.threads), shape.bytes, asterism::cuda::native(stream)>>>(grid,
                                                                                                      plan);
  asterism::cuda::check_launch("transform of lines of any length");
}

template bool any_length_fits<double>(Transform, Index, Index);
template bool any_length_fits<float>(Transform, Index, Index);
template void any_length_transform(Stream, Transform, const Lines<const double>&, const Lines<double>&);
template void any_length_transform(Stream, Transform, const Lines<const float>&, const Lines<float>&);

}  // namespace asterism::transforms::cuda
