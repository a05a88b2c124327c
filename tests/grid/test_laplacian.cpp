// The operator with all its conditions: residual, norm and moments against their definitions in long double.

#include "codelets/grid/laplacian.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "../support/grid.hpp"
#include "../support/worst.hpp"
#include "model_grids.hpp"

using namespace asterism;
using namespace asterism::grid;
using namespace asterism::test;

namespace {

/// The sums over a whole grid, node by node.
template <class T>
Sums plain_sums(const Grid& grid, Model model, const Matrix<T>& u, const Matrix<T>& f) {
  std::array<Real, residual_sums> sums{};
  const Matrix<Real> known = solution_of<Real>(grid, model);
  for (Index i = 0; i < u.rows(); ++i)
    for (Index j = 0; j < u.cols(); ++j) {
      const Real value = u(i, j), rhs = f(i, j), r = rhs - grid.apply(u, i, j), exact = known(i, j);
      sums[residual2] += r * r;
      sums[rhs2] += rhs * rhs;
      sums[solution2] += value * value;
      sums[error2] += (value - exact) * (value - exact);
      sums[known2] += exact * exact;
    }
  Sums result;
  for (std::size_t s = 0; s < result.size(); ++s) result[s] = static_cast<double>(sums[s]);
  return result;
}

/// Checks the sums of slabs of a height against those of the whole grid.
template <class T>
void check_sums(const Grid& grid, Model model, const Matrix<T>& u, const Matrix<T>& f, Index height) {
  const Sums expected = plain_sums(grid, model, u, f);
  Sums total{};
  for_slabs(grid, height, [&](Index first, Index planes) {
    const Sums part = residual_of(grid, slab_of(grid, model, first), u, f, planes);
    for (std::size_t s = 0; s < total.size(); ++s) total[s] += part[s];
  });
  for (std::size_t s = 0; s < total.size(); ++s) {
    CAPTURE(s);
    CHECK(std::abs(total[s] - expected[s]) <= 1e-12 * expected[s] + 1e-28);
  }
}

}  // namespace

TEST_CASE("the table and coordinates say the same of equal spacings") {
  for (const Index n : {1, 2, 5})
    for (const Axis& axis : all_axes(n, 1.25)) {
      const PlainAxis table = plain(axis), coordinates = stretched(axis, [](Real t) { return t; });
      for (std::size_t i = 0; i < table.width.size(); ++i) {
        CHECK(std::abs(table.before[i] - coordinates.before[i]) <= 1e-17L * table.before[i]);
        CHECK(std::abs(table.after[i] - coordinates.after[i]) <= 1e-17L * table.after[i]);
        CHECK(std::abs(table.width[i] - coordinates.width[i]) <= 1e-18L);
        CHECK(std::abs(table.position[i] - coordinates.position[i]) <= 1e-18L);
      }
    }
}

TEST_CASE_TEMPLATE("sums agree with those taken node by node, and slabs add up to the whole", T, float,
                   double) {
  const auto check = [](const Grid& grid, Model model) {
    const Matrix<T> u = Matrix<T>(grid.m(), grid.plane()).fill_random(1), u_before = u;
    const Matrix<T> f = Matrix<T>(grid.m(), grid.plane()).fill_random(2), f_before = f;
    for (const Index height : slab_heights(grid)) check_sums(grid, model, u, f, height);
    CHECK(u == u_before);
    CHECK(f == f_before);
  };
  for_all_grids([&](const Grid& grid) { check(grid, grid.m() % 2 == 0 ? Model::random : Model::sine); });
  const Axis x{97, 1.0, Condition::neumann, Condition::neumann, Centering::node};
  const Axis y{6, 2.0, Condition::periodic, Condition::periodic, Centering::cell};
  const Axis slow{4, 3.0, Condition::dirichlet, Condition::neumann, Centering::cell};
  for (const Model model : {Model::sine, Model::random}) check(Grid(stretched(slow), {y, x, -0.25}), model);
}

TEST_CASE("sums by hand") {
  // One node between Dirichlet ends at distance 1 along z and x, u = 2, f = 1: A u = -2 u - 2 u = -8.
  const Axis one{1, 2.0, Condition::dirichlet, Condition::dirichlet, Centering::node};
  const Matrix<double> u = Matrix<double>(1, 1).fill([](Index, Index) { return 2; }),
                       f = Matrix<double>(1, 1).fill([](Index, Index) { return 1; });
  const Grid node(plain(one), {no_axis, one, 0.0}), shifted(plain(one), {no_axis, one, 3.0});
  CHECK(residual_of(node, slab_of(node, Model::sine, 0, false), u, f, 1) == Sums{81.0, 1.0, 4.0, 0.0, 0.0});
  CHECK(residual_of(shifted, slab_of(shifted, Model::sine, 0, false), u, f, 1) ==
        Sums{9.0, 1.0, 4.0, 0.0, 0.0});

  // Half a unit from the ends instead: A u = -4 u - 4 u in two dimensions, -12 u in three.
  const Axis cell{1, 1.0, Condition::dirichlet, Condition::dirichlet, Centering::cell};
  const Grid flat(plain(cell), {no_axis, cell, 0.0}, 0.5), solid(plain(cell), {cell, cell, 0.0}, 0.5);
  CHECK(residual_of(flat, slab_of(flat, Model::sine, 0, false), u, f, 1) == Sums{289.0, 1.0, 4.0, 0.0, 0.0});
  CHECK(residual_of(solid, slab_of(solid, Model::sine, 0, false), u, f, 1) ==
        Sums{625.0, 1.0, 4.0, 0.0, 0.0});

  // u = 1 everywhere, f = 0: A u is minus the number of Dirichlet ends beside a node.
  const auto uniform = [](Index m, Index nx) {
    const auto axis = [](Index n) {
      return Axis{n, static_cast<double>(n + 1), Condition::dirichlet, Condition::dirichlet, Centering::node};
    };
    const Grid grid(plain(axis(m)), {no_axis, axis(nx), 0.0}, 1.0);
    const Matrix<double> ones = Matrix<double>(m, nx).fill([](Index, Index) { return 1; }),
                         zeros = Matrix<double>(m, nx).fill([](Index, Index) { return 0; });
    return residual_of(grid, slab_of(grid, Model::sine, 0, false), ones, zeros, m);
  };
  CHECK(uniform(1, 5) == Sums{2 * 9.0 + 3 * 4.0, 0.0, 5.0, 0.0, 0.0});
  CHECK(uniform(5, 1) == Sums{2 * 9.0 + 3 * 4.0, 0.0, 5.0, 0.0, 0.0});
  CHECK(uniform(3, 3) == Sums{4 * 4.0 + 4 * 1.0, 0.0, 9.0, 0.0, 0.0});
}

TEST_CASE("the norm is that of the dense Laplacian, and lambda's") {
  const auto check = [](Grid grid) {
    const Matrix<Real> dz = grid.slow.matrix(), dy = grid.y.matrix(), dx = grid.x.matrix();
    for (const double lambda : {0.0, -2.0, 3.0, 1e3}) {
      grid.a.lambda = lambda;
      const Index ny = grid.a.y.n, nx = grid.a.x.n;
      Worst largest;
      for (Index i = 0; i < grid.m(); ++i)
        for (Index y = 0; y < ny; ++y)
          for (Index x = 0; x < nx; ++x) {
            Real sum = std::abs(dz(i, i) + dy(y, y) + dx(x, x)) + static_cast<Real>(std::abs(lambda));
            const auto beside = [&](const Matrix<Real>& d, Index line) {
              for (Index k = 0; k < d.cols(); ++k)
                if (k != line) sum += std::abs(d(line, k));
            };
            beside(dz, i);
            beside(dy, y);
            beside(dx, x);
            largest.take_in(sum);
          }
      CHECK(operator_norm(grid.a, grid.slow.axis, grid.axis_rows()) ==
            doctest::Approx(static_cast<double>(largest.value())).epsilon(1e-14));
    }
  };
  for_all_grids(check);
}

TEST_CASE_TEMPLATE("moments weigh with the volumes of cells, and slabs add up to the whole", T, float,
                   double) {
  const auto check = [](const Grid& grid) {
    const Matrix<T> f = Matrix<T>(grid.m(), grid.plane()).fill_random(3), f_before = f;
    Real first = 0, absolute = 0, volume = 0;
    for (Index i = 0; i < f.rows(); ++i)
      for (Index j = 0; j < f.cols(); ++j) {
        volume += grid.volume(i, j);
        first += grid.volume(i, j) * static_cast<Real>(f(i, j));
        absolute += grid.volume(i, j) * std::abs(static_cast<Real>(f(i, j)));
      }
    for (const Index height : slab_heights(grid)) {
      std::array<double, moments_count> total{};
      for_slabs(grid, height, [&](Index slab, Index planes) {
        Matrix<double> sums(planes, moments_count);
        cpu::moments<T>(grid.a, f.in(slab, planes), grid.rows.in(slab, planes), sums.out());
        CHECK(sums.guarded());
        for (Index i = 0; i < planes; ++i) {
          Real plane = 0;
          for (Index j = 0; j < f.cols(); ++j) plane += grid.volume(slab + i, j) * static_cast<Real>(f(slab + i, j));
          CHECK(std::abs(static_cast<Real>(sums(i, first_moment)) - plane) <= 1e-14L * absolute);
          for (std::size_t s = 0; s < total.size(); ++s) total[s] += sums(i, static_cast<Index>(s));
        }
      });
      CHECK(std::abs(static_cast<Real>(total[first_moment]) - first) <= 1e-14L * absolute);
      CHECK(std::abs(static_cast<Real>(total[absolute_moment]) - absolute) <= 1e-14L * absolute);
    }
    CHECK(std::abs(static_cast<Real>(measure(grid.a, grid.axis_rows())) - volume) <= 1e-14L * volume);
    CHECK(f == f_before);
  };
  for_all_grids(check);
  for (const Grid& grid : some_grids()) check(grid);
}

TEST_CASE("the second difference of anything has no first moment between Neumann ends") {
  using enum Condition;
  for (const Centering centering : {Centering::node, Centering::cell}) {
    const Axis axis{7, 1.0, neumann, neumann, centering}, around{5, 2.0, periodic, periodic, centering};
    for (const Grid& grid :
         {Grid(stretched(axis), {around, axis, 0.0}), Grid(stretched(around), {axis, axis, 0.0})}) {
      const Matrix<double> f = rhs_of<double>(grid, Model::random, 2);
      Matrix<double> sums(grid.m(), moments_count);
      cpu::moments<double>(grid.a, f.in(), grid.rows.in(), sums.out());
      double first = 0, absolute = 0;
      for (Index i = 0; i < grid.m(); ++i) first += sums(i, first_moment), absolute += sums(i, absolute_moment);
      CHECK(std::abs(first) <= 1e-14 * absolute);
    }
  }
}

TEST_CASE_TEMPLATE("a NaN anywhere ends in the sums", T, float, double) {
  const T nan = std::numeric_limits<T>::quiet_NaN();
  for (const Grid& grid : some_grids()) {
    const Index m = grid.m(), n = grid.plane();
    for (const auto& [i, j] : std::vector<std::pair<Index, Index>>{{0, 0}, {m / 2, n - 1}, {m - 1, n / 2}}) {
      Matrix<T> u = Matrix<T>(m, n).fill_random(1), f = Matrix<T>(m, n).fill_random(2);
      const T kept = u(i, j);
      u(i, j) = nan;
      Sums sums = residual_of(grid, slab_of(grid, Model::sine), u, f, m);
      CHECK(std::isnan(sums[residual2]));
      CHECK(std::isnan(sums[solution2]));
      CHECK(std::isnan(sums[error2]));
      u(i, j) = kept;
      f(i, j) = nan;
      sums = residual_of(grid, slab_of(grid, Model::sine), u, f, m);
      CHECK(std::isnan(sums[residual2]));
      CHECK(std::isnan(sums[rhs2]));
      CHECK(!std::isnan(sums[solution2]));
      Matrix<double> two(m, moments_count);
      cpu::moments<T>(grid.a, f.in(), grid.rows.in(), two.out());
      CHECK(std::isnan(two(i, first_moment)));
      CHECK(std::isnan(two(i, absolute_moment)));
    }
  }
}

#ifdef ASTERISM_WITH_CUDA

TEST_CASE_TEMPLATE("gpu: residual sums", T, float, double) {
  Runtime runtime;
  for_gpu_grids([&](const Grid& grid) {
    const Matrix<T> u = Matrix<T>(grid.m(), grid.plane()).fill_random(1),
                    f = Matrix<T>(grid.m(), grid.plane()).fill_random(2);
    const Tile<sums::SquareSum> work(runtime, 1, cuda::residual_scratch);
    for (const auto& [first, planes] : gpu_slabs(grid)) {
      const Tile<T> u_tile = upload(runtime, planes_of(u, first, planes)),
                    f_tile = upload(runtime, planes_of(f, first, planes)),
                    before = upload(runtime, plane_beside(grid, u, first - 1)),
                    after = upload(runtime, plane_beside(grid, u, first + planes));
      const Tile<double> axis = upload(runtime, planes_of(grid.rows, first, planes));
      for (const Model model : {Model::sine, Model::random})
        for (const bool known : {true, false}) {
          const SlabProblem slab = slab_of(grid, model, first, known);
          const Tile<sums::SquareSum> sums(runtime, 1, residual_sums), again(runtime, 1, residual_sums);
          for (const Tile<sums::SquareSum>* result : {&sums, &again})
            grid::codelets::residual<T>(slab,
                                        {.u = u_tile,
                                         .before = before,
                                         .after = after,
                                         .f = f_tile,
                                         .axis = axis,
                                         .sums = *result,
                                         .work = work},
                                        on_gpu);
          runtime.wait();
          const Sums expected = residual_of(grid, slab, u, f, planes);
          const HostView<sums::SquareSum> made(sums, HostView<sums::SquareSum>::Access::read),
              repeated(again, HostView<sums::SquareSum>::Access::read);
          for (Index s = 0; s < residual_sums; ++s) {
            CAPTURE(s);
            const double value = expected[static_cast<std::size_t>(s)];
            CHECK(std::abs(static_cast<double>(made(0, s).total()) - value) <= 1e-12 * value + 1e-28);
            CHECK(made(0, s).total() == repeated(0, s).total());
          }
        }
    }
  });
}

TEST_CASE_TEMPLATE("gpu: moments", T, float, double) {
  Runtime runtime;
  for_gpu_grids([&](const Grid& grid) {
    const Matrix<T> f = Matrix<T>(grid.m(), grid.plane()).fill_random(3);
    const Tile<double> work(runtime, 1, grid.m() * cuda::moments_scratch);
    for (const auto& [first, planes] : gpu_slabs(grid)) {
      const Tile<T> f_tile = upload(runtime, planes_of(f, first, planes));
      const Tile<double> axis = upload(runtime, planes_of(grid.rows, first, planes)),
                         sums(runtime, planes, moments_count), again(runtime, planes, moments_count);
      for (const Tile<double>* result : {&sums, &again})
        grid::codelets::moments<T>(grid.a, {.f = f_tile, .axis = axis, .sums = *result, .work = work}, on_gpu);
      runtime.wait();
      Matrix<double> expected(planes, moments_count);
      cpu::moments<T>(grid.a, f.in(first, planes), grid.rows.in(first, planes), expected.out());
      const Matrix<double> made = download(sums);
      CHECK(compare(made, expected).first <= 1e-13 * expected(0, absolute_moment) * static_cast<double>(planes));
      CHECK(made == download(again));
    }
  });
}

#endif
