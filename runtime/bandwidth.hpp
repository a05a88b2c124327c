/// \file
/// What the machine itself can do: the ceilings that solvers are measured against.
#pragma once

#include <cstddef>

#include "runtime.hpp"

namespace asterism {

/// Speeds of plain copies in bytes per second; 0 where there is no such thing.
struct Bandwidth {
  double to_device = 0;        ///< page-locked main memory to the first GPU, alone
  double from_device = 0;      ///< and back, alone
  double both_ways = 0;        ///< each way, when both go at once
  double device_copy = 0;      ///< inside the GPU's memory, bytes read plus bytes written
  double host_copy = 0;        ///< main memory, all CPU workers, bytes read plus bytes written
};

/// Measures with raw copies, no tasks, of `bytes` in all; the best of several repetitions. Call it while no task runs.
/// @throw Error when memory for the copies is missing.
Bandwidth measure_bandwidth(Runtime& runtime, std::size_t bytes = std::size_t{1} << 30);

}  // namespace asterism
