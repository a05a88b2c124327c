#include "conjugate_gradients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "../../codelets/sparse/codelets.hpp"
#include "../../codelets/sparse/krylov/residual.hpp"
#include "../../runtime/collectives.hpp"
#include "../../runtime/error.hpp"
#include "../common/iteration.hpp"
#include "../common/one_per_rank.hpp"
#include "../common/set.hpp"
#include "../common/statement.hpp"
#include "../common/stopwatch.hpp"
#include "graph/pattern.hpp"
#include "spectrum.hpp"

namespace asterism::sparse {
namespace {

/// Times that an iteration begins anew, as its own residual has drifted from the true one.
constexpr Index most_restarts = 10;
/// How much the true residual may be above the tolerance; the iteration's own is below it.
constexpr double most_drift = 1.1;

template <class T>
void require_sound(const Runtime& runtime, const Csr<T>& mine, const LinearSettings& settings) {
  agree(runtime, [&] {
    if (mine.total_rows < 1 || mine.total_rows != mine.cols)
      throw Error(fmt::format("the matrix is {} x {}: it must be square, and have a row", mine.total_rows,
                              mine.cols));
    for (const Index column : mine.columns)
      if (column < 0 || column >= mine.cols)
        throw Error(fmt::format("the matrix has an entry in column {} (the first is 0): there are {}", column,
                                mine.cols));
    if (!(settings.tolerance >= 0 && settings.tolerance < 1))
      throw Error(fmt::format("the tolerance is {}: it must be at least 0 and below 1", settings.tolerance));
    if (settings.max_iterations < 0 || settings.check_every < 0)
      throw Error(fmt::format("{} iterations at most, a look each {}: these may not be negative",
                              settings.max_iterations, settings.check_every));
    if (settings.tolerance == 0 && settings.max_iterations == 0)
      throw Error("neither a tolerance nor a number of iterations is given: there would be no end; give one");
  });
  runtime.require_alike(Statement()
                            .add("rows", mine.total_rows)
                            .add("preconditioner", to_string(settings.preconditioner))
                            .add("tolerance", settings.tolerance)
                            .add("iterations", settings.max_iterations)
                            .text());
}

template <class T>
std::vector<Index> entries_of_rows(const Csr<T>& mine) {
  std::vector<Index> entries(static_cast<std::size_t>(mine.rows()));
  for (Index i = 0; i < mine.rows(); ++i) entries[i] = mine.row_begin[i + 1] - mine.row_begin[i];
  return entries;
}

/// The Euclidean norm over `scale`, unit by unit, which no division into ranks changes.
template <class T>
double norm(const Runtime& runtime, const T* mine, Index rows, Index unit, double scale) {
  std::vector<double> sums(static_cast<std::size_t>(units_of(rows, unit)));
  for (Index i = 0; i < rows; ++i) {
    const double value = static_cast<double>(mine[i]) / scale;
    sums[i / unit] += value * value;
  }
  double sum = 0;
  for (const double of_unit : gather_lists(runtime, sums)) sum += of_unit;
  return std::sqrt(sum);
}

/// Why an iteration cannot go on, if so.
std::optional<Reason> broken(CgStatus status) {
  switch (status) {
    case CgStatus::running:
    case CgStatus::converged:
      return {};
    case CgStatus::negative_curvature:
    case CgStatus::negative_product:
      return Reason::indefinite;
    case CgStatus::not_finite:
      return Reason::not_finite;
  }
  return {};
}

/// So many iterations that a look at the residual, and the end of a task, cost little.
Index chosen_check_every(double bytes_of_iteration, bool on_gpu) {
  constexpr double seconds = 1e-2;
  const double bandwidth = on_gpu ? 3e12 : 1e10;
  return std::clamp<Index>(static_cast<Index>(seconds * bandwidth / bytes_of_iteration), 10, 500);
}

/// Puts what a part of the iteration says, of which `iterations` were made after `before` others, behind what is there.
void append(Report& part, Index iterations, Index before, LinearReport& report) {
  report.reason = part.reason;
  for (std::size_t k = 0; k < part.residual_history.size(); ++k) {
    const Index at = before + std::min(part.residual_iterations[k], iterations);
    const bool again = !report.residual_iterations.empty() && report.residual_iterations.back() == at;
    if (again) {
      report.residual_history.back() = part.residual_history[k];
    } else {
      report.residual_history.push_back(part.residual_history[k]);
      report.residual_iterations.push_back(at);
    }
  }
  for (const auto& [name, seconds] : part.seconds) report.seconds[name] += seconds;
  report.traffic = part.traffic;
}

}  // namespace

template <class T, class V>
ConjugateGradients<T, V>::ConjugateGradients(Runtime& runtime, const Csr<T>& mine,
                                             const LinearSettings& settings)
    : runtime_(&runtime), settings_(settings) {
  require_sound(runtime, mine, settings);
  Stopwatch watch;
  blocks_ = divide(runtime, mine.total_rows, mine.first_row, entries_of_rows(mine), settings.workers,
                   settings.blocks);
  range_ = blocks_.elements_of(runtime.rank());
  facts_.blocks = blocks_.parts();
  facts_.seconds["divide"] = watch.lap();
  const PreparedPreconditioner<T> prepared =
      prepare(runtime, blocks_, mine, settings.preconditioner, settings.shift);
  facts_.preconditioner = prepared.facts;
  facts_.seconds.merge(std::map(prepared.seconds));
  watch.lap();
  if (settings.values == Values::refreshed) {
    plan_ = prepared.plan;
    pattern_ = fingerprint(mine.row_begin, mine.columns);
  }
  if (prepared.facts.breakdown) return;
  system_ = LinearSystem<T>(runtime, blocks_, prepared, settings.format);
  preconditioner_ = AppliedPreconditioner<T, V>(system_, prepared);
  make_tiles();
  describe_matrix();
  facts_.seconds["arrange"] = watch.lap();
}

template <class T, class V>
void ConjugateGradients<T, V>::refresh(const Csr<T>& mine) {
  agree(*runtime_, [&] {
    if (settings_.values == Values::fixed)
      throw Error("the matrix has other values, which were said to be fixed: set LinearSettings::values");
    if (tiles_.empty())
      throw Error("the matrix has other values, and broke down with those before: set up a solver anew");
    if (fingerprint(mine.row_begin, mine.columns) != pattern_)
      throw Error(fmt::format("the {} entries of rows {} to {} are not where they were: set up a solver anew",
                              mine.entries(), mine.first_row, mine.first_row + mine.rows()));
  });
  const PreparedPreconditioner<T> prepared =
      prepare(*runtime_, blocks_, mine, settings_.preconditioner, settings_.shift, plan_);
  facts_.preconditioner = prepared.facts;
  if (prepared.facts.breakdown) return;
  system_.refresh(prepared);
  preconditioner_.refresh(prepared);
  describe_matrix();
}

template <class T, class V>
void ConjugateGradients<T, V>::describe_matrix() {
  facts_.entries = system_.structure().entries;
  facts_.formats.clear();
  for (Index b = 0; b < count(); ++b) facts_.formats.push_back(system_.matrix().shape(b).format);
  facts_.bytes_per_row = static_cast<double>(system_.matrix().bytes()) / static_cast<double>(system_.rows());
  facts_.bytes_exchanged = system_.exchange().bytes();
}

/// With zeros in them: tasks that a state lets do nothing leave what they would write as it is, and so it has to be
/// there.
template <class T, class V>
void ConjugateGradients<T, V>::make_tiles() {
  const bool has_m = preconditioner_.kind() != PreconditionerKind::none;
  for (Index k = 0; k < count(); ++k) {
    BlockTiles& t = tiles_.emplace_back();
    for (Tile<T>* own : {&t.x, &t.r, &t.b, &t.q}) *own = system_.own_vector(k);
    t.p = system_.whole_vector(k);
    t.pq = system_.sums(k);
    t.rr = system_.sums(k);
    if (has_m) t.rz = system_.sums(k);
    t.state = Tile<CgState>(*runtime_, 1, 1, blocks_.owner(k));
    set(*runtime_, t.state, [](Index, Index) { return CgState{}; });
  }
  for (const BlockTiles& t : tiles_) {
    all_pq_.add(t.pq);
    all_rr_.add(t.rr);
    all_rz_.add(has_m ? t.rz : t.rr);
  }
  for (int turn = 0; turn < 3; ++turn) looks_.push_back(one_per_rank<CgState>(*runtime_, 1, 1));
  look_iterations_.resize(looks_.size());
}

template <class T, class V>
CgArgs ConjugateGradients<T, V>::args(Index block) const {
  return {.shape = system_.matrix().shape(block), .unit = system_.unit(), .iteration = iteration_};
}

/// r = b - A x
template <class T, class V>
void ConjugateGradients<T, V>::submit_true_residual() {
  const BlockMatrix<T>& a = system_.matrix();
  for (Index k = 0; k < count(); ++k)
    codelets::place<T>({a.shape(k).own},
                       {.from = tiles_[k].x, .v = tiles_[k].p, .departures = system_.exchange().from(k)},
                       blocks_.hints(k));
  for (Index k = 0; k < count(); ++k) {
    BlockTiles& t = tiles_[k];
    codelets::residual<T>({a.shape(k), system_.unit()},
                          {.matrix = a.ports(k),
                           .arrivals = system_.exchange().to(k),
                           .v = t.p,
                           .b = t.b,
                           .r = t.r,
                           .rr = t.rr},
                          blocks_.hints(k));
  }
}

/// Of what submit_true_residual() has found, relative to b.
template <class T, class V>
double ConjugateGradients<T, V>::true_residual() const {
  std::vector<double> mine;
  for (Index k = 0; k < count(); ++k) {
    if (blocks_.owner(k) != runtime_->rank()) continue;
    const HostView<double> sums(tiles_[k].rr, HostView<double>::Access::read);
    mine.insert(mine.end(), sums.row(0), sums.row(0) + sums.cols());
  }
  double sum = 0;
  for (const double of_unit : gather_lists(*runtime_, mine)) sum += of_unit;
  return std::sqrt(sum) / norm_b_;
}

/// [Czapinski 2014] algorithm 6.2, lines 1 to 3: r = b - A x, z = M^-1 r, p = z
template <class T, class V>
void ConjugateGradients<T, V>::begin() {
  submit_true_residual();
  if (preconditioner_.kind() == PreconditionerKind::diagonal) scale_by_diagonal();
  precondition();
  turn(-1);
  iteration_ = 0;
}

/// Lines 5 to 10.
template <class T, class V>
void ConjugateGradients<T, V>::iterate_blocks(Index iterations) {
  for (Index i = 0; i < iterations; ++i, ++iteration_) {
    multiply();
    descend();
    precondition();
    turn(iteration_);
  }
}

/// The same in one task.
template <class T, class V>
void ConjugateGradients<T, V>::iterate_one_block(Index iterations) {
  BlockTiles& t = tiles_.front();
  Hints hints = blocks_.hints(0);
  hints.cost = static_cast<std::uint64_t>(iterations);
  codelets::cg_sweep<T, V>({args(0), iterations, preconditioner_.shape()},
                           {.matrix = system_.matrix().ports(0),
                            .preconditioner = preconditioner_.ports(),
                            .x = t.x,
                            .r = t.r,
                            .p = t.p,
                            .q = t.q,
                            .pq = t.pq,
                            .rr = t.rr,
                            .rz = preconditioner_.kind() == PreconditionerKind::none ? t.rr : t.rz,
                            .state = t.state},
                           hints);
  iteration_ += iterations;
}

/// (N1)
template <class T, class V>
void ConjugateGradients<T, V>::multiply() {
  for (Index k = 0; k < count(); ++k) {
    BlockTiles& t = tiles_[k];
    codelets::multiply<T>(args(k),
                          {.matrix = system_.matrix().ports(k),
                           .arrivals = system_.exchange().to(k),
                           .state = t.state,
                           .p = t.p,
                           .q = t.q,
                           .pq = t.pq},
                          blocks_.hints(k));
  }
}

/// (N2)
template <class T, class V>
void ConjugateGradients<T, V>::descend() {
  const bool diagonal = preconditioner_.kind() == PreconditionerKind::diagonal;
  for (Index k = 0; k < count(); ++k) {
    BlockTiles& t = tiles_[k];
    codelets::descend<T, V>(args(k),
                            {.pq = all_pq_,
                             .p = t.p,
                             .q = t.q,
                             .inverse_diagonal = diagonal ? preconditioner_.inverse_diagonal(k) : nullptr,
                             .x = t.x,
                             .r = t.r,
                             .rr = t.rr,
                             .rz = diagonal ? &t.rz : nullptr,
                             .state = t.state},
                            blocks_.hints(k));
  }
}

/// (N3)
template <class T, class V>
void ConjugateGradients<T, V>::turn(Index iteration) {
  const bool diagonal = preconditioner_.kind() == PreconditionerKind::diagonal;
  const double limit = settings_.tolerance * norm_b_;
  for (Index k = 0; k < count(); ++k) {
    BlockTiles& t = tiles_[k];
    CgArgs its = args(k);
    its.iteration = iteration;
    its.limit = limit * limit;
    codelets::turn<T, V>(its,
                         {.rr = all_rr_,
                          .rz = all_rz_,
                          .r = t.r,
                          .z = preconditioner_.has_z() ? &preconditioner_.z(k) : nullptr,
                          .inverse_diagonal = diagonal ? preconditioner_.inverse_diagonal(k) : nullptr,
                          .p = t.p,
                          .state = t.state,
                          .departures = system_.exchange().from(k)},
                         blocks_.hints(k));
  }
}

/// z = M^-1 r and (r, z), but for a diagonal, which other steps have in them once the iteration has begun.
template <class T, class V>
void ConjugateGradients<T, V>::precondition() {
  if (!preconditioner_.has_z()) return;
  preconditioner_.apply([this](Index k) -> const Tile<T>& { return tiles_[k].r; });
  for (Index k = 0; k < count(); ++k)
    codelets::dot<T>({system_.unit(), system_.matrix().shape(k).own},
                     {.a = tiles_[k].r, .b = preconditioner_.z(k), .sums = tiles_[k].rz}, blocks_.hints(k));
}

/// (Q1), with (r, z); z itself is left where nobody looks for it.
template <class T, class V>
void ConjugateGradients<T, V>::scale_by_diagonal() {
  for (Index k = 0; k < count(); ++k) {
    BlockTiles& t = tiles_[k];
    const BlockShape& shape = system_.matrix().shape(k);
    codelets::polynomial_step<T, V>(
        {{.rows = shape.rows, .cols = shape.cols, .own = shape.own}, system_.unit(), {0, 1}, true},
        {.matrix = {},
         .arrivals = {},
         .inverse_diagonal = preconditioner_.inverse_diagonal(k),
         .r = t.r,
         .z = t.p,
         .s = nullptr,
         .next = t.p,
         .rz = &t.rz,
         .departures = {}},
        blocks_.hints(k));
  }
}

template <class T, class V>
void ConjugateGradients<T, V>::submit_look(Index number) {
  const std::size_t place = number % looks_.size();
  look_iterations_[place] = iteration_;
  for (const Tile<CgState>& shown : looks_[place]) codelets::show(tiles_.front().state, shown);
}

/// None: a task has failed.
template <class T, class V>
std::optional<CgState> ConjugateGradients<T, V>::look(Index number) const {
  const Tile<CgState>& shown = looks_[number % looks_.size()][runtime_->rank()];
  std::optional<CgState> state;
  try {
    const HostView<CgState> view(shown, HostView<CgState>::Access::read);
    state = view(0, 0);
  } catch (const TaskFailure&) {
  }
  if (any(*runtime_, !state)) return {};
  return state;
}

template <class T, class V>
Norms ConjugateGradients<T, V>::norms(const CgState& state, Index number) const {
  const int side = side_of(look_iterations_[number % looks_.size()]);
  return {.residual = std::sqrt(state.rr),
          .solution = 0,
          .source = norm_b_,
          .broken = broken(state.status[side])};
}

/// @return what the iteration knew at its end
template <class T, class V>
CgState ConjugateGradients<T, V>::iterate_from_x(LinearReport& report) {
  const double bytes = (facts_.bytes_per_row + 12 * sizeof(T)) * static_cast<double>(system_.rows());
  const Index check_every = settings_.check_every > 0
                                ? settings_.check_every
                                : chosen_check_every(bytes, blocks_[0].where == Where::cuda);
  const Index done = report.iterations;
  CgState last{};
  Report part = iterate(*runtime_,
                        {.limit = settings_.max_iterations > 0 ? settings_.max_iterations - done : 0,
                         .check_every = check_every,
                         .rule = {.tolerance = settings_.tolerance},
                         .observer = settings_.observer},
                        {.load = [&] { begin(); },
                         .step = [&](Index n) { count() == 1 ? iterate_one_block(n) : iterate_blocks(n); },
                         .submit_residual = [&](Index number) { submit_look(number); },
                         .norms = [&](Index number) -> std::optional<Norms> {
                           const std::optional<CgState> state = look(number);
                           if (!state) return {};
                           last = *state;
                           return norms(last, number);
                         },
                         .store = [] {}});
  append(part, last.iterations, done, report);
  report.iterations = done + last.iterations;
  return last;
}

template <class T, class V>
double ConjugateGradients<T, V>::largest_of(const T* b, const T* x) const {
  double largest = 0;
  agree(*runtime_, [&] {
    for (Index i = 0; i < row_count(); ++i) {
      if (!std::isfinite(b[i]) || !std::isfinite(x[i]))
        throw Error(fmt::format("{} has {} in row {} (the first is 0): all numbers must be finite",
                                std::isfinite(b[i]) ? "the first guess" : "the right-hand side",
                                std::isfinite(b[i]) ? x[i] : b[i], range_.first + i));
      largest = std::max(largest, std::abs(static_cast<double>(b[i])));
    }
  });
  return std::ranges::max(gather(*runtime_, largest));
}

/// Whether the iteration has to begin anew from its last x, as its own residual says that it is done and the true one
/// does not.
template <class T, class V>
bool ConjugateGradients<T, V>::has_drifted(const CgState& last, LinearReport& report) const {
  if (settings_.tolerance == 0 || report.reason != Reason::solved) return false;
  if (report.true_residual <= most_drift * settings_.tolerance) return false;
  if (report.iterations == settings_.max_iterations) {
    report.reason = Reason::iteration_limit;
    return false;
  }
  if (report.restarts == most_restarts || last.iterations == 0) {
    report.reason = Reason::inaccurate;
    return false;
  }
  return true;
}

template <class T, class V>
LinearReport ConjugateGradients<T, V>::solve(const T* b, T* x) {
  LinearReport report;
  if (facts_.preconditioner.breakdown) {
    report.reason = Reason::zero_pivot;
    return report;
  }
  const double largest = largest_of(b, x);
  if (largest == 0) {
    std::fill_n(x, row_count(), T{});
    report.residual_history = {0};
    report.residual_iterations = {0};
    return report;
  }
  // In units of a power of two that is about as large as b, so that no square of a residual overflows or vanishes.
  scale_ = std::exp2(std::floor(std::log2(largest)));
  norm_b_ = norm(*runtime_, b, row_count(), system_.unit(), scale_);
  system_.load(b, scale_, [this](Index k) -> const Tile<T>& { return tiles_[k].b; });
  system_.load(x, scale_, [this](Index k) -> const Tile<T>& { return tiles_[k].x; });
  for (;; ++report.restarts) {
    const CgState last = iterate_from_x(report);
    if (report.restarts == 0) report.spectrum = spectrum_of(last);
    submit_true_residual();
    report.true_residual = true_residual();
    if (!has_drifted(last, report)) break;
  }
  system_.store([this](Index k) -> const Tile<T>& { return tiles_[k].x; }, scale_, x);
  return report;
}

template class ConjugateGradients<float>;
template class ConjugateGradients<double>;
template class ConjugateGradients<double, float>;

}  // namespace asterism::sparse
