/// \file
/// How the rows of a grid are cut into stripes for the workers.
#pragma once

#include <vector>

#include "../../common/partition.hpp"
#include "../problem.hpp"

namespace asterism::relaxation {

struct Cut {
  Partition stripes;  ///< of the rows
  Exchange exchange = Exchange::overlapped;  ///< not automatic any more
  Index sweeps_per_task = 1;
  Index halo = 1;                ///< ghost rows of every stripe
  double seconds_per_sweep = 0;  ///< as predicted from the workers' speeds
};

/// Stripes in proportion to the speeds of their workers, in nodes relaxed per second in tasks of many sweeps, and how
/// many sweeps they make on their own: no more than check_every, which has to be known, unless sweeps_per_task is
/// given. Where settings.stripes is 0 each worker has as many as its memory asks for.
/// @throw Error: more stripes than rows allow, or fewer than the workers' memory.
template <class T>
Cut cut_rows(const std::vector<Candidate>& workers, const Problem& problem, const Settings& settings);

/// Those workers that take part, of all those of all ranks, rank by rank: each rank's fastest kind, its GPUs
/// or, where it has none, its cores. Where all were measured and settings.stripes is 0, fewer if a sweep is
/// predicted to take less time without the others: the ranks with GPUs, or the fastest rank; and where all
/// were measured the cores beside GPUs, too, if a sweep takes less time with them. @throw Error: as cut_rows.
template <class T>
std::vector<Candidate> choose_workers(const std::vector<Candidate>& all, const Problem& problem,
                                      const Settings& settings);

}  // namespace asterism::relaxation
