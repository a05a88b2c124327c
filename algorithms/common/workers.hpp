/// \file
/// The workers of all ranks, as what work can be given to.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "../../runtime/codelet.hpp"
#include "../../runtime/runtime.hpp"

namespace asterism {

/// A worker that may take part.
struct Candidate {
  int rank = 0;
  Where where = Where::cpu;
  int worker = 0;  ///< its number among those of the kind on its rank; -1: all of these together
  /// Work per second, as somebody has measured it (measure_speeds); 1 for all where nobody has.
  double speed = 1;
  double memory = 0;  ///< bytes that the tiles of a task may take; 0: no limit that is of interest here
  /// Bytes of main memory that the tiles of all cores of its rank may take together; 0: no limit, as a disk takes what
  /// does not fit.
  double rank_memory = 0;
  bool alone = false;  ///< whether its rank has no other worker of the kind
  int node = 0;        ///< the first of the ranks on its host
};

/// How work is divided among the workers.
enum class Balance {
  measured,  ///< by the speed of each worker, measured with a few tasks where workers may differ
  equal,
};

/// All workers of all ranks, rank by rank, GPUs first on each; with their memory, and speeds of 1. With several ranks:
/// collective; the same on every rank.
std::vector<Candidate> all_workers(const Runtime& runtime);

/// The first of the ranks that share its GPUs, perhaps itself, of every rank; -1 for those without. Kernels of several ranks
/// take turns on a GPU. With several ranks: collective; the same on every rank.
std::vector<int> first_with_gpus(const Runtime& runtime);

/// Whether it is a speed that somebody has measured.
inline bool is_measured(const Candidate& worker) { return worker.speed > 1; }
/// As measured, or a guess of what a GPU and a core may do: a GPU as much as 200 cores.
double speed_of(const Candidate& worker);

/// Tasks that may be in flight on this rank at a time, so that the tiles of all of them fit in main memory; none: any
/// number. StarPU would otherwise bring the tiles of more and more tasks that are next, until there is room for none of
/// them.
std::optional<std::size_t> tasks_in_memory(const Machine& machine);

}  // namespace asterism
