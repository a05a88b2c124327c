/// \file
/// Handles of CUDA's libraries, which a worker keeps for its kernels. Private to runtime/.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cusolverDn.h>

namespace asterism::detail {

/// Of one worker, in its stream; made when first asked for. Used, and ended, in the worker's thread alone.
class LibraryHandles {
 public:
  LibraryHandles() = default;
  LibraryHandles(const LibraryHandles&) = delete;
  LibraryHandles& operator=(const LibraryHandles&) = delete;
  ~LibraryHandles();

  /// @throw Error: the library cannot be loaded, or makes none
  cublasHandle_t cublas(cudaStream_t stream);
  cusolverDnHandle_t cusolver(cudaStream_t stream);

 private:
  cublasHandle_t cublas_ = nullptr;
  cusolverDnHandle_t cusolver_ = nullptr;
};

}  // namespace asterism::detail
