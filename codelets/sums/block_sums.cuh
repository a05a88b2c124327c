/// \file
/// Sums over the threads of a block on a GPU.
#pragma once

namespace asterism::sums::cuda {

/// The sum of what all `threads` threads of the block have, a power of two, always added in the same order,
/// for thread 0. All of them call it. @param thread the caller's number
template <int threads, class Sum>
__device__ Sum sum_of_block(const Sum& own, int thread) {
  __shared__ Sum shared[threads];
  __syncthreads();  // thread 0 has read the sum before
  shared[thread] = own;
  for (int width = threads / 2; width > 0; width /= 2) {
    __syncthreads();
    if (thread < width) shared[thread] += shared[thread + width];
  }
  return shared[thread];
}

}  // namespace asterism::sums::cuda
