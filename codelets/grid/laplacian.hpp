/// \file
/// The second-order operator of a grid in two or three dimensions, with the conditions at its ends; model
/// problems for it, its residual, and what a slab adds to the mean of a right-hand side.
///
/// A grid is m planes of ny x nx nodes; a slab is a tile of some of its planes, one a row, node (y, x) in
/// column y nx + x. In two dimensions ny = 1, and the axis y is `no_axis`. On it
///
///     A u = D_z u + D_y u + D_x u + lambda u (L1)
///
/// with the second differences of (A1). Along z, from plane to plane, nodes need not be equally spaced: the
/// slab's AxisRows come with it, a tile of rows x axis_columns, and by (A2) the weights are the links over
/// the width.
///
/// Along x and y, (A1) at an end is what it is inside when the value beyond the end is taken to be
///
///     Dirichlet: 0 (node-centred), -u_0 (cell-centred);  Neumann: u_1, u_0;  periodic: the other end's; (L2)
///
/// so that no node has weights of its own.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "../../runtime/codelet.hpp"
#include "../sums/sums.hpp"
#include "axis.hpp"

namespace asterism::grid {

/// (L1), but for its slowest axis.
struct Operator {
  Axis y = no_axis, x;
  double lambda = 0;

  /// Nodes of a plane.
  [[nodiscard]] ASTERISM_HOST_DEVICE Index plane() const { return y.n * x.n; }
};

/// ||A||, by which residuals are judged: ||D||_inf + |lambda|, that of the discrete Laplacian and of lambda. For lambda <= 0
/// it is ||A||_inf. lambda > 0 takes away from the diagonal, all of it where there is a single unknown; but A u is formed of
/// both parts, each of which is known and multiplied with rounding.
/// @param slow the slowest axis: its conditions
/// @param rows all of its nodes
double operator_norm(const Operator& a, const Axis& slow, const std::vector<AxisRow>& rows);

/// The sum of W over a grid: see cpu::moments.
/// @param rows all nodes of the slowest axis
double measure(const Operator& a, const std::vector<AxisRow>& rows);

/// Whether nothing happens along an axis: one node, without weights.
ASTERISM_HOST_DEVICE inline bool inert(const Axis& axis) {
  return axis.n == 1 && axis.lower == Condition::neumann && axis.upper == Condition::neumann;
}

/// What stands for a neighbour in (L2): `factor` times the value at `node`.
struct Neighbour {
  Index node;
  double factor;
};

ASTERISM_HOST_DEVICE inline Neighbour neighbour_before(const Axis& axis, Index i) {
  if (i > 0) return {i - 1, 1.0};
  if (axis.periodic()) return {axis.n - 1, 1.0};
  if (axis.centering == Centering::cell) return {i, axis.lower == Condition::neumann ? 1.0 : -1.0};
  return axis.lower == Condition::neumann && i + 1 < axis.n ? Neighbour{i + 1, 1.0} : Neighbour{i, 0.0};
}

ASTERISM_HOST_DEVICE inline Neighbour neighbour_after(const Axis& axis, Index i) {
  if (i + 1 < axis.n) return {i + 1, 1.0};
  if (axis.periodic()) return {0, 1.0};
  if (axis.centering == Centering::cell) return {i, axis.upper == Condition::neumann ? 1.0 : -1.0};
  return axis.upper == Condition::neumann && i > 0 ? Neighbour{i - 1, 1.0} : Neighbour{i, 0.0};
}

/// The weights of (A1) that a node of the slowest axis has: links over width.
ASTERISM_HOST_DEVICE inline Weights weights_between_planes(const double* axis_row) {
  return {axis_row[link_before] / axis_row[width_column], axis_row[link_after] / axis_row[width_column]};
}

/// The values on either side of a node.
struct Sides {
  double before, after;
};

/// What (L1) is within a plane.
struct PlaneWeights {
  double per_hy2, per_hx2, lambda;

  ASTERISM_HOST_DEVICE explicit PlaneWeights(const Operator& a)
      : per_hy2(a.y.per_h2()), per_hx2(a.x.per_h2()), lambda(a.lambda) {}
};

/// (L1) at one node, in an order that keeps the differences of neighbours exact for smooth u; y, x by (L2).
ASTERISM_HOST_DEVICE inline double apply(const PlaneWeights& a, const Weights& between, double centre,
                                         Sides z, Sides y, Sides x) {
  return (between.before * (z.before - centre) + between.after * (z.after - centre)) +
         a.per_hy2 * ((y.before - centre) + (y.after - centre)) +
         a.per_hx2 * ((x.before - centre) + (x.after - centre)) + a.lambda * centre;
}

/// Problems whose solution is known.
enum class Model {
  /// f = (lambda - kappa_z^2 - kappa_y^2 - kappa_x^2) u; u, the exact solution of the differential equation with
  /// all boundary values zero, is the product of one factor per axis of length L, at xi L: sin(2 pi xi) where both
  /// ends are Dirichlet or the axis is periodic, cos(2 pi xi) where both are Neumann, sin(3/2 pi xi) from Dirichlet
  /// to Neumann, cos(3/2 pi xi) from Neumann to Dirichlet; kappa is what stands before xi, over L.
  sine,
  random,  ///< u uniform in (-1, 1) from the seed, f = A u: exact solution of the difference equation
};

/// A model on a grid: what its value at a node depends on.
struct ModelProblem {
  Model model;
  std::uint64_t seed;
  Axis slow;  ///< the slowest axis: n planes, length, conditions; its nodes lie where the slabs' AxisRows say
  Operator a;
  double mean = 0;  ///< taken off a random u that another is compared with; f is that of u with it
};

/// sin(pi x) to rounding for every x: the periods are taken off x, which is exact, before pi comes in.
ASTERISM_HOST_DEVICE inline double sin_pi(double x) {
#ifdef __CUDA_ARCH__
  return ::sinpi(x);
#else
  const double turn = x - 2.0 * std::nearbyint(0.5 * x);  // in [-1, 1]
  const double quarter = std::abs(turn) > 0.5 ? std::copysign(1.0, turn) - turn : turn;
  return std::sin(3.14159265358979323846 * quarter);
#endif
}

/// cos(pi x), likewise.
ASTERISM_HOST_DEVICE inline double cos_pi(double x) {
#ifdef __CUDA_ARCH__
  return ::cospi(x);
#else
  const double turn = std::abs(x - 2.0 * std::nearbyint(0.5 * x));  // in [0, 1]
  return turn < 0.25 ? std::cos(3.14159265358979323846 * turn) : sin_pi(0.5 - turn);
#endif
}

/// Half waves of the sine model's factor along an axis.
ASTERISM_HOST_DEVICE inline double sine_half_waves(const Axis& axis) {
  return inert(axis) ? 0.0 : axis.lower == axis.upper ? 2.0 : 1.5;
}

/// The sine model's factor along an axis, at a fraction of its length.
ASTERISM_HOST_DEVICE inline double sine_factor(const Axis& axis, double fraction) {
  const double x = sine_half_waves(axis) * fraction;
  return axis.lower == Condition::neumann ? cos_pi(x) : sin_pi(x);
}

/// f / u of the sine model.
ASTERISM_HOST_DEVICE inline double sine_eigenvalue(const ModelProblem& problem) {
  const auto wave_number = [](const Axis& axis) {
    return sine_half_waves(axis) * 3.14159265358979323846 / axis.length;
  };
  const double z = wave_number(problem.slow), y = wave_number(problem.a.y), x = wave_number(problem.a.x);
  return problem.a.lambda - (z * z + y * y + x * x);
}

/// A 64-bit mixing function (splitmix64's finaliser): equal inputs, equal outputs, on every machine.
ASTERISM_HOST_DEVICE inline std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

/// The random model's u in plane i, -1 ... m, and column j: uniform in (-1, 1), of 23 bits, so that it is
/// exact in float32 too (while `mean` is 0). Beyond the grid's last plane is its first where the slowest axis
/// is periodic, else zero.
ASTERISM_HOST_DEVICE inline double random_solution(const ModelProblem& problem, Index i, Index j) {
  const Index m = problem.slow.n;
  const bool inside = (i >= 0 && i < m) || problem.slow.periodic();
  const Index plane = i < 0 ? i + m : i < m ? i : i - m;
  const auto node = static_cast<std::uint64_t>(plane) * static_cast<std::uint64_t>(problem.a.plane()) +
                    static_cast<std::uint64_t>(j);
  const std::uint64_t bits =
      mix(mix(problem.seed + 0x9e3779b97f4a7c15ULL) + node * 0x9e3779b97f4a7c15ULL) >> 41;
  const double value = (2.0 * static_cast<double>(static_cast<std::int32_t>(bits)) + 1.0) * 0x1p-23 - 1.0;
  return inside ? value - problem.mean : 0.0;
}

/// What the residual of a slab adds to the sums of squares over the grid.
enum ResidualSum : Index {
  residual2,     ///< of f - A u
  rhs2,          ///< of f
  solution2,     ///< of u
  error2,        ///< of u - known, zero where no solution is known
  known2,        ///< of known
  residual_sums  ///< how many
};

/// Where a slab lies and what is known about it.
struct SlabProblem {
  ModelProblem problem;  ///< when !known, only its operator a is used
  Index first_row;       ///< the slab's first plane in the whole grid
  bool known;            ///< whether the solution of `problem` is to be compared with
};

/// The sums of `moments`.
enum Moment : Index { first_moment, absolute_moment, moments_count };

namespace cpu {

/// The model's right-hand side in planes first_row ... of the grid, whose AxisRows are `axis`.
template <class T>
void model_rhs(const ModelProblem& problem, Index first_row, In<double> axis, Out<T> f);

/// Sums of squares over a slab, a NaN in u or f ending in them; `before`, `after`: 1 x plane, the planes of u
/// beside the slab (zeros at an end; the grid's other end when periodic); `axis`: the slab's AxisRows;
/// `sums`: 1 x residual_sums. f has given boundary values lifted into it.
template <class T>
void residual(const SlabProblem& slab, In<T> u, In<T> before, In<T> after, In<T> f, In<double> axis,
              Out<sums::SquareSum> sums);

/// Sums over each plane of a slab, in float64, of W f and W |f|, where W is the volume of a node's cell: the
/// product of the relative widths of y and x and the width in `axis`, the slab's AxisRows. `sums`: rows x
/// moments_count.
template <class T>
void moments(const Operator& a, In<T> f, In<double> axis, Out<double> sums);

}  // namespace cpu

namespace cuda {

template <class T>
void model_rhs(Stream stream, const ModelProblem& problem, Index first_row, In<double> axis, Out<T> f);

/// Thread blocks of `residual`, each with one set of partial sums.
constexpr Index summing_blocks = 1024;
/// Elements of working memory that `residual` needs, in one row.
constexpr Index residual_scratch = summing_blocks * residual_sums;
/// The same for each plane of a slab.
constexpr Index plane_blocks = 32;
constexpr Index moments_scratch = plane_blocks * moments_count;

/// As cpu::residual; the order of summation is fixed, so the result is the same every time.
template <class T>
void residual(Stream stream, const SlabProblem& slab, In<T> u, In<T> before, In<T> after, In<T> f,
              In<double> axis, Out<sums::SquareSum> sums, Scratch<sums::SquareSum> work);

/// As cpu::moments; the order of summation is fixed.
template <class T>
void moments(Stream stream, const Operator& a, In<T> f, In<double> axis, Out<double> sums,
             Scratch<double> work);

}  // namespace cuda
}  // namespace asterism::grid

namespace asterism::grid::codelets {

struct ModelArgs {
  ModelProblem problem;
  Index first_row;
};

/// Ports: the slab's AxisRows, planes first_row ... of the right-hand side.
template <class T>
inline const Codelet<ModelArgs, In<double>, Out<T>> model_rhs{
    typed_name<T>("model_rhs"),
    [](const ModelArgs& args, In<double> axis, Out<T> f) {
      cpu::model_rhs(args.problem, args.first_row, axis, f);
    },
    ASTERISM_CUDA_KERNEL([](Stream stream, const ModelArgs& args, In<double> axis, Out<T> f) {
      cuda::model_rhs(stream, args.problem, args.first_row, axis, f);
    })};

template <template <class> class As, class T>
struct ResidualPorts {
  As<In<T>> u, before, after;         ///< a slab of u, and the planes before and after it
  As<In<T>> f;
  As<In<double>> axis;                ///< the slab's AxisRows
  As<Out<sums::SquareSum>> sums;      ///< 1 x residual_sums
  As<Scratch<sums::SquareSum>> work;  ///< 1 x residual_scratch
};
template <class T>
inline const Codelet<SlabProblem, ResidualPorts<AsPorts, T>> residual{
    typed_name<T>("residual"),
    [](const SlabProblem& slab, ResidualPorts<AsPorts, T> p) {
      cpu::residual(slab, p.u, p.before, p.after, p.f, p.axis, p.sums);
    },
    ASTERISM_CUDA_KERNEL([](Stream stream, const SlabProblem& slab, ResidualPorts<AsPorts, T> p) {
      cuda::residual(stream, slab, p.u, p.before, p.after, p.f, p.axis, p.sums, p.work);
    })};

template <template <class> class As, class T>
struct MomentsPorts {
  As<In<T>> f;
  As<In<double>> axis;       ///< the slab's AxisRows
  As<Out<double>> sums;      ///< rows x moments_count
  As<Scratch<double>> work;  ///< 1 x (rows moments_scratch)
};
template <class T>
inline const Codelet<Operator, MomentsPorts<AsPorts, T>> moments{
    typed_name<T>("moments"),
    [](const Operator& a, MomentsPorts<AsPorts, T> p) { cpu::moments(a, p.f, p.axis, p.sums); },
    ASTERISM_CUDA_KERNEL([](Stream stream, const Operator& a, MomentsPorts<AsPorts, T> p) {
      cuda::moments(stream, a, p.f, p.axis, p.sums, p.work);
    })};

}  // namespace asterism::grid::codelets
