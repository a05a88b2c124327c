#include "krylov_solver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "../../codelets/sparse/krylov/residual.hpp"
#include "../../runtime/collectives.hpp"
#include "../../runtime/error.hpp"
#include "../common/iteration/iteration.hpp"
#include "../common/stopwatch.hpp"
#include "graph/pattern.hpp"

namespace asterism::sparse {
namespace {

/// Times that an iteration begins anew, as its own residual has drifted from the true one.
constexpr Index most_restarts = 10;
/// Times that it may do so after a breakdown and be no better at the end.
constexpr Index most_fruitless = 3;
/// How much the true residual may be above the tolerance; the iteration's own is below it.
constexpr double most_drift = 1.1;

template <class T>
std::vector<Index> entries_of_rows(const Csr<T>& mine) {
  std::vector<Index> entries(static_cast<std::size_t>(mine.rows()));
  for (Index i = 0; i < mine.rows(); ++i) entries[i] = mine.row_begin[i + 1] - mine.row_begin[i];
  return entries;
}

/// The root of what the units of all ranks add up to, unit by unit, which no division into ranks changes.
double root_of_sum(const Runtime& runtime, const std::vector<double>& mine) {
  double sum = 0;
  for (const double of_unit : gather_lists(runtime, mine)) sum += of_unit;
  return std::sqrt(sum);
}

/// The Euclidean norm over `scale`.
template <class T>
double norm(const Runtime& runtime, const T* mine, Index rows, Index unit, double scale) {
  std::vector<double> sums(static_cast<std::size_t>(units_of(rows, unit)));
  for (Index i = 0; i < rows; ++i) {
    const double value = static_cast<double>(mine[i]) / scale;
    sums[i / unit] += value * value;
  }
  return root_of_sum(runtime, sums);
}

/// So many iterations that a look at the residual, and the end of a task, cost little: more are made in vain.
Index chosen_check_every(double seconds_of_iteration) {
  constexpr double seconds = 1e-2;
  return std::clamp<Index>(static_cast<Index>(seconds / seconds_of_iteration), 10, 500);
}

}  // namespace

template <class T, class V>
KrylovSolver<T, V>::KrylovSolver(Runtime& runtime, const Csr<T>& mine, const LinearSettings& settings,
                                 MatrixClass matrix_class, Outer outer)
    : runtime_(&runtime), settings_(settings), matrix_class_(matrix_class), outer_(std::move(outer)) {
  require_sound(runtime, mine, settings);
  if (outer_) settings_.preconditioner.method = PreconditionerMethod::none;
  Stopwatch watch;
  blocks_ = divide(runtime, mine.total_rows, mine.first_row, entries_of_rows(mine), settings.workers,
                   settings.blocks);
  set_rows();
  facts_.seconds["divide"] = watch.lap();
  const PreparedPreconditioner<T> prepared =
      prepare(runtime, blocks_, mine, settings_.preconditioner, settings.shift, matrix_class);
  facts_.preconditioner = prepared.facts;
  facts_.seconds.merge(std::map(prepared.seconds));
  watch.lap();
  if (settings.values == Values::refreshed) {
    plan_ = prepared.plan;
    pattern_ = fingerprint(mine.row_begin, mine.columns);
  }
  if (prepared.facts.breakdown) return;
  system_ = LinearSystem<T>(runtime, blocks_, prepared, settings.format);
  if (outer_)
    apply_outer();
  else
    preconditioner_ = AppliedPreconditioner<T, V>(system_, prepared);
  make_tiles();
  describe_matrix();
  facts_.seconds["arrange"] = watch.lap();
}

template <class T, class V>
KrylovSolver<T, V>::KrylovSolver(Runtime& runtime, LinearOperator<T> a, const LinearSettings& settings)
    : runtime_(&runtime), settings_(settings), operator_(std::move(a)) {
  require_sound(runtime, *operator_, settings);
  Stopwatch watch;
  blocks_ = divide_lines(runtime, operator_->rows, operator_->line, settings.workers, settings.blocks);
  set_rows();
  facts_.seconds["divide"] = watch.lap();
  facts_.preconditioner.choice.method = PreconditionerMethod::none;
  system_ = LinearSystem<T>(runtime, blocks_);
  if (operator_->precondition)
    preconditioner_ = AppliedPreconditioner<T, V>(system_, [this](const auto& r, const auto& z) {
      operator_->precondition({blocks_, r}, {blocks_, z});
    });
  make_tiles();
  for (Index k = 0; k < count(); ++k) products_.push_back(system_.own_vector(k));
  facts_.seconds["arrange"] = watch.lap();
}

/// @throw Error, on all ranks
template <class T, class V>
void KrylovSolver<T, V>::require_refreshable(const Csr<T>& mine) const {
  agree(*runtime_, [&] {
    if (outer_) throw Error("a preconditioner of another family keeps its values: set up a solver anew");
    if (has_operator()) throw Error("an operator has no values to refresh: its own tasks know them");
    if (settings_.values == Values::fixed)
      throw Error("the matrix has other values, which were said to be fixed: set LinearSettings::values");
    if (tiles_.empty())
      throw Error("the matrix has other values, and broke down with those before: set up a solver anew");
    if (fingerprint(mine.row_begin, mine.columns) != pattern_)
      throw Error(fmt::format("the {} entries of rows {} to {} are not where they were: set up a solver anew",
                              mine.entries(), mine.first_row, mine.first_row + mine.rows()));
  });
}

template <class T, class V>
void KrylovSolver<T, V>::refresh(const Csr<T>& mine) {
  require_refreshable(mine);
  // What automatic became when all was set up: the tiles are there for that.
  const PreparedPreconditioner<T> prepared =
      prepare(*runtime_, blocks_, mine, facts_.preconditioner.choice, settings_.shift, matrix_class_, plan_);
  facts_.preconditioner = prepared.facts;
  if (prepared.facts.breakdown) return;
  system_.refresh(prepared);
  preconditioner_.refresh(prepared);
  describe_matrix();
}

template <class T, class V>
void KrylovSolver<T, V>::apply_outer() {
  outer_->attach(system_);
  preconditioner_ =
      AppliedPreconditioner<T, V>(system_, [this](const auto& r, const auto& z) { outer_->apply(r, z); });
}

template <class T, class V>
void KrylovSolver<T, V>::describe_matrix() {
  facts_.entries = system_.structure().entries;
  facts_.formats.clear();
  for (Index k = 0; k < count(); ++k) facts_.formats.push_back(system_.matrix().shape(k).format);
  facts_.bytes_per_row = static_cast<double>(system_.matrix().bytes()) / static_cast<double>(system_.rows());
  facts_.bytes_exchanged = system_.exchange().bytes();
}

template <class T, class V>
void KrylovSolver<T, V>::set_rows() {
  range_ = blocks_.elements_of(runtime_->rank());
  facts_.blocks = blocks_.parts();
}

template <class T, class V>
void KrylovSolver<T, V>::make_tiles() {
  for (Index k = 0; k < count(); ++k) {
    BlockTiles& t = tiles_.emplace_back();
    for (Tile<T>* own : {&t.x, &t.b, &t.r}) *own = system_.own_vector(k);
    t.v = system_.whole_vector(k);
    t.rr = system_.sums(k);
  }
  for (const BlockTiles& t : tiles_) all_rr_.add(t.rr);
}

template <class T, class V>
double KrylovSolver<T, V>::limit() const {
  const double norm = settings_.tolerance * norm_b_;
  return norm * norm;
}

template <class T, class V>
void KrylovSolver<T, V>::submit_product(const typename LinearSystem<T>::VectorOf& from,
                                        const typename LinearSystem<T>::VectorOf& to) const {
  operator_->multiply({blocks_, from}, {blocks_, to});
}

/// With an operator the product is made by its tasks, and A is I in what follows.
template <class T, class V>
void KrylovSolver<T, V>::submit_residual() {
  const BlockMatrix<T>& a = system_.matrix();
  for (Index k = 0; k < count(); ++k)
    codelets::place<T>({a.shape(k).own},
                       {.from = tiles_[k].x, .v = tiles_[k].v, .departures = system_.exchange().from(k)},
                       blocks_.hints(k));
  if (has_operator())
    submit_product([this](Index k) -> const Tile<T>& { return tiles_[k].v; },
                   [this](Index k) -> const Tile<T>& { return products_[k]; });
  for (Index k = 0; k < count(); ++k) {
    BlockTiles& t = tiles_[k];
    codelets::residual<T>({a.shape(k), system_.unit()},
                          {.matrix = a.ports(k),
                           .arrivals = system_.exchange().to(k),
                           .v = has_operator() ? products_[k] : t.v,
                           .b = t.b,
                           .r = t.r,
                           .rr = t.rr},
                          blocks_.hints(k));
  }
}

template <class T, class V>
const Tile<V>* KrylovSolver<T, V>::inverse_diagonal(Index block) const {
  const bool is_diagonal = preconditioner_.kind() == PreconditionerKind::diagonal;
  return is_diagonal ? preconditioner_.inverse_diagonal(block) : nullptr;
}

template <class T, class V>
Departures<AsTiles, T> KrylovSolver<T, V>::hat_departures(Index block) const {
  return preconditioner_.has_z() ? Departures<AsTiles, T>{} : system_.exchange().from(block);
}

template <class T, class V>
void KrylovSolver<T, V>::precondition(const typename LinearSystem<T>::VectorOf& v) {
  if (!preconditioner_.has_z()) return;
  preconditioner_.apply(v);
  for (Index k = 0; k < count() && count() > 1; ++k)
    codelets::send<T>({system_.matrix().shape(k).own},
                      {.v = preconditioner_.z(k), .departures = system_.exchange().from(k)},
                      blocks_.hints(k));
}

/// Of what submit_residual() has found, relative to b.
template <class T, class V>
double KrylovSolver<T, V>::true_residual() const {
  std::vector<double> mine;
  for (Index k = 0; k < count(); ++k) {
    if (blocks_.owner(k) != runtime_->rank()) continue;
    const HostView<double> sums(tiles_[k].rr, HostView<double>::Access::read);
    mine.insert(mine.end(), sums.row(0), sums.row(0) + sums.cols());
  }
  return root_of_sum(*runtime_, mine) / norm_b_;
}

template <class T, class V>
Index KrylovSolver<T, V>::check_every() const {
  if (settings_.check_every > 0) return settings_.check_every;
  if (outer_) return 1;  // an iteration lasts long enough, and none should be made in vain
  const double bytes = (facts_.bytes_per_row + 12 * sizeof(T)) * static_cast<double>(system_.rows());
  const double bandwidth = blocks_[0].where == Where::cuda ? 3e12 : 1e10,
               messages = runtime_->ranks() > 1 ? 1e-4 : 0;
  return std::min(chosen_check_every(std::max(bytes / bandwidth, messages)), most_between_looks());
}

/// @return what was seen of the iteration at its end
template <class T, class V>
typename KrylovSolver<T, V>::Seen KrylovSolver<T, V>::iterate_from_x(LinearReport& report) {
  const Index done = report.iterations;
  Seen last;
  Report part = asterism::iterate(
      *runtime_,
      {.limit = settings_.max_iterations > 0 ? settings_.max_iterations - done : 0,
       .check_every = check_every(),
       .rule = {.tolerance = settings_.tolerance},
       .observer = settings_.observer},
      {.load =
           [&] {
             submit_residual();
             begin(report.restarts);
           },
       .step = [&](Index n) { iterate(n); },
       .submit_residual = [&](Index number) { submit_look(number); },
       .norms = [&](Index number) -> std::optional<Norms> {
         const std::optional<Seen> seen = look(number);
         if (!seen) return {};
         last = *seen;
         return Norms{
             .residual = std::sqrt(last.rr), .solution = 0, .source = norm_b_, .broken = last.broken};
       },
       .store = [] {}});
  append(part, last.iterations, done, report);
  report.iterations = done + last.iterations;
  return last;
}

/// The largest magnitude in b, on all ranks. @throw Error: b or x is not finite
template <class T, class V>
double KrylovSolver<T, V>::largest_of(const T* b, const T* x) const {
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

/// Whether the iteration has to begin anew from its last x: its own residual says that it is done and the true one
/// does not, or there was nothing to divide by.
template <class T, class V>
bool KrylovSolver<T, V>::begins_anew(const Seen& last, LinearReport& report) {
  const bool broke_down = report.reason == Reason::breakdown;
  const bool is_better = report.true_residual < 0.5 * least_residual_;
  least_residual_ = std::min(least_residual_, report.true_residual);
  fruitless_ = !broke_down || is_better ? 0 : fruitless_ + 1;
  if (settings_.tolerance == 0 || (report.reason != Reason::solved && !broke_down)) return false;
  if (report.true_residual <= most_drift * settings_.tolerance) {
    report.reason = Reason::solved;
    return false;
  }
  if (settings_.max_iterations > 0 && report.iterations == settings_.max_iterations) {
    report.reason = Reason::iteration_limit;
    return false;
  }
  if (report.restarts == most_restarts || fruitless_ == most_fruitless ||
      (last.iterations == 0 && !broke_down)) {
    if (!broke_down) report.reason = Reason::inaccurate;
    return false;
  }
  return true;
}

template <class T, class V>
LinearReport KrylovSolver<T, V>::solve(const T* b, T* x) {
  LinearReport report;
  if (!is_ready()) {
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
  const double scale = std::exp2(std::floor(std::log2(largest)));
  norm_b_ = norm(*runtime_, b, row_count(), system_.unit(), scale);
  system_.load(b, scale, [this](Index k) -> const Tile<T>& { return tiles_[k].b; });
  system_.load(x, scale, [this](Index k) -> const Tile<T>& { return tiles_[k].x; });
  least_residual_ = std::numeric_limits<double>::infinity();
  for (fruitless_ = 0;; ++report.restarts) {
    const Seen last = iterate_from_x(report);
    finish();
    if (report.restarts == 0) report.spectrum = spectrum();
    submit_residual();
    report.true_residual = true_residual();
    if (!begins_anew(last, report)) break;
  }
  system_.store([this](Index k) -> const Tile<T>& { return tiles_[k].x; }, scale, x);
  return report;
}

template <class T, class V>
std::vector<LinearReport> KrylovSolver<T, V>::solve(const T* b, T* x, Index columns) {
  std::vector<LinearReport> reports;
  std::vector<T> one_b(static_cast<std::size_t>(row_count())), one_x(one_b.size());
  for (Index k = 0; k < columns; ++k) {
    for (Index i = 0; i < row_count(); ++i) {
      one_b[i] = b[i * columns + k];
      one_x[i] = x[i * columns + k];
    }
    reports.push_back(solve(one_b.data(), one_x.data()));
    for (Index i = 0; i < row_count(); ++i) x[i * columns + k] = one_x[i];
  }
  return reports;
}

template class KrylovSolver<float>;
template class KrylovSolver<double>;
template class KrylovSolver<double, float>;

}  // namespace asterism::sparse
