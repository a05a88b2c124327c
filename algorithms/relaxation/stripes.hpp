/// \file
/// How the rows of a grid are divided among the workers.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "../../runtime/codelet.hpp"
#include "../../runtime/runtime.hpp"
#include "problem.hpp"

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
  /// Nodes relaxed per second in tasks of many sweeps; 1 for all where nobody has measured
  /// (measured_workers).
  double speed = 1;
  double memory = 0;  ///< bytes that the tiles of a task may take; 0: no limit that is of interest here
  /// Bytes of main memory that all stripes of its rank's cores may take together; 0: no limit, as a disk
  /// takes what does not fit.
  double rank_memory = 0;
};

struct Cut {
  std::vector<Share> shares;  ///< in the order of the rows; those of a rank follow each other
  Index sweeps_per_task = 1;
  Index halo = 1;                ///< ghost rows of every stripe
  double seconds_per_sweep = 0;  ///< as predicted from the workers' speeds
};

/// Stripes in proportion to the speeds of their workers, and how many sweeps they make on their own: no more
/// than check_every, which has to be known, unless sweeps_per_task is given. Where settings.stripes is 0 each
/// worker has as many as its memory asks for.
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

/// Nodes per second as measured, or a guess of what a GPU and a core may do.
double speed_of(const Candidate& worker);

/// How many rows a stripe may have on a worker: as many as its memory has room for while a task works on it,
/// and as StarPU can count; 0 where there is not room for one.
/// @param stripe all but its rows
Index most_rows(const Candidate& worker, const Stripe& stripe, std::size_t element_bytes);

/// Workers, and how many stripes each of them has.
struct Division {
  std::vector<Candidate> workers;
  std::vector<Index> stripes;

  [[nodiscard]] Index count() const;
};

/// A stripe for each worker, but for those that would have next to nothing to do; at least one for each rank.
/// @param nodes    of the grid
/// @param possible no more stripes than these
Index worthwhile_stripes(const std::vector<Candidate>& workers, Index nodes, Index possible);

/// So many stripes for the fastest of the workers; several each where there are more stripes than workers.
Division divide(const std::vector<Candidate>& workers, Index stripes);

/// Stripes that begin at multiples of `unit` rows and are no lower than `least` units. A worker's stripes are
/// equal; `weights`, one for each worker, say how many rows they have together.
std::vector<Share> shares_of(const Division& division, const std::vector<double>& weights, Index rows,
                             Index unit, Index least);

/// Gives those workers more stripes whose present ones are too high for them. @param stripe all but its rows
/// @param possible no more stripes than these in all
/// @return whether there was any, and more stripes were possible
bool split_too_high(Division& division, const std::vector<Share>& shares, const Stripe& stripe,
                    std::size_t element_bytes, Index possible);

/// Checks that the workers have room for their stripes: for each of them, and for all those of a rank
/// together.
/// @param stripe all but its rows @param possible that there cannot be more stripes than these is told
/// @throw Error
void require_room(const Division& division, const std::vector<Share>& shares, const Stripe& stripe,
                  std::size_t element_bytes, Index possible);

/// Tasks that may be in flight on this rank at a time, so that the tiles of all of them fit in main memory;
/// none: any number. StarPU would otherwise bring the tiles of more and more tasks that are next, until there
/// is room for none of them.
std::optional<std::size_t> tasks_in_memory(const Machine& machine);

/// Ghost rows that a task of so many sweeps consumes.
Index ghost_rows(Method method, Index sweeps);

/// What the kernels are told. `settings` is complete (omega).
JacobiArgs jacobi_args(const Discretisation& grid, const Stripe& stripe, Index sweeps, bool has_source);
ColourArgs colour_args(const Discretisation& grid, const Stripe& stripe, Index sweeps, bool has_source,
                       const Settings& settings);

}  // namespace asterism::relaxation
