#include "pipelined_steps.hpp"

#include "../../../codelets/sparse/codelets.hpp"
#include "../../../codelets/sparse/krylov/residual.hpp"
#include "../conjugate_gradients.hpp"

namespace asterism::sparse {

template <class T, class V>
PipelinedSteps<T, V>::PipelinedSteps(ConjugateGradients<T, V>& cg) : cg_(&cg) {
  const LinearSystem<T>& system = cg.system();
  for (Index k = 0; k < cg.count(); ++k) {
    Tiles& t = tiles_.emplace_back();
    for (Tile<T>* vector : {&t.u, &t.w, &t.p, &t.s, &t.z}) *vector = system.own_vector(k);
    if (cg.preconditioner().has_z()) t.q = system.own_vector(k);
    for (const int side : {0, 1}) t.sums[side] = system.sums(k, pipelined_sums);
    t.mn = system.sums(k);
  }
  for (const int side : {0, 1})
    for (const Tiles& t : tiles_) all_sums_[side].add(t.sums[side]);
}

template <class T, class V>
typename PipelinedSteps<T, V>::VectorOf PipelinedSteps<T, V>::all(Tile<T> Tiles::*vector) const {
  return [this, vector](Index k) -> const Tile<T>& { return tiles_[k].*vector; };
}

template <class T, class V>
void PipelinedSteps<T, V>::start() {
  take_from_hat(all(&Tiles::u));
  cg_->multiply_into(all(&Tiles::w));
  add_up();
  precondition_into_hat(all(&Tiles::w));
}

template <class T, class V>
void PipelinedSteps<T, V>::begin_iteration() {
  if (cg_->iteration_ > 0 && cg_->iteration_ % pipelined_period == 0) renew();
}

/// w = A u, s = A p; the sums; q = M^-1 s, z = A q; m.
template <class T, class V>
void PipelinedSteps<T, V>::renew() {
  place_in_hat(all(&Tiles::u));
  cg_->multiply_into(all(&Tiles::w));
  place_in_hat(all(&Tiles::p));
  cg_->multiply_into(all(&Tiles::s));
  add_up();
  precondition_into_hat(all(&Tiles::s));
  if (cg_->preconditioner().has_z()) take_from_hat(all(&Tiles::q));
  cg_->multiply_into(all(&Tiles::z));
  precondition_into_hat(all(&Tiles::w));
}

/// The sums alone, of what is there, for the iteration that begins.
template <class T, class V>
void PipelinedSteps<T, V>::add_up() {
  submit(-1, side_of(cg_->iteration_));
}

template <class T, class V>
void PipelinedSteps<T, V>::advance() {
  submit(cg_->iteration_, side_of(cg_->iteration_ + 1));
}

/// @param next which sums it leaves
template <class T, class V>
void PipelinedSteps<T, V>::submit(Index iteration, int next) {
  for (Index k = 0; k < cg_->count(); ++k) {
    const auto& of_all = cg_->tiles(k);
    const auto& cg = cg_->cg_[k];
    const Tiles& t = tiles_[k];
    AdvanceArgs its{cg_->args(k), cg_->who_makes_hat()};
    its.step.iteration = iteration;
    codelets::advance_pipelined<T, V>(its,
                                      {.sums = all_sums_[1 - next],
                                       .n = cg.q,
                                       .inverse_diagonal = cg_->inverse_diagonal(k),
                                       .hat = cg_->hat(k),
                                       .x = of_all.x,
                                       .r = of_all.r,
                                       .u = t.u,
                                       .w = t.w,
                                       .p = t.p,
                                       .s = t.s,
                                       .z = t.z,
                                       .q = cg_->preconditioner().has_z() ? &t.q : nullptr,
                                       .next = t.sums[next],
                                       .state = cg.state,
                                       .departures = cg_->hat_departures(k)},
                                      cg_->blocks().hints(k));
  }
}

/// hat = v
template <class T, class V>
void PipelinedSteps<T, V>::place_in_hat(const VectorOf& v) {
  for (Index k = 0; k < cg_->count(); ++k)
    codelets::place<T>({cg_->system().matrix().shape(k).own},
                       {.from = v(k), .v = cg_->hat(k), .departures = cg_->exchange().from(k)},
                       cg_->blocks().hints(k));
}

/// hat = M^-1 v
template <class T, class V>
void PipelinedSteps<T, V>::precondition_into_hat(const VectorOf& v) {
  if (cg_->preconditioner().has_z()) {
    cg_->preconditioner().apply(v);
    cg_->send_preconditioned();
  } else if (cg_->preconditioner().kind() == PreconditionerKind::diagonal) {
    cg_->scale_by_diagonal(v, [this](Index k) -> const Tile<double>& { return tiles_[k].mn; });
  } else {
    place_in_hat(v);
  }
}

/// to = hat, of which a block has only its own elements
template <class T, class V>
void PipelinedSteps<T, V>::take_from_hat(const VectorOf& to) {
  for (Index k = 0; k < cg_->count(); ++k)
    codelets::take<T>({cg_->system().matrix().shape(k).own}, {.v = cg_->hat(k), .own = to(k)},
                      cg_->blocks().hints(k));
}

template class PipelinedSteps<float, float>;
template class PipelinedSteps<double, double>;
template class PipelinedSteps<double, float>;

}  // namespace asterism::sparse
