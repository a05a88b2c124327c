/// \file
/// Sums of many numbers, and of squares that would overflow or vanish.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>

#include "../../runtime/ports.hpp"
#include "scaled.hpp"

namespace asterism::sums {

/// The sum of squares of any doubles, in three parts by their magnitude (Blue, ACM TOMS 4, 1978): the squares
/// of numbers that are too small or too large for their own are taken of scaled ones. The parts of all
/// numbers together are the sums of everybody's parts, whoever adds them up: threads, tiles, ranks. No part
/// overflows with fewer than 2^60 numbers. A NaN or an infinity ends in the sum.
struct SquareSum {
  double middle;
  double extremes[2];  ///< of small numbers times 2^600, of large ones over 2^600

  /// Magnitudes whose squares are taken as they are: a sum of 2^60 of them is far from either end of the
  /// range.
  static constexpr double least = 0x1p-480, most = 0x1p480;
  static constexpr int scale_exponent = 600;

  ASTERISM_HOST_DEVICE void add(double value) {
    const double magnitude = std::fabs(value);
    if (magnitude >= least && magnitude <= most) {
      middle += value * value;
    } else if (value != 0) {
      const int large = magnitude < least ? 0 : 1;
      const double scaled = value * (large == 0 ? 0x1p600 : 0x1p-600);
      extremes[large] += scaled * scaled;
    }
  }
  ASTERISM_HOST_DEVICE SquareSum& operator+=(const SquareSum& other) {
    middle += other.middle;
    for (int k = 0; k < 2; ++k) extremes[k] += other.extremes[k];
    return *this;
  }

  [[nodiscard]] Scaled total() const {
    return Scaled(extremes[0], -2 * scale_exponent) + middle + Scaled(extremes[1], 2 * scale_exponent);
  }
  /// The Euclidean norm.
  [[nodiscard]] Scaled root() const { return sqrt(total()); }
};

namespace cpu {

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
SquareSum sum_of_squares(Index n, Value value) {
  const double plain = sum_of(n, [&](Index j) {
    const double v = value(j);
    return v * v;
  });
  // No square was too large, and those that were too small do not count.
  if (plain >= 0x1p-900 && plain <= SquareSum::most * SquareSum::most) return {plain, {}};
  const auto sum_of_part = [&](double scale, auto belongs) {
    return sum_of(n, [&](Index j) {
      const double v = value(j), scaled = belongs(std::fabs(v)) ? scale * v : 0.0;
      return scaled * scaled;
    });
  };
  const auto small = [](double magnitude) { return magnitude < SquareSum::least; };
  const auto middle = [](double magnitude) {
    return magnitude >= SquareSum::least && magnitude <= SquareSum::most;
  };
  const auto large = [](double magnitude) { return !(magnitude <= SquareSum::most); };  // or NaN
  return {sum_of_part(1, middle), {sum_of_part(0x1p600, small), sum_of_part(0x1p-600, large)}};
}

}  // namespace cpu
}  // namespace asterism::sums
