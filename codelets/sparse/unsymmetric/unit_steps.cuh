/// \file
/// Steps that go through the vectors of a block unit by unit, element by element.
#pragma once

#include "../../common/chained_launch.cuh"
#include "../row_products.cuh"
#include "../unit_sums.cuh"
#include "hat.hpp"

namespace asterism::sparse::cuda {

/// M^-1 v where the step makes it. @tparam V of the diagonal
template <class T, class V>
struct HatElements {
  T* hat = nullptr;  ///< of the block's own elements; nullptr: tasks of M's own make it
  const V* d = nullptr;

  HatElements(Hat by, const Optional<In<V>>& inverse_diagonal, T* own)
      : hat(by == Hat::by_step ? own : nullptr), d(inverse_diagonal.data) {}
  __device__ void leave(Index i, T v) const {
    if (hat != nullptr) hat[i] = d != nullptr ? static_cast<T>(d[i]) * v : v;
  }
};

/// Calls body(i) for the elements of a unit, i counted in the block.
template <class Body>
__device__ void for_each_element(const Unit& unit, Body body) {
  for (int i = static_cast<int>(threadIdx.x); i < unit.rows; i += unit_threads) body(unit.first + i);
}

/// Blocks of threads, one for each unit.
inline unsigned blocks_of_units(Index rows, Index unit) {
  return static_cast<unsigned>(units_of(rows, unit));
}

}  // namespace asterism::sparse::cuda
