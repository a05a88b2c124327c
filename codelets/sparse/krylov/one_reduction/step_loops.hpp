/// \file
/// Loops over vectors of steps that go through several of them at once, on a CPU.
#pragma once

#include <algorithm>

#include "../../../../runtime/codelet.hpp"

namespace asterism::sparse::cpu {

/// v = u + beta v, y += alpha v. @param iteration in the first v is not read
template <class T>
void turn_and_go(Index iteration, Index count, T beta, T alpha, const T* __restrict u, T* __restrict v,
                 T* __restrict y) {
  if (iteration == 0) {
    std::copy_n(u, count, v);
    beta = 0;
  }
  for (Index i = 0; i < count; ++i) {
    v[i] = u[i] + beta * v[i];
    y[i] += alpha * v[i];
  }
}

}  // namespace asterism::sparse::cpu
