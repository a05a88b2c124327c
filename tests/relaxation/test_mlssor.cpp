// The kernels of multi-layer SSOR against its definition; the same bits in any order of the subdomains.

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../support/matrix.hpp"
#include "../support/tiles.hpp"
#include "../support/worst.hpp"
#include "mlssor_twin.hpp"

using namespace asterism;
using namespace asterism::relaxation;
using namespace asterism::test;

namespace {

constexpr Direction directions[] = {Direction::forward, Direction::backward};

/// K-layer SOR as it is without subdomains.
template <class T>
void sequential_sweep(Grid<T>& grid, Direction direction, Index layers, const FivePoint<T>& a, T omega) {
  for (Index k = 0; k < layers; ++k)
    for (Index p = 0; p < grid.m; ++p)
      for (Index q = 0; q < grid.n; ++q) {
        const Index i = direction == Direction::forward ? p : grid.m - 1 - p;
        const Index j = direction == Direction::forward ? q : grid.n - 1 - q;
        const auto v = [&](Index r, Index c) { return grid.v[grid.place(r, c)]; };
        const T sum =
            balance(a, v(i - 1, j), v(i + 1, j), v(i, j - 1), v(i, j + 1)) + grid.g[grid.place(i, j)];
        grid.v[grid.place(i, j)] = relaxed(omega, v(i, j), sum);
      }
}

constexpr double some_omega = 1.4375;

template <class T>
MultiLayer whole_grid(const Grid<T>& grid, Index n, Index layers, bool has_source = true) {
  return {.stripe = {.rows = grid.m, .nodes = grid.n, .halo = 1},
          .grid_rows = grid.m,
          .subdomain = n,
          .layers = layers,
          .along_y = 0.3125,
          .along_x = 0.1875,
          .omega = some_omega,
          .has_source = has_source};
}

/// A grid's numbers as the tile of its only stripe.
template <class T>
Matrix<T> tile_of(const Grid<T>& grid, const std::vector<T>& numbers) {
  const Stripe stripe = whole_grid(grid, 2, 1).stripe;
  return Matrix<T>(stripe.tile_rows(), stripe.tile_cols()).fill([&](Index r, Index c) {
    return c < grid.n + 2 ? numbers[at(r * (grid.n + 2) + c)] : T{7};
  });
}

std::vector<Case> all_cases() {
  constexpr std::pair<Index, Index> grids[] = {{1, 1},   {1, 7},   {7, 1},   {2, 3},  {5, 5},
                                               {13, 17}, {16, 64}, {31, 29}, {40, 33}};
  std::vector<Case> cases;
  for (const auto& [m, n] : grids)
    for (const Index subdomain : {2, 3, 4, 5, 7, 8, 16, 32, 33})
      for (const Index layers : {Index{1}, (subdomain + 3) / 4, most_layers(subdomain)})
        cases.push_back({m, n, subdomain, layers});
  cases.push_back({70, 150, 4, 2});  // many beside each other
  cases.push_back({37, 259, 16, 8});
  return cases;
}

}  // namespace

TEST_CASE_TEMPLATE("sweeps are those of the definition, bit for bit", T, float, double) {
  std::mt19937_64 engine(5);
  for (const Case& c : all_cases())
    for (const bool has_source : {true, false})
      for (const bool alternate : {true, false}) {
        Grid<T> grid(c.m, c.n, 3);
        if (!has_source) std::fill(grid.g.begin(), grid.g.end(), T{0});
        const MultiLayer problem = whole_grid(grid, c.subdomain, c.layers, has_source);
        Matrix<T> u = tile_of(grid, grid.v), none(1, 1);
        const Matrix<T> g = tile_of(grid, grid.g), before = u;
        constexpr Index sweeps = 3;
        cpu::mlssor_sweeps<T>({problem, Direction::forward, alternate, sweeps}, u.inout(),
                              has_source ? g.in() : none.in());
        MultiLayerTwin<T> twin(grid, c.subdomain, c.layers, problem.weights<T>(), static_cast<T>(some_omega));
        for (Index k = 0; k < sweeps; ++k)
          twin.sweep(alternate && k % 2 == 1 ? Direction::backward : Direction::forward, engine);
        INFO(c);
        REQUIRE(twin.all_relaxed(static_cast<int>(sweeps * c.layers)));
        REQUIRE(u == tile_of(grid, grid.v));  // with the frame, what pads the rows and what lies between them
        REQUIRE(!(u == before));
        REQUIRE(g == tile_of(grid, grid.g));
      }
}

TEST_CASE("every node belongs to one part of one subdomain in every layer") {
  for (const Case& c : all_cases())
    for (const Direction direction : directions) {
      const CutAxis axis{c.n, c.subdomain, direction};
      for (Index k = 0; k < c.layers; ++k) {
        std::vector<int> times(at(c.n));
        for (Index s = 0; s < axis.subdomains(); ++s)
          for (const AxisPart part : {AxisPart::first, AxisPart::second}) {
            const Span span = axis.span(part, s, k);
            for (Index p = span.begin; p < span.end; ++p) {
              const Index j = axis.mirrored(p);
              REQUIRE(j >= 0);
              REQUIRE(j < c.n);
              ++times[at(j)];
            }
          }
        REQUIRE(std::all_of(times.begin(), times.end(), [](int t) { return t == 1; }));
      }
    }
}

TEST_CASE("the subdomains of a kind do not depend on each other: any order gives the same bits") {
  std::mt19937_64 engine(11);
  for (const Case& c : {Case{37, 41, 4, 2}, {40, 48, 8, 4}, {33, 50, 5, 2}, {70, 66, 16, 8}, {35, 36, 7, 3}})
    for (const Direction direction : directions)
      for (int attempt = 0; attempt < 5; ++attempt) {
        const Grid<double> grid(c.m, c.n, 8);
        const MultiLayer problem = whole_grid(grid, c.subdomain, c.layers);
        Matrix<double> expected = tile_of(grid, grid.v), u = expected;
        const Matrix<double> g = tile_of(grid, grid.g);
        cpu::mlssor_sweeps<double>({problem, direction, false, 1}, expected.inout(), g.in());
        std::vector<std::pair<Index, Index>> subdomains;
        for (Index s = 0; s < problem.rows(direction).subdomains(); ++s)
          for (Index t = 0; t < problem.columns(direction).subdomains(); ++t) subdomains.emplace_back(s, t);
        for (const SubdomainTile tile : {T11, T12, T21, T22}) {
          std::shuffle(subdomains.begin(), subdomains.end(), engine);
          for (const auto& [s, t] : subdomains)
            cpu::relax_subdomain<double>(problem, direction, tile, s, t, u.inout(), g.in());
        }
        INFO(c);
        CHECK(u == expected);
      }
}

TEST_CASE_TEMPLATE("one subdomain that covers the grid is sequential SSOR, with one layer plain SOR", T,
                   float, double) {
  for (const auto& [m, n] : {std::pair<Index, Index>{1, 1}, {9, 14}, {30, 23}})
    for (const Index subdomain : {std::max(m, n), std::max(m, n) + 1, 2 * std::max(m, n) + 5})
      for (const Index layers : {Index{1}, most_layers(subdomain)}) {
        if (subdomain < 2) continue;
        Grid<T> grid(m, n, 4);
        const MultiLayer problem = whole_grid(grid, subdomain, layers);
        Matrix<T> u = tile_of(grid, grid.v);
        const Matrix<T> g = tile_of(grid, grid.g);
        cpu::mlssor_sweeps<T>({problem, Direction::forward, true, 3}, u.inout(), g.in());
        for (const Direction direction : {Direction::forward, Direction::backward, Direction::forward})
          sequential_sweep(grid, direction, layers, problem.weights<T>(), static_cast<T>(some_omega));
        INFO((Case{m, n, subdomain, layers}));
        CHECK(u == tile_of(grid, grid.v));
      }
}

#ifdef ASTERISM_WITH_CUDA

namespace {

template <class T>
using SweepsKernel = void (*)(Stream, const WholeSweeps&, InOut<T>, In<T>);

/// Sweeps on the GPU, by one of its implementations, against those on the CPU.
template <class T>
void compare_sweeps(const std::string& name, SweepsKernel<T> kernel, const std::vector<Case>& cases) {
  const Codelet<WholeSweeps, InOut<T>, In<T>> sweeps{typed_name<T>(name), nullptr, kernel};
  Runtime runtime;
  for (const Case& c : cases)
    for (const bool has_source : {true, false})
      for (const Direction first : directions) {
        const Grid<T> grid(c.m, c.n, 6);
        const MultiLayer problem = whole_grid(grid, c.subdomain, c.layers, has_source);
        Matrix<T> expected = tile_of(grid, grid.v), none(1, 1);
        none(0, 0) = 0;
        const Matrix<T> g = has_source ? tile_of(grid, grid.g) : none;
        const WholeSweeps args{problem, first, true, 3};
        const Tile<T> u = upload(runtime, expected), source = upload(runtime, g);
        sweeps(args, u, source);
        runtime.wait();
        cpu::mlssor_sweeps<T>(args, expected.inout(), g.in());
        const Matrix<T> found = download(u);
        Worst largest;
        for (Index i = 0; i < expected.rows(); ++i)
          for (Index j = 0; j < expected.cols(); ++j) largest.take_in(expected(i, j));
        CAPTURE(name);
        INFO(c);
        REQUIRE(largest_difference(found, expected) <=
                64 * static_cast<double>(c.layers) * (sizeof(T) == 4 ? 0x1p-24 : 0x1p-53) * largest.value());
      }
}

std::vector<Case> gpu_cases() {
  std::vector<Case> cases = all_cases();
  cases.push_back({300, 517, 16, 8});
  cases.push_back({300, 517, 32, 16});
  cases.push_back({301, 512, 8, 4});
  cases.push_back({256, 1030, 4, 2});
  cases.push_back({100, 200, 50, 25});
  cases.push_back({300, 280, 128, 64});
  return cases;
}

}  // namespace

TEST_CASE_TEMPLATE("gpu: sweeps with all layers in shared memory", T, float, double) {
  compare_sweeps<T>("test_mlssor_whole", cuda::mlssor_sweeps_whole<T>, gpu_cases());
}

TEST_CASE_TEMPLATE("gpu: sweeps with three rows in shared memory", T, float, double) {
  compare_sweeps<T>("test_mlssor_rows", cuda::mlssor_sweeps_rows<T>, gpu_cases());
}

#endif
