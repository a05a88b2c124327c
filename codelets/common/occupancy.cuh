/// \file
/// How many blocks of a kernel a GPU runs at once.
#pragma once

#include <algorithm>

#include "../../runtime/cuda.hpp"

namespace asterism::cuda {

/// Of the current GPU. @throw Error from CUDA
inline int multiprocessors() {
  int device = 0, processors = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
  return processors;
}

/// On all multiprocessors of the current GPU together, at least one. Blocks that wait for each other are no more.
/// @param threads of a block, without dynamic shared memory @throw Error from CUDA
template <class Kernel>
int blocks_at_once(Kernel kernel, int threads) {
  int blocks = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, 0), "occupancy");
  return std::max(1, multiprocessors() * blocks);
}

}  // namespace asterism::cuda
