/// \file
/// Telling a sum to who waits for it, on this GPU or on another one that sees its memory.
#pragma once

#include "told_sum.hpp"

namespace asterism::sparse::cuda {

__device__ inline void tell(ToldSum* to, double sum, std::uint32_t meeting) {
  const auto bits = static_cast<std::uint64_t>(__double_as_longlong(sum));
  asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to),
               "r"(static_cast<std::uint32_t>(bits)), "r"(meeting),
               "r"(static_cast<std::uint32_t>(bits >> 32)), "r"(meeting)
               : "memory");
}

/// @return whether it has come; else `sum` is not one
__device__ inline bool has_told(const ToldSum* from, std::uint32_t meeting, double& sum) {
  ToldSum told;
  asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(told.low), "=r"(told.meeting_of_low), "=r"(told.high), "=r"(told.meeting_of_high)
               : "l"(from)
               : "memory");
  sum = __longlong_as_double(static_cast<long long>(std::uint64_t{told.high} << 32 | told.low));
  return told.meeting_of_low == meeting && told.meeting_of_high == meeting;
}

/// Between what a block of threads wrote and what it tells, and again between what it was told and what it reads.
__device__ inline void fence_all_gpus() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

}  // namespace asterism::sparse::cuda
