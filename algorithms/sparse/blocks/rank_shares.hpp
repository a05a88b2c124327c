/// \file
/// How much of a matrix each rank has, by what its workers can do.
#pragma once

#include <vector>

#include "division.hpp"

namespace asterism::sparse {

/// What a rank's workers do together.
struct RankSpeed {
  double rows = 1;   ///< a second, in products with a matrix that has five entries in a row
  int gpus_of = -1;  ///< the first of the ranks that share its GPUs, perhaps itself; -1: it has none
};

/// Measured with products on all workers of all ranks that take part, at the same time. Ranks whose speeds are within a third
/// of each other count as equal. With several ranks: collective; the same on every rank. @throw TaskFailure, Stall
std::vector<RankSpeed> measure_rank_speeds(Runtime& runtime, Workers workers);

/// How n rows are shared among ranks: weights for rows_of_rank, of which a rank may have 0. So many take part, the fastest first, that an
/// iteration takes least: what two ranks tell each other in it can take longer than the rows of the one take the other. Of
/// ranks that share their GPUs one has all the rows of these.
std::vector<double> shares_of_ranks(Index n, const std::vector<RankSpeed>& speeds);

}  // namespace asterism::sparse
