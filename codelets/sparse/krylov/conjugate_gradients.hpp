/// \file
/// The method of conjugate gradients with a preconditioner M ([Czapinski 2014] algorithm 6.2), in three steps:
///
///     (N1)  q = A p,  (p, q)
///     (N2)  alpha = (r, z) / (p, q),  r -= alpha q,  (r, r)
///     (N3)  z = M^-1 r,  (r, z);  beta = (r, z) / (r, z) before,  x += alpha p,  p = z + beta p
///
/// x waits for (N3), as that reads p anyway. Nobody waits for a scalar: every block forms those that it needs from the
/// sums over units (units.hpp) of all blocks, and keeps them in a tile of its own. An iteration that has ended, for
/// whatever reason, changes nothing any more.
#pragma once

#include <cmath>
#include <vector>

#include "../exchange.hpp"
#include "../matrix.hpp"
#include "../preconditioner.hpp"
#include "../units.hpp"
#include "sides.hpp"

namespace asterism::sparse {

/// How an iteration of conjugate gradients goes.
enum class CgStatus : std::int32_t {
  running,
  converged,           ///< (r, r) <= limit
  negative_curvature,  ///< (p, A p) <= 0: A is not positive definite
  negative_product,    ///< (r, M^-1 r) <= 0: M is not
  not_finite,
  lost,  ///< (p, A p) <= 0 where it is formed without A p (one_reduction/): by rounding, or A is not
};

/// alpha and beta of an iteration.
struct Lengths {
  double alpha, beta;
};

/// What a block knows of the iteration. What iteration k reads is at [side_of(k)], and what (N3) leaves to the next one
/// at [side_of(k + 1)], as threads of a GPU read while others write.
struct CgState {
  double rz[2];  ///< (r, z)
  CgStatus status[2];
  double limit;      ///< of (r, r)
  double rr;         ///< (r, r)
  double pq;         ///< (p, q)
  Lengths lengths;   ///< of the iteration that is under way, where it has one reduction
  Index iterations;  ///< that were made

  /// alpha and beta of the first iterations, for the spectrum of M^-1 A (Lanczos).
  static constexpr int kept = 256;
  double alpha[kept], beta[kept];
};

/// The arguments of a step.
struct CgArgs {
  BlockShape shape;
  Index unit = 0;       ///< rows
  Index iteration = 0;  ///< from 0; -1: (N3) alone, before all, with p = z, which also sets the state
  double limit = 0;     ///< CgState::limit, then
};

/// Whether (N2) can be done with this (p, q); where not, r and x stay.
ASTERISM_HOST_DEVICE inline bool is_usable(double pq) { return pq > 0 && std::isfinite(pq); }

/// Of (N2) and (N3), where the state has its pq.
ASTERISM_HOST_DEVICE inline double alpha_of(const CgState& state, Index iteration) {
  return state.rz[side_of(iteration)] / state.pq;
}

/// How an iteration goes on after one with these products.
ASTERISM_HOST_DEVICE inline CgStatus status_after(double pq, double rr, double rz, double limit) {
  if (!std::isfinite(rr) || !std::isfinite(rz) || !std::isfinite(pq)) return CgStatus::not_finite;
  if (pq <= 0) return CgStatus::negative_curvature;
  if (rr <= limit) return CgStatus::converged;
  return rz <= 0 ? CgStatus::negative_product : CgStatus::running;
}

/// What (N3) decides: how the iteration goes on after this one. The state has its pq. @return beta
ASTERISM_HOST_DEVICE inline double decide(Index iteration, double rr, double rz, CgState& state) {
  state.rr = rr;
  state.rz[side_of(iteration + 1)] = rz;
  state.status[side_of(iteration + 1)] = status_after(state.pq, rr, rz, state.limit);
  if (iteration < 0) return 0;
  if (state.pq > 0) ++state.iterations;
  const double beta = rz / state.rz[side_of(iteration)];
  if (iteration < CgState::kept) state.beta[iteration] = beta;
  return beta;
}

/// (N1). Nothing where the iteration has ended.
/// @param p `shape.cols` elements @param q and all other vectors: `shape.rows` @param pq the sums over units, one row
template <template <class> class As, class T>
struct MultiplyPorts {
  BlockPorts<As, T> matrix;
  Arrivals<As, T> arrivals;
  As<In<CgState>> state;
  As<InOut<T>> p;
  As<InOut<T>> q;
  As<InOut<double>> pq;
};

/// (N1) of several right-hand sides: the matrix is read once for all of them. Those whose iteration has ended are left
/// as they are.
struct MultiplyAllArgs {
  BlockShape shape;
  Index unit = 0;                 ///< rows
  std::vector<Index> iterations;  ///< CgArgs::iteration of each
};
/// As MultiplyPorts, one of each for every right-hand side. @param arrivals first those of the first one's p, and so on;
/// as many of each
template <template <class> class As, class T>
struct MultiplyAllPorts {
  BlockPorts<As, T> matrix;
  Arrivals<As, T> arrivals;
  As<Many<In<CgState>>> states;
  As<Many<InOut<T>>> p;
  As<Many<InOut<T>>> q;
  As<Many<InOut<double>>> pq;
};

/// (N2). @param pq of all blocks @param inverse_diagonal where M is a diagonal: (r, z) comes from here, into rz
/// @param state alpha, pq
template <template <class> class As, class T, class V>
struct DescentPorts {
  As<Many<In<double>>> pq;
  As<In<T>> q;
  As<Optional<In<V>>> inverse_diagonal;
  As<InOut<T>> r;
  As<InOut<double>> rr;
  As<Optional<InOut<double>>> rz;
  As<InOut<CgState>> state;
};

/// (N3) but for M. @param rr, rz of all blocks; the same tiles where there is no M
/// @param z in a vector of shape.cols elements, as M leaves it; none: r, or inverse_diagonal times r
template <template <class> class As, class T, class V>
struct DirectionPorts {
  As<Many<In<double>>> rr;
  As<Many<In<double>>> rz;
  As<In<T>> r;
  As<Optional<In<T>>> z;
  As<Optional<In<V>>> inverse_diagonal;
  As<InOut<T>> x;
  As<InOut<T>> p;
  As<InOut<CgState>> state;
  Departures<As, T> departures;
};

/// On a GPU the pipelined form may be taken, with so many vectors of its own, where there are at most so many rows: four
/// for each of the 1024 threads on each of the 144 processors of the largest GPUs.
inline constexpr Index pipelined_vectors = 6, most_pipelined_rows = 144 * 1024 * 4;

/// Several iterations of a matrix that is a single block.
struct CgSweepArgs {
  CgArgs first;  ///< of the first of them
  Index count = 0;
  PreconditionerShape preconditioner;
};
template <template <class> class As, class T, class V>
struct CgSweepPorts {
  BlockPorts<As, T> matrix;
  PreconditionerPorts<As, T, V> preconditioner;
  As<InOut<T>> x;
  As<InOut<T>> r;
  As<InOut<T>> p;
  As<InOut<T>> q;
  As<InOut<double>> pq;
  As<InOut<double>> rr;
  As<InOut<double>> rz;  ///< the same tile as rr where there is no M
  As<InOut<CgState>> state;
  As<Optional<InOut<T>>> pipelined;  ///< room for pipelined_vectors; none: it takes another form
};

namespace cpu {
template <class T>
void multiply(const CgArgs& args, MultiplyPorts<AsPorts, T> ports);
template <class T>
void multiply_all(const MultiplyAllArgs& args, MultiplyAllPorts<AsPorts, T> ports);
template <class T, class V>
void descend(const CgArgs& args, DescentPorts<AsPorts, T, V> ports);
template <class T, class V>
void turn(const CgArgs& args, DirectionPorts<AsPorts, T, V> ports);
template <class T, class V>
void cg_sweep(const CgSweepArgs& args, CgSweepPorts<AsPorts, T, V> ports);
}  // namespace cpu

namespace cuda {
template <class T>
void multiply(Stream stream, const CgArgs& args, MultiplyPorts<AsPorts, T> ports);
template <class T, class V>
void descend(Stream stream, const CgArgs& args, DescentPorts<AsPorts, T, V> ports);
template <class T, class V>
void turn(Stream stream, const CgArgs& args, DirectionPorts<AsPorts, T, V> ports);
template <class T, class V>
void cg_sweep(Stream stream, const CgSweepArgs& args, CgSweepPorts<AsPorts, T, V> ports);
void show(Stream stream, In<CgState> state, Out<CgState> shown);

/// Whether the current GPU's multiprocessors have room for a matrix of Format::schur, of doubles, and the vectors of cg_sweep.
bool keeps_schur(const BlockShape& schur, int diagonals);
}  // namespace cuda

}  // namespace asterism::sparse
