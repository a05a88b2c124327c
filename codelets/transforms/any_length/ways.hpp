/// \file
/// The plans that there are for the lines of a kind and length.
#pragma once

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

/// Whether a line has its mean by a sum of its own (T3) rather than that it is halved. In three dimensions residuals would be
/// up to 2.3 units of rounding: 64 x 1296 x 1296 2.29, with means 1.87. Where plans are padded it takes 1.5 to 1.7 times as
/// long, which is for grids of few planes alone: 64 x 1032 x 1032 2.06, with means along x 1.88.
constexpr bool wants_means(const Ways& ways, Index N, Care care) {
  return ways.plain > 0 && (care == Care::most || (care == Care::more && !is_padded(ways.plain, N)));
}

/// Found once, and remembered. Thread-safe.
const Ways& ways_of(Transform kind, Index length);

}  // namespace asterism::transforms
