#include "conjugate_gradients.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "../../codelets/sparse/codelets.hpp"
#include "../../runtime/collectives.hpp"
#include "../common/set.hpp"
#include "../common/stopwatch.hpp"
#include "krylov/spectrum.hpp"

namespace asterism::sparse {
namespace {

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
    case CgStatus::lost:
      return Reason::breakdown;
  }
  return {};
}

/// A matrix of so many bytes is read from a GPU's memory in every iteration: smaller ones stay in its cache, and one kernel
/// for many iterations of a single right-hand side is quicker.
constexpr Index least_shared = Index{48} << 20;

/// Of a block, among those of its rank.
int gpu_of(const Part& block) { return std::max(block.worker, 0); }

}  // namespace

template <class T, class V>
ConjugateGradients<T, V>::ConjugateGradients(Runtime& runtime, const Csr<T>& mine,
                                             const LinearSettings& settings, typename Base::Outer outer)
    : Base(runtime, mine, settings, MatrixClass::positive_definite, std::move(outer)),
      reductions_(settings.reductions) {
  if (is_ready()) make_tiles();
}

template <class T, class V>
ConjugateGradients<T, V>::ConjugateGradients(Runtime& runtime, LinearOperator<T> a,
                                             const LinearSettings& settings)
    : Base(runtime, std::move(a), settings), reductions_(settings.reductions) {
  make_tiles();
}

template <class T, class V>
ConjugateGradients<T, V>::ConjugateGradients(const typename Base::Beside& beside)
    : Base(beside), reductions_(static_cast<const ConjugateGradients&>(beside.first).reductions_) {
  make_tiles();
}

template <class T, class V>
std::unique_ptr<KrylovSolver<T, V>> ConjugateGradients<T, V>::another(Index number) const {
  return std::unique_ptr<Base>(new ConjugateGradients(typename Base::Beside{*this, number}));
}

/// With zeros in them: tasks that a state lets do nothing leave what they would write as it is, and so it has to be
/// there.
template <class T, class V>
void ConjugateGradients<T, V>::make_tiles() {
  const bool has_m = preconditioner().kind() != PreconditionerKind::none;
  for (Index k = 0; k < count(); ++k) {
    CgTiles& t = cg_.emplace_back();
    t.q = system().own_vector(k);
    t.pq = system().sums(k);
    if (has_m) t.rz = system().sums(k);
    t.state = Tile<CgState>(this->runtime(), 1, 1, blocks().owner(k));
    set(this->runtime(), t.state, [](Index, Index) { return CgState{}; });
  }
  for (Index k = 0; k < count(); ++k) {
    all_pq_.add(cg_[k].pq);
    all_rz_.add(has_m ? cg_[k].rz : tiles(k).rr);
  }
  if (is_one_on_gpu() && !preconditioner().has_z() && system().rows() <= most_pipelined_rows)
    pipelined_ = system().own_vectors(0, pipelined_vectors);
  if (can_be_on_gpus())
    for (Index k = 0; k < count(); ++k)
      set(this->runtime(), told_.emplace_back(this->runtime(), 1, sums_told, blocks().owner(k)),
          [](Index, Index) { return ToldSum{}; });
  choose_reductions();
  looks_ = KrylovLooks<CgState>(this->runtime());
}

template <class T, class V>
CgArgs ConjugateGradients<T, V>::args(Index block) const {
  return {.shape = system().matrix().shape(block), .unit = system().unit(), .iteration = iteration_};
}

/// One task for many iterations has no sums to wait for.
template <class T, class V>
bool ConjugateGradients<T, V>::can_have_one_reduction() const {
  return !this->is_one_block() && !has_operator() && told_.empty();
}

/// Attempts after the first have what drifts less.
template <class T, class V>
bool ConjugateGradients<T, V>::has_one_reduction() const {
  return attempt_ == 0 && reductions_ != Reductions::two;
}
template <class T, class V>
bool ConjugateGradients<T, V>::is_pipelined() const {
  return attempt_ == 0 && reductions_ == Reductions::pipelined;
}

template <class T, class V>
void ConjugateGradients<T, V>::choose_reductions() {
  if (!can_have_one_reduction()) reductions_ = Reductions::two;
  if (reductions_ == Reductions::fastest) {
    Stopwatch watch;
    reductions_ = fastest_reductions();
    this->facts_of_method().seconds["try"] = watch.lap();
  }
  make_tiles_of_form();
  if (!this->is_one_block()) this->facts_of_method().reductions = reductions_;
}

/// Of iterations with b = 1, on the slowest rank, in turns.
template <class T, class V>
Reductions ConjugateGradients<T, V>::fastest_reductions() {
  constexpr int turns = 3;
  constexpr Index before = 3, iterations = 20;
  for (Index k = 0; k < count(); ++k) {
    set(this->runtime(), tiles(k).x, [](Index, Index) { return T{0}; });
    set(this->runtime(), tiles(k).b, [](Index, Index) { return T{1}; });
  }
  const auto wait_for_all = [this] {
    this->runtime().wait();
    this->runtime().barrier();
  };
  std::map<Reductions, double> seconds;
  for (int turn = 0; turn < turns; ++turn)
    for (const Reductions form : {Reductions::two, Reductions::one, Reductions::pipelined}) {
      reductions_ = form;
      make_tiles_of_form();
      this->submit_residual();
      begin(0);
      iterate(before);
      wait_for_all();
      Stopwatch watch;
      iterate(iterations);
      wait_for_all();
      const double its = std::ranges::max(gather(this->runtime(), watch.lap()));
      seconds[form] = turn == 0 ? its : std::min(seconds[form], its);
    }
  return std::ranges::min_element(seconds, {}, [](const auto& form) { return form.second; })->first;
}

/// Of the reductions that there are, and no others.
template <class T, class V>
void ConjugateGradients<T, V>::make_tiles_of_form() {
  piped_.reset();
  all_next_rr_ = all_next_rz_ = {};
  for (CgTiles& t : cg_) t.one = {};
  if (reductions_ == Reductions::pipelined) piped_.emplace(*this);
  if (reductions_ != Reductions::one) return;
  const bool has_m = preconditioner().kind() != PreconditionerKind::none;
  for (Index k = 0; k < count(); ++k) {
    OneReductionTiles& one = cg_[k].one;
    one.p = system().own_vector(k);
    one.s = system().own_vector(k);
    one.next_rr = system().sums(k);
    if (has_m) one.next_rz = system().sums(k);
    all_next_rr_.add(one.next_rr);
    all_next_rz_.add(has_m ? one.next_rz : one.next_rr);
  }
}

/// [Czapinski 2014] algorithm 6.2, lines 1 to 3: z = M^-1 r, p = z
template <class T, class V>
void ConjugateGradients<T, V>::begin(Index attempt) {
  attempt_ = attempt;
  if (preconditioner().kind() == PreconditionerKind::diagonal)
    scale_by_diagonal(Base::residual_of(*this), [this](Index k) -> const Tile<double>& { return cg_[k].rz; });
  apply_preconditioner();
  turn(-1);
  iteration_ = 0;
  if (is_pipelined()) piped_->start();
}

template <class T, class V>
void ConjugateGradients<T, V>::iterate(Index iterations) {
  if (this->is_one_block()) return iterate_one_block(iterations);
  if (!told_.empty()) return iterate_on_gpus(iterations);
  Base::iterate(iterations);
}

template <class T, class V>
void ConjugateGradients<T, V>::iterate_all(const typename Base::Solvers& going) {
  const auto all = this->template all_as<ConjugateGradients>(going);
  for (ConjugateGradients* its : all)
    if (its->is_pipelined()) its->piped_->begin_iteration();
  multiply_all(all);
  for (ConjugateGradients* its : all) its->take_step();
  this->apply_to_all(going, [](Base& solver) -> typename Base::VectorOf {
    auto& its = static_cast<ConjugateGradients&>(solver);
    if (!its.is_pipelined()) return Base::residual_of(its);
    return [&its](Index k) -> const Tile<T>& { return its.piped_->w(k); };
  });
  for (ConjugateGradients* its : all) its->turn_to_next();
}

/// Lines 6 and 7; (E2); (P2), (P3), (P1).
template <class T, class V>
void ConjugateGradients<T, V>::take_step() {
  if (is_pipelined())
    piped_->advance();
  else if (has_one_reduction())
    advance();
  else
    descend();
}

/// Lines 8 to 10, but for M; (r, z).
template <class T, class V>
void ConjugateGradients<T, V>::turn_to_next() {
  const Index iteration = iteration_++;
  if (has_one_reduction()) {
    if (!preconditioner().has_z()) return;
    this->send_preconditioned();
    if (!is_pipelined()) dot_with_z(iteration_);
    return;
  }
  if (preconditioner().has_z()) dot_with_z(0);
  turn(iteration);
}

/// All of that in one task.
template <class T, class V>
void ConjugateGradients<T, V>::iterate_one_block(Index iterations) {
  const BlockTiles& t = tiles(0);
  const CgTiles& cg = cg_.front();
  Hints hints = blocks().hints(0);
  hints.cost = static_cast<std::uint64_t>(iterations);
  const Tile<T>* const pipelined = attempt_ == 0 && pipelined_.state() != nullptr ? &pipelined_ : nullptr;
  codelets::cg_sweep<T, V>({args(0), iterations, preconditioner().shape()},
                           {.matrix = system().matrix().ports(0),
                            .preconditioner = preconditioner().ports(),
                            .x = t.x,
                            .r = t.r,
                            .p = t.v,
                            .q = cg.q,
                            .pq = cg.pq,
                            .rr = t.rr,
                            .rz = preconditioner().kind() == PreconditionerKind::none ? t.rr : cg.rz,
                            .state = cg.state,
                            .pipelined = pipelined},
                           hints);
  iteration_ += iterations;
}

template <class T, class V>
bool ConjugateGradients<T, V>::is_one_on_gpu() const {
  return this->is_one_block() && blocks()[0].where == Where::cuda;
}

template <class T, class V>
bool ConjugateGradients<T, V>::gains_on_gpus() const {
  return is_one_on_gpu() && !preconditioner().has_z() && system().matrix().bytes() >= least_shared;
}

/// @param home where the block's tiles are to be at home
template <class T, class V>
void ConjugateGradients<T, V>::add_iterate(Index block, std::optional<int> home,
                                           IteratesPorts<AsTiles, T>& all) const {
  const auto add = [&](auto& list, const auto& tile) {
    if (home) tile.set_home(*home);
    list.add(tile);
  };
  const BlockTiles& t = tiles(block);
  const CgTiles& cg = cg_[block];
  add(all.x, t.x);
  add(all.r, t.r);
  add(all.p, t.v);
  add(all.q, cg.q);
  add(all.pq, cg.pq);
  add(all.rr, t.rr);
  if (this->inverse_diagonal(block) != nullptr) add(all.rz, cg.rz);
  add(all.state, cg.state);
}

/// Those on a GPU in one task.
template <class T, class V>
void ConjugateGradients<T, V>::iterate_several(const typename Base::Solvers& all,
                                               const std::vector<Index>& counts) {
  if (!is_one_on_gpu() || preconditioner().has_z()) return Base::iterate_several(all, counts);
  CgColumnsArgs its{.shape = system().matrix().shape(0), .unit = system().unit()};
  CgColumnsPorts<AsTiles, T, V> ports;
  ports.matrix = system().matrix().ports(0);
  ports.inverse_diagonal = this->inverse_diagonal(0);
  its.counts = counts;
  for (ConjugateGradients* one : this->template all_as<ConjugateGradients>(all)) {
    const std::size_t c = its.iterations.size();
    its.iterations.push_back(std::exchange(one->iteration_, one->iteration_ + counts[c]));
    one->add_iterate(0, {}, ports.iterates);
  }
  Hints hints = blocks().hints(0);
  hints.cost = static_cast<std::uint64_t>(std::accumulate(counts.begin(), counts.end(), Index{0}));
  codelets::cg_columns<T, V>(its, ports, hints);
}

/// The same on all ranks.
template <class T, class V>
bool ConjugateGradients<T, V>::can_be_on_gpus() const {
  if (count() < 2 || count() > most_blocks_on_gpus || !this->has_own_steps() || preconditioner().has_z())
    return false;
  for (const Part& block : blocks().parts())
    if (block.where != Where::cuda || block.rank != blocks().owner(0)) return false;
  const bool owns = this->runtime().rank() == blocks().owner(0);
  return any(this->runtime(), owns && blocks_are_alike() && this->runtime().gpus_see_each_other());
}

/// Whether their matrices have the same tiles.
template <class T, class V>
bool ConjugateGradients<T, V>::blocks_are_alike() const {
  const auto tiles_of = [&](Index k) {
    const BlockPorts<AsTiles, T> matrix = system().matrix().ports(k);
    return std::tuple(system().matrix().shape(k).format, matrix.values.tile() != nullptr,
                      matrix.begins.tile() != nullptr, matrix.columns.tile() != nullptr,
                      matrix.differences.tile() != nullptr);
  };
  for (Index k = 1; k < count(); ++k)
    if (tiles_of(k) != tiles_of(0)) return false;
  return true;
}

/// Those of all blocks, each at home on its block's GPU.
template <class T, class V>
CgOnGpusPorts<AsTiles, T, V> ConjugateGradients<T, V>::ports_on_gpus() {
  CgOnGpusPorts<AsTiles, T, V> all;
  const auto add = [&](auto& list, const auto* tile, Index block) {
    if (tile == nullptr) return;
    tile->set_home(gpu_of(blocks()[block]));
    list.add(tile);
  };
  for (Index k = 0; k < count(); ++k) {
    const BlockPorts<AsTiles, T> matrix = system().matrix().ports(k);
    add(all.matrix.values, matrix.values.tile(), k);
    add(all.matrix.begins, matrix.begins.tile(), k);
    add(all.matrix.columns, matrix.columns.tile(), k);
    add(all.matrix.differences, matrix.differences.tile(), k);
    add(all.inverse_diagonal, this->inverse_diagonal(k), k);
    add_iterate(k, gpu_of(blocks()[k]), all.iterates);
    add(all.told, &told_[k], k);
  }
  for (const auto& pair : exchange().pairs()) {
    add(all.pairs.packs, &pair.pack, pair.to);
    add(all.pairs.taken, &pair.taken, pair.to);
    add(all.pairs.placed, &pair.placed, pair.to);
  }
  return all;
}

/// (N1) to (N3) of all blocks in one task.
template <class T, class V>
void ConjugateGradients<T, V>::iterate_on_gpus(Index iterations) {
  CgOnGpusArgs its{.unit = system().unit(),
                   .iteration = iteration_,
                   .count = iterations,
                   .before = std::exchange(on_gpus_, on_gpus_ + iterations)};
  for (Index k = 0; k < count(); ++k) {
    its.shapes.push_back(system().matrix().shape(k));
    its.gpus.push_back(gpu_of(blocks()[k]));
  }
  for (const auto& pair : exchange().pairs()) its.pairs.push_back({pair.from, pair.to});
  codelets::cg_on_gpus<T, V>(its, ports_on_gpus(),
                             {.where = Where::cuda,
                              .cost = static_cast<std::uint64_t>(iterations),
                              .worker = its.gpus.front(),
                              .together = true});
  iteration_ += iterations;
}

/// What A is multiplied with: p, u of (E1), m of (P3).
template <class T, class V>
const Tile<T>& ConjugateGradients<T, V>::direction(Index block) const {
  return has_one_reduction() ? this->hat(block) : tiles(block).v;
}

template <class T, class V>
const Tile<double>& ConjugateGradients<T, V>::sums_of_product(Index block) const {
  return is_pipelined() ? piped_->sums_of_product(block) : cg_[block].pq;
}

/// (N1), (E1), A m
template <class T, class V>
void ConjugateGradients<T, V>::multiply() {
  if (has_operator()) return multiply_by_operator();
  multiply_into([this](Index k) -> const Tile<T>& { return cg_[k].q; });
}

template <class T, class V>
void ConjugateGradients<T, V>::multiply_into(const typename Base::VectorOf& product) {
  for (Index k = 0; k < count(); ++k)
    codelets::multiply<T>(args(k),
                          {.matrix = system().matrix().ports(k),
                           .arrivals = exchange().to(k),
                           .state = cg_[k].state,
                           .p = direction(k),
                           .q = product(k),
                           .pq = sums_of_product(k)},
                          blocks().hints(k));
}

/// The same of several right-hand sides: on cores one task for each block.
template <class T, class V>
void ConjugateGradients<T, V>::multiply_all(const std::vector<ConjugateGradients*>& going) const {
  if (going.size() == 1 || !this->is_on_cores()) {
    for (ConjugateGradients* its : going) its->multiply();
    return;
  }
  for (Index k = 0; k < count(); ++k) {
    MultiplyAllArgs its{.shape = system().matrix().shape(k), .unit = system().unit(), .iterations = {}};
    MultiplyAllPorts<AsTiles, T> ports;
    ports.matrix = system().matrix().ports(k);
    for (const ConjugateGradients* one : going) {
      const CgTiles& cg = one->cg_[k];
      its.iterations.push_back(one->iteration_);
      one->exchange().add_to(k, ports.arrivals);
      ports.states.add(cg.state);
      ports.p.add(one->direction(k));
      ports.q.add(cg.q);
      ports.pq.add(one->sums_of_product(k));
    }
    codelets::multiply_all<T>(its, ports, blocks().hints(k));
  }
}

/// As multiply(), in an iteration that has ended, too: nobody looks at q then.
template <class T, class V>
void ConjugateGradients<T, V>::multiply_by_operator() {
  this->submit_product([this](Index k) -> const Tile<T>& { return tiles(k).v; },
                       [this](Index k) -> const Tile<T>& { return cg_[k].q; });
  for (Index k = 0; k < count(); ++k)
    codelets::dot<T>({system().unit(), 0}, {.a = cg_[k].q, .b = tiles(k).v, .sums = cg_[k].pq},
                     blocks().hints(k));
}

/// (N2)
template <class T, class V>
void ConjugateGradients<T, V>::descend() {
  const bool diagonal = preconditioner().kind() == PreconditionerKind::diagonal;
  for (Index k = 0; k < count(); ++k) {
    const BlockTiles& t = tiles(k);
    const CgTiles& cg = cg_[k];
    codelets::descend<T, V>(args(k),
                            {.pq = all_pq_,
                             .q = cg.q,
                             .inverse_diagonal = diagonal ? preconditioner().inverse_diagonal(k) : nullptr,
                             .r = t.r,
                             .rr = t.rr,
                             .rz = diagonal ? &cg.rz : nullptr,
                             .state = cg.state},
                            blocks().hints(k));
  }
}

/// (N3)
template <class T, class V>
void ConjugateGradients<T, V>::turn(Index iteration) {
  const bool diagonal = preconditioner().kind() == PreconditionerKind::diagonal;
  for (Index k = 0; k < count(); ++k) {
    const BlockTiles& t = tiles(k);
    const CgTiles& cg = cg_[k];
    CgArgs its = args(k);
    its.iteration = iteration;
    its.limit = limit();
    codelets::turn<T, V>(its,
                         {.rr = all_rr(),
                          .rz = all_rz_,
                          .r = t.r,
                          .z = preconditioner().has_z() ? &preconditioner().z(k) : nullptr,
                          .inverse_diagonal = diagonal ? preconditioner().inverse_diagonal(k) : nullptr,
                          .x = t.x,
                          .p = t.v,
                          .state = cg.state,
                          .departures = exchange().from(k)},
                         blocks().hints(k));
  }
}

/// z = M^-1 r and (r, z), but for a diagonal, which other steps have in them once the iteration has begun.
template <class T, class V>
void ConjugateGradients<T, V>::apply_preconditioner() {
  if (!preconditioner().has_z()) return;
  preconditioner().apply([this](Index k) -> const Tile<T>& { return tiles(k).r; });
  dot_with_z(0);
}

/// (r, z)
template <class T, class V>
void ConjugateGradients<T, V>::dot_with_z(Index iteration) {
  for (Index k = 0; k < count(); ++k)
    codelets::dot<T>({system().unit(), system().matrix().shape(k).own},
                     {.a = tiles(k).r, .b = preconditioner().z(k), .sums = rz(k, iteration)},
                     blocks().hints(k));
}

/// hat = D^-1 v, (v, hat)
template <class T, class V>
void ConjugateGradients<T, V>::scale_by_diagonal(const typename Base::VectorOf& v,
                                                 const std::function<const Tile<double>&(Index)>& sums) {
  for (Index k = 0; k < count(); ++k) {
    const Tile<T>& hat = tiles(k).v;
    const BlockShape& shape = system().matrix().shape(k);
    codelets::polynomial_step<T, V>(
        {{.rows = shape.rows, .cols = shape.cols, .own = shape.own}, system().unit(), {0, 1}, true},
        {.matrix = {},
         .arrivals = {},
         .inverse_diagonal = preconditioner().inverse_diagonal(k),
         .r = v(k),
         .z = hat,
         .s = nullptr,
         .next = hat,
         .rz = &sums(k),
         .departures = exchange().from(k)},
        blocks().hints(k));
  }
}

/// (E2)
template <class T, class V>
void ConjugateGradients<T, V>::advance() {
  const bool diagonal = preconditioner().kind() == PreconditionerKind::diagonal;
  for (Index k = 0; k < count(); ++k) {
    const BlockTiles& t = tiles(k);
    const CgTiles& cg = cg_[k];
    codelets::advance<T, V>({args(k), this->who_makes_hat()},
                            {.wu = all_pq_,
                             .rr = all_rr_of_iteration(),
                             .ru = all_rz_of_iteration(),
                             .w = cg.q,
                             .inverse_diagonal = this->inverse_diagonal(k),
                             .hat = this->hat(k),
                             .x = t.x,
                             .r = t.r,
                             .p = cg.one.p,
                             .s = cg.one.s,
                             .next_rr = rr(k, iteration_ + 1),
                             .next_ru = diagonal ? &rz(k, iteration_ + 1) : nullptr,
                             .state = cg.state,
                             .departures = this->hat_departures(k)},
                            blocks().hints(k));
  }
}

/// Sums that an iteration begins with.
template <class T, class V>
const Tile<double>& ConjugateGradients<T, V>::rr(Index block, Index iteration) {
  return side_of(iteration) == 0 ? tiles(block).rr : cg_[block].one.next_rr;
}
template <class T, class V>
const Tile<double>& ConjugateGradients<T, V>::rz(Index block, Index iteration) {
  return side_of(iteration) == 0 ? cg_[block].rz : cg_[block].one.next_rz;
}

template <class T, class V>
const TileList<double>& ConjugateGradients<T, V>::all_rr_of_iteration() const {
  if (is_pipelined()) return piped_->sums(iteration_);
  return side_of(iteration_) == 0 ? all_rr() : all_next_rr_;
}
template <class T, class V>
const TileList<double>& ConjugateGradients<T, V>::all_rz_of_iteration() const {
  if (is_pipelined()) return piped_->sums(iteration_);
  return side_of(iteration_) == 0 ? all_rz_ : all_next_rz_;
}

template <class T, class V>
void ConjugateGradients<T, V>::submit_look(Index number) {
  if (!has_one_reduction()) {
    looks_.submit(number, codelets::show, cg_.front().state, iteration_);
    return;
  }
  const auto show_next = [&](const Tile<CgState>& state, const Tile<CgState>& shown) {
    codelets::show_next(
        {iteration_, is_pipelined()},
        {.rr = all_rr_of_iteration(), .ru = all_rz_of_iteration(), .state = state, .shown = shown});
  };
  looks_.submit(number, show_next, cg_.front().state, iteration_);
}

template <class T, class V>
std::optional<typename ConjugateGradients<T, V>::Seen> ConjugateGradients<T, V>::look(Index number) {
  const std::optional<CgState> state = looks_.wait_for(number);
  if (!state) return {};
  last_ = *state;
  return Seen{state->rr, state->iterations, broken(state->status[side_of(looks_.iterations_before(number))])};
}

template <class T, class V>
std::optional<SpectrumEstimate> ConjugateGradients<T, V>::spectrum() const {
  return spectrum_of(last_);
}

template class ConjugateGradients<float>;
template class ConjugateGradients<double>;
template class ConjugateGradients<double, float>;

}  // namespace asterism::sparse
