/// \file
/// Moves as the threads of a block compare them, for `.cu` files only.
#pragma once

#include "../moves.hpp"

namespace asterism::qap::cuda {

constexpr int threads = 256, warp = 32, warps = threads / warp;
constexpr unsigned whole_warp = 0xffffffffU;

/// A move as threads compare it.
template <class E>
struct Candidate {
  E delta;
  std::int32_t order;  ///< r and s, so that of equal changes the least one is taken: see is_better()

  static constexpr std::int32_t last = 0x7fffffff;
  static __device__ Candidate none() { return {no_delta<E>(), last}; }
  static __device__ Candidate of(E delta, std::int32_t r, std::int32_t s) { return {delta, r << 15 | s}; }

  __device__ void take(const Candidate& other) {
    if (other.delta < delta || (other.delta == delta && other.order < order)) *this = other;
  }
  [[nodiscard]] __device__ std::int32_t r() const { return order >> 15; }
  [[nodiscard]] __device__ std::int32_t s() const { return order & 0x7fff; }
};

/// The least number of a warp, for all of its threads.
template <class E>
__device__ E least_of_warp(E mine) {
  if constexpr (sizeof(E) <= 4) {
    return static_cast<E>(__reduce_min_sync(whole_warp, static_cast<int>(mine)));
  } else {
    const auto high = static_cast<int>(mine >> 32);
    const int least_high = __reduce_min_sync(whole_warp, high);
    const unsigned low = high == least_high ? static_cast<unsigned>(mine) : whole_warp;
    return static_cast<E>(least_high) << 32 | static_cast<E>(__reduce_min_sync(whole_warp, low));
  }
}

/// The best candidate of a warp, for all of its threads.
template <class E>
__device__ Candidate<E> best_of_warp(const Candidate<E>& mine) {
  const E delta = least_of_warp(mine.delta);
  return {delta, __reduce_min_sync(whole_warp, mine.delta == delta ? mine.order : Candidate<E>::last)};
}

/// One candidate of each warp, in shared memory.
template <class E>
struct OfWarps {
  Candidate<E> of[warps];

  /// Takes that of the caller's warp.
  __device__ void put(const Candidate<E>& candidate) {
    if (threadIdx.x % warp == 0) of[threadIdx.x / warp] = candidate;
  }
  /// The best of all, for all threads, a barrier after all of them were put.
  [[nodiscard]] __device__ Candidate<E> best() const {
    const int lane = static_cast<int>(threadIdx.x) % warp;
    return best_of_warp(lane < warps ? of[lane] : Candidate<E>::none());
  }
};

}  // namespace asterism::qap::cuda
