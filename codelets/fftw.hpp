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

#include "../runtime/error.hpp"
#include "transform_fold.hpp"

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
  static constexpr auto plan_real = fftwf_plan_guru64_r2r;
  static constexpr auto execute_real = fftwf_execute_r2r;
};
template <>
struct Fftw<double> {
  using Plan = fftw_plan;
  using Number = fftw_complex;
  static constexpr auto plan = fftw_plan_guru64_dft;
  static constexpr auto execute = fftw_execute_dft;
  static constexpr auto plan_real = fftw_plan_guru64_r2r;
  static constexpr auto execute_real = fftw_execute_r2r;
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
    const Index size = (bytes + alignment - 1) / alignment * alignment;
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

/// A plan for one of FFTW's real transforms in fft_lines<T>(length). While no other thread plans.
template <class T>
typename Fftw<T>::Plan plan_real(Index length, fftw_r2r_kind kind) {
  const auto lines = fft_lines<T>(length);
  const fftw_iodim64 dimension{length, 1, 1};
  return checked(Fftw<T>::plan_real(1, &dimension, 0, nullptr, lines.in, lines.out, &kind, FFTW_ESTIMATE),
                 length);
}

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

}  // namespace asterism::kernels::cpu
