#include "conjugate_gradients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "../../codelets/sparse/codelets.hpp"
#include "../../codelets/sparse/residual.hpp"
#include "../../runtime/collectives.hpp"
#include "../../runtime/error.hpp"
#include "../common/iteration.hpp"
#include "../common/one_per_rank.hpp"
#include "../common/set.hpp"
#include "../common/statement.hpp"
#include "../common/stopwatch.hpp"
#include "spectrum.hpp"

namespace asterism::sparse {
namespace {

/// Times that an iteration begins anew, from its last x, when its own residual says that it is done and the true one does not.
constexpr Index most_restarts = 10;
/// How much the true residual may be above the tolerance; the iteration's own is below it.
constexpr double most_drift = 1.1;

template <class T>
void require_sound(const Runtime& runtime, const Csr<T>& mine, const LinearSettings& settings) {
  agree(runtime, [&] {
    if (mine.total_rows < 1 || mine.total_rows != mine.cols)
      throw Error(fmt::format("the matrix is {} x {}: it must be square, and have a row", mine.total_rows, mine.cols));
    for (const Index column : mine.columns)
      if (column < 0 || column >= mine.cols)
        throw Error(fmt::format("the matrix has an entry in column {} (the first is 0): there are {}", column, mine.cols));
    if (!(settings.tolerance >= 0 && settings.tolerance < 1))
      throw Error(fmt::format("the tolerance is {}: it must be at least 0 and below 1", settings.tolerance));
    if (settings.max_iterations < 0 || settings.check_every < 0)
      throw Error(fmt::format("{} iterations at most, a look each {}: these may not be negative", settings.max_iterations,
                              settings.check_every));
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

/// Each list with what another has for the same block.
void merge(std::vector<std::vector<Index>>& lists, const std::vector<std::vector<Index>>& others) {
  for (std::size_t k = 0; k < lists.size(); ++k) lists[k].insert(lists[k].end(), others[k].begin(), others[k].end());
}

/// Whether blocks read whole diagonals.
bool reads_diagonals(const DiagonalStructure& structure, Index n, std::optional<Format> format) {
  if (format) return *format == Format::diagonals || *format == Format::stencil;
  return structure.stencil || fills_diagonals(structure, n);
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
    case CgStatus::converged: return {};
    case CgStatus::negative_curvature:
    case CgStatus::negative_product: return Reason::indefinite;
    case CgStatus::not_finite: return Reason::not_finite;
  }
  return {};
}

/// So many iterations that a look at the residual, and the end of a task, cost little.
Index chosen_check_every(double bytes_of_iteration, bool on_gpu) {
  constexpr double seconds = 2e-3;
  const double bandwidth = on_gpu ? 3e12 : 1e10;
  return std::clamp<Index>(static_cast<Index>(seconds * bandwidth / bytes_of_iteration), 10, 200);
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

template <class T>
const Tile<T>* tile_if(const Tile<T>& tile) {
  return tile.state() == nullptr ? nullptr : &tile;
}

}  // namespace

template <class T, class V>
ConjugateGradients<T, V>::ConjugateGradients(Runtime& runtime, const Csr<T>& mine, const LinearSettings& settings)
    : runtime_(&runtime), settings_(settings), n_(mine.total_rows) {
  require_sound(runtime, mine, settings);
  Stopwatch watch;
  blocks_ = divide(runtime, n_, mine.first_row, entries_of_rows(mine), settings.workers, settings.blocks);
  range_ = blocks_.elements_of(runtime.rank());
  facts_.blocks = blocks_.parts();
  facts_.seconds["divide"] = watch.lap();
  const PreparedPreconditioner<T> prepared =
      prepare(runtime, blocks_, mine, settings.preconditioner, settings.shift);
  facts_.preconditioner = prepared.facts;
  facts_.seconds["factorise"] = watch.lap();
  if (!prepared.facts.breakdown) arrange(prepared);
  facts_.seconds["arrange"] = watch.lap();
}

template <class T, class V>
void ConjugateGradients<T, V>::arrange(const PreparedPreconditioner<T>& prepared) {
  kind_ = prepared.kind;
  sequential_ = prepared.sequential;
  polynomial_ = prepared.steps;
  for (Index i = range_.first; i < range_.end && !prepared.new_of_old.empty(); ++i)
    new_of_old_.push_back(prepared.new_of_old[i] - range_.first);
  const DiagonalStructure structure = diagonal_structure(*runtime_, prepared.matrix);
  facts_.entries = structure.entries;
  const std::vector<std::vector<Index>> wanted = reads_diagonals(structure, n_, settings_.format)
                                                     ? reached_columns(*runtime_, blocks_, structure.diagonals)
                                                     : foreign_columns(*runtime_, blocks_, prepared.matrix);
  std::vector<std::vector<Index>> all = wanted;
  const bool triangular = kind_ == PreconditionerKind::triangular;
  if (triangular) {
    merge(all, foreign_columns(*runtime_, blocks_, prepared.lower));
    merge(all, foreign_columns(*runtime_, blocks_, prepared.upper));
  }
  const VectorLayout layout(*runtime_, blocks_, std::move(all));
  matrix_ = BlockMatrix<T>(*runtime_, layout, structure, prepared.matrix, settings_.format);
  if (triangular) {
    left_ = BlockMatrix<V>(*runtime_, layout, diagonal_structure(*runtime_, prepared.lower), prepared.lower, {});
    right_ = BlockMatrix<V>(*runtime_, layout, diagonal_structure(*runtime_, prepared.upper), prepared.upper, {});
  } else if (kind_ == PreconditionerKind::polynomial && sizeof(V) != sizeof(T)) {
    left_ = BlockMatrix<V>(*runtime_, layout, structure, prepared.matrix, settings_.format);
  }
  for (Index b = 0; b < count(); ++b) facts_.formats.push_back(matrix_.shape(b).format);
  facts_.bytes_per_row = static_cast<double>(matrix_.bytes()) / static_cast<double>(n_);
  arrange_exchanges(layout, prepared, wanted);
  make_tiles(layout, prepared);
}

/// For each stage of a factor of its own, as blocks go on with the next one only when they have what others found in this one.
template <class T, class V>
void ConjugateGradients<T, V>::arrange_exchanges(const VectorLayout& layout, const PreparedPreconditioner<T>& prepared,
                                                 const std::vector<std::vector<Index>>& wanted) {
  exchange_p_ = Exchange<T>(*runtime_, layout, wanted);
  facts_.bytes_exchanged = exchange_p_.bytes();
  if (kind_ == PreconditionerKind::polynomial)
    for (Exchange<T>& turn : exchange_z_) turn = Exchange<T>(*runtime_, layout, wanted);
  if (kind_ != PreconditionerKind::triangular) return;
  const Index stages = sequential_ ? 1 : prepared.facts.stages;
  const auto by_stage = [&](const Csr<T>& factor, std::vector<Exchange<T>>& exchanges) {
    const std::vector<std::vector<Index>> foreign = foreign_columns(*runtime_, blocks_, factor);
    std::vector<std::vector<std::vector<Index>>> of_stages(static_cast<std::size_t>(stages),
                                                           std::vector<std::vector<Index>>(foreign.size()));
    for (std::size_t k = 0; k < foreign.size(); ++k)
      for (const Index column : foreign[k]) of_stages[prepared.stage_of_row[column]][k].push_back(column);
    for (const auto& of_stage : of_stages) exchanges.emplace_back(*runtime_, layout, of_stage);
  };
  if (count() == 1) {  // nobody to exchange with
    forward_.resize(static_cast<std::size_t>(stages));
    backward_.resize(static_cast<std::size_t>(stages));
    return;
  }
  by_stage(prepared.lower, forward_);
  by_stage(prepared.upper, backward_);
}

template <class T, class V>
void ConjugateGradients<T, V>::make_tiles(const VectorLayout& layout, const PreparedPreconditioner<T>& prepared) {
  Runtime& runtime = *runtime_;
  const Index unit = unit_rows(n_), grain = grain_rows(n_);
  const bool polynomial = kind_ == PreconditionerKind::polynomial, triangular = kind_ == PreconditionerKind::triangular;
  const bool has_diagonal = kind_ != PreconditionerKind::none &&
                            prepared.facts.choice.method != PreconditionerMethod::polynomial;
  const bool has_terms = std::ranges::any_of(polynomial_, [](const PolynomialStep& step) { return step.gamma != 0; });
  for (Index b = 0; b < count(); ++b) {
    const Part& part = blocks_[b];
    const auto vector = [&](bool needed, Index size) { return needed ? Tile<T>(runtime, 1, size, part.rank) : Tile<T>(); };
    const auto sums = [&] { return Tile<double>(runtime, 1, units_of(part.size, unit), part.rank); };
    BlockTiles& t = tiles_.emplace_back();
    t.x = vector(true, part.size);
    t.r = vector(true, part.size);
    t.b = vector(true, part.size);
    t.q = vector(true, part.size);
    t.p = vector(true, layout.size(b));
    t.z = vector(polynomial || triangular, layout.size(b));
    t.next = vector(polynomial, layout.size(b));
    t.s = vector(has_terms, part.size);
    t.pq = sums();
    t.rr = sums();
    if (kind_ != PreconditionerKind::none) t.rz = sums();
    t.state = Tile<CgState>(runtime, 1, 1, part.rank);
    if (has_diagonal) {
      t.inverse_diagonal = Tile<V>(runtime, 1, part.size, part.rank);
      set(runtime, t.inverse_diagonal,
          [&](Index, Index j) { return prepared.inverse_diagonal[part.first - range_.first + j]; });
    }
    Stages stages;
    if (triangular) {
      stages.stages = sequential_ ? 1 : prepared.facts.stages;
      stages.groups = sequential_ ? 1 : units_of(part.size, grain);
      for (Index g = 0; g < stages.groups; ++g) {
        const Index first = g * grain, end = sequential_ ? part.size : std::min(part.size, first + grain);
        const auto rows = prepared.stage_of_row.begin() + part.first;
        for (int s = 0; s <= stages.stages; ++s) {
          const auto at = std::lower_bound(rows + first, rows + end, s) - rows;
          if (s > 0) stages.longest = std::max<Index>(stages.longest, at - stages.begins.back());
          stages.begins.push_back(static_cast<std::int32_t>(at));
        }
      }
      t.stages = Tile<std::int32_t>(runtime, 1, static_cast<Index>(stages.begins.size()), part.rank);
      set(runtime, t.stages, [&](Index, Index j) { return stages.begins[j]; });
    }
    stages_.push_back(std::move(stages));
    // Tasks that a state lets do nothing leave what they would write as it is, and so it has to be there.
    const auto begin_with_zeros = [&](const auto&... tiles) {
      (..., (tiles.state() != nullptr ? set(runtime, tiles, [](Index, Index) { return 0; }) : void()));
    };
    begin_with_zeros(t.pq, t.rr, t.rz, t.q, t.p, t.z, t.next, t.s);
    set(runtime, t.state, [](Index, Index) { return CgState{}; });
  }
  for (const BlockTiles& t : tiles_) {
    all_pq_.add(t.pq);
    all_rr_.add(t.rr);
    all_rz_.add(kind_ == PreconditionerKind::none ? t.rr : t.rz);
  }
  for (int turn = 0; turn < 3; ++turn) looks_.push_back(one_per_rank<CgState>(runtime, 1, 1));
  look_iterations_.resize(looks_.size());
}

template <class T, class V>
CgArgs ConjugateGradients<T, V>::args(Index block) const {
  return {.shape = matrix_.shape(block), .unit = unit_rows(n_), .iteration = iteration_};
}

template <class T, class V>
BlockPorts<AsTiles, V> ConjugateGradients<T, V>::left(Index block) const {
  if constexpr (sizeof(T) == sizeof(V))
    if (kind_ != PreconditionerKind::triangular) return matrix_.ports(block);
  return left_.ports(block);
}

template <class T, class V>
const BlockShape& ConjugateGradients<T, V>::left_shape(Index block) const {
  const bool own = kind_ == PreconditionerKind::triangular || sizeof(T) != sizeof(V);
  return own ? left_.shape(block) : matrix_.shape(block);
}

template <class T, class V>
bool ConjugateGradients<T, V>::applies_preconditioner() const {
  return kind_ == PreconditionerKind::polynomial || kind_ == PreconditionerKind::triangular;
}

/// In units of a power of two that is about as large as b, so that no square of a residual overflows or vanishes.
template <class T, class V>
void ConjugateGradients<T, V>::load(const T* b, const T* x) {
  for (Index k = 0; k < count(); ++k) {
    const Part& part = blocks_[k];
    if (part.rank != runtime_->rank()) continue;
    const HostView<T> to_b(tiles_[k].b, HostView<T>::Access::write), to_x(tiles_[k].x, HostView<T>::Access::write);
    const Index first = part.first - range_.first;
    for (Index i = first; i < first + part.size; ++i) {
      const Index at = (new_of_old_.empty() ? i : new_of_old_[i]) - first;
      to_b(0, at) = static_cast<T>(b[i] / scale_);
      to_x(0, at) = static_cast<T>(x[i] / scale_);
    }
  }
}

template <class T, class V>
void ConjugateGradients<T, V>::store(T* x) {
  for (Index k = 0; k < count(); ++k) {
    const Part& part = blocks_[k];
    if (part.rank != runtime_->rank()) continue;
    const HostView<T> from(tiles_[k].x, HostView<T>::Access::read);
    const Index first = part.first - range_.first;
    for (Index i = first; i < first + part.size; ++i)
      x[i] = static_cast<T>(from(0, (new_of_old_.empty() ? i : new_of_old_[i]) - first) * scale_);
  }
}

/// r = b - A x
template <class T, class V>
void ConjugateGradients<T, V>::submit_true_residual() {
  for (Index k = 0; k < count(); ++k) {
    BlockTiles& t = tiles_[k];
    codelets::place<T>({matrix_.shape(k).own}, {.from = t.x, .v = t.p, .departures = exchange_p_.from(k)},
                       blocks_.hints(k));
  }
  for (Index k = 0; k < count(); ++k) {
    BlockTiles& t = tiles_[k];
    codelets::residual<T>({matrix_.shape(k), unit_rows(n_)},
                          {.matrix = matrix_.ports(k),
                           .arrivals = exchange_p_.to(k),
                           .v = t.p,
                           .b = t.b,
                           .r = t.r,
                           .rr = t.rr},
                          blocks_.hints(k));
  }
}

/// Of what submit_true_residual() has found.
template <class T, class V>
double ConjugateGradients<T, V>::true_residual_norm() const {
  std::vector<double> mine;
  for (Index k = 0; k < count(); ++k) {
    if (blocks_.owner(k) != runtime_->rank()) continue;
    const HostView<double> sums(tiles_[k].rr, HostView<double>::Access::read);
    mine.insert(mine.end(), sums.row(0), sums.row(0) + sums.cols());
  }
  double sum = 0;
  for (const double of_unit : gather_lists(*runtime_, mine)) sum += of_unit;
  return std::sqrt(sum);
}

/// r = b - A x, z = M^-1 r, p = z
template <class T, class V>
void ConjugateGradients<T, V>::begin() {
  submit_true_residual();
  if (kind_ == PreconditionerKind::diagonal) scale_by_diagonal();
  precondition();
  turn(-1);
  iteration_ = 0;
}

/// (M1), with (r, z); z itself is left where nobody looks for it.
template <class T, class V>
void ConjugateGradients<T, V>::scale_by_diagonal() {
  for (Index k = 0; k < count(); ++k) {
    BlockTiles& t = tiles_[k];
    const BlockShape& shape = matrix_.shape(k);
    codelets::polynomial_step<T, V>(
        {{.rows = shape.rows, .cols = shape.cols, .own = shape.own}, unit_rows(n_), {0, 1}, true},
        {.matrix = {},
         .arrivals = {},
         .inverse_diagonal = &t.inverse_diagonal,
         .r = t.r,
         .z = t.p,
         .s = nullptr,
         .next = t.p,
         .rz = &t.rz,
         .departures = {}},
        blocks_.hints(k));
  }
}

/// [Czapinski 2014] algorithm 6.2, lines 5 to 10.
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
  const bool left_needed = applies_preconditioner(), right_needed = kind_ == PreconditionerKind::triangular;
  const CgSweepArgs sweep{args(0),
                          iterations,
                          {.kind = kind_,
                           .left = left_needed ? left_shape(0) : BlockShape{},
                           .right = right_needed ? right_.shape(0) : BlockShape{},
                           .steps = polynomial_,
                           .stages = stages_.front()}};
  Hints hints = blocks_.hints(0);
  hints.cost = static_cast<std::uint64_t>(iterations);
  codelets::cg_sweep<T, V>(sweep,
                           {.matrix = matrix_.ports(0),
                            .preconditioner = {.inverse_diagonal = tile_if(t.inverse_diagonal),
                                               .left = left_needed ? left(0) : BlockPorts<AsTiles, V>{},
                                               .right = right_needed ? right_.ports(0) : BlockPorts<AsTiles, V>{},
                                               .stages = tile_if(t.stages),
                                               .z = tile_if(t.z),
                                               .next = tile_if(t.next),
                                               .s = tile_if(t.s)},
                            .x = t.x,
                            .r = t.r,
                            .p = t.p,
                            .q = t.q,
                            .pq = t.pq,
                            .rr = t.rr,
                            .rz = kind_ == PreconditionerKind::none ? t.rr : t.rz,
                            .state = t.state},
                           hints);
  iteration_ += iterations;
}

/// (C1)
template <class T, class V>
void ConjugateGradients<T, V>::multiply() {
  for (Index k = 0; k < count(); ++k) {
    BlockTiles& t = tiles_[k];
    codelets::multiply<T>(args(k),
                          {.matrix = matrix_.ports(k),
                           .arrivals = exchange_p_.to(k),
                           .state = t.state,
                           .p = t.p,
                           .q = t.q,
                           .pq = t.pq},
                          blocks_.hints(k));
  }
}

/// (C2)
template <class T, class V>
void ConjugateGradients<T, V>::descend() {
  const bool diagonal = kind_ == PreconditionerKind::diagonal;
  for (Index k = 0; k < count(); ++k) {
    BlockTiles& t = tiles_[k];
    codelets::descend<T, V>(args(k),
                            {.pq = all_pq_,
                             .p = t.p,
                             .q = t.q,
                             .inverse_diagonal = diagonal ? &t.inverse_diagonal : nullptr,
                             .x = t.x,
                             .r = t.r,
                             .rr = t.rr,
                             .rz = diagonal ? &t.rz : nullptr,
                             .state = t.state},
                            blocks_.hints(k));
  }
}

/// (C3)
template <class T, class V>
void ConjugateGradients<T, V>::turn(Index iteration) {
  for (Index k = 0; k < count(); ++k) {
    BlockTiles& t = tiles_[k];
    CgArgs its = args(k);
    its.iteration = iteration;
    const double limit = settings_.tolerance * norm_b_;
    its.limit = limit * limit;
    codelets::turn<T, V>(its,
                         {.rr = all_rr_,
                          .rz = all_rz_,
                          .r = t.r,
                          .z = applies_preconditioner() ? tile_if(t.z) : nullptr,
                          .inverse_diagonal = kind_ == PreconditionerKind::diagonal ? &t.inverse_diagonal : nullptr,
                          .p = t.p,
                          .state = t.state,
                          .departures = exchange_p_.from(k)},
                         blocks_.hints(k));
  }
}

/// z = M^-1 r and (r, z), but for a diagonal, which other steps have in them once the iteration has begun.
template <class T, class V>
void ConjugateGradients<T, V>::precondition() {
  if (kind_ == PreconditionerKind::polynomial) apply_polynomial();
  if (kind_ == PreconditionerKind::triangular) apply_triangular();
  if (!applies_preconditioner()) return;
  for (Index k = 0; k < count(); ++k)
    codelets::dot<T>({unit_rows(n_), matrix_.shape(k).own}, {.a = tiles_[k].r, .b = tiles_[k].z, .sums = tiles_[k].rz},
                     blocks_.hints(k));
}

/// (M2); z and next change their roles with every step, and so do the tiles between blocks: a block is sent what is new while
/// another still has to read what was.
template <class T, class V>
void ConjugateGradients<T, V>::apply_polynomial() {
  for (std::size_t step = 0; step < polynomial_.size(); ++step) {
    const bool first = step == 0, last = step + 1 == polynomial_.size();
    for (Index k = 0; k < count(); ++k) {
      BlockTiles& t = tiles_[k];
      codelets::polynomial_step<T, V>({left_shape(k), unit_rows(n_), polynomial_[step], first},
                                      {.matrix = left(k),
                                       .arrivals = first ? Arrivals<AsTiles, T>{} : exchange_z_[(step + 1) % 2].to(k),
                                       .inverse_diagonal = tile_if(t.inverse_diagonal),
                                       .r = t.r,
                                       .z = t.z,
                                       .s = tile_if(t.s),
                                       .next = t.next,
                                       .rz = {},
                                       .departures = last ? Departures<AsTiles, T>{} : exchange_z_[step % 2].from(k)},
                                      blocks_.hints(k));
    }
    for (BlockTiles& t : tiles_) std::swap(t.z, t.next);
  }
}

/// (M3), stage by stage; where it is sequential block by block.
template <class T, class V>
void ConjugateGradients<T, V>::apply_triangular() {
  const auto submit = [&](Half half, Index stage, Index k, const Exchange<T>* arriving, const Exchange<T>& departing) {
    BlockTiles& t = tiles_[k];
    const bool back = half == Half::backward;
    codelets::triangular_stages<T, V>(
        {.shape = back ? right_.shape(k) : left_.shape(k),
         .half = half,
         .stages = stages_[k],
         .first_stage = stage,
         .end_stage = stage + 1},
        {.factor = back ? right_.ports(k) : left_.ports(k),
         .inverse_diagonal = back ? &t.inverse_diagonal : nullptr,
         .stages = t.stages,
         .arrivals = arriving != nullptr ? arriving->to(k) : Arrivals<AsTiles, T>{},
         .r = t.r,
         .z = t.z,
         .departures = departing.from(k)},
        blocks_.hints(k));
  };
  const Index stages = static_cast<Index>(forward_.size());
  for (Index s = 0; s < stages; ++s)
    for (Index k = 0; k < count(); ++k)
      submit(Half::forward, s, k, sequential_ ? &forward_[s] : s > 0 ? &forward_[s - 1] : nullptr, forward_[s]);
  for (Index s = stages; s-- > 0;)
    for (Index k = count(); k-- > 0;)
      submit(Half::backward, s, k, sequential_ ? &backward_[s] : s + 1 < stages ? &backward_[s + 1] : nullptr, backward_[s]);
}

template <class T, class V>
void ConjugateGradients<T, V>::submit_look(Index number) {
  look_iterations_[number % static_cast<Index>(looks_.size())] = iteration_;
  for (const Tile<CgState>& shown : looks_[number % static_cast<Index>(looks_.size())])
    codelets::show(tiles_.front().state, shown);
}

/// None: a task has failed.
template <class T, class V>
std::optional<CgState> ConjugateGradients<T, V>::look(Index number) const {
  const Tile<CgState>& shown = looks_[number % static_cast<Index>(looks_.size())][runtime_->rank()];
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
LinearReport ConjugateGradients<T, V>::solve(const T* b, T* x) {
  LinearReport report;
  if (facts_.preconditioner.breakdown) {
    report.reason = Reason::zero_pivot;
    return report;
  }
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
  largest = std::ranges::max(gather(*runtime_, largest));
  if (largest == 0) {
    std::fill_n(x, row_count(), T{});
    report.residual_history = {0};
    report.residual_iterations = {0};
    return report;
  }
  scale_ = std::exp2(std::floor(std::log2(largest)));
  norm_b_ = norm(*runtime_, b, row_count(), unit_rows(n_), scale_);

  CgState last{};
  Index done = 0;
  const Index check_every =
      settings_.check_every > 0
          ? settings_.check_every
          : chosen_check_every((facts_.bytes_per_row + 12 * sizeof(T)) * static_cast<double>(n_),
                               blocks_[0].where == Where::cuda);
  for (;; ++report.restarts) {
    const Index limit = settings_.max_iterations > 0 ? settings_.max_iterations - done : 0;
    Report part = iterate(*runtime_,
                          {.limit = limit,
                           .check_every = check_every,
                           .rule = {.tolerance = settings_.tolerance},
                           .observer = settings_.observer},
                          {.load =
                               [&] {
                                 if (report.restarts == 0) load(b, x);
                                 begin();
                               },
                           .step =
                               [&](Index iterations) {
                                 if (count() == 1)
                                   iterate_one_block(iterations);
                                 else
                                   iterate_blocks(iterations);
                               },
                           .submit_residual = [&](Index number) { submit_look(number); },
                           .norms = [&](Index number) -> std::optional<Norms> {
                             const std::optional<CgState> state = look(number);
                             if (!state) return {};
                             last = *state;
                             return Norms{.residual = std::sqrt(last.rr),
                                          .solution = 0,
                                          .source = norm_b_,
                                          .broken = broken(last.status[side_of(look_iterations_[number % 3])])};
                           },
                           .store = [] {}});
    append(part, last.iterations, done, report);
    done += last.iterations;
    report.iterations = done;
    if (report.restarts == 0) report.spectrum = spectrum_of(last);
    submit_true_residual();
    report.true_residual = true_residual_norm() / norm_b_;
    const bool missed = settings_.tolerance > 0 && report.reason == Reason::solved &&
                        report.true_residual > most_drift * settings_.tolerance;
    if (!missed) break;
    if (done == settings_.max_iterations) {
      report.reason = Reason::iteration_limit;
      break;
    }
    if (report.restarts == most_restarts || last.iterations == 0) {
      report.reason = Reason::inaccurate;
      break;
    }
  }
  store(x);
  return report;
}

template class ConjugateGradients<float>;
template class ConjugateGradients<double>;
template class ConjugateGradients<double, float>;

}  // namespace asterism::sparse
