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
#include "../grid/laplacian.hpp"
#include "tridiagonal.hpp"

namespace asterism::poisson {

/// What a slab's tile holds when its task begins.
enum class Content {
  grid,   ///< planes of f
  modes,  ///< planes of f, transformed
};

/// Whom the task of a slab that is all of a grid asks about mode 0, where constants solve the homogeneous problem.
class MeanSystem {
 public:
  virtual ~MeanSystem() = default;
  [[nodiscard]] virtual const grid::Operator& a() const = 0;
  /// Where the moments of f go, in main memory: planes x moments_count.
  [[nodiscard]] virtual Out<double> moments() = 0;
  /// Whether there is a solution, once they are there. If not, the slab stays as it is.
  [[nodiscard]] virtual bool is_solvable() = 0;
  /// The means of its planes, in main memory: planes x 1.
  [[nodiscard]] virtual In<double> solution() = 0;
};

/// Whether an axis is transformed: a single node is its own mode.
constexpr bool is_transformed(const grid::Axis& axis) { return axis.n > 1; }

struct SlabArgs {
  grid::Axis y, x;        ///< the transformed axes
  double scale;           ///< undoes the factors of the transforms there and back
  Index planes_at_once;   ///< how many planes are transformed together where that takes working memory
  InterfaceRows interface = rows_without_waves;
  bool is_periodic = false;  ///< along the slowest axis: a slab that is all of it is a ring
  bool sets_mean = false;  ///< whether mode 0 is given (the mean of every plane), because its system is singular
  Content content = Content::grid;
  transforms::Care care = transforms::Care::usual;  ///< of lines along x; those along y get no more than Care::more
  MeanSystem* mean_system = nullptr;  ///< who gives it, where it is not in the tile of means; outlives the task

  bool operator==(const SlabArgs&) const = default;

  [[nodiscard]] Index columns() const { return y.n * x.n; }
};

/// The lines of `planes` planes along x and along y.
template <class T>
transforms::Lines<T> lines_along_x(T* data, Index planes, const SlabArgs& args) {
  return {data, planes * args.y.n, args.x.n, args.x.n, 1, 1, args.care};
}
template <class T>
transforms::Lines<T> lines_along_y(T* data, Index planes, const SlabArgs& args) {
  return {data, planes, args.columns(), args.y.n, args.x.n, args.x.n, std::min(args.care, transforms::Care::more)};
}

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

/// Of pass 1 where the slab stays as it is, and where the transformed planes take the place of f.
template <template <class> class As, class T>
struct ReducePorts {
  As<In<T>> f;
  As<In<double>> axis;     ///< the slab's AxisRows
  As<In<double>> mu;       ///< 1 x n
  As<Out<double>> shown;   ///< what the transformed slab shows to the others
  As<Scratch<double>> work;  ///< slab_scratch
};
template <template <class> class As, class T>
struct TransformPorts {
  As<InOut<T>> f;
  As<In<double>> axis, mu;
  As<Out<double>> shown;
  As<Scratch<double>> work;
};

/// Of pass 2.
template <template <class> class As, class T>
struct SolvePorts {
  As<InOut<T>> f;
  As<In<double>> axis, mu;
  As<In<double>> before, after;  ///< the modes just before and after the slab, 1 x n each
  As<In<double>> means;          ///< rows x 1: the planes' means, where SlabArgs::sets_mean and there is no mean_system
  As<Scratch<double>> work;
};

/// Of pass 2 where the slab is all of a periodic axis.
template <template <class> class As, class T>
struct SolveRingPorts {
  As<InOut<T>> f;
  As<In<double>> axis, mu;
  As<In<double>> response;  ///< of the slab
  As<In<double>> means;
  As<Scratch<double>> work;
};

namespace cpu {

/// Pass 1 where the slab is not kept: what the transformed slab shows to the others.
template <class T>
void reduce_slab(const SlabArgs& args, ReducePorts<AsPorts, T> p);

/// Pass 1 where it is kept: as reduce_slab, but the transformed planes take the place of f.
template <class T>
void transform_slab(const SlabArgs& args, TransformPorts<AsPorts, T> p);

/// Pass 2: u over f (or over its modes, see Content), unless SlabArgs::mean_system has no solution.
template <class T>
void solve_slab(const SlabArgs& args, SolvePorts<AsPorts, T> p);
template <class T>
void solve_ring_slab(const SlabArgs& args, SolveRingPorts<AsPorts, T> p);

/// Elements of working memory that any of the slab kernels needs for slabs of `rows` planes.
template <class T>
Index slab_scratch(const SlabArgs& args, Index rows);

/// Makes the plans of the transforms, so that no task has to.
/// @return the bias (transforms/bias.hpp) of a plane that is transformed there and back
template <class T>
double plan_slabs(const SlabArgs& args);

}  // namespace cpu

namespace cuda {

template <class T>
void reduce_slab(Stream stream, const SlabArgs& args, ReducePorts<AsPorts, T> p);
template <class T>
void transform_slab(Stream stream, const SlabArgs& args, TransformPorts<AsPorts, T> p);
template <class T>
void solve_slab(Stream stream, const SlabArgs& args, SolvePorts<AsPorts, T> p);
template <class T>
void solve_ring_slab(Stream stream, const SlabArgs& args, SolveRingPorts<AsPorts, T> p);
template <class T>
Index slab_scratch(const SlabArgs& args, Index rows);
/// Of the calling thread's current device.
template <class T>
double plan_slabs(const SlabArgs& args);

}  // namespace cuda
}  // namespace asterism::poisson

namespace asterism::poisson::codelets {

template <class T>
inline const Codelet<SlabArgs, ReducePorts<AsPorts, T>> reduce_slab{
    typed_name<T>("reduce_slab"), cpu::reduce_slab<T>, ASTERISM_CUDA_KERNEL(cuda::reduce_slab<T>)};

template <class T>
inline const Codelet<SlabArgs, TransformPorts<AsPorts, T>> transform_slab{
    typed_name<T>("transform_slab"), cpu::transform_slab<T>, ASTERISM_CUDA_KERNEL(cuda::transform_slab<T>)};

template <class T>
inline const Codelet<SlabArgs, SolvePorts<AsPorts, T>> solve_slab{
    typed_name<T>("solve_slab"), cpu::solve_slab<T>, ASTERISM_CUDA_KERNEL(cuda::solve_slab<T>)};

template <class T>
inline const Codelet<SlabArgs, SolveRingPorts<AsPorts, T>> solve_ring_slab{
    typed_name<T>("solve_ring_slab"), cpu::solve_ring_slab<T>,
    ASTERISM_CUDA_KERNEL(cuda::solve_ring_slab<T>)};

template <template <class> class As>
struct RespondPorts {
  As<In<double>> axis;       ///< the rows of the axis that a segment has
  As<In<double>> mu;         ///< 1 x n
  As<Out<double>> response;  ///< InterfaceRows::response x n
};
inline const Codelet<NoArgs, RespondPorts<AsPorts>> respond{
    "respond_f64", [](RespondPorts<AsPorts> p) { cpu::respond(p.axis, p.mu, p.response); },
    ASTERISM_CUDA_KERNEL([](Stream stream, RespondPorts<AsPorts> p) {
      cuda::respond(stream, p.axis, p.mu, p.response);
    })};

/// One step of poisson::eliminate or, on a periodic axis, of poisson::join, in every mode.
template <template <class> class As>
struct EliminatePorts {
  As<In<double>> shown, response;                ///< of a segment
  As<In<double>> before_shown, before_response;  ///< of the prefix before it, or of the segments joined before it
  As<Out<double>> after;                         ///< what the prefix after it shows
};
inline const Codelet<Direction, EliminatePorts<AsPorts>> eliminate{
    "eliminate_f64",
    [](const Direction& direction, EliminatePorts<AsPorts> p) {
      cpu::eliminate(direction, {p.shown, p.response}, {p.before_shown, p.before_response}, p.after);
    },
    ASTERISM_CUDA_KERNEL([](Stream stream, const Direction& direction, EliminatePorts<AsPorts> p) {
      cuda::eliminate(stream, direction, {p.shown, p.response}, {p.before_shown, p.before_response}, p.after);
    })};

/// Of the same step what depends on the matrix alone.
template <template <class> class As>
struct EliminateResponsePorts {
  As<In<double>> response, before;  ///< of a segment, and of the prefix before it
  As<Out<double>> after;            ///< of the prefix after it
};
inline const Codelet<Direction, EliminateResponsePorts<AsPorts>> eliminate_response{
    "eliminate_response_f64",
    [](const Direction& direction, EliminateResponsePorts<AsPorts> p) {
      cpu::eliminate_response(direction, {{}, p.response}, {{}, p.before}, p.after);
    },
    ASTERISM_CUDA_KERNEL([](Stream stream, const Direction& direction, EliminateResponsePorts<AsPorts> p) {
      cuda::eliminate_response(stream, direction, {{}, p.response}, {{}, p.before}, p.after);
    })};

template <template <class> class As>
struct ClosePorts {
  As<In<double>> left_shown, left_response;    ///< of the segments of a periodic axis joined from the first one on
  As<In<double>> right_shown, right_response;  ///< and from the last one on
  As<Out<double>> before_start, after_end;     ///< the values before its first row and after its last
};
inline const Codelet<NoArgs, ClosePorts<AsPorts>> close{
    "close_f64",
    [](ClosePorts<AsPorts> p) {
      cpu::close({p.left_shown, p.left_response}, {p.right_shown, p.right_response}, p.before_start, p.after_end);
    },
    ASTERISM_CUDA_KERNEL([](Stream stream, ClosePorts<AsPorts> p) {
      cuda::close(stream, {p.left_shown, p.left_response}, {p.right_shown, p.right_response}, p.before_start,
                  p.after_end);
    })};

/// poisson::meet in every mode.
template <template <class> class As>
struct MeetPorts {
  As<In<double>> mu;
  As<In<double>> left_shown, left_response;    ///< of the prefix that comes from the first segment
  As<In<double>> right_shown, right_response;  ///< of the one that comes from the last
  As<In<double>> before_start, after_end;      ///< the values at the ends of the axis
  As<Out<double>> first, last;                 ///< the unknowns on both sides of where the two meet
};
inline const Codelet<NoArgs, MeetPorts<AsPorts>> meet{
    "meet_f64",
    [](MeetPorts<AsPorts> p) {
      cpu::meet(p.mu, {p.left_shown, p.left_response}, {p.right_shown, p.right_response}, p.before_start, p.after_end,
                p.first, p.last);
    },
    ASTERISM_CUDA_KERNEL([](Stream stream, MeetPorts<AsPorts> p) {
      cuda::meet(stream, p.mu, {p.left_shown, p.left_response}, {p.right_shown, p.right_response}, p.before_start,
                 p.after_end, p.first, p.last);
    })};

/// One step of poisson::substitute in every mode.
template <template <class> class As>
struct SubstitutePorts {
  As<In<double>> shown, response;                ///< of a segment
  As<In<double>> before_shown, before_response;  ///< of the prefix before it
  As<In<double>> start;                          ///< the value before the first row of the axis
  As<In<double>> after;                          ///< the value after the segment
  As<Out<double>> first, before;                 ///< its first unknown and the value before it
};
inline const Codelet<Direction, SubstitutePorts<AsPorts>> substitute{
    "substitute_f64",
    [](const Direction& direction, SubstitutePorts<AsPorts> p) {
      cpu::substitute(direction, {p.shown, p.response}, {p.before_shown, p.before_response}, p.start, p.after, p.first,
                      p.before);
    },
    ASTERISM_CUDA_KERNEL([](Stream stream, const Direction& direction, SubstitutePorts<AsPorts> p) {
      cuda::substitute(stream, direction, {p.shown, p.response}, {p.before_shown, p.before_response}, p.start, p.after,
                       p.first, p.before);
    })};

}  // namespace asterism::poisson::codelets
