/// \file
/// What the rounding errors of a transform have in common.
///
/// Constants and tables are rounded once, so their errors are the same in every line, there and back: lines come back
/// multiplied by round_trip(kind, n) (1 + bias). The bias of a transform there and back is up to 2.2 roundings (dst1, N = 257
/// in float32, 1013 in both), that of a solve in three dimensions twice that, and its other errors are hardly larger. So it is
/// measured, and may be taken off with the factor.
#pragma once

#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "transform.hpp"

namespace asterism::transforms {

/// `count` numbers between -1 and 1, always the same ones.
template <class T>
std::vector<T> noise(Index count);

/// Lines to measure with: so many numbers that of their own errors a fiftieth of a rounding is left in the mean.
constexpr Index noisy_lines(Index n) {
  constexpr Index numbers = 1 << 14;
  return parts(numbers, n);
}

/// @param after noise(after.size()), transformed there and back
template <class T>
double bias_of(Transform kind, Index n, const std::vector<T>& after);

namespace cpu {

/// Measured when first asked for, and remembered. Thread-safe. @param care see Lines
template <class T>
double bias(Transform kind, Index n, Care care = Care::usual);

}  // namespace cpu

namespace cuda {

/// On the calling thread's current device, and remembered for all.
template <class T>
double bias(Transform kind, Index n, Care care = Care::usual);

}  // namespace cuda

/// What `measure` finds for a kind, length and care, when it is first asked for.
template <class Measure>
double remembered(Transform kind, Index n, Care care, const Measure& measure) {
  static std::mutex mutex;
  static auto& known = *new std::map<std::tuple<Transform, Index, Care>, double>;
  const std::scoped_lock lock(mutex);
  const auto at = known.find({kind, n, care});
  return at != known.end() ? at->second : known[{kind, n, care}] = measure();
}

}  // namespace asterism::transforms
