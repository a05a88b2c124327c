#include <cufft.h>

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <type_traits>

#include "../runtime/cuda.hpp"
#include "transform.hpp"

namespace asterism::kernels::cuda {
namespace {

using asterism::cuda::check;

void check(cufftResult status, const char* what) {
  if (status != CUFFT_SUCCESS)
    throw Error(std::string(what) + ": cuFFT gives status " + std::to_string(status) + " (see cufftResult)",
                Blame::task);
}

/// So many lines share one load of a rotation, and so many loads are under way at a time.
constexpr int lines_per_thread = 4;

/// Threads for `width` numbers along each of `lines` lines: a thread has one place along x, and takes lines
/// global_y(), global_y() + threads_y(), ...
struct Launch {
  dim3 blocks, threads;

  Launch(Index width, Index lines) {
    constexpr unsigned block = 256, most_blocks_y = 65535;
    threads.x = width < block ? std::bit_ceil(static_cast<unsigned>(width)) : block;
    threads.y = block / threads.x;
    const Index lines_per_block = Index{threads.y} * lines_per_thread;
    blocks.x = static_cast<unsigned>((width + threads.x - 1) / threads.x);
    blocks.y = static_cast<unsigned>(
        std::min<Index>(most_blocks_y, (lines + lines_per_block - 1) / lines_per_block));
  }
};

__device__ Index global_x() { return Index{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ Index global_y() { return Index{blockIdx.y} * blockDim.y + threadIdx.y; }
__device__ Index threads_y() { return Index{gridDim.y} * blockDim.y; }

/// The sequence of (T2) for each line. The thread at j makes elements j and N - j (one and the same at N /
/// 2).
template <class T>
__global__ void fold(const T* __restrict__ from, Index n, Index ld, Index lines,
                     const Complex<T>* __restrict__ rotations, Complex<T>* __restrict__ to) {
  const Index N = n + 1, j = global_x() + 1, step = threads_y();
  if (2 * j > N) return;
  const Complex<T> rotation = rotations[j];
  for (Index first = global_y(); first < lines; first += lines_per_thread * step) {
    T x[lines_per_thread] = {}, mirror[lines_per_thread] = {};
#pragma unroll
    for (int i = 0; i < lines_per_thread; ++i) {
      const Index line = first + i * step;
      if (line < lines) {
        x[i] = from[line * ld + j - 1];
        mirror[i] = from[line * ld + N - j - 1];
      }
    }
#pragma unroll
    for (int i = 0; i < lines_per_thread; ++i) {
      const Index line = first + i * step;
      if (line < lines) {
        const FoldedPair<T> pair = dst_fold(x[i], mirror[i], rotation);
        Complex<T>* const z = to + line * N;
        z[j] = pair.at_j;
        z[N - j] = pair.at_mirror;
        if (j == 1) z[0] = {0, 0};
      }
    }
  }
}

/// The first half of each transformed line, read as real numbers 0, Y_1 ... Y_n, to where it belongs.
template <class T>
__global__ void unfold(const T* __restrict__ from, Index n, Index lines, T* __restrict__ to, Index ld) {
  const Index N = n + 1, k = global_x(), step = threads_y();
  if (k >= n) return;
  for (Index first = global_y(); first < lines; first += lines_per_thread * step) {
    T y[lines_per_thread] = {};
#pragma unroll
    for (int i = 0; i < lines_per_thread; ++i)
      if (first + i * step < lines) y[i] = from[(first + i * step) * 2 * N + k + 1];
#pragma unroll
    for (int i = 0; i < lines_per_thread; ++i)
      if (first + i * step < lines) to[(first + i * step) * ld + k] = y[i];
  }
}

/// What the transforms of lines of one length on one device share.
template <class T>
class Plan {
 public:
  Plan(Index n, Index lines_at_once) : Plan() {  // after Plan() the destructor cleans up when a check throws
    const auto table = dst_rotations<T>(n);
    const std::size_t bytes = table.size() * sizeof(table[0]);
    check(cudaMalloc(&rotations_, bytes), "memory for the rotations of a sine transform");
    check(cudaMemcpy(rotations_, table.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    // A copy from pageable memory may still be on its way, and streams without blocking do not wait for it.
    check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");

    long long N = n + 1;
    constexpr cufftType type = std::is_same_v<T, float> ? CUFFT_C2C : CUFFT_Z2Z;
    check(cufftCreate(&fft_), "cufftCreate");
    created_ = true;
    check(cufftSetAutoAllocation(fft_, 0), "cufftSetAutoAllocation");
    const std::string what =
        "plan for " + std::to_string(lines_at_once) + " lines of " + std::to_string(n) + " points";
    check(cufftMakePlanMany64(fft_, 1, &N, nullptr, 1, N, nullptr, 1, N, type, lines_at_once, &work_bytes_),
          what.c_str());
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    if (created_) cufftDestroy(fft_);
    cudaFree(rotations_);
  }

  [[nodiscard]] const Complex<T>* rotations() const { return rotations_; }
  [[nodiscard]] std::size_t work_bytes() const { return work_bytes_; }

  /// In place, all lines_at_once of them.
  void transform(cudaStream_t stream, Complex<T>* lines, void* work_area) {
    const std::scoped_lock lock(mutex_);  // stream and work area belong to the plan until it is launched
    check(cufftSetStream(fft_, stream), "cufftSetStream");
    check(cufftSetWorkArea(fft_, work_area), "cufftSetWorkArea");
    if constexpr (std::is_same_v<T, float>) {
      auto* const data = reinterpret_cast<cufftComplex*>(lines);
      check(cufftExecC2C(fft_, data, data, CUFFT_FORWARD), "cufftExecC2C");
    } else {
      auto* const data = reinterpret_cast<cufftDoubleComplex*>(lines);
      check(cufftExecZ2Z(fft_, data, data, CUFFT_FORWARD), "cufftExecZ2Z");
    }
  }

 private:
  Plan() = default;

  Complex<T>* rotations_ = nullptr;
  cufftHandle fft_{};
  bool created_ = false;
  std::size_t work_bytes_ = 0;
  std::mutex mutex_;
};

/// The plan of the calling thread's current device.
template <class T>
Plan<T>& plan(Index n, Index lines_at_once) {
  // Never destroyed: at the process's end CUDA may be gone before static objects are.
  static auto& plans = *new std::map<std::tuple<int, Index, Index>, std::unique_ptr<Plan<T>>>;
  static std::mutex mutex;

  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  const std::scoped_lock lock(mutex);
  auto& plan = plans[{device, n, lines_at_once}];
  if (plan == nullptr) plan = std::make_unique<Plan<T>>(n, lines_at_once);
  return *plan;
}

/// Bytes of the complex lines; rounded up, so that cuFFT's work area behind them is aligned.
template <class T>
std::size_t line_bytes(Index n, Index lines_at_once) {
  constexpr std::size_t alignment = 256;
  const std::size_t bytes = static_cast<std::size_t>((n + 1) * lines_at_once) * sizeof(Complex<T>);
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

template <class T>
Index dst_scratch(Index n, Index lines_at_once) {
  const std::size_t bytes = line_bytes<T>(n, lines_at_once) + plan<T>(n, lines_at_once).work_bytes();
  return static_cast<Index>((bytes + sizeof(T) - 1) / sizeof(T));
}

template <class T>
Index dst_lines_at_once(Index n, Index rows) {
  // 32 MiB of the 50 MB of second-level cache of an H200. Most lengths want a work area as large as the
  // lines.
  constexpr Index working_set = 32 << 20;
  const Index line = 2 * (n + 1) * static_cast<Index>(sizeof(Complex<T>));
  const Index most = std::clamp<Index>(working_set / line, 1, rows);
  const Index rounds = (rows + most - 1) / most;
  return (rows + rounds - 1) / rounds;
}

template <class T>
void plan_dst(Index n, Index lines_at_once) {
  plan<T>(n, lines_at_once);
}

template <class T>
void dst(Stream stream, In<T> from, Out<T> to, T* work, Index lines_at_once) {
  const Index n = from.cols;
  if (from.rows < 1 || n < 1) return;
  Plan<T>& shared = plan<T>(n, lines_at_once);
  const cudaStream_t s = asterism::cuda::native(stream);
  auto* const lines = reinterpret_cast<Complex<T>*>(work);
  void* const work_area = reinterpret_cast<char*>(work) + line_bytes<T>(n, lines_at_once);

  for (Index first = 0; first < from.rows; first += lines_at_once) {
    const Index count = std::min(lines_at_once, from.rows - first);
    const Launch pairs((n + 1) / 2, count), points(n, count);
    fold<<<pairs.blocks, pairs.threads, 0, s>>>(from.row(first), n, from.ld, count, shared.rotations(),
                                                lines);
    asterism::cuda::check_launch("fold lines of a sine transform");
    shared.transform(s, lines, work_area);  // in the last round perhaps stale lines too: harmless
    unfold<<<points.blocks, points.threads, 0, s>>>(work, n, count, to.row(first), to.ld);
    asterism::cuda::check_launch("unfold lines of a sine transform");
  }
}

template Index dst_scratch<float>(Index, Index);
template Index dst_scratch<double>(Index, Index);
template Index dst_lines_at_once<float>(Index, Index);
template Index dst_lines_at_once<double>(Index, Index);
template void plan_dst<float>(Index, Index);
template void plan_dst<double>(Index, Index);
template void dst(Stream, In<float>, Out<float>, float*, Index);
template void dst(Stream, In<double>, Out<double>, double*, Index);

}  // namespace asterism::kernels::cuda
