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

/// @tparam threads of a block: a warp of warps
template <int threads>
class GridSums {
 public:
  static constexpr int kinds = 10;  ///< of sums that are under way at once
  static constexpr int most_blocks = 256;

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
    static_assert(threads == warp_lanes * warp_lanes && count <= 8);
    __shared__ double of_warps[count][warp_lanes], of_grid[count];
    const int lane = static_cast<int>(threadIdx.x) % warp_lanes,
              warp = static_cast<int>(threadIdx.x) / warp_lanes;
    const double of_warp = sums_of_warp(sums);
    if (lane < count) of_warps[lane][warp] = of_warp;
    __syncthreads();
    if (warp < count) {  // a warp has one of the sums from here on
      const int blocks = static_cast<int>(gridDim.x);
      ToldSum* const told = told_ + (first_kind + warp) * blocks;
      const double of_block = sum_of_warp(of_warps[warp][lane]);
      if (lane == 0) {
        __threadfence();  // the block's threads have written before they met
        tell(told + blockIdx.x, of_block, meeting);
      }
      const double sum = sum_of_warp(heard(told, blocks, meeting));
      __threadfence();
      if (lane == 0) of_grid[warp] = sum;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < count; ++k) sums[k] = of_grid[k];
  }

 private:
  static __device__ void tell(ToldSum* to, double sum, std::uint32_t meeting) {
    const auto bits = static_cast<std::uint64_t>(__double_as_longlong(sum));
    asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to),
                 "r"(static_cast<std::uint32_t>(bits)), "r"(meeting),
                 "r"(static_cast<std::uint32_t>(bits >> 32)), "r"(meeting)
                 : "memory");
  }
  /// What every 32nd block has told, added up: all are asked before the first answer is waited for.
  static __device__ double heard(const ToldSum* from, int blocks, std::uint32_t meeting) {
    constexpr int of_lane = most_blocks / warp_lanes;
    const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
    double sums[of_lane];
    bool all_there;
    do {
      all_there = true;
#pragma unroll
      for (int j = 0; j < of_lane; ++j) {
        sums[j] = 0;
        if (const int block = lane + j * warp_lanes; block < blocks)
          all_there &= has_told(from + block, meeting, sums[j]);
      }
    } while (!all_there);
    __syncwarp();
    return by_halves(sums);
  }
  static __device__ bool has_told(const ToldSum* from, std::uint32_t meeting, double& sum) {
    ToldSum told;
    asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(told.low), "=r"(told.meeting_of_low), "=r"(told.high), "=r"(told.meeting_of_high)
                 : "l"(from)
                 : "memory");
    sum = __longlong_as_double(static_cast<long long>(std::uint64_t{told.high} << 32 | told.low));
    return told.meeting_of_low == meeting && told.meeting_of_high == meeting;
  }

  ToldSum* told_;
};

}  // namespace asterism::sparse::cuda
