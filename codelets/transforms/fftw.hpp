/// \file
/// FFTW as the CPU kernels use it. For `.cpp` files only.
#pragma once

#include <fftw3.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <tuple>

#include "../../runtime/error.hpp"
#include "fold.hpp"

namespace asterism::transforms::cpu {

/// FFTW's names in one precision.
template <class T>
struct Fftw;
template <>
struct Fftw<float> {
  using Plan = fftwf_plan;
  using Number = fftwf_complex;
  static constexpr auto plan = fftwf_plan_guru64_dft;
  static constexpr auto execute = fftwf_execute_dft;
  static constexpr auto plan_from_real = fftwf_plan_guru64_dft_r2c;
  static constexpr auto execute_from_real = fftwf_execute_dft_r2c;
  static constexpr auto plan_to_real = fftwf_plan_guru64_dft_c2r;
  static constexpr auto execute_to_real = fftwf_execute_dft_c2r;
};
template <>
struct Fftw<double> {
  using Plan = fftw_plan;
  using Number = fftw_complex;
  static constexpr auto plan = fftw_plan_guru64_dft;
  static constexpr auto execute = fftw_execute_dft;
  static constexpr auto plan_from_real = fftw_plan_guru64_dft_r2c;
  static constexpr auto execute_from_real = fftw_execute_dft_r2c;
  static constexpr auto plan_to_real = fftw_plan_guru64_dft_c2r;
  static constexpr auto execute_to_real = fftw_execute_dft_c2r;
};

template <class T>
typename Fftw<T>::Number* fftw(Complex<T>* z) {
  return reinterpret_cast<typename Fftw<T>::Number*>(z);
}

/// Memory of the calling thread, one for each Purpose, aligned for SIMD code and cache lines. It grows, and
/// then loses its content.
template <class Purpose>
char* thread_memory(Index bytes) {
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  static thread_local std::unique_ptr<void, Free> memory;
  static thread_local Index capacity = 0;
  if (bytes > capacity) {
    constexpr Index alignment = 64;
    const Index size = parts(bytes, alignment) * alignment;
    capacity = 0;
    memory.reset();
    memory.reset(std::aligned_alloc(alignment, static_cast<std::size_t>(size)));
    if (memory == nullptr) throw std::bad_alloc();
    capacity = size;
  }
  return static_cast<char*>(memory.get());
}

/// Where a thread transforms: aligned for FFTW's SIMD code, which the tiles' rows are not.
template <class T>
struct FftLines {
  T *in, *out;
};

/// Memory of the calling thread for `numbers` numbers, real or complex. Whether it is one place or two
/// depends on `numbers` alone, so that a plan made for such lines fits them in every thread.
template <class T>
FftLines<T> fft_lines(Index numbers) {
  constexpr Index alignment = 64;
  const Index bytes = (numbers * static_cast<Index>(sizeof(T)) + alignment - 1) / alignment * alignment;
  // Out of place is faster (by 10 to 40 %) while both places stay in the second-level cache, and slower
  // beyond.
  const bool out_of_place = bytes <= 256 * 1024;
  struct Transforming;
  char* const first = thread_memory<Transforming>(out_of_place ? 2 * bytes : bytes);
  return {reinterpret_cast<T*>(first), reinterpret_cast<T*>(out_of_place ? first + bytes : first)};
}

inline std::mutex& planner() {
  static std::mutex mutex;
  return mutex;
}

/// @throw Error when FFTW made no plan.
template <class Plan>
Plan checked(Plan plan, Index length) {
  if (plan == nullptr)
    throw Error("FFTW makes no plan for transforms of length " + std::to_string(length) +
                ": choose shorter lines");
  return plan;
}

// Measured plans are at most a few per cent faster here, take a second to make for long lines, and differ
// from run to run and from rank to rank, and with them the last bits of the results.

/// A plan for `count` DFTs of `length` in fft_lines<Complex<T>>(count * length). While no other thread plans.
template <class T>
typename Fftw<T>::Plan plan_fft(Index length, Index count, int direction) {
  const auto lines = fft_lines<Complex<T>>(count * length);
  const fftw_iodim64 dimension{length, 1, 1}, many{count, length, length};
  return checked(
      Fftw<T>::plan(1, &dimension, 1, &many, fftw<T>(lines.in), fftw<T>(lines.out), direction, FFTW_ESTIMATE),
      length);
}

/// One FFT of the kind that a transform wants, in fft_lines<Complex<T>>(fft_numbers()). While no other thread
/// plans.
template <class T>
class LineFft {
 public:
  LineFft(FftKind kind, Index length)
      : kind_(kind), numbers_(kind == FftKind::complex ? length : length / 2 + 1), plan_(plan(length)) {}

  /// From lines.in to lines.out, real numbers in place of complex ones where the kind says so. `in` is lost.
  void operator()(FftLines<Complex<T>> lines) const {
    switch (kind_) {
      case FftKind::complex:
        return Fftw<T>::execute(plan_, fftw<T>(lines.in), fftw<T>(lines.out));
      case FftKind::from_real:
        return Fftw<T>::execute_from_real(plan_, real(lines.in), fftw<T>(lines.out));
      case FftKind::to_real:
        return Fftw<T>::execute_to_real(plan_, fftw<T>(lines.in), real(lines.out));
    }
  }

  [[nodiscard]] FftLines<Complex<T>> lines() const { return fft_lines<Complex<T>>(numbers_); }

 private:
  static T* real(Complex<T>* line) { return reinterpret_cast<T*>(line); }

  [[nodiscard]] typename Fftw<T>::Plan plan(Index length) const {
    if (kind_ == FftKind::complex) return plan_fft<T>(length, 1, FFTW_FORWARD);
    const auto [in, out] = lines();
    const fftw_iodim64 dimension{length, 1, 1};
    return checked(
        kind_ == FftKind::from_real
            ? Fftw<T>::plan_from_real(1, &dimension, 0, nullptr, real(in), fftw<T>(out), FFTW_ESTIMATE)
            : Fftw<T>::plan_to_real(1, &dimension, 0, nullptr, fftw<T>(in), real(out), FFTW_ESTIMATE),
        length);
  }

  FftKind kind_;
  Index numbers_;
  typename Fftw<T>::Plan plan_;
};

/// The one Planned(key...), made at the first call, shared by all threads until the process ends. FFTW's
/// planner knows no locks, so everything that plans is made here, one at a time.
template <class Planned, class... Key>
const Planned& planned(Key... key) {
  static auto& all = *new std::map<std::tuple<Key...>,
                                   std::unique_ptr<Planned>>;  // not destroyed: workers may outlive statics
  const std::scoped_lock lock(planner());
  auto& one = all[{key...}];
  if (one == nullptr) one = std::make_unique<Planned>(key...);
  return *one;
}

}  // namespace asterism::transforms::cpu
