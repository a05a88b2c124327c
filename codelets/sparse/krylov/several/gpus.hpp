/// \file
/// Conjugate gradients on GPUs that see each other's memory, as one task for many iterations: the steps (N1) to (N3) of
/// all blocks, each on its GPU, with two meetings of all of them in an iteration.
///
/// At the first meeting blocks tell each other their sums for (p, q), at the second those for (r, r) and (r, z). What a
/// block needs of others' p it makes itself of their r, which it reads where that is,
///
///     (N4)  p_j = z_j + beta p_j,  j in other blocks,
///
/// which saves a third meeting. All bits are those of the steps as tasks.
#pragma once

#include <vector>

#include "../../told_sum.hpp"
#include "iterates.hpp"

namespace asterism::sparse {

/// Elements of a block's z that another needs.
struct BlockPair {
  Index from, to;
};

struct CgOnGpusArgs {
  std::vector<BlockShape> shapes = {};  ///< of each block
  std::vector<int> gpus = {};           ///< of each block: the first is that of the task
  std::vector<BlockPair> pairs = {};
  Index unit = 0, iteration = 0, count = 0;
  Index before = 0;  ///< iterations with the same tiles that there have been
};

inline constexpr Index most_blocks_on_gpus = 16;

/// The sums that blocks tell each other.
enum class ToldKind { pq, rr, rz };

/// Sums of all blocks, for a block: so many of each kind.
inline constexpr Index sums_told = 3 * most_units;

/// The tiles of all blocks, in their order, each at home on the block's GPU; all blocks have one format.
template <template <class> class As, class T>
struct BlocksPorts {
  As<Many<In<T>>> values;
  As<Many<In<std::int32_t>>> begins;
  As<Many<In<std::int32_t>>> columns;
  As<Many<In<std::int16_t>>> differences;
};

/// Of all pairs, at home where the elements go. @param packs the first ones of p
template <template <class> class As, class T>
struct PairsPorts {
  As<Many<In<T>>> packs;
  As<Many<In<std::int32_t>>> taken;
  As<Many<In<std::int32_t>>> placed;
};

/// @param inverse_diagonal of all blocks, where M is one; else none
/// @param told sums_told for each block, to work with; all 0 before the first iteration
template <template <class> class As, class T, class V>
struct CgOnGpusPorts {
  BlocksPorts<As, T> matrix;
  PairsPorts<As, T> pairs;
  As<Many<In<V>>> inverse_diagonal;
  IteratesPorts<As, T> iterates;
  As<Many<InOut<ToldSum>>> told;
};

namespace cuda {
template <class T, class V>
void cg_on_gpus(Stream stream, const CgOnGpusArgs& args, CgOnGpusPorts<AsPorts, T, V> ports);
}

}  // namespace asterism::sparse
