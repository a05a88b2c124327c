/// \file
/// What the fast Poisson solvers solve: a problem as its user states it, and the grid that it becomes.
///
///     u_xx + u_yy (+ u_zz) + lambda u = f                                                                  (P1)
///
/// on a rectangle or box, with Dirichlet, Neumann or periodic conditions at each of its ends. Extents, lengths and
/// conditions are given for each axis in the order of the array's axes: the slowest first, x last.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "../../../codelets/grid/axis.hpp"
#include "../../../codelets/grid/laplacian.hpp"
#include "../../../codelets/poisson/tridiagonal.hpp"

namespace asterism::poisson {

using grid::Centering;
using grid::Condition;

/// One end of an axis, a side of the box. The given value is u there (Dirichlet), or the derivative of u along the axis
/// (Neumann; in the direction of the axis at both of its ends, not outwards), and nothing where periodic.
struct End {
  Condition condition = Condition::dirichlet;
  double value = 0;            ///< everywhere on the side,
  std::vector<double> values = {};  ///< or, if not empty, at each of the side's nodes: the grid's extents without this axis
};

struct Ends {
  End lower = {}, upper = {};
};

/// A problem. Only `shape` has to be given: the rest makes it (P1) on a unit square or cube, u = 0 on its border, lambda = 0.
struct Problem {
  /// Unknowns along each axis, 2 or 3 of them: {rows, columns} or {planes, rows, columns}. Leading
  /// extents of 1 cannot be cut: such a problem is solved as with_planes_to_cut() says.
  std::vector<Index> shape;
  /// Of the box, along each axis; empty: 1. In any unit of length; lambda and f are in its inverse square times u's unit.
  std::vector<double> lengths = {};
  Centering centering = Centering::node;
  std::vector<Ends> ends = {};  ///< for each axis; empty: Dirichlet, u = 0
  double lambda = 0;
  /// Of the slowest axis, where its nodes are not equally spaced (grid::axis_rows says which); empty: they are. They
  /// start at any value; the length of that axis is then their span.
  std::vector<double> coordinates = {};
  Index batch = 1;  ///< independent problems, one behind the other in memory
};

/// The discrete problem: `batch` times `planes` planes of columns() unknowns.
struct Grid {
  Index batch = 1, planes = 0;
  grid::Axis slow;                       ///< equally spaced or not: its ends, extent and length
  bool is_equally_spaced = true;         ///< along it
  std::vector<grid::AxisRow> rows;       ///< the nodes of the slowest axis
  grid::Operator a;                      ///< the axes of a plane, and lambda; in two dimensions y is one node
  std::vector<Index> shape;              ///< of the array that holds it, the batch (if more than 1) first
  /// Of lambda, where it is positive, from the nearest eigenvalue of the discrete Laplacian's negative (with unequal
  /// spacings up to twice of it); otherwise infinite.
  double distance_from_spectrum = std::numeric_limits<double>::infinity();

  [[nodiscard]] Index columns() const { return a.y.n * a.x.n; }
  [[nodiscard]] Index total_planes() const { return batch * planes; }
  [[nodiscard]] Index unknowns() const { return total_planes() * columns(); }
  /// Whether constants solve the homogeneous problem: no Dirichlet end, and lambda = 0.
  [[nodiscard]] bool has_constants() const;
  /// Whether the solutions of some modes within the planes are waves along the slowest axis (Regime).
  [[nodiscard]] bool has_waves() const { return eigenvalue(a.y, 0) + eigenvalue(a.x, 0) < a.lambda; }
  /// Rows of the tiles by which slabs speak to each other.
  [[nodiscard]] InterfaceRows interface() const { return has_waves() ? rows_with_waves : rows_without_waves; }
  /// The sum of the cell's sizes, in the units in which moments are taken.
  [[nodiscard]] double measure() const;
  /// ||A|| = ||D||_inf + |lambda| (grid::operator_norm)
  [[nodiscard]] double operator_norm() const;
  /// ||A|| over the smallest of A's eigenvalues' sizes, where lambda > 0: so many times the residual's size the
  /// error of u may have. Otherwise nothing: it is large where lines are long, but does not depend on lambda's luck.
  [[nodiscard]] std::optional<double> condition() const;
};

/// Axis `a` as it is with equal spacings. Extents and lengths are taken to be sound.
/// @throw Error: conditions or values at its ends that are not sound or do not go together
grid::Axis axis_of(const Problem& problem, std::size_t a);

/// The same numbers in the same memory, in planes along an axis that has something to cut: leading extents of 1 go behind
/// the first axis that is longer (1 x n becomes n x 1). Where the slowest axis has coordinates, it stays.
Problem with_planes_to_cut(Problem problem);

/// The grid of with_planes_to_cut(problem).
/// @throw Error: extents, lengths, conditions or values that are not sound or do not go together; lambda at an eigenvalue.
Grid discretise(const Problem& problem);

/// "15 x 7 x 3"
std::string to_string(const std::vector<Index>& shape);

}  // namespace asterism::poisson
