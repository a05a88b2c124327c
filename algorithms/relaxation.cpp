#include "relaxation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "../runtime/error.hpp"

namespace asterism::relaxation {
namespace {

using Clock = std::chrono::steady_clock;

/// The seconds since it was last asked.
class Stopwatch {
 public:
  double lap() {
    const auto now = Clock::now();
    return std::chrono::duration<double>(now - std::exchange(last_, now)).count();
  }

 private:
  Clock::time_point last_ = Clock::now();
};

/// Writes value(row, column) to a tile, where this rank owns it.
template <class T, class Value>
void set(const Runtime& runtime, const Tile<T>& tile, Value value) {
  if (tile.owner() != runtime.rank()) return;
  const HostView<T> view(tile, HostView<T>::Access::write);
  for (Index i = 0; i < view.rows(); ++i)
    for (Index j = 0; j < view.cols(); ++j) view(i, j) = static_cast<T>(value(i, j));
}

/// Up to the next multiple.
Index rounded_up(Index number, Index to) { return (number + to - 1) / to * to; }

/// ||A||_inf of the discrete Laplacian: the diagonal, and as many neighbours as a node of the inside has.
double operator_norm(const kernels::Discretisation& grid, Index rows, Index nodes) {
  return grid.diagonal * (1 + grid.along_y * static_cast<double>(std::min<Index>(2, rows - 1)) +
                          grid.along_x * static_cast<double>(std::min<Index>(2, nodes - 1)));
}

/// Often enough to notice the tolerance in time, seldom enough to cost little.
Index choose_check_every(const Settings& settings, Index rows, Index nodes) {
  if (settings.tolerance == 0) return settings.sweeps;
  return std::clamp<Index>(std::min(rows, nodes) / 4, 20, 1000);
}

}  // namespace

template <class T>
Solver<T>::Solver(Runtime& runtime, const Problem& problem, const Settings& settings)
    : runtime_(&runtime),
      problem_(problem),
      settings_(checked(problem, settings)),
      grid_(discretise(problem)) {
  if (!settings_.omega) settings_.omega = settings_.method == Method::sor ? grid_.optimal_omega() : 1;
  if (settings_.check_every == 0) settings_.check_every = choose_check_every(settings_, rows(), nodes());

  const Machine machine = runtime.machine();
  cpus_ = machine.count(WorkerKind::cpu);
  gpus_ = machine.count(WorkerKind::cuda);
  Cut cut = cut_rows<T>(choose_workers<T>(runtime, problem, settings_), problem, settings_);
  shares_ = std::move(cut.shares);
  halo_ = cut.halo;
  settings_.stripes = static_cast<Index>(shares_.size());
  settings_.sweeps_per_task = cut.sweeps_per_task;
  settings_.check_every = rounded_up(settings_.check_every, settings_.sweeps_per_task);
  if (settings_.method == Method::jacobi) settings_.arrangement = kernels::Arrangement::natural;
  make_tiles();
}

template <class T>
void Solver<T>::make_tiles() {
  for (int rank = 0; rank < runtime_->ranks(); ++rank) {
    frame_rows_.emplace_back(*runtime_, 2, nodes() + 2, rank);
    if (overlaps()) border_work_.emplace_back(*runtime_, 1, kernels::border_scratch(stripe(0)), rank);
    residual_work_.emplace_back(*runtime_, 1, kernels::residual_scratch, rank);
    nothing_.emplace_back(*runtime_, 1, 1, rank);
    set(*runtime_, nothing_.back(), [](Index, Index) { return 0; });
    set(*runtime_, frame_rows_.back(), [&](Index side, Index c) {
      const bool corner = c == 0 || c == nodes() + 1;  // no node's neighbour
      return corner ? 0 : value_at(side == 0 ? problem_.y_lower : problem_.y_upper, c - 1);
    });
  }
  for (std::size_t s = 0; s < shares_.size(); ++s) {
    const kernels::Stripe shape = stripe(s);
    const auto tile = [&](Index r, Index c) { return Tile<T>(*runtime_, r, c, shares_[s].rank); };
    StripeTiles tiles{tile(shape.tile_rows(), shape.tile_cols()),
                      tile(shape.tile_rows(), shape.tile_cols()),
                      tile(shape.tile_rows(), shape.tile_cols()),
                      tile(1, 1),
                      tile(shape.tile_rows(), 2),
                      {tile(halo_, shape.tile_cols()), tile(halo_, shape.tile_cols())},
                      {tile(halo_, shape.tile_cols()), tile(halo_, shape.tile_cols())},
                      {Tile<double>(*runtime_, 1, kernels::residual_parts, shares_[s].rank),
                       Tile<double>(*runtime_, 1, kernels::residual_parts, shares_[s].rank)}};
    set(*runtime_, tiles.no_source, [](Index, Index) { return 0; });
    set(*runtime_, tiles.frame_columns, [&](Index r, Index side) {
      const Index row = shape.first_row - halo_ + r;
      const bool corner = row < 0 || row >= rows();
      return corner ? 0 : value_at(side == 0 ? problem_.x_lower : problem_.x_upper, row);
    });
    tiles_.push_back(std::move(tiles));
  }
}

template <class T>
kernels::Stripe Solver<T>::stripe(std::size_t s) const {
  return {.rows = shares_[s].rows,
          .nodes = nodes(),
          .halo = halo_,
          .first_row = shares_[s].first_row,
          .first = s == 0,
          .last = s + 1 == shares_.size(),
          .arrangement = settings_.arrangement};
}

template <class T>
Hints Solver<T>::hints(std::size_t s, Index sweeps) const {
  const Share& share = shares_[s];
  Hints hints{
      .where = share.where, .cost = static_cast<std::uint64_t>(sweeps), .label = fmt::format("stripe {}", s)};
  // A pinned task runs its codelet's first implementation; where there is no choice of workers, StarPU
  // chooses among the implementations by its models.
  if ((share.where == Where::cuda ? gpus_ : cpus_) > 1) hints.worker = share.worker;
  return hints;
}

template <class T>
bool Solver<T>::overlaps() const {
  return settings_.exchange == Exchange::overlapped && shares_.size() > 1;
}

/// What belongs into the ghost rows; at an end of the grid any tile of this shape, which nobody looks at.
template <class T>
const Tile<T>& Solver<T>::above(std::size_t s, int set) const {
  return s > 0 ? tiles_[s - 1].bottom[set] : tiles_[s].top[set];
}
template <class T>
const Tile<T>& Solver<T>::below(std::size_t s, int set) const {
  return s + 1 < shares_.size() ? tiles_[s + 1].top[set] : tiles_[s].bottom[set];
}

template <class T>
const Tile<T>& Solver<T>::source(std::size_t s) const {
  return has_source_ ? tiles_[s].g : tiles_[s].no_source;
}

template <class T>
Index Solver<T>::first_row() const {
  for (const Share& share : shares_)
    if (share.rank >= runtime_->rank()) return share.first_row;
  return rows();
}

template <class T>
Index Solver<T>::row_count() const {
  Index count = 0;
  for (const Share& share : shares_)
    if (share.rank == runtime_->rank()) count += share.rows;
  return count;
}

/// Whether there is an f: on all ranks that have rows, or on none.
template <class T>
bool Solver<T>::agree_on_source(const T* f) const {
  const double mine = row_count() > 0 ? 1 : 0;
  std::array<double, 2> ranks{mine, f != nullptr ? mine : 0};
  runtime_->sum_over_ranks(ranks.data(), ranks.size());
  if (ranks[1] > 0 && ranks[1] < ranks[0])
    throw Error(
        fmt::format("f is given on {} of the {} ranks that have rows: give it on all of them, or on none",
                    ranks[1], ranks[0]));
  return ranks[1] > 0;
}

/// By how much ||b||^2 exceeds ||f||^2: b is f less what the operator takes from the frame.
template <class T>
double Solver<T>::lifted_squares(const T* f) const {
  const double y = grid_.along_y * grid_.diagonal, x = grid_.along_x * grid_.diagonal;
  const Index m = rows(), n = nodes();
  double sum = 0;
  for (Index i = first_row(); i < first_row() + row_count(); ++i) {
    const auto add = [&](Index j) {
      double lift = 0;
      if (i == 0) lift -= y * value_at(problem_.y_lower, j);
      if (i == m - 1) lift -= y * value_at(problem_.y_upper, j);
      if (j == 0) lift -= x * value_at(problem_.x_lower, i);
      if (j == n - 1) lift -= x * value_at(problem_.x_upper, i);
      const double value = has_source_ ? static_cast<double>(f[(i - first_row()) * n + j]) : 0;
      sum += (2 * value + lift) * lift;
    };
    const bool along_side = i == 0 || i == m - 1;
    for (Index j = 0; j < n; j = along_side || j == n - 1 ? j + 1 : n - 1) add(j);
  }
  runtime_->sum_over_ranks(&sum, 1);
  return sum;
}

/// Rows of the caller's that a stripe is made of.
template <class T>
Tile<T> Solver<T>::borrow(T* rows, std::size_t s) const {
  const Share& share = shares_[s];
  const bool mine = share.rank == runtime_->rank();
  return Tile<T>(*runtime_, mine ? rows + (share.first_row - first_row()) * nodes() : nullptr, share.rows,
                 nodes(), nodes(), share.rank);
}

/// f and u to the workers, arranged in stripes.
template <class T>
void Solver<T>::load(const T* f, T* u) {
  std::vector<Tile<T>> borrowed;
  borrowed.reserve(2 * shares_.size());
  set_ = 0;
  for (std::size_t s = 0; s < shares_.size(); ++s) {
    StripeTiles& t = tiles_[s];
    const Tile<T>& guess = borrowed.emplace_back(borrow(u, s));
    const Tile<T>& rows_of_f = has_source_ ? borrowed.emplace_back(borrow(const_cast<T*>(f), s))  // only read
                                           : mine(nothing_, s);
    codelets::fill_stripe<T>({stripe(s), grid_.diagonal, has_source_}, rows_of_f, guess, mine(frame_rows_, s),
                             t.frame_columns, t.u, t.other, source(s), hints(s));
    codelets::copy_edges<T>(stripe(s), t.u, t.top[0], t.bottom[0], hints(s));
    if (has_source_) codelets::copy_edges<T>(stripe(s), t.g, t.top[1], t.bottom[1], hints(s));
  }
  for (std::size_t s = 0; s < shares_.size() && has_source_; ++s)
    codelets::fill_ghosts<T>(stripe(s), tiles_[s].g, above(s, 1), below(s, 1), hints(s));
}

template <class T>
void Solver<T>::store(T* u) {
  std::vector<Tile<T>> borrowed;
  borrowed.reserve(shares_.size());
  for (std::size_t s = 0; s < shares_.size(); ++s) {
    const Tile<T>& result = borrowed.emplace_back(borrow(u, s));
    codelets::store_stripe<T>(stripe(s), tiles_[s].u, result, hints(s));
    result.fetch();
  }
  runtime_->wait();
}

template <class T>
void Solver<T>::sweep(Index sweeps) {
  for (Index left = sweeps; left > 0; left -= settings_.sweeps_per_task)
    task_step(std::min(left, settings_.sweeps_per_task));
}

/// So many sweeps of every stripe, then the exchange, as thesis Algorithm 4.5 has it for each colour: border
/// rows first, and what the neighbours wait for is on its way to them while the interior is relaxed.
template <class T>
void Solver<T>::task_step(Index sweeps) {
  if (overlaps()) {
    for (std::size_t s = 0; s < shares_.size(); ++s) relax_border(s, sweeps);
    for (std::size_t s = 0; s < shares_.size(); ++s) relax_interior(s, sweeps);
  } else {
    for (std::size_t s = 0; s < shares_.size(); ++s) relax_all(s, sweeps);
  }
  if (sweeps % 2 == 1)
    for (StripeTiles& t : tiles_) std::swap(t.u, t.other);
  set_ = 1 - set_;
}

template <class T>
void Solver<T>::relax_border(std::size_t s, Index sweeps) {
  StripeTiles& t = tiles_[s];
  Hints first = hints(s, sweeps);
  first.priority = 1;
  if (settings_.method == Method::jacobi)
    codelets::jacobi_border<T>(jacobi_args(grid_, stripe(s), sweeps, has_source_), t.u, source(s),
                               above(s, set_), below(s, set_), t.top[1 - set_], t.bottom[1 - set_],
                               mine(border_work_, s), first);
  else
    codelets::relax_colours_border<T>(colour_args(grid_, stripe(s), sweeps, has_source_, settings_), t.u,
                                      source(s), above(s, set_), below(s, set_), t.top[1 - set_],
                                      t.bottom[1 - set_], mine(border_work_, s), first);
}

template <class T>
void Solver<T>::relax_interior(std::size_t s, Index sweeps) {
  StripeTiles& t = tiles_[s];
  if (settings_.method == Method::jacobi)
    codelets::jacobi_interior<T>(jacobi_args(grid_, stripe(s), sweeps, has_source_), t.u, t.other, source(s),
                                 above(s, set_), below(s, set_), hints(s, sweeps));
  else
    codelets::relax_colours_interior<T>(colour_args(grid_, stripe(s), sweeps, has_source_, settings_), t.u,
                                        t.other, source(s), above(s, set_), below(s, set_), hints(s, sweeps));
}

template <class T>
void Solver<T>::relax_all(std::size_t s, Index sweeps) {
  StripeTiles& t = tiles_[s];
  if (settings_.method == Method::jacobi)
    codelets::jacobi<T>(jacobi_args(grid_, stripe(s), sweeps, has_source_), t.u, t.other, source(s),
                        above(s, set_), below(s, set_), t.top[1 - set_], t.bottom[1 - set_],
                        hints(s, sweeps));
  else
    codelets::relax_colours<T>(colour_args(grid_, stripe(s), sweeps, has_source_, settings_), t.u, t.other,
                               source(s), above(s, set_), below(s, set_), t.top[1 - set_], t.bottom[1 - set_],
                               hints(s, sweeps));
}

template <class T>
void Solver<T>::submit_residual(Index number) {
  for (std::size_t s = 0; s < shares_.size(); ++s) {
    StripeTiles& t = tiles_[s];
    codelets::stripe_residual<T>({stripe(s), grid_.along_y, grid_.along_x, grid_.diagonal, has_source_}, t.u,
                                 source(s), above(s, set_), below(s, set_), t.sums[number % 2],
                                 mine(residual_work_, s), hints(s));
  }
}

/// Waits for the sums of a residual. Added in the order of the stripes, so that all ranks decide alike.
template <class T>
Norms Solver<T>::residual(Index number, double lifted) const {
  constexpr std::size_t parts = kernels::residual_parts;
  std::vector<double> sums(shares_.size() * parts);
  for (std::size_t s = 0; s < shares_.size(); ++s) {
    const Tile<double>& tile = tiles_[s].sums[number % 2];
    if (tile.owner() != runtime_->rank()) continue;
    const HostView<double> view(tile, HostView<double>::Access::read);
    std::copy_n(view.row(0), parts, &sums[s * parts]);
  }
  runtime_->sum_over_ranks(sums.data(), static_cast<Index>(sums.size()));
  std::array<double, parts> total{};
  for (std::size_t i = 0; i < sums.size(); ++i) total[i % parts] += sums[i];
  return {std::sqrt(total[kernels::residual_squares]), std::sqrt(total[kernels::solution_squares]),
          std::sqrt(std::max(0.0, total[kernels::source_squares] + lifted))};
}

/// How much later than the first of this rank's workers the last one has the sums of a residual that was just
/// submitted.
template <class T>
double Solver<T>::spread_of_finishing(Index number) const {
  std::vector<const detail::TileBase*> sums;
  std::vector<std::pair<Where, int>> workers;
  for (std::size_t s = 0; s < shares_.size(); ++s)
    if (shares_[s].rank == runtime_->rank()) {
      sums.push_back(&tiles_[s].sums[number % 2]);
      workers.emplace_back(shares_[s].where, shares_[s].worker);
    }
  const std::vector<double> seconds = seconds_until_done(sums);
  std::map<std::pair<Where, int>, double> finished;
  for (std::size_t i = 0; i < seconds.size(); ++i)
    finished[workers[i]] = std::max(finished[workers[i]], seconds[i]);
  if (finished.empty()) return 0;
  const auto [first, last] = std::minmax_element(
      finished.begin(), finished.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return last->second - first->second;
}

template <class T>
Report Solver<T>::solve(const T* f, T* u) {
  has_source_ = agree_on_source(f);
  const double lifted = lifted_squares(f);
  Convergence convergence(
      {.tolerance = settings_.tolerance,
       .operator_norm = operator_norm(grid_, rows(), nodes()),
       .spectral_radius = spectral_radius(settings_.method, *settings_.omega, grid_.jacobi_radius),
       .extents = rows() + nodes()});
  Report report;
  Stopwatch watch;
  const Traffic before = runtime_->traffic();

  load(f, u);
  submit_residual(0);
  runtime_->wait();
  report.seconds["load"] = watch.lap();

  // The sums of a residual are looked at when the sweeps after it, and the next residual, have been
  // submitted: the workers never wait for a decision.
  const Index limit = settings_.sweeps > 0 ? settings_.sweeps : std::numeric_limits<Index>::max();
  std::vector<Index> asked{0};  // after so many sweeps residuals were submitted,
  std::size_t seen = 0;         // and so many of them have been looked at
  std::optional<Reason> verdict;
  const auto look = [&] {
    verdict = convergence.judge(residual(static_cast<Index>(seen), lifted), asked[seen]);
    ++seen;
  };
  Index done = 0;
  while (done < limit && !verdict) {
    const Index sweeps = std::min(settings_.check_every, limit - done);
    sweep(sweeps);
    done += sweeps;
    if (done < limit) {
      submit_residual(static_cast<Index>(asked.size()));
      asked.push_back(done);
    }
    if (seen + 1 < asked.size()) look();
    if (verdict == Reason::solved && seen < asked.size())
      look();  // whether it still holds after the last sweeps
  }
  runtime_->wait();
  report.seconds["sweeps"] = watch.lap();

  while (!verdict && seen < asked.size()) look();
  const auto number = static_cast<Index>(asked.size());
  watch.lap();
  submit_residual(number);
  report.seconds["spread"] = spread_of_finishing(number);
  const Norms last = residual(number, lifted);
  report.seconds["residual"] = watch.lap();
  const bool is_seen = seen > 0 && asked[seen - 1] == done;
  if (!is_seen) {
    const std::optional<Reason> final_verdict = convergence.judge(last, done);
    if (!verdict || verdict == Reason::solved) verdict = final_verdict;
  }

  store(u);
  report.seconds["store"] = watch.lap();
  report.reason = verdict.value_or(settings_.tolerance > 0 ? Reason::iteration_limit : Reason::solved);
  report.iterations = done;
  report.residual_history = convergence.history();
  report.traffic = runtime_->traffic() - before;
  return report;
}

template class Solver<float>;
template class Solver<double>;

}  // namespace asterism::relaxation
