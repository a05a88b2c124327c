/// \file
/// BiCGStab ([van der Vorst 1992]) with a preconditioner M on the right, so that r is the residual of A x = b:
///
///     (V1)  q = A M^-1 p,  (r*, q), (q, q)
///     (V2)  alpha = (r*, r) / (r*, q),  x += alpha M^-1 p,  r -= alpha q,  (r, r)
///     (V3)  t = A M^-1 r,  (t, r), (t, t)
///     (V4)  omega = (t, r) / (t, t),  x += omega M^-1 r,  r -= omega t,  (r, r), (r*, r)
///     (V5)  beta = (r*, r) / (r*, r) before alpha / omega,  p = r + beta (p - omega q)
///
/// Nobody waits for a scalar: every block forms those that it needs from the sums over units (units.hpp) of all blocks,
/// and keeps them in a tile of its own. An iteration that has ended, for whatever reason, changes nothing any more.
#pragma once

#include <cmath>

#include "../codelet_names.hpp"
#include "../exchange.hpp"
#include "../krylov/sides.hpp"
#include "../matrix.hpp"
#include "../units.hpp"
#include "hat.hpp"

namespace asterism::sparse {

/// How an iteration of BiCGStab goes.
enum class BicgStatus : std::int32_t {
  running,
  converged,  ///< (r, r) <= limit
  breakdown,  ///< r* is at a right angle to r or to q, or r to t: there is nothing to divide by
  not_finite,
};

/// What a block knows of the iteration. What iteration k reads is at [side_of(k)], and what (V5) leaves to the next one
/// at [side_of(k + 1)], as threads of a GPU read while others write.
struct BicgState {
  double rho[2];  ///< (r*, r)
  BicgStatus status[2];
  double limit;         ///< of (r, r)
  double negligible;    ///< as BicgArgs has it
  double first_rr;      ///< (r, r) before the first iteration, which is about (r*, r*)
  double rr;            ///< (r, r)
  double alpha, omega;  ///< 0: there is none
  Index iterations;     ///< that were made
};

/// The arguments of a step.
struct BicgArgs {
  BlockShape shape;
  Index unit = 0;       ///< rows
  Index iteration = 0;  ///< from 0; -1: (V5) alone, before all, with p = r, which also sets the state
  double limit = 0;     ///< BicgState::limit, then
  /// Squares of cosines up to which vectors are at a right angle, as far as rounding lets one know; likewise.
  double negligible = 0;
  Hat hat = Hat::by_step;
};

/// Whether a product of two vectors is more than rounding, by their squares.
ASTERISM_HOST_DEVICE inline bool counts(double product, double square, double other, double negligible) {
  return product * product > negligible * square * other;
}

/// alpha and omega; 0 where there is none.
ASTERISM_HOST_DEVICE inline double alpha_of(double rho, double shadow_q, double qq, const BicgState& state) {
  const bool is_finite = std::isfinite(shadow_q) && std::isfinite(qq);
  return !is_finite || counts(shadow_q, qq, state.first_rr, state.negligible) ? rho / shadow_q : 0;
}
ASTERISM_HOST_DEVICE inline double omega_of(double tr, double tt, double rr, const BicgState& state) {
  const bool is_finite = std::isfinite(tr) && std::isfinite(tt);
  return !is_finite || counts(tr, tt, rr, state.negligible) ? tr / tt : 0;
}
/// Whether there is such a factor; nothing is done with one that is not.
ASTERISM_HOST_DEVICE inline bool is_there(double factor) { return factor != 0 && std::isfinite(factor); }

/// How an iteration goes on after one that left these.
ASTERISM_HOST_DEVICE inline BicgStatus status_after(double rr, double rho, const BicgState& state) {
  if (!std::isfinite(rr) || !std::isfinite(rho) || !std::isfinite(state.alpha) || !std::isfinite(state.omega))
    return BicgStatus::not_finite;
  if (rr <= state.limit) return BicgStatus::converged;
  const bool all_there =
      state.alpha != 0 && state.omega != 0 && counts(rho, rr, state.first_rr, state.negligible);
  return all_there ? BicgStatus::running : BicgStatus::breakdown;
}

/// The factor of p - omega q.
ASTERISM_HOST_DEVICE inline double beta_of(double rho, double rho_before, double alpha, double omega) {
  return omega != 0 ? rho / rho_before * (alpha / omega) : 0;
}

/// What (V5) decides: how the iteration goes on after this one.
ASTERISM_HOST_DEVICE inline void decide(const BicgArgs& args, double rr, double rho, BicgState& state) {
  const int next = side_of(args.iteration + 1);
  if (args.iteration < 0) {
    state = {};
    state.limit = args.limit;
    state.negligible = args.negligible;
    state.first_rr = rr;
    state.alpha = state.omega = 1;
  } else if (is_there(state.alpha)) {
    ++state.iterations;
  }
  state.rr = rr;
  state.rho[next] = rho;
  state.status[next] = status_after(rr, rho, state);
}

/// How much element i of r* is to be of that of r: 1 at the first attempt, and else something between 1/2 and 3/2 that
/// looks like chance, so that r* is another one and yet not at a right angle to r.
ASTERISM_HOST_DEVICE inline double shadow_weight(Index attempt, Index i) {
  if (attempt == 0) return 1;
  std::uint64_t z = static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15ULL +
                    static_cast<std::uint64_t>(attempt) * 0xd1342543de82ef95ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return 0.5 + static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/// r* for r, (r*, r).
struct ShadowArgs {
  Index unit = 0;
  Index attempt = 0;    ///< each has another r*
  Index first_row = 0;  ///< of the block
};
template <template <class> class As, class T>
struct ShadowPorts {
  As<In<T>> r;
  As<InOut<T>> shadow;
  As<InOut<double>> rho;
};

/// (V1) and (V3): q = A v, (q, a), (q, q). Nothing where the iteration has ended.
/// @param v `shape.cols` elements @param q and all other vectors: `shape.rows` @param qa, qq sums over units, one row
template <template <class> class As, class T>
struct BicgProductPorts {
  BlockPorts<As, T> matrix;
  Arrivals<As, T> arrivals;
  As<In<BicgState>> state;
  As<InOut<T>> v;
  As<In<T>> a;
  As<InOut<T>> q;
  As<InOut<double>> qa;
  As<InOut<double>> qq;
};

/// (V2). @param qa, qq of all blocks @param hat M^-1 p, then M^-1 r: `shape.cols` elements
template <template <class> class As, class T, class V>
struct HalfStepPorts {
  As<Many<In<double>>> qa;
  As<Many<In<double>>> qq;
  As<In<T>> q;
  As<Optional<In<V>>> inverse_diagonal;
  As<InOut<T>> hat;
  As<InOut<T>> x;
  As<InOut<T>> r;
  As<InOut<double>> rr;
  As<InOut<BicgState>> state;
  Departures<As, T> departures;
};

/// (V4). @param ta, tt of all blocks: (t, r), (t, t) @param ss of all blocks: (r, r) of (V2)
/// @param hat M^-1 r, `shape.cols` elements
template <template <class> class As, class T>
struct FullStepPorts {
  As<Many<In<double>>> ta;
  As<Many<In<double>>> tt;
  As<Many<In<double>>> ss;
  As<In<T>> t;
  As<In<T>> hat;
  As<In<T>> shadow;
  As<InOut<T>> x;
  As<InOut<T>> r;
  As<InOut<double>> rr;
  As<InOut<double>> rho;
  As<InOut<BicgState>> state;
};

/// (V5). @param rr, rho of all blocks @param hat M^-1 p, `shape.cols` elements
template <template <class> class As, class T, class V>
struct BicgTurnPorts {
  As<Many<In<double>>> rr;
  As<Many<In<double>>> rho;
  As<In<T>> r;
  As<In<T>> q;
  As<Optional<In<V>>> inverse_diagonal;
  As<InOut<T>> p;
  As<InOut<T>> hat;
  As<InOut<BicgState>> state;
  Departures<As, T> departures;
};

namespace cpu {
template <class T>
void shadow(const ShadowArgs& args, ShadowPorts<AsPorts, T> ports);
template <class T>
void bicg_product(const BicgArgs& args, BicgProductPorts<AsPorts, T> ports);
template <class T, class V>
void half_step(const BicgArgs& args, HalfStepPorts<AsPorts, T, V> ports);
template <class T>
void full_step(const BicgArgs& args, FullStepPorts<AsPorts, T> ports);
template <class T, class V>
void bicg_turn(const BicgArgs& args, BicgTurnPorts<AsPorts, T, V> ports);
}  // namespace cpu

namespace cuda {
template <class T>
void shadow(Stream stream, const ShadowArgs& args, ShadowPorts<AsPorts, T> ports);
template <class T>
void bicg_product(Stream stream, const BicgArgs& args, BicgProductPorts<AsPorts, T> ports);
template <class T, class V>
void half_step(Stream stream, const BicgArgs& args, HalfStepPorts<AsPorts, T, V> ports);
template <class T>
void full_step(Stream stream, const BicgArgs& args, FullStepPorts<AsPorts, T> ports);
template <class T, class V>
void bicg_turn(Stream stream, const BicgArgs& args, BicgTurnPorts<AsPorts, T, V> ports);
void show(Stream stream, In<BicgState> state, Out<BicgState> shown);
}  // namespace cuda

namespace codelets {
template <class T>
inline const Codelet<ShadowArgs, ShadowPorts<AsPorts, T>> shadow{typed_name<T>("bicg_shadow"), cpu::shadow<T>,
                                                                 ASTERISM_CUDA_KERNEL(cuda::shadow<T>)};
template <class T>
inline const Codelet<BicgArgs, BicgProductPorts<AsPorts, T>> bicg_product{
    typed_name<T>("bicg_product"), cpu::bicg_product<T>, ASTERISM_CUDA_KERNEL(cuda::bicg_product<T>)};
template <class T, class V>
inline const Codelet<BicgArgs, HalfStepPorts<AsPorts, T, V>> half_step{
    name_for<T, V>("bicg_half_step"), cpu::half_step<T, V>, ASTERISM_CUDA_KERNEL(cuda::half_step<T, V>)};
template <class T>
inline const Codelet<BicgArgs, FullStepPorts<AsPorts, T>> full_step{
    typed_name<T>("bicg_full_step"), cpu::full_step<T>, ASTERISM_CUDA_KERNEL(cuda::full_step<T>)};
template <class T, class V>
inline const Codelet<BicgArgs, BicgTurnPorts<AsPorts, T, V>> bicg_turn{
    name_for<T, V>("bicg_turn"), cpu::bicg_turn<T, V>, ASTERISM_CUDA_KERNEL(cuda::bicg_turn<T, V>)};
/// A copy of a state, for the host to look at while the iteration goes on.
inline const Codelet<NoArgs, In<BicgState>, Out<BicgState>> show_bicg{
    "bicg_show", +[](In<BicgState> state, Out<BicgState> shown) { *shown.data = *state.data; },
    ASTERISM_CUDA_KERNEL(cuda::show)};
}  // namespace codelets

}  // namespace asterism::sparse
