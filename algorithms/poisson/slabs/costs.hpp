/// \file
/// What a solve takes on cores when it is cut into so many slabs, and on a GPU: models, to choose by.
///
/// On cores one slab is one task: it shows nothing to others. Several keep several cores busy; but each plane is then read once more
/// (pass 1), and the interface systems are a chain of two short tasks a slab, which takes the longer the more cores there
/// are to wait for its steps. Only the ratios of the costs matter, and these are much the same on cores of all speeds: they
/// are constants, so that equal grids on equal numbers of cores are cut equally, and u has the same bits in every run.
#pragma once

#include "../problem/problem.hpp"

namespace asterism::poisson {

struct CoreWork {
  Index problems = 1, planes = 1, columns = 1;  ///< of the batch; of each problem; of each plane
  Index transformed_axes = 1;
  Index element_bytes = 8;
  Index workers = 1;  ///< cores, those of all ranks
};

/// Seconds, but for a constant, with so many slabs a problem.
double seconds_on_cores(const CoreWork& work, Index slabs);

/// As few slabs a problem as possible among those numbers with which it takes the least, of 32 MiB each at most.
/// @param most slabs a problem, which may be higher then; 0: any number
Index slabs_on_cores(const CoreWork& work, Index most = 0);

/// Seconds of a solve of so many unknowns that stay in a GPU's memory, as one slab.
double seconds_on_gpu(const Grid& grid, Index unknowns, Index element_bytes);

}  // namespace asterism::poisson
