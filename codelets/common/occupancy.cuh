/// \file
/// What a GPU has, and how many blocks of a kernel it runs at once.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <set>
#include <utility>

#include "../../runtime/cuda.hpp"

namespace asterism::cuda {

/// Of the current GPU, which is asked once. @throw Error from CUDA
template <cudaDeviceAttr attribute>
int device_attribute() {
  static std::array<std::atomic<int>, 64> known{};  // 0: not yet
  int device = 0, value = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  const auto place = static_cast<std::size_t>(device);
  if (place < known.size() && (value = known[place]) != 0) return value;
  check(cudaDeviceGetAttribute(&value, attribute, device), "cudaDeviceGetAttribute");
  if (place < known.size()) known[place] = value;
  return value;
}

/// Lets a kernel have as much dynamic shared memory as a block of the current GPU may, once: not what a launch needs, as
/// another thread may be about to launch the same kernel with more. @throw Error from CUDA
template <class Kernel>
void allow_all_shared_memory(Kernel kernel) {
  thread_local std::set<std::pair<int, const void*>> allowed;
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  const auto address = reinterpret_cast<const void*>(kernel);
  if (allowed.contains({device, address})) return;
  check(cudaFuncSetAttribute(address, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             device_attribute<cudaDevAttrMaxSharedMemoryPerBlockOptin>()),
        "shared memory of a kernel");
  allowed.insert({device, address});
}

/// That a block may have. @throw Error from CUDA
inline std::size_t most_shared_bytes() {
  return static_cast<std::size_t>(device_attribute<cudaDevAttrMaxSharedMemoryPerBlockOptin>());
}

inline int multiprocessors() { return device_attribute<cudaDevAttrMultiProcessorCount>(); }

/// On all multiprocessors of the current GPU together, at least one. Blocks that wait for each other are no more.
/// @param threads of a block, without dynamic shared memory @throw Error from CUDA
template <class Kernel>
int blocks_at_once(Kernel kernel, int threads) {
  int blocks = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, 0), "occupancy");
  return std::max(1, multiprocessors() * blocks);
}

}  // namespace asterism::cuda
