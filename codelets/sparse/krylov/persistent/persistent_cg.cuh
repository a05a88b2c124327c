/// \file
/// Iterations of conjugate gradients in a single kernel, where the vectors fit in what the multiprocessors of a GPU
/// have for themselves: launches and memory would take most of the time there.
#pragma once

#include "../conjugate_gradients.hpp"

namespace asterism::sparse::cuda {

/// cg_sweep for M = 1 or a diagonal. Only x, r, p and the state are left as the steps would leave them.
/// @return false: nothing was done, as the matrix is too large or of another format, or the GPU cannot
template <class T, class V>
bool sweep_at_once(Stream stream, const CgSweepArgs& args, const CgSweepPorts<AsPorts, T, V>& ports);

}  // namespace asterism::sparse::cuda
