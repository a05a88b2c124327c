/// \file
/// Complex numbers in the shared memories of a cluster of blocks, as if they were one. For `.cu` files only.
#pragma once

#include <cooperative_groups.h>

#include "passes.cuh"

namespace asterism::transforms::cuda {

/// A pointer to numbers that lie in the shared memory of one block after another.
template <class T>
class ClusterNumbers {
 public:
  static constexpr int log_of_block = sizeof(T) == 8 ? 13 : 14;
  static constexpr int numbers_of_block = 1 << log_of_block;  ///< 128 KiB
  static constexpr int most_blocks = 8;  ///< that a cluster may have on any device that has clusters

  /// @param own this block's, of `numbers_of_block`
  __device__ explicit ClusterNumbers(Complex<T>* own, unsigned at = 0) : own_(own), at_(at) {}

  __device__ ClusterNumbers operator+(unsigned n) const { return ClusterNumbers(own_, at_ + n); }
  __device__ Complex<T>& operator[](unsigned i) const {
    const unsigned at = at_ + i;
#if __CUDA_ARCH__ >= 900
    const auto cluster = cooperative_groups::this_cluster();
    const unsigned rank = at >> log_of_block;
    Complex<T>* const block = rank == cluster.block_rank() ? own_ : cluster.map_shared_rank(own_, rank);
#else
    Complex<T>* const block = own_;
#endif
    return block[at & (numbers_of_block - 1)];
  }

 private:
  Complex<T>* own_;
  unsigned at_;
};

/// As many of all as the block has of the numbers, and those in whose place in the order it has them: but for the first
/// passes of a plan, whose numbers are far apart, butterflies are where their numbers are.
template <class T>
__device__ ThreadRange thread_range(const ClusterNumbers<T>&, unsigned all, unsigned numbers, int thread,
                                    int threads) {
#if __CUDA_ARCH__ >= 900
  const auto cluster = cooperative_groups::this_cluster();
  const auto begin_of = [=](unsigned rank) {
    const auto at = static_cast<unsigned long long>(rank) << ClusterNumbers<T>::log_of_block;
    return at >= numbers ? all : static_cast<unsigned>(all * at / numbers);
  };
  const unsigned rank = cluster.block_rank(), step = static_cast<unsigned>(threads) / cluster.num_blocks();
  return {begin_of(rank) + static_cast<unsigned>(thread) % step, begin_of(rank + 1), step};
#else
  return {static_cast<unsigned>(thread), all, static_cast<unsigned>(threads)};
#endif
}

}  // namespace asterism::transforms::cuda
