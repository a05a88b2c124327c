/// \file
/// Conjugate gradients as one writes them with cuSPARSE and cuBLAS: what our kernels are measured against.
#pragma once

#include <cstdint>

#include "../../../runtime/ports.hpp"

namespace asterism::sparse {

/// A x = b in main memory, all rows of it.
template <class T>
struct TextbookSystem {
  std::int32_t rows = 0, entries = 0;
  const std::int32_t* begins;           ///< rows + 1 numbers
  const std::int32_t* columns;          ///< of the entries
  const T* values;                      ///< of the entries
  const T* b;                           ///< not 0
  const T* inverse_diagonal = nullptr;  ///< that the preconditioner is; none: there is no preconditioner
};

struct TextbookTimes {
  Index iterations = 0;
  double seconds_per_iteration = 0;
  double residual = 0;         ///< ||b - A x|| / ||b|| after the iterations
  const char* algorithm = "";  ///< of cuSPARSE's product that was the faster one
};

namespace cuda {

/// Iterations are replayed from a CUDA graph, ten at a time, with all scalars on the GPU: nothing waits for the host.
/// An iteration is cusparseSpMV, two cublasDdot, two cublasDaxpy (x and r), cublasDscal and cublasDaxpy (p), two
/// kernels of one thread that divide, and with a diagonal one more that multiplies by it. Nobody looks at a residual.
///
/// On the calling thread's GPU, from x = 0.
/// @param iterations of a run, rounded up to whole tens @param repeats runs, of which the fastest counts
/// @throw Error: no memory, or another status that is not success
template <class T>
TextbookTimes textbook_cg(const TextbookSystem<T>& system, Index iterations, int repeats);

}  // namespace cuda
}  // namespace asterism::sparse
