// Random problems for both fast Poisson solvers, against the slow oracle.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "../support/worst.hpp"
#include "algorithms/poisson/gemm_solver.hpp"
#include "algorithms/poisson/solver.hpp"
#include "random_problems.hpp"
#include "runtime/collectives.hpp"
#include "separable_oracle.hpp"

namespace asterism::test {
namespace {

using poisson::Centering;
using poisson::Condition;
using poisson::End;
using poisson::Ends;
using poisson::Mode;
using poisson::Problem;

/// A problem, and how it is to be solved.
struct Solve {
  Problem problem;
  poisson::Settings settings;
  bool gemm = false, f32 = false;
  bool owned = false;     ///< whether f lies in the runtime's memory
  Index heavier = 0;      ///< each rank weighs so much more than the one before it; 0: by their workers
  std::vector<double> f;  ///< numbers that the precision holds
};

// --- Drawing
// -------------------------------------------------------------------------------------------------------------

Index nodes_of(const Problem& problem) {
  Index nodes = 1;
  for (const Index n : problem.shape) nodes *= n;
  return nodes;
}

/// Mostly small (but waves need room); a few of the larger extents are drawn again and again, so that the
/// oracle knows them.
std::vector<Index> draw_shape(Draw& draw, bool waves) {
  const std::vector<Index> large{63, 64, 97, 127, 128, 255, 256},
      odd{1, 1, 2, 2, 3, 4, 5, 7, 8, 11, 13, 16, 31, 37};
  const bool solid = draw.chance(0.4);
  const double size = draw.uniform(0, 1);
  std::vector<Index> shape(solid ? 3 : 2);
  for (Index& n : shape) {
    if (size < 0.004)
      n = solid ? draw.integer(20, 63) : draw.pick(large);
    else if (size < (waves ? 0.3 : 0.03))
      n = draw.integer(1, solid ? 20 : 100);
    else
      n = draw.chance(0.4) ? std::min(draw.pick(odd), Index{solid ? 12 : 40})
                           : draw.integer(1, solid ? 10 : 40);
  }
  return shape;
}

Ends draw_conditions(Draw& draw) {
  using enum Condition;
  return draw.pick<Ends>({{{dirichlet}, {dirichlet}},
                          {{dirichlet}, {neumann}},
                          {{neumann}, {dirichlet}},
                          {{neumann}, {neumann}},
                          {{periodic}, {periodic}}});
}

/// At some ends, as constants or arrays.
void draw_given_values(Draw& draw, Problem& problem) {
  for (std::size_t a = 0; a < problem.shape.size(); ++a)
    for (End* end : {&problem.ends[a].lower, &problem.ends[a].upper}) {
      if (end->condition == Condition::periodic || draw.chance(0.4)) continue;
      end->value = draw.uniform(-1, 1);
      if (draw.chance(0.5)) continue;
      end->values.resize(static_cast<std::size_t>(nodes_of(problem) / problem.shape[a]));
      for (double& value : end->values) value = draw.uniform(-1, 1);
    }
}

/// Steps that grow or shrink, and are rough.
std::vector<double> draw_coordinates(Draw& draw, Index steps, double length) {
  const double ratio = draw.chance(0.5) ? 1 : draw.logarithmic(0.8, 1.25), roughness = draw.uniform(0, 0.8);
  std::vector<double> coordinates{0};
  double step = 1;
  for (Index i = 0; i < steps; ++i, step = std::clamp(step * ratio, 0.1, 10.0))
    coordinates.push_back(coordinates.back() + step * draw.uniform(1 - roughness, 1 + roughness));
  const double scale = length / coordinates.back(), origin = draw.pick<double>({0, 0, 1.5, -3.7, 100});
  for (double& z : coordinates) z = origin + scale * z;
  return coordinates;
}

Problem draw_problem(Draw& draw, bool waves) {
  Problem problem{.shape = draw_shape(draw, waves),
                  .centering = draw.chance(0.5) ? Centering::node : Centering::cell};
  for (Index& n : problem.shape) {
    const Ends& ends = problem.ends.emplace_back(draw_conditions(draw));
    const bool both_ends_are_nodes = problem.centering == Centering::node &&
                                     ends.lower.condition == Condition::neumann &&
                                     ends.upper.condition == Condition::neumann;
    n = std::max(n, Index{both_ends_are_nodes ? 2 : 1});
    problem.lengths.push_back(draw.chance(0.4) ? 1.0 : draw.logarithmic(0.1, 10));
  }
  if (draw.chance(waves ? 0.7 : 0.3))  // spacings that resolve waves alike
    for (std::size_t a = 0; a < problem.shape.size(); ++a)
      problem.lengths[a] = draw.uniform(0.8, 1.2) * static_cast<double>(problem.shape[a] + 1) /
                           static_cast<double>(problem.shape[0] + 1);
  if (draw.chance(0.4)) draw_given_values(draw, problem);
  if (nodes_of(problem) > 5000) return problem;
  if (draw.chance(0.3)) {
    const Index steps = poisson::axis_of(problem, 0).cells();
    problem.coordinates = draw_coordinates(draw, steps, problem.lengths[0]);
    problem.lengths.clear();
  }
  if (draw.chance(0.2)) problem.batch = draw.integer(2, 4);
  return problem;
}

/// Half of all problems are Poisson's.
double draw_lambda_not_positive(Draw& draw) { return draw.chance(0.5) ? 0 : -draw.logarithmic(1e-3, 1e4); }

/// Up to where waves have four nodes: anywhere, at round numbers, near an eigenvalue, between two. Where
/// eliminations meet zero pivots lambda h^2 is round.
double draw_positive_lambda(Draw& draw, const Oracle& oracle) {
  Real step = 0;
  for (const OracleAxis& axis : oracle.axes()) step = std::max(step, axis.largest_step);
  const auto limit = static_cast<double>(2 / (step * step));
  std::vector<double> spectrum;
  for (const Real mu : oracle.laplacian_eigenvalues())
    if (mu < 0 && -mu <= limit) spectrum.push_back(static_cast<double>(-mu));
  std::sort(spectrum.begin(), spectrum.end());
  switch (draw.integer(spectrum.size() < 2 ? 2 : 0, 5)) {
    case 0:
      return draw.pick(spectrum) * (1 + draw.pick<double>({-1, 1}) * draw.logarithmic(1e-6, 1e-2));
    case 1: {
      const auto k = static_cast<std::size_t>(draw.integer(1, static_cast<Index>(spectrum.size()) - 1));
      return (spectrum[k - 1] + spectrum[k]) / 2;
    }
    case 2:
      return limit * draw.pick<double>({1, 0.5, 0.25, 0.75});
    case 3:
      return limit * draw.logarithmic(1e-3, 1);
    default:
      return limit * draw.uniform(0, 1);
  }
}

/// Noise, one node, a wave, or nothing but the given values.
std::vector<double> draw_right_hand_side(Draw& draw, std::size_t count) {
  std::vector<double> f(count);
  const Index kind = draw.integer(0, 9);
  const double frequency = draw.uniform(0, 3), phase = draw.uniform(0, 6);
  if (kind == 0) f[static_cast<std::size_t>(draw.integer(0, static_cast<Index>(count) - 1))] = 1;
  for (std::size_t i = 0; i < count && kind > 1; ++i)
    f[i] = kind == 2 ? std::sin(frequency * static_cast<double>(i) + phase) : draw.uniform(-1, 1);
  return f;
}

double rounded(const Solve& s, Real value) {
  return s.f32 ? static_cast<float>(value) : static_cast<double>(value);
}

/// Numbers of one problem of a batch.
Reals part(const Reals& all, std::size_t first, std::size_t count) {
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

/// Where constants solve the homogeneous problem, f keeps a mean for the solver to project away, or has none
/// to rounding.
void settle_mean(Draw& draw, Solve& s, const Oracle& oracle) {
  if (!oracle.singular()) return;
  const Reals f(s.f.begin(), s.f.end()), lifted = oracle.lifted(f), without = oracle.projected(lifted);
  const auto unknowns = static_cast<std::size_t>(nodes_of(s.problem));
  const auto size = [unknowns](const Reals& all, std::size_t first) {
    return norm2(part(all, first, unknowns));
  };
  bool is_rounding = false;  // all that would be left of a problem of the batch
  for (std::size_t k = 0; k < f.size(); k += unknowns)
    is_rounding = is_rounding || size(without, k) < 0.1L * (size(f, k) + size(lifted, k));
  if (is_rounding) {
    std::fill(s.f.begin(), s.f.end(), 0);
    for (Ends& ends : s.problem.ends)
      for (End* end : {&ends.lower, &ends.upper}) *end = {end->condition};
  } else if (draw.chance(0.5)) {
    s.settings.mean = poisson::Mean::project;
  } else {
    const Reals mean = difference(lifted, without);
    for (std::size_t i = 0; i < f.size(); ++i) s.f[i] = rounded(s, f[i] - mean[i]);
  }
}

void draw_settings(Draw& draw, Solve& s) {
  const Index planes = poisson::with_planes_to_cut(s.problem).shape[0];
  s.gemm = s.problem.shape.size() == 2 && draw.chance(0.3);
  s.settings.mode = draw.pick<Mode>({Mode::automatic, Mode::incore, Mode::streaming});
  if (s.gemm && s.settings.mode == Mode::streaming) s.settings.mode = Mode::automatic;
  const Index kind = draw.integer(0, 5);
  s.settings.slab_planes = kind == 0 ? 0 : kind == 1 ? 1 : kind == 2 ? planes : draw.integer(1, planes);
  s.settings.fetch_result = draw.chance(0.5);
  s.owned = draw.chance(0.3);
  s.heavier = draw.integer(0, 3);
}

std::shared_ptr<const Solve> draw_solve(Draw& draw, bool waves) {
  auto s = std::make_shared<Solve>();
  s->f32 = draw.chance(0.4);
  s->problem = draw_problem(draw, waves);
  draw_settings(draw, *s);
  const Oracle oracle(s->problem);
  const auto is_sound = [&] { return oracle.singular() || oracle.condition() < 1e10L; };
  do s->problem.lambda = waves ? draw_positive_lambda(draw, oracle) : draw_lambda_not_positive(draw);
  while (!is_sound());
  const auto count = static_cast<std::size_t>(nodes_of(s->problem) * s->problem.batch);
  const double scale = draw.chance(0.7) ? 1 : std::ldexp(1, static_cast<int>(draw.integer(-30, 30)));
  for (const double value : draw_right_hand_side(draw, count)) s->f.push_back(rounded(*s, scale * value));
  settle_mean(draw, *s, oracle);
  return s;
}

// --- In words
// ------------------------------------------------------------------------------------------------------------

std::string words(const Solve& s) {
  const Problem& p = s.problem;
  const bool singles = s.f32;
  std::string conditions, given;
  for (std::size_t a = 0; a < p.ends.size(); ++a) {
    conditions += a > 0 ? "," : "";
    for (const End* end : {&p.ends[a].lower, &p.ends[a].upper}) {
      conditions += "dnp"[static_cast<int>(end->condition)];
      if (end->value == 0 && end->values.empty()) continue;
      given += fmt::format("{}{} end of {}: {}", given.empty() ? "; given at the " : ", ",
                           end == &p.ends[a].lower ? "lower" : "upper", "zyx"[a + 3 - p.ends.size()],
                           end -> values.empty() ? fmt::format("{}", end->value) : "an array");
    }
  }
  const char* const modes[] = {"automatic", "incore", "streaming"};
  return fmt::format(
      "{} {}, ends {}, {}, lambda {}, {}{}; {}, {}, {}, slabs of {} planes, mean {}, f in {} memory, ranks heavier by "
      "{}{}",
      poisson::to_string(p.shape), p.centering == Centering::node ? "nodes" : "cells", conditions,
      p.coordinates.empty() ? fmt::format("lengths {}", fmt::join(p.lengths, " x "))
                            : fmt::format("coordinates {}", fmt::join(p.coordinates, " ")),
      p.lambda, p.batch > 1 ? fmt::format("batch of {}, ", p.batch) : "", singles ? "f32" : "f64",
      s.gemm ? "gemm" : "fft", modes[static_cast<int>(s.settings.mode)],
      s.settings.fetch_result ? "fetched" : "not fetched",
      s.settings.slab_planes == 0 ? "any number of" : fmt::format("{}", s.settings.slab_planes),
      s.settings.mean == poisson::Mean::project ? "projected" : "required",
      s.owned ? "the runtime's" : "the caller's", s.heavier, given);
}

// --- Solving and judging
// -------------------------------------------------------------------------------------------------

struct Solution {
  Reason reason;
  double told_residual;
  Reals u;  ///< of all ranks
};

template <class T, template <class> class Solver>
Solution solve_by(Runtime& runtime, const Solve& s) {
  poisson::Settings settings = s.settings;
  for (int rank = 0; rank < runtime.ranks() && s.heavier > 0; ++rank)
    settings.weights.push_back(1.0 + static_cast<double>(s.heavier * rank));
  Solver<T> solver(runtime, s.problem, settings);
  const Index columns = solver.grid().columns();
  const auto copy_rows = [&](Index slab, Tile<T>& tile, typename HostView<T>::Access access,
                             auto copy) {  // copy(row, its place in f)
    const HostView<T> view(tile, access);
    for (Index i = 0; i < view.rows(); ++i) copy(view.row(i), (solver.first_plane(slab) + i) * columns);
  };
  const auto fill = [&](Index slab, Tile<T>& tile) {
    copy_rows(slab, tile, HostView<T>::Access::write, [&](T* row, Index place) {
      std::transform(s.f.begin() + place, s.f.begin() + place + columns, row,
                     [](double x) { return static_cast<T>(x); });
    });
  };
  std::vector<T> memory(static_cast<std::size_t>(s.owned ? 0 : solver.plane_count() * columns));
  std::vector<double> u(s.f.size());
  Solution solution;
  Tiles<T> slabs = s.owned ? solver.own() : solver.borrow(memory.data());
  const auto each_slab = [&](auto body) {
    for (Index slab = 0; slab < slabs.count(); ++slab)
      if (slabs[slab].owner() == runtime.rank()) body(slab, slabs[slab]);
  };
  each_slab(fill);
  solution.reason = solver.solve(slabs).reason;
  solution.told_residual = solver.check(slabs, fill).scaled_residual;
  each_slab([&](Index slab, Tile<T>& tile) {
    copy_rows(slab, tile, HostView<T>::Access::read,
              [&](const T* row, Index place) { std::copy_n(row, columns, u.begin() + place); });
  });
  sum_over_ranks(runtime, u.data(), static_cast<Index>(u.size()));
  solution.u.assign(u.begin(), u.end());
  return solution;
}

Solution solve(Runtime& runtime, const Solve& s) {
  if (s.gemm)
    return s.f32 ? solve_by<float, poisson::GemmSolver>(runtime, s)
                 : solve_by<double, poisson::GemmSolver>(runtime, s);
  return s.f32 ? solve_by<float, poisson::Solver>(runtime, s) : solve_by<double, poisson::Solver>(runtime, s);
}

/// ||u - exact|| / ||exact||, the largest of those of the problems of a batch.
Real relative_error(const Reals& u, const Reals& exact, std::size_t unknowns) {
  Worst worst;
  for (std::size_t first = 0; first < u.size(); first += unknowns) {
    const Reals its = part(u, first, unknowns), its_exact = part(exact, first, unknowns);
    const Real error = norm2(difference(its, its_exact)), size = norm2(its_exact);
    if (!(error == 0)) worst.take_in(error / size);
  }
  return worst.value();
}

Findings check(Runtime& runtime, const Solve& s) {
  const Solution solution = solve(runtime, s);
  const Oracle oracle(s.problem);
  const Reals f = oracle.projected(oracle.lifted(Reals(s.f.begin(), s.f.end())));
  const Reals exact = oracle.solve(f);
  const auto scaled_residual = [&](const Reals& u) {
    const Real residual = norm2(difference(f, oracle.apply(u)));
    return residual == 0 ? 0 : static_cast<double>(residual / (oracle.norm() * norm2(u) + norm2(f)));
  };
  const double eps = s.f32 ? 0x1p-24 : 0x1p-53, lambda = s.problem.lambda;
  const auto condition = static_cast<double>(oracle.condition());
  const bool nearly_singular = lambda > 0 && oracle.smallest_eigenvalue() <= 1e-3 * lambda;
  const double residual = scaled_residual(solution.u), told = solution.told_residual;

  Findings findings;
  if (solution.reason != Reason::solved)
    findings.faults.push_back("the solver says: " + to_string(solution.reason));
  findings.expect("oracle's own residual", scaled_residual(exact), 1e-16);
  findings.expect(
      "error / (eps cond)",
      static_cast<double>(relative_error(solution.u, exact, oracle.unknowns())) / (eps * condition), 100);
  // Dense transforms are sums of as many terms as a line has nodes.
  const auto longest = static_cast<double>(*std::max_element(s.problem.shape.begin(), s.problem.shape.end()));
  const double rounding = s.gemm ? std::max(4.0, 1.5 + 0.25 * std::sqrt(longest)) : 4;
  findings.expect(nearly_singular ? "residual / eps near an eigenvalue" : "residual / eps", residual / eps,
                  nearly_singular ? 64 : rounding);
  findings.expect("told residual's error / (residual or eps)",
                  std::abs(told - residual) / std::max(eps, std::min(told, residual)), 1);
  return findings;
}

Trial draw_case(Draw& draw, bool waves) {
  const std::shared_ptr<const Solve> s = draw_solve(draw, waves);
  return {words(*s), [s](Runtime& runtime) { return check(runtime, *s); }};
}

}  // namespace

Trial draw_poisson(Draw& draw) { return draw_case(draw, false); }
Trial draw_helmholtz(Draw& draw) { return draw_case(draw, true); }

}  // namespace asterism::test
