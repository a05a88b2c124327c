/// \file
/// How the rows of a grid are divided among the workers.
#pragma once

#include <vector>

#include "../runtime/codelet.hpp"
#include "../runtime/runtime.hpp"
#include "relaxation_problem.hpp"

namespace asterism::relaxation {

/// A stripe of the grid, and who works on it.
struct Share {
  Index first_row = 0, rows = 0;
  int rank = 0;
  Where where = Where::cpu;
  int worker = 0;  ///< its number among those of the kind on its rank
};

/// A worker that may take part.
struct Candidate {
  int rank = 0;
  Where where = Where::cpu;
  int worker = 0;
  double speed = 1;   ///< nodes relaxed per second; 1 for all where nobody has measured
  double memory = 0;  ///< bytes that the tiles of a task may take; 0: no limit that is of interest here
};

/// Those workers that take part, rank by rank, a rank's fastest kind first: its GPUs, or its cores where it
/// has none; with Balance::measured its cores beside its GPUs, too, where they are fast enough to be of use.
/// What is measured: GPUs, and the ranks of several; the cores of one machine count as equal. With several
/// ranks: collective; the same on every rank.
template <class T>
std::vector<Candidate> choose_workers(Runtime& runtime, const Problem& problem, const Settings& settings);

struct Cut {
  std::vector<Share> shares;  ///< in the order of the rows; those of a rank follow each other
  Index sweeps_per_task = 1;
  Index halo = 1;  ///< ghost rows of every stripe
};

/// Stripes in proportion to the speeds of their workers, and how many sweeps they make on their own: no more
/// than check_every, which has to be known, unless sweeps_per_task is given.
/// @throw Error: more stripes than rows allow.
template <class T>
Cut cut_rows(const std::vector<Candidate>& workers, const Problem& problem, const Settings& settings);

/// Ghost rows that a task of so many sweeps consumes.
Index ghost_rows(Method method, Index sweeps);

/// What the kernels are told. `settings` is complete (omega).
kernels::Discretisation discretise(const Problem& problem);
kernels::JacobiArgs jacobi_args(const kernels::Discretisation& grid, const kernels::Stripe& stripe,
                                Index sweeps, bool has_source);
kernels::ColourArgs colour_args(const kernels::Discretisation& grid, const kernels::Stripe& stripe,
                                Index sweeps, bool has_source, const Settings& settings);

/// Seconds from now until the tasks so far of each of these tiles have ended, by the clock of this rank,
/// which owns them.
std::vector<double> seconds_until_done(const std::vector<const detail::TileBase*>& tiles);

}  // namespace asterism::relaxation
