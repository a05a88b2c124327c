#include "problem.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "../../runtime/error.hpp"
#include "../common/iteration/convergence.hpp"
#include "../common/statement.hpp"

namespace asterism::relaxation {
namespace {

const char* name(Method method) {
  switch (method) {
    case Method::jacobi:
      return "Jacobi's method";
    case Method::gauss_seidel:
      return "Gauss-Seidel";
    case Method::sor:
      return "SOR";
    case Method::ssor:
      return "symmetric SOR";
  }
  return "?";
}

void require_sound_sizes(const Problem& p) {
  constexpr Index limit = Index{1} << 31;
  // A tile has fewer than 2^32 elements and three rows at least, each with its frame and up to 32 columns.
  constexpr Index longest_row = ((Index{1} << 32) - 1) / 3 / 32 * 32 - 2;
  if (p.shape.size() != 2)
    throw Error(
        fmt::format("the grid has {} axes: relaxation is for grids of 2, rows and columns", p.shape.size()));
  const std::string shape = fmt::format("{} x {}", p.shape[0], p.shape[1]);
  for (const Index n : p.shape) {
    if (n < 1) throw Error(fmt::format("grid is {}: every extent must be at least 1", shape));
    if (n > limit) throw Error(fmt::format("grid is {}: no extent may be above {}", shape, limit));
  }
  if (p.shape[1] > longest_row)
    throw Error(
        fmt::format("grid is {}: rows of more than {} unknowns are no tiles any more; turn the grid, so that "
                    "these are the rows",
                    shape, longest_row));
  if (!p.lengths.empty() && p.lengths.size() != 2)
    throw Error(fmt::format("{} lengths for 2 axes: give one for each", p.lengths.size()));
  for (const double length : p.lengths)
    if (!std::isfinite(length) || length <= 0)
      throw Error(
          fmt::format("lengths are {}: all must be positive and finite", fmt::join(p.lengths, " x ")));
}

void require_sound_side(const char* which, const Side& side, Index nodes) {
  if (!side.values.empty() && static_cast<Index>(side.values.size()) != nodes)
    throw Error(
        fmt::format("{} side: {} values are given, the side has {} nodes", which, side.values.size(), nodes));
  if (!std::isfinite(side.value))
    throw Error(fmt::format("{} side: the value is {}; it must be finite", which, side.value));
  for (std::size_t i = 0; i < side.values.size(); ++i)
    if (!std::isfinite(side.values[i]))
      throw Error(fmt::format("{} side: value number {} is {}; it must be finite", which, i, side.values[i]));
}

void require_sound_omega(const Settings& s) {
  if (!s.omega) return;
  const bool has_omega = s.method == Method::sor || s.method == Method::ssor;
  if (!has_omega && *s.omega != 1)
    throw Error(fmt::format("omega is {}, but {} has no omega other than 1; leave it away, or choose SOR",
                            *s.omega, name(s.method)));
  if (!(*s.omega > 0 && *s.omega < 2))
    throw Error(fmt::format("omega is {}: {} converges for 0 < omega < 2 only", *s.omega, name(s.method)));
}

void require_sound_settings(const Settings& s) {
  require_sound_omega(s);
  const std::pair<const char*, Index> numbers[] = {{"sweeps", s.sweeps},
                                                   {"sweeps between residuals", s.check_every},
                                                   {"sweeps per task", s.sweeps_per_task},
                                                   {"stripes", s.stripes}};
  for (const auto& [what, number] : numbers)
    if (number < 0) throw Error(fmt::format("{} {}: the number cannot be negative", number, what));
  constexpr Index most = Index{1} << 20;  // a task of more would not end
  if (s.sweeps_per_task > most)
    throw Error(fmt::format("{} sweeps per task (--sweeps-per-task): there may be {} at most",
                            s.sweeps_per_task, most));
  require_end(s.sweeps, s.tolerance);
}

/// Of SOR by colours.
double sor_radius(double omega, double jacobi_radius) {
  const double discriminant = omega * omega * jacobi_radius * jacobi_radius - 4 * (omega - 1);
  if (discriminant <= 0) return omega - 1;  // complex eigenvalues, all of this modulus
  const double root = (omega * jacobi_radius + std::sqrt(discriminant)) / 2;
  return root * root;
}

}  // namespace

double effective_omega(Method method, double omega) {
  return method == Method::ssor ? omega * (2 - omega) : omega;
}

double spectral_radius(Method method, double omega, double jacobi_radius) {
  return method == Method::jacobi ? jacobi_radius : sor_radius(effective_omega(method, omega), jacobi_radius);
}

Settings checked(const Problem& problem, Settings settings) {
  require_sound_sizes(problem);
  require_sound_side("lower y", problem.y_lower, problem.shape[1]);
  require_sound_side("upper y", problem.y_upper, problem.shape[1]);
  require_sound_side("lower x", problem.x_lower, problem.shape[0]);
  require_sound_side("upper x", problem.x_upper, problem.shape[0]);
  require_sound_settings(settings);
  return settings;
}

Statement statement(const Problem& problem, std::size_t element_bytes) {
  Statement s;
  s.add("grid", problem.shape).add("lengths", problem.lengths).add("bytes of a number", element_bytes);
  for (const Side* side : {&problem.y_lower, &problem.y_upper, &problem.x_lower, &problem.x_upper})
    s.add("side", side->value).add("values of a side", side->values);
  return s;
}

double value_at(const Side& side, Index node) {
  return side.values.empty() ? side.value : side.values[static_cast<std::size_t>(node)];
}

Discretisation discretise(const Problem& problem) {
  const bool unit = problem.lengths.empty();
  return discretise_five_point(problem.shape[0], problem.shape[1], unit ? 1 : problem.lengths[0],
                               unit ? 1 : problem.lengths[1]);
}

double operator_norm(const Discretisation& grid, Index rows, Index nodes) {
  return grid.diagonal * (1 + grid.along_y * static_cast<double>(std::min<Index>(2, rows - 1)) +
                          grid.along_x * static_cast<double>(std::min<Index>(2, nodes - 1)));
}

}  // namespace asterism::relaxation
