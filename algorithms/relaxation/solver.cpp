#include "solver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "../common/one_per_rank.hpp"
#include "../common/statement.hpp"
#include "speeds.hpp"

namespace asterism::relaxation {
namespace {

/// Checks and completes what does not depend on the machine.
Settings completed(const Problem& problem, const Settings& given) {
  Settings s = checked(problem, given);
  if (!s.omega) s.omega = s.method == Method::sor ? discretise(problem).optimal_omega() : 1;
  if (s.check_every == 0)
    s.check_every = choose_check_every(s.sweeps, s.tolerance, std::min(problem.shape[0], problem.shape[1]));
  if (s.method == Method::jacobi) s.arrangement = Arrangement::natural;
  return s;
}

template <class T>
Cut cut_for_workers(Runtime& runtime, const Problem& problem, const Settings& settings) {
  Statement given = statement(problem, sizeof(T));
  given.add("method", settings.method).add("omega", settings.omega).add("sweeps", settings.sweeps);
  given.add("tolerance", settings.tolerance).add("sweeps between two residuals", settings.check_every);
  given.add("sweeps of a task", settings.sweeps_per_task).add("arrangement", settings.arrangement);
  given.add("exchange", settings.exchange).add("stripes", settings.stripes).add("balance", settings.balance);
  runtime.require_alike(given.text());
  const std::vector<Candidate> all = measured_workers<T>(runtime, problem, settings);
  return cut_rows<T>(choose_workers<T>(all, problem, settings), problem, settings);
}

}  // namespace

template <class T>
Solver<T>::Solver(Runtime& runtime, const Problem& problem, const Settings& settings)
    : runtime_(&runtime),
      settings_(completed(problem, settings)),
      cut_(cut_for_workers<T>(runtime, problem, settings_)),
      grid_(runtime, problem, cut_.shares),
      sums_(runtime, cut_.shares) {
  const Machine machine = runtime.machine();
  cpus_ = machine.count(WorkerKind::cpu);
  gpus_ = machine.count(WorkerKind::cuda);
  tasks_in_memory_ = tasks_in_memory(machine);
  settings_.stripes = static_cast<Index>(shares().size());
  settings_.sweeps_per_task = cut_.sweeps_per_task;
  if (settings.check_every == 0)
    settings_.check_every = rounded_up(settings_.check_every, settings_.sweeps_per_task);
  make_tiles();
}

template <class T>
void Solver<T>::make_tiles() {
  for (int rank = 0; rank < runtime_->ranks(); ++rank) {
    frame_rows_.push_back(grid_.frame_rows(rank));
    set(*runtime_, nothing_.emplace_back(*runtime_, 1, 1, rank), [](Index, Index) { return 0; });
  }
  if (overlaps()) border_work_ = one_per_rank<T>(*runtime_, 1, border_scratch(stripe(0)));
  for (std::size_t s = 0; s < shares().size(); ++s) {
    const Stripe shape = stripe(s);
    const auto tile = [&](Index r, Index c) { return Tile<T>(*runtime_, r, c, shares()[s].rank); };
    StripeTiles tiles{tile(shape.tile_rows(), shape.tile_cols()),
                      tile(shape.tile_rows(), shape.tile_cols()),
                      tile(shape.tile_rows(), shape.tile_cols()),
                      tile(1, 1),
                      grid_.frame_columns(s, cut_.halo),
                      {tile(cut_.halo, shape.tile_cols()), tile(cut_.halo, shape.tile_cols())},
                      {tile(cut_.halo, shape.tile_cols()), tile(cut_.halo, shape.tile_cols())}};
    set(*runtime_, tiles.no_source, [](Index, Index) { return 0; });
    tiles_.push_back(std::move(tiles));
  }
}

template <class T>
Stripe Solver<T>::stripe(std::size_t s) const {
  Stripe stripe = grid_.stripe(s, cut_.halo);
  stripe.arrangement = settings_.arrangement;
  return stripe;
}

/// Of a task that is submitted now; waits for room for it.
template <class T>
Hints Solver<T>::hints(std::size_t s, Index sweeps) const {
  const Share& share = shares()[s];
  Hints hints{
      .where = share.where, .cost = static_cast<std::uint64_t>(sweeps), .label = fmt::format("stripe {}", s)};
  if (tasks_in_memory_) runtime_->wait_for_room(*tasks_in_memory_);
  // A pinned task runs its codelet's first implementation; where there is no choice of workers, StarPU
  // chooses among the implementations by its models.
  if ((share.where == Where::cuda ? gpus_ : cpus_) > 1) hints.worker = share.worker;
  return hints;
}

template <class T>
bool Solver<T>::overlaps() const {
  return settings_.exchange == Exchange::overlapped && shares().size() > 1;
}

/// What belongs into the ghost rows; at an end of the grid any tile of this shape, which nobody looks at.
template <class T>
const Tile<T>& Solver<T>::above(std::size_t s, int set) const {
  return s > 0 ? tiles_[s - 1].bottom[set] : tiles_[s].top[set];
}
template <class T>
const Tile<T>& Solver<T>::below(std::size_t s, int set) const {
  return s + 1 < shares().size() ? tiles_[s + 1].top[set] : tiles_[s].bottom[set];
}

template <class T>
const Tile<T>& Solver<T>::source(std::size_t s) const {
  return has_source_ ? tiles_[s].g : tiles_[s].no_source;
}

/// f and u to the workers, arranged in stripes.
template <class T>
void Solver<T>::load(const T* f, T* u) {
  std::vector<Tile<T>> borrowed;
  borrowed.reserve(2 * shares().size());
  set_ = 0;
  for (std::size_t s = 0; s < shares().size(); ++s) {
    StripeTiles& t = tiles_[s];
    const Tile<T>& guess = borrowed.emplace_back(grid_.borrow(u, s));
    const Tile<T>& rows_of_f = has_source_
                                   ? borrowed.emplace_back(grid_.borrow(const_cast<T*>(f), s))  // only read
                                   : grid_.mine(nothing_, s);
    codelets::fill_stripe<T>({stripe(s), discretisation().diagonal, has_source_}, rows_of_f, guess,
                             grid_.mine(frame_rows_, s), t.frame_columns, t.u, t.other, source(s), hints(s));
    codelets::copy_edges<T>(stripe(s), t.u, t.top[0], t.bottom[0], hints(s));
    if (has_source_) codelets::copy_edges<T>(stripe(s), t.g, t.top[1], t.bottom[1], hints(s));
  }
  for (std::size_t s = 0; s < shares().size() && has_source_; ++s)
    codelets::fill_ghosts<T>(stripe(s), tiles_[s].g, above(s, 1), below(s, 1), hints(s));
}

template <class T>
void Solver<T>::store(T* u) {
  std::vector<Tile<T>> borrowed;
  borrowed.reserve(shares().size());
  for (std::size_t s = 0; s < shares().size(); ++s) {
    const Tile<T>& result = borrowed.emplace_back(grid_.borrow(u, s));
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

/// So many sweeps of every stripe, then the exchange, as [Czapinski 2014], Algorithm 4.5 has it for each colour: border
/// rows first, and what the neighbours wait for is on its way to them while the interior is relaxed.
template <class T>
void Solver<T>::task_step(Index sweeps) {
  if (overlaps()) {
    for (std::size_t s = 0; s < shares().size(); ++s) relax_border(s, sweeps);
    for (std::size_t s = 0; s < shares().size(); ++s) relax_interior(s, sweeps);
  } else {
    for (std::size_t s = 0; s < shares().size(); ++s) relax_all(s, sweeps);
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
    codelets::jacobi_border<T>(jacobi_args(discretisation(), stripe(s), sweeps, has_source_), t.u, source(s),
                               above(s, set_), below(s, set_), t.top[1 - set_], t.bottom[1 - set_],
                               grid_.mine(border_work_, s), first);
  else
    codelets::relax_colours_border<T>(
        colour_args(discretisation(), stripe(s), sweeps, has_source_, settings_), t.u, source(s),
        above(s, set_), below(s, set_), t.top[1 - set_], t.bottom[1 - set_], grid_.mine(border_work_, s),
        first);
}

template <class T>
void Solver<T>::relax_interior(std::size_t s, Index sweeps) {
  StripeTiles& t = tiles_[s];
  if (settings_.method == Method::jacobi)
    codelets::jacobi_interior<T>(jacobi_args(discretisation(), stripe(s), sweeps, has_source_), t.u, t.other,
                                 source(s), above(s, set_), below(s, set_), hints(s, sweeps));
  else
    codelets::relax_colours_interior<T>(
        colour_args(discretisation(), stripe(s), sweeps, has_source_, settings_), t.u, t.other, source(s),
        above(s, set_), below(s, set_), hints(s, sweeps));
}

template <class T>
void Solver<T>::relax_all(std::size_t s, Index sweeps) {
  StripeTiles& t = tiles_[s];
  if (settings_.method == Method::jacobi)
    codelets::jacobi<T>(jacobi_args(discretisation(), stripe(s), sweeps, has_source_), t.u, t.other,
                        source(s), above(s, set_), below(s, set_), t.top[1 - set_], t.bottom[1 - set_],
                        hints(s, sweeps));
  else
    codelets::relax_colours<T>(colour_args(discretisation(), stripe(s), sweeps, has_source_, settings_), t.u,
                               t.other, source(s), above(s, set_), below(s, set_), t.top[1 - set_],
                               t.bottom[1 - set_], hints(s, sweeps));
}

template <class T>
void Solver<T>::submit_residual(Index number) {
  const Discretisation& a = discretisation();
  for (std::size_t s = 0; s < shares().size(); ++s) {
    StripeTiles& t = tiles_[s];
    codelets::stripe_residual<T>({stripe(s), a.along_y, a.along_x, has_source_}, t.u, source(s),
                                 above(s, set_), below(s, set_), sums_.sums(s, number), sums_.work(s),
                                 hints(s));
  }
}

template <class T>
Report Solver<T>::solve(const T* f, T* u) {
  has_source_ = grid_.agree_on_source(f);
  const double diagonal = discretisation().diagonal;
  const sums::Scaled lifted = grid_.lifted_squares(f);
  const Convergence::Expectation expected{
      .tolerance = settings_.tolerance,
      .operator_norm = operator_norm(discretisation(), grid_.rows(), grid_.nodes()),
      .spectral_radius = spectral_radius(settings_.method, *settings_.omega, discretisation().jacobi_radius),
      .extents = grid_.rows() + grid_.nodes()};
  return iterate(*runtime_, settings_.sweeps, settings_.check_every, expected,
                 {.load = [&] { load(f, u); },
                  .sweep = [&](Index sweeps) { sweep(sweeps); },
                  .submit_residual = [&](Index number) { submit_residual(number); },
                  .norms = [&](Index number) { return sums_.norms(number, diagonal, lifted); },
                  .spread = [&](Index number) { return sums_.spread(number); },
                  .store = [&] { store(u); }});
}

template class Solver<float>;
template class Solver<double>;

}  // namespace asterism::relaxation
