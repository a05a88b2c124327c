#include "mlssor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "../../runtime/error.hpp"
#include "../common/iteration/iteration.hpp"
#include "../common/set.hpp"
#include "../common/statement.hpp"
#include "stripes/room.hpp"

namespace asterism::relaxation::mlssor {
namespace {

/// Checks and completes what does not depend on the machine.
Settings completed(const relaxation::Problem& problem, Settings s) {
  relaxation::Settings plain;
  plain.method = relaxation::Method::sor;
  plain.omega = s.omega;
  plain.sweeps = s.sweeps;
  plain.tolerance = s.tolerance;
  plain.check_every = s.check_every;
  plain.stripes = s.stripes;
  relaxation::checked(problem, plain);
  constexpr Index limit = Index{1} << 20;  // beyond it a subdomain is the whole grid anyway
  if (s.subdomain < 2)
    throw Error(fmt::format("a subdomain of {0} x {0} nodes (--subdomain): it must have at least 2 x 2",
                            s.subdomain));
  if (s.subdomain > limit)
    throw Error(fmt::format("a subdomain of {0} x {0} nodes (--subdomain): it may have {1} x {1} at most",
                            s.subdomain, limit));
  const Index most = most_layers(s.subdomain);
  if (s.layers < 0 || s.layers > most)
    throw Error(fmt::format("{} layers (--layers): subdomains of {} nodes (--subdomain) allow 1 to {}",
                            s.layers, s.subdomain, most));
  if (s.layers == 0) s.layers = most;
  if (!s.omega) s.omega = relaxation::discretise(problem).optimal_omega();
  if (s.check_every == 0)
    s.check_every = choose_check_every(s.sweeps, s.tolerance, std::min(problem.shape[0], problem.shape[1]));
  s.check_every = rounded_up(s.check_every, s.layers);
  return s;
}

/// What an iteration is expected to do at least, for the sake of stagnation: subdomains of 4 nodes need about
/// six times as many sweeps as SOR does with its best omega.
double expected_radius(double omega, double jacobi_radius) {
  constexpr double slower = 16;
  return std::pow(relaxation::spectral_radius(relaxation::Method::sor, omega, jacobi_radius), 1 / slower);
}

template <class T>
Partition cut_for_workers(const Runtime& runtime, const relaxation::Problem& problem,
                          const Settings& settings) {
  Statement given = relaxation::statement(problem, sizeof(T));
  given.add("subdomain", settings.subdomain)
      .add("layers", settings.layers)
      .add("alternation", settings.alternate);
  given.add("omega", settings.omega).add("sweeps", settings.sweeps).add("tolerance", settings.tolerance);
  given.add("sweeps between two residuals", settings.check_every).add("stripes", settings.stripes);
  runtime.require_alike(given.text());
  return cut_rows<T>(choose_workers(all_workers(runtime), runtime.ranks(), settings.subdomain), problem,
                     settings);
}

}  // namespace

std::vector<Candidate> choose_workers(const std::vector<Candidate>& all, int ranks, Index subdomain) {
  const bool for_gpus = subdomain <= cuda::largest_subdomain;
  std::vector<Candidate> workers;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::size_t before = workers.size();
    for (const Where kind : {Where::cuda, Where::cpu})
      if (workers.size() == before && (kind == Where::cpu || for_gpus))
        std::copy_if(all.begin(), all.end(), std::back_inserter(workers),
                     [&](const Candidate& w) { return w.rank == rank && w.where == kind; });
    if (workers.size() == before)
      throw Error(
          fmt::format("a subdomain of {0} x {0} nodes: GPUs can do {1} x {1} at most, and there are "
                      "no CPU workers{2}; choose a smaller one, or --cpus",
                      subdomain, cuda::largest_subdomain, ranks > 1 ? fmt::format(" on rank {}", rank) : ""),
          Blame::machine);
  }
  return workers;
}

template <class T>
Partition cut_rows(const std::vector<Candidate>& workers, const relaxation::Problem& problem,
                   const Settings& settings) {
  const Index rows = problem.shape[0], nodes = problem.shape[1], n = settings.subdomain;
  const Index whole = std::max<Index>(1, rows / n);
  if (settings.stripes > whole)  // before they are made
    throw Error(
        fmt::format("{} stripes: {} rows are {} whole row{} of subdomains of {}, and a stripe needs one; "
                    "ask for at most {} (--stripes)",
                    settings.stripes, rows, whole, whole == 1 ? "" : "s", n, whole));
  relaxation::Division division = relaxation::divide(
      workers,
      settings.stripes > 0 ? settings.stripes : relaxation::worthwhile_stripes(workers, rows, nodes, whole));
  for (;;) {
    std::vector<double> speeds;
    for (const Candidate& worker : division.workers) speeds.push_back(speed_of(worker));
    const Partition stripes = relaxation::cut_stripes(division, speeds, rows, {.unit = n, .least = 1});
    const Stripe stripe{.nodes = nodes, .halo = stripes.count() == 1 ? 1 : settings.layers};
    if (settings.stripes == 0 &&
        relaxation::split_too_high(division, stripes.parts(), stripe, sizeof(T), whole))
      continue;
    relaxation::require_room(division, stripes.parts(), stripe, sizeof(T), whole);
    return stripes;
  }
}

template Partition cut_rows<float>(const std::vector<Candidate>&, const relaxation::Problem&,
                                   const Settings&);
template Partition cut_rows<double>(const std::vector<Candidate>&, const relaxation::Problem&,
                                    const Settings&);

template <class T>
Solver<T>::Solver(Runtime& runtime, const relaxation::Problem& problem, const Settings& settings)
    : runtime_(&runtime),
      settings_(completed(problem, settings)),
      grid_(runtime, problem, cut_for_workers<T>(runtime, problem, settings_)),
      sums_(runtime, stripes()) {
  tasks_in_memory_ = tasks_in_memory(runtime.machine());
  settings_.stripes = static_cast<Index>(stripes().size());
  make_tiles();
}

template <class T>
void Solver<T>::make_tiles() {
  for (int rank = 0; rank < runtime_->ranks(); ++rank) frame_rows_.push_back(grid_.frame_rows(rank));
  for (std::size_t s = 0; s < stripes().size(); ++s) {
    const Stripe shape = stripe(s).stripe;
    const int rank = stripes()[s].rank;
    const auto tile = [&](Index r, Index c) { return Tile<T>(*runtime_, r, c, rank); };
    const auto edge = [&](Index r) { return tile(r, shape.tile_cols()); };
    StripeTiles t{edge(shape.tile_rows()),
                  {},
                  tile(1, 1),
                  grid_.frame_columns(s, shape.halo),
                  edge(shape.halo),
                  edge(shape.halo),
                  edge(settings_.layers),
                  edge(settings_.layers)};
    const auto zero = [](Index, Index) { return 0; };
    set(*runtime_, t.no_source, zero);
    // At the ends of the grid tasks are given these before anybody has written them, and do not read them.
    set(*runtime_, t.lead, zero);
    set(*runtime_, t.trail, zero);
    tiles_.push_back(std::move(t));
  }
}

template <class T>
MultiLayer Solver<T>::stripe(std::size_t s) const {
  const bool alone = stripes().size() == 1;
  return {.stripe = grid_.stripe(s, alone ? 1 : settings_.layers),
          .grid_rows = grid_.rows(),
          .subdomain = settings_.subdomain,
          .layers = settings_.layers,
          .along_y = discretisation().along_y,
          .along_x = discretisation().along_x,
          .omega = *settings_.omega,
          .has_source = has_source_};
}

/// Half of the next sweep.
template <class T>
HalfSweep Solver<T>::half(std::size_t s) const {
  return {stripe(s), direction_, last_.has_value(), last_.value_or(Direction::forward)};
}

/// Of a task that is submitted now; waits for room for it.
template <class T>
Hints Solver<T>::hints(std::size_t s, Index sweeps) const {
  const auto number = [](Index n) { return static_cast<std::uint64_t>(n); };
  Hints hints = grid_.stripes().hints(static_cast<Index>(s));
  hints.cost = (number(settings_.subdomain) << 40) + (number(settings_.layers) << 20) + number(sweeps);
  hints.label = fmt::format("stripe {}", s);
  if (tasks_in_memory_) runtime_->wait_for_room(*tasks_in_memory_);
  return hints;
}

template <class T>
std::size_t Solver<T>::previous(std::size_t s, Direction direction) const {
  const auto number = static_cast<Index>(s);
  const Partition& stripes = grid_.stripes();
  const auto other = direction == Direction::forward ? stripes.before(number) : stripes.after(number);
  return static_cast<std::size_t>(other.value_or(number));
}
template <class T>
std::size_t Solver<T>::next(std::size_t s, Direction direction) const {
  return previous(s, reversed(direction));
}

template <class T>
const Tile<T>& Solver<T>::source(std::size_t s) const {
  return has_source_ ? tiles_[s].g : tiles_[s].no_source;
}

/// f and u to the workers, with the frame and the neighbours' rows around them.
template <class T>
void Solver<T>::load(const T* f, T* u) {
  const std::size_t count = stripes().size();
  std::vector<Tile<T>> borrowed, others, tops, bottoms;
  for (std::vector<Tile<T>>* list : {&borrowed, &others, &tops, &bottoms}) list->reserve(2 * count);
  direction_ = Direction::forward;
  last_.reset();
  for (std::size_t s = 0; s < count; ++s) {
    StripeTiles& t = tiles_[s];
    const Stripe shape = stripe(s).stripe;
    const auto edge = [&](Index r) { return Tile<T>(*runtime_, r, shape.tile_cols(), stripes()[s].rank); };
    if (has_source_) t.g = edge(shape.tile_rows());
    const Tile<T>& guess = borrowed.emplace_back(grid_.borrow(u, s));
    const Tile<T>& rows_of_f =
        has_source_ ? borrowed.emplace_back(grid_.borrow(const_cast<T*>(f), s)) : t.no_source;  // only read
    const Tile<T>& other = others.emplace_back(edge(shape.tile_rows()));  // which only other methods need
    const Tile<T>& nothing =
        has_source_ ? t.g : others.emplace_back(Tile<T>(*runtime_, 1, 1, stripes()[s].rank));
    codelets::fill_stripe<T>({shape, discretisation().diagonal, has_source_},
                             {.f = rows_of_f,
                              .initial = guess,
                              .frame_rows = grid_.mine(frame_rows_, s),
                              .frame_columns = t.frame_columns,
                              .u = t.u,
                              .other = other,
                              .g = nothing},
                             hints(s));
    codelets::copy_edges<T>(shape, {.tile = t.u, .top = t.top, .bottom = t.bottom}, hints(s));
    const Tile<T>& top = tops.emplace_back(edge(shape.halo));
    const Tile<T>& bottom = bottoms.emplace_back(edge(shape.halo));
    if (has_source_) codelets::copy_edges<T>(shape, {.tile = t.g, .top = top, .bottom = bottom}, hints(s));
  }
  for (std::size_t s = 0; s < count && count > 1; ++s) {
    const std::size_t before = previous(s, Direction::forward), after = next(s, Direction::forward);
    codelets::fill_ghosts<T>(
        stripe(s).stripe, {.tile = tiles_[s].u, .above = tiles_[before].bottom, .below = tiles_[after].top},
        hints(s));
    if (has_source_)
      codelets::fill_ghosts<T>(
          stripe(s).stripe, {.tile = tiles_[s].g, .above = bottoms[before], .below = tops[after]}, hints(s));
  }
}

/// So many sweeps of K layers, [Di et al. 2010]: T11 of all subdomains, then T12, T21 and T22. Every stripe's lead
/// goes to the one before it after T12; T21 and T22 reach over the cut to the next one, which gets its rows back with
/// the trail.
template <class T>
void Solver<T>::sweep(Index sweeps) {
  if (stripes().size() == 1) return sweep_alone(sweeps);
  for (Index k = 0; k < sweeps; ++k) {
    for (std::size_t s = 0; s < stripes().size(); ++s)
      codelets::mlssor_T11_T12<T>(half(s), tiles_[s].u, source(s),
                                  tiles_[previous(s, half(s).arriving)].trail, tiles_[s].lead, hints(s));
    for (std::size_t s = 0; s < stripes().size(); ++s)
      codelets::mlssor_T21_T22<T>(half(s), tiles_[s].u, source(s), tiles_[next(s, direction_)].lead,
                                  tiles_[s].trail, hints(s));
    last_ = direction_;
    if (settings_.alternate) direction_ = reversed(direction_);
  }
}

/// The same on a grid that is one stripe, T11, T12, T21, T22 of several sweeps in a task: a task of its own costs as
/// much as the relaxation of 100,000 nodes.
template <class T>
void Solver<T>::sweep_alone(Index sweeps) {
  constexpr Index relaxations = Index{1} << 27;  // of a task
  const Index each =
      std::clamp<Index>(relaxations / (grid_.rows() * grid_.nodes() * settings_.layers), 1, 256);
  for (Index done = 0; done < sweeps; done += each) {
    const Index count = std::min(each, sweeps - done);
    codelets::mlssor_sweeps<T>({stripe(0), direction_, settings_.alternate, count}, tiles_[0].u, source(0),
                               hints(0, count));
    last_ = direction_;
    if (settings_.alternate && count % 2 == 1) direction_ = reversed(direction_);
  }
}

/// Completes all stripes' own rows: the neighbours may have relaxed some of them last.
template <class T>
void Solver<T>::receive() {
  if (!last_ || stripes().size() == 1) return;
  for (std::size_t s = 0; s < stripes().size(); ++s)
    codelets::mlssor_receive<T>(half(s), tiles_[s].u, tiles_[previous(s, *last_)].trail, hints(s));
}

template <class T>
void Solver<T>::submit_residual(Index number) {
  const Discretisation& a = discretisation();
  receive();
  for (std::size_t s = 0; s < stripes().size(); ++s)
    codelets::copy_edges<T>(
        stripe(s).stripe, {.tile = tiles_[s].u, .top = tiles_[s].top, .bottom = tiles_[s].bottom}, hints(s));
  for (std::size_t s = 0; s < stripes().size(); ++s) {
    StripeTiles& t = tiles_[s];
    codelets::stripe_residual<T>({stripe(s).stripe, a.along_y, a.along_x, has_source_},
                                 {.u = t.u,
                                  .g = source(s),
                                  .above = tiles_[previous(s, Direction::forward)].bottom,
                                  .below = tiles_[next(s, Direction::forward)].top,
                                  .sums = sums_.sums(s, number),
                                  .work = sums_.work(s)},
                                 hints(s));
  }
}

template <class T>
void Solver<T>::store(T* u) {
  std::vector<Tile<T>> borrowed;
  borrowed.reserve(stripes().size());
  receive();
  for (std::size_t s = 0; s < stripes().size(); ++s) {
    const Tile<T>& result = borrowed.emplace_back(grid_.borrow(u, s));
    codelets::store_stripe<T>(stripe(s).stripe, tiles_[s].u, result, hints(s));
    result.fetch();
  }
  runtime_->wait();
}

template <class T>
Report Solver<T>::solve(const T* f, T* u) {
  has_source_ = grid_.agree_on_source(f);
  const double diagonal = discretisation().diagonal;
  const sums::Scaled lifted = grid_.lifted_squares(f);
  const StoppingRule rule{
      .tolerance = settings_.tolerance,
      .operator_norm = relaxation::operator_norm(discretisation(), grid_.rows(), grid_.nodes()),
      .growth = growth_of_sweeps(grid_.rows() + grid_.nodes()),
      .spectral_radius = expected_radius(*settings_.omega, discretisation().jacobi_radius)};
  const Index layers = settings_.layers;
  return iterate(*runtime_,
                 {.limit = rounded_up(settings_.sweeps, layers),
                  .check_every = settings_.check_every,
                  .rule = rule,
                  .observer = settings_.observer},
                 {.load = [&] { load(f, u); },
                  .step = [&](Index relaxations) { sweep(relaxations / layers); },
                  .submit_residual = [&](Index number) { submit_residual(number); },
                  .norms = [&](Index number) { return sums_.norms(number, diagonal, lifted); },
                  .store = [&] { store(u); },
                  .spread = [&](Index number) { return sums_.spread(number); }});
}

template class Solver<float>;
template class Solver<double>;

}  // namespace asterism::relaxation::mlssor
