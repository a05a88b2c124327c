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

/// One of those that go along together.
class Going {
 public:
  Going(Runtime& runtime, const JoinedIteration& its)
      : settings_(its.settings),
        steps_(its.steps),
        limit_(settings_.limit > 0 ? settings_.limit : std::numeric_limits<Index>::max()),
        residuals_(runtime, settings_, steps_) {}

  void load() {
    steps_.load();
    residuals_.submit(0);
  }
  /// The first guess may do. @return as Residuals::look()
  [[nodiscard]] bool look_at_guess() {
    return (settings_.rule.tolerance == 0 && settings_.look == Look::later) || residuals_.look();
  }
  /// How many iterations come next; 0: it has ended.
  [[nodiscard]] Index next() const {
    const Index between = std::max(settings_.check_every, std::min(settings_.rarest_check, done_ / 8));
    return residuals_.verdict() ? 0 : std::min(between, limit_ - done_);
  }
  /// So many iterations were submitted.
  void add(Index iterations) {
    done_ += iterations;
    if (done_ < limit_) residuals_.submit(done_);
  }
  [[nodiscard]] bool look_in_turn() { return residuals_.look_in_turn(); }
  void look_at_rest() {
    while (!residuals_.verdict() && !residuals_.all_seen() && residuals_.look()) {
    }
  }

  /// The last residual, and the result to where it is wanted.
  void end(Report& report) {
    Stopwatch watch;
    report.iterations = done_;
    if (steps_.spread || !residuals_.is_known(done_)) {
      const Index last = residuals_.number_of_next();
      steps_.submit_residual(last);
      if (steps_.spread) report.seconds["spread"] = steps_.spread(last);
      const std::optional<Norms> norms = steps_.norms(last);
      report.seconds["residual"] = watch.lap();
      if (norms) residuals_.see_last(*norms, done_);  // else storing throws
    }
    steps_.store();
    report.seconds["store"] = watch.lap();
    report.reason = residuals_.verdict().value_or(settings_.rule.tolerance > 0 ? Reason::iteration_limit
                                                                               : Reason::solved);
    report.residual_history = residuals_.history().residuals();
    report.residual_iterations = residuals_.history().iterations();
  }

 private:
  const IterationSettings& settings_;
  const Steps& steps_;
  const Index limit_;
  Residuals residuals_;
  Index done_ = 0;
};

/// Until all have ended, or a task has failed.
void work(std::deque<Going>& all, const std::function<void(const std::vector<Index>& counts)>& step) {
  bool well = true;
  for (Going& its : all) well = well && its.look_at_guess();
  while (well) {
    std::vector<Index> counts;
    for (const Going& its : all) counts.push_back(its.next());
    if (std::ranges::max(counts) == 0) return;
    step(counts);
    for (std::size_t k = 0; k < all.size(); ++k)
      if (counts[k] > 0) all[k].add(counts[k]);
    for (std::size_t k = 0; k < all.size(); ++k)
      if (counts[k] > 0) well = well && all[k].look_in_turn();
  }
}

}  // namespace

std::vector<Report> iterate_together(Runtime& runtime, const std::vector<JoinedIteration>& iterations,
                                     const std::function<void(const std::vector<Index>& counts)>& step) {
  std::deque<Going> all;  // they stay where they are
  for (const JoinedIteration& its : iterations) all.emplace_back(runtime, its);
  std::vector<Report> reports(iterations.size());
  Stopwatch watch;
  const Traffic before = runtime.traffic();
  for (Going& its : all) its.load();
  runtime.wait();
  reports.front().seconds["load"] = watch.lap();
  work(all, step);
  runtime.wait();  // throws where all is not well
  reports.front().seconds["sweeps"] = watch.lap();
  for (Going& its : all) its.look_at_rest();
  for (std::size_t k = 0; k < all.size(); ++k) all[k].end(reports[k]);
  reports.front().traffic = runtime.traffic() - before;
  return reports;
}

Report iterate(Runtime& runtime, const IterationSettings& settings, const Steps& steps) {
  return iterate_together(runtime, std::vector{JoinedIteration{settings, steps}},
                          [&](const std::vector<Index>& counts) { steps.step(counts.front()); })
      .front();
}

}  // namespace asterism
