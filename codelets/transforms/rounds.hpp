/// \file
/// The steps that cuda::transform is made of. For `.cu` files only.
///
/// Lines are transformed in rounds. A round gathers so many lines, adjacent or not, into rows of working
/// memory and folds them there (fold.cu), has cuFFT transform the rows in place (fft.cu),
/// and scatters what it unfolds. Lines side by side are transposed on the way, in shared memory: device
/// memory is read and written in whole sectors, and cuFFT always finds adjacent numbers.
#pragma once

#include <bit>
#include <memory>
#include <mutex>
#include <vector>

#include "../../runtime/cuda.hpp"
#include "chirp.hpp"
#include "fold.hpp"

namespace asterism::transforms::cuda {

/// A multiple of cuFFT's alignment: whatever lies behind so many bytes is aligned too.
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

/// Zeros in the memory of the calling thread's current device, for things that are done once.
inline std::unique_ptr<void, cudaError_t (*)(void*)> device_memory(std::size_t bytes) {
  using asterism::cuda::check;
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "memory to try a transform");
  std::unique_ptr<void, cudaError_t (*)(void*)> owner(memory, &cudaFree);
  check(cudaMemset(memory, 0, bytes), "cudaMemset");
  return owner;
}

template <class T>
Lines<const T> to_read(const Lines<T>& lines) {
  return {lines.data, lines.count, lines.distance, lines.length, lines.stride, lines.width, lines.care};
}

/// The lines of a round, counted through all groups.
struct Round {
  Index first, count;
};

/// Where line `line` begins, counted through all groups.
template <class T>
ASTERISM_HOST_DEVICE T* first_point(const Lines<T>& lines, Index line) {
  return lines.width == 1 ? lines.data + line * lines.distance
                          : lines.data + line / lines.width * lines.distance + line % lines.width;
}

// --- fold.cu -------------------------------------------------------------------------------------

/// How real sequences and halves of Hermitian ones lie in rows of complex numbers.
enum class Packing {
  tight,   ///< as cuFFT's transforms between real and complex numbers want them
  spread,  ///< in full, for a complex transform: reals with imaginary parts of zero, Hermitian sequences whole
};

/// cuFFT's transforms between real and complex numbers lose digits on lines of odd length, about as many units of
/// rounding as there are points (CUDA 13.0 on an H200; not on a first line alone). These are done as complex ones.
constexpr Packing packing(Transform kind, Index n) {
  return fft_kind(kind) != FftKind::complex && n % 2 == 1 && n > 1 ? Packing::spread : Packing::tight;
}

/// Complex numbers of a row.
constexpr Index row_numbers(Transform kind, Index n) {
  return packing(kind, n) == Packing::spread ? n : fft_numbers(kind, n);
}

/// Rows of complex numbers, or of reals in their place, `pitch` complex numbers apart.
template <class U>
struct Rows {
  Complex<U>* data;
  Index pitch;
  Packing packing = Packing::tight;
};

/// Folds the round's lines into rows. Asynchronous, as are all that follow.
/// @param rotations fold_rotations(), on the device
template <class T, class U>
void fold_lines(cudaStream_t stream, Transform kind, const Lines<const T>& from, Round round,
                const Complex<U>* rotations, Rows<U> to);

/// Unfolds rows into the round's lines.
/// @param rotations unfold_rotations(), on the device
template <class T, class U>
void unfold_lines(cudaStream_t stream, Transform kind, Rows<U> from, const Complex<U>* rotations,
                  const Lines<T>& to, Round round);

// --- fft.cu --------------------------------------------------------------------------------------

/// `count` FFTs of `length` at once, in rows `pitch` complex numbers apart, in place.
template <class U>
class Fft {
 public:
  Fft(FftKind kind, Index length, Index pitch, Index count);
  Fft(const Fft&) = delete;
  Fft& operator=(const Fft&) = delete;
  ~Fft();

  [[nodiscard]] std::size_t work_bytes() const { return work_bytes_; }

  /// The forward transform, or of real kinds the one that there is.
  void operator()(cudaStream_t stream, Complex<U>* rows, void* work_area);
  /// The inverse of a complex transform, times its length.
  void inverse(cudaStream_t stream, Complex<U>* rows, void* work_area);

 private:
  Fft() = default;
  void execute(cudaStream_t stream, Complex<U>* rows, void* work_area, int direction);

  FftKind kind_{};
  int fft_ = 0;  // cuFFT's handle
  bool created_ = false;
  std::size_t work_bytes_ = 0;
  std::mutex mutex_;
};

/// A table on the calling thread's current device.
template <class T>
class Table {
 public:
  explicit Table(const std::vector<T>& table) {
    using asterism::cuda::check;
    if (table.empty()) return;
    const std::size_t bytes = table.size() * sizeof(T);
    check(cudaMalloc(&data_, bytes), "memory for a table of a transform");
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

// --- Launches ------------------------------------------------------------------------------------

/// So many rows share one load of a rotation, and so many loads are under way at a time.
constexpr int rows_per_thread = 4;

/// Threads for `width` numbers along each of `rows` rows: a thread has one place along x, and takes rows
/// global_y(), global_y() + threads_y(), ...
struct Launch {
  dim3 blocks, threads;

  Launch(Index width, Index rows) {
    constexpr unsigned block = 256, most_blocks_y = 65535;
    threads.x = width < block ? std::bit_ceil(static_cast<unsigned>(width)) : block;
    threads.y = block / threads.x;
    const Index rows_per_block = Index{threads.y} * rows_per_thread, blocks_y = parts(rows, rows_per_block);
    blocks.x = static_cast<unsigned>(parts(width, threads.x));
    blocks.y = static_cast<unsigned>(blocks_y < most_blocks_y ? blocks_y : most_blocks_y);
  }
};

#ifdef __CUDACC__
__device__ inline Index global_x() { return Index{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ inline Index global_y() { return Index{blockIdx.y} * blockDim.y + threadIdx.y; }
__device__ inline Index threads_y() { return Index{gridDim.y} * blockDim.y; }
#endif

// --- chirp.cu ------------------------------------------------------------------------------------

/// How the lines of a round are transformed: with tables and plans for so many lines at once.
template <class T>
class Method {
 public:
  Method() = default;
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;
  virtual ~Method() = default;
  [[nodiscard]] virtual std::size_t scratch_bytes() const = 0;
  virtual void operator()(cudaStream_t stream, const Lines<const T>& from, const Lines<T>& to, Round round,
                          void* work) = 0;
};

/// The numbers of a Chirp on the device.
class ChirpTables {
 public:
  explicit ChirpTables(const Chirp& chirp);

  /// What the kernels of (C1) want of it.
  struct View {
    const Complex<double>*w, *v, *high, *low;
    Index N, M;
    Chirp::Grid grid;
  };
  [[nodiscard]] View view() const { return {w_.data(), v_.data(), high_.data(), low_.data(), N_, M_, grid_}; }

 private:
  Index N_, M_;
  Chirp::Grid grid_;
  Table<Complex<double>> w_, v_, high_, low_;
};

/// dst1 by way of (C1).
class Chirped : public Method<double> {
 public:
  Chirped(std::shared_ptr<const ChirpTables> tables, Index lines_at_once);

  static Index bytes_per_line(Index n);
  [[nodiscard]] std::size_t scratch_bytes() const override;
  void operator()(cudaStream_t stream, const Lines<const double>& from, const Lines<double>& to, Round round,
                  void* work) override;

 private:
  /// Of rows that lie in the working memory already, or in `from` and `to`.
  void transform_rows(cudaStream_t stream, const double* from, Index from_ld, double* to, Index to_ld,
                      Index rows, void* work);

  std::shared_ptr<const ChirpTables> owner_;
  ChirpTables::View tables_;
  Index copy_pitch_;  // of copies of lines whose points are not adjacent
  std::size_t line_bytes_, exponent_bytes_, copy_bytes_;
  Fft<double> fft_;
};

}  // namespace asterism::transforms::cuda
