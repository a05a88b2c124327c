/// \file
/// Sums of many numbers on a CPU.
#pragma once

#include <array>
#include <cstddef>

#include "../runtime/ports.hpp"

namespace asterism::kernels::cpu {

/// The sum of value(j) in several interleaved parts, which vectorises and keeps the rounding small.
template <class Value>
double sum_of(Index n, Value value) {
  std::array<double, 16> parts{};
  constexpr auto width = static_cast<Index>(parts.size());
  const Index whole = n - n % width;
  for (Index j = 0; j < whole; j += width)
    for (Index l = 0; l < width; ++l) parts[static_cast<std::size_t>(l)] += value(j + l);
  double sum = 0.0;
  for (Index j = whole; j < n; ++j) sum += value(j);
  for (const double part : parts) sum += part;
  return sum;
}

template <class Value>
double sum_of_squares(Index n, Value value) {
  return sum_of(n, [&](Index j) {
    const double v = value(j);
    return v * v;
  });
}

}  // namespace asterism::kernels::cpu
