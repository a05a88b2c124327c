/// \file
/// Conjugate gradients for several right-hand sides on a GPU, as one task for many iterations: (N1) of all of them reads
/// the matrix once for a few, (N2) and (N3) are done for one after the other. All bits are those of each of them alone, in
/// steps.
#pragma once

#include <vector>

#include "iterates.hpp"

namespace asterism::sparse {

struct CgColumnsArgs {
  BlockShape shape;
  Index unit = 0;                      ///< rows
  std::vector<Index> iterations = {};  ///< CgArgs::iteration of each one's first
  std::vector<Index> counts = {};      ///< that are to be made, of each
};

/// @param inverse_diagonal where M is a diagonal, else none @param iterates of every right-hand side
template <template <class> class As, class T, class V>
struct CgColumnsPorts {
  BlockPorts<As, T> matrix;
  As<Optional<In<V>>> inverse_diagonal;
  IteratesPorts<As, T> iterates;
};

namespace cuda {
template <class T, class V>
void cg_columns(Stream stream, const CgColumnsArgs& args, CgColumnsPorts<AsPorts, T, V> ports);
}

}  // namespace asterism::sparse
