/// \file
/// The plans that there are for the lines of a kind and length.
#pragma once

#include <array>

#include "symmetric_plan.hpp"

namespace asterism::transforms {

/// The N from which on outputs of kind I are found once, by (Y3), without a second sum for the mean (T3), which brings
/// Poisson's residuals from 1.6 units of rounding down to 1.3 in two dimensions and from 1.9 to 1.6 in three. Below, where it
/// takes little longer to have it, only where convolutions would be padded.
constexpr Index least_without_means = 1 << 10;

/// Whether a plan for N takes much more numbers.
constexpr bool is_padded(Index numbers, Index N) { return 2 * numbers > 3 * N; }

/// What there is to choose from: numbers that a line, or two together, takes.
struct Ways {
  int plain = 0;                     ///< by foldings; 0: it is none
  SymmetricWay butterflies, halved;  ///< of the halved ones that with the least work
};

/// One of them; with no numbers there is none.
struct Choice {
  int numbers = 0;
  SymmetricWay symmetric;  ///< none: by foldings
};

/// The first that there is, and finds room, is nearly always the fastest that rounds as little as `care` wants. On H200s, Gcell/s
/// of Poisson's solver in float64 and float32: with butterflies, halved and plain N = 8193 18.3, 15.1, 14.2 and 27.8, 22.4, 23.0;
/// 15,001 15.0, 13.6, 7.9 and 26.9, 22.7, 20.4. Halved and plain 1201 10.0, 9.3 and 15.0, 13.3; 1601 14.9, 11.8 and 16.2, 13.1;
/// 2311 15.7, 16.8 and 25.2, 24.0; 3001 18.3, 15.4 and 25.7, 20.3; 4801 18.4, 15.8 and 26.5, 24.7. Halved and, in several
/// blocks, padded 10,007 11.1, 2.8.
///
/// In three dimensions residuals would be up to 2.3 units of rounding where lines are halved, 64 x 1296 x 1296 2.29; with a sum
/// of its own for the mean (T3) 1.87. Where plans are padded that takes 1.5 to 1.7 times as long, which is for grids of few
/// planes alone: 64 x 1032 x 1032 2.06, with means along x 1.88. There butterflies, too, which pass on the errors of a
/// convolution, come second: 64 x 5000 x 5000 2.07.
inline std::array<Choice, 3> in_order(const Ways& ways, Index N, Care care) {
  const Choice plain{ways.plain, {}},
      butterflies{static_cast<int>(ways.butterflies.size.numbers), ways.butterflies},
      halved{static_cast<int>(ways.halved.size.numbers), ways.halved};
  if (care == Care::most && has_prime_above(largest_radix, N)) return {plain, butterflies, halved};
  if (care != Care::usual && !is_padded(ways.plain, N)) return {butterflies, plain, halved};
  return {butterflies, halved, plain};
}

/// Found once, and remembered. Thread-safe.
const Ways& ways_of(Transform kind, Index length);

}  // namespace asterism::transforms
