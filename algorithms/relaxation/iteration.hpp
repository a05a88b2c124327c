/// \file
/// Sweeps, and residuals between them that no worker waits for.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "../../codelets/sums/sums.hpp"
#include "../../runtime/report.hpp"
#include "../../runtime/runtime.hpp"
#include "../../runtime/tile.hpp"
#include "../common/convergence.hpp"
#include "stripes.hpp"

namespace asterism::relaxation {

/// The sums over a grid's nodes that residuals are made of, stripe by stripe: those of two successive
/// residuals, so that the one is looked at while the workers are at the next.
class ResidualSums {
 public:
  ResidualSums(Runtime& runtime, const std::vector<Share>& shares);

  /// What codelets::stripe_residual writes for residual number `number`, and its scratch memory.
  [[nodiscard]] const Tile<sums::SquareSum>& sums(std::size_t s, Index number) const;
  [[nodiscard]] const Tile<sums::SquareSum>& work(std::size_t s) const;

  /// Waits for the sums of a residual. Added in the order of the stripes, so that all ranks decide alike.
  /// @param diagonal d, which the sums are over @param lifted see StripedProblem::lifted_squares
  /// @return none where a task has failed, on any rank. @throw Stall
  [[nodiscard]] std::optional<Norms> norms(Index number, double diagonal, const Scaled& lifted) const;
  /// Waits, too. How much later than the first of this rank's workers the last one has the sums of a residual
  /// that was just submitted, in seconds. @throw as seconds_until_done
  [[nodiscard]] double spread(Index number) const;

 private:
  Runtime* runtime_;
  std::vector<Share> shares_;
  std::vector<Tile<sums::SquareSum>> sums_[2];  // of each stripe
  std::vector<Tile<sums::SquareSum>> work_;     // one per rank
};

/// What an iterative method consists of. All but `norms`, `spread` and `store` submit tasks, and wait for
/// nothing but room for them (Options::window).
struct Steps {
  std::function<void()> load;  ///< the right-hand side and the first guess, to the workers
  std::function<void(Index sweeps)> sweep;
  std::function<void(Index number)> submit_residual;
  /// Of a residual that was submitted; not more than two are pending. None: a task has failed.
  std::function<std::optional<Norms>(Index number)> norms;
  std::function<double(Index number)> spread;  ///< see ResidualSums
  std::function<void()> store;                 ///< the result, to where the caller wants it; may wait
};

/// Sweeps until the tolerance is reached, sweeps are used up or there is no sense in going on.
/// @param sweeps       at most so many; 0: no limit
/// @param check_every  sweeps between two residuals
/// @return
/// - reason: solved (the tolerance was reached, or none was given), iteration_limit, stagnation, divergence,
///   not_finite (see Convergence).
/// - iterations: sweeps. They may be check_every more than the tolerance took, as the sums of a residual are
///   looked at while the next sweeps go on.
/// - residual_history: scaled, one each check_every sweeps and one at the end, the first before any sweep.
/// - seconds: "load" (to the workers, arranged, and the first residual), "sweeps" (with the residuals between
///   them), "residual" (the last one, which all workers begin together), "spread" (how much earlier than the
///   last worker of this rank the first one finished it, [Czapinski 2014] 3.2.6: what an unequal division costs, to be
///   compared with "residual"), "store".
/// - traffic: of this rank.
///
/// @throw TaskFailure: not later than two residuals after the task. @throw Stall; std::system_error: a thread
/// that measures the spread could not be started.
Report iterate(Runtime& runtime, Index sweeps, Index check_every, const Convergence::Expectation& expected,
               const Steps& steps);

}  // namespace asterism::relaxation
