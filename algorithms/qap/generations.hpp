/// \file
/// The task graph of a search: generations of walks and selections.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "plan.hpp"

namespace asterism::qap {

/// The best of a generation, of an island, of a rank or of all, and what its walks have done.
struct Found {
  bool is_there = false;
  Cost cost = 0;
  Index island = 0;
  Index iterations = 0;  ///< of all walks
  Index moves = 0;       ///< that these looked at
  Index longest = 0;     ///< iterations of a walk, from its start
  Permutation permutation;

  /// Adds what others have found. Of several that cost the same, the first island's is the best, whoever is added first.
  /// @return whether theirs is the best
  bool add(const Found& others);
};

class Generations {
 public:
  virtual ~Generations() = default;

  /// How many generations may be submitted beyond the last one that was looked at.
  static constexpr Index ahead = 3;

  /// Submits the tasks of the next generation.
  virtual void submit() = 0;
  /// Waits for what the islands of this rank have found in a generation.
  virtual Found look(Index generation) = 0;
  /// Walks on cores end when this is set, and tasks to come make none.
  virtual std::atomic<bool>& stop() = 0;
  [[nodiscard]] virtual Index batches() const = 0;
};

/// In elements as the problem's form has them. With several ranks: collective.
std::unique_ptr<Generations> make_generations(Runtime& runtime, const Problem& problem,
                                              const ProblemFacts& facts, const MoveForm& form,
                                              const Plan& plan, const SearchSettings& settings);

}  // namespace asterism::qap
