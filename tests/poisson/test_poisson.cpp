#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "poisson_solves.hpp"

using namespace asterism;
using namespace asterism::test;
using grid::Axis;
using grid::Model;
using poisson::Centering;
using poisson::Condition;
using poisson::Ends;
using poisson::Problem;

namespace {

constexpr double pi = std::numbers::pi;

/// f by its value at (plane of the whole batch, column).
template <class T>
auto from_values(const std::function<double(Index, Index)>& value) {
  return [value](const poisson::SlabbedProblem<T>& solver, Index c, Tile<T>& f) {
    const HostView<T> view(f, HostView<T>::Access::write);
    for (Index i = 0; i < view.rows(); ++i)
      for (Index j = 0; j < view.cols(); ++j) view(i, j) = static_cast<T>(value(solver.first_plane(c) + i, j));
  };
}

/// ||a - b||_2 / ||b||_2, where a holds numbers of b from `first` on.
template <class A, class B>
double distance(const std::vector<A>& a, const std::vector<B>& b, Index first = 0) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double other = b[static_cast<std::size_t>(first) + i];
    difference += (static_cast<double>(a[i]) - other) * (static_cast<double>(a[i]) - other);
    norm += other * other;
  }
  return a.empty() ? 0 : std::sqrt(difference / norm);
}

/// Every combination of conditions, but on several ranks and with a disk only some of them: what these add does not depend
/// on the combination within the planes.
std::vector<Problem> combinations(const std::vector<Index>& shape) {
  const std::vector<Problem> all = all_combinations(shape);
  if (!shape_is("mpi") && !shape_is("disk")) return all;
  std::vector<Problem> some;
  for (std::size_t i = 0; i < all.size(); i += 7) some.push_back(all[i]);
  return some;
}

/// Coordinates that are closer at one end, over [0.5, 0.5 + length], as many as the slowest axis of the problem wants.
std::vector<double> stretched(const Problem& problem, double length) {
  const poisson::Grid grid = poisson::discretise(problem);
  const Index cells = grid.slow.cells();
  std::vector<double> coordinates;
  for (Index i = 0; i <= cells; ++i) {
    const double s = static_cast<double>(i) / static_cast<double>(cells);
    coordinates.push_back(0.5 + length * (s + 0.25 * s * (1 - s)));
  }
  return coordinates;
}

}  // namespace

TEST_CASE_TEMPLATE("every combination of conditions, centering and dimension: the residual is rounding" *
                       quick_enough(),
                   T, float, double) {
  Runtime runtime;
  int cases = 0;
  for (const std::vector<Index>& shape : {std::vector<Index>{13, 9}, {7, 6, 5}, {6, 9, 8}})
    for (Problem problem : combinations(shape))
      for (const bool special : {false, true}) {
        if (special) {  // lambda and stretching, too
          problem.lambda = -2.75;
          problem.coordinates = stretched(problem, problem.lengths[0]);
        }
        CAPTURE(description(problem));
        const bool streaming = cases++ % 2 == 0;
        const Solved<T> solved =
            solve_model<T>(runtime, problem, Model::random,
                           {.mode = streaming ? poisson::Mode::streaming : poisson::Mode::incore,
                            .slab_planes = std::vector<Index>{0, 1, 3, 4}[static_cast<std::size_t>(cases) % 4]});
        CHECK(solved.check.scaled_residual <= 2 * eps<T>);
        if (solved.check.error) CHECK(*solved.check.error < 1e4 * eps<T>);
      }
  if (!shape_is("mpi") && !shape_is("disk")) CHECK(cases >= 150);
}

TEST_CASE("every combination: second order convergence to the solution of the differential equation") {
  Runtime runtime;
  for (const std::size_t axes : {2, 3})
    for (const bool is_stretched : {false, true})
      for (Problem problem : combinations(std::vector<Index>(axes, 4))) {
        if (axes == 3 && (is_stretched || (letters(problem.ends).substr(2, 2) != letters(problem.ends).substr(4, 2))))
          continue;  // y and x go through the same code
        problem.lambda = letters(problem.ends).find('D') == std::string::npos ? 0 : -1.5;
        double before = 0;
        for (const Index n : {axes == 2 ? 24 : 12, axes == 2 ? 48 : 24}) {
          problem.shape.assign(axes, n);
          problem.coordinates.clear();
          if (is_stretched) problem.coordinates = stretched(problem, problem.lengths[0]);
          CAPTURE(description(problem));
          const double error = solve_model<double>(runtime, problem, Model::sine).check.error.value();
          CHECK(error < 0.1);
          if (before > 0) CHECK(std::log2(before / error) > 1.8);
          before = error;
        }
      }
}

namespace {

/// exp(a.x) and its derivatives on the box [0, lengths]: a problem with given values on every side, as arrays.
struct Exponential {
  std::vector<double> rates;

  [[nodiscard]] double operator()(const std::vector<double>& x) const {
    double sum = 0;
    for (std::size_t a = 0; a < rates.size(); ++a) sum += rates[a] * x[a];
    return std::exp(sum);
  }
  [[nodiscard]] double eigenvalue(double lambda) const {
    double sum = lambda;
    for (const double rate : rates) sum += rate * rate;
    return sum;
  }
};

/// Root mean square.
double error_of(Runtime& runtime, Problem problem, const Exponential& exact) {
  const poisson::Grid grid = poisson::discretise(problem);
  std::vector<Axis> axes{grid.slow};
  if (problem.shape.size() == 3) axes.push_back(grid.a.y);
  axes.push_back(grid.a.x);
  const auto position = [&](std::size_t a, Index i) {
    return a == 0 ? grid.rows[static_cast<std::size_t>(i)].position : axes[a].fraction(i) * axes[a].length;
  };
  for (std::size_t a = 0; a < axes.size(); ++a)
    for (const bool upper : {false, true}) {
      poisson::End& end = upper ? problem.ends[a].upper : problem.ends[a].lower;
      if (end.condition == Condition::periodic) continue;
      std::vector<Index> extents = problem.shape;
      extents[a] = 1;
      Index nodes = 1;
      for (const Index n : extents) nodes *= n;
      for (Index node = 0; node < nodes; ++node) {
        std::vector<double> x(axes.size());
        Index rest = node;
        for (std::size_t b = axes.size(); b-- > 0;) {
          x[b] = position(b, rest % extents[b]);
          rest /= extents[b];
        }
        x[a] = upper ? axes[a].length : 0;
        end.values.push_back(exact(x) * (end.condition == Condition::neumann ? exact.rates[a] : 1));
      }
    }
  const Index nx = grid.a.x.n;
  const auto at = [&](Index plane, Index column) {
    std::vector<double> x{position(0, plane)};
    if (axes.size() == 3) x.push_back(position(1, column / nx));
    x.push_back(position(axes.size() - 1, column % nx));
    return exact(x);
  };
  const double factor = exact.eigenvalue(problem.lambda);
  const Solved<double> solved = solve_from<double>(
      runtime, problem, {.slab_planes = 5},
      from_values<double>([&](Index plane, Index column) { return factor * at(plane, column); }));
  CHECK(solved.check.scaled_residual <= 2 * eps<double>);
  double error2[] = {0};
  for (std::size_t i = 0; i < solved.u.size(); ++i) {
    const Index node = static_cast<Index>(i);
    error2[0] += std::pow(solved.u[i] - at(solved.first_plane + node / grid.columns(), node % grid.columns()), 2);
  }
  sum_over_ranks(runtime, error2, 1);
  return std::sqrt(error2[0] / static_cast<double>(grid.unknowns()));
}

}  // namespace

TEST_CASE("given values on all sides, as arrays: second order" * quick_enough()) {
  Runtime runtime;
  for (const std::size_t axes : {2, 3})
    for (const bool is_stretched : {false, true})
      for (Problem problem : combinations(std::vector<Index>(axes, 4))) {
        if (letters(problem.ends).find('P') != std::string::npos) continue;
        problem.lambda = -0.5;
        const Exponential exact{axes == 2 ? std::vector<double>{0.7, -0.4} : std::vector<double>{0.7, -0.4, 0.5}};
        double before = 0;
        for (const Index n : {axes == 2 ? 20 : 14, axes == 2 ? 40 : 28}) {
          problem.shape.assign(axes, n);
          problem.shape.back() += 3;
          problem.coordinates.clear();
          if (is_stretched) {
            problem.coordinates = stretched(problem, problem.lengths[0]);
            for (double& z : problem.coordinates) z -= 0.5;
          }
          CAPTURE(description(problem));
          const double error = error_of(runtime, problem, exact);
          if (before > 0) CHECK(std::log2(before / error) > 1.6);
          before = error;
        }
      }
}

TEST_CASE("given values as constants: linear functions are exact") {
  Runtime runtime;
  for (const Centering centering : {Centering::node, Centering::cell})
    for (const bool is_stretched : {false, true}) {
      // u = 3 + 2 z - x on [0, 2] x [0, 1]: derivatives at z = 2 and x = 0, a value at z = 0; x = 1 wants an array.
      Problem problem{.shape = {14, 11}, .lengths = {2, 1}, .centering = centering};
      problem.ends = {{{Condition::neumann, 2}, {Condition::neumann, 2}}, {{Condition::neumann, -1}, {}}};
      if (is_stretched) {
        problem.coordinates = stretched(problem, 2);
        for (double& z : problem.coordinates) z -= 0.5;
      }
      const poisson::Grid grid = poisson::discretise(problem);
      for (const grid::AxisRow& row : grid.rows)
        problem.ends[1].upper.values.push_back(3 + 2 * row.position - 1);
      CAPTURE(description(problem));
      const Solved<double> solved =
          solve_from<double>(runtime, problem, {.slab_planes = 4}, from_values<double>([](Index, Index) { return 0.0; }));
      for (std::size_t i = 0; i < solved.u.size(); ++i) {
        const Index node = static_cast<Index>(i), plane = solved.first_plane + node / 11;
        const double x = grid.a.x.fraction(node % 11), z = grid.rows[static_cast<std::size_t>(plane)].position;
        CHECK(solved.u[i] == doctest::Approx(3 + 2 * z - x).epsilon(1e-12));
      }
    }
}

TEST_CASE_TEMPLATE("scaled residual of both models, any extents, any slabs, both modes" * quick_enough(), T,
                   float, double) {
  Runtime runtime;
  const std::vector<Index> grids[] = {{1, 1},   {1, 2},   {2, 1},   {1, 31},  {31, 1},   {37, 31},   {64, 63}, {97, 101},
                                      {101, 256}, {127, 508}, {1, 1, 1}, {1, 5, 1}, {2, 1, 3}, {5, 1, 1}, {33, 7, 16}, {40, 31, 33}};
  for (const std::vector<Index>& shape : grids)
    for (const Model model : {Model::sine, Model::random})
      for (const poisson::Mode mode : {poisson::Mode::incore, poisson::Mode::streaming})
        for (const Index slab : {Index{0}, Index{1}, (shape[0] + 1) / 2, Index{32}, shape[0]}) {
          CAPTURE(poisson::to_string(shape));
          CAPTURE(slab);
          const Solved<T> solved = solve_model<T>(runtime, {.shape = shape}, model, {.mode = mode, .slab_planes = slab});
          CHECK(solved.check.scaled_residual <= 2 * eps<T>);
          // An odd number of columns has a node on a zero of the sine model: with one column u is zero everywhere.
          if (model == Model::random) CHECK(solved.check.error.value() < 1e4 * eps<T>);
          if (slab > 0) CHECK(solved.layout.slab_planes <= slab);
        }
}

namespace {

/// The slow, obvious twin where u = 0 on the border: sums of sines by their definition, one tridiagonal system after the
/// other, in long double.
std::vector<double> solve_slowly(const Problem& problem, const std::vector<double>& f) {
  using Long = long double;
  const Index m = problem.shape[0], n = problem.shape[1];
  const auto at = [n](Index i, Index j) { return static_cast<std::size_t>(i * n + j); };
  const auto sine = [n](Index j, Index k) {
    return std::sin(std::numbers::pi_v<Long> * static_cast<Long>((j + 1) * (k + 1) % (2 * (n + 1))) /
                    static_cast<Long>(n + 1));
  };
  std::vector<Long> modes(f.size());
  for (Index i = 0; i < m; ++i)
    for (Index k = 0; k < n; ++k)
      for (Index j = 0; j < n; ++j) modes[at(i, k)] += 2 / static_cast<Long>(n + 1) * sine(j, k) * f[at(i, j)];
  const Long hx = static_cast<Long>(problem.lengths[1]) / static_cast<Long>(n + 1),
             hy = static_cast<Long>(problem.lengths[0]) / static_cast<Long>(m + 1);
  for (Index k = 0; k < n; ++k) {
    const Long s = std::sin(std::numbers::pi_v<Long> * static_cast<Long>(k + 1) / (2 * static_cast<Long>(n + 1)));
    const Long d = 2 + 4 * hy * hy / (hx * hx) * s * s;
    std::vector<Long> pivot(static_cast<std::size_t>(m));
    for (Index i = 0; i < m; ++i) {  // Thomas on v[i-1] - d v[i] + v[i+1] = hy^2 f
      const Long before = i == 0 ? 0 : pivot[static_cast<std::size_t>(i - 1)];
      pivot[static_cast<std::size_t>(i)] = 1 / (-d - before);
      modes[at(i, k)] = (hy * hy * modes[at(i, k)] - (i == 0 ? 0 : modes[at(i - 1, k)])) *
                        pivot[static_cast<std::size_t>(i)];
    }
    for (Index i = m - 2; i >= 0; --i) modes[at(i, k)] -= pivot[static_cast<std::size_t>(i)] * modes[at(i + 1, k)];
  }
  std::vector<double> u(f.size());
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) {
      Long sum = 0;
      for (Index k = 0; k < n; ++k) sum += sine(j, k) * modes[at(i, k)];
      u[at(i, j)] = static_cast<double>(sum);
    }
  return u;
}

}  // namespace

TEST_CASE_TEMPLATE("the solution is the slow twin's", T, float, double) {
  Runtime runtime;
  for (const std::vector<Index>& shape : std::vector<std::vector<Index>>{{1, 1}, {1, 9}, {9, 1}, {17, 12}, {40, 33}}) {
    const Problem problem{.shape = shape, .lengths = {0.5, 3}};
    std::vector<double> f(static_cast<std::size_t>(shape[0] * shape[1]));
    for (std::size_t i = 0; i < f.size(); ++i) f[i] = std::cos(static_cast<double>(i * i % 89)) + 0.3;
    const std::vector<double> expected = solve_slowly(problem, f);
    const poisson::Grid grid = poisson::discretise(problem);
    const auto source =
        from_values<T>([&](Index i, Index j) { return f[static_cast<std::size_t>(i * grid.columns() + j)]; });
    for (const Index slab : {Index{1}, Index{7}, grid.planes}) {
      const Solved<T> solved = solve_from<T>(runtime, problem, {.slab_planes = slab}, source);
      CHECK(distance(solved.u, expected, solved.first_plane * grid.columns()) < 100 * eps<T>);
    }
  }
}

TEST_CASE_TEMPLATE("any cut into slabs and either mode give the same solution to rounding", T, float, double) {
  Runtime runtime;
  const auto check = [&](const Problem& problem, std::vector<Index> slabs, double bound) {
    const Index planes = problem.shape[0];
    const Solved<T> whole = solve_model<T>(runtime, problem, Model::random, {.slab_planes = planes});
    slabs.insert(slabs.end(), {1, 2, 31, 32, 33, 64, planes / 2, planes / 2 + 1, planes - 1});
    for (const poisson::Mode mode : {poisson::Mode::incore, poisson::Mode::streaming})
      for (const Index slab : slabs) {
        const Solved<T> cut = solve_model<T>(runtime, problem, Model::random, {.mode = mode, .slab_planes = slab});
        CHECK(cut.layout.slabs == (planes + cut.layout.slab_planes - 1) / cut.layout.slab_planes);
        if (runtime.ranks() == 1) CHECK(distance(cut.u, whole.u) < bound * eps<T>);
        CHECK(cut.check.scaled_residual <= 2 * eps<T>);
      }
  };
  check({.shape = {301, 255}}, {100}, 80);  // up to 61 where cuFFT transforms
  // Where fewer ends are held the smooth modes are the larger, and so is what rounding leaves in them: about 2 n.
  for (const Ends& ends : all_ends) check({.shape = {151, 125}, .ends = {ends, all_ends[1]}}, {}, 300);
}

TEST_CASE("leading extents of 1 go behind the first axis that is longer, with all that belongs to the axes") {
  const Problem thin{.shape = {1, 1, 9}, .lengths = {2, 3, 5}, .ends = {all_ends[0], all_ends[1], all_ends[3]}};
  const Problem turned = poisson::with_planes_to_cut(thin);
  CHECK(turned.shape == std::vector<Index>{9, 1, 1});
  CHECK(turned.lengths == std::vector<double>{5, 2, 3});
  CHECK(letters(turned.ends) == letters({all_ends[3], all_ends[0], all_ends[1]}));
  CHECK(poisson::with_planes_to_cut({.shape = {1, 7, 9}}).shape == std::vector<Index>{7, 1, 9});
  CHECK(poisson::with_planes_to_cut({.shape = {7, 1, 9}}).shape == std::vector<Index>{7, 1, 9});
  CHECK(poisson::with_planes_to_cut({.shape = {1, 1}}).shape == std::vector<Index>{1, 1});
  CHECK(poisson::with_planes_to_cut({.shape = {1, 9}, .coordinates = {0, 1, 3}}).shape == std::vector<Index>{1, 9});
  const Problem unsound{.shape = {1, 9}, .ends = {{}, {{Condition::periodic}, {Condition::neumann}}}};
  CHECK_THROWS_WITH_AS(poisson::discretise(unsound), doctest::Contains("x axis"), Error);
}

TEST_CASE("ranks share the planes, and every plane once") {
  Runtime runtime;
  for (const Index planes : {2, 3, 4, 5, 17, 64})
    for (const Index batch : {1, 3}) {
      poisson::Solver<double> solver(runtime, {.shape = {planes, 8}, .batch = batch});
      double mine[] = {static_cast<double>(solver.plane_count())};
      sum_over_ranks(runtime, mine, 1);
      CHECK(mine[0] == static_cast<double>(batch * planes));
      CHECK(solver.first_plane() + solver.plane_count() <= batch * planes);
    }
}

TEST_CASE("ranks with unlike cores and memories agree on the slabs" * doctest::skip(!shape_is("mpi"))) {
  const char* const size = std::getenv("OMPI_COMM_WORLD_SIZE");
  const int launched = size != nullptr ? std::atoi(size) : 1;
  REQUIRE(launched > 1);
  const bool last = launched_rank() == launched - 1;
  Options options;
  options.cpus = last ? 2 : 1;
  if (last) {
    options.cpu_memory = std::size_t{20} << 20;
    options.spill = "unlike-spill";
    std::filesystem::create_directory(options.spill);
  }
  Runtime runtime(options);
  const poisson::Problem problem{.shape = {Index{1100} * runtime.ranks(), 2000}};
  const auto solved = solve_model<double>(runtime, problem, grid::Model::random);
  CHECK(solved.layout.mode == poisson::Mode::streaming);  // the last rank has to, so all do
  CHECK(solved.check.scaled_residual < 4 * eps<double>);
  double scratch = static_cast<double>(solved.layout.scratch), sum = scratch;
  sum_over_ranks(runtime, &sum, 1);
  CHECK(sum == runtime.ranks() * scratch);

  const poisson::Problem other{.shape = {40, last ? 31 : 30}};
  const std::string rank = std::to_string(launched - 1);
  CHECK_THROWS_WITH_AS(poisson::Solver<double>(runtime, other),
                       ("rank " + rank + " was given other things than rank 0: \"grid: 40 x 31\" for " +
                        "\"grid: 40 x 30\"; start all ranks alike")
                           .c_str(),
                       Error);
}

TEST_CASE("a batch is solved as its problems are one by one") {
  Runtime runtime;
  for (const Ends& ends : {all_ends[0], all_ends[3], all_ends[4]}) {
    Problem problem{.shape = {17, 6, 8}, .ends = {ends, all_ends[3], all_ends[4]}, .batch = 3};
    for (const Index slab : {0, 1, 5, 17}) {
      const Solved<double> together = solve_model<double>(runtime, problem, Model::random, {.slab_planes = slab});
      CHECK(together.check.scaled_residual <= 2 * eps<double>);
      if (runtime.ranks() > 1) continue;
      Problem one = problem;
      one.batch = 1;
      for (Index b = 0; b < 3; ++b) {
        const Known<double> known{Model::random, 7 + static_cast<std::uint64_t>(b)};
        const Solved<double> alone = solve_from<double>(
            runtime, one, {.slab_planes = 4},
            [&](const poisson::SlabbedProblem<double>& solver, Index c, Tile<double>& f) { solver.fill(c, f, known); }, known);
        CHECK(distance(alone.u, together.u, b * 17 * 48) < 1e-13);
      }
    }
  }
}

TEST_CASE_TEMPLATE("no end held: the mean of f must vanish, that of u does", T, float, double) {
  Runtime runtime;
  for (const bool periodic : {false, true})
    for (const Centering centering : {Centering::node, Centering::cell})
      for (const poisson::Mode mode : {poisson::Mode::incore, poisson::Mode::streaming}) {
        const Ends ends = periodic ? all_ends[4] : all_ends[3];
        const Problem problem{.shape = {21, 5, 12}, .centering = centering, .ends = {ends, ends, all_ends[3]}};
        CAPTURE(description(problem));
        const poisson::Grid grid = poisson::discretise(problem);
        const Index columns = grid.columns();
        const auto weight = [&](Index node) {
          const Index plane = node / columns, y = node % columns / 12, x = node % 12;
          return grid.rows[static_cast<std::size_t>(plane)].width * grid::relative_width(grid.a.y, y) *
                 grid::relative_width(grid.a.x, x);
        };
        double sum = 0, measure = 0;
        const auto wave = [](Index node) { return std::cos(static_cast<double>(node * node % 97)); };
        for (Index node = 0; node < 21 * columns; ++node) sum += weight(node) * wave(node), measure += weight(node);
        CHECK(measure == doctest::Approx(grid.measure()));
        const auto f = [&](double shift) {
          return from_values<T>([=](Index plane, Index column) { return wave(plane * columns + column) + shift; });
        };
        const poisson::Settings settings{.mode = mode, .slab_planes = 6};
        const double mean = sum / measure;
        CHECK_THROWS_WITH_AS(solve_from<T>(runtime, problem, settings, f(0.25 - mean)), doctest::Contains("the mean of f is 0.25"),
                             Error);
        poisson::Settings project = settings;
        project.mean = poisson::Mean::project;
        const Solved<T> projected = solve_from<T>(runtime, problem, project, f(5));
        const Solved<T> balanced = solve_from<T>(runtime, problem, settings, f(-mean));
        CHECK(balanced.check.scaled_residual <= 2 * eps<T>);
        double difference[] = {0, 0, 0};  // squared; of u; the mean of u
        for (std::size_t i = 0; i < balanced.u.size(); ++i) {
          difference[0] += std::pow(static_cast<double>(projected.u[i]) - balanced.u[i], 2);
          difference[1] += std::pow(static_cast<double>(balanced.u[i]), 2);
          difference[2] += weight(balanced.first_plane * columns + static_cast<Index>(i)) * balanced.u[i] / measure;
        }
        sum_over_ranks(runtime, difference, 3);
        CHECK(std::sqrt(difference[0] / difference[1]) < 300 * eps<T>);
        CHECK(std::abs(difference[2]) < 10 * eps<T> * std::sqrt(difference[1]));
        // Numbers that were rounded to float32 once have a mean that vanishes no better.
        poisson::Settings coarse = settings;
        coarse.source_rounding = eps<float>;
        if (sizeof(T) == 8) CHECK_THROWS_AS(solve_from<T>(runtime, problem, settings, f(1e-8 - mean)), Error);
        CHECK(solve_from<T>(runtime, problem, coarse, f(1e-8 - mean)).check.scaled_residual <= 2 * eps<T>);
        CHECK_THROWS_AS(solve_from<T>(runtime, problem, coarse, f(1e-4 - mean)), Error);
        // A random u is found but for its mean, in every problem of a batch.
        Problem batch = problem;
        batch.batch = 2;
        const poisson::Check random = solve_model<T>(runtime, batch, Model::random, settings).check;
        CHECK(random.error.value_or(1) < 300 * eps<T>);
      }
}

TEST_CASE("lambda of either sign, but no eigenvalue") {
  Runtime runtime;
  for (const Ends& slow : all_ends)
    for (const Ends& fast : all_ends) {
      Problem problem{.shape = {19, 14}, .ends = {slow, fast}};
      const poisson::Grid grid = poisson::discretise(problem);
      for (const double lambda : {-1e6, -1e-9, 7.1, 250.3}) {
        problem.lambda = lambda;
        CAPTURE(description(problem));
        const Solved<double> solved = solve_model<double>(runtime, problem, Model::random, {.slab_planes = 5});
        CHECK(solved.check.scaled_residual <= 2 * eps<double>);
        if (const auto condition = poisson::discretise(problem).condition())
          CHECK(*solved.check.error <= 100 * eps<double> * *condition);
      }
      problem.lambda = grid::eigenvalue(grid.slow, 3) + grid::eigenvalue(grid.a.x, 2);
      CHECK_THROWS_WITH_AS(poisson::Solver<double>(runtime, problem), doctest::Contains("is an eigenvalue"), Error);
    }
}

// The flux of a wave that is longer than the axis is next to nothing, but not that between sources of both signs.
TEST_CASE("waves longer than the axis, from a rough f: the residual is rounding") {
  Runtime runtime;
  const auto rough = from_values<double>([](Index plane, Index) { return plane % 2 == 0 ? 1.0 : -1.0; });
  const auto check = [&](Index rows, const Ends& slow, double lambda, Index slab_planes) {
    const Problem problem{
        .shape = {rows, 2}, .centering = Centering::cell, .ends = {slow, all_ends[3]}, .lambda = lambda};
    CAPTURE(description(problem));
    CAPTURE(slab_planes);
    const Solved<double> solved = solve_from<double>(runtime, problem, {.slab_planes = slab_planes}, rough);
    CHECK(solved.check.scaled_residual <= 4 * eps<double>);
  };
  for (const Ends& slow : all_ends)
    for (const double lambda : {0.3, 0.01})
      for (const Index slab_planes : {1, 7, 200}) check(200, slow, lambda, slab_planes);
  // With z = sqrt(link w) every cut breaks a link, the more the longer the axis: 15 and 25 eps. On a GPU, with a response
  // that is not joined from the blocks: 47 eps.
  for (const Index rows : {2000, 20000})
    for (const Ends& slow : {all_ends[0], all_ends[3], all_ends[4]})
      for (const Index slab_planes : {100, 1000})
        for (const double lambda : {45.0, 0.01}) check(rows, slow, lambda, slab_planes);
}

// The node's links to itself once counted, and cancelled in rounding only: 29 eps.
TEST_CASE("a single node that is its own neighbour: u = f / lambda" * doctest::skip(shape_is("disk"))) {
  Runtime runtime;
  const auto seven = from_values<double>([](Index, Index) { return 7.0; });
  for (const Centering centering : {Centering::node, Centering::cell})
    for (const double lambda : {-2.5, -1e-9, 0.00336697389872501, 1e-9, 3e3})
      for (const std::vector<double>& coordinates : std::vector<std::vector<double>>{{}, {-3.7, -2.511934478223592}}) {
        const Problem problem{.shape = {1, 1},
                              .centering = centering,
                              .ends = {all_ends[4], all_ends[4]},
                              .lambda = lambda,
                              .coordinates = coordinates};
        CAPTURE(description(problem));
        const Solved<double> solved = solve_from<double>(runtime, problem, {}, seven);
        CHECK(solved.u.size() == (runtime.rank() == 0 ? 1 : 0));
        for (const double u : solved.u) CHECK(u == doctest::Approx(7 / lambda).epsilon(4 * eps<double>));
      }
}

TEST_CASE("the condition of an indefinite problem is that of its nearest eigenvalue") {
  // On two nodes with spacings of 1/3 the second difference has the eigenvalues 9 and 27, on one node 8.
  Problem problem{.shape = {2, 1}, .lambda = 18};
  CHECK(poisson::discretise(problem).distance_from_spectrum == doctest::Approx(1));
  problem.lambda = 34.9999;
  const poisson::Grid near = poisson::discretise(problem);
  CHECK(near.distance_from_spectrum == doctest::Approx(1e-4).epsilon(1e-9));
  CHECK(*near.condition() == doctest::Approx(near.operator_norm() / 1e-4).epsilon(1e-9));
  // The same by counting, as for any coordinates.
  problem.coordinates = {0, 1. / 3, 2. / 3, 1};
  CHECK(poisson::discretise(problem).distance_from_spectrum >= 1e-4 * (1 - 1e-9));
  CHECK(poisson::discretise(problem).distance_from_spectrum <= 2e-4);
  problem.lambda = -18;
  CHECK_FALSE(poisson::discretise(problem).condition().has_value());
}

// In float32 the smooth modes of a long line have d_k = 2 + 4e-9, which float32 cannot tell from 2: a solver that
// forms d_k there returns them wrong by a factor while its residual looks perfect.
TEST_CASE("float32 keeps the smooth modes of very long lines" * doctest::skip(shape_is("disk")) *
          quick_enough()) {
  Runtime runtime;
  const Problem problem{.shape = {500, 49151}};
  const poisson::Grid grid = poisson::discretise(problem);
  const double eigenvalue = -grid::eigenvalue(grid.slow, 0) - grid::eigenvalue(grid.a.x, 0);
  const auto exact = [&](Index i, Index j) {
    return std::sin(pi * grid.slow.fraction(i)) * std::sin(pi * grid.a.x.fraction(j));
  };
  const Solved<float> solved = solve_from<float>(
      runtime, problem, {}, from_values<float>([&](Index i, Index j) { return eigenvalue * exact(i, j); }));
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < solved.u.size(); ++i) {
    const Index node = static_cast<Index>(i);
    const double expected = exact(solved.first_plane + node / 49151, node % 49151);
    error += std::pow(solved.u[i] - expected, 2);
    norm += expected * expected;
  }
  CHECK(std::sqrt(error / norm) < 1e-6);
}

TEST_CASE("one solver, many right-hand sides: linear, and zero for zero" * doctest::skip(shape_is("disk"))) {
  check_many_right_hand_sides<poisson::Solver>({.shape = {50, 40}, .lengths = {2, 1}});
}

TEST_CASE_TEMPLATE("boxes of very unequal sides", T, float, double) {
  Runtime runtime;
  for (const std::vector<double>& lengths : std::vector<std::vector<double>>{
           {1e-4, 1}, {1, 1e-4}, {1e6, 1}, {1, 1e6}, {3e-7, 2e-7}, {1, 1e-3, 1e3}, {1e3, 1, 1e-3}}) {
    Problem problem{.shape = {65, 48}, .lengths = lengths};
    if (lengths.size() == 3) problem.shape = {33, 16, 20};
    const Solved<T> solved = solve_model<T>(runtime, problem, Model::random, {.slab_planes = 16});
    CHECK(solved.check.scaled_residual <= 2 * eps<T>);
  }
}

TEST_CASE("tiles of another cut are refused") { check_tiles_of_another_cut<poisson::Solver>(); }

TEST_CASE("solve in the caller's own memory") {
  Runtime runtime;
  std::vector<double> u(33 * 65);
  const Problem problem{.shape = {33, 65}};
  if (runtime.ranks() > 1) {
    CHECK_THROWS_AS(poisson::solve(runtime, problem, u.data()), Error);
    return;
  }
  const poisson::Grid grid = poisson::discretise(problem);
  const auto exact = [&](Index i, Index j) { return grid.slow.fraction(i) * (1 - grid.slow.fraction(i)) * std::sin(pi * grid.a.x.fraction(j)); };
  const double x_part = grid::eigenvalue(grid.a.x, 0);
  for (Index i = 0; i < 33; ++i)  // second differences of a parabola are exact
    for (Index j = 0; j < 65; ++j)
      u[static_cast<std::size_t>(i * 65 + j)] = -2 * std::sin(pi * grid.a.x.fraction(j)) - x_part * exact(i, j);
  poisson::solve(runtime, problem, u.data());
  for (Index i = 0; i < 33; ++i)
    for (Index j = 0; j < 65; ++j) CHECK(u[static_cast<std::size_t>(i * 65 + j)] == doctest::Approx(exact(i, j)).epsilon(1e-10));
}

TEST_CASE("not a number in f is a result, not a crash") {
  Runtime runtime;
  for (const Ends& ends : {all_ends[0], all_ends[3]}) {
    const Problem problem{.shape = {20, 20}, .ends = {ends, ends}};
    const Solved<double> solved =
        solve_from<double>(runtime, problem, {.slab_planes = 4},
                           from_values<double>([](Index, Index) { return std::numeric_limits<double>::quiet_NaN(); }));
    CHECK(std::isnan(solved.check.scaled_residual));
  }
}

TEST_CASE("the scale of f is of no account") {
  check_scaling<double, poisson::Solver>({-900, -600, 600, 900});
  check_scaling<float, poisson::Solver>({-80, 80});
}

TEST_CASE_TEMPLATE("a solve is judged by its residual", T, float, double) { check_judgement<T, poisson::Solver>(); }

TEST_CASE("what crosses between ranks is what the slabs show" * doctest::skip(!shape_is("mpi"))) {
  Runtime runtime;
  const Problem problem{.shape = {256, 16, 16}};
  const Solved<double> solved = solve_model<double>(runtime, problem, Model::random, {.slab_planes = 16});
  double bytes[] = {static_cast<double>(solved.report.traffic.between_ranks)};
  sum_over_ranks(runtime, bytes, 1);
  // Between two ranks: the prefix (3 planes) one way, the first unknown (1) the other.
  CHECK(bytes[0] == static_cast<double>((runtime.ranks() - 1) * 4 * 256 * 8));
}

TEST_CASE("what cannot be is said before anything runs") {
  Runtime runtime;
  const auto message = [&](const Problem& problem, const poisson::Settings& settings = {}) -> std::string {
    try {
      const poisson::Solver<double> solver(runtime, problem, settings);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const Ends neumann = all_ends[3];
  CHECK(message({.shape = {0, 5}}) == "grid is 0 x 5: every extent must be at least 1");
  CHECK(message({.shape = {5, -1, 2}}) == "grid is 5 x -1 x 2: every extent must be at least 1");
  CHECK(message({.shape = {5}}) == "the grid has 1 axes: problems in 2 and 3 dimensions are solved");
  CHECK(message({.shape = {5, 5}, .lengths = {0, 1}}) == "lengths are 0 x 1: all must be positive and finite");
  CHECK(message({.shape = {5, 5}, .lengths = {1}}) == "1 lengths for 2 axes: give one for each");
  CHECK(message({.shape = {5, 5}, .lengths = {1, std::numeric_limits<double>::infinity()}}) ==
        "lengths are 1 x inf: all must be positive and finite");
  CHECK(message({.shape = {5, 5}}, {.slab_planes = -3}) == "slabs of -3 planes: a slab needs at least 1");
  CHECK(message({.shape = {5, 5}, .batch = 0}) == "a batch of 0 problems: it must have at least 1");
  CHECK(message({.shape = {5, 5}, .ends = {neumann}}) == "conditions for 1 of 2 axes: give them for each");
  CHECK(message({.shape = {5, 5}, .ends = {neumann, {{Condition::periodic}, {Condition::neumann}}}}) ==
        "x axis: periodic at one end, Neumann at the other; periodic is for both ends or none");
  CHECK(message({.shape = {5, 1}, .ends = {neumann, neumann}}).starts_with("x axis: one node, Neumann at both ends"));
  CHECK(message({.shape = {5, 5}, .ends = {{{Condition::dirichlet, 0, {1, 2, 3}}, {}}, neumann}}) ==
        "y axis, lower end: 3 values are given, the side has 5 nodes");
  CHECK(message({.shape = {2, 5, 3}, .ends = {neumann, {{}, {Condition::dirichlet, 0, {1, 2, 3}}}, neumann}}) ==
        "y axis, upper end: 3 values are given, the side has 6 nodes");
  CHECK(message({.shape = {5, 5}, .ends = {{{Condition::periodic, 2}, {Condition::periodic}}, neumann}}) ==
        "y axis, lower end: a value is given, but the axis is periodic");
  CHECK(message({.shape = {5, 5}, .lambda = std::nan("")}) == "lambda is nan: it must be finite");
  CHECK(message({.shape = {3, 5}, .coordinates = {0, 1, 2}}).find("coordinates") != std::string::npos);
  CHECK(message({.shape = {3, 5}, .coordinates = {0, 1, 3, 2, 4}}).find("increase") != std::string::npos);
}

TEST_CASE("a slab that cannot fit in the limited memory is refused" * doctest::skip(!shape_is("disk"))) {
  Runtime runtime;
  CHECK_THROWS_WITH_AS(poisson::Solver<double>(runtime, {.shape = {4000, 4000}}, {.slab_planes = 2000}),
                       doctest::Contains("do not fit in"), Error);
}

TEST_CASE("a grid four times as large as main memory streams through it to the disk" *
          doctest::skip(!shape_is("disk"))) {
  Runtime runtime;  // 48 MiB of main memory; the grids have 200 MiB
  for (const std::vector<Index>& shape : {std::vector<Index>{5119, 5119}, {1023, 160, 160}}) {
    const Solved<double> solved = solve_model<double>(runtime, {.shape = shape}, Model::random);
    CHECK(solved.layout.mode == poisson::Mode::streaming);
    CHECK(solved.report.traffic.to_disk > 0);
    CHECK(solved.check.scaled_residual <= 2 * eps<double>);
  }
}

TEST_CASE_TEMPLATE("gpu: streaming through a small device memory equals in core", T, float, double) {
  for (const std::vector<Index>& shape : {std::vector<Index>{16000, 4095}, {1000, 255, 256}}) {
    const Problem problem{.shape = shape};
    std::vector<T> in_core, streamed;
    {
      Runtime runtime({.gpus = 1});
      in_core = solve_model<T>(runtime, problem, Model::random).u;
    }
    {
      Runtime runtime({.gpus = 1, .gpu_memory = sizeof(T) * (std::size_t{32} << 20)});
      const Solved<T> solved = solve_model<T>(runtime, problem, Model::random, {.slab_planes = shape.size() == 2 ? 512 : 32});
      CHECK(solved.layout.mode == poisson::Mode::streaming);
      CHECK(solved.check.scaled_residual <= 2 * eps<T>);
      streamed = solved.u;
    }
    CHECK(distance(streamed, in_core) < 1e3 * eps<T>);
  }
}

TEST_CASE("gpu: the solution on GPUs is that on CPUs, for every combination") {
  std::vector<std::vector<double>> on_gpu;
  std::vector<Problem> problems = combinations({67, 33});
  for (const Problem& problem : combinations({35, 16, 17})) problems.push_back(problem);
  {
    Runtime runtime;
    for (const Problem& problem : problems)
      on_gpu.push_back(solve_model<double>(runtime, problem, Model::random, {.slab_planes = 33}).u);
  }
  Runtime runtime({.gpus = 0});
  for (std::size_t i = 0; i < problems.size(); ++i) {
    CAPTURE(description(problems[i]));
    CHECK(distance(solve_model<double>(runtime, problems[i], Model::random, {.slab_planes = 33}).u, on_gpu[i]) < 1e-11);
  }
}
