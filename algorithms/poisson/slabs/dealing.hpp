/// \file
/// How many slabs each rank and GPU gets.
///
/// Slabs are equally high whoever works on them (layout.hpp), and there are as many: how fast workers are decides who
/// gets them, not where the grid is cut, nor whether slabs pass through. So speeds, which differ from run to run,
/// never change u, but for what GPUs and cores round differently where ranks have the one or the other.
///
/// A rank's GPUs work on its slabs, each a lane of its own, or where it has none its cores, all of them one lane. Where
/// there are no more slabs than cores each slab has a core to itself (on_cores_of_their_own).
/// Ranks and lanes get slabs in proportion to
/// - Settings::weights, where the caller gives some;
/// - else speeds, where Settings::balance asks for them and there is something to compare (deal_slabs);
/// - else the number of workers, a GPU counting as much as 200 cores.
/// Where some rank's memory could not hold what it would get by speed or number, all ranks get as many slabs.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "../../common/partition.hpp"
#include "../layout.hpp"
#include "../problem/problem.hpp"

namespace asterism::poisson {

/// Measures the speeds of workers with slabs, in unknowns per second. Collective; the same on every rank.
using MeasureSlabs = std::function<void(const Layout& layout, std::vector<Candidate>& workers)>;

/// Those workers that work on slabs: each rank's GPUs or, where it has none, its cores.
std::vector<Candidate> slab_workers(const std::vector<Candidate>& all);
/// The lanes that they are: GPUs one by one, a rank's cores as one worker that is as fast as all of them.
std::vector<Candidate> lanes_of(const std::vector<Candidate>& slab_workers);
/// The lanes' weights where those of the ranks are given: a rank's lanes share its weight by their speeds.
/// @throw Error: not one weight for each rank
std::vector<double> weights_of_lanes(const std::vector<Candidate>& lanes, const std::vector<double>& of_ranks,
                                     int ranks);

/// The planes of all problems of a batch in slabs, dealt to the lanes.
Partition partition_of_slabs(const Grid& grid, const Layout& layout, const std::vector<Candidate>& lanes,
                             const std::vector<double>& weights);

/// Where a rank has several slabs of a problem and at least as many cores, each of them stays on one core, in whose
/// caches it is when its next pass begins. @param workers of all ranks
Partition on_cores_of_their_own(const Partition& slabs, Index slabs_per_problem,
                                const std::vector<Candidate>& workers);

/// The same for the workers of all ranks, as the head of this file tells. Collective; the same on every rank.
/// @param measure called where there are several lanes and so much to do that it pays; empty: nothing to measure with
/// @throw Error: as weights_of_lanes. @throw what `measure` throws
Partition deal_slabs(const Runtime& runtime, const Grid& grid, const Layout& layout, const Settings& settings,
                     std::size_t element_bytes, const MeasureSlabs& measure);

}  // namespace asterism::poisson
