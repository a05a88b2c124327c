/// \file
/// How fast workers are with slabs.
#pragma once

#include <vector>

#include "../../common/workers.hpp"
#include "../layout.hpp"
#include "../problem/problem.hpp"

namespace asterism::poisson {

/// Gives workers their speeds in unknowns per second, by the first pass over a slab of zeros on each of them, all at
/// the same time; with the way to a GPU where slabs stream. Collective; the same on every rank.
/// @param args planned: as this rank's slabs have them @throw as measure_speeds
template <class T>
void measure_slabs(Runtime& runtime, const Grid& grid, const Layout& layout, const SlabArgs& args,
                   std::vector<Candidate>& workers);

}  // namespace asterism::poisson
