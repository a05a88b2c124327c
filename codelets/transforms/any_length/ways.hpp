/// \file
/// The plans that there are for the lines of a kind and length.
#pragma once

#include "symmetric_plan.hpp"

namespace asterism::transforms {

/// The N from which on outputs of kind I may be found once, by (Y3) or (T9) first, without a second sum for the mean (T3).
/// In 3D, where a solve has twice as many transforms, Poisson's residuals would be 2.2 units of rounding instead of 1.8
/// (600^3).
constexpr Index least_without_means = 1 << 11;

/// What there is to choose from: numbers that a line, or two together, takes.
struct Ways {
  int plain = 0;                     ///< by foldings; 0: it is none
  SymmetricWay butterflies, halved;  ///< of the halved ones that with the least work
};

/// Found once, and remembered. Thread-safe.
const Ways& ways_of(Transform kind, Index length);

}  // namespace asterism::transforms
