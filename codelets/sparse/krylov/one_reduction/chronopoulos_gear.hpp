/// \file
/// Conjugate gradients with one sum over all rows an iteration, [Chronopoulos, Gear 1989]: with u = M^-1 r,
///
///     (E1)  w = A u,  (w, u)
///     (E2)  beta = (r, u) / (r, u) before,  (p, A p) = (w, u) - beta^2 (p, A p) before,  alpha = (r, u) / (p, A p),
///           p = u + beta p,  s = w + beta s,  x += alpha p,  r -= alpha s,  (r, r);  u, (r, u) where M is 1 or a diagonal
///
/// (E1) is (N1), with u and w for p and q. As there, every block forms the scalars for itself, and an iteration that has
/// ended changes nothing any more. (r, r) is known to all only with the next iteration's sums: a look adds them up first.
#pragma once

#include "../../unsymmetric/hat.hpp"
#include "../conjugate_gradients.hpp"

namespace asterism::sparse {

/// What (E2) decides: the state's lengths. @param rr, ru of r as it is before
/// @param pq pq(beta): (p, A p) of the p that beta makes, but for the first iteration's, which is `first_pq`
/// @return whether the iteration goes on
template <class Product>
ASTERISM_HOST_DEVICE bool decide_lengths(Index iteration, double rr, double ru, double first_pq,
                                         const Product& pq, CgState& state) {
  const int now = side_of(iteration), next = side_of(iteration + 1);
  if (state.status[now] != CgStatus::running) {
    state.status[next] = state.status[now];
    state.rz[next] = state.rz[now];
    return false;
  }
  state.rr = rr;
  state.status[next] = status_after(1, rr, ru, state.limit);
  if (state.status[next] != CgStatus::running) return false;
  const double beta = iteration == 0 ? 0 : ru / state.rz[now];
  const double product = iteration == 0 ? first_pq : pq(beta);
  if (!is_usable(product)) {
    state.status[next] = CgStatus::lost;
    return false;
  }
  state.pq = product;
  state.rz[next] = ru;
  state.lengths = {ru / product, beta};
  ++state.iterations;
  if (iteration < CgState::kept) state.alpha[iteration] = state.lengths.alpha;
  if (iteration > 0 && iteration <= CgState::kept) state.beta[iteration - 1] = beta;
  return true;
}

/// As (E2) has it. @param wu (w, u)
ASTERISM_HOST_DEVICE inline bool decide_lengths(Index iteration, double rr, double ru, double wu,
                                                CgState& state) {
  const double pq_before = state.pq;
  return decide_lengths(
      iteration, rr, ru, wu, [=](double beta) { return wu - beta * beta * pq_before; }, state);
}

/// (E2). @param wu, rr, ru of all blocks @param hat u, in a vector of shape.cols elements
/// @param next_rr, next_ru sums over units of the r that it leaves, in other tiles than rr and ru
template <template <class> class As, class T, class V>
struct AdvancePorts {
  As<Many<In<double>>> wu;
  As<Many<In<double>>> rr;
  As<Many<In<double>>> ru;
  As<In<T>> w;
  As<Optional<In<V>>> inverse_diagonal;
  As<InOut<T>> hat;
  As<InOut<T>> x;
  As<InOut<T>> r;
  As<InOut<T>> p;
  As<InOut<T>> s;
  As<InOut<double>> next_rr;
  As<Optional<InOut<double>>> next_ru;
  As<InOut<CgState>> state;
  Departures<As, T> departures;
};
struct AdvanceArgs {
  CgArgs step;
  Hat hat = Hat::by_step;
};

/// A state as it will be found by the next iteration.
struct NextStateArgs {
  Index iteration = 0;
  bool is_pipelined = false;  ///< rr and ru are the same tiles, PipelinedSum has their lists
};
/// @param rr, ru of all blocks
template <template <class> class As>
struct NextStatePorts {
  As<Many<In<double>>> rr;
  As<Many<In<double>>> ru;
  As<In<CgState>> state;
  As<Out<CgState>> shown;
};

namespace cpu {
template <class T, class V>
void advance(const AdvanceArgs& args, AdvancePorts<AsPorts, T, V> ports);
void show_next(const NextStateArgs& args, NextStatePorts<AsPorts> ports);
}  // namespace cpu

namespace cuda {
template <class T, class V>
void advance(Stream stream, const AdvanceArgs& args, AdvancePorts<AsPorts, T, V> ports);
void show_next(Stream stream, const NextStateArgs& args, NextStatePorts<AsPorts> ports);
}  // namespace cuda

}  // namespace asterism::sparse
