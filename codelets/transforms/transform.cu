#include "transform.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "any_length/any_length.hpp"
#include "bias.hpp"
#include "halves.hpp"
#include "power_of_two/line_transform.hpp"
#include "rounds.hpp"

namespace asterism::transforms::cuda {
namespace {

using asterism::cuda::check;

/// The tables of (T2) to (T8) on the device.
template <class U>
struct Rotations {
  Rotations(Transform kind, Index n)
      : fold(fold_rotations<U>(kind, n)), unfold(unfold_rotations<U>(kind, n)) {}

  Table<Complex<U>> fold, unfold;
};

/// (T2) to (T8) as they stand, in the precision of U.
template <class T, class U>
class Direct : public Method<T> {
 public:
  /// @param padding numbers between the rows
  Direct(Transform kind, Index n, Index padding, std::shared_ptr<const Rotations<U>> rotations,
         Index lines_at_once)
      : kind_(kind),
        packing_(packing(kind, n)),
        pitch_(row_numbers(kind, n) + padding),
        row_bytes_(aligned(static_cast<std::size_t>(pitch_ * lines_at_once) * sizeof(Complex<U>))),
        rotations_(std::move(rotations)),
        fft_(packing_ == Packing::spread ? FftKind::complex : fft_kind(kind), fft_length(kind, n), pitch_,
             lines_at_once) {}

  [[nodiscard]] std::size_t scratch_bytes() const override { return row_bytes_ + fft_.work_bytes(); }

  void operator()(cudaStream_t stream, const Lines<const T>& from, const Lines<T>& to, Round round,
                  void* work) override {
    const Rows<U> rows{static_cast<Complex<U>*>(work), pitch_, packing_};
    fold_lines<T, U>(stream, kind_, from, round, rotations_->fold.data(), rows);
    // Where the round has fewer lines than the plan, stale ones too: harmless.
    void* const work_area = static_cast<char*>(work) + row_bytes_;
    if (packing_ == Packing::spread && fft_kind(kind_) == FftKind::to_real)
      fft_.inverse(stream, rows.data, work_area);
    else
      fft_(stream, rows.data, work_area);
    unfold_lines<T, U>(stream, kind_, rows, rotations_->unfold.data(), to, round);
  }

 private:
  Transform kind_;
  Packing packing_;
  Index pitch_;
  std::size_t row_bytes_;
  std::shared_ptr<const Rotations<U>> rotations_;
  Fft<U> fft_;
};

/// How lines of one length are transformed on one device.
template <class T>
struct Way {
  Index bytes_per_line;  ///< of working memory, without cuFFT's
  std::function<std::unique_ptr<Method<T>>(Index lines_at_once)> make;
};

template <class T, class U>
Way<T> direct(Transform kind, Index n, Index padding) {
  const auto rotations = std::make_shared<const Rotations<U>>(kind, n);
  return {row_numbers(kind, n) * static_cast<Index>(sizeof(Complex<U>)), [=](Index lines_at_once) {
            return std::make_unique<Direct<T, U>>(kind, n, padding, rotations, lines_at_once);
          }};
}

Way<double> chirped(Index n) {
  const auto tables = std::make_shared<const ChirpTables>(cpu::chirp_convolution(n + 1).chirp());
  return {Chirped::bytes_per_line(n),
          [=](Index lines_at_once) { return std::make_unique<Chirped>(tables, lines_at_once); }};
}

/// The rounding error of a transform in units of T's: the distance of a line of arbitrary numbers from what
/// the CPU makes of it in double precision, relative in the 2-norm.
template <class T>
double rounding(Method<T>& method, Transform kind, Index n) {
  std::vector<T> line = noise<T>(n);
  std::vector<double> expected(line.begin(), line.end());
  cpu::transform<double>(kind, {expected.data(), 1, n, n, 1, 1});

  const std::size_t bytes = line.size() * sizeof(T);
  const auto memory = device_memory(aligned(bytes) + method.scratch_bytes());
  const Lines<T> lines{static_cast<T*>(memory.get()), 1, n, n, 1, 1};
  check(cudaMemcpy(lines.data, line.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  method(nullptr, to_read(lines), lines, {0, 1}, static_cast<char*>(memory.get()) + aligned(bytes));
  check(cudaMemcpy(line.data(), lines.data, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");

  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const double d = static_cast<double>(line[i]) - expected[i];
    difference += d * d;
    norm += expected[i] * expected[i];
  }
  return std::sqrt(difference / norm) / (sizeof(T) == 4 ? 0x1p-24 : 0x1p-53);
}

/// The best way for lines of n points. cuFFT's rounding error depends on the length and on the rows' layout
/// in no simple way: in double precision, with CUDA 13.0 on an H200, dst1 with N = 5832 has 5.4 units in rows
/// without gaps and 2.8 with them, N = 4096 has 3.9 and 2.7, N = 9000 3.9 and 3.7, N = 8192 2.7 in both. So
/// it is measured, once for each length. Up to the limit the scaled residual of the Poisson solver stays
/// below 2 units.
template <class T>
Way<T> choose_way(Transform kind, Index n) {
  constexpr double limit = 3.3, good = 2.8;
  double least = HUGE_VAL;
  Way<T> best;
  if (!has_large_prime(fft_length(kind, n))) {
    for (const Index padding : {0, 16}) {
      Way<T> way = direct<T, T>(kind, n, padding);
      // Two lines: with one cuFFT has no gaps to take notice of.
      const double error = rounding(*way.make(2), kind, n);
      if (error < least || best.make == nullptr) {
        least = error;
        best = std::move(way);
      }
      if (error < good) break;
    }
    if (least < limit) return best;
  }
  if constexpr (std::is_same_v<T, float>)
    return direct<float, double>(kind, n, 0);
  else if (kind == Transform::dst1)
    return chirped(n);
  else
    return best.make != nullptr ? best : direct<double, double>(kind, n, 0);
}

/// Lines of one length on one device.
template <class T>
class Plan {
 public:
  Plan(Transform kind, Index n) : way_(choose_way<T>(kind, n)) {
    // 32 MiB of the 50 MB of second-level cache of an H200: most lengths want a work area of cuFFT as large
    // as the rows. A CUDA grid has at most 65,535 rows of tiles of lines.
    constexpr Index working_set = 32 << 20, most_lines = 1 << 20;
    most_ = std::clamp<Index>(working_set / (2 * way_.bytes_per_line), 1, most_lines);
    while (sizes_ < most_sizes && most_ >> sizes_ > 0) ++sizes_;
  }

  /// For so many lines, or fewer.
  [[nodiscard]] std::size_t scratch_bytes(Index lines) {
    std::size_t bytes = 0;
    for (int i = size_for(lines); i < sizes_; ++i) bytes = std::max(bytes, method(i).scratch_bytes());
    return bytes;
  }

  /// Runs everything that so many lines, or fewer, want, on lines of zeros.
  void warm_up(const Lines<T>& lines, Index count, void* work) {
    for (int i = size_for(count); i < sizes_; ++i)
      method(i)(nullptr, to_read(lines), lines, {0, std::min(lines.width, lines_of(i))}, work);
  }

  void operator()(cudaStream_t stream, const Lines<const T>& from, const Lines<T>& to, void* work) {
    const Index lines = from.count * from.width;
    for (Round round{0, 0}; round.first < lines; round.first += round.count) {
      const int size = size_for(lines - round.first);
      round.count = std::min(lines_of(size), lines - round.first);
      method(size)(stream, from, to, round, work);
    }
  }

 private:
  /// cuFFT's plans are for a number of lines: that of a full round, and half of it, a quarter, ... for what
  /// remains.
  static constexpr int most_sizes = 6;
  [[nodiscard]] Index lines_of(int size) const { return most_ >> size; }

  /// The plan for the next round of so many lines: the least that holds them all, or the next smaller one
  /// where that would be more than a quarter too large.
  [[nodiscard]] int size_for(Index lines) const {
    int size = 0;
    while (size + 1 < sizes_ && lines_of(size + 1) >= lines) ++size;
    return size + 1 < sizes_ && lines < lines_of(size) - lines_of(size) / 5 ? size + 1 : size;
  }

  Method<T>& method(int size) {
    const std::scoped_lock lock(mutex_);
    auto& method = methods_[size];
    if (method == nullptr) method = way_.make(lines_of(size));
    return *method;
  }

  Way<T> way_;
  Index most_ = 1;
  int sizes_ = 1;
  std::mutex mutex_;
  std::unique_ptr<Method<T>> methods_[most_sizes];
};

/// The plan of the calling thread's current device.
template <class T>
Plan<T>& plan(Transform kind, Index n) {
  // Never destroyed: at the process's end CUDA may be gone before static objects are.
  static auto& plans = *new std::map<std::tuple<int, Transform, Index>, std::unique_ptr<Plan<T>>>;
  static std::mutex mutex;
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  kind = done_as(kind, n);
  const std::scoped_lock lock(mutex);
  auto& plan = plans[{device, kind, n}];
  if (plan == nullptr) plan = std::make_unique<Plan<T>>(kind, n);
  return *plan;
}

template <class T>
bool is_empty(const Lines<T>& lines) {
  return lines.count < 1 || lines.width < 1 || lines.length < 1;
}

}  // namespace

// --- Lines that fit, or whose halves do, are done in shared memory, the others by cuFFT --------------------

namespace {

/// What does lines of a kind, length and width.
enum class Doer { power_of_two, any_length, halves, cufft };

template <class T>
Doer doer(Transform kind, Index length, Index width) {
  if (line_transform_fits<T>(kind, length, width)) return Doer::power_of_two;
  const auto is_done = [](HalfLine of) { return doer<T>(of.kind, of.length, 1) != Doer::cufft; };
  if (has_halves(kind, length, width) && any_length_wants_halves<T>(kind, length))
    if (const HalfLines halves = halves_of(kind, length); is_done(halves.front) && is_done(halves.back))
      return Doer::halves;
  return any_length_fits<T>(kind, length, width) ? Doer::any_length : Doer::cufft;
}

template <class T>
void transform_in_halves(Stream stream, Transform kind, const Lines<const T>& from, const Lines<T>& to);

/// Without working memory.
template <class T>
void transform_in_shared_memory(Stream stream, Doer doer, Transform kind, const Lines<const T>& from,
                                const Lines<T>& to) {
  if (doer == Doer::power_of_two)
    line_transform<T>(stream, kind, from, to);
  else if (doer == Doer::halves)
    transform_in_halves<T>(stream, kind, from, to);
  else
    any_length_transform<T>(stream, kind, from, to);
}

/// (T9)
template <class T>
void transform_in_halves(Stream stream, Transform kind, const Lines<const T>& from, const Lines<T>& to) {
  split_into_halves<T>(stream, kind, from, to);
  const HalfLines halves = halves_of(kind, to.length);
  const auto transform_half = [&](HalfLine of, Index first) {
    Lines<T> lines = to;
    lines.data += first * to.stride;
    lines.length = of.length;
    transform_in_shared_memory<T>(stream, doer<T>(of.kind, of.length, 1), of.kind, to_read(lines), lines);
  };
  transform_half(halves.front, 0);
  transform_half(halves.back, halves.front.length);
  join_halves<T>(stream, kind, to);
}

}  // namespace

template <class T>
Index transform_scratch(Transform kind, const Lines<T>& shape) {
  if (is_empty(shape) || doer<T>(kind, shape.length, shape.width) != Doer::cufft) return 0;
  const std::size_t bytes = plan<T>(kind, shape.length).scratch_bytes(shape.count * shape.width);
  return static_cast<Index>((bytes + sizeof(T) - 1) / sizeof(T));
}

template <class T>
void plan_transform(Transform kind, const Lines<T>& shape) {
  if (is_empty(shape)) return;
  // Kernels are loaded when they first run: here, on lines of zeros, rather than in the first task.
  const Index n = shape.length, width = std::min<Index>(shape.width, 2);
  const auto line_bytes = aligned(static_cast<std::size_t>(n * width) * sizeof(T));
  const auto work_bytes = static_cast<std::size_t>(transform_scratch<T>(kind, shape)) * sizeof(T);
  const auto memory = device_memory(line_bytes + work_bytes);
  const Lines<T> lines{static_cast<T*>(memory.get()), 1, n * width, n, width, width, shape.care};
  const Doer by = doer<T>(kind, n, shape.width);
  if (by != Doer::cufft)
    transform_in_shared_memory<T>({nullptr}, by, kind, to_read(lines), lines);
  else
    plan<T>(kind, n).warm_up(lines, shape.count * shape.width, static_cast<char*>(memory.get()) + line_bytes);
  check(cudaStreamSynchronize(nullptr), "first run of a transform");
}

template <class T>
void transform(Stream stream, Transform kind, const Lines<const T>& from, const Lines<T>& to, T* work) {
  if (is_empty(from)) return;
  const Doer by = doer<T>(kind, from.length, from.width);
  if (by != Doer::cufft)
    transform_in_shared_memory<T>(stream, by, kind, from, to);
  else
    plan<T>(kind, from.length)(asterism::cuda::native(stream), from, to, work);
}

template Index transform_scratch(Transform, const Lines<float>&);
template Index transform_scratch(Transform, const Lines<double>&);
template void plan_transform(Transform, const Lines<float>&);
template void plan_transform(Transform, const Lines<double>&);
template void transform(Stream, Transform, const Lines<const float>&, const Lines<float>&, float*);
template void transform(Stream, Transform, const Lines<const double>&, const Lines<double>&, double*);

}  // namespace asterism::transforms::cuda
