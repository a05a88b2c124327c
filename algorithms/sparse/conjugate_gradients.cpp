#include "conjugate_gradients.hpp"

#include <utility>

#include "../../codelets/sparse/codelets.hpp"
#include "../common/set.hpp"
#include "spectrum.hpp"

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
  }
  return {};
}

}  // namespace

template <class T, class V>
ConjugateGradients<T, V>::ConjugateGradients(Runtime& runtime, const Csr<T>& mine,
                                             const LinearSettings& settings, typename Base::Outer outer)
    : Base(runtime, mine, settings, MatrixClass::positive_definite, std::move(outer)) {
  if (is_ready()) make_tiles();
}

template <class T, class V>
ConjugateGradients<T, V>::ConjugateGradients(Runtime& runtime, LinearOperator<T> a,
                                             const LinearSettings& settings)
    : KrylovSolver<T, V>(runtime, std::move(a), settings) {
  make_tiles();
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
  if (count() == 1 && blocks()[0].where == Where::cuda && !preconditioner().has_z() &&
      system().rows() <= most_pipelined_rows) {
    pipelined_ = Tile<T>(this->runtime(), 1, pipelined_vectors * system().rows(), blocks().owner(0));
    set(this->runtime(), pipelined_, [](Index, Index) { return T{0}; });
  }
  looks_ = KrylovLooks<CgState>(this->runtime());
}

template <class T, class V>
CgArgs ConjugateGradients<T, V>::args(Index block) const {
  return {.shape = system().matrix().shape(block), .unit = system().unit(), .iteration = iteration_};
}

/// [Czapinski 2014] algorithm 6.2, lines 1 to 3: z = M^-1 r, p = z
template <class T, class V>
void ConjugateGradients<T, V>::begin(Index attempt) {
  may_pipeline_ = attempt == 0;  // which drifts more
  if (preconditioner().kind() == PreconditionerKind::diagonal) scale_by_diagonal();
  apply_preconditioner();
  turn(-1);
  iteration_ = 0;
}

template <class T, class V>
void ConjugateGradients<T, V>::iterate(Index iterations) {
  if (this->is_one_block())
    iterate_one_block(iterations);
  else
    iterate_blocks(iterations);
}

/// Lines 5 to 10.
template <class T, class V>
void ConjugateGradients<T, V>::iterate_blocks(Index iterations) {
  for (Index i = 0; i < iterations; ++i, ++iteration_) {
    if (has_operator())
      multiply_by_operator();
    else
      multiply();
    descend();
    apply_preconditioner();
    turn(iteration_);
  }
}

/// The same in one task.
template <class T, class V>
void ConjugateGradients<T, V>::iterate_one_block(Index iterations) {
  const BlockTiles& t = tiles(0);
  const CgTiles& cg = cg_.front();
  Hints hints = blocks().hints(0);
  hints.cost = static_cast<std::uint64_t>(iterations);
  const Tile<T>* const pipelined = may_pipeline_ && pipelined_.state() != nullptr ? &pipelined_ : nullptr;
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

/// (N1)
template <class T, class V>
void ConjugateGradients<T, V>::multiply() {
  for (Index k = 0; k < count(); ++k) {
    const BlockTiles& t = tiles(k);
    const CgTiles& cg = cg_[k];
    codelets::multiply<T>(args(k),
                          {.matrix = system().matrix().ports(k),
                           .arrivals = system().exchange().to(k),
                           .state = cg.state,
                           .p = t.v,
                           .q = cg.q,
                           .pq = cg.pq},
                          blocks().hints(k));
  }
}

/// The same, in an iteration that has ended, too: nobody looks at q then.
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
                             .p = t.v,
                             .q = cg.q,
                             .inverse_diagonal = diagonal ? preconditioner().inverse_diagonal(k) : nullptr,
                             .x = t.x,
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
                          .p = t.v,
                          .state = cg.state,
                          .departures = system().exchange().from(k)},
                         blocks().hints(k));
  }
}

/// z = M^-1 r and (r, z), but for a diagonal, which other steps have in them once the iteration has begun.
template <class T, class V>
void ConjugateGradients<T, V>::apply_preconditioner() {
  if (!preconditioner().has_z()) return;
  preconditioner().apply([this](Index k) -> const Tile<T>& { return tiles(k).r; });
  for (Index k = 0; k < count(); ++k)
    codelets::dot<T>({system().unit(), system().matrix().shape(k).own},
                     {.a = tiles(k).r, .b = preconditioner().z(k), .sums = cg_[k].rz}, blocks().hints(k));
}

/// (Q1), with (r, z); z itself is left where nobody looks for it.
template <class T, class V>
void ConjugateGradients<T, V>::scale_by_diagonal() {
  for (Index k = 0; k < count(); ++k) {
    const BlockTiles& t = tiles(k);
    const CgTiles& cg = cg_[k];
    const BlockShape& shape = system().matrix().shape(k);
    codelets::polynomial_step<T, V>(
        {{.rows = shape.rows, .cols = shape.cols, .own = shape.own}, system().unit(), {0, 1}, true},
        {.matrix = {},
         .arrivals = {},
         .inverse_diagonal = preconditioner().inverse_diagonal(k),
         .r = t.r,
         .z = t.v,
         .s = nullptr,
         .next = t.v,
         .rz = &cg.rz,
         .departures = {}},
        blocks().hints(k));
  }
}

template <class T, class V>
void ConjugateGradients<T, V>::submit_look(Index number) {
  looks_.submit(number, codelets::show, cg_.front().state, iteration_);
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
