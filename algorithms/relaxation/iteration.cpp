#include "iteration.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>

#include "../../runtime/collectives.hpp"
#include "../common/one_per_rank.hpp"
#include "../common/stopwatch.hpp"
#include "speeds.hpp"

namespace asterism::relaxation {

using sums::SquareSum;

namespace {

/// Residuals from their submission to the verdict.
class Residuals {
 public:
  Residuals(const Convergence::Expectation& expected, const Steps& steps)
      : convergence_(expected), steps_(steps) {}

  /// That of the iterate after so many sweeps.
  void submit(Index sweeps) {
    steps_.submit_residual(number_of_next());
    submitted_.push_back(sweeps);
  }
  /// Waits for the first one that nobody has looked at. @return whether all is well: no task has failed
  [[nodiscard]] bool look() {
    const std::optional<Norms> norms = steps_.norms(static_cast<Index>(seen_));
    if (!norms) return false;
    verdict_ = convergence_.judge(*norms, submitted_[seen_]);
    ++seen_;
    return true;
  }
  /// The last one of all, which is not waited for by look(); not judged where the same iterate was judged
  /// before.
  void look_at_last(const Norms& norms, Index sweeps) {
    if (seen_ > 0 && submitted_[seen_ - 1] == sweeps) return;
    const std::optional<Reason> verdict = convergence_.judge(norms, sweeps);
    if (!verdict_ || verdict_ == Reason::solved) verdict_ = verdict;
  }

  [[nodiscard]] Index number_of_next() const { return static_cast<Index>(submitted_.size()); }
  [[nodiscard]] std::size_t unseen() const { return submitted_.size() - seen_; }
  [[nodiscard]] std::optional<Reason> verdict() const { return verdict_; }
  [[nodiscard]] const std::vector<double>& history() const { return convergence_.history(); }

 private:
  Convergence convergence_;
  const Steps& steps_;
  std::vector<Index> submitted_;  // after so many sweeps,
  std::size_t seen_ = 0;          // and so many of them have been looked at
  std::optional<Reason> verdict_;
};

}  // namespace

ResidualSums::ResidualSums(Runtime& runtime, const std::vector<Share>& shares)
    : runtime_(&runtime), shares_(shares), work_(one_per_rank<SquareSum>(runtime, 1, residual_scratch)) {
  for (const Share& share : shares)
    for (std::vector<Tile<SquareSum>>& sums : sums_)
      sums.emplace_back(runtime, 1, residual_parts, share.rank);
}

const Tile<SquareSum>& ResidualSums::sums(std::size_t s, Index number) const { return sums_[number % 2][s]; }

const Tile<SquareSum>& ResidualSums::work(std::size_t s) const {
  return work_[static_cast<std::size_t>(shares_[s].rank)];
}

std::optional<Norms> ResidualSums::norms(Index number, double diagonal, const Scaled& lifted) const {
  constexpr std::size_t parts = residual_parts;
  std::vector<SquareSum> all(shares_.size() * parts);
  for (std::size_t s = 0; s < shares_.size(); ++s) {
    const Tile<SquareSum>& tile = sums(s, number);
    if (tile.owner() != runtime_->rank()) continue;
    tile.wait();
    if (runtime_->task_has_failed()) break;  // a view may throw it, and the other ranks would wait for this one
    const HostView<SquareSum> view(tile, HostView<SquareSum>::Access::read);
    std::copy_n(view.row(0), parts, &all[s * parts]);
  }
  if (any(*runtime_, runtime_->task_has_failed())) return {};
  sum_over_ranks(*runtime_, all);
  std::array<SquareSum, parts> total{};
  for (std::size_t i = 0; i < all.size(); ++i) total[i % parts] += all[i];
  const Scaled source = total[source_squares].total() + lifted;
  return Norms{diagonal * total[residual_squares].root(), total[solution_squares].root(),
               diagonal * (source < 0 ? 0 : sqrt(source))};
}

double ResidualSums::spread(Index number) const {
  std::map<std::pair<Where, int>, std::vector<const detail::TileBase*>> tiles_of;  // this rank's workers
  for (std::size_t s = 0; s < shares_.size(); ++s)
    if (shares_[s].rank == runtime_->rank())
      tiles_of[{shares_[s].where, shares_[s].worker}].push_back(&sums(s, number));
  if (tiles_of.empty()) return 0;
  std::vector<std::vector<const detail::TileBase*>> tiles;
  for (const auto& [worker, its_tiles] : tiles_of) tiles.push_back(its_tiles);
  const std::vector<double> finished = seconds_until_done(tiles);
  const auto [first, last] = std::minmax_element(finished.begin(), finished.end());
  return *last - *first;
}

Report iterate(Runtime& runtime, Index sweeps, Index check_every, const Convergence::Expectation& expected,
               const Steps& steps) {
  Residuals residuals(expected, steps);
  Report report;
  Stopwatch watch;
  const Traffic before = runtime.traffic();
  steps.load();
  residuals.submit(0);
  runtime.wait();
  report.seconds["load"] = watch.lap();

  const Index limit = sweeps > 0 ? sweeps : std::numeric_limits<Index>::max();
  bool well = expected.tolerance == 0 || residuals.look();  // the first guess may do
  Index done = 0;
  while (well && done < limit && !residuals.verdict()) {
    const Index next = std::min(check_every, limit - done);
    steps.sweep(next);
    done += next;
    if (done < limit) residuals.submit(done);
    // A residual is looked at when the sweeps after it, and the next residual, have been submitted: the
    // workers never wait for a decision.
    if (residuals.unseen() > 1) well = residuals.look();
    if (well && residuals.verdict() == Reason::solved && residuals.unseen() > 0)
      well = residuals.look();  // whether it still holds after the last sweeps
  }
  runtime.wait();  // throws where all is not well
  report.seconds["sweeps"] = watch.lap();
  while (!residuals.verdict() && residuals.unseen() > 0 && residuals.look()) {
  }

  const Index last = residuals.number_of_next();
  watch.lap();
  steps.submit_residual(last);
  report.seconds["spread"] = steps.spread(last);
  const std::optional<Norms> norms = steps.norms(last);
  report.seconds["residual"] = watch.lap();
  if (norms) residuals.look_at_last(*norms, done);  // else storing throws

  steps.store();
  report.seconds["store"] = watch.lap();
  report.reason =
      residuals.verdict().value_or(expected.tolerance > 0 ? Reason::iteration_limit : Reason::solved);
  report.iterations = done;
  report.residual_history = residuals.history();
  report.traffic = runtime.traffic() - before;
  return report;
}

}  // namespace asterism::relaxation
