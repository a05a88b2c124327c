// Given values and derivatives on the sides.

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "poisson_solves.hpp"
#include "runtime/collectives.hpp"

using namespace asterism;
using namespace asterism::test;
using grid::Axis;
using poisson::Centering;
using poisson::Condition;
using poisson::Problem;

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
      const Solved<double> solved = solve_from<double>(runtime, problem, {.slab_planes = 4},
                                                       from_values<double>([](Index, Index) { return 0.0; }));
      for (std::size_t i = 0; i < solved.u.size(); ++i) {
        const Index node = static_cast<Index>(i), plane = solved.first_plane + node / 11;
        const double x = grid.a.x.fraction(node % 11), z = grid.rows[static_cast<std::size_t>(plane)].position;
        CHECK(solved.u[i] == doctest::Approx(3 + 2 * z - x).epsilon(1e-12));
      }
    }
}
