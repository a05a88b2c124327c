/// \file
/// The plans that there are for the lines of a kind and length.
#pragma once

#include "symmetric_plan.hpp"

namespace asterism::transforms {

/// What there is to choose from: numbers that a line, or two together, takes.
struct Ways {
  int plain = 0;                     ///< by foldings; 0: it is none
  SymmetricWay butterflies, halved;  ///< of the halved ones that with the least work
};

/// Found once, and remembered. Thread-safe.
const Ways& ways_of(Transform kind, Index length);

}  // namespace asterism::transforms
