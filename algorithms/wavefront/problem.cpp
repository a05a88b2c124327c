#include "problem.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "../../runtime/error.hpp"
#include "../common/iteration/convergence.hpp"
#include "../relaxation/problem.hpp"

namespace asterism::wavefront {
namespace {

void require_sound_extents(const Problem& p) {
  constexpr Index limit = Index{1} << 29;  // the schedule counts nodes and sweeps in 32 bits
  if (p.shape.empty() || p.shape.size() > 3)
    throw Error(fmt::format("the grid has {} axes: wavefronts are for grids of 1 to 3", p.shape.size()));
  for (const Index n : p.shape) {
    if (n < 1)
      throw Error(fmt::format("grid is {}: every extent must be at least 1", fmt::join(p.shape, " x ")));
    if (n > limit)
      throw Error(fmt::format("grid is {}: no extent may be above {}", fmt::join(p.shape, " x "), limit));
  }
}

void require_sound(const Problem& p) {
  require_sound_extents(p);
  if (!p.lengths.empty() && p.lengths.size() != p.shape.size())
    throw Error(fmt::format("{} lengths for {} axes: give one for each", p.lengths.size(), p.shape.size()));
  for (const double length : p.lengths)
    if (!std::isfinite(length) || length <= 0)
      throw Error(
          fmt::format("lengths are {}: all must be positive and finite", fmt::join(p.lengths, " x ")));
  if (!p.sides.empty() && p.sides.size() != p.shape.size())
    throw Error(fmt::format("values on the sides of {} axes, there are {}: give them for each",
                            p.sides.size(), p.shape.size()));
  for (const Problem::Sides& sides : p.sides)
    for (const double value : {sides.lower, sides.upper})
      if (!std::isfinite(value))
        throw Error(fmt::format("the value on a side is {}: it must be finite", value));
}

void require_sound(const Settings& s) {
  if (s.omega && !(*s.omega > 0 && *s.omega < 2))
    throw Error(fmt::format("omega is {}: SOR converges for 0 < omega < 2 only", *s.omega));
  if (s.sweeps < 0 || s.check_every < 0)
    throw Error(fmt::format("{} sweeps, a residual every {}: the numbers cannot be negative", s.sweeps,
                            s.check_every));
  require_end(s.sweeps, s.tolerance);
}

double best_omega(double jacobi_gap, Direction direction) {
  return 2 / (1 + std::sqrt(jacobi_gap * (direction == Direction::symmetric ? 2 : 2 - jacobi_gap)));
}

}  // namespace

Discretisation discretise(const Problem& p) {
  Discretisation made{};
  WavefrontArgs& grid = made.grid;
  grid.dimensions = static_cast<int>(p.shape.size());
  const std::size_t first = 3 - p.shape.size();
  for (std::size_t axis = first; axis < 3; ++axis) {
    grid.nodes[axis] = p.shape[axis - first];
    const double intervals = static_cast<double>(grid.nodes[axis] + 1);
    const double h = (p.lengths.empty() ? 1 : p.lengths[axis - first]) / intervals;
    grid.along[axis] = 1 / (h * h);
    made.diagonal += 2 / (h * h);
  }
  made.operator_norm = made.diagonal;
  for (std::size_t axis = first; axis < 3; ++axis) {
    made.operator_norm += grid.along[axis] * static_cast<double>(std::min<Index>(2, grid.nodes[axis] - 1));
    grid.along[axis] /= made.diagonal;
    const double sine = std::sin(std::numbers::pi / (2 * static_cast<double>(grid.nodes[axis] + 1)));
    made.jacobi_gap += 4 * grid.along[axis] * sine * sine;
  }
  return made;
}

Settings completed(const Problem& problem, Settings settings) {
  require_sound(problem);
  require_sound(settings);
  if (!settings.omega) settings.omega = best_omega(discretise(problem).jacobi_gap, settings.direction);
  if (settings.check_every == 0)
    settings.check_every = choose_check_every(settings.sweeps, settings.tolerance,
                                              *std::max_element(problem.shape.begin(), problem.shape.end()));
  return settings;
}

double spectral_radius(const Discretisation& discretisation, double omega, Direction direction) {
  const double gap = discretisation.jacobi_gap;
  const double forward = relaxation::spectral_radius(relaxation::Method::sor, omega, 1 - gap);
  if (direction == Direction::forward) return forward;
  // Young 1971, chapter 15: a sweep and one backward at the best omega reduce the error by (1 - s) / (1 + s)
  // at least.
  const double s = std::sqrt(gap / 2);
  return std::max(forward, std::sqrt((1 - s) / (1 + s)));
}

WavefrontArgs sweeps_at_once(const Problem& problem, const Settings& settings) {
  constexpr Index most = Index{1} << 28;  // with them the schedule's sums of coordinates have room in 32 bits
  const Index until_residual = completed(problem, settings).check_every;
  WavefrontArgs args = discretise(problem).grid;
  args.sweeps =
      settings.direction == Direction::symmetric
          ? 1
          : std::min({until_residual, settings.sweeps > 0 ? settings.sweeps : until_residual, most});
  return args;
}

}  // namespace asterism::wavefront
