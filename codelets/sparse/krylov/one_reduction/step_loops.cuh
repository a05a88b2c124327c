/// \file
/// Steps that go through several vectors at once, on a GPU: a thread's elements.
#pragma once

#include "../../../common/chained_launch.cuh"
#include "../../row_products.cuh"
#include "../../unit_sums.cuh"
#include "../step_order.cuh"

namespace asterism::sparse::cuda {

using asterism::cuda::launch_chained;
using asterism::cuda::wait_for_previous_kernel;

/// Whether an iteration does, as it has been decided.
__device__ inline bool goes_on(const CgState& state, Index iteration) {
  return state.status[side_of(iteration + 1)] == CgStatus::running;
}

/// What has been decided.
template <class T>
struct StepLengths {
  T alpha, beta;
  bool is_first;

  __device__ StepLengths(const CgState& state, Index iteration)
      : alpha(static_cast<T>(state.lengths.alpha)),
        beta(static_cast<T>(state.lengths.beta)),
        is_first(iteration == 0) {}
  /// v = u + beta v, y += step v. In the first iteration v is not read.
  __device__ void turn_and_go(T u, T& v, T& y, T step) const {
    const T turned = is_first ? u : multiply_add(beta, v, u);
    v = turned;
    y = multiply_add(step, turned, y);
  }
};

/// D^-1 v, or v. @param d nullptr: D is 1
template <class T, class V>
__device__ T scaled(T v, const V* d, Index i) {
  return d != nullptr ? static_cast<T>(d[i]) * v : v;
}

__device__ inline double product(double a, double b) { return a * b; }

}  // namespace asterism::sparse::cuda
