/// \file
/// Real transforms as products with dense matrices, and what stands between them in the distributed fast
/// Poisson solver.
///
/// A transform of n points (transforms/transform.hpp (T1)) is Y_k = sum_j x_j t_{jk}. For lines that are the rows of a
/// matrix X it is the product Y = X T, T = [t_{jk}], and a block p of consecutive modes is the product with
/// those columns of T alone: the partial transform
///
///     V_p = X T_p,   T_p: the columns p of T (n x n_p).                                    (G1)
///
/// Back from modes that are spread over blocks, U = V T' is a sum of products with rows of the inverse's
/// matrix T',
///
///     U = sum_p V_p T'_p,   T'_p: the rows p of T' (n_p x n).                              (G2)
///
/// This is 2 n operations per point and direction where a fast transform has a few log n, but of the kind
/// that machines do best; and a block needs no other modes before its tridiagonal systems are solved.
///
/// The rounding error of a sum of n products grows like sqrt(n) (n at the very worst), that of an FFT like
/// log n.
#pragma once

#include "../../runtime/codelet.hpp"
#include "../grid/laplacian.hpp"
#include "../transforms/transform.hpp"
#include "tridiagonal.hpp"

namespace asterism::poisson {

/// cos(pi a / b) for 0 <= a, 0 < b, to rounding: whole periods, signs and halves are taken off in integers,
/// so that what is left to round is one division, whose result is at most 1/4.
ASTERISM_HOST_DEVICE inline double cos_pi(Index a, Index b) {
  a %= 2 * b;
  if (a > b) a = 2 * b - a;
  const double sign = 2 * a > b ? -1.0 : 1.0;
  if (2 * a > b) a = b - a;
  const auto ratio = [](Index p, Index q) { return static_cast<double>(p) / static_cast<double>(q); };
  return sign * (4 * a <= b ? grid::cos_pi(ratio(a, b)) : grid::sin_pi(ratio(b - 2 * a, 2 * b)));
}

/// sin(pi a / b), likewise.
ASTERISM_HOST_DEVICE inline double sin_pi(Index a, Index b) {
  a %= 2 * b;
  const double sign = a > b ? -1.0 : 1.0;
  if (a > b) a = 2 * b - a;
  if (2 * a > b) a = b - a;
  const auto ratio = [](Index p, Index q) { return static_cast<double>(p) / static_cast<double>(q); };
  return sign * (4 * a <= b ? grid::sin_pi(ratio(a, b)) : grid::cos_pi(ratio(b - 2 * a, 2 * b)));
}

/// t_{jk}: what point j of a line of n points adds to point k of its transform (T1), over itself.
ASTERISM_HOST_DEVICE inline double transform_entry(transforms::Transform kind, Index n, Index j, Index k) {
  const double alternating = k % 2 == 0 ? 1.0 : -1.0;
  switch (kind) {
    case transforms::Transform::dst1:
      return 2 * sin_pi((j + 1) * (k + 1), n + 1);
    case transforms::Transform::dst2:
      return 2 * sin_pi((2 * j + 1) * (k + 1), 2 * n);
    case transforms::Transform::dst3:
      return j == n - 1 ? alternating : 2 * sin_pi((j + 1) * (2 * k + 1), 2 * n);
    case transforms::Transform::dst4:
      return 2 * sin_pi((2 * j + 1) * (2 * k + 1), 4 * n);
    case transforms::Transform::dct1:
      return j == 0 ? 1.0 : j == n - 1 ? alternating : 2 * cos_pi(j * k, n - 1);
    case transforms::Transform::dct2:
      return 2 * cos_pi((2 * j + 1) * k, 2 * n);
    case transforms::Transform::dct3:
      return j == 0 ? 1.0 : 2 * cos_pi(j * (2 * k + 1), 2 * n);
    case transforms::Transform::dct4:
      return 2 * cos_pi((2 * j + 1) * (2 * k + 1), 4 * n);
    case transforms::Transform::dft:  // Im X_{n-k} = sum x_j sin(2 pi j k / n) comes after the real parts
      return 2 * k <= n ? cos_pi(2 * j * k, n) : sin_pi(2 * j * k, n);
    case transforms::Transform::idft:  // every X_j but the real ones stands for its conjugate X_{n-j} too
      return j == 0       ? 1.0
             : 2 * j == n ? alternating
                          : 2 * (2 * j < n ? cos_pi(2 * j * k, n) : sin_pi(2 * j * k, n));
  }
  return 0;
}

/// A part of T: its rows from `first_row` on and its columns from `first_column` on, as many as there is room
/// for.
struct TransformPart {
  transforms::Transform kind;
  Index n;
  Index first_row, first_column;
};

/// What a product does to the rows that it is written to.
enum class Result {
  replaces,  ///< whatever they were, NaN too
  adds,
};

/// C's rows from `to` on become, or grow by, A's rows from `from` on times B; `rows` of them.
struct Product {
  Index rows;
  Index from = 0, to = 0;
  Result result = Result::replaces;
};

namespace cpu {

template <class T>
void transform_matrix(const TransformPart& part, Out<T> matrix);

/// @param b all of it: its rows are as many as A's columns, its columns as many as C's
template <class T>
void multiply(const Product& product, In<T> a, In<T> b, InOut<T> c);

/// @param column as many rows as the matrix
template <class T>
void set_first_column(In<T> column, InOut<T> matrix);

}  // namespace cpu

namespace cuda {

/// Makes what `multiply` needs on the calling thread's current device, so that no task has to. It lives until
/// the process ends.
void plan_multiply();

template <class T>
void transform_matrix(Stream stream, const TransformPart& part, Out<T> matrix);

/// As cpu::multiply; in T itself, not in the shorter numbers that GPUs may multiply instead.
template <class T>
void multiply(Stream stream, const Product& product, In<T> a, In<T> b, InOut<T> c);

template <class T>
void set_first_column(Stream stream, In<T> column, InOut<T> matrix);

}  // namespace cuda
}  // namespace asterism::poisson

namespace asterism::poisson::codelets {

/// Port: the part of the matrix, made where it is to be used.
template <class T>
inline const Codelet<TransformPart, Out<T>> transform_matrix{typed_name<T>("transform_matrix"),
                                                             cpu::transform_matrix<T>,
                                                             ASTERISM_CUDA_KERNEL(cuda::transform_matrix<T>)};

/// C = A B, or C += A B, in some of C's rows; its others stay as they are.
template <template <class> class As, class T>
struct MultiplyPorts {
  As<In<T>> a, b;
  As<InOut<T>> c;
};
template <class T>
inline const Codelet<Product, MultiplyPorts<AsPorts, T>> multiply{
    typed_name<T>("multiply"),
    [](const Product& product, MultiplyPorts<AsPorts, T> p) { cpu::multiply<T>(product, p.a, p.b, p.c); },
    ASTERISM_CUDA_KERNEL([](Stream stream, const Product& product, MultiplyPorts<AsPorts, T> p) {
      cuda::multiply<T>(stream, product, p.a, p.b, p.c);
    })};

/// The same where nothing in C matters any more.
template <template <class> class As, class T>
struct MultiplyAnewPorts {
  As<In<T>> a, b;
  As<Out<T>> c;
};
template <class T>
inline const Codelet<Product, MultiplyAnewPorts<AsPorts, T>> multiply_anew{
    typed_name<T>("multiply_anew"),
    [](const Product& product, MultiplyAnewPorts<AsPorts, T> p) {
      cpu::multiply<T>(product, p.a, p.b, {p.c.data, p.c.rows, p.c.cols, p.c.ld});
    },
    ASTERISM_CUDA_KERNEL([](Stream stream, const Product& product, MultiplyAnewPorts<AsPorts, T> p) {
      cuda::multiply<T>(stream, product, p.a, p.b, {p.c.data, p.c.rows, p.c.cols, p.c.ld});
    })};

/// Ports: a column, the matrix.
template <class T>
inline const Codelet<NoArgs, In<T>, InOut<T>> set_first_column{
    typed_name<T>("set_first_column"),
    [](const NoArgs&, In<T> column, InOut<T> matrix) { cpu::set_first_column(column, matrix); },
    ASTERISM_CUDA_KERNEL([](Stream stream, const NoArgs&, In<T> column, InOut<T> matrix) {
      cuda::set_first_column(stream, column, matrix);
    })};

template <template <class> class As, class T>
struct SolveColumnsPorts {
  As<InOut<T>> columns;          ///< right-hand sides of whole columns, m x n, replaced by solutions
  As<In<double>> axis, mu;       ///< all AxisRows; 1 x n
  As<In<double>> before, after;  ///< the values before the first row and after the last, 1 x n each
  As<Scratch<double>> work;      ///< columns_scratch
};
/// Argument: scale.
template <class T>
inline const Codelet<double, SolveColumnsPorts<AsPorts, T>> solve_columns{
    typed_name<T>("solve_columns"),
    [](const double& scale, SolveColumnsPorts<AsPorts, T> p) {
      cpu::solve(p.columns, p.axis, p.mu, scale, p.before, p.after);
    },
    ASTERISM_CUDA_KERNEL([](Stream stream, const double& scale, SolveColumnsPorts<AsPorts, T> p) {
      cuda::solve(stream, p.columns, p.axis, p.mu, scale, p.before, p.after, p.work.data);
    })};

/// The same on a periodic axis.
template <template <class> class As, class T>
struct SolveRingColumnsPorts {
  As<InOut<T>> columns;
  As<In<double>> axis, mu, response;  ///< how the columns respond
  As<Scratch<double>> work;
};
/// Argument: scale.
template <class T>
inline const Codelet<double, SolveRingColumnsPorts<AsPorts, T>> solve_ring_columns{
    typed_name<T>("solve_ring_columns"),
    [](const double& scale, SolveRingColumnsPorts<AsPorts, T> p) {
      cpu::solve_ring(p.columns, p.axis, p.mu, scale, p.response, p.work.data);
    },
    ASTERISM_CUDA_KERNEL([](Stream stream, const double& scale, SolveRingColumnsPorts<AsPorts, T> p) {
      cuda::solve_ring(stream, p.columns, p.axis, p.mu, scale, p.response, p.work.data);
    })};

/// Elements of working memory of either.
constexpr Index columns_scratch(Where where, Index rows, Index n, const InterfaceRows& tiles) {
  return (where == Where::cuda ? cuda::blocks_scratch(rows, n, tiles) : 0) + Ring::size(n, tiles);
}

}  // namespace asterism::poisson::codelets
