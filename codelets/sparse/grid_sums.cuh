/// \file
/// Where all threads of a cooperative kernel meet, and leave with a sum of what all of them have.
///
/// A block tells its own sum to all others (told_sum.hpp). They look there only when a counter says that all blocks have
/// told theirs: on an H200 a meeting takes 2.1 us, or 1.6 where nothing else is to be seen, and 3.2 where all look from
/// the beginning, in the way of what they wait for.
#pragma once

#include <bit>
#include <cstdint>

#include "told_sum.cuh"
#include "unit_sums.cuh"

namespace asterism::sparse::cuda {

/// Whether what a block has written is seen by all afterwards.
enum class Shows { nothing, memory };

/// @tparam threads of a block: a warp of warps
template <int threads>
class GridSums {
 public:
  static constexpr int kinds = 10;  ///< of sums that are under way at once
  static constexpr int blocks_of_lane = 5, most_blocks = blocks_of_lane * warp_lanes;

  /// Of so many blocks. Before the kernel all of it is 0.
  static constexpr std::size_t bytes(Index blocks) {
    return kinds * (static_cast<std::size_t>(blocks) * sizeof(ToldSum) + sizeof(Counter));
  }

  __device__ explicit GridSums(ToldSum* told)
      : told_(told + kinds * sizeof(Counter) / sizeof(ToldSum)),
        counters_(reinterpret_cast<Counter*>(told)) {}

  /// Two meetings that follow each other have no kind in common: what a block has told is read until it has come to
  /// the next but one.
  /// @param sums of the calling thread; of the grid, the same for all, always added in the same order
  /// @param first_kind the sums are of this one and the next ones
  /// @param meeting counts from 1, for each first kind
  template <Shows shows, int count>
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
        if (shows == Shows::memory) fence();  // the block's threads have written before they met
        tell(told + blockIdx.x, of_block, meeting);
        std::uint32_t& come = counters_[first_kind].blocks;
        if (warp == 0) count_in(come);
        wait_for(come, meeting * static_cast<std::uint32_t>(blocks));
      }
      __syncwarp();
      const double sum = sum_of_warp(heard(told, blocks, meeting));
      if (shows == Shows::memory) fence();
      if (lane == 0) of_grid[warp] = sum;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < count; ++k) sums[k] = of_grid[k];
  }

 private:
  /// Of blocks that have come to meetings.
  struct alignas(32) Counter {
    std::uint32_t blocks;
  };

  static __device__ void fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
  static __device__ void count_in(std::uint32_t& counter) {
    asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(&counter) : "memory");
  }
  static __device__ void wait_for(const std::uint32_t& counter, std::uint32_t all) {
    std::uint32_t come;
    do asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(come) : "l"(&counter) : "memory");
    while (come < all);
  }
  /// What every 32nd block has told, added up: all are asked before the first answer is waited for.
  static __device__ double heard(const ToldSum* from, int blocks, std::uint32_t meeting) {
    constexpr int padded = std::bit_ceil(static_cast<unsigned>(blocks_of_lane));
    const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
    double sums[padded] = {};
    bool all_there;
    do {  // the counter may be faster than a sum
      all_there = true;
#pragma unroll
      for (int j = 0; j < blocks_of_lane; ++j)
        if (const int block = lane + j * warp_lanes; block < blocks)
          all_there &= has_told(from + block, meeting, sums[j]);
    } while (!all_there);
    __syncwarp();
    return by_halves(sums);
  }
  ToldSum* told_;
  Counter* counters_;
};

}  // namespace asterism::sparse::cuda
