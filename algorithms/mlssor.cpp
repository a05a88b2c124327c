#include "mlssor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "../runtime/error.hpp"

namespace asterism::mlssor {
namespace {

using kernels::Direction;
using relaxation::Norms;
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

Index rounded_up(Index number, Index to) { return (number + to - 1) / to * to; }

/// Checks and completes what does not depend on the machine.
Settings checked(const relaxation::Problem& problem, Settings s) {
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
    throw Error(fmt::format("a subdomain of {0} x {0} nodes: it must have at least 2 x 2", s.subdomain));
  if (s.subdomain > limit)
    throw Error(
        fmt::format("a subdomain of {0} x {0} nodes: it may have {1} x {1} at most", s.subdomain, limit));
  const Index most = kernels::most_layers(s.subdomain);
  if (s.layers < 0 || s.layers > most)
    throw Error(fmt::format("{} layers: subdomains of {} nodes allow 1 to {}", s.layers, s.subdomain, most));
  if (s.layers == 0) s.layers = most;
  if (s.check_every == 0 && s.tolerance > 0)
    s.check_every = std::clamp<Index>(std::min(problem.shape[0], problem.shape[1]) / 4, 20, 1000);
  if (s.check_every == 0) s.check_every = s.sweeps;
  s.check_every = rounded_up(s.check_every, s.layers);
  return s;
}

kernels::Discretisation discretised(const relaxation::Problem& problem) {
  const bool unit = problem.lengths.empty();
  return kernels::discretise_five_point(problem.shape[0], problem.shape[1], unit ? 1 : problem.lengths[0],
                                        unit ? 1 : problem.lengths[1]);
}

/// ||A||_inf: the diagonal, and as many neighbours as a node of the inside has.
double operator_norm(const kernels::Discretisation& grid, Index rows, Index nodes) {
  return grid.diagonal * (1 + grid.along_y * static_cast<double>(std::min<Index>(2, rows - 1)) +
                          grid.along_x * static_cast<double>(std::min<Index>(2, nodes - 1)));
}

/// What an iteration is expected to do at least, for the sake of stagnation: subdomains of 4 nodes need about
/// six times as many sweeps as SOR does with its best omega.
double expected_radius(double omega, double jacobi_radius) {
  constexpr double slower = 16;
  return std::pow(relaxation::spectral_radius(relaxation::Method::sor, omega, jacobi_radius), 1 / slower);
}

/// Workers that may take part: GPUs, or a rank's cores where it has none or subdomains are too large for
/// them; a Share without rows each. The same on every rank.
std::vector<Share> choose_workers(const Runtime& runtime, Index subdomain) {
  const Machine machine = runtime.machine();
  const int cpus = machine.count(WorkerKind::cpu), gpus = machine.count(WorkerKind::cuda);
  const bool on_gpus = gpus > 0 && subdomain <= kernels::cuda::largest_subdomain;
  if (!on_gpus && cpus == 0)
    throw Error(
        fmt::format("a subdomain of {0} x {0} nodes: GPUs can do {1} x {1} at most, and there are no CPU "
                    "workers; choose a smaller one, or --cpus",
                    subdomain, kernels::cuda::largest_subdomain),
        Blame::machine);
  std::vector<double> counts(2 * static_cast<std::size_t>(runtime.ranks()));
  counts[2 * static_cast<std::size_t>(runtime.rank()) + (on_gpus ? 1 : 0)] = on_gpus ? gpus : cpus;
  runtime.sum_over_ranks(counts.data(), static_cast<Index>(counts.size()));
  std::vector<Share> workers;
  for (std::size_t i = 0; i < counts.size(); ++i)
    for (int worker = 0; worker < static_cast<int>(counts[i]); ++worker)
      workers.push_back({.rank = static_cast<int>(i / 2),
                         .where = i % 2 == 1 ? Where::cuda : Where::cpu,
                         .worker = worker});
  return workers;
}

}  // namespace

template <class T>
Solver<T>::Solver(Runtime& runtime, const relaxation::Problem& problem, const Settings& settings)
    : runtime_(&runtime),
      problem_(problem),
      settings_(checked(problem, settings)),
      grid_(discretised(problem)) {
  if (!settings_.omega) settings_.omega = grid_.optimal_omega();
  cut_rows();
  make_tiles();
}

/// Whole rows of subdomains for each stripe; what is left over goes to the last one.
template <class T>
void Solver<T>::cut_rows() {
  const std::vector<Share> workers = choose_workers(*runtime_, settings_.subdomain);
  const Index n = settings_.subdomain, whole = std::max<Index>(1, rows() / n);
  if (settings_.stripes > whole)
    throw Error(
        fmt::format("{} stripes: {} rows are {} whole rows of subdomains of {}, and a stripe needs one",
                    settings_.stripes, rows(), whole, n));
  const auto count = static_cast<Index>(workers.size());
  if (settings_.stripes == 0) settings_.stripes = std::min(count, whole);
  const Index stripes = settings_.stripes;
  for (Index s = 0; s < stripes; ++s) {
    Share share = workers[static_cast<std::size_t>(s * count / stripes)];
    share.first_row = s * whole / stripes * n;
    share.rows = (s + 1 == stripes ? rows() : (s + 1) * whole / stripes * n) - share.first_row;
    shares_.push_back(share);
  }
}

template <class T>
void Solver<T>::make_tiles() {
  for (int rank = 0; rank < runtime_->ranks(); ++rank) {
    residual_work_.emplace_back(*runtime_, 1, kernels::residual_scratch, rank);
    set(*runtime_, frame_rows_.emplace_back(*runtime_, 2, nodes() + 2, rank), [&](Index side, Index c) {
      const bool corner = c == 0 || c == nodes() + 1;  // no node's neighbour
      return corner ? 0 : relaxation::value_at(side == 0 ? problem_.y_lower : problem_.y_upper, c - 1);
    });
  }
  for (std::size_t s = 0; s < shares_.size(); ++s) {
    const kernels::Stripe shape = stripe(s).stripe;
    const int rank = shares_[s].rank;
    const auto tile = [&](Index r, Index c) { return Tile<T>(*runtime_, r, c, rank); };
    const auto edge = [&](Index r) { return tile(r, shape.tile_cols()); };
    StripeTiles t{edge(shape.tile_rows()),
                  {},
                  tile(1, 1),
                  tile(shape.tile_rows(), 2),
                  edge(shape.halo),
                  edge(shape.halo),
                  edge(settings_.layers),
                  edge(settings_.layers),
                  {Tile<double>(*runtime_, 1, kernels::residual_parts, rank),
                   Tile<double>(*runtime_, 1, kernels::residual_parts, rank)}};
    const auto zero = [](Index, Index) { return 0; };
    set(*runtime_, t.no_source, zero);
    set(*runtime_, t.lead, zero);  // at the ends of the grid nobody ever writes them
    set(*runtime_, t.trail, zero);
    set(*runtime_, t.frame_columns, [&](Index r, Index side) {
      const Index row = shape.first_row - shape.halo + r;
      const bool corner = row < 0 || row >= rows();
      return corner ? 0 : relaxation::value_at(side == 0 ? problem_.x_lower : problem_.x_upper, row);
    });
    tiles_.push_back(std::move(t));
  }
}

template <class T>
kernels::MultiLayer Solver<T>::stripe(std::size_t s) const {
  const bool alone = shares_.size() == 1;
  return {.stripe = {.rows = shares_[s].rows,
                     .nodes = nodes(),
                     .halo = alone ? 1 : settings_.layers,
                     .first_row = shares_[s].first_row,
                     .first = s == 0,
                     .last = s + 1 == shares_.size()},
          .grid_rows = rows(),
          .subdomain = settings_.subdomain,
          .layers = settings_.layers,
          .along_y = grid_.along_y,
          .along_x = grid_.along_x,
          .omega = *settings_.omega,
          .has_source = has_source_};
}

/// Half of the next sweep.
template <class T>
kernels::HalfSweep Solver<T>::half(std::size_t s) const {
  return {stripe(s), direction_, last_.has_value(), last_.value_or(Direction::forward)};
}

template <class T>
Hints Solver<T>::hints(std::size_t s, Index sweeps) const {
  const auto number = [](Index n) { return static_cast<std::uint64_t>(n); };
  return {.where = shares_[s].where,
          .cost = (number(settings_.subdomain) << 40) + (number(settings_.layers) << 20) + number(sweeps),
          .label = fmt::format("stripe {}", s),
          .worker = shares_[s].worker};
}

template <class T>
std::size_t Solver<T>::previous(std::size_t s, Direction direction) const {
  if (direction == Direction::forward) return s > 0 ? s - 1 : s;
  return s + 1 < shares_.size() ? s + 1 : s;
}
template <class T>
std::size_t Solver<T>::next(std::size_t s, Direction direction) const {
  return previous(s, kernels::reversed(direction));
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
  const double some = row_count() > 0 ? 1 : 0;
  std::array<double, 2> ranks{some, f != nullptr ? some : 0};
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
  const auto add = [&](Index i, Index j) {
    double lift = 0;
    if (i == 0) lift -= y * relaxation::value_at(problem_.y_lower, j);
    if (i == m - 1) lift -= y * relaxation::value_at(problem_.y_upper, j);
    if (j == 0) lift -= x * relaxation::value_at(problem_.x_lower, i);
    if (j == n - 1) lift -= x * relaxation::value_at(problem_.x_upper, i);
    const double value = has_source_ ? static_cast<double>(f[(i - first_row()) * n + j]) : 0;
    sum += (2 * value + lift) * lift;
  };
  for (Index i = first_row(); i < first_row() + row_count(); ++i)
    if (i == 0 || i == m - 1) {
      for (Index j = 0; j < n; ++j) add(i, j);
    } else {
      add(i, 0);
      if (n > 1) add(i, n - 1);
    }
  runtime_->sum_over_ranks(&sum, 1);
  return sum;
}

/// Rows of the caller's that a stripe is made of.
template <class T>
Tile<T> Solver<T>::borrow(T* rows, std::size_t s) const {
  const Share& share = shares_[s];
  const bool here = share.rank == runtime_->rank();
  return Tile<T>(*runtime_, here ? rows + (share.first_row - first_row()) * nodes() : nullptr, share.rows,
                 nodes(), nodes(), share.rank);
}

/// f and u to the workers, with the frame and the neighbours' rows around them.
template <class T>
void Solver<T>::load(const T* f, T* u) {
  const std::size_t stripes = shares_.size();
  std::vector<Tile<T>> borrowed, others, tops, bottoms;
  for (std::vector<Tile<T>>* list : {&borrowed, &others, &tops, &bottoms}) list->reserve(2 * stripes);
  direction_ = Direction::forward;
  last_.reset();
  for (std::size_t s = 0; s < stripes; ++s) {
    StripeTiles& t = tiles_[s];
    const kernels::Stripe shape = stripe(s).stripe;
    const auto edge = [&](Index r) { return Tile<T>(*runtime_, r, shape.tile_cols(), shares_[s].rank); };
    if (has_source_) t.g = edge(shape.tile_rows());
    const Tile<T>& guess = borrowed.emplace_back(borrow(u, s));
    const Tile<T>& rows_of_f =
        has_source_ ? borrowed.emplace_back(borrow(const_cast<T*>(f), s)) : t.no_source;  // only read
    const Tile<T>& other = others.emplace_back(edge(shape.tile_rows()));  // which only other methods need
    const Tile<T>& nothing =
        has_source_ ? t.g : others.emplace_back(Tile<T>(*runtime_, 1, 1, shares_[s].rank));
    codelets::fill_stripe<T>({shape, grid_.diagonal, has_source_}, rows_of_f, guess, mine(frame_rows_, s),
                             t.frame_columns, t.u, other, nothing, hints(s));
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
  if (shares_.size() == 1) {
    // Tasks of many nodes' relaxations each: a task of its own costs as much as those of 100,000 nodes.
    constexpr Index relaxations = Index{1} << 27;
    const Index each = std::clamp<Index>(relaxations / (rows() * nodes() * settings_.layers), 1, 256);
    for (Index done = 0; done < sweeps; done += each) {
      const Index count = std::min(each, sweeps - done);
      codelets::mlssor_sweeps<T>({stripe(0), direction_, settings_.alternate, count}, tiles_[0].u, source(0),
                                 hints(0, count));
      last_ = direction_;
      if (settings_.alternate && count % 2 == 1) direction_ = kernels::reversed(direction_);
    }
    return;
  }
  for (Index k = 0; k < sweeps; ++k) {
    for (std::size_t s = 0; s < shares_.size(); ++s) {
      const kernels::HalfSweep args = half(s);
      codelets::mlssor_first<T>(args, tiles_[s].u, source(s), tiles_[previous(s, args.arriving)].trail,
                                tiles_[s].lead, hints(s));
    }
    for (std::size_t s = 0; s < shares_.size(); ++s)
      codelets::mlssor_second<T>(half(s), tiles_[s].u, source(s), tiles_[next(s, direction_)].lead,
                                 tiles_[s].trail, hints(s));
    last_ = direction_;
    if (settings_.alternate) direction_ = kernels::reversed(direction_);
  }
}

/// Completes all stripes' own rows: the neighbours may have relaxed some of them last.
template <class T>
void Solver<T>::receive() {
  if (!last_ || shares_.size() == 1) return;
  for (std::size_t s = 0; s < shares_.size(); ++s)
    codelets::mlssor_receive<T>(half(s), tiles_[s].u, tiles_[previous(s, *last_)].trail, hints(s));
}

template <class T>
void Solver<T>::submit_residual(Index number) {
  receive();
  for (std::size_t s = 0; s < shares_.size(); ++s)
    codelets::copy_edges<T>(stripe(s).stripe, tiles_[s].u, tiles_[s].top, tiles_[s].bottom, hints(s));
  for (std::size_t s = 0; s < shares_.size(); ++s) {
    StripeTiles& t = tiles_[s];
    codelets::stripe_residual<T>(
        {stripe(s).stripe, grid_.along_y, grid_.along_x, grid_.diagonal, has_source_}, t.u, source(s),
        tiles_[previous(s, Direction::forward)].bottom, tiles_[next(s, Direction::forward)].top,
        t.sums[number % 2], mine(residual_work_, s), hints(s));
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

template <class T>
void Solver<T>::store(T* u) {
  std::vector<Tile<T>> borrowed;
  borrowed.reserve(shares_.size());
  receive();
  for (std::size_t s = 0; s < shares_.size(); ++s) {
    const Tile<T>& result = borrowed.emplace_back(borrow(u, s));
    codelets::store_stripe<T>(stripe(s).stripe, tiles_[s].u, result, hints(s));
    result.fetch();
  }
  runtime_->wait();
}

template <class T>
Report Solver<T>::solve(const T* f, T* u) {
  has_source_ = agree_on_source(f);
  const double lifted = lifted_squares(f);
  relaxation::Convergence convergence(
      {.tolerance = settings_.tolerance,
       .operator_norm = operator_norm(grid_, rows(), nodes()),
       .spectral_radius = expected_radius(*settings_.omega, grid_.jacobi_radius),
       .extents = rows() + nodes()});
  Report report;
  Stopwatch watch;
  const Traffic before = runtime_->traffic();
  load(f, u);
  submit_residual(0);
  runtime_->wait();
  report.seconds["load"] = watch.lap();

  const Index layers = settings_.layers;
  const Index limit =
      settings_.sweeps > 0 ? rounded_up(settings_.sweeps, layers) : std::numeric_limits<Index>::max();
  std::optional<Reason> verdict;
  std::vector<Index> asked{0};  // residuals were submitted after so many relaxations,
  std::size_t seen = 0;         // and so many of them have been looked at
  const auto look = [&] {
    verdict = convergence.judge(residual(static_cast<Index>(seen), lifted), asked[seen]);
    ++seen;
  };
  if (settings_.tolerance > 0) look();  // the first guess may do
  // Later on a residual is looked at when the next sweeps and their residual have been submitted: the workers
  // never wait for a decision.
  Index done = 0;
  while (done < limit && !verdict) {
    const Index relaxations = std::min(settings_.check_every, limit - done);
    sweep(relaxations / layers);
    done += relaxations;
    submit_residual(static_cast<Index>(asked.size()));
    asked.push_back(done);
    if (seen + 1 < asked.size()) look();
    if (verdict == Reason::solved) look();  // whether it still holds after the last sweeps
  }
  while (!verdict && seen < asked.size()) look();
  runtime_->wait();
  report.seconds["sweeps"] = watch.lap();

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

}  // namespace asterism::mlssor
