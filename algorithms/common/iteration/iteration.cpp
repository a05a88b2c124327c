#include "iteration.hpp"

#include <algorithm>
#include <deque>
#include <limits>

#include "../../../runtime/collectives.hpp"
#include "../stopwatch.hpp"
#include "residual_history.hpp"

namespace asterism {
namespace {

/// Residuals from their submission to the verdict.
class Residuals {
 public:
  Residuals(Runtime& runtime, const IterationSettings& settings, const Steps& steps)
      : runtime_(runtime),
        settings_(settings),
        steps_(steps),
        convergence_(settings.rule),
        observed_(any(runtime, static_cast<bool>(settings.observer))) {}

  /// That of the iterate after so many iterations.
  void submit(Index iterations) {
    steps_.submit_residual(submitted_++);
    unseen_.push_back(iterations);
  }
  /// Waits for the first one that nobody has looked at. @return whether all is well: no task has failed
  [[nodiscard]] bool look() {
    const std::optional<Norms> norms = steps_.norms(submitted_ - static_cast<Index>(unseen_.size()));
    if (!norms) return false;
    verdict_ = judge(*norms, unseen_.front());
    unseen_.pop_front();
    return true;
  }
  /// Looks at those whose turn it is. @return as look()
  [[nodiscard]] bool look_in_turn() {
    const std::size_t left_for_later = settings_.look == Look::later ? 1 : 0;
    if (unseen_.size() > left_for_later && !look()) return false;
    // Whether it still holds after the last steps.
    return verdict_ != Reason::solved || unseen_.empty() || look();
  }
  /// The last one of all, taken apart; not judged where the same iterate was judged before.
  void see_last(const Norms& norms, Index iterations) {
    if (is_known(iterations)) return;
    const std::optional<Reason> verdict = judge(norms, iterations);
    if (!verdict_ || verdict_ == Reason::solved) verdict_ = verdict;
  }

  [[nodiscard]] bool is_known(Index iterations) const { return judged_at_ == iterations; }
  [[nodiscard]] Index number_of_next() const { return submitted_; }
  [[nodiscard]] bool all_seen() const { return unseen_.empty(); }
  [[nodiscard]] std::optional<Reason> verdict() const { return verdict_; }
  [[nodiscard]] const ResidualHistory& history() const { return history_; }

 private:
  std::optional<Reason> judge(const Norms& norms, Index iterations) {
    const std::optional<Reason> verdict = convergence_.judge(norms, iterations);
    judged_at_ = iterations;
    history_.add(iterations, convergence_.scaled_residual());
    if (observed_) tell({iterations, convergence_.scaled_residual(), watch_.total()});
    return verdict;
  }

  void tell(const IterationState& state) {
    try {
      agree(runtime_, [&] {
        if (settings_.observer) settings_.observer(state);
      });
    } catch (...) {
      runtime_.wait();  // for the tasks whose tiles the caller is about to end
      throw;
    }
  }

  Runtime& runtime_;
  const IterationSettings& settings_;
  const Steps& steps_;
  Convergence convergence_;
  const bool observed_;  // on any rank
  const Stopwatch watch_;
  ResidualHistory history_;
  Index submitted_ = 0;
  std::deque<Index> unseen_;  // after so many iterations each was submitted
  std::optional<Index> judged_at_;
  std::optional<Reason> verdict_;
};

/// @return iterations that were made
Index work(const IterationSettings& settings, const Steps& steps, Residuals& residuals) {
  const Index limit = settings.limit > 0 ? settings.limit : std::numeric_limits<Index>::max();
  // The first guess may do.
  bool well = (settings.rule.tolerance == 0 && settings.look == Look::later) || residuals.look();
  Index done = 0;
  while (well && done < limit && !residuals.verdict()) {
    const Index next = std::min(settings.check_every, limit - done);
    steps.step(next);
    done += next;
    if (done < limit) residuals.submit(done);
    well = residuals.look_in_turn();
  }
  return done;
}

}  // namespace

Report iterate(Runtime& runtime, const IterationSettings& settings, const Steps& steps) {
  Residuals residuals(runtime, settings, steps);
  Report report;
  Stopwatch watch;
  const Traffic before = runtime.traffic();
  steps.load();
  residuals.submit(0);
  runtime.wait();
  report.seconds["load"] = watch.lap();

  report.iterations = work(settings, steps, residuals);
  runtime.wait();  // throws where all is not well
  report.seconds["sweeps"] = watch.lap();
  while (!residuals.verdict() && !residuals.all_seen() && residuals.look()) {
  }

  watch.lap();
  if (steps.spread || !residuals.is_known(report.iterations)) {
    const Index last = residuals.number_of_next();
    steps.submit_residual(last);
    if (steps.spread) report.seconds["spread"] = steps.spread(last);
    const std::optional<Norms> norms = steps.norms(last);
    report.seconds["residual"] = watch.lap();
    if (norms) residuals.see_last(*norms, report.iterations);  // else storing throws
  }

  steps.store();
  report.seconds["store"] = watch.lap();
  report.reason =
      residuals.verdict().value_or(settings.rule.tolerance > 0 ? Reason::iteration_limit : Reason::solved);
  report.residual_history = residuals.history().residuals();
  report.residual_iterations = residuals.history().iterations();
  report.traffic = runtime.traffic() - before;
  return report;
}

}  // namespace asterism
