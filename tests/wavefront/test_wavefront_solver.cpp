// The solver of wavefront-tiled SOR: its sweeps against the sequential loop, its results against a known
// solution, how it converges and stops, what it refuses.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <random>
#include <stdexcept>
#include <vector>

#include "../relaxation/sequential_sweeps.hpp"
#include "../support/worst.hpp"
#include "algorithms/wavefront/layout.hpp"
#include "algorithms/wavefront/solver.hpp"

using namespace asterism;
using namespace asterism::test;
using namespace asterism::wavefront;

namespace {

template <class T>
std::vector<T> random_values(const std::vector<Index>& shape, unsigned seed) {
  Index count = 1;
  for (const Index n : shape) count *= n;
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) value = static_cast<T>(uniform(engine));
  return values;
}

/// -(sum of 2 - 2 cos(pi h) over h^2) u, and u = product of sin(pi x): with zero sides the solution of the
/// difference equation.
struct Sine {
  std::vector<double> u, f;
  explicit Sine(const std::vector<Index>& shape) {
    double eigenvalue = 0;
    u.assign(1, 1.0);
    for (const Index n : shape) {
      const double h = 1.0 / static_cast<double>(n + 1);
      eigenvalue -= (2 - 2 * std::cos(std::numbers::pi * h)) / (h * h);
      std::vector<double> longer;
      for (const double value : u)
        for (Index i = 1; i <= n; ++i)
          longer.push_back(value * std::sin(std::numbers::pi * h * static_cast<double>(i)));
      u = longer;
    }
    for (const double value : u) f.push_back(eigenvalue * value);
  }
};

template <class T>
bool agree(const std::vector<T>& a, const std::vector<T>& b, bool on_gpu) {
  if (same_bits || !on_gpu) return a == b;
  return largest_difference(a, b) < 1000 * std::numeric_limits<T>::epsilon();
}

/// The tile of a solver's layout: something on both kinds of worker.
WavefrontLayout small_layout(int dimensions) {
  WavefrontLayout layout;
  layout.tile = {3, {5, dimensions == 2 ? 7 : 4, dimensions == 1 ? 9 : 6}};
  layout.threads = 64;
  layout.blocks = 8;
  return layout;
}

}  // namespace

TEST_CASE("tiles on cores: as high as caches allow, a few in turn for the sweeps, and worth a task") {
  Runtime runtime({.cpus = 2, .gpus = 0});
  const Machine machine = runtime.machine();
  const auto sweeps_of_tile = [&](int dimensions, Index n, Index sweeps) {
    WavefrontArgs grid;
    grid.dimensions = dimensions;
    grid.nodes = {dimensions > 2 ? n : 1, dimensions > 1 ? n : 1, n};
    grid.sweeps = sweeps;
    WavefrontLayout layout = layout_on_cpus(machine, grid, sizeof(double), {});
    CHECK(height_of(layout, dimensions) >= layout.tile.sweeps);
    return layout.tile.sweeps;
  };
  CHECK(sweeps_of_tile(2, 127, 64) == 19);    // 45,000 points of a task
  CHECK(sweeps_of_tile(2, 1023, 64) == 16);   // four tasks in turn
  CHECK(sweeps_of_tile(2, 1023, 512) == 32);  // what stays in a cache
  CHECK(sweeps_of_tile(2, 2047, 512) == 16);
  CHECK(sweeps_of_tile(2, 127, 3) == 3);  // no more than there are
  CHECK(sweeps_of_tile(1, 1000, 1000) == 213);
}

TEST_CASE_TEMPLATE("the solver's sweeps are those of the sequential loop", T, float, double) {
  Runtime runtime;
  const bool on_gpu = runtime.machine().count(WorkerKind::cuda) > 0;
  for (const auto& shape :
       std::vector<std::vector<Index>>{{1}, {7}, {1000}, {1, 1}, {5, 9}, {64, 33}, {2, 3, 4}, {13, 9, 17}})
    for (const bool source : {false, true})
      for (const bool chosen : {false, true})
        for (const wavefront::Direction direction :
             {wavefront::Direction::forward, wavefront::Direction::symmetric}) {
          wavefront::Problem equation{shape, {}, {}};
          for (std::size_t axis = 0; axis < shape.size(); ++axis) {
            equation.lengths.push_back(1.0 + static_cast<double>(axis));
            equation.sides.push_back({0.5 + static_cast<double>(axis), -1.25 * static_cast<double>(axis)});
          }
          wavefront::Settings settings;
          settings.sweeps = 11;
          settings.omega = 1.5;
          settings.direction = direction;
          settings.check_every = chosen ? 4 : 0;
          if (!chosen) settings.layout = small_layout(static_cast<int>(shape.size()));
          wavefront::Solver<T> solver(runtime, equation, settings);
          const std::vector<T> f = random_values<T>(shape, 3), first = random_values<T>(shape, 4);
          std::vector<T> u = first;
          const Report report = solver.solve(source ? f.data() : nullptr, u.data());
          CHECK(report.reason == Reason::solved);
          CHECK(report.iterations == 11);
          CHECK(report.residual_history.size() == (chosen ? 4 : 2));

          WavefrontArgs args =
              problem(shape, direction == wavefront::Direction::forward ? 11 : 1, source, false);
          args.omega = 1.5;
          double diagonal = 0;
          const std::size_t absent = 3 - shape.size();
          for (std::size_t axis = absent; axis < 3; ++axis) {
            const double h = equation.lengths[axis - absent] / static_cast<double>(shape[axis - absent] + 1);
            args.along[axis] = 1 / (h * h);
            diagonal += 2 / (h * h);
          }
          for (double& a : args.along) a /= diagonal;
          Data<T> data(args);
          data.u.fill([](Index, Index) { return 0; });
          std::size_t k = 0;
          Data<T>::for_nodes(args, [&](Index row, Index col) {
            const Index at[] = {args.dimensions > 2 ? row / (args.nodes[1] + 2) : 1,
                                args.dimensions > 2   ? row % (args.nodes[1] + 2)
                                : args.dimensions > 1 ? row
                                                      : 1,
                                col};
            const Index distance[] = {args.nodes[1] + 2, 1, 1};
            for (std::size_t axis = absent; axis < 3; ++axis) {
              const wavefront::Problem::Sides& sides = equation.sides[axis - absent];
              const Index rows = axis < 2 ? distance[axis] : 0, cols = axis < 2 ? 0 : 1;
              if (at[axis] == 1) data.u(row - rows, col - cols) = static_cast<T>(sides.lower);
              if (at[axis] == args.nodes[axis]) data.u(row + rows, col + cols) = static_cast<T>(sides.upper);
            }
            if (source) data.g(row, col) = static_cast<T>(-1 / diagonal * static_cast<double>(f[k]));
            ++k;
          });
          k = 0;
          Data<T>::for_nodes(args, [&](Index row, Index col) { data.u(row, col) = first[k++]; });
          for (Index t = 0; t < (args.sweeps == 1 ? 11 : 1); ++t) {
            args.backward = t % 2 == 1;
            data.u = swept(args, data);
          }
          std::vector<T> expected;
          Data<T>::for_nodes(args, [&](Index row, Index col) { expected.push_back(data.u(row, col)); });
          CAPTURE(describe(args));
          CHECK(agree(u, expected, on_gpu));
        }
}

TEST_CASE_TEMPLATE("the solver reaches the tolerance, and the solution", T, float, double) {
  Runtime runtime;
  const double tolerance = sizeof(T) == 4 ? 2e-7 : 1e-13;
  for (const auto& shape : std::vector<std::vector<Index>>{{1}, {60}, {40, 31}, {15, 20, 12}})
    for (const wavefront::Direction direction :
         {wavefront::Direction::forward, wavefront::Direction::symmetric}) {
      wavefront::Settings settings;
      settings.tolerance = tolerance;
      settings.sweeps = 5000;
      settings.direction = direction;
      wavefront::Solver<T> solver(runtime, {shape, {}, {}}, settings);
      const Sine sine(shape);
      const std::vector<T> f(sine.f.begin(), sine.f.end()), expected(sine.u.begin(), sine.u.end());
      std::vector<T> u(f.size(), T{0});
      const Report report = solver.solve(f.data(), u.data());
      CAPTURE(shape.size());
      CHECK(report.reason == Reason::solved);
      CHECK(report.residual_history.back() <= tolerance);
      CHECK(report.residual_history.front() == doctest::Approx(1.0));  // u = 0: r = b
      CHECK(largest_difference(u, expected) < 2000 * tolerance);
    }
}

TEST_CASE_TEMPLATE("the scaled residual is [Czapinski 2014] (4.13)", T, float, double) {
  // Two nodes on [0, 3], h = 1, and u = 1, 3 between 5 and 7: A = [-2 1; 1 -2], b = f - [5; 7], r = b - A u.
  Runtime runtime;
  wavefront::Settings settings;
  settings.sweeps = 1;
  wavefront::Solver<T> solver(runtime, {{2}, {3.0}, {{5.0, 7.0}}}, settings);
  std::vector<T> f{T{2}, T{-1}}, u{T{1}, T{3}};
  const Report report = solver.solve(f.data(), u.data());
  const double r0 = -3 - (-2 + 3), r1 = -8 - (1 - 6);
  CHECK(report.residual_history[0] ==
        doctest::Approx(std::hypot(r0, r1) / (3 * std::sqrt(10.0) + std::hypot(3.0, 8.0))).epsilon(1e-6));
}

TEST_CASE("optimal omega converges as theory says") {
  Runtime runtime;
  constexpr Index n = 64;
  wavefront::Settings settings;
  settings.sweeps = 400;
  settings.check_every = 20;
  wavefront::Solver<double> solver(runtime, {{n, n}, {}, {}}, settings);
  const double expected = 2 / (1 + std::sin(std::numbers::pi / (n + 1)));
  CHECK(*solver.settings().omega == doctest::Approx(expected).epsilon(1e-12));
  std::vector<double> u = random_values<double>({n, n}, 9);
  const Report report = solver.solve(nullptr, u.data());
  const std::vector<double>& history = report.residual_history;
  REQUIRE(history.size() == 21);
  // b = 0, so (4.13) is scaled by u itself; u is what falls.
  double norm = 0;
  for (const double value : u) norm += value * value;
  norm = std::sqrt(norm);
  // Double eigenvalues at the best omega: t radius^(t - 1), up to a factor.
  const double decay = std::pow(expected - 1, 399) * 400;
  CHECK(norm < 50 * n * decay);
  CHECK(norm > 1e-4 * decay);
}

TEST_CASE_TEMPLATE("the scale of the problem is of no account", T, float, double) {
  Runtime runtime;
  for (const auto& shape : std::vector<std::vector<Index>>{{50}, {19, 14}, {7, 9, 8}}) {
    std::vector<T> once;
    Report expected;
    for (const int power : sizeof(T) == 4 ? std::vector{0, -80, 80} : std::vector{0, -900, -600, 600, 900}) {
      CAPTURE(power);
      std::vector<T> f = random_values<T>(shape, 3), u = random_values<T>(shape, 4);
      for (std::vector<T>* numbers : {&f, &u})
        for (T& number : *numbers) number = std::ldexp(number, power);
      wavefront::Problem equation{shape, {}, {}};
      for (std::size_t axis = 0; axis < shape.size(); ++axis)
        equation.sides.push_back({std::ldexp(0.5, power), std::ldexp(-1.25, power)});
      wavefront::Settings settings;
      settings.tolerance = 1e-5;
      settings.check_every = 10;
      const Report report = wavefront::Solver<T>(runtime, equation, settings).solve(f.data(), u.data());
      CHECK(report.reason == Reason::solved);
      if (power == 0) {
        once = u;
        expected = report;
        continue;
      }
      CHECK(report.iterations == expected.iterations);
      for (std::size_t k = 0; k < report.residual_history.size(); ++k)
        CHECK(report.residual_history[k] == doctest::Approx(expected.residual_history[k]).epsilon(1e-13));
      for (T& value : u) value = std::ldexp(value, -power);
      CHECK(u == once);
    }
  }
}

TEST_CASE("how a solver stops") {
  Runtime runtime;
  wavefront::Settings settings;
  settings.tolerance = 1e-12;
  settings.sweeps = 10;
  std::vector<double> f(400, 1.0), u(400, 0.0);
  CHECK(wavefront::Solver<double>(runtime, {{20, 20}, {}, {}}, settings).solve(f.data(), u.data()).reason ==
        Reason::iteration_limit);
  f[7] = std::numeric_limits<double>::quiet_NaN();
  CHECK(wavefront::Solver<double>(runtime, {{20, 20}, {}, {}}, settings).solve(f.data(), u.data()).reason ==
        Reason::not_finite);
}

TEST_CASE(
    "residuals by the common loop: taken and looked at when due, told to the observer, who may end it all") {
  Runtime runtime;
  const std::vector<Index> shape{20, 20};
  const std::vector<double> f(400, 1.0);
  std::vector<IterationState> told;
  Index last = std::numeric_limits<Index>::max();
  wavefront::Settings settings;
  settings.tolerance = 1e-8;
  settings.check_every = 7;
  settings.observer = [&](const IterationState& state) {
    told.push_back(state);
    if (state.iteration >= last) throw std::runtime_error("that will do");
  };
  wavefront::Solver<double> solver(runtime, {shape, {}, {}}, settings);
  std::vector<double> u(400, 0.0);
  const Report report = solver.solve(f.data(), u.data());
  CHECK(report.reason == Reason::solved);
  REQUIRE(told.size() == report.residual_history.size());
  for (std::size_t i = 0; i < told.size(); ++i) {
    CHECK(told[i].iteration == static_cast<Index>(7 * i));
    CHECK(told[i].iteration == report.residual_iterations[i]);
    CHECK(told[i].residual == report.residual_history[i]);
    CHECK((told[i].residual <= 1e-8) == (i + 1 == told.size()));  // not a sweep too many
  }
  CHECK(report.iterations == told.back().iteration);

  last = 14;
  const std::vector<double> before(400, 0.25);
  u = before;
  CHECK_THROWS_WITH_AS(solver.solve(f.data(), u.data()), "that will do", std::runtime_error);
  CHECK(u == before);

  settings.tolerance = 1e-30;
  settings.observer = {};
  CHECK(wavefront::Solver<double>(runtime, {shape, {}, {}}, settings).solve(f.data(), u.data()).reason ==
        Reason::stagnation);
}

TEST_CASE("what a solver refuses") {
  Runtime runtime;
  const auto refuses = [&](const wavefront::Problem& equation, auto change) {
    wavefront::Settings settings;
    settings.sweeps = 3;
    change(settings);
    CHECK_THROWS_AS(wavefront::Solver<float>(runtime, equation, settings), Error);
  };
  const auto as_it_is = [](wavefront::Settings&) {};
  refuses({{}, {}, {}}, as_it_is);
  refuses({{2, 2, 2, 2}, {}, {}}, as_it_is);
  refuses({{4, 0}, {}, {}}, as_it_is);
  refuses({{4}, {1.0, 1.0}, {}}, as_it_is);
  refuses({{4}, {-1.0}, {}}, as_it_is);
  refuses({{4}, {}, {{0.0, std::nan("")}}}, as_it_is);
  refuses({{4, 4}, {}, {{0.0, 0.0}}}, as_it_is);
  refuses({{4}, {}, {}}, [](wavefront::Settings& s) { s.omega = 2.0; });
  refuses({{4}, {}, {}}, [](wavefront::Settings& s) { s.omega = 0.0; });
  refuses({{4}, {}, {}}, [](wavefront::Settings& s) { s.omega = std::nan(""); });
  refuses({{4}, {}, {}}, [](wavefront::Settings& s) { s.sweeps = 0; });
  refuses({{4}, {}, {}}, [](wavefront::Settings& s) { s.sweeps = -1; });
  refuses({{4}, {}, {}}, [](wavefront::Settings& s) { s.tolerance = 1.0; });
  refuses({{4}, {}, {}}, [](wavefront::Settings& s) { s.check_every = -1; });
  refuses({{4, 4}, {}, {}},
          [](wavefront::Settings& s) { s.layout = WavefrontLayout{}, s.layout->tile.sweeps = 0; });
}

TEST_CASE("what is submitted at once, for whoever chooses a layout") {
  const auto sweeps = [](Index longest, Index most, double tolerance, Index check_every,
                         wavefront::Direction direction = wavefront::Direction::forward) {
    return wavefront::sweeps_at_once({{longest, 3}, {}, {}}, {.omega = {},
                                                              .sweeps = most,
                                                              .tolerance = tolerance,
                                                              .check_every = check_every,
                                                              .direction = direction,
                                                              .layout = {}})
        .sweeps;
  };
  CHECK(sweeps(400, 70, 0, 0) == 70);
  CHECK(sweeps(400, 70, 0, 30) == 30);
  CHECK(sweeps(400, 0, 1e-6, 0) == 100);
  CHECK(sweeps(400, 70, 1e-6, 0) == 70);
  CHECK(sweeps(10, 0, 1e-6, 0) == 20);
  CHECK(sweeps(400, 70, 0, 0, wavefront::Direction::symmetric) == 1);
  CHECK(sweeps(400, Index{1} << 60, 0, 0) == Index{1} << 28);  // the schedule counts in 32 bits

  const WavefrontArgs args =
      wavefront::sweeps_at_once({{5, 9}, {1.0, 2.0}, {}}, {.omega = {}, .sweeps = 3, .layout = {}});
  CHECK(args.dimensions == 2);
  CHECK(args.nodes[1] == 5);
  CHECK(args.nodes[2] == 9);
  CHECK(args.along[1] == doctest::Approx(0.5 * 36 / (36 + 25)));
  CHECK_THROWS_AS(wavefront::sweeps_at_once({{4, 0}, {}, {}}, {.omega = {}, .sweeps = 3, .layout = {}}),
                  Error);
  CHECK_THROWS_AS(
      wavefront::sweeps_at_once({{Index{1} << 30}, {}, {}}, {.omega = {}, .sweeps = 3, .layout = {}}), Error);
  CHECK_THROWS_AS(wavefront::sweeps_at_once({{4}, {}, {}}, {}), Error);
}

TEST_CASE("a layout larger than the problem is cut to it, and what is told is what is used") {
  Options cpus_only;
  cpus_only.gpus = 0;
  Runtime runtime(cpus_only);
  for (const auto& shape : std::vector<std::vector<Index>>{{1}, {1, 1}, {1, 1, 1}, {6, 5}, {6, 5, 4}}) {
    wavefront::Settings settings;
    settings.sweeps = 3;
    settings.layout = WavefrontLayout{{64, {128, 128, 128}}};
    const wavefront::Solver<double> solver(runtime, {shape, {}, {}}, settings);
    const WavefrontTile tile = solver.settings().layout->tile;
    CHECK(tile.sweeps == 3);
    CHECK(tile.points[3 - shape.size()] == shape[0] + 2);  // with its frame

    settings.layout = {};
    const wavefront::Solver<double> chosen(runtime, {shape, {}, {}}, settings);
    CHECK(chosen.settings().layout->tile.sweeps <= 3);
    CHECK(chosen.settings().layout->tile.points[3 - shape.size()] <= shape[0] + 2);
  }
}

#ifdef ASTERISM_WITH_CUDA

TEST_CASE("gpu: threads and blocks that are not given are chosen; a layout that cannot be is refused") {
  Runtime runtime;
  const std::vector<Index> shape{70, 90};
  const auto solve = [&](const std::optional<WavefrontLayout>& layout) {
    wavefront::Settings settings;
    settings.sweeps = 12;
    settings.layout = layout;
    wavefront::Solver<float> solver(runtime, {shape, {}, {}}, settings);
    CHECK(solver.settings().layout->threads % 32 == 0);
    CHECK(solver.settings().layout->threads > 0);
    CHECK(solver.settings().layout->blocks > 0);
    std::vector<float> u = random_values<float>(shape, 4);
    solver.solve(nullptr, u.data());
    return u;
  };
  const std::vector<float> expected = solve(std::nullopt);
  CHECK(solve(WavefrontLayout{{5, {1, 8, 32}}}) == expected);
  CHECK(solve(WavefrontLayout{{5, {1, 8, 32}}, 64}) == expected);
  CHECK(solve(WavefrontLayout{{1, {1, 1, 1}}, 32}) == expected);
  CHECK(solve(WavefrontLayout{{16, {1, 72, 92}}, 64}) == expected);  // larger than the grid
  for (const WavefrontLayout& bad :
       {WavefrontLayout{{0, {1, 8, 32}}}, WavefrontLayout{{4, {1, 0, 32}}}, WavefrontLayout{{4, {1, 8, -1}}},
        WavefrontLayout{{4, {1, 8, 32}}, 100}, WavefrontLayout{{4, {1, 8, 32}}, 2048},
        WavefrontLayout{{4, {1, 2000, 2000}}}, WavefrontLayout{{4, {1, 8, Index{1} << 40}}},
        WavefrontLayout{{4, {1, 8, 32}}, 64, 1'000'000}, WavefrontLayout{{4, {1, 8, 32}}, 64, -1}})
    CHECK_THROWS_AS(solve(bad), Error);
}

TEST_CASE("gpu: a task that runs for longer than the watchdog is patient is no stall") {
  Options options;
  options.stall_seconds = 0.2;
  Runtime runtime(options);
  const std::vector<Index> shape{1023, 1023};
  wavefront::Settings settings;
  settings.sweeps = 300'000;  // a second on an H200, in one task
  wavefront::Solver<float> solver(runtime, {shape, {}, {}}, settings);
  std::vector<float> u = random_values<float>(shape, 4);
  CHECK(solver.solve(nullptr, u.data()).iterations == settings.sweeps);
}

#endif
