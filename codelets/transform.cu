#include <cufft.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "../runtime/cuda.hpp"
#include "chirp.hpp"
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

/// The sequence of (T2) for each line, `pitch` apart. The thread at j makes elements j and N - j (one and the same at
/// N / 2).
template <class T, class U>
__global__ void fold(const T* __restrict__ from, Index n, Index ld, Index lines,
                     const Complex<U>* __restrict__ rotations, Complex<U>* __restrict__ to, Index pitch) {
  const Index N = n + 1, j = global_x() + 1, step = threads_y();
  if (2 * j > N) return;
  const Complex<U> rotation = rotations[j];
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
        const FoldedPair<U> pair = dst_fold<U>(x[i], mirror[i], rotation);
        Complex<U>* const z = to + line * pitch;
        z[j] = pair.at_j;
        z[N - j] = pair.at_mirror;
        if (j == 1) z[0] = {0, 0};
      }
    }
  }
}

/// (T3) for each line. The thread at k makes output k + 1.
template <class U, class T>
__global__ void unfold(const U* __restrict__ from, Index pitch, Index n, Index lines, T* __restrict__ to, Index ld) {
  const Index N = n + 1, k = global_x(), step = threads_y();
  if (k >= n) return;
  for (Index first = global_y(); first < lines; first += lines_per_thread * step) {
    U u[lines_per_thread] = {}, mirror[lines_per_thread] = {};
#pragma unroll
    for (int i = 0; i < lines_per_thread; ++i) {
      const Index line = first + i * step;
      if (line < lines) {
        const U* const numbers = from + line * 2 * pitch;
        u[i] = numbers[k + 1];
        mirror[i] = numbers[2 * N - k - 1];
      }
    }
#pragma unroll
    for (int i = 0; i < lines_per_thread; ++i) {
      const Index line = first + i * step;
      if (line < lines) to[line * ld + k] = static_cast<T>(dst_unfold(u[i], mirror[i]));
    }
  }
}

/// The largest biased exponent of each line's numbers, over 0. A warp has places of one line: hard lines are
/// longer than a warp is wide.
__global__ void find_exponents(const double* __restrict__ from, Index n, Index ld, Index lines,
                               int* __restrict__ exponents) {
  constexpr unsigned warp = 32, all = 0xffffffff;
  const Index j = global_x(), step = threads_y();
  for (Index line = global_y(); line < lines; line += step) {
    int exponent = j < n ? biased_exponent(from[line * ld + j]) : 0;
    for (unsigned lanes = warp / 2; lanes > 0; lanes /= 2)
      exponent = max(exponent, __shfl_xor_sync(all, exponent, lanes));
    if (threadIdx.x % warp == 0) atomicMax(exponents + line, exponent);
  }
}

/// What the kernels of (C1) want of a Chirp.
struct ChirpTables {
  const Complex<double>*w, *v, *high, *low;
  Index N, M;
  Chirp::Grid grid;
};

/// (C2), split into the lines 2 i (high) and 2 i + 1 (rest) for line i. The thread at t < M - N makes
/// elements t and N - t, where t is at most N / 2, and N + t, which is 0.
__global__ void fold_chirped(const double* __restrict__ from, Index ld, Index lines, ChirpTables chirp,
                             const int* __restrict__ exponents, Complex<double>* __restrict__ to) {
  const Index N = chirp.N, M = chirp.M, t = global_x(), step = threads_y();
  if (t >= M - N) return;
  const bool has_pair = t > 0 && 2 * t <= N;
  Complex<double> w{}, v{}, v_before{};
  if (has_pair) {
    w = chirp.w[t];
    v = chirp.v[t];
    v_before = chirp.v[t - 1];
  }
  for (Index line = global_y(); line < lines; line += step) {
    Complex<double>*const high = to + 2 * line * M, *const rest = high + M;
    const auto put = [&](Index at, Complex<double> a) {
      const HighAndRest split = chirp_split(a, chirp.grid.coarse);
      high[at] = split.high;
      rest[at] = split.rest;
    };
    if (has_pair) {
      const double inverse = 1 / line_scale(exponents[line]);
      const double* const row = from + line * ld;
      const FoldedPair<double> pair =
          chirp_fold(row[t - 1] * inverse, row[N - t - 1] * inverse, w, v, v_before, chirp.grid.mirror_sign);
      put(t, pair.at_j);
      put(N - t, pair.at_mirror);
    }
    if (t == 0) put(0, {0, 0});
    put(N + t, {0, 0});
  }
}

/// (C3), in place.
__global__ void multiply_chirped(Complex<double>* __restrict__ spectra, Index lines, ChirpTables chirp) {
  const Index M = chirp.M, k = global_x(), step = threads_y();
  if (k >= M) return;
  const Complex<double> c_high = chirp.high[k], c_low = chirp.low[k];
  for (Index line = global_y(); line < lines; line += step) {
    Complex<double>*const high = spectra + 2 * line * M + k, *const rest = high + M;
    const HighAndRest product = chirp_multiply({*high, *rest}, c_high, c_low);
    *high = product.high;
    *rest = product.rest;
  }
}

/// The thread at l makes U_l, the outputs 2 l and 2 l + 1 of each line.
__global__ void unfold_chirped(const Complex<double>* __restrict__ from, Index lines, ChirpTables chirp,
                               const int* __restrict__ exponents, double* __restrict__ to, Index ld) {
  const Index N = chirp.N, l = global_x(), step = threads_y();
  if (2 * l >= N) return;
  const Complex<double> w = chirp.w[l];
  for (Index line = global_y(); line < lines; line += step) {
    const Complex<double>*const high = from + 2 * line * chirp.M, *const rest = high + chirp.M;
    const Complex<double> U = chirp_join({high[l], rest[l]}, w, chirp.grid.fine);
    const double scale = line_scale(exponents[line]);
    double* const row = to + line * ld;
    if (l > 0) row[2 * l - 1] = U.re * scale;
    if (2 * l < N - 1) row[2 * l] = U.im * scale;
  }
}

/// A table on the calling thread's current device.
template <class T>
class Table {
 public:
  explicit Table(const std::vector<T>& table) {
    const std::size_t bytes = table.size() * sizeof(T);
    check(cudaMalloc(&data_, bytes), "memory for a table of a sine transform");
    try {
      check(cudaMemcpy(data_, table.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
      // A copy from pageable memory may still be on its way, and streams without blocking do not wait for it.
      check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
    } catch (...) {
      cudaFree(data_);
      throw;
    }
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  ~Table() { cudaFree(data_); }

  [[nodiscard]] const T* data() const { return data_; }

 private:
  T* data_ = nullptr;
};

/// `count` FFTs of `length` at once, `pitch` apart, in place.
template <class T>
class Fft {
 public:
  Fft(Index length, Index pitch, Index count) : Fft() {  // after Fft() the destructor cleans up when a check throws
    long long size = length, distance = pitch;
    constexpr cufftType type = std::is_same_v<T, float> ? CUFFT_C2C : CUFFT_Z2Z;
    check(cufftCreate(&fft_), "cufftCreate");
    created_ = true;
    check(cufftSetAutoAllocation(fft_, 0), "cufftSetAutoAllocation");
    const std::string what =
        "plan for " + std::to_string(count) + " transforms of length " + std::to_string(length);
    check(cufftMakePlanMany64(fft_, 1, &size, &size, 1, distance, &size, 1, distance, type, count, &work_bytes_),
          what.c_str());
  }
  Fft(const Fft&) = delete;
  Fft& operator=(const Fft&) = delete;
  ~Fft() {
    if (created_) cufftDestroy(fft_);
  }

  [[nodiscard]] std::size_t work_bytes() const { return work_bytes_; }

  void operator()(cudaStream_t stream, Complex<T>* lines, void* work_area, int direction) {
    const std::scoped_lock lock(mutex_);  // stream and work area belong to the plan until it is launched
    check(cufftSetStream(fft_, stream), "cufftSetStream");
    check(cufftSetWorkArea(fft_, work_area), "cufftSetWorkArea");
    if constexpr (std::is_same_v<T, float>) {
      auto* const data = reinterpret_cast<cufftComplex*>(lines);
      check(cufftExecC2C(fft_, data, data, direction), "cufftExecC2C");
    } else {
      auto* const data = reinterpret_cast<cufftDoubleComplex*>(lines);
      check(cufftExecZ2Z(fft_, data, data, direction), "cufftExecZ2Z");
    }
  }

 private:
  Fft() = default;

  cufftHandle fft_{};
  bool created_ = false;
  std::size_t work_bytes_ = 0;
  std::mutex mutex_;
};

/// A multiple of cuFFT's alignment: whatever lies behind so many bytes is aligned too.
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

/// (T2) as it stands, in the precision of U: what the transforms of lines of n points on one device share.
template <class U>
class Direct {
 public:
  /// @param padding numbers between the lines
  Direct(Index n, Index lines_at_once, Index padding = 0)
      : n_(n),
        pitch_(n + 1 + padding),
        line_bytes_(aligned(static_cast<std::size_t>(pitch_ * lines_at_once) * sizeof(Complex<U>))),
        rotations_(dst_rotations<U>(n)),
        fft_(n + 1, pitch_, lines_at_once) {}

  static constexpr Index bytes_per_line(Index n) { return (n + 1) * static_cast<Index>(sizeof(Complex<U>)); }
  [[nodiscard]] std::size_t scratch_bytes() const { return line_bytes_ + fft_.work_bytes(); }

  /// At most lines_at_once of them.
  template <class T>
  void operator()(cudaStream_t stream, In<T> from, Out<T> to, void* work) {
    auto* const lines = static_cast<Complex<U>*>(work);
    const Launch pairs((n_ + 1) / 2, from.rows), points(n_, from.rows);
    fold<<<pairs.blocks, pairs.threads, 0, stream>>>(from.data, n_, from.ld, from.rows, rotations_.data(),
                                                     lines, pitch_);
    asterism::cuda::check_launch("fold lines of a sine transform");
    // In the last round perhaps stale lines too: harmless.
    fft_(stream, lines, static_cast<char*>(work) + line_bytes_, CUFFT_FORWARD);
    unfold<<<points.blocks, points.threads, 0, stream>>>(static_cast<const U*>(work), pitch_, n_, from.rows,
                                                         to.data, to.ld);
    asterism::cuda::check_launch("unfold lines of a sine transform");
  }

 private:
  Index n_, pitch_;
  std::size_t line_bytes_;
  Table<Complex<U>> rotations_;
  Fft<U> fft_;
};

/// (T2) by way of (C1).
class Chirped {
 public:
  Chirped(Index n, Index lines_at_once)
      : Chirped(cpu::chirp_convolution(n + 1).chirp(), bytes_per_line(n) * lines_at_once, lines_at_once) {}

  static Index bytes_per_line(Index n) {
    return 2 * convolution_length(n + 1) * static_cast<Index>(sizeof(Complex<double>));
  }
  [[nodiscard]] std::size_t scratch_bytes() const {
    return line_bytes_ + exponent_bytes_ + fft_.work_bytes();
  }

  /// At most lines_at_once of them.
  void operator()(cudaStream_t stream, In<double> from, Out<double> to, void* work) {
    auto* const lines = static_cast<Complex<double>*>(work);
    auto* const exponents = reinterpret_cast<int*>(static_cast<char*>(work) + line_bytes_);
    void* const work_area = static_cast<char*>(work) + line_bytes_ + exponent_bytes_;
    const Index n = from.cols, count = from.rows;
    const Launch points(n, count), folds(tables_.M - tables_.N, count), all(tables_.M, count),
        pairs(n / 2 + 1, count);

    check(cudaMemsetAsync(exponents, 0, exponent_bytes_, stream), "cudaMemsetAsync");
    find_exponents<<<points.blocks, points.threads, 0, stream>>>(from.data, n, from.ld, count, exponents);
    asterism::cuda::check_launch("exponents of the lines of a sine transform");
    fold_chirped<<<folds.blocks, folds.threads, 0, stream>>>(from.data, from.ld, count, tables_, exponents,
                                                             lines);
    asterism::cuda::check_launch("fold lines of a sine transform with a chirp");
    fft_(stream, lines, work_area, CUFFT_FORWARD);  // in the last round perhaps stale lines too: harmless
    multiply_chirped<<<all.blocks, all.threads, 0, stream>>>(lines, count, tables_);
    asterism::cuda::check_launch("multiply by the spectrum of a chirp");
    fft_(stream, lines, work_area, CUFFT_INVERSE);
    unfold_chirped<<<pairs.blocks, pairs.threads, 0, stream>>>(lines, count, tables_, exponents, to.data,
                                                               to.ld);
    asterism::cuda::check_launch("unfold lines of a sine transform with a chirp");
  }

 private:
  Chirped(const Chirp& chirp, Index line_bytes, Index lines_at_once)
      : line_bytes_(aligned(static_cast<std::size_t>(line_bytes))),
        exponent_bytes_(aligned(static_cast<std::size_t>(lines_at_once) * sizeof(int))),
        w_(chirp.w),
        v_(chirp.v),
        high_(chirp.high),
        low_(chirp.low),
        tables_{w_.data(), v_.data(), high_.data(), low_.data(), chirp.N, chirp.M, chirp.grid()},
        fft_(chirp.M, chirp.M, 2 * lines_at_once) {}

  std::size_t line_bytes_, exponent_bytes_;
  Table<Complex<double>> w_, v_, high_, low_;
  ChirpTables tables_;
  Fft<double> fft_;
};

/// Device memory of the calling thread's current device, for things that are done once.
std::unique_ptr<void, cudaError_t (*)(void*)> device_memory(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "memory to try a sine transform");
  std::unique_ptr<void, cudaError_t (*)(void*)> owner(memory, &cudaFree);
  check(cudaMemset(memory, 0, bytes), "cudaMemset");
  return owner;
}

/// The rounding error of a transform in units of T's: the distance of a line of arbitrary numbers from what the CPU makes
/// of it in double precision, relative in the 2-norm.
template <class T>
double rounding(Direct<T>& transform, Index n) {
  std::vector<T> line(static_cast<std::size_t>(n));
  std::vector<double> expected(line.size());
  std::uint64_t state = 1;  // Knuth's linear congruential generator: any noise will do
  for (std::size_t i = 0; i < line.size(); ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    line[i] = static_cast<T>(static_cast<double>(state >> 40) * 0x1p-23 - 1);
    expected[i] = static_cast<double>(line[i]);
  }
  cpu::dst<double>({expected.data(), 1, n, n});

  const std::size_t bytes = line.size() * sizeof(T);
  const auto memory = device_memory(aligned(bytes) + transform.scratch_bytes());
  T* const data = static_cast<T*>(memory.get());
  check(cudaMemcpy(data, line.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  transform(nullptr, In<T>{data, 1, n, n}, Out<T>{data, 1, n, n}, static_cast<char*>(memory.get()) + aligned(bytes));
  check(cudaMemcpy(line.data(), data, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");

  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const double d = static_cast<double>(line[i]) - expected[i];
    difference += d * d;
    norm += expected[i] * expected[i];
  }
  return std::sqrt(difference / norm) / (sizeof(T) == 4 ? 0x1p-24 : 0x1p-53);
}

/// How lines of n points in the precision of T are best transformed.
struct Way {
  bool direct;    ///< by cuFFT in that precision, or else as where N has a large prime factor
  Index padding;  ///< between the lines
};

/// cuFFT's rounding error depends on the length and on the lines' layout in no simple way: in double precision, with CUDA
/// 13.0 on an H200, sine transforms with N = 5832 have 5.4 units in lines without gaps and 2.8 with them, N = 4096 has
/// 3.9 and 2.7, N = 9000 3.9 and 3.7, N = 8192 2.7 in both. So it is measured, once for each length. Up to the limit the
/// scaled residual of the Poisson solver stays below 2 units.
template <class T>
Way choose_way(Index n) {
  constexpr double limit = 3.3, good = 2.8;
  Way best{false, 0};
  if (has_large_prime(n + 1)) return best;
  double least = limit;
  for (const Index padding : {0, 16}) {
    Direct<T> transform(n, 2, padding);  // two lines: with one cuFFT has no gaps to take notice of
    const double error = rounding(transform, n);
    if (error < least) {
      least = error;
      best = {true, padding};
    }
    if (error < good) break;
  }
  return best;
}

template <class T>
Way way(Index n) {
  static auto& ways = *new std::map<std::pair<int, Index>, Way>;
  static std::mutex mutex;
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  const std::scoped_lock lock(mutex);
  const auto found = ways.find({device, n});
  return found != ways.end() ? found->second : ways.emplace(std::pair{device, n}, choose_way<T>(n)).first->second;
}

/// The plan of the calling thread's current device.
template <class Plan, class... More>
Plan& plan(Index n, Index lines_at_once, More... more) {
  // Never destroyed: at the process's end CUDA may be gone before static objects are.
  static auto& plans = *new std::map<std::tuple<int, Index, Index, More...>, std::unique_ptr<Plan>>;
  static std::mutex mutex;

  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  const std::scoped_lock lock(mutex);
  auto& plan = plans[{device, n, lines_at_once, more...}];
  if (plan == nullptr) plan = std::make_unique<Plan>(n, lines_at_once, more...);
  return *plan;
}

/// What lines of n points in the precision of T are transformed by where cuFFT rounds too much in that precision.
template <class T>
using Hard = std::conditional_t<std::is_same_v<T, float>, Direct<double>, Chirped>;

template <class T, class Use>
void with_plan(Index n, Index lines_at_once, Use use) {
  if (const Way w = way<T>(n); w.direct)
    use(plan<Direct<T>>(n, lines_at_once, w.padding));
  else
    use(plan<Hard<T>>(n, lines_at_once));
}

}  // namespace

template <class T>
Index dst_scratch(Index n, Index lines_at_once) {
  std::size_t bytes = 0;
  with_plan<T>(n, lines_at_once, [&](const auto& transform) { bytes = transform.scratch_bytes(); });
  return static_cast<Index>((bytes + sizeof(T) - 1) / sizeof(T));
}

template <class T>
Index dst_lines_at_once(Index n, Index rows) {
  // 32 MiB of the 50 MB of second-level cache of an H200. Most lengths want a work area as large as the
  // lines.
  constexpr Index working_set = 32 << 20;
  const Index line = way<T>(n).direct ? Direct<T>::bytes_per_line(n) : Hard<T>::bytes_per_line(n);
  const Index most = std::clamp<Index>(working_set / (2 * line), 1, rows);
  const Index rounds = (rows + most - 1) / most;
  return (rows + rounds - 1) / rounds;
}

template <class T>
void plan_dst(Index n, Index lines_at_once) {
  // Kernels are loaded when they first run: here, on a line of zeros, rather than in the first task.
  const auto line_bytes = aligned(static_cast<std::size_t>(n) * sizeof(T));
  const auto work_bytes = static_cast<std::size_t>(dst_scratch<T>(n, lines_at_once)) * sizeof(T);
  const auto memory = device_memory(line_bytes + work_bytes);
  T* const line = static_cast<T*>(memory.get());
  dst<T>({nullptr}, {line, 1, n, n}, {line, 1, n, n}, line + line_bytes / sizeof(T), lines_at_once);
  check(cudaStreamSynchronize(nullptr), "first run of a sine transform");
}

template <class T>
void dst(Stream stream, In<T> from, Out<T> to, T* work, Index lines_at_once) {
  if (from.rows < 1 || from.cols < 1) return;
  with_plan<T>(from.cols, lines_at_once, [&](auto& transform) {
    for (Index first = 0; first < from.rows; first += lines_at_once) {
      const Index count = std::min(lines_at_once, from.rows - first);
      transform(asterism::cuda::native(stream), In<T>{from.row(first), count, from.cols, from.ld},
                Out<T>{to.row(first), count, to.cols, to.ld}, work);
    }
  });
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
