// The axis of a grid: its second difference against its spectrum, and its rows of equal and of given
// coordinates.

#include "codelets/grid/axis.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "../support/worst.hpp"
#include "runtime/error.hpp"

using namespace asterism;
using namespace asterism::grid;
using namespace asterism::test;

namespace {

constexpr double pi = 3.14159265358979323846;

/// Every pair of conditions and every centering of n unknowns on [0, 0.7].
std::vector<Axis> all_axes(Index n) {
  std::vector<Axis> axes;
  for (const Centering centering : {Centering::node, Centering::cell}) {
    axes.push_back({n, 0.7, Condition::periodic, Condition::periodic, centering});
    for (const Condition lower : {Condition::dirichlet, Condition::neumann})
      for (const Condition upper : {Condition::dirichlet, Condition::neumann}) {
        const Axis axis{n, 0.7, lower, upper, centering};
        if (axis.cells() > 0) axes.push_back(axis);  // one node cannot be both ends
      }
  }
  return axes;
}

std::string name(const Axis& axis) {
  const auto of = [](Condition c) {
    return c == Condition::dirichlet ? "Dirichlet" : c == Condition::neumann ? "Neumann" : "periodic";
  };
  return std::to_string(axis.n) + (axis.centering == Centering::node ? " nodes, " : " cells, ") +
         of(axis.lower) + " to " + of(axis.upper);
}

/// Mode k of the axis at the point x of [0, 1]: the cosines or sines that fulfil its conditions.
double mode(const Axis& axis, Index k, double x) {
  const auto wave = static_cast<double>(k);
  if (axis.periodic()) {
    if (2 * k < axis.n) return std::cos(2 * pi * wave * x);
    if (2 * k > axis.n) return std::sin(2 * pi * static_cast<double>(axis.n - k) * x);
    return std::cos(2 * pi * wave * (x - axis.fraction(0)));  // alternates: zero at the nodes if shifted
  }
  if (axis.lower == Condition::dirichlet)
    return std::sin(pi * (axis.upper == Condition::dirichlet ? wave + 1 : wave + 0.5) * x);
  return std::cos(pi * (axis.upper == Condition::dirichlet ? wave + 0.5 : wave) * x);
}

/// D of (A1) as a dense matrix, row by row.
std::vector<std::vector<double>> second_difference(const Axis& axis) {
  const auto n = static_cast<std::size_t>(axis.n);
  std::vector<std::vector<double>> D(n, std::vector<double>(n, 0.0));
  const double per_h2 = 1 / (axis.spacing() * axis.spacing());
  for (std::size_t i = 0; i < n; ++i) {
    const Weights w = weights(axis, per_h2, static_cast<Index>(i));
    D[i][i] -= w.before + w.after;
    if (i > 0 || axis.periodic()) D[i][(i + n - 1) % n] += w.before;
    if (i + 1 < n || axis.periodic()) D[i][(i + 1) % n] += w.after;
  }
  return D;
}

constexpr Index counts[] = {1, 2, 3, 8};

/// n nodes and ends, or n + 1 faces, at equal distances from `origin` on.
std::vector<double> equal_coordinates(const Axis& axis, double origin) {
  std::vector<double> x;
  for (Index i = 0; i <= axis.cells(); ++i)
    x.push_back(origin + axis.length * static_cast<double>(i) / static_cast<double>(axis.cells()));
  return x;
}

/// (A2) by its definition, in long double.
struct ExactRow {
  long double before, after, width, position;
};

std::vector<ExactRow> exact_rows(const Axis& axis, const std::vector<double>& coordinates) {
  using Real = long double;
  const std::vector<Real> x(coordinates.begin(), coordinates.end());
  const Real span = x.back() - x.front(), unit = span / static_cast<Real>(axis.cells());
  const auto n = static_cast<std::size_t>(axis.n);
  const bool cells = axis.centering == Centering::cell;
  const std::size_t first = !cells && axis.lower == Condition::dirichlet ? 1 : 0;
  std::vector<Real> nodes;
  for (std::size_t i = 0; i < n; ++i) nodes.push_back(cells ? (x[i] + x[i + 1]) / 2 : x[first + i]);
  std::vector<ExactRow> rows;
  for (std::size_t i = 0; i < n; ++i) {
    Real before = 0, after = 0;  // distances; none: no neighbour
    if (i > 0) before = nodes[i] - nodes[i - 1];
    if (i + 1 < n) after = nodes[i + 1] - nodes[i];
    if (i == 0 && axis.lower == Condition::dirichlet) before = nodes[i] - x.front();
    if (i == 0 && axis.periodic()) before = nodes[i] - (nodes.back() - span);
    if (i + 1 == n && axis.upper == Condition::dirichlet) after = x.back() - nodes[i];
    if (i + 1 == n && axis.periodic()) after = nodes.front() + span - nodes[i];
    const Real width = cells ? x[i + 1] - x[i] : (before + after) / 2;
    rows.push_back(
        {before > 0 ? unit / before : 0, after > 0 ? unit / after : 0, width * unit, nodes[i] - x.front()});
  }
  return rows;
}

std::string message_of(const Axis& axis, const std::vector<double>& coordinates) {
  try {
    static_cast<void>(axis_rows(axis, coordinates));
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing thrown";
}

}  // namespace

TEST_CASE("the modes of every axis are the eigenvectors of its second difference") {
  for (const Index n : counts)
    for (const Axis& axis : all_axes(n)) {
      CAPTURE(name(axis));
      const auto D = second_difference(axis);
      const double largest = 4 / (axis.spacing() * axis.spacing());
      for (Index k = 0; k < n; ++k) {
        CAPTURE(k);
        Worst size;
        for (Index i = 0; i < n; ++i) size.take_in(mode(axis, k, axis.fraction(i)));
        CHECK(size.value() > 0.5);
        CHECK(eigenvalue(axis, k) >= 0);
        for (Index i = 0; i < n; ++i) {
          double image = 0;
          for (Index j = 0; j < n; ++j)
            image +=
                D[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] * mode(axis, k, axis.fraction(j));
          CHECK(std::abs(image + eigenvalue(axis, k) * mode(axis, k, axis.fraction(i))) <= 1e-14 * largest);
        }
      }
    }
}

TEST_CASE(
    "rows are the weights times the widths: symmetric, and widths add up to the length less Dirichlet ends") {
  for (const Index n : counts)
    for (const Axis& axis : all_axes(n)) {
      CAPTURE(name(axis));
      const std::vector<AxisRow> rows = axis_rows(axis);
      REQUIRE(static_cast<Index>(rows.size()) == n);
      const double h = axis.spacing();
      double sum = 0;
      for (Index i = 0; i < n; ++i) {
        const AxisRow& row = rows[static_cast<std::size_t>(i)];
        const Weights w = weights(axis, 1 / (h * h), i);
        CHECK(row.before == doctest::Approx(w.before * row.width).epsilon(1e-14));
        CHECK(row.after == doctest::Approx(w.after * row.width).epsilon(1e-14));
        CHECK(row.position == doctest::Approx(axis.fraction(i) * axis.length));
        if (i > 0) CHECK(row.before == rows[static_cast<std::size_t>(i - 1)].after);
        sum += row.width / h;
      }
      if (axis.periodic()) CHECK(rows.front().before == rows.back().after);
      const bool node = axis.centering == Centering::node;
      const double left_out = h / 2 *
                              ((node && axis.lower == Condition::dirichlet ? 1 : 0) +
                               (node && axis.upper == Condition::dirichlet ? 1 : 0));
      CHECK(sum == doctest::Approx(axis.length - left_out));
    }
}

TEST_CASE("equal coordinates, wherever they begin, give the rows of equal spacings") {
  for (const double origin : {0.0, -3.25})
    for (const Index n : counts)
      for (const Axis& axis : all_axes(n)) {
        CAPTURE(name(axis));
        const std::vector<AxisRow> expected = axis_rows(axis),
                                   rows = axis_rows(axis, equal_coordinates(axis, origin));
        REQUIRE(rows.size() == expected.size());
        for (std::size_t i = 0; i < rows.size(); ++i) {
          CHECK(std::abs(rows[i].before - expected[i].before) <= 1e-13);
          CHECK(std::abs(rows[i].after - expected[i].after) <= 1e-13);
          CHECK(std::abs(rows[i].width - expected[i].width) <= 1e-13 * expected[i].width);
          CHECK(std::abs(rows[i].position - expected[i].position) <= 1e-14);
        }
      }
}

TEST_CASE("rows are those of the given coordinates to rounding, however far off the axis begins") {
  for (const double origin : {1.5, -1e3, 1e9})
    for (const Axis& axis : all_axes(8)) {
      CAPTURE(origin);
      CAPTURE(name(axis));
      std::vector<double> x{origin};
      for (Index i = 0; i < axis.cells(); ++i)
        x.push_back(x.back() + 0.3 * std::pow(1.1, static_cast<double>(i % 5)));
      const std::vector<AxisRow> rows = axis_rows(axis, x);
      const std::vector<ExactRow> exact = exact_rows(axis, x);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        CAPTURE(i);
        const auto is = [](double made, long double wanted) {
          CHECK(std::abs(made - wanted) <= 6 * 0x1p-53L * wanted);
        };
        is(rows[i].before, exact[i].before);
        is(rows[i].after, exact[i].after);
        is(rows[i].width, exact[i].width);
        is(rows[i].position, exact[i].position);
      }
    }
}

TEST_CASE("stretched coordinates by hand") {
  using enum Condition;
  const std::vector<double> x{1.0, 1.5, 2.5, 5.0};  // unit: 4 / 3
  const double unit = 4.0 / 3;
  const auto check_row = [&](const AxisRow& row, double h_before, double h_after, double width,
                             double position) {
    CHECK(row.before == doctest::Approx(h_before > 0 ? unit / h_before : 0.0));
    CHECK(row.after == doctest::Approx(h_after > 0 ? unit / h_after : 0.0));
    CHECK(row.width == doctest::Approx(unit * width));
    CHECK(row.position == doctest::Approx(position));
  };
  SUBCASE("nodes between Dirichlet ends") {
    const auto rows = axis_rows({2, 4.0, dirichlet, dirichlet, Centering::node}, x);
    check_row(rows[0], 0.5, 1.0, 0.75, 0.5);
    check_row(rows[1], 1.0, 2.5, 1.75, 1.5);
  }
  SUBCASE("nodes from a Neumann end, which is one, to a Dirichlet end") {
    const auto rows = axis_rows({3, 4.0, neumann, dirichlet, Centering::node}, x);
    check_row(rows[0], 0, 0.5, 0.25, 0);
    check_row(rows[2], 1.0, 2.5, 1.75, 1.5);
  }
  SUBCASE("nodes with both ends") {
    const auto rows = axis_rows({4, 4.0, neumann, neumann, Centering::node}, x);
    check_row(rows[3], 2.5, 0, 1.25, 4.0);
  }
  SUBCASE("nodes of a period") {
    const auto rows = axis_rows({3, 4.0, periodic, periodic, Centering::node}, x);
    check_row(rows[0], 2.5, 0.5, 1.5, 0);
    check_row(rows[2], 1.0, 2.5, 1.75, 1.5);
  }
  SUBCASE("cells from a Dirichlet to a Neumann end") {
    const auto rows = axis_rows({3, 4.0, dirichlet, neumann, Centering::cell}, x);
    check_row(rows[0], 0.25, 0.75, 0.5, 0.25);
    check_row(rows[1], 0.75, 1.75, 1.0, 1.0);
    check_row(rows[2], 1.75, 0, 2.5, 2.75);
  }
  SUBCASE("cells of a period") {
    const auto rows = axis_rows({3, 4.0, periodic, periodic, Centering::cell}, x);
    check_row(rows[0], 1.5, 0.75, 0.5, 0.25);
    check_row(rows[2], 1.75, 1.5, 2.5, 2.75);
  }
}

TEST_CASE("links between two nodes are equal to the last bit on stretched axes too") {
  for (const Axis& axis : all_axes(8)) {
    std::vector<double> x{0.1};
    for (Index i = 0; i < axis.cells(); ++i)
      x.push_back(x.back() + 0.3 * std::pow(1.1, static_cast<double>(i)));
    const std::vector<AxisRow> rows = axis_rows(axis, x);
    for (std::size_t i = 1; i < rows.size(); ++i) CHECK(rows[i].before == rows[i - 1].after);
    if (axis.periodic()) CHECK(rows.front().before == rows.back().after);
  }
}

TEST_CASE("coordinates that cannot be are named") {
  using enum Condition;
  const Axis nodes{11, 1.0, dirichlet, dirichlet, Centering::node};
  CHECK(message_of(nodes, std::vector<double>(12)) ==
        "coordinates: 12 are given, 11 nodes and both ends want 13");
  CHECK(message_of({11, 1.0, neumann, dirichlet, Centering::node}, {}) ==
        "coordinates: 0 are given, 11 nodes and the Dirichlet end want 12");
  CHECK(message_of({11, 1.0, neumann, neumann, Centering::node}, std::vector<double>(12)) ==
        "coordinates: 12 are given, 11 nodes want 11");
  CHECK(message_of({11, 1.0, periodic, periodic, Centering::node}, std::vector<double>(11)) ==
        "coordinates: 11 are given, 11 nodes and the end of the period want 12");
  CHECK(message_of({11, 1.0, periodic, periodic, Centering::cell}, std::vector<double>(11)) ==
        "coordinates: 11 are given, the faces of 11 cells are 12");
  const Axis three{3, 1.0, neumann, neumann, Centering::cell};
  CHECK(message_of(three, {0.0, 0.5, 0.7, 0.5}) == "coordinates must increase: number 4 is 0.5 after 0.7");
  CHECK(message_of(three, {0.0, 0.5, 0.5, 1.0}) == "coordinates must increase: number 3 is 0.5 after 0.5");
  CHECK(message_of(three, {0.0, 0.5, std::nan(""), 1.0}) == "coordinates must be finite: number 3 is nan");
  CHECK(message_of(three, {0.0, 0.5, 0.7, std::numeric_limits<double>::infinity()}) ==
        "coordinates must be finite: number 4 is inf");
}
