/// \file
/// Model problems on grids: right-hand sides, known solutions, and the residual's sums over slabs.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "../support/grid.hpp"
#include "../support/square_sums.hpp"
#include "codelets/grid/laplacian.hpp"

#ifdef ASTERISM_WITH_CUDA
#include "../support/tiles.hpp"
#endif

namespace asterism::test {

using Sums = std::array<double, residual_sums>;

template <class T>
Matrix<T> rhs_of(const Grid& grid, Model model, Index height) {
  Matrix<T> f(grid.m(), grid.plane());
  for_slabs(grid, height, [&](Index first, Index planes) {
    cpu::model_rhs<T>(grid.problem(model), first, grid.rows.in(first, planes), f.out(first, planes));
  });
  CHECK(f.guarded());
  return f;
}

/// The sine model's factors by their definition.
inline Reals plain_sines(const PlainAxis& axis) {
  Reals factors;
  for (const Real position : axis.position) {
    const Real xi = position / static_cast<Real>(axis.axis.length);
    const bool lower = axis.axis.lower == Condition::neumann, upper = axis.axis.upper == Condition::neumann;
    factors.push_back(inert(axis.axis) ? 1
                      : lower && upper ? std::cos(2 * pi * xi)
                      : lower          ? std::cos(1.5L * pi * xi)
                      : upper          ? std::sin(1.5L * pi * xi)
                                       : std::sin(2 * pi * xi));
  }
  return factors;
}

template <class T>
Matrix<T> solution_of(const Grid& grid, Model model) {
  const ModelProblem problem = grid.problem(model);
  const Reals z = plain_sines(grid.slow), y = plain_sines(grid.y), x = plain_sines(grid.x);
  return Matrix<T>(grid.m(), grid.plane()).fill([&](Index i, Index j) {
    const auto at = [](const Reals& factors, Index k) { return factors[static_cast<std::size_t>(k)]; };
    return model == Model::random ? random_solution(problem, i, j)
                                  : at(z, i) * at(y, j / grid.a.x.n) * at(x, j % grid.a.x.n);
  });
}

inline SlabProblem slab_of(const Grid& grid, Model model, Index first_row = 0, bool known = true) {
  return {grid.problem(model), first_row, known};
}

/// The plane of u that `residual` wants beside a slab: i = -1 ... m.
template <class T>
Matrix<T> plane_beside(const Grid& grid, const Matrix<T>& u, Index i) {
  const bool inside = i >= 0 && i < grid.m();
  const Index wrapped = (i + grid.m()) % grid.m();
  return Matrix<T>(1, u.cols()).fill([&](Index, Index j) {
    return inside || grid.slow.axis.periodic() ? u(wrapped, j) : T{0};
  });
}

/// The sums over the planes of a slab.
template <class T>
Sums residual_of(const Grid& grid, const SlabProblem& slab, const Matrix<T>& u, const Matrix<T>& f,
                 Index planes) {
  const Index first = slab.first_row;
  const Matrix<T> before = plane_beside(grid, u, first - 1), after = plane_beside(grid, u, first + planes);
  SquareSums<residual_sums> sums;
  cpu::residual<T>(slab, u.in(first, planes), before.in(), after.in(), f.in(first, planes),
                   grid.rows.in(first, planes), sums.out());
  Sums result;
  for (Index s = 0; s < residual_sums; ++s) result[static_cast<std::size_t>(s)] = sums[s];
  return result;
}

#ifdef ASTERISM_WITH_CUDA
inline const Hints on_gpu{.where = Where::cuda};
#endif

}  // namespace asterism::test
