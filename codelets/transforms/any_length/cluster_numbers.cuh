/// \file
/// Complex numbers in the shared memories of a cluster of blocks, as if they were one. For `.cu` files only.
#pragma once

#include <cooperative_groups.h>

#include "../fold.hpp"

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
    Complex<T>* const block = cooperative_groups::this_cluster().map_shared_rank(own_, at >> log_of_block);
#else
    Complex<T>* const block = own_;
#endif
    return block[at & (numbers_of_block - 1)];
  }

 private:
  Complex<T>* own_;
  unsigned at_;
};

}  // namespace asterism::transforms::cuda
