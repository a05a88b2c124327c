/// \file
/// The loop of an iterative method: work, submit a residual, look at an earlier one, decide.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "../../../runtime/report.hpp"
#include "../../../runtime/runtime.hpp"
#include "convergence.hpp"
#include "observer.hpp"

namespace asterism {

/// What a method consists of. `load`, `step` and `submit_residual` submit tasks, and wait for nothing but room for
/// them (Options::window). With several ranks every rank makes the same calls.
struct Steps {
  std::function<void()> load;  ///< the right-hand side and the first guess, to the workers
  std::function<void(Index iterations)> step;
  /// Of the iterate as it is. They are numbered 0, 1, 2, ...; the norms of no more than two are not looked at yet.
  std::function<void(Index number)> submit_residual;
  /// Waits for those of a residual. The same on all ranks: sums over ranks (sum_over_ranks), or a tile on every rank
  /// that has them (all_reduce). None, then on all ranks: a task has failed.
  std::function<std::optional<Norms>(Index number)> norms;
  std::function<void()> store;  ///< the result, to where the caller wants it; may wait
  /// If there is one, the last residual is always taken apart from the steps, and this is asked for its seconds: how
  /// much later than the first worker the last one had it.
  std::function<double(Index number)> spread = {};
};

/// When a residual is looked at.
enum class Look {
  later,  ///< when the steps after it, and the next residual, have been submitted: no worker waits for a decision
  at_once,  ///< before the next step: no step too many is made, but the workers wait for the decision
};

struct IterationSettings {
  Index limit = 0;         ///< iterations at most; 0: no limit
  Index check_every = 1;   ///< iterations between two residuals, at least 1
  Index rarest_check = 0;  ///< up to so many where they are an eighth of those before at most
  StoppingRule rule = {};
  Look look = Look::later;
  Observer observer = {};
};

/// Iterates until the tolerance is reached, iterations are used up or there is no sense in going on. With several
/// ranks: collective.
/// @return
/// - reason: solved (the tolerance was reached, or none was given), iteration_limit, stagnation, divergence,
///   not_finite (see Convergence).
/// - iterations. Where residuals are looked at later they may be as many more than the tolerance took as are between two
///   residuals.
/// - residual_history, residual_iterations: scaled residuals, all that were looked at and one at the end, the first
///   before any iteration; of very many every second, every fourth, ... (see ResidualHistory).
/// - seconds: "load" (to the workers, arranged, and the first residual), "sweeps" (the steps, with the residuals
///   between them), "residual" (the last one, which all workers begin together), "spread" (if steps.spread tells it),
///   "store".
/// - traffic: of this rank.
///
/// @throw TaskFailure: not later than two residuals after the task. @throw Stall. What the observer throws: see
/// Observer.
Report iterate(Runtime& runtime, const IterationSettings& settings, const Steps& steps);

/// One of several iterations that go along together.
struct JoinedIteration {
  IterationSettings settings;
  Steps steps;  ///< `step` is not called
};

/// Several iterations that have work in common, each to its own end: every one of them makes as many iterations between
/// looks, and as many in vain, as it would alone.
/// @param step makes so many iterations of each; 0: it has ended
/// @return as iterate() for each; the first one has the seconds and the traffic of all, but for "residual" and "store"
/// @throw as iterate()
std::vector<Report> iterate_together(Runtime& runtime, const std::vector<JoinedIteration>& iterations,
                                     const std::function<void(const std::vector<Index>& counts)>& step);

}  // namespace asterism
