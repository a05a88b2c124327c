#include "axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "../../runtime/error.hpp"

namespace asterism::grid {
namespace {

/// What the coordinates are those of, as an error says it: `wanted` of them.
std::string owners(const Axis& axis, Index wanted) {
  if (axis.centering == Centering::cell) return fmt::format("the faces of {} cells are", axis.n);
  const auto nodes = fmt::format("{} nodes", axis.n);
  if (axis.periodic()) return nodes + " and the end of the period want";
  return nodes + (wanted == axis.n       ? " want"
                  : wanted == axis.n + 1 ? " and the Dirichlet end want"
                                         : " and both ends want");
}

void check(const Axis& axis, const std::vector<double>& coordinates) {
  const Index wanted = axis.cells() + 1, given = static_cast<Index>(coordinates.size());
  if (given != wanted)
    throw Error(fmt::format("coordinates: {} are given, {} {}", given, owners(axis, wanted), wanted));
  for (std::size_t i = 0; i < coordinates.size(); ++i) {
    if (!std::isfinite(coordinates[i]))
      throw Error(fmt::format("coordinates must be finite: number {} is {}", i + 1, coordinates[i]));
    if (i > 0 && !(coordinates[i] > coordinates[i - 1]))
      throw Error(fmt::format("coordinates must increase: number {} is {} after {}", i + 1, coordinates[i],
                              coordinates[i - 1]));
  }
}

/// A link over `distance`; none where there is no neighbour, which is infinitely far away.
double link(double unit, double distance) { return unit / distance; }

}  // namespace

std::vector<AxisRow> axis_rows(const Axis& axis) {
  std::vector<AxisRow> rows;
  for (Index i = 0; i < axis.n; ++i) {
    const Weights w = weights(axis, 1.0, i);
    const double width = relative_width(axis, i);
    rows.push_back({w.before * width, w.after * width, width / axis.per_h2(), axis.fraction(i) * axis.length});
  }
  return rows;
}

std::vector<AxisRow> axis_rows(const Axis& axis, const std::vector<double>& coordinates) {
  check(axis, coordinates);
  const auto n = static_cast<std::size_t>(axis.n);
  const std::vector<double>& x = coordinates;
  const bool cell_centred = axis.centering == Centering::cell;
  const std::size_t first =
      !cell_centred && axis.lower == Condition::dirichlet ? 1 : 0;  // the first node's number

  // The widths of cells, or the distances between nodes. All else is made of them: midpoints and sums of
  // coordinates round the more the farther off the axis begins.
  std::vector<double> intervals(x.size() - 1);
  for (std::size_t i = 0; i < intervals.size(); ++i) intervals[i] = x[i + 1] - x[i];
  const auto half_sum = [](double a, double b) { return a / 2 + b / 2; };

  // distances[i] is that between nodes i - 1 and i: one for both links, which so are equal.
  std::vector<double> distances(n + 1, std::numeric_limits<double>::infinity());
  for (std::size_t i = 1; i < n; ++i)
    distances[i] = cell_centred ? half_sum(intervals[i - 1], intervals[i]) : intervals[first + i - 1];
  const double to_end = cell_centred ? 0.5 : 1.0;
  if (axis.lower == Condition::dirichlet) distances.front() = to_end * intervals.front();
  if (axis.upper == Condition::dirichlet) distances.back() = to_end * intervals.back();
  if (axis.periodic())
    distances.front() = distances.back() =
        cell_centred ? half_sum(intervals.back(), intervals.front()) : intervals.back();

  const double unit = (x.back() - x.front()) / static_cast<double>(axis.cells());
  std::vector<AxisRow> rows(n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto finite = [](double distance) { return std::isfinite(distance) ? distance : 0.0; };
    const double width =
        cell_centred ? intervals[i] : half_sum(finite(distances[i]), finite(distances[i + 1]));
    const double position = x[first + i] - x.front() + (cell_centred ? intervals[i] / 2 : 0.0);
    rows[i] = {link(unit, distances[i]), link(unit, distances[i + 1]), width * unit, position};
  }
  if (axis.periodic() && n == 1) rows[0].before = rows[0].after = 0;  // as in weights
  return rows;
}

double largest_link(const std::vector<AxisRow>& rows) {
  double largest = 0;
  for (const AxisRow& row : rows) largest = std::max({largest, row.before, row.after});
  return largest;
}

}  // namespace asterism::grid
