/// \file
/// GMRES(m) ([Saad, Schultz 1986]) with a preconditioner M on the right, so that r is the residual of A x = b:
///
///     (G0)  v_0 = r / |r|
///     (G1)  w = A M^-1 v_j,  h_i = (w, v_i) for i = 0 .. j
///     (G2)  w -= sum_i h_i v_i,  g_i = (w, v_i),  (w, w)
///     (G3)  w -= sum_i g_i v_i,  h_i += g_i,  h_(j+1) = |w|,  v_(j+1) = w / |w|;  least squares: |r|
///     (G4)  after m of these: x += M^-1 sum_i y_i v_i
///
/// Gram-Schmidt twice, each time against all vectors at once: as good as Householder's reflections, with two sums over
/// all workers and not one for each vector. (w, w) of (G3) is that of (G2) less the squares of g_i, which are small.
///
/// Nobody waits for a scalar: every block forms those that it needs from the sums over units (units.hpp) of all blocks,
/// and keeps them in tiles of its own. An iteration that has ended, for whatever reason, changes nothing any more.
#pragma once

#include <cmath>

#include "../codelet_names.hpp"
#include "../exchange.hpp"
#include "../krylov/sides.hpp"
#include "../matrix.hpp"
#include "../units.hpp"
#include "hat.hpp"

namespace asterism::sparse {

/// How an iteration of GMRES goes.
enum class GmresStatus : std::int32_t {
  running,
  converged,  ///< |r| <= the limit
  complete,  ///< the basis spans all that A can make of r (happy breakdown): the best x that it has is to be found
  breakdown,  ///< another basis was complete, and x no better: A is singular
  not_finite,
};

/// What a block knows of the iteration. What step k of all reads is at [side_of(k)], and what (G3), or (G0), leaves to
/// the next one at [side_of(k + 1)], as threads of a GPU read while others write.
struct GmresState {
  GmresStatus status[2];
  double limit;      ///< of (r, r)
  double rr;         ///< (r, r): of the least-squares problem, or, after (G0), of r
  double rr_before;  ///< when the basis began
  Index columns;     ///< of the least-squares problem
  Index iterations;  ///< that were made
};

/// What a block knows of the least-squares problem, in a tile of one row: columns of a triangular matrix, one after the
/// other, with room for m + 1 numbers each; the rotations that made it so; its right-hand side and its solution; what
/// (G2) and (G3) found of the last column.
struct LeastSquares {
  double* data;
  Index m;

  static constexpr Index size(Index m) { return m * (m + 1) + 2 * m + 2 * (m + 1) + 2 * (m + 2); }
  [[nodiscard]] ASTERISM_HOST_DEVICE double* column(Index j) const { return data + j * (m + 1); }
  [[nodiscard]] ASTERISM_HOST_DEVICE double* cosines() const { return data + m * (m + 1); }
  [[nodiscard]] ASTERISM_HOST_DEVICE double* sines() const { return cosines() + m; }
  [[nodiscard]] ASTERISM_HOST_DEVICE double* right_side() const { return sines() + m; }
  [[nodiscard]] ASTERISM_HOST_DEVICE double* solution() const { return right_side() + m + 1; }
  /// h of (G2); g of (G3), behind them (w, w).
  [[nodiscard]] ASTERISM_HOST_DEVICE double* h() const { return solution() + m + 1; }
  [[nodiscard]] ASTERISM_HOST_DEVICE double* g() const { return h() + m + 2; }

  /// Of a new basis. @param norm of r
  ASTERISM_HOST_DEVICE void begin(double norm) const {
    for (Index i = 0; i <= m; ++i) right_side()[i] = 0;
    right_side()[0] = norm;
  }
  /// Column j, whose entries 0 .. j are there, gets `below`, and all are turned so that there is none.
  /// @param negligible a diagonal entry up to which the column depends on those before it
  /// @return the square of the least residual of columns 0 .. j
  ASTERISM_HOST_DEVICE double rotate(Index j, double below, double negligible) const {
    double* const column_j = column(j);
    for (Index i = 0; i < j; ++i) {
      const double upper = cosines()[i] * column_j[i] + sines()[i] * column_j[i + 1];
      column_j[i + 1] = cosines()[i] * column_j[i + 1] - sines()[i] * column_j[i];
      column_j[i] = upper;
    }
    const double length = std::hypot(column_j[j], below);
    const bool depends = length <= negligible;
    cosines()[j] = depends ? 1 : column_j[j] / length;
    sines()[j] = depends ? 0 : below / length;
    column_j[j] = depends ? 0 : length;
    const double left = depends ? right_side()[j] : sines()[j] * right_side()[j];
    right_side()[j + 1] = -sines()[j] * right_side()[j];
    right_side()[j] *= cosines()[j];
    return left * left;
  }
  /// Of the first so many columns; 0 for one that depends on those before it.
  ASTERISM_HOST_DEVICE void solve(Index columns) const {
    for (Index i = columns; i-- > 0;) {
      double rest = right_side()[i];
      for (Index j = i + 1; j < columns; ++j) rest -= column(j)[i] * solution()[j];
      solution()[i] = column(i)[i] != 0 ? rest / column(i)[i] : 0;
    }
  }
};

/// The arguments of a step.
struct GmresArgs {
  BlockShape shape;
  Index unit = 0;    ///< rows
  Index m = 0;       ///< GMRES(m)
  Index step = 0;    ///< counts all of (G0) and (G3)
  Index column = 0;  ///< j
  double limit = 0;  ///< of (r, r)
  /// (G3): the cosine up to which a vector is in the space of others, as far as rounding lets one know.
  double negligible = 0;
  Hat hat = Hat::by_step;
  bool anew = false;  ///< (G0): whatever the state has
};

/// What is left of |w|^2 when the g_i v_i are subtracted, too.
ASTERISM_HOST_DEVICE inline double rest_of(const double* g, Index column) {
  double rest = g[column + 1];
  for (Index i = 0; i <= column; ++i) rest -= g[i] * g[i];
  return rest;
}
/// The squared length of A M^-1 v_j: all that has been subtracted, and the rest.
ASTERISM_HOST_DEVICE inline double whole_of(const double* h, const double* g, Index column) {
  double whole = g[column + 1];
  for (Index i = 0; i <= column; ++i) whole += h[i] * h[i];
  return whole;
}
/// 1 / h_(j+1); 0 where the basis is complete.
ASTERISM_HOST_DEVICE inline double scale_of(const GmresArgs& args, const double* h, const double* g) {
  const double rest = rest_of(g, args.column), whole = whole_of(h, g, args.column);
  return rest > args.negligible * args.negligible * whole ? 1 / std::sqrt(rest) : 0;
}

/// What (G0) decides, with (r, r) of r = b - A x. @return 1 / |r|; 0: there is nothing to do
ASTERISM_HOST_DEVICE inline double decide(const GmresArgs& args, double rr, GmresState& state) {
  const GmresStatus before = args.anew ? GmresStatus::running : state.status[side_of(args.step)];
  GmresStatus& now = state.status[side_of(args.step + 1)];
  const bool has_ended = before == GmresStatus::breakdown || before == GmresStatus::not_finite;
  const bool no_better = before == GmresStatus::complete && !(rr < state.rr_before / 4);
  if (args.anew) state.iterations = 0;
  state.limit = args.limit;
  state.columns = 0;
  state.rr = state.rr_before = rr;
  now = has_ended            ? before
        : !std::isfinite(rr) ? GmresStatus::not_finite
        : rr <= state.limit  ? GmresStatus::converged
        : no_better          ? GmresStatus::breakdown
                             : GmresStatus::running;
  return now == GmresStatus::running ? 1 / std::sqrt(rr) : 0;
}

/// What (G3) decides.
ASTERISM_HOST_DEVICE inline void take_column(const GmresArgs& args, const LeastSquares& problem,
                                             GmresState& state) {
  const double *const h = problem.h(), *const g = problem.g();
  const Index j = args.column;
  const double scale = scale_of(args, h, g), length = std::sqrt(whole_of(h, g, j));
  GmresStatus& next = state.status[side_of(args.step + 1)];
  ++state.iterations;
  if (!std::isfinite(length)) {
    next = GmresStatus::not_finite;
    return;
  }
  for (Index i = 0; i <= j; ++i) problem.column(j)[i] = h[i] + g[i];
  state.rr = problem.rotate(j, scale > 0 ? 1 / scale : 0, args.negligible * length);
  state.columns = j + 1;
  next = scale == 0                ? GmresStatus::complete
         : state.rr <= state.limit ? GmresStatus::converged
                                   : GmresStatus::running;
}

/// (G0). @param rr of all blocks @param v0, hat M^-1 v0: `shape.cols` elements
template <template <class> class As, class T, class V>
struct BasisPorts {
  As<Many<In<double>>> rr;
  As<In<T>> r;
  As<Optional<In<V>>> inverse_diagonal;
  As<InOut<T>> first;
  As<InOut<T>> hat;
  As<InOut<double>> problem;
  As<InOut<GmresState>> state;
  Departures<As, T> departures;
};

/// (G1). Nothing where the iteration has ended.
/// @param hat M^-1 v_j, `shape.cols` elements @param basis v_0 .. v_j
/// @param sums over units of (w, v_i), one row: all units for v_0, then those for v_1, ..., with room for m + 2 of them
template <template <class> class As, class T>
struct ArnoldiProductPorts {
  BlockPorts<As, T> matrix;
  Arrivals<As, T> arrivals;
  As<In<GmresState>> state;
  As<InOut<T>> hat;
  As<Many<In<T>>> basis;
  As<InOut<T>> w;
  As<InOut<double>> sums;
};

/// (G2). @param all_sums of (G1), of all blocks @param sums likewise, those of (w, w) behind them
template <template <class> class As, class T>
struct ProjectionPorts {
  As<Many<In<double>>> all_sums;
  As<In<GmresState>> state;
  As<Many<In<T>>> basis;
  As<InOut<T>> w;
  As<InOut<double>> sums;
  As<InOut<double>> problem;
};

/// (G3). @param all_sums of (G2), of all blocks @param next v_(j+1) @param hat M^-1 v_(j+1), `shape.cols` elements
template <template <class> class As, class T, class V>
struct ExtensionPorts {
  As<Many<In<double>>> all_sums;
  As<Many<In<T>>> basis;
  As<In<T>> w;
  As<Optional<In<V>>> inverse_diagonal;
  As<InOut<T>> next;
  As<InOut<T>> hat;
  As<InOut<double>> problem;
  As<InOut<GmresState>> state;
  Departures<As, T> departures;
};

/// (G4): w = sum_i y_i v_i. @param basis v_0 .. v_(m-1), or as many as there may be columns
template <template <class> class As, class T, class V>
struct CombinationPorts {
  As<In<GmresState>> state;
  As<Many<In<T>>> basis;
  As<Optional<In<V>>> inverse_diagonal;
  As<InOut<double>> problem;
  As<InOut<T>> w;
  As<InOut<T>> hat;
};

/// x += M^-1 w. @param hat `shape.cols` elements
template <template <class> class As, class T>
struct CorrectionPorts {
  As<In<T>> hat;
  As<InOut<T>> x;
};

namespace cpu {
template <class T, class V>
void begin_basis(const GmresArgs& args, BasisPorts<AsPorts, T, V> ports);
template <class T>
void arnoldi_product(const GmresArgs& args, ArnoldiProductPorts<AsPorts, T> ports);
template <class T>
void project(const GmresArgs& args, ProjectionPorts<AsPorts, T> ports);
template <class T, class V>
void extend_basis(const GmresArgs& args, ExtensionPorts<AsPorts, T, V> ports);
template <class T, class V>
void combine(const GmresArgs& args, CombinationPorts<AsPorts, T, V> ports);
template <class T>
void correct(const GmresArgs& args, CorrectionPorts<AsPorts, T> ports);
}  // namespace cpu

namespace cuda {
template <class T, class V>
void begin_basis(Stream stream, const GmresArgs& args, BasisPorts<AsPorts, T, V> ports);
template <class T>
void arnoldi_product(Stream stream, const GmresArgs& args, ArnoldiProductPorts<AsPorts, T> ports);
template <class T>
void project(Stream stream, const GmresArgs& args, ProjectionPorts<AsPorts, T> ports);
template <class T, class V>
void extend_basis(Stream stream, const GmresArgs& args, ExtensionPorts<AsPorts, T, V> ports);
template <class T, class V>
void combine(Stream stream, const GmresArgs& args, CombinationPorts<AsPorts, T, V> ports);
template <class T>
void correct(Stream stream, const GmresArgs& args, CorrectionPorts<AsPorts, T> ports);
void show(Stream stream, In<GmresState> state, Out<GmresState> shown);
}  // namespace cuda

namespace codelets {
template <class T, class V>
inline const Codelet<GmresArgs, BasisPorts<AsPorts, T, V>> begin_basis{
    name_for<T, V>("gmres_begin_basis"), cpu::begin_basis<T, V>,
    ASTERISM_CUDA_KERNEL(cuda::begin_basis<T, V>)};
template <class T>
inline const Codelet<GmresArgs, ArnoldiProductPorts<AsPorts, T>> arnoldi_product{
    typed_name<T>("gmres_arnoldi_product"), cpu::arnoldi_product<T>,
    ASTERISM_CUDA_KERNEL(cuda::arnoldi_product<T>)};
template <class T>
inline const Codelet<GmresArgs, ProjectionPorts<AsPorts, T>> project{
    typed_name<T>("gmres_project"), cpu::project<T>, ASTERISM_CUDA_KERNEL(cuda::project<T>)};
template <class T, class V>
inline const Codelet<GmresArgs, ExtensionPorts<AsPorts, T, V>> extend_basis{
    name_for<T, V>("gmres_extend_basis"), cpu::extend_basis<T, V>,
    ASTERISM_CUDA_KERNEL(cuda::extend_basis<T, V>)};
template <class T, class V>
inline const Codelet<GmresArgs, CombinationPorts<AsPorts, T, V>> combine{
    name_for<T, V>("gmres_combine"), cpu::combine<T, V>, ASTERISM_CUDA_KERNEL(cuda::combine<T, V>)};
template <class T>
inline const Codelet<GmresArgs, CorrectionPorts<AsPorts, T>> correct{
    typed_name<T>("gmres_correct"), cpu::correct<T>, ASTERISM_CUDA_KERNEL(cuda::correct<T>)};
/// A copy of a state, for the host to look at while the iteration goes on.
inline const Codelet<NoArgs, In<GmresState>, Out<GmresState>> show_gmres{
    "gmres_show", +[](In<GmresState> state, Out<GmresState> shown) { *shown.data = *state.data; },
    ASTERISM_CUDA_KERNEL(cuda::show)};
}  // namespace codelets

}  // namespace asterism::sparse
