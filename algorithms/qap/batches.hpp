/// \file
/// Who walks how many of which islands' walks.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "../../runtime/codelet.hpp"
#include "../common/workers.hpp"
#include "plan.hpp"

namespace asterism::qap {

/// Consecutive walks of an island.
struct Share {
  std::size_t island = 0;
  Index walks = 0;
  bool operator==(const Share&) const = default;
};

/// So many a GPU has at a time: while one waits for its islands between two generations, others walk.
constexpr int batches_at_once = 4;

/// Walks of one task: on a GPU of several islands if there are many, on a core of one.
struct Batch {
  std::vector<Share> shares;
  int rank = 0;
  Hints hints;
};

/// Who takes tasks for cores of a rank: whoever is free. How long each takes changes from generation to generation, and how
/// fast cores are, too. A scheduler that chooses a core as soon as a task is ready knows neither: there each core in turn.
/// Where cores only select, a few of them in turn: of many that sleep, whoever wakes first takes longer to.
class Cores {
 public:
  /// @param workers of all ranks @param walking those that walk @param chosen_ahead Machine::chooses_ahead
  Cores(const std::vector<Candidate>& workers, const std::vector<Candidate>& walking, bool chosen_ahead);

  Hints next(int rank);

 private:
  std::map<int, std::deque<Candidate>> of_rank_;  // where it is each in turn: the next one first
};

/// How many walks each worker gets, in proportion to speeds. Beside GPUs a core gets no more than it surely makes while
/// they make theirs, which may be none: a generation waits for its last walk, of which a core has one at a time, a GPU
/// many.
std::vector<Index> share_walks(Index walks, const std::vector<Candidate>& workers);

/// Cuts the walks of all islands. On a rank without GPUs every island in equal batches, so that it need not wait for others.
/// Or else all walks of the rank by the workers' speeds: the cores together get the same part of each island's, the GPUs the
/// rest in order, each in batches_at_once batches or more.
/// @param islands rank by rank @param workers that walk, of measured speeds where a rank has GPUs and cores
/// @param bytes that a walk takes on a GPU: a batch of several islands takes no more than half of its memory
std::vector<Batch> cut_walks(const std::vector<IslandPlan>& islands, const std::vector<Candidate>& workers,
                             Index bytes, Cores& cores);

/// This worker and no other.
Hints hints_of(const Candidate& worker);

/// Walks for which half of a worker's memory is enough, one at least, of `walks` that there are.
Index fitting_walks(Index walks, Index bytes, const Candidate& worker);

}  // namespace asterism::qap
