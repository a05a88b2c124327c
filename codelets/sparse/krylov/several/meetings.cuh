/// \file
/// How the kernels of blocks on several GPUs meet within an iteration: each tells every GPU its units' sums as it has
/// them, and the kernel after it, which is launched already, waits for those of all blocks. Nothing is between them but
/// the way from GPU to GPU.
#pragma once

#include "../../told_sum.cuh"
#include "../../unit_sums.cuh"
#include "../cg_steps.hpp"
#include "gpus.hpp"

namespace asterism::sparse::cuda {

/// A block's among the others. Where blocks share a GPU their kernels cannot wait for one another; then something else
/// has to have waited before them.
struct Meeting {
  ToldSum* told[most_blocks_on_gpus] = {};  ///< of each block, sums_told of them
  int blocks = 0;                           ///< 0: there is nobody to meet
  int own = 0, first_unit = 0, units = 0;   ///< this block, where its units begin, and those of all blocks
  std::uint32_t number = 0;                 ///< counts from 1

  __device__ void tell_all(ToldKind kind, Index unit, double sum) const {
    for (int b = 0; b < blocks; ++b)
      tell(told[b] + static_cast<Index>(kind) * most_units + first_unit + unit, sum, number);
  }
};

/// The sums of all blocks' units that this block has been told, or will be.
template <int kinds>
struct AwaitedSums {
  const ToldSum* at[kinds];
  int units;
  std::uint32_t meeting;

  template <class... Kinds>
  explicit AwaitedSums(const Meeting& its, Kinds... all)
      : at{its.told[its.own] + static_cast<Index>(all) * most_units...},
        units(its.units),
        meeting(its.number) {
    static_assert(sizeof...(all) == kinds);
  }

  /// As SumLists::add_up, when all have come.
  __device__ void add_up(double (&totals)[kinds]) const {
    constexpr int most_looks = 1 << 27;  // minutes: another GPU has failed
    SumsOfThread<kinds> sums;
    bool all_there;
    int looks = 0;
    do {
      all_there = true;
      for_units_of_thread(units, [&](int j, int u) {
#pragma unroll
        for (int k = 0; k < kinds; ++k) all_there &= has_told(at[k] + u, meeting, sums.of[k][j]);
      });
      if (++looks == most_looks) __trap();
    } while (!all_there);
    sums.add_up(totals);
  }
};

/// What a block needs of others' vectors, of each pair, and where that is in its own. @tparam V of D^-1
template <class T, class V>
struct OthersElements {
  const T* r[most_blocks_on_gpus];
  const V* d[most_blocks_on_gpus];  ///< or nullptr
  const std::int32_t* taken[most_blocks_on_gpus];
  const std::int32_t* placed[most_blocks_on_gpus];
  Index counts[most_blocks_on_gpus];
  unsigned pairs = 0, blocks_of_pair = 0;  ///< blocks of threads

  /// The first ones of a kernel.
  [[nodiscard]] __host__ __device__ unsigned blocks() const { return pairs * blocks_of_pair; }

  /// (N4), by one of blocks(). @param p with others' elements
  __device__ void turn(T beta, T* p) const {
    const unsigned pair = blockIdx.x / blocks_of_pair;
    const Index step = Index{unit_threads} * blocks_of_pair;
    for (Index j = Index{blockIdx.x % blocks_of_pair} * unit_threads + threadIdx.x; j < counts[pair];
         j += step) {
      const std::int32_t i = taken[pair][j];
      const T r_i = __ldcv(r[pair] + i);
      const T z_i = d[pair] == nullptr ? r_i : static_cast<T>(d[pair][i]) * r_i;
      T& p_j = p[placed[pair][j]];
      p_j = multiply_add(beta, p_j, z_i);
    }
  }
};

/// The steps of conjugate_gradients.hpp for one of the blocks; the lists of sums are not read.
template <class T>
void multiply(Stream stream, const CgArgs& args, const MultiplyPorts<AsPorts, T>& ports,
              const Meeting& meeting);
template <class T, class V>
void descend(Stream stream, const CgArgs& args, const DescentPorts<AsPorts, T, V>& ports,
             const Meeting& meeting);
template <class T, class V>
void turn(Stream stream, const CgArgs& args, const DirectionPorts<AsPorts, T, V>& ports,
          const Meeting& meeting, const OthersElements<T, V>& others);

}  // namespace asterism::sparse::cuda
