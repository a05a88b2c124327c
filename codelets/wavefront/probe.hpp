/// \file
/// Micro-benchmarks of the GPU and of the parts of the wavefront kernel, for the tile-size model. All of them
/// time on the calling thread's current device, wait for it, and take the shortest of a few runs unless they
/// say otherwise.
#pragma once

#include <memory>
#include <string>

#include "sweeps.hpp"

namespace asterism::wavefront::cuda {

/// "NVIDIA H200": the current device.
std::string device_name();

/// sigma_ker: a cooperative kernel that does nothing.
double seconds_of_empty_kernel(int blocks, int threads);

/// sigma_thd: __syncthreads in a block of so many threads, alone on its multiprocessor.
double seconds_of_thread_barrier(int threads);

/// sigma_blk: the barrier between inter-tile wavefronts, for so many blocks. @throw Error: they cannot all be
/// there at once
double seconds_of_block_barrier(int blocks, int threads);

/// Runs the kernel, or its tiles, on zeros, in memory of its own.
template <class T>
class WavefrontProbe {
 public:
  WavefrontProbe(int dimensions, bool has_source);
  WavefrontProbe(const WavefrontProbe&) = delete;
  WavefrontProbe& operator=(const WavefrontProbe&) = delete;
  ~WavefrontProbe();

  /// One inter-tile wavefront of as many full tiles as there are blocks, and the barrier after it.
  /// @return infinite where the blocks cannot all be there at once
  double seconds_of_wavefront(const WavefrontLayout& layout);

  /// The whole kernel: the median of `repeats` runs after a first one, which alone counts when it takes long;
  /// infinite for a layout that cannot run.
  double seconds_of_run(const WavefrontArgs& args, int repeats);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace asterism::wavefront::cuda
