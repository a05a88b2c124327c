/// \file
/// Kernels whose blocks come in clusters, in which they read each other's shared memory: from compute capability 9.0 on.
#pragma once

#include "../../runtime/cuda.hpp"

namespace asterism::cuda {

/// Whether the current device can run the kernel in clusters, or, where there is none, the target.
template <auto kernel>
bool runs_in_clusters() {
  int device = 0, clusters = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&clusters, cudaDevAttrClusterLaunch, device) != cudaSuccess) {
    cudaGetLastError();  // no device: nothing that a later check should find
    return true;
  }
  // Code for older GPUs has no clusters, not even on newer ones.
  static const bool is_compiled = [] {
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, kernel), "kernel of clusters");
    return attributes.ptxVersion >= 90;
  }();
  return clusters != 0 && is_compiled;
}

/// @param clusters of `blocks` blocks each @param bytes of dynamic shared memory, for each block
/// @param name for the message
/// @throw Error from CUDA
template <auto kernel, class... Arguments>
void launch_clusters(const char* name, Stream stream, Index clusters, unsigned blocks, unsigned threads,
                     std::size_t bytes, const Arguments&... arguments) {
  if (bytes > 0)
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
          name);
  cudaLaunchAttribute of_blocks{};
  of_blocks.id = cudaLaunchAttributeClusterDimension;
  of_blocks.val.clusterDim.x = blocks;
  of_blocks.val.clusterDim.y = of_blocks.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(clusters) * blocks);
  config.blockDim = threads;
  config.dynamicSmemBytes = bytes;
  config.stream = native(stream);
  config.attrs = &of_blocks;
  config.numAttrs = 1;
  check(cudaLaunchKernelEx(&config, kernel, arguments...), name);
}

}  // namespace asterism::cuda
