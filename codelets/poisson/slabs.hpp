/// \file
/// The slab kernels of the fast Poisson solver: transforms within the planes, tridiagonal systems across them.
///
/// A slab is a tile of consecutive planes of the grid, each a row of the tile: ny * nx numbers, x contiguous. In two
/// dimensions a plane is a line, ny = 1. Transformed along x and y (transforms/transform.hpp), column k of a slab is a
/// segment of the tridiagonal system of mode k (recurrences.hpp).
#pragma once

#include <algorithm>

#include "../../runtime/codelet.hpp"
#include "../grid/axis.hpp"
#include "tridiagonal.hpp"

namespace asterism::poisson {

/// What a slab's tile holds when its task begins.
enum class Content {
  grid,   ///< planes of f
  modes,  ///< planes of f, transformed
};

struct SlabArgs {
  grid::Axis y, x;        ///< the transformed axes
  double scale;           ///< undoes the factors of the transforms there and back
  Index planes_at_once;   ///< how many planes a kernel transforms together
  InterfaceRows interface = rows_without_waves;
  bool sets_mean = false;  ///< whether mode 0 is given (the mean of every plane), because its system is singular
  Content content = Content::grid;

  [[nodiscard]] Index columns() const { return y.n * x.n; }
};

/// The lines of `planes` planes along x and along y.
template <class T>
transforms::Lines<T> lines_along_x(T* data, Index planes, const SlabArgs& args) {
  return {data, planes * args.y.n, args.x.n, args.x.n, 1, 1};
}
template <class T>
transforms::Lines<T> lines_along_y(T* data, Index planes, const SlabArgs& args) {
  return {data, planes, args.columns(), args.y.n, args.x.n, args.x.n};
}

/// Whether an axis is transformed: a single node is its own mode.
constexpr bool is_transformed(const grid::Axis& axis) { return axis.n > 1; }

/// Calls body(axis, its lines) for the transformed axes of `planes` planes: x, which then lies in the cache for y.
template <class T, class Body>
void for_each_transformed_axis(const SlabArgs& args, T* data, Index planes, Body body) {
  if (is_transformed(args.x)) body(args.x, lines_along_x(data, planes, args));
  if (is_transformed(args.y)) body(args.y, lines_along_y(data, planes, args));
}

/// Calls body(first, count) for groups of at most planes_at_once planes.
template <class Body>
void for_each_group(const SlabArgs& args, Index rows, Body body) {
  for (Index first = 0; first < rows; first += args.planes_at_once)
    body(first, std::min(args.planes_at_once, rows - first));
}

/// The factor by which the transforms of a plane, there and back, multiply it.
inline double round_trip(const SlabArgs& args) {
  double factor = 1;
  for (const grid::Axis& axis : {args.y, args.x})
    if (is_transformed(axis)) factor *= round_trip(grid::transform_to_modes(axis), axis.n);
  return factor;
}

namespace cpu {

/// Pass 1 where the slab is not kept: what the transformed slab shows to the others (2 x n); the slab stays as it is.
template <class T>
void reduce_slab(const SlabArgs& args, In<T> f, In<double> axis, In<double> mu, Out<double> shown,
                 Scratch<double> work);

/// Pass 1 where it is kept: as reduce_slab, but the transformed planes take the place of f.
template <class T>
void transform_slab(const SlabArgs& args, InOut<T> f, In<double> axis, In<double> mu, Out<double> shown,
                    Scratch<double> work);

/// Pass 2: u over f (or over its modes, see Content), given the modes just before and after the slab (1 x n each) and,
/// where args.sets_mean, the planes' means (rows x 1). `first` and `last` (1 x n) get copies of u's first and last plane,
/// for those who need the slab's halo.
template <class T>
void solve_slab(const SlabArgs& args, InOut<T> f, In<double> axis, In<double> mu, In<double> before, In<double> after,
                In<double> means, Out<T> first, Out<T> last, Scratch<double> work);

/// Elements of working memory that any of the slab kernels needs for slabs of `rows` planes.
template <class T>
Index slab_scratch(const SlabArgs& args, Index rows);

/// Makes the plans of the transforms, so that no task has to.
template <class T>
void plan_slabs(const SlabArgs& args);

}  // namespace cpu

namespace cuda {

template <class T>
void reduce_slab(Stream stream, const SlabArgs& args, In<T> f, In<double> axis, In<double> mu, Out<double> shown,
                 Scratch<double> work);
template <class T>
void transform_slab(Stream stream, const SlabArgs& args, InOut<T> f, In<double> axis, In<double> mu,
                    Out<double> shown, Scratch<double> work);
template <class T>
void solve_slab(Stream stream, const SlabArgs& args, InOut<T> f, In<double> axis, In<double> mu, In<double> before,
                In<double> after, In<double> means, Out<T> first, Out<T> last, Scratch<double> work);
template <class T>
Index slab_scratch(const SlabArgs& args, Index rows);
/// Of the calling thread's current device.
template <class T>
void plan_slabs(const SlabArgs& args);

}  // namespace cuda
}  // namespace asterism::poisson

namespace asterism::poisson::codelets {

template <class T>
inline const Codelet<SlabArgs, In<T>, In<double>, In<double>, Out<double>, Scratch<double>> reduce_slab{
    typed_name<T>("reduce_slab"), cpu::reduce_slab<T>, ASTERISM_CUDA_KERNEL(cuda::reduce_slab<T>)};

template <class T>
inline const Codelet<SlabArgs, InOut<T>, In<double>, In<double>, Out<double>, Scratch<double>> transform_slab{
    typed_name<T>("transform_slab"), cpu::transform_slab<T>, ASTERISM_CUDA_KERNEL(cuda::transform_slab<T>)};

template <class T>
inline const Codelet<SlabArgs, InOut<T>, In<double>, In<double>, In<double>, In<double>, In<double>, Out<T>,
                     Out<T>, Scratch<double>>
    solve_slab{typed_name<T>("solve_slab"), cpu::solve_slab<T>, ASTERISM_CUDA_KERNEL(cuda::solve_slab<T>)};

/// Ports: the rows of the axis that a segment has, mu (1 x n), its response (6 x n).
inline const Codelet<NoArgs, In<double>, In<double>, Out<double>> respond{
    "respond_f64",
    [](const NoArgs&, In<double> axis, In<double> mu, Out<double> response) {
      cpu::respond(axis, mu, response);
    },
    ASTERISM_CUDA_KERNEL([](Stream stream, const NoArgs&, In<double> axis, In<double> mu,
                            Out<double> response) { cuda::respond(stream, axis, mu, response); })};

/// Ports: what a segment shows (2 x n), its response (6 x n), the prefix before it and after it. One step of
/// poisson::eliminate (prefixes of 3 rows) or poisson::join (8 rows: periodic axis) in every mode.
inline const Codelet<NoArgs, In<double>, In<double>, In<double>, Out<double>> eliminate{
    "eliminate_f64",
    [](const NoArgs&, In<double> shown, In<double> response, In<double> before, Out<double> after) {
      cpu::eliminate(shown, response, before, after);
    },
    ASTERISM_CUDA_KERNEL([](Stream stream, const NoArgs&, In<double> shown, In<double> response,
                            In<double> before,
                            Out<double> after) { cuda::eliminate(stream, shown, response, before, after); })};

/// Ports: the prefix after the last segment of a periodic axis (8 x n), the values before its first row and after its
/// last (1 x n each).
inline const Codelet<NoArgs, In<double>, Out<double>, Out<double>> close{
    "close_f64",
    [](const NoArgs&, In<double> joined, Out<double> before_start, Out<double> after_end) {
      cpu::close(joined, before_start, after_end);
    },
    ASTERISM_CUDA_KERNEL(
        [](Stream stream, const NoArgs&, In<double> joined, Out<double> before_start, Out<double> after_end) {
          cuda::close(stream, joined, before_start, after_end);
        })};

/// Ports: what a segment shows (2 x n), its response (6 x n), the prefix before it, the value before the first row of the
/// axis, the value after the segment, its first unknown and the value before it (1 x n each). One step of
/// poisson::substitute.
inline const Codelet<NoArgs, In<double>, In<double>, In<double>, In<double>, In<double>, Out<double>,
                     Out<double>>
    substitute{"substitute_f64",
               [](const NoArgs&, In<double> shown, In<double> response, In<double> prefix,
                  In<double> before_start, In<double> after, Out<double> first, Out<double> before) {
                 cpu::substitute(shown, response, prefix, before_start, after, first, before);
               },
               ASTERISM_CUDA_KERNEL([](Stream stream, const NoArgs&, In<double> shown, In<double> response,
                                       In<double> prefix, In<double> before_start, In<double> after,
                                       Out<double> first, Out<double> before) {
                 cuda::substitute(stream, shown, response, prefix, before_start, after, first, before);
               })};

}  // namespace asterism::poisson::codelets
