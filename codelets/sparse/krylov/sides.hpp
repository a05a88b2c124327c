/// \file
/// Where the state of an iteration has what a step reads, while other threads of a GPU write what the next one reads.
#pragma once

#include "../../../runtime/codelet.hpp"

namespace asterism::sparse {

/// Of a pair: that which iteration k reads; -1: what comes before all.
ASTERISM_HOST_DEVICE constexpr int side_of(Index iteration) { return static_cast<int>((iteration + 2) % 2); }

}  // namespace asterism::sparse
