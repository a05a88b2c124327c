/// \file
/// Where all threads of a cooperative kernel meet, and leave with a sum of what all of them have.
///
/// A block tells its own sum to all others, in words of 64 bits: half of the sum, and the number of the meeting by
/// which the readers know that it has come. So a meeting takes one journey through memory and not three, as a
/// counter beside the sums would. (NCCL's protocol LL does the same.)
#pragma once

#include <cstdint>

#include "unit_sums.cuh"

namespace asterism::sparse::cuda {

/// The two halves of a sum, each with the number of the meeting.
struct alignas(16) ToldSum {
  std::uint32_t low, meeting_of_low, high, meeting_of_high;
};

/// @tparam threads of a block, at least as many as there are blocks
template <int threads>
class GridSums {
 public:
  static constexpr int kinds = 3;  ///< of sums that are under way at once

  /// Of so many blocks. Before the kernel all of it is 0.
  static std::size_t bytes(Index blocks) {
    return static_cast<std::size_t>(blocks) * kinds * sizeof(ToldSum);
  }

  __device__ explicit GridSums(ToldSum* told) : told_(told) {}

  /// What was written before is seen by all threads of the grid afterwards. Two meetings that follow each other have
  /// not the same first kind: what a block has told is read until it has come to the next but one.
  /// @param sums of the calling thread; of the grid, the same for all, always added in the same order
  /// @param first_kind the sums are of this one and the next ones
  /// @param meeting counts from 1, for each kind
  template <int count>
  __device__ void meet(double (&sums)[count], int first_kind, std::uint32_t meeting) {
    const int blocks = static_cast<int>(gridDim.x), thread = static_cast<int>(threadIdx.x);
    sum_over_block<threads>(sums);
    if (thread == 0) {
      __threadfence();  // the block's threads have written before they met
#pragma unroll
      for (int k = 0; k < count; ++k) tell(told_ + (first_kind + k) * blocks + blockIdx.x, sums[k], meeting);
    }
#pragma unroll
    for (int k = 0; k < count; ++k) sums[k] = 0;
    if (thread < blocks) {
#pragma unroll
      for (int k = 0; k < count; ++k) sums[k] = hear(told_ + (first_kind + k) * blocks + thread, meeting);
      __threadfence();
    }
    sum_over_block<threads>(sums);  // nobody goes on before all have heard
  }

 private:
  static __device__ void tell(ToldSum* to, double sum, std::uint32_t meeting) {
    const auto bits = static_cast<std::uint64_t>(__double_as_longlong(sum));
    asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to),
                 "r"(static_cast<std::uint32_t>(bits)), "r"(meeting),
                 "r"(static_cast<std::uint32_t>(bits >> 32)), "r"(meeting)
                 : "memory");
  }
  static __device__ double hear(const ToldSum* from, std::uint32_t meeting) {
    ToldSum told;
    do {
      asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(told.low), "=r"(told.meeting_of_low), "=r"(told.high), "=r"(told.meeting_of_high)
                   : "l"(from)
                   : "memory");
    } while (told.meeting_of_low != meeting || told.meeting_of_high != meeting);
    return __longlong_as_double(static_cast<long long>(std::uint64_t{told.high} << 32 | told.low));
  }

  ToldSum* told_;
};

}  // namespace asterism::sparse::cuda
