#include "mlssor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "../../runtime/error.hpp"
#include "../common/statement.hpp"
#include "speeds.hpp"

namespace asterism::relaxation::mlssor {
namespace {

using relaxation::rounded_up;
using relaxation::set;

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
    s.check_every =
        relaxation::choose_check_every(s.sweeps, s.tolerance, std::min(problem.shape[0], problem.shape[1]));
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
std::vector<Share> cut_for_workers(const Runtime& runtime, const relaxation::Problem& problem,
                                   const Settings& settings) {
  Statement given = relaxation::statement(problem, sizeof(T));
  given.add("subdomain", settings.subdomain).add("layers", settings.layers).add("alternation", settings.alternate);
  given.add("omega", settings.omega).add("sweeps", settings.sweeps).add("tolerance", settings.tolerance);
  given.add("sweeps between two residuals", settings.check_every).add("stripes", settings.stripes);
  runtime.require_alike(given.text());
  const std::vector<Candidate> all = relaxation::all_workers(runtime);
  return cut_rows<T>(choose_workers(all, runtime.ranks(), settings.subdomain), problem, settings);
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
std::vector<Share> cut_rows(const std::vector<Candidate>& workers, const relaxation::Problem& problem,
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
      settings.stripes > 0 ? settings.stripes : relaxation::worthwhile_stripes(workers, rows * nodes, whole));
  for (;;) {
    const Index stripes = division.count();
    std::vector<double> speeds;
    for (const Candidate& worker : division.workers) speeds.push_back(relaxation::speed_of(worker));
    std::vector<Share> shares = relaxation::shares_of(division, speeds, rows, n, 1);
    const Stripe stripe{.nodes = nodes, .halo = stripes == 1 ? 1 : settings.layers};
    if (settings.stripes == 0 && relaxation::split_too_high(division, shares, stripe, sizeof(T), whole))
      continue;
    relaxation::require_room(division, shares, stripe, sizeof(T), whole);
    return shares;
  }
}

template std::vector<Share> cut_rows<float>(const std::vector<Candidate>&, const relaxation::Problem&,
                                            const Settings&);
template std::vector<Share> cut_rows<double>(const std::vector<Candidate>&, const relaxation::Problem&,
                                             const Settings&);

template <class T>
Solver<T>::Solver(Runtime& runtime, const relaxation::Problem& problem, const Settings& settings)
    : runtime_(&runtime),
      settings_(completed(problem, settings)),
      grid_(runtime, problem, cut_for_workers<T>(runtime, problem, settings_)),
      sums_(runtime, shares()) {
  const Machine machine = runtime.machine();
  cpus_ = machine.count(WorkerKind::cpu);
  gpus_ = machine.count(WorkerKind::cuda);
  tasks_in_memory_ = relaxation::tasks_in_memory(machine);
  settings_.stripes = static_cast<Index>(shares().size());
  make_tiles();
}

template <class T>
void Solver<T>::make_tiles() {
  for (int rank = 0; rank < runtime_->ranks(); ++rank) frame_rows_.push_back(grid_.frame_rows(rank));
  for (std::size_t s = 0; s < shares().size(); ++s) {
    const Stripe shape = stripe(s).stripe;
    const int rank = shares()[s].rank;
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
  const bool alone = shares().size() == 1;
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
  const Share& share = shares()[s];
  Hints hints{.where = share.where,
              .cost = (number(settings_.subdomain) << 40) + (number(settings_.layers) << 20) + number(sweeps),
              .label = fmt::format("stripe {}", s)};
  if (tasks_in_memory_) runtime_->wait_for_room(*tasks_in_memory_);
  // A pinned task runs its codelet's first implementation; where there is no choice of workers, StarPU
  // chooses among the implementations by its models.
  if ((share.where == Where::cuda ? gpus_ : cpus_) > 1) hints.worker = share.worker;
  return hints;
}

template <class T>
std::size_t Solver<T>::previous(std::size_t s, Direction direction) const {
  if (direction == Direction::forward) return s > 0 ? s - 1 : s;
  return s + 1 < shares().size() ? s + 1 : s;
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
  const std::size_t stripes = shares().size();
  std::vector<Tile<T>> borrowed, others, tops, bottoms;
  for (std::vector<Tile<T>>* list : {&borrowed, &others, &tops, &bottoms}) list->reserve(2 * stripes);
  direction_ = Direction::forward;
  last_.reset();
  for (std::size_t s = 0; s < stripes; ++s) {
    StripeTiles& t = tiles_[s];
    const Stripe shape = stripe(s).stripe;
    const auto edge = [&](Index r) { return Tile<T>(*runtime_, r, shape.tile_cols(), shares()[s].rank); };
    if (has_source_) t.g = edge(shape.tile_rows());
    const Tile<T>& guess = borrowed.emplace_back(grid_.borrow(u, s));
    const Tile<T>& rows_of_f =
        has_source_ ? borrowed.emplace_back(grid_.borrow(const_cast<T*>(f), s)) : t.no_source;  // only read
    const Tile<T>& other = others.emplace_back(edge(shape.tile_rows()));  // which only other methods need
    const Tile<T>& nothing =
        has_source_ ? t.g : others.emplace_back(Tile<T>(*runtime_, 1, 1, shares()[s].rank));
    codelets::fill_stripe<T>({shape, discretisation().diagonal, has_source_}, rows_of_f, guess,
                             grid_.mine(frame_rows_, s), t.frame_columns, t.u, other, nothing, hints(s));
    codelets::copy_edges<T>(shape, t.u, t.top, t.bottom, hints(s));
    const Tile<T>& top = tops.emplace_back(edge(shape.halo));
    const Tile<T>& bottom = bottoms.emplace_back(edge(shape.halo));
    if (has_source_) codelets::copy_edges<T>(shape, t.g, top, bottom, hints(s));
  }
  for (std::size_t s = 0; s < stripes && stripes > 1; ++s) {
    const std::size_t before = previous(s, Direction::forward), after = next(s, Direction::forward);
    codelets::fill_ghosts<T>(stripe(s).stripe, tiles_[s].u, tiles_[before].bottom, tiles_[after].top,
                             hints(s));
    if (has_source_)
      codelets::fill_ghosts<T>(stripe(s).stripe, tiles_[s].g, bottoms[before], tops[after], hints(s));
  }
}

/// So many sweeps of K layers.
template <class T>
void Solver<T>::sweep(Index sweeps) {
  if (shares().size() == 1) {
    // Tasks of many nodes' relaxations each: a task of its own costs as much as those of 100,000 nodes.
    constexpr Index relaxations = Index{1} << 27;
    const Index each =
        std::clamp<Index>(relaxations / (grid_.rows() * grid_.nodes() * settings_.layers), 1, 256);
    for (Index done = 0; done < sweeps; done += each) {
      const Index count = std::min(each, sweeps - done);
      codelets::mlssor_sweeps<T>({stripe(0), direction_, settings_.alternate, count}, tiles_[0].u, source(0),
                                 hints(0, count));
      last_ = direction_;
      if (settings_.alternate && count % 2 == 1) direction_ = reversed(direction_);
    }
    return;
  }
  for (Index k = 0; k < sweeps; ++k) {
    for (std::size_t s = 0; s < shares().size(); ++s) {
      const HalfSweep args = half(s);
      codelets::mlssor_first<T>(args, tiles_[s].u, source(s), tiles_[previous(s, args.arriving)].trail,
                                tiles_[s].lead, hints(s));
    }
    for (std::size_t s = 0; s < shares().size(); ++s)
      codelets::mlssor_second<T>(half(s), tiles_[s].u, source(s), tiles_[next(s, direction_)].lead,
                                 tiles_[s].trail, hints(s));
    last_ = direction_;
    if (settings_.alternate) direction_ = reversed(direction_);
  }
}

/// Completes all stripes' own rows: the neighbours may have relaxed some of them last.
template <class T>
void Solver<T>::receive() {
  if (!last_ || shares().size() == 1) return;
  for (std::size_t s = 0; s < shares().size(); ++s)
    codelets::mlssor_receive<T>(half(s), tiles_[s].u, tiles_[previous(s, *last_)].trail, hints(s));
}

template <class T>
void Solver<T>::submit_residual(Index number) {
  const Discretisation& a = discretisation();
  receive();
  for (std::size_t s = 0; s < shares().size(); ++s)
    codelets::copy_edges<T>(stripe(s).stripe, tiles_[s].u, tiles_[s].top, tiles_[s].bottom, hints(s));
  for (std::size_t s = 0; s < shares().size(); ++s) {
    StripeTiles& t = tiles_[s];
    codelets::stripe_residual<T>({stripe(s).stripe, a.along_y, a.along_x, has_source_}, t.u,
                                 source(s), tiles_[previous(s, Direction::forward)].bottom,
                                 tiles_[next(s, Direction::forward)].top, sums_.sums(s, number),
                                 sums_.work(s), hints(s));
  }
}

template <class T>
void Solver<T>::store(T* u) {
  std::vector<Tile<T>> borrowed;
  borrowed.reserve(shares().size());
  receive();
  for (std::size_t s = 0; s < shares().size(); ++s) {
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
  const relaxation::Convergence::Expectation expected{
      .tolerance = settings_.tolerance,
      .operator_norm = relaxation::operator_norm(discretisation(), grid_.rows(), grid_.nodes()),
      .spectral_radius = expected_radius(*settings_.omega, discretisation().jacobi_radius),
      .extents = grid_.rows() + grid_.nodes()};
  const Index layers = settings_.layers;
  return relaxation::iterate(*runtime_, rounded_up(settings_.sweeps, layers), settings_.check_every, expected,
                             {.load = [&] { load(f, u); },
                              .sweep = [&](Index relaxations) { sweep(relaxations / layers); },
                              .submit_residual = [&](Index number) { submit_residual(number); },
                              .norms = [&](Index number) { return sums_.norms(number, diagonal, lifted); },
                              .spread = [&](Index number) { return sums_.spread(number); },
                              .store = [&] { store(u); }});
}

template class Solver<float>;
template class Solver<double>;

}  // namespace asterism::relaxation::mlssor
