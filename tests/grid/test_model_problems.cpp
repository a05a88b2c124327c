// Model problems: their right-hand sides and known solutions against definitions in long double.

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "../support/grid.hpp"
#include "../support/worst.hpp"
#include "codelets/grid/laplacian.hpp"
#include "model_grids.hpp"

using namespace asterism;
using namespace asterism::grid;
using namespace asterism::test;

TEST_CASE("sin(pi x) and cos(pi x) are exact where they can be and accurate elsewhere") {
  for (const double x : {0.0, 1.0, -1.0, 2.0, 1e9, -3.0}) {
    CHECK(sin_pi(x) == 0.0);
    CHECK(cos_pi(x + 0.5) == 0.0);
  }
  CHECK(sin_pi(0.5) == 1.0);
  CHECK(sin_pi(-0.5) == -1.0);
  CHECK(sin_pi(1.5) == -1.0);
  CHECK(cos_pi(0.0) == 1.0);
  CHECK(cos_pi(-1.0) == -1.0);
  CHECK(cos_pi(2.0) == 1.0);
  for (double x = -4.0; x < 4.0; x += 0.0137) {
    const Real sine = std::sin(pi * static_cast<Real>(x)), cosine = std::cos(pi * static_cast<Real>(x));
    CHECK(std::abs(static_cast<Real>(sin_pi(x)) - sine) <= 4e-16L * std::abs(sine) + 2e-18L);
    CHECK(std::abs(static_cast<Real>(cos_pi(x)) - cosine) <= 4e-16L * std::abs(cosine) + 2e-18L);
  }
}

TEST_CASE("the random solution is uniform, exact in float32 and different at every node") {
  const Axis axis{100, 1.0, Condition::dirichlet, Condition::dirichlet, Centering::node};
  ModelProblem problem{Model::random, 42, axis, {axis, axis, 0.0}};
  double sum = 0, square = 0;
  std::array<int, 16> counts{};
  std::vector<double> first_plane;
  for (Index i = 0; i < 100; ++i)
    for (Index j = 0; j < 10'000; ++j) {
      const double u = random_solution(problem, i, j);
      if (!(std::abs(u) < 1.0) || static_cast<double>(static_cast<float>(u)) != u) FAIL("bad value " << u);
      sum += u;
      square += u * u;
      ++counts[static_cast<std::size_t>((u + 1.0) * 8.0)];
    }
  CHECK(std::abs(sum / 1e6) < 4 * std::sqrt(1.0 / 3.0) / 1e3);
  CHECK(square / 1e6 == doctest::Approx(1.0 / 3.0).epsilon(5e-3));
  for (const int count : counts) CHECK(count == doctest::Approx(62'500).epsilon(0.02));

  CHECK(random_solution(problem, -1, 7) == 0.0);
  CHECK(random_solution(problem, 100, 7) == 0.0);
  ModelProblem other = problem;
  other.seed = 43;
  CHECK(random_solution(other, 3, 4) != random_solution(problem, 3, 4));
  // Nodes are told apart beyond 2^32 of them.
  CHECK(random_solution(problem, 0, 5) != random_solution(problem, 0, 5 + (Index{1} << 32)));

  problem.slow.lower = problem.slow.upper = Condition::periodic;
  CHECK(random_solution(problem, -1, 7) == random_solution(problem, 99, 7));
  CHECK(random_solution(problem, 100, 7) == random_solution(problem, 0, 7));
}

TEST_CASE_TEMPLATE("random right-hand sides are the dense matrix times the solution, however the grid is cut",
                   T, float, double) {
  constexpr Real epsilon = std::numeric_limits<T>::epsilon();
  const auto check = [&](const Grid& grid) {
    const Matrix<double> u = solution_of<double>(grid, Model::random);
    for (const Index height : slab_heights(grid)) {
      const Matrix<T> f = rhs_of<T>(grid, Model::random, height);
      bool right = true;
      for (Index i = 0; i < f.rows(); ++i)
        for (Index j = 0; j < f.cols(); ++j) {
          Real size = 0;
          const Real exact = grid.apply(u, i, j, &size);
          right = right &&
                  std::abs(static_cast<Real>(f(i, j)) - exact) <= epsilon * std::abs(exact) + 2e-15L * size;
        }
      CHECK(right);
    }
  };
  for_all_grids(check);
}

TEST_CASE_TEMPLATE("sine right-hand sides are the differential operator's, however the grid is cut", T, float,
                   double) {
  constexpr Real epsilon = std::numeric_limits<T>::epsilon();
  const auto check = [&](const Grid& grid) {
    const Matrix<Real> u = solution_of<Real>(grid, Model::sine);
    const auto kappa = [](const Axis& axis) {
      return inert(axis) ? 0.0L
                         : (axis.lower == axis.upper ? 2.0L : 1.5L) * pi / static_cast<Real>(axis.length);
    };
    const Real kappa_z = kappa(grid.slow.axis), kappa_y = kappa(grid.a.y), kappa_x = kappa(grid.a.x);
    const Real scale =
        static_cast<Real>(grid.a.lambda) - kappa_z * kappa_z - kappa_y * kappa_y - kappa_x * kappa_x;
    for (const Index height : slab_heights(grid)) {
      const Matrix<T> f = rhs_of<T>(grid, Model::sine, height);
      bool right = true;
      for (Index i = 0; i < f.rows(); ++i)
        for (Index j = 0; j < f.cols(); ++j) {
          const Real exact = scale * u(i, j);
          right = right && std::abs(static_cast<Real>(f(i, j)) - exact) <=
                               epsilon * std::abs(exact) + 3e-15L * std::abs(scale);
        }
      CHECK(right);
    }
  };
  for_all_grids(check);
}

TEST_CASE_TEMPLATE("the known solution solves its problem", T, float, double) {
  const double epsilon = std::numeric_limits<T>::epsilon();
  for (const Grid& grid : some_grids()) {
    const Matrix<T> u = solution_of<T>(grid, Model::random), f = rhs_of<T>(grid, Model::random, grid.m());
    const Sums sums = residual_of(grid, slab_of(grid, Model::random), u, f, grid.m());
    CHECK(sums[residual2] <= epsilon * epsilon * sums[rhs2]);
    CHECK(sums[error2] == 0.0);
    CHECK(sums[known2] == sums[solution2]);
  }
  // Differences are of second order: the residual of the sine model's exact solution is (kappa h)^2 / 12 of
  // f.
  const Axis axis{127, 2.0, Condition::dirichlet, Condition::dirichlet, Centering::node};
  const Grid grid(plain(axis), {no_axis, axis, 0.0});
  const Matrix<T> u = solution_of<T>(grid, Model::sine);
  const Sums sums = residual_of(grid, slab_of(grid, Model::sine), u, rhs_of<T>(grid, Model::sine, 127), 127);
  CHECK(std::sqrt(sums[residual2] / sums[rhs2]) ==
        doctest::Approx(static_cast<double>(pi * pi) / (12 * 64 * 64)).epsilon(5e-3));
  CHECK(sums[error2] <= epsilon * epsilon * sums[known2]);
}

TEST_CASE(
    "the sine model's solution satisfies the difference equation to second order, whatever the conditions") {
  // The largest residual away from the ends, over the largest f.
  const auto residual_at = [](const Axis& slow, const Axis& y, const Axis& x, bool stretch) {
    const Grid grid(stretch ? stretched(slow) : plain(slow), {y, x, -1.0});
    const Matrix<double> u = solution_of<double>(grid, Model::sine), f = rhs_of<double>(grid, Model::sine, 3);
    Worst worst, largest;
    const auto inside = [](const Axis& axis, Index i) { return axis.n == 1 || (i > 0 && i < axis.n - 1); };
    for (Index i = 0; i < grid.m(); ++i)
      for (Index j = 0; j < grid.plane(); ++j) {
        largest.take_in(f(i, j));
        if (inside(slow, i) && inside(y, j / x.n) && inside(x, j % x.n))
          worst.take_in(static_cast<Real>(f(i, j)) - grid.apply(u, i, j));
      }
    CHECK(residual_of(grid, slab_of(grid, Model::sine), u, f, grid.m())[error2] <= 1e-28);
    return static_cast<double>(worst.value() / largest.value());
  };
  // Axes of 16 or so and twice as many cells.
  const auto refined = [](Axis axis) {
    axis.n += axis.cells();
    return axis;
  };
  const Axis y{6, 1.5, Condition::neumann, Condition::dirichlet, Centering::cell};
  for (const Axis& slow : all_axes(16, 1.0))
    for (const Axis& x : all_axes(16, 1.5)) {
      const double ratio =
          residual_at(slow, no_axis, x, false) / residual_at(refined(slow), no_axis, refined(x), false);
      CHECK(ratio > 3.5);
      CHECK(ratio < 4.5);
    }
  for (const Axis& axis : all_axes(12, 1.0)) {
    const double ratio =
        residual_at(axis, y, axis, false) / residual_at(refined(axis), refined(y), refined(axis), false);
    CHECK(ratio > 3.2);
    CHECK(ratio < 4.8);
  }
  // Nodes of a smooth map are equally spaced to second order, so that order stays.
  const Axis slow{63, 1.0, Condition::dirichlet, Condition::neumann, Centering::node};
  const double ratio = residual_at(slow, no_axis, refined(y), true) /
                       residual_at(refined(slow), no_axis, refined(refined(y)), true);
  CHECK(ratio > 3.5);
  CHECK(ratio < 4.5);
}

#ifdef ASTERISM_WITH_CUDA

TEST_CASE_TEMPLATE("gpu: right-hand sides", T, float, double) {
  Runtime runtime;
  for_gpu_grids([&](const Grid& grid) {
    for (const Model model : {Model::sine, Model::random})
      for (const auto& [first, planes] : gpu_slabs(grid)) {
        const Tile<T> f(runtime, planes, grid.plane());
        const Tile<double> axis = upload(runtime, planes_of(grid.rows, first, planes));
        grid::codelets::model_rhs<T>({grid.problem(model), first}, axis, f, on_gpu);
        runtime.wait();
        const Matrix<T> expected = rhs_of<T>(grid, model, grid.m());
        const double worst = compare(download(f), planes_of(expected, first, planes)).first;
        // Three sines of up to 2 ulp each on the device, and their product with the eigenvalue.
        CHECK(worst <= 8.0 * std::numeric_limits<T>::epsilon() * compare(expected, expected).second);
      }
  });
}

#endif
