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

#include "../runtime/error.hpp"
#include "transform.hpp"

namespace asterism::kernels::cpu {

/// FFTW's names in one precision.
template <class T>
struct Fftw;
template <>
struct Fftw<float> {
  using Plan = fftwf_plan;
  using Number = fftwf_complex;
  static constexpr auto plan = fftwf_plan_guru64_dft;
  static constexpr auto execute = fftwf_execute_dft;
};
template <>
struct Fftw<double> {
  using Plan = fftw_plan;
  using Number = fftw_complex;
  static constexpr auto plan = fftw_plan_guru64_dft;
  static constexpr auto execute = fftw_execute_dft;
};

template <class T>
typename Fftw<T>::Number* fftw(Complex<T>* z) {
  return reinterpret_cast<typename Fftw<T>::Number*>(z);
}

/// Where a thread transforms: aligned for FFTW's SIMD code, which the tiles' rows are not.
template <class T>
struct FftLines {
  Complex<T>*in, *out;
};

/// Memory of the calling thread for `numbers` numbers. Whether it is one place or two depends on `numbers`
/// alone, so that a plan made for such lines fits them in every thread.
template <class T>
FftLines<T> fft_lines(Index numbers) {
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  static thread_local std::unique_ptr<void, Free> memory;
  static thread_local Index capacity = 0;

  constexpr Index alignment = 64;
  const Index bytes =
      (numbers * static_cast<Index>(sizeof(Complex<T>)) + alignment - 1) / alignment * alignment;
  // Out of place is faster (by 10 to 40 %) while both places stay in the second-level cache, and slower
  // beyond.
  const bool out_of_place = bytes <= 256 * 1024;
  const Index needed = out_of_place ? 2 * bytes : bytes;
  if (needed > capacity) {
    capacity = 0;
    memory.reset();
    memory.reset(std::aligned_alloc(alignment, static_cast<std::size_t>(needed)));
    if (memory == nullptr) throw std::bad_alloc();
    capacity = needed;
  }
  char* const first = static_cast<char*>(memory.get());
  return {reinterpret_cast<Complex<T>*>(first), reinterpret_cast<Complex<T>*>(first + (needed - bytes))};
}

inline std::mutex& planner() {
  static std::mutex mutex;
  return mutex;
}

/// A plan for `count` DFTs of `length` in fft_lines(count * length). While no other thread plans.
template <class T>
typename Fftw<T>::Plan plan_fft(Index length, Index count, int direction) {
  const FftLines<T> lines = fft_lines<T>(count * length);
  const fftw_iodim64 dimension{length, 1, 1}, many{count, length, length};
  // Measured plans are at most a few per cent faster here, take a second to make for long lines, and differ
  // from run to run and from rank to rank, and with them the last bits of the results.
  const auto plan =
      Fftw<T>::plan(1, &dimension, 1, &many, fftw<T>(lines.in), fftw<T>(lines.out), direction, FFTW_ESTIMATE);
  if (plan == nullptr)
    throw Error("FFTW makes no plan for transforms of length " + std::to_string(length) +
                ": choose shorter lines");
  return plan;
}

/// The one Planned(n), made at the first call, shared by all threads until the process ends. FFTW's planner
/// knows no locks, so everything that plans is made here, one at a time.
template <class Planned>
const Planned& planned(Index n) {
  static auto& all =
      *new std::map<Index, std::unique_ptr<Planned>>;  // not destroyed: workers may outlive statics
  const std::scoped_lock lock(planner());
  auto& one = all[n];
  if (one == nullptr) one = std::make_unique<Planned>(n);
  return *one;
}

}  // namespace asterism::kernels::cpu
