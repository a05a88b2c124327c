/// \file
/// What the machine itself can do: the ceilings that solvers are measured against.
#pragma once

#include <cstddef>

#include "../runtime.hpp"

namespace asterism {

/// Speeds of plain copies in bytes per second; 0 where there is no such thing.
///
/// Those of all GPUs are the ceilings of solvers that stream. Every GPU, driven by a thread of its own, has an equal
/// part of main memory copied through it in pieces of 64 MiB, as a streaming program does it; the time is that of the
/// slowest. GPUs share what leads to main memory, so several seldom are as many times as fast as one. A solver that
/// takes S bytes up and back p times needs p S / all_both_ways seconds at least.
struct Bandwidth {
  double to_device = 0;    ///< page-locked main memory to the first GPU, alone
  double from_device = 0;  ///< and back, alone
  double both_ways = 0;    ///< each way, when both go at once
  double device_copy = 0;  ///< inside the GPU's memory, bytes read plus bytes written
  double host_copy = 0;    ///< main memory, all CPU workers, bytes read plus bytes written
  double host_triad =
      0;         ///< STREAM's triad a = b + s c, all CPU workers: 3 * 8 bytes per element, as it counts
  int gpus = 0;  ///< how many GPUs the next two are of: all that the runtime uses
  double all_to_device = 0;  ///< page-locked main memory to all GPUs at once, their sum
  double all_both_ways = 0;  ///< each way, their sum, when all GPUs copy both ways at once
};

/// Measures with raw copies, no tasks, of `bytes` (for each GPU: so much main memory is needed, and twice as much at
/// least; each array of the triad has half as many); the best of several repetitions. Call it while no task runs, and
/// on one rank of a node at a time.
/// @throw Error when memory for the copies is missing.
Bandwidth measure_bandwidth(Runtime& runtime, std::size_t bytes = std::size_t{1} << 30);

/// Seconds that raw copies, no tasks, take to bring page-locked main memory to all GPUs at once, and then to them and back
/// at once, the best of several repetitions: an equal part through each GPU in pieces of 64 MiB, as what streams in two
/// passes does it. How fast that goes depends on the memory, too: this is the ceiling of those who stream this one. Call it
/// while no task runs. @return 0 where the runtime has no GPU
/// @param data of which the content is lost
double measure_two_passes(Runtime& runtime, void* data, std::size_t bytes);

}  // namespace asterism
