/// \file
/// Lines of any length that no block of a kernel has the memory for: the blocks of a cluster have their numbers together.
/// For `.cu` files only.
#pragma once

#include "../grid_lines.cuh"
#include "kinds.cuh"
#include "symmetric_kinds.cuh"

namespace asterism::transforms::cuda {

/// How the blocks of a cluster do their lines: of lines side by side so many that accesses cover whole sectors of memory,
/// or at least half of one.
/// @param numbers of shared memory that a line, or two together, takes; 0: there is no plan for it
/// @return with the bytes of one block; none where no cluster of the current device has enough
template <class T>
BlockShape cluster_shape(Transform kind, int numbers, Index width);

/// Transforms lines in this shape.
/// @tparam View AnyLength or SymmetricView
/// @param padded whether the plan's FFT is
template <class T, class View>
void transform_in_clusters(Stream stream, Transform kind, const Lines<const T>& from, const Lines<T>& to,
                           const BlockShape& shape, const View& plan, bool padded);

}  // namespace asterism::transforms::cuda
