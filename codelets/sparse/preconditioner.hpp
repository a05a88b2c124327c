/// \file
/// Preconditioners: z = M^-1 r for an M that is like A and easily inverted. All kinds are one of four:
///
///     (Q1)  diagonal: z = D^-1 r. For short D^-1 is called d: `inverse_diagonal`.
///     (Q2)  polynomial: z = 0; K + 1 times: s = gamma s + delta d (r - A z), z += s.
///           With gamma = 0, delta = 1 the Neumann series of degree K ([Czapinski 2014] (6.9), by Horner's rule);
///           with the coefficients of Chebyshev's polynomials their iteration ([Barrett et al. 1994] 2.3.5); the
///           scaled identity ((6.6)) has no D: delta = omega.
///     (Q3)  triangular: M = (I + L) D (I + U), L strictly lower, U strictly upper.
///           y = r - L y, z = d y - U z.
///
/// In the form (Q3) are all of them: ILU, A ~ L' U' with L' = I + L, U' = D (I + U); incomplete Cholesky, A ~ C C^T
/// with C = (I + L) sqrt(D); symmetric Gauss-Seidel, L = L_A D_A^-1, D = D_A, U = D_A^-1 R_A, and SSOR with omega L,
/// D / (omega (2 - omega)), omega U ([Weiss 2011]). Rows are in stages: none has entries in its own, those of L are
/// in earlier ones and those of U in later ones. All rows of a stage are worked on at once: colours of
/// multi-colouring, or levels of a factorisation in the natural order. For cores the rows of a stage that lie in one group
/// of rows may also have entries in each other, and then follow each other.
#pragma once

#include <array>
#include <vector>

#include "exchange.hpp"
#include "matrix.hpp"
#include "units.hpp"

namespace asterism::sparse {

enum class PreconditionerKind {
  none,
  diagonal,
  polynomial,
  triangular,
  users,  ///< tasks of the library's user
};

/// gamma and delta of a step of (Q2).
struct PolynomialStep {
  double gamma = 0, delta = 1;
};

/// The rows of every stage of a block: stage s of group g has rows [begins[g (stages + 1) + s], begins[g (stages + 1)
/// + s + 1]). The groups lie one after the other; within one its stages do.
struct Stages {
  Index stages = 0, groups = 0;
  std::vector<std::int32_t> begins;  ///< also in a tile
  Index longest = 0;                 ///< rows of a stage in one group
  /// Whether rows of a stage in one group follow each other, upwards going forward and downwards going backward; for
  /// cores. Those of different groups need nothing of each other.
  bool in_order = false;
};

/// What of a preconditioner is known when a task is submitted.
struct PreconditionerShape {
  PreconditionerKind kind = PreconditionerKind::none;
  BlockShape left;                    ///< L, or A as the polynomial has it
  BlockShape right;                   ///< U
  std::vector<PolynomialStep> steps;  ///< K + 1 of them; gamma of the first does not matter
  Stages stages;
};

/// The tiles of a preconditioner; V: the type of its numbers, which may be shorter than that of the vectors.
/// @param z, next: vectors with their foreign elements (BlockShape::cols): z is the result; `next` is where a
/// polynomial's next z comes, which takes turns with z: the result is in `next` after an even number of steps (K
/// odd).
/// @param s of a polynomial with gamma
template <template <class> class As, class T, class V>
struct PreconditionerPorts {
  As<Optional<In<V>>> inverse_diagonal;
  BlockPorts<As, V> left;
  BlockPorts<As, V> right;
  As<Optional<In<std::int32_t>>> stages;
  As<Optional<InOut<T>>> z;
  As<Optional<InOut<T>>> next;
  As<Optional<InOut<T>>> s;
};

/// A step of (Q2) on a block.
struct PolynomialArgs {
  BlockShape shape;
  Index unit = 0;
  PolynomialStep step;
  bool first = false;  ///< z is 0, whatever its tile has
};
/// @param rz sums over units of (r, next)
template <template <class> class As, class T, class V>
struct PolynomialPorts {
  BlockPorts<As, V> matrix;
  Arrivals<As, T> arrivals;
  As<Optional<In<V>>> inverse_diagonal;
  As<In<T>> r;
  As<InOut<T>> z;
  As<Optional<InOut<T>>> s;
  As<InOut<T>> next;
  As<Optional<InOut<double>>> rz;
  Departures<As, T> departures;
};

/// A stage, or several of them, of a half of (Q3) on a block.
enum class Half {
  forward,   ///< z = r - L z
  backward,  ///< z = d z - U z
};
struct TriangularArgs {
  BlockShape shape;  ///< of L or U
  Half half = Half::forward;
  Stages stages;
  Index first_stage = 0, end_stage = 0;  ///< worked on upwards going forward, downwards going backward
};
/// @param factor L or U @param inverse_diagonal going backward
template <template <class> class As, class T, class V>
struct TriangularPorts {
  BlockPorts<As, V> factor;
  As<Optional<In<V>>> inverse_diagonal;
  As<In<std::int32_t>> stages;
  Arrivals<As, T> arrivals;
  As<In<T>> r;
  As<InOut<T>> z;
  Departures<As, T> departures;
};

/// The sums over units of (a, b); b may have foreign elements, of which the first of its own is b_own.
struct DotArgs {
  Index unit = 0, b_own = 0;
};
template <template <class> class As, class T>
struct DotPorts {
  As<In<T>> a;
  As<In<T>> b;
  As<Out<double>> sums;
};

namespace cpu {
template <class T, class V>
void polynomial_step(const PolynomialArgs& args, PolynomialPorts<AsPorts, T, V> ports);
template <class T, class V>
void triangular_stages(const TriangularArgs& args, TriangularPorts<AsPorts, T, V> ports);
template <class T>
void dot(const DotArgs& args, DotPorts<AsPorts, T> ports);
}  // namespace cpu

namespace cuda {
template <class T, class V>
void polynomial_step(Stream stream, const PolynomialArgs& args, PolynomialPorts<AsPorts, T, V> ports);
template <class T, class V>
void triangular_stages(Stream stream, const TriangularArgs& args, TriangularPorts<AsPorts, T, V> ports);
template <class T>
void dot(Stream stream, const DotArgs& args, DotPorts<AsPorts, T> ports);
}  // namespace cuda

}  // namespace asterism::sparse
