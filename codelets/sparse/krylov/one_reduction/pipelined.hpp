/// \file
/// Conjugate gradients whose sums over all rows are on their way while A and M^-1 are applied, after [Ghysels, Vanroose
/// 2014] algorithm 4: with u = M^-1 r, q = M^-1 s, m = M^-1 w,
///
///     (P1)  x += alpha p,  r -= alpha s,  w -= alpha z,  (r, r), (r, u), (w, u), (u, s), (p, s)
///     (P2)  beta = (r, u) / (r, u) before,  (p, s) = (w, u) + 2 beta (u, s) + beta^2 (p, s),  alpha = (r, u) / (p, s)
///     (P3)  p = u + beta p,  s = w + beta s,  z = A m + beta z
///
/// where s = A p, w = A u, z = A q by what they begin as: what other blocks need for A m, and the sums, go to them at the
/// same time. (P2) has the whole quadratic form of (P3)'s p. With (u, s) and (p, s) replaced by what they are where no
/// rounding is, as in the paper, 1138_bus takes ten times as many iterations.
///
/// Rounding makes s, w and z drift, too, faster and faster: r would be b - A x to 1e-7 of b only, after 64 iterations on
/// the model ecology-like:30x30. So they are formed anew every 16th iteration, counted from the first of all.
#pragma once

#include "chronopoulos_gear.hpp"

namespace asterism::sparse {

/// Iterations with the same s, w and z.
inline constexpr Index pipelined_period = 16;

/// The sums of (P1), one after the other in a tile of each block.
enum class PipelinedSum { rr, ru, wu, us, ps };
inline constexpr int pipelined_sums = 5;

/// (P2): the state's lengths. @param totals as PipelinedSum has them @return whether the iteration goes on
ASTERISM_HOST_DEVICE inline bool decide_lengths(Index iteration, const double (&totals)[pipelined_sums],
                                                CgState& state) {
  const auto of = [&](PipelinedSum sum) { return totals[static_cast<int>(sum)]; };
  const double wu = of(PipelinedSum::wu), us = of(PipelinedSum::us), ps = of(PipelinedSum::ps);
  return decide_lengths(
      iteration, of(PipelinedSum::rr), of(PipelinedSum::ru), wu,
      [=](double beta) { return wu + 2 * beta * us + beta * beta * ps; }, state);
}

/// (P2), (P3) and (P1), of AdvanceArgs; with the iteration -1 the sums alone, of what is there.
/// @param sums of all blocks @param n A m @param hat m, in a vector of shape.cols elements
/// @param u, q where tasks of M's own make m: q = m + beta q, u -= alpha q
/// @param next other tiles than sums
template <template <class> class As, class T, class V>
struct PipelinedPorts {
  As<Many<In<double>>> sums;
  As<In<T>> n;
  As<Optional<In<V>>> inverse_diagonal;
  As<InOut<T>> hat;
  As<InOut<T>> x;
  As<InOut<T>> r;
  As<InOut<T>> u;
  As<InOut<T>> w;
  As<InOut<T>> p;
  As<InOut<T>> s;
  As<InOut<T>> z;
  As<Optional<InOut<T>>> q;
  As<InOut<double>> next;
  As<InOut<CgState>> state;
  Departures<As, T> departures;
};

namespace cpu {
/// Of all blocks.
double total_of(const Many<In<double>>& blocks, PipelinedSum sum);
template <class T, class V>
void advance_pipelined(const AdvanceArgs& args, PipelinedPorts<AsPorts, T, V> ports);
}  // namespace cpu

namespace cuda {
template <class T, class V>
void advance_pipelined(Stream stream, const AdvanceArgs& args, PipelinedPorts<AsPorts, T, V> ports);
}  // namespace cuda

}  // namespace asterism::sparse
