/// \file
/// Kernels of a stream one after the other with hardly a gap between them.
///
/// A kernel of a chain is brought up while the last blocks of the one before it still run (CUDA's
/// programmatic dependent launch, from compute capability 9.0 on), and waits for that one's end before it
/// touches memory.
#pragma once

#include "../../runtime/cuda.hpp"

namespace asterism::cuda {

/// The first thing that a kernel of a chain does: all that was launched before is done when it returns.
__device__ inline void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();  // lets the kernel after this one come up
  cudaGridDependencySynchronize();
#endif
}

/// @tparam kernel begins with wait_for_previous_kernel()
/// @param name for the message
/// @throw Error from CUDA
template <auto kernel, class... Arguments>
void launch_chained(const char* name, Stream stream, dim3 blocks, unsigned threads,
                    const Arguments&... arguments) {
  // Code for older GPUs does not wait, not even on newer ones.
  static const bool waits = [name] {
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, kernel), name);
    return attributes.ptxVersion >= 90;
  }();
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.stream = native(stream);
  config.attrs = &early;
  config.numAttrs = waits ? 1 : 0;
  check(cudaLaunchKernelEx(&config, kernel, arguments...), name);
}

}  // namespace asterism::cuda
