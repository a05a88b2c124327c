/// \file
/// Which workers solve with the factors of which subdomains.
#pragma once

#include <vector>

#include "../../common/partition.hpp"
#include "../../common/workers.hpp"

namespace asterism::decomposition {

/// Where local systems are solved.
enum class SolveOn {
  fastest,  ///< on GPUs where a rank has some that are faster, by a model, and as far as there is memory
  cores,
  gpus,  ///< wherever a rank has some, as far as there is memory
};

/// The part of a GPU's memory that factors may take.
inline constexpr double most_of_memory = 0.7;

/// What a subdomain's factors are like.
struct FactorSize {
  Index bytes = 0, entries = 0;
  /// How many of its supernodes, or of its rows where it has none, wait for each other.
  Index depth = 0;
  bool supernodal = true;
};

/// Subdomains in groups, each of which one worker solves for at once: consecutive ones of a rank for each of its GPUs, and
/// one for itself where cores do it, any of them.
/// @param sizes, owners of all subdomains, in the order of ranks
Partition deal_subdomains(const std::vector<Candidate>& workers, const std::vector<FactorSize>& sizes,
                          const std::vector<int>& owners, SolveOn solve_on);

}  // namespace asterism::decomposition
