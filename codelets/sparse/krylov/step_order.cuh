/// \file
/// How the kernels of an iteration go through the units: each one in the other direction than the one before, for
/// what that has touched last is still in the cache.
#pragma once

#include "conjugate_gradients.hpp"

namespace asterism::sparse::cuda {

enum class Step { multiply, descend, turn };

inline bool goes_backward(Index iteration, Step step) {
  return (3 * iteration + static_cast<int>(step)) % 2 != 0;
}

/// Blocks of threads, one for each unit.
inline unsigned unit_blocks(const CgArgs& args) {
  return static_cast<unsigned>(units_of(args.shape.rows, args.unit));
}

}  // namespace asterism::sparse::cuda
