/// \file
/// The plans that there are for the lines of a kind and length.
#pragma once

#include "symmetric_plan.hpp"

namespace asterism::transforms {

/// The N from which on outputs of kind I may be found once, by (Y3) or (T9) first, without a second sum for the mean (T3).
/// Below, where three dimensions have twice as many transforms, only where that takes half the time: with (Y3) instead of
/// padded convolutions.
constexpr Index least_without_means = 1 << 11;

/// Whether a plan for N takes much more numbers.
constexpr bool is_padded(Index numbers, Index N) { return 2 * numbers > 3 * N; }

/// What there is to choose from: numbers that a line, or two together, takes.
struct Ways {
  int plain = 0;                     ///< by foldings; 0: it is none
  SymmetricWay butterflies, halved;  ///< of the halved ones that with the least work
};

/// Found once, and remembered. Thread-safe.
const Ways& ways_of(Transform kind, Index length);

}  // namespace asterism::transforms
