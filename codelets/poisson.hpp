/// \file
/// The slab kernels of the fast Poisson solver: transforms along the rows, tridiagonal systems down the columns.
///
/// A slab is a tile of consecutive rows of the grid. Its columns, after the transform of its rows (transform.hpp), are
/// segments of the tridiagonal systems (tridiagonal.hpp).
#pragma once

#include <cmath>

#include "../runtime/codelet.hpp"
#include "tridiagonal.hpp"

namespace asterism::kernels {

/// excess_k of (S1) for mode k = 1 ... n of the five-point difference: d_k = 2 + 4 (hy/hx)^2 sin^2(k pi / (2 (n + 1))).
inline double dirichlet_excess(Index k, Index n, double hx, double hy) {
  const double s = 2 * (hy / hx) *
                   std::sin(static_cast<double>(k) / (2 * (static_cast<double>(n) + 1)) * 3.14159265358979323846);
  return s * s;
}

/// What a slab's tile holds when its task begins.
enum class Content {
  grid,   ///< rows of f
  modes,  ///< rows of f, transformed
};

struct SlabArgs {
  double scale;         ///< of the right-hand side in (S1): hy^2 / (2 (n + 1)), the transforms' normalisation included
  Index lines_at_once;  ///< how many lines a kernel transforms together
  Content content = Content::grid;
};

namespace cpu {

/// Pass 1 where the slab is not kept: the boundary (4 x n) of the transformed slab; the slab stays as it is.
template <class T>
void reduce_slab(const SlabArgs& args, In<T> f, In<double> excess, Out<double> boundary, Scratch<double> work);

/// Pass 1 where it is kept: as reduce_slab, but the transformed rows take the place of f.
template <class T>
void transform_slab(const SlabArgs& args, InOut<T> f, In<double> excess, Out<double> boundary,
                    Scratch<double> work);

/// Pass 2: u over f (or over its modes, see Content), given the modes just above and below the slab (1 x n each);
/// `top` and `bottom` (1 x n) get copies of u's first and last row, for those who need the slab's halo.
template <class T>
void solve_slab(const SlabArgs& args, InOut<T> f, In<double> excess, In<double> above, In<double> below, Out<T> top,
                Out<T> bottom, Scratch<double> work);

/// Elements of working memory that any of the slab kernels needs for slabs of `rows` x `n`.
template <class T>
Index slab_scratch(Index rows, Index n, Index lines_at_once);

}  // namespace cpu

namespace cuda {

template <class T>
void reduce_slab(Stream stream, const SlabArgs& args, In<T> f, In<double> excess, Out<double> boundary,
                 Scratch<double> work);
template <class T>
void transform_slab(Stream stream, const SlabArgs& args, InOut<T> f, In<double> excess, Out<double> boundary,
                    Scratch<double> work);
template <class T>
void solve_slab(Stream stream, const SlabArgs& args, InOut<T> f, In<double> excess, In<double> above,
                In<double> below, Out<T> top, Out<T> bottom, Scratch<double> work);
template <class T>
Index slab_scratch(Index rows, Index n, Index lines_at_once);

}  // namespace cuda
}  // namespace asterism::kernels

namespace asterism::codelets {

template <class T>
inline const Codelet<kernels::SlabArgs, In<T>, In<double>, Out<double>, Scratch<double>> reduce_slab{
    typed_name<T>("reduce_slab"), kernels::cpu::reduce_slab<T>,
    ASTERISM_CUDA_KERNEL(kernels::cuda::reduce_slab<T>)};

template <class T>
inline const Codelet<kernels::SlabArgs, InOut<T>, In<double>, Out<double>, Scratch<double>> transform_slab{
    typed_name<T>("transform_slab"), kernels::cpu::transform_slab<T>,
    ASTERISM_CUDA_KERNEL(kernels::cuda::transform_slab<T>)};

template <class T>
inline const Codelet<kernels::SlabArgs, InOut<T>, In<double>, In<double>, In<double>, Out<T>, Out<T>, Scratch<double>>
    solve_slab{typed_name<T>("solve_slab"), kernels::cpu::solve_slab<T>,
               ASTERISM_CUDA_KERNEL(kernels::cuda::solve_slab<T>)};

/// Ports: boundary (4 x n), prefix before (2 x n), prefix after (2 x n). One step of kernels::eliminate in every mode.
inline const Codelet<NoArgs, In<double>, In<double>, Out<double>> eliminate{
    "eliminate_f64",
    [](const NoArgs&, In<double> boundary, In<double> before, Out<double> after) {
      kernels::cpu::eliminate(boundary, before, after);
    },
    ASTERISM_CUDA_KERNEL([](Stream stream, const NoArgs&, In<double> boundary, In<double> before, Out<double> after) {
      kernels::cuda::eliminate(stream, boundary, before, after);
    })};

/// Ports: boundary (4 x n), prefix before (2 x n), below, first, above (1 x n each). One step of kernels::substitute.
inline const Codelet<NoArgs, In<double>, In<double>, In<double>, Out<double>, Out<double>> substitute{
    "substitute_f64",
    [](const NoArgs&, In<double> boundary, In<double> before, In<double> below, Out<double> first, Out<double> above) {
      kernels::cpu::substitute(boundary, before, below, first, above);
    },
    ASTERISM_CUDA_KERNEL([](Stream stream, const NoArgs&, In<double> boundary, In<double> before, In<double> below,
                            Out<double> first, Out<double> above) {
      kernels::cuda::substitute(stream, boundary, before, below, first, above);
    })};

}  // namespace asterism::codelets
