#include "solver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "../../../codelets/sparse/krylov/conjugate_gradients.hpp"
#include "../../../codelets/sparse/krylov/residual.hpp"
#include "../../../runtime/collectives.hpp"
#include "../../../runtime/contents.hpp"
#include "../../../runtime/error.hpp"
#include "../../../runtime/hardware/machine.hpp"
#include "../../common/stopwatch.hpp"
#include "../../common/team.hpp"
#include "../../common/workers.hpp"
#include "../graph/pattern.hpp"
#include "norms.hpp"

namespace asterism::sparse {
namespace {

/// Times that an iteration begins anew, as its own residual has drifted from the true one.
constexpr Index most_restarts = 10;
/// Times that it may do so after a breakdown and be no better at the end.
constexpr Index most_fruitless = 3;
/// Right-hand sides that go along together, at most: with more the vectors take more time than what they share, and
/// more memory.
constexpr Index most_columns_together = 8;
/// A number that is less may have lost digits to underflow where it was multiplied.
template <class T>
constexpr T least_with_all_digits = std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon();

/// How much the true residual may be above the tolerance; the iteration's own is below it.
constexpr double most_drift = 1.1;

/// Calls body(i, c) for all elements of vectors that lie side by side, row by row.
template <class Body>
void for_rows_of_columns(Index rows, Index columns, const Body& body) {
  const auto in_rows = [&](Index first, Index end) {
    for (Index i = first; i < end; ++i)
      for (Index c = 0; c < columns; ++c) body(i, c);
  };
  in_parts(rows, 0, in_rows, least_copied);
}

/// So many iterations as take so long, but neither few nor very many.
Index iterations_in(double seconds, double seconds_of_one) {
  return std::clamp<Index>(static_cast<Index>(seconds / seconds_of_one), 10, 500);
}

/// A single block of cores for another core of its rank, so that each of several right-hand sides has one for itself.
Partition with_another_core(const Runtime& runtime, const Partition& block, Index number) {
  std::vector<Part> parts = block.parts();
  Part& part = parts.front();
  std::vector<int> cores;
  for (const Candidate& worker : all_workers(runtime))
    if (worker.rank == part.rank && worker.where == Where::cpu) cores.push_back(worker.worker);
  part.worker = cores[static_cast<std::size_t>(part.worker + number) % cores.size()];
  return Partition(std::move(parts));
}

}  // namespace

template <class T, class V>
KrylovSolver<T, V>::KrylovSolver(Runtime& runtime, const Csr<T>& mine, const LinearSettings& settings,
                                 MatrixClass matrix_class, Outer outer)
    : runtime_(&runtime), settings_(settings), matrix_class_(matrix_class), outer_(std::move(outer)) {
  require_sound(runtime, mine, settings);
  if (outer_) settings_.preconditioner.method = PreconditionerMethod::none;
  range_ = {mine.first_row, mine.first_row + mine.rows()};
  if (may_be_reduced(mine))
    reduced_ = ReducedSystem<T>::of(runtime, mine, matrix_class, keeps_schur(), facts_.seconds);
  if (!reduced_) {
    set_up(mine);
    return;
  }
  settings_.preconditioner.method = PreconditionerMethod::diagonal;
  if (const UnformedSchur* const schur = reduced_->unformed())
    set_up_unformed(*schur);
  else
    set_up(reduced_->matrix());
  facts_.preconditioner = reduced_->facts();
}

/// Of these rows: of A, or of the reduced system.
template <class T, class V>
void KrylovSolver<T, V>::set_up(const Csr<T>& mine) {
  Runtime& runtime = *runtime_;
  Stopwatch watch;
  blocks_ =
      divide(runtime, mine.total_rows, mine.first_row, mine.row_begin, settings_.workers, settings_.blocks);
  facts_.blocks = blocks_.parts();
  facts_.seconds["divide"] = watch.lap();
  const PreparedPreconditioner<T> prepared =
      prepare(runtime, blocks_, mine, settings_.preconditioner, settings_.shift, matrix_class_);
  facts_.preconditioner = prepared.facts;
  for (const auto& [part, seconds] : prepared.seconds) facts_.seconds[part] += seconds;
  watch.lap();
  if (settings_.values == Values::refreshed) {
    plan_ = prepared.plan;
    pattern_ = fingerprint(mine.row_begin, mine.columns);
  }
  if (prepared.facts.breakdown) return;
  set_up_system(LinearSystem<T>(runtime, blocks_, prepared, settings_.format), prepared);
  facts_.seconds["arrange"] = watch.lap();
}

/// Of a reduced system that the first GPU has alone.
template <class T, class V>
void KrylovSolver<T, V>::set_up_unformed(const UnformedSchur& schur) {
  if constexpr (std::is_same_v<T, double>) {
    Stopwatch watch;
    blocks_ = Partition({{0, schur.arrays().shape.rows, 0, Where::cuda, 0}});
    facts_.blocks = blocks_.parts();
    PreparedPreconditioner<T> prepared;
    prepared.kind = PreconditionerKind::diagonal;
    prepared.inverse_diagonal = schur.inverse_diagonal();
    set_up_system(LinearSystem<T>(*runtime_, blocks_, schur.arrays(), schur.entries()), prepared);
    facts_.seconds["arrange"] = watch.lap();
  }
}

template <class T, class V>
void KrylovSolver<T, V>::set_up_system(LinearSystem<T> system, const PreparedPreconditioner<T>& prepared) {
  system_ = std::move(system);
  if (outer_) {
    outer_->attach(system_);
    use_outer();
  } else {
    preconditioner_ = AppliedPreconditioner<T, V>(system_, prepared);
  }
  make_tiles();
  describe_matrix();
}

template <class T, class V>
KrylovSolver<T, V>::KrylovSolver(Runtime& runtime, LinearOperator<T> a, const LinearSettings& settings)
    : runtime_(&runtime), settings_(settings), operator_(std::move(a)) {
  require_sound(runtime, *operator_, settings);
  Stopwatch watch;
  blocks_ = divide_lines(runtime, operator_->rows, operator_->line, settings.workers, settings.blocks);
  facts_.blocks = blocks_.parts();
  range_ = blocks_.elements_of(runtime.rank());
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

template <class T, class V>
KrylovSolver<T, V>::KrylovSolver(const Beside& beside)
    : runtime_(beside.first.runtime_),
      settings_(beside.first.settings_),
      matrix_class_(beside.first.matrix_class_),
      outer_(beside.first.outer_),
      blocks_(beside.first.blocks_),
      range_(beside.first.range_),
      facts_(beside.first.facts_),
      first_(&beside.first),
      exchange_(beside.first.system_.another_exchange()) {
  if (outer_)
    use_outer();
  else
    preconditioner_ = beside.first.preconditioner_.another();
  if (is_one_block() && is_on_cores()) blocks_ = with_another_core(*runtime_, blocks_, beside.number);
  make_tiles();
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

/// Of the rows that are given, in sums over them.
template <class T, class V>
Index KrylovSolver<T, V>::unit_of_given() const {
  return reduced() != nullptr ? unit_rows(reduced()->rows()) : system().unit();
}

template <class T, class V>
void KrylovSolver<T, V>::use_outer() {
  preconditioner_ = AppliedPreconditioner<T, V>(
      system(), [this](const auto& r, const auto& z) { outer_->apply({r}, {z}); });
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
bool KrylovSolver<T, V>::uses_gpus() const {
  return std::ranges::any_of(chosen_workers(all_workers(*runtime_), settings_.workers),
                             [](const Candidate& worker) { return worker.where == Where::cuda; });
}

/// Other values could have pivots that make it impossible.
template <class T, class V>
bool KrylovSolver<T, V>::may_be_reduced(const Csr<T>& mine) const {
  const PreconditionerChoice& choice = settings_.preconditioner;
  if (settings_.values != Values::fixed) return false;
  if (choice.method == PreconditionerMethod::automatic && matrix_class_ == MatrixClass::positive_definite)
    return gains_by_reduction(*runtime_, mine, matrix_class_, uses_gpus());
  return choice.method == PreconditionerMethod::mc_ilu && choice.p == 0 && choice.q == 1;
}

/// On one GPU, if its multiprocessors have room for all that an iteration works on.
template <class T, class V>
KeepsSchur KrylovSolver<T, V>::keeps_schur() const {
  const bool is_for_one_gpu = runtime_->ranks() == 1 && uses_gpus() &&
                              settings_.workers == Workers::fastest && settings_.blocks <= 1 &&
                              !settings_.format;
  if constexpr (built_with_cuda && std::is_same_v<T, double>)
    if (is_for_one_gpu && matrix_class_ == MatrixClass::positive_definite)
      return [this](const BlockShape& schur, int diagonals) {
        bool keeps = false;
        runtime_->on_worker(WorkerKind::cuda, 0, [&] { keeps = cuda::keeps_schur(schur, diagonals); });
        return keeps;
      };
  return {};
}

template <class T, class V>
const ReducedSystem<T>* KrylovSolver<T, V>::reduced() const {
  const KrylovSolver& first = first_ != nullptr ? *first_ : *this;
  return first.reduced_ ? &*first.reduced_ : nullptr;
}

template <class T, class V>
void KrylovSolver<T, V>::make_tiles() {
  for (Index k = 0; k < count(); ++k) {
    BlockTiles& t = tiles_.emplace_back();
    for (Tile<T>* filled : {&t.x, &t.b})  // by load()
      *filled = Tile<T>(*runtime_, 1, blocks_[k].size, blocks_.owner(k));
    t.r = system().own_vector(k);
    t.v = system().whole_vector(k);
    t.rr = system().sums(k);
  }
  for (const BlockTiles& t : tiles_) all_rr_.add(t.rr);
}

/// Where nothing is left of the residual in units of b, products of its elements vanish one by one: (r, M^-1 r) may be 0
/// before (r, r) is, which says nothing of M.
template <class T, class V>
double KrylovSolver<T, V>::limit() const {
  const double least =
      std::max(static_cast<double>(least_with_all_digits<T>), std::sqrt(least_with_all_digits<double>));
  const double norm = std::max(settings_.tolerance * norm_b_, least);
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
  const BlockMatrix<T>& a = system().matrix();
  for (Index k = 0; k < count(); ++k)
    codelets::place<T>({a.shape(k).own},
                       {.from = tiles_[k].x, .v = tiles_[k].v, .departures = exchange().from(k)},
                       blocks_.hints(k));
  if (has_operator())
    submit_product([this](Index k) -> const Tile<T>& { return tiles_[k].v; },
                   [this](Index k) -> const Tile<T>& { return products_[k]; });
  for (Index k = 0; k < count(); ++k) {
    BlockTiles& t = tiles_[k];
    codelets::residual<T>({a.shape(k), system().unit()},
                          {.matrix = a.ports(k),
                           .arrivals = exchange().to(k),
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
  return preconditioner_.has_z() ? Departures<AsTiles, T>{} : exchange().from(block);
}

template <class T, class V>
void KrylovSolver<T, V>::apply_to_all(const Solvers& going, const std::function<VectorOf(KrylovSolver&)>& v) {
  const KrylovSolver& any = *going.front();
  if (!any.preconditioner_.has_z()) return;
  if (any.outer_) {
    std::vector<VectorOf> r, z;
    for (KrylovSolver* its : going) {
      r.push_back(v(*its));
      z.push_back([its](Index k) -> const Tile<T>& { return its->preconditioner_.z(k); });
    }
    any.outer_->apply(r, z);
  } else {
    for (KrylovSolver* its : going) its->preconditioner_.apply(v(*its));
  }
}

template <class T, class V>
bool KrylovSolver<T, V>::is_on_cores() const {
  return std::ranges::all_of(blocks_.parts(), [](const Part& block) { return block.where == Where::cpu; });
}

template <class T, class V>
void KrylovSolver<T, V>::precondition_all(const Solvers& going,
                                          const std::function<VectorOf(KrylovSolver&)>& v) {
  apply_to_all(going, v);
  for (KrylovSolver* its : going) its->send_preconditioned();
}

template <class T, class V>
void KrylovSolver<T, V>::send_preconditioned() {
  if (!preconditioner_.has_z() || count() == 1) return;
  for (Index k = 0; k < count(); ++k)
    send(preconditioner_.z(k), system().matrix().shape(k).own, exchange().from(k), blocks_.hints(k));
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

/// A look at the residual and the end of a task, half a millisecond on several GPUs, are to cost little; so are the
/// iterations that are made in vain after the last one that counts.
template <class T, class V>
IterationSettings KrylovSolver<T, V>::looks() const {
  if (settings_.check_every > 0) return {.check_every = settings_.check_every};
  if (outer_) return {};  // an iteration lasts long enough, and none should be made in vain
  const double bytes = (facts_.bytes_per_row + 12 * sizeof(T)) * static_cast<double>(system().rows());
  const double bandwidth = blocks_[0].where == Where::cuda ? 3e12 : 1e10,
               messages = runtime_->ranks() > 1 ? 1e-4 : 0;
  constexpr double of_a_task = 5e-6, tasks_of_a_step = 3;  // of each block
  const double tasks = is_one_block() ? 0
                                      : static_cast<double>(count()) *
                                            (tasks_of_a_step + static_cast<double>(preconditioner_.tasks()));
  const double seconds = std::max({bytes / bandwidth, messages, of_a_task * tasks});
  return {.check_every = std::min(iterations_in(1e-2, seconds), most_between_looks()),
          .rarest_check = std::min(iterations_in(1e-1, seconds), most_between_looks())};
}

/// @throw Error, on all ranks: something is wrong with the preconditioner of another family
template <class T, class V>
void KrylovSolver<T, V>::settle_outer() {
  if (outer_) outer_->settle();
}

/// An iteration from the x that there is.
template <class T, class V>
JoinedIteration KrylovSolver<T, V>::iteration_of(Column& column) {
  const LinearReport& before = column.report;
  const Index limit = settings_.max_iterations > 0 ? settings_.max_iterations - before.iterations : 0;
  IterationSettings its = looks();
  its.limit = limit;
  its.rule.tolerance = settings_.tolerance;
  its.observer = settings_.observer;
  return {its,
          {.load =
               [this, attempt = before.restarts] {
                 submit_residual();
                 begin(attempt);
               },
           .step = {},
           .submit_residual = [this](Index number) { submit_look(number); },
           .norms = [this, &column](Index number) -> std::optional<Norms> {
             const std::optional<Seen> seen = look(number);
             if (!seen) return {};
             if (number > 0) settle_outer();
             column.last = *seen;
             return Norms{
                 .residual = std::sqrt(seen->rr), .solution = 0, .source = norm_b_, .broken = seen->broken};
           },
           .store = [] {}}};
}

template <class T, class V>
void KrylovSolver<T, V>::iterate_several(const Solvers& all, const std::vector<Index>& counts) {
  const Index most = std::ranges::max(counts);
  for (Index i = 0; i < most; ++i) {
    Solvers going;
    for (std::size_t c = 0; c < all.size(); ++c)
      if (counts[c] > i) going.push_back(all[c]);
    iterate_all(going);
  }
}

/// So many iterations of each. Those that have a core each do not wait for one another.
template <class T, class V>
void KrylovSolver<T, V>::iterate_columns(const std::vector<Column*>& columns,
                                         const std::vector<Index>& counts) {
  Solvers all;
  for (Column* column : columns) all.push_back(column->solver);
  if (all.size() > 1 && !(is_one_block() && is_on_cores())) return iterate_several(all, counts);
  for (std::size_t c = 0; c < all.size(); ++c)
    if (counts[c] > 0) all[c]->iterate(counts[c]);
}

template <class T, class V>
void KrylovSolver<T, V>::iterate_from_x(const std::vector<Column*>& columns) {
  std::vector<JoinedIteration> iterations;
  for (Column* column : columns) iterations.push_back(column->solver->iteration_of(*column));
  const std::vector<Report> parts = iterate_together(
      *runtime_, iterations, [&](const std::vector<Index>& counts) { iterate_columns(columns, counts); });
  for (std::size_t c = 0; c < columns.size(); ++c) {
    LinearReport& report = columns[c]->report;
    const Index done = report.iterations, made = columns[c]->last.iterations;
    append(parts[c], made, done, report);
    report.iterations = done + made;
  }
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
void KrylovSolver<T, V>::load(Column& column) {
  LinearReport& report = column.report;
  if (!is_ready()) {
    report.reason = Reason::zero_pivot;
    return;
  }
  const Largest largest = largest_of(*runtime_, range_, column.b, column.x);
  if (largest.b == 0) {
    std::fill_n(column.x, row_count(), T{});
    report.residual_history = {0};
    report.residual_iterations = {0};
    return;
  }
  // In units of a power of two that is about as large as b, so that no square of a residual overflows or vanishes.
  column.scale = std::exp2(std::floor(std::log2(largest.b)));
  norm_b_ = norm(*runtime_, row_count(), unit_of_given(),
                 [&](Index i) { return static_cast<double>(column.b[i]) / column.scale; });
  load_vectors(column, largest.x != 0);
  least_residual_ = std::numeric_limits<double>::infinity();
  fruitless_ = 0;
}

template <class T, class V>
void KrylovSolver<T, V>::load_vectors(const Column& column, bool has_guess) {
  const auto b = [this](Index k) -> const Tile<T>& { return tiles_[k].b; };
  const auto x = [this](Index k) -> const Tile<T>& { return tiles_[k].x; };
  if (const ReducedSystem<T>* const its = reduced()) {
    system().load(its->right_hand_side(column.b, column.scale).data(), 1, b);
    if (has_guess) system().load(its->first_guess(column.x, column.scale).data(), 1, x);
  } else {
    system().load(column.b, column.scale, b);
    if (has_guess) system().load(column.x, column.scale, x);
  }
  if (has_guess) return;
  for (Index k = 0; k < count(); ++k) clear(tiles_[k].x, blocks_.hints(k));
}

/// Of a reduced system the residual of all rows is told.
template <class T, class V>
void KrylovSolver<T, V>::store(Column& column) {
  const auto x = [this](Index k) -> const Tile<T>& { return tiles_[k].x; };
  const ReducedSystem<T>* const its = reduced();
  if (its == nullptr) return system().store(x, column.scale, column.x);
  Array<T> black(static_cast<std::size_t>(its->own_rows()));
  system().store(x, 1, black.data());
  const auto result = its->solution(column.b, black, column.scale, column.x);
  LinearReport& report = column.report;
  report.true_residual = norm(*runtime_, row_count(), unit_of_given(),
                              [&](Index i) { return its->residual(i, column.b, column.scale, result); }) /
                         norm_b_;
  if (report.reason == Reason::solved && report.true_residual > most_drift * settings_.tolerance)
    report.reason = Reason::inaccurate;
}

template <class T, class V>
void KrylovSolver<T, V>::solve_together(std::vector<Column>& columns) {
  std::vector<Column*> going;
  for (Column& column : columns) {
    column.solver->load(column);
    if (column.scale > 0) going.push_back(&column);
  }
  while (!going.empty()) {
    iterate_from_x(going);
    for (Column* column : going) {
      column->solver->finish();
      if (column->report.restarts == 0) column->report.spectrum = column->solver->spectrum();
      column->solver->submit_residual();
    }
    std::vector<Column*> again;
    for (Column* column : going) {
      LinearReport& report = column->report;
      report.true_residual = column->solver->true_residual();
      if (!column->solver->begins_anew(column->last, report)) continue;
      ++report.restarts;
      again.push_back(column);
    }
    going = std::move(again);
  }
  for (Column& column : columns)
    if (column.scale > 0) column.solver->store(column);
}

template <class T, class V>
LinearReport KrylovSolver<T, V>::solve(const T* b, T* x) {
  std::vector<Column> one{{this, b, x}};
  solve_together(one);
  return std::move(one.front().report);
}

/// Whether right-hand sides do that go along together: where M is of another family, or where a matrix is read once for
/// all of them, or cores have one of them each.
template <class T, class V>
bool KrylovSolver<T, V>::gain_together() const {
  if (outer_ || has_operator()) return static_cast<bool>(outer_);
  return is_on_cores() ? is_one_block() || shares_matrix() : gains_on_gpus();
}

/// How many right-hand sides go along together, with solvers for them.
template <class T, class V>
Index KrylovSolver<T, V>::columns_together(Index columns) {
  if (columns <= 1 || !is_ready() || !gain_together()) return 1;
  Index most = most_in_memory(std::min(columns, most_columns_together));
  if (outer_) most = outer_->most_together(most);
  if (most > 1 && others_.empty())
    if (auto other = another(1)) others_.push_back(std::move(other));
  if (most <= 1 || others_.empty()) return 1;
  const Index groups = parts(columns, most), together = parts(columns, groups);
  for (Index number = 1; number < together; ++number)
    if (number > static_cast<Index>(others_.size())) others_.push_back(another(number));
  if (outer_) outer_->make_room(together);
  return together;
}

/// Of so many right-hand sides, those whose vectors take no more than half of the memory of any rank, and of what a matrix
/// leaves of a GPU's.
template <class T, class V>
Index KrylovSolver<T, V>::most_in_memory(Index columns) const {
  const Index bytes = vectors() * static_cast<Index>(sizeof(T)) * std::max<Index>(1, row_count());
  Index room = static_cast<Index>(physical_memory());
  if (!is_on_cores() && row_count() > 0)
    room = std::min(
        room, static_cast<Index>(runtime_->machine().capacity(MemoryKind::gpu)) - system().matrix().bytes());
  return std::min(columns, std::ranges::min(gather(*runtime_, std::max<Index>(1, room / 2 / bytes))));
}

template <class T, class V>
std::vector<LinearReport> KrylovSolver<T, V>::solve(const T* b, T* x, Index columns) {
  if (columns == 1) return {solve(b, x)};
  const Index together = columns_together(columns), n = row_count();
  std::vector<LinearReport> reports;
  Array<T> some_b(static_cast<std::size_t>(n * together)), some_x(some_b.size());
  for (Index first = 0; first < columns; first += together) {
    std::vector<Column> group;
    const Index count = std::min(together, columns - first);
    for_rows_of_columns(n, count, [&](Index i, Index c) {
      some_b[c * n + i] = b[i * columns + first + c];
      some_x[c * n + i] = x[i * columns + first + c];
    });
    for (Index c = 0; c < count; ++c) {
      KrylovSolver* const solver = c == 0 ? this : others_[static_cast<std::size_t>(c - 1)].get();
      group.push_back({solver, some_b.data() + c * n, some_x.data() + c * n});
    }
    solve_together(group);
    for_rows_of_columns(n, count, [&](Index i, Index c) { x[i * columns + first + c] = some_x[c * n + i]; });
    for (Column& column : group) reports.push_back(std::move(column.report));
  }
  return reports;
}

template class KrylovSolver<float>;
template class KrylovSolver<double>;
template class KrylovSolver<double, float>;

}  // namespace asterism::sparse
