/// \file
/// The five-point Laplacian with zero Dirichlet values, model problems for it, and its residual.
///
/// Interior nodes (i, j), i = 0 ... m-1 along y (rows), j = 0 ... n-1 along x (contiguous); node (i, j) lies
/// at y = y0 + (i + 1) hy, x = x0 + (j + 1) hx, and everything outside is zero:
///
///     (A u)_ij = (u_{i,j-1} - 2 u_ij + u_{i,j+1}) / hx^2 + (u_{i-1,j} - 2 u_ij + u_{i+1,j}) / hy^2. (L1)
#pragma once

#include <cmath>
#include <cstdint>

#include "../runtime/codelet.hpp"

namespace asterism::kernels {

/// Weights of (L1).
struct FivePoint {
  double per_hx2, per_hy2;  ///< 1 / hx^2, 1 / hy^2
};

inline FivePoint five_point(double hx, double hy) { return {1.0 / (hx * hx), 1.0 / (hy * hy)}; }

/// (L1) at one point, in an order that keeps the differences of neighbours exact for smooth u.
ASTERISM_HOST_DEVICE inline double laplacian(const FivePoint& a, double centre, double west, double east,
                                             double north, double south) {
  return a.per_hx2 * ((west - centre) + (east - centre)) + a.per_hy2 * ((north - centre) + (south - centre));
}

/// Problems whose solution is known.
enum class Model {
  sine,  ///< f = -2 pi^2 sin(pi x) sin(pi y), exact solution of the differential equation sin(pi x) sin(pi y)
  random,  ///< u uniform in (-1, 1) from the seed, f = A u: exact solution of the difference equation
};

/// A model on a grid: what its value at a node depends on.
struct ModelProblem {
  Model model;
  std::uint64_t seed;
  Index rows, cols;       ///< extents of the whole grid, m x n
  double x0, y0, hx, hy;  ///< corner of the rectangle, spacings
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

/// The sine model's factor along one axis at node i; the solution is the product of both.
ASTERISM_HOST_DEVICE inline double sine_factor(double origin, double spacing, Index i) {
  return sin_pi(std::fma(static_cast<double>(i + 1), spacing, origin));
}

/// -2 pi^2: the Laplacian of the sine model's solution over the solution.
constexpr double sine_eigenvalue = -19.7392088021787172376;

/// A 64-bit mixing function (splitmix64's finaliser): equal inputs, equal outputs, on every machine.
ASTERISM_HOST_DEVICE inline std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

/// The random model's u at node (i, j): uniform in (-1, 1), of 23 bits, so that it is exact in float32 too;
/// zero outside the grid.
ASTERISM_HOST_DEVICE inline double random_solution(const ModelProblem& problem, Index i, Index j) {
  const bool inside = i >= 0 && j >= 0 && i < problem.rows && j < problem.cols;
  const auto node = static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(problem.cols) +
                    static_cast<std::uint64_t>(j);
  const std::uint64_t bits =
      mix(mix(problem.seed + 0x9e3779b97f4a7c15ULL) + node * 0x9e3779b97f4a7c15ULL) >> 41;
  const double value = (2.0 * static_cast<double>(static_cast<std::int32_t>(bits)) + 1.0) * 0x1p-23 - 1.0;
  return inside ? value : 0.0;
}

/// What the residual of a slab adds to the sums over the grid.
enum ResidualSum : Index {
  residual2,     ///< sum of (f - A u)^2
  rhs2,          ///< sum of f^2
  solution2,     ///< sum of u^2
  error2,        ///< sum of (u - known)^2, zero where no solution is known
  known2,        ///< sum of known^2
  residual_sums  ///< how many
};

/// Where a slab lies and what is known about it.
struct SlabProblem {
  FivePoint a;
  ModelProblem problem;  ///< for the known solution; unused when !known
  Index first_row;       ///< the slab's first row in the whole grid
  bool known;            ///< whether the solution of `problem` is to be compared with
};

namespace cpu {

/// The model's right-hand side at rows first_row ... of the grid.
template <class T>
void model_rhs(const ModelProblem& problem, Index first_row, Out<T> f);

/// Sums in float64 over a slab, a NaN in u or f ending in them; `above`, `below`: 1 x n, the rows of u beside
/// the slab (zeros at a side); `sums`: 1 x residual_sums.
template <class T>
void residual(const SlabProblem& slab, In<T> u, In<T> above, In<T> below, In<T> f, Out<double> sums);

}  // namespace cpu

namespace cuda {

template <class T>
void model_rhs(Stream stream, const ModelProblem& problem, Index first_row, Out<T> f);

/// Thread blocks of `residual`, each with one set of partial sums.
constexpr Index residual_blocks = 1024;
/// Elements of working memory that `residual` needs, in one row.
constexpr Index residual_scratch = residual_blocks * residual_sums;

/// As cpu::residual; the order of summation is fixed, so the result is the same every time.
template <class T>
void residual(Stream stream, const SlabProblem& slab, In<T> u, In<T> above, In<T> below, In<T> f,
              Out<double> sums, Scratch<double> work);

}  // namespace cuda
}  // namespace asterism::kernels

namespace asterism::codelets {

struct ModelArgs {
  kernels::ModelProblem problem;
  Index first_row;
};

/// Ports: rows first_row ... of the right-hand side.
template <class T>
inline const Codelet<ModelArgs, Out<T>> model_rhs{
    typed_name<T>("model_rhs"),
    [](const ModelArgs& args, Out<T> f) { kernels::cpu::model_rhs(args.problem, args.first_row, f); },
    ASTERISM_CUDA_KERNEL([](Stream stream, const ModelArgs& args, Out<T> f) {
      kernels::cuda::model_rhs(stream, args.problem, args.first_row, f);
    })};

/// Ports: u, the rows of u above and below it, f, sums (1 x residual_sums), working memory (1 x
/// residual_scratch).
template <class T>
inline const Codelet<kernels::SlabProblem, In<T>, In<T>, In<T>, In<T>, Out<double>, Scratch<double>> residual{
    typed_name<T>("residual"),
    [](const kernels::SlabProblem& slab, In<T> u, In<T> above, In<T> below, In<T> f, Out<double> sums,
       Scratch<double>) { kernels::cpu::residual(slab, u, above, below, f, sums); },
    ASTERISM_CUDA_KERNEL([](Stream stream, const kernels::SlabProblem& slab, In<T> u, In<T> above,
                            In<T> below, In<T> f, Out<double> sums, Scratch<double> work) {
      kernels::cuda::residual(stream, slab, u, above, below, f, sums, work);
    })};

}  // namespace asterism::codelets
