#include "solver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "../../runtime/per_rank.hpp"
#include "../common/iteration/iteration.hpp"
#include "../common/set.hpp"
#include "../common/statement.hpp"
#include "stripes/arguments.hpp"
#include "stripes/speeds.hpp"

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
      grid_(runtime, problem, cut_.stripes),
      sums_(runtime, stripes()) {
  tasks_in_memory_ = tasks_in_memory(runtime.machine());
  settings_.stripes = static_cast<Index>(stripes().size());
  settings_.sweeps_per_task = cut_.sweeps_per_task;
  settings_.exchange = cut_.exchange;
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
  if (overlaps()) border_work_ = {*runtime_, 1, border_scratch(stripe(0))};
  for (std::size_t s = 0; s < stripes().size(); ++s) {
    const Stripe shape = stripe(s);
    const auto tile = [&](Index r, Index c) { return Tile<T>(*runtime_, r, c, stripes()[s].rank); };
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
  Hints hints = grid_.stripes().hints(static_cast<Index>(s));
  hints.cost = static_cast<std::uint64_t>(sweeps);
  hints.label = fmt::format("stripe {}", s);
  if (tasks_in_memory_) runtime_->wait_for_room(*tasks_in_memory_);
  return hints;
}

template <class T>
bool Solver<T>::overlaps() const {
  return settings_.exchange == Exchange::overlapped && stripes().size() > 1;
}

/// What belongs into the ghost rows; at an end of the grid any tile of this shape, which nobody looks at.
template <class T>
const Tile<T>& Solver<T>::above(std::size_t s, int set) const {
  return s > 0 ? tiles_[s - 1].bottom[set] : tiles_[s].top[set];
}
template <class T>
const Tile<T>& Solver<T>::below(std::size_t s, int set) const {
  return s + 1 < stripes().size() ? tiles_[s + 1].top[set] : tiles_[s].bottom[set];
}

template <class T>
const Tile<T>& Solver<T>::source(std::size_t s) const {
  return has_source_ ? tiles_[s].g : tiles_[s].no_source;
}

/// f and u to the workers, arranged in stripes.
template <class T>
void Solver<T>::load(const T* f, T* u) {
  std::vector<Tile<T>> borrowed;
  borrowed.reserve(2 * stripes().size());
  set_ = 0;
  for (std::size_t s = 0; s < stripes().size(); ++s) {
    StripeTiles& t = tiles_[s];
    const Tile<T>& guess = borrowed.emplace_back(grid_.borrow(u, s));
    const Tile<T>& rows_of_f = has_source_
                                   ? borrowed.emplace_back(grid_.borrow(const_cast<T*>(f), s))  // only read
                                   : grid_.mine(nothing_, s);
    codelets::fill_stripe<T>({stripe(s), discretisation().diagonal, has_source_},
                             {.f = rows_of_f,
                              .initial = guess,
                              .frame_rows = grid_.mine(frame_rows_, s),
                              .frame_columns = t.frame_columns,
                              .u = t.u,
                              .other = t.other,
                              .g = source(s)},
                             hints(s));
    codelets::copy_edges<T>(stripe(s), {.tile = t.u, .top = t.top[0], .bottom = t.bottom[0]}, hints(s));
    if (has_source_)
      codelets::copy_edges<T>(stripe(s), {.tile = t.g, .top = t.top[1], .bottom = t.bottom[1]}, hints(s));
  }
  for (std::size_t s = 0; s < stripes().size() && has_source_; ++s)
    codelets::fill_ghosts<T>(stripe(s), {.tile = tiles_[s].g, .above = above(s, 1), .below = below(s, 1)},
                             hints(s));
}

template <class T>
void Solver<T>::store(T* u) {
  std::vector<Tile<T>> borrowed;
  borrowed.reserve(stripes().size());
  for (std::size_t s = 0; s < stripes().size(); ++s) {
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

/// So many sweeps of every stripe, and the exchange between neighbours: border rows first, and what the neighbours
/// wait for is on its way to them while the interior is relaxed. [Czapinski 2014], Algorithm 4.5, does this for the
/// red nodes, then for the black ones; here both are in one task, as it has enough ghost rows to relax itself what it
/// needs of the neighbours' red nodes for its black ones.
template <class T>
void Solver<T>::task_step(Index sweeps) {
  if (overlaps()) {
    for (std::size_t s = 0; s < stripes().size(); ++s) relax_border(s, sweeps);
    for (std::size_t s = 0; s < stripes().size(); ++s) relax_interior(s, sweeps);
  } else {
    for (std::size_t s = 0; s < stripes().size(); ++s) relax_all(s, sweeps);
  }
  if (sweeps % 2 == 1)
    for (StripeTiles& t : tiles_) std::swap(t.u, t.other);
  set_ = 1 - set_;
}

template <class T>
JacobiArgs Solver<T>::all_at_once(std::size_t s, Index sweeps) const {
  return jacobi_args(discretisation(), stripe(s), sweeps, has_source_);
}

/// In every sweep the red nodes, then the black ones; in a symmetric one then the black and the red ones once more.
template <class T>
ColourArgs Solver<T>::red_then_black(std::size_t s, Index sweeps) const {
  return colour_args(discretisation(), stripe(s), sweeps, has_source_, settings_);
}

template <class T>
void Solver<T>::relax_border(std::size_t s, Index sweeps) {
  StripeTiles& t = tiles_[s];
  Hints first = hints(s, sweeps);
  first.priority = 1;
  const BorderPorts<AsTiles, T> ports{.u = t.u,
                                      .g = source(s),
                                      .above = above(s, set_),
                                      .below = below(s, set_),
                                      .top = t.top[1 - set_],
                                      .bottom = t.bottom[1 - set_],
                                      .work = grid_.mine(border_work_, s)};
  if (settings_.method == Method::jacobi)
    codelets::jacobi_border<T>(all_at_once(s, sweeps), ports, first);
  else
    codelets::relax_colours_border<T>(red_then_black(s, sweeps), ports, first);
}

template <class T>
void Solver<T>::relax_interior(std::size_t s, Index sweeps) {
  StripeTiles& t = tiles_[s];
  const InteriorPorts<AsTiles, T> ports{
      .u = t.u, .other = t.other, .g = source(s), .above = above(s, set_), .below = below(s, set_)};
  if (settings_.method == Method::jacobi)
    codelets::jacobi_interior<T>(all_at_once(s, sweeps), ports, hints(s, sweeps));
  else
    codelets::relax_colours_interior<T>(red_then_black(s, sweeps), ports, hints(s, sweeps));
}

template <class T>
void Solver<T>::relax_all(std::size_t s, Index sweeps) {
  StripeTiles& t = tiles_[s];
  const SweepPorts<AsTiles, T> ports{.u = t.u,
                                     .other = t.other,
                                     .g = source(s),
                                     .above = above(s, set_),
                                     .below = below(s, set_),
                                     .top = t.top[1 - set_],
                                     .bottom = t.bottom[1 - set_]};
  if (settings_.method == Method::jacobi)
    codelets::jacobi<T>(all_at_once(s, sweeps), ports, hints(s, sweeps));
  else
    codelets::relax_colours<T>(red_then_black(s, sweeps), ports, hints(s, sweeps));
}

template <class T>
void Solver<T>::submit_residual(Index number) {
  const Discretisation& a = discretisation();
  for (std::size_t s = 0; s < stripes().size(); ++s) {
    StripeTiles& t = tiles_[s];
    codelets::stripe_residual<T>({stripe(s), a.along_y, a.along_x, has_source_},
                                 {.u = t.u,
                                  .g = source(s),
                                  .above = above(s, set_),
                                  .below = below(s, set_),
                                  .sums = sums_.sums(s, number),
                                  .work = sums_.work(s)},
                                 hints(s));
  }
}

template <class T>
Report Solver<T>::solve(const T* f, T* u) {
  has_source_ = grid_.agree_on_source(f);
  const double diagonal = discretisation().diagonal;
  const sums::Scaled lifted = grid_.lifted_squares(f);
  const StoppingRule rule{
      .tolerance = settings_.tolerance,
      .operator_norm = operator_norm(discretisation(), grid_.rows(), grid_.nodes()),
      .growth = growth_of_sweeps(grid_.rows() + grid_.nodes()),
      .spectral_radius = spectral_radius(settings_.method, *settings_.omega, discretisation().jacobi_radius)};
  return iterate(*runtime_,
                 {.limit = settings_.sweeps,
                  .check_every = settings_.check_every,
                  .rule = rule,
                  .observer = settings_.observer},
                 {.load = [&] { load(f, u); },
                  .step = [&](Index sweeps) { sweep(sweeps); },
                  .submit_residual = [&](Index number) { submit_residual(number); },
                  .norms = [&](Index number) { return sums_.norms(number, diagonal, lifted); },
                  .store = [&] { store(u); },
                  .spread = [&](Index number) { return sums_.spread(number); }});
}

template class Solver<float>;
template class Solver<double>;

}  // namespace asterism::relaxation
