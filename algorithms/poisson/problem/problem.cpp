#include "problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "../../../runtime/error.hpp"

namespace asterism::poisson {
namespace {

using grid::Axis;
using grid::AxisRow;

const char* const axis_names[] = {"z", "y", "x"};

const char* name(Condition condition) {
  return condition == Condition::dirichlet ? "Dirichlet" : condition == Condition::neumann ? "Neumann" : "periodic";
}

void require_sound_sizes(const Problem& p) {
  if (p.shape.size() != 2 && p.shape.size() != 3)
    throw Error(fmt::format("the grid has {} axes: problems in 2 and 3 dimensions are solved", p.shape.size()));
  for (const Index n : p.shape)
    if (n < 1) throw Error(fmt::format("grid is {}: every extent must be at least 1", to_string(p.shape)));
  if (p.batch < 1) throw Error(fmt::format("a batch of {} problems: it must have at least 1", p.batch));
  for (const Index limit = Index{1} << 40; const Index n : p.shape)
    if (n > limit) throw Error(fmt::format("grid is {}: no extent may be above {}", to_string(p.shape), limit));
  if (!p.lengths.empty() && p.lengths.size() != p.shape.size())
    throw Error(fmt::format("{} lengths for {} axes: give one for each", p.lengths.size(), p.shape.size()));
  for (const double length : p.lengths)
    if (!std::isfinite(length) || length <= 0)
      throw Error(fmt::format("lengths are {}: all must be positive and finite", fmt::join(p.lengths, " x ")));
  if (!p.ends.empty() && p.ends.size() != p.shape.size())
    throw Error(fmt::format("conditions for {} of {} axes: give them for each", p.ends.size(), p.shape.size()));
  if (!std::isfinite(p.lambda)) throw Error(fmt::format("lambda is {}: it must be finite", p.lambda));
}

/// The conditions at the ends of one axis, and the values given there.
void require_sound_ends(const Problem& p, std::size_t a, const Ends& ends) {
  const char* const axis = axis_names[a + 3 - p.shape.size()];
  const bool lower_wraps = ends.lower.condition == Condition::periodic;
  const bool upper_wraps = ends.upper.condition == Condition::periodic;
  if (lower_wraps != upper_wraps)
    throw Error(fmt::format("{} axis: {} at one end, {} at the other; periodic is for both ends or none", axis,
                            name(ends.lower.condition), name(ends.upper.condition)));
  const bool both_neumann = ends.lower.condition == Condition::neumann && ends.upper.condition == Condition::neumann;
  if (p.centering == Centering::node && both_neumann && p.shape[a] < 2)
    throw Error(fmt::format("{} axis: one node, Neumann at both ends: node-centred, the ends are nodes, so there must be "
                            "at least 2",
                            axis));
  Index nodes = 1;
  for (std::size_t other = 0; other < p.shape.size(); ++other)
    if (other != a) nodes *= p.shape[other];
  for (const auto& [end, which] : {std::pair{&ends.lower, "lower"}, {&ends.upper, "upper"}}) {
    if (end->condition == Condition::periodic && (end->value != 0 || !end->values.empty()))
      throw Error(fmt::format("{} axis, {} end: a value is given, but the axis is periodic", axis, which));
    if (!end->values.empty() && static_cast<Index>(end->values.size()) != nodes)
      throw Error(fmt::format("{} axis, {} end: {} values are given, the side has {} nodes", axis, which,
                              end->values.size(), nodes));
    if (!std::isfinite(end->value))
      throw Error(fmt::format("{} axis, {} end: the value is {}; it must be finite", axis, which, end->value));
    for (std::size_t i = 0; i < end->values.size(); ++i)
      if (!std::isfinite(end->values[i]))
        throw Error(fmt::format("{} axis, {} end: value number {} is {}; it must be finite", axis, which, i,
                                end->values[i]));
  }
}

/// How many eigenvalues of -D along the slowest axis are below -mu: the number of negative pivots in the elimination of
/// width (-D + mu), by Sylvester's law of inertia. The last row is eliminated last and keeps the link of a periodic axis.
Index eigenvalues_below(const std::vector<AxisRow>& rows, bool periodic, double mu) {
  const std::size_t last = rows.size() - 1;
  const auto diagonal = [&](std::size_t j) { return rows[j].before + rows[j].after + rows[j].width * mu; };
  if (last == 0) return (periodic ? rows[0].width * mu : diagonal(0)) < 0 ? 1 : 0;
  Index negative = 0;
  double corner = diagonal(last), pivot = 0, before = 0, border = 0;  // -border: the row's entry in the last column
  for (std::size_t j = 0; j < last; ++j) {
    const double link = j == 0 ? 0 : rows[j].before;
    double next_border = j == 0 && periodic ? rows[0].before : 0.0;
    if (j > 0) next_border += link * border / before;
    if (j + 1 == last) next_border += rows[j].after;
    pivot = diagonal(j) - (j == 0 ? 0 : link * link / before);
    if (pivot == 0) pivot = 1e-300;
    if (pivot < 0) ++negative;
    corner -= next_border * next_border / pivot;
    before = pivot;
    border = next_border;
  }
  return negative + (corner < 0 ? 1 : 0);
}

/// How far lambda > 0 is from the nearest eigenvalue of the discrete Laplacian's negative.
double distance_from_spectrum(const Grid& grid, bool equally_spaced) {
  const std::vector<double> along_x = grid::eigenvalues(grid.a.x);
  std::vector<double> along_slow = equally_spaced ? grid::eigenvalues(grid.slow) : std::vector<double>{};
  std::sort(along_slow.begin(), along_slow.end());
  double nearest = grid.operator_norm();
  // What the axis' eigenvalue nearest to -mu leaves of it, where that is less than `nearest`.
  const auto closed_form = [&](double mu) {
    const auto above = std::lower_bound(along_slow.begin(), along_slow.end(), -mu);
    if (above != along_slow.end()) nearest = std::min(nearest, *above + mu);
    if (above != along_slow.begin()) nearest = std::min(nearest, -mu - *std::prev(above));
  };
  const auto by_counting = [&](double mu) {
    const auto any_within = [&](double distance) {
      return eigenvalues_below(grid.rows, grid.slow.periodic(), mu - distance) !=
             eigenvalues_below(grid.rows, grid.slow.periodic(), mu + distance);
    };
    const double enough = 0x1p-56 * grid.operator_norm();
    while (nearest > enough && any_within(nearest / 2)) nearest /= 2;
  };
  for (const double y : grid::eigenvalues(grid.a.y))
    for (const double x : along_x)
      if (const double mu = y + x - grid.a.lambda; mu < nearest) equally_spaced ? closed_form(mu) : by_counting(mu);
  return nearest;
}

/// For lambda > 0 the operator is indefinite, and singular where lambda is one of its eigenvalues.
void require_regular(const Grid& grid) {
  if (grid.distance_from_spectrum <= 64 * 0x1p-52 * grid.operator_norm())
    throw Error(fmt::format("lambda = {} is an eigenvalue of the discrete Laplacian's negative: the problem is "
                            "singular; choose another lambda",
                            grid.a.lambda));
}

}  // namespace

std::string to_string(const std::vector<Index>& shape) { return fmt::format("{}", fmt::join(shape, " x ")); }

Axis axis_of(const Problem& problem, std::size_t a) {
  const Ends none;
  const Ends& ends = problem.ends.empty() ? none : problem.ends[a];
  require_sound_ends(problem, a, ends);
  const double length = problem.lengths.empty() ? 1 : problem.lengths[a];
  return {problem.shape[a], length, ends.lower.condition, ends.upper.condition, problem.centering};
}

bool Grid::has_constants() const {
  const auto floats = [](const Axis& axis) {
    return axis.lower != Condition::dirichlet && axis.upper != Condition::dirichlet;
  };
  return a.lambda == 0 && floats(slow) && floats(a.y) && floats(a.x);
}

double Grid::measure() const { return grid::measure(a, rows); }

double Grid::operator_norm() const { return grid::operator_norm(a, slow, rows); }

std::optional<double> Grid::condition() const {
  return a.lambda > 0 ? std::optional(operator_norm() / distance_from_spectrum) : std::nullopt;
}

Problem with_planes_to_cut(Problem problem) {
  const auto longer = std::find_if(problem.shape.begin(), problem.shape.end(), [](Index n) { return n > 1; });
  if (!problem.coordinates.empty() || longer == problem.shape.end()) return problem;
  const auto first = longer - problem.shape.begin();
  const auto bring_forward = [first](auto& of_axes) {
    if (!of_axes.empty()) std::rotate(of_axes.begin(), of_axes.begin() + first, of_axes.begin() + first + 1);
  };
  bring_forward(problem.shape);
  bring_forward(problem.lengths);
  bring_forward(problem.ends);
  return problem;
}

Grid discretise(const Problem& given) {
  require_sound_sizes(given);
  const std::size_t axes = given.shape.size();
  for (std::size_t a = 0; a < axes; ++a) axis_of(given, a);  // refused by the names of the axes as they were given
  const Problem problem = with_planes_to_cut(given);
  Grid grid;
  grid.batch = problem.batch;
  grid.planes = problem.shape[0];
  grid.slow = axis_of(problem, 0);
  if (problem.coordinates.empty()) {
    grid.rows = grid::axis_rows(grid.slow);
  } else {
    grid.rows = grid::axis_rows(grid.slow, problem.coordinates);
    const double front = problem.coordinates.front(), back = problem.coordinates.back(), span = back - front;
    const double rounding = 1e-12 * std::max({span, std::abs(front), std::abs(back)});
    if (!problem.lengths.empty() && std::abs(problem.lengths[0] - span) > rounding)
      throw Error(fmt::format("the coordinates of the {} axis span {}, its length is given as {}; give that span",
                              axis_names[3 - axes], span, problem.lengths[0]));
    grid.slow.length = span;
    grid.is_equally_spaced = false;
  }
  grid.a = {axes == 3 ? axis_of(problem, 1) : grid::no_axis, axis_of(problem, axes - 1), problem.lambda};
  grid.shape = problem.shape;
  if (problem.batch > 1) grid.shape.insert(grid.shape.begin(), problem.batch);
  if (problem.lambda > 0) grid.distance_from_spectrum = distance_from_spectrum(grid, problem.coordinates.empty());
  require_regular(grid);
  return grid;
}

}  // namespace asterism::poisson
