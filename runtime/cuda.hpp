/// \file
/// CUDA statuses as exceptions, for `.cu` files only.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "error.hpp"
#include "ports.hpp"

namespace asterism::cuda {

/// @throw Error when `status` is not success; `what` names the call or kernel. Inside a task this becomes the task's
/// failure.
inline void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // or the next launch's check would find it
  throw Error(std::string(what) + ": CUDA says " + cudaGetErrorName(status) + ": " + cudaGetErrorString(status),
              Blame::task);
}

/// Checks the launch that just happened. (A fault during the kernel's run shows at a later synchronisation.)
inline void check_launch(const char* kernel) { check(cudaGetLastError(), kernel); }

inline cudaStream_t native(Stream stream) { return static_cast<cudaStream_t>(stream.handle); }

}  // namespace asterism::cuda
