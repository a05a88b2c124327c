/// \file
/// One axis of a grid: its nodes, the conditions at its ends, its second difference, and what diagonalises
/// that.
///
/// n unknowns lie at the nodes of the axis, on [0, L]. The second difference of u with respect to the axis is
///
///     (D u)_i = before_i (u_{i-1} - u_i) + after_i (u_{i+1} - u_i),   i = 0 ... n-1,              (A1)
///
/// whose weights are 1/h^2 inside, and at the ends
///
///     condition      node-centred: nodes at                  weight outwards, inwards   cell-centred
///     Dirichlet      the end is a node, but no unknown       1/h^2, 1/h^2               2/h^2, 1/h^2
///     Neumann        the end is an unknown (half a cell)     0,     2/h^2               0,     1/h^2
///     periodic       the end is an unknown at 0, not at L    1/h^2 to the other end     the same
///
/// Outside a Dirichlet end u is zero: given values are lifted into the right-hand side (lift.hpp).
/// Cell-centred unknowns lie in the middle of n cells of width h, where a ghost cell beyond a Dirichlet end
/// has the opposite value, which is the same as a value of zero at half the distance. All conditions are of
/// second order.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "../../runtime/ports.hpp"
#include "../transforms/transform.hpp"

namespace asterism::grid {

enum class Condition { dirichlet, neumann, periodic };
enum class Centering { node, cell };

/// An axis with equally spaced nodes.
struct Axis {
  Index n = 1;
  double length = 1;
  Condition lower = Condition::neumann, upper = Condition::neumann;
  Centering centering = Centering::cell;

  bool operator==(const Axis&) const = default;

  [[nodiscard]] ASTERISM_HOST_DEVICE bool periodic() const { return lower == Condition::periodic; }
  [[nodiscard]] ASTERISM_HOST_DEVICE bool has_end_node(Condition end) const {
    return centering == Centering::node && end == Condition::neumann;
  }
  /// Cells of width h that the length holds: the spacing is length / cells().
  [[nodiscard]] ASTERISM_HOST_DEVICE Index cells() const {
    if (centering == Centering::cell || periodic()) return n;
    return n + 1 - (lower == Condition::neumann ? 1 : 0) - (upper == Condition::neumann ? 1 : 0);
  }
  [[nodiscard]] ASTERISM_HOST_DEVICE double spacing() const { return length / static_cast<double>(cells()); }
  /// 1 / h^2. Weights and eigenvalues share it, or they would be those of two operators. Exact for a unit length, two
  /// roundings off for others, where 1 over the square of a rounded h would be four.
  [[nodiscard]] ASTERISM_HOST_DEVICE double per_h2() const {
    const auto count = static_cast<double>(cells());
    return count * count / (length * length);
  }
  /// Where node i lies, as a fraction of the length.
  [[nodiscard]] ASTERISM_HOST_DEVICE double fraction(Index i) const {
    const double offset = centering == Centering::cell ? 0.5 : lower == Condition::dirichlet ? 1.0 : 0.0;
    return (static_cast<double>(i) + offset) / static_cast<double>(cells());
  }
};

/// The weights of (A1) at one node.
struct Weights {
  double before, after;  ///< to the node before (i - 1) and to the node after (i + 1)
};

/// A node that has no axis around it: what the second axis of a plane is in two dimensions.
constexpr Axis no_axis{};

/// The only node of a periodic axis is its own neighbour: nothing flows between them.
/// @param per_h2 1 / h^2
ASTERISM_HOST_DEVICE inline Weights weights(const Axis& axis, double per_h2, Index i) {
  if (axis.n == 1 && axis.periodic()) return {0.0, 0.0};
  Weights w{per_h2, per_h2};
  const bool first = i == 0, last = i == axis.n - 1;
  if (axis.centering == Centering::node) {
    if (first && axis.lower == Condition::neumann) w.after *= 2;
    if (last && axis.upper == Condition::neumann) w.before *= 2;
  } else {
    if (first && axis.lower == Condition::dirichlet) w.before *= 2;
    if (last && axis.upper == Condition::dirichlet) w.after *= 2;
  }
  if (first && axis.lower == Condition::neumann) w.before = 0;
  if (last && axis.upper == Condition::neumann) w.after = 0;
  return w;
}

/// The width of the cell of node i over h: half at the end nodes.
ASTERISM_HOST_DEVICE inline double relative_width(const Axis& axis, Index i) {
  return (i == 0 && axis.has_end_node(axis.lower) ? 0.5 : 1.0) *
         (i == axis.n - 1 && axis.has_end_node(axis.upper) ? 0.5 : 1.0);
}

/// The real transform to the modes of an axis: its basis functions are the eigenvectors of (A1).
inline transforms::Transform transform_to_modes(const Axis& axis) {
  using enum Condition;
  if (axis.periodic()) return transforms::Transform::dft;
  if (axis.centering == Centering::node) {
    if (axis.lower == dirichlet)
      return axis.upper == dirichlet ? transforms::Transform::dst1 : transforms::Transform::dst3;
    return axis.upper == dirichlet ? transforms::Transform::dct3 : transforms::Transform::dct1;
  }
  if (axis.lower == dirichlet)
    return axis.upper == dirichlet ? transforms::Transform::dst2 : transforms::Transform::dst4;
  return axis.upper == dirichlet ? transforms::Transform::dct4 : transforms::Transform::dct2;
}

/// The eigenvalue of -D, not negative, of mode k = 0 ... n-1: 4 sin^2(theta_k / 2) / h^2 where the mode's
/// wave number is theta_k / h.
inline double eigenvalue(const Axis& axis, Index k) {
  const double cells = static_cast<double>(axis.cells());
  double half_waves = 0;  // theta_k cells / pi
  switch (transform_to_modes(axis)) {
    case transforms::Transform::dst1:
    case transforms::Transform::dst2:
      half_waves = static_cast<double>(k + 1);
      break;
    case transforms::Transform::dct1:
    case transforms::Transform::dct2:
      half_waves = static_cast<double>(k);
      break;
    case transforms::Transform::dft:
      half_waves = 2 * static_cast<double>(std::min(k, axis.n - k));
      break;
    default:
      half_waves = static_cast<double>(k) + 0.5;
      break;
  }
  const double s = 2 * std::sin(half_waves / cells * (3.14159265358979323846 / 2));
  return axis.per_h2() * (s * s);
}

/// Those of all modes.
inline std::vector<double> eigenvalues(const Axis& axis) {
  std::vector<double> values;
  for (Index k = 0; k < axis.n; ++k) values.push_back(eigenvalue(axis, k));
  return values;
}

/// A node of the slowest axis, along which systems are solved by elimination and nodes need not be equally
/// spaced. With the distances h_before and h_after to its neighbours (to the end, at a Dirichlet end; without
/// end where there is no neighbour: weight 0), the width w of its cell and any unit of length h, (A1) is
///
///     w h (D u)_i = before (u_{i-1} - u_i) + after (u_{i+1} - u_i),                                 (A2)
///     before = h / h_before,   after = h / h_after,
///
/// symmetric because a node's link to the next is the next one's link to it. "Before" is towards 0, the row
/// above in a drawing of the grid; "after" is towards the length. Nothing here is called above or below.
struct AxisRow {
  double before, after;  ///< links, without unit; 1 inside an axis with equal spacings
  double width;          ///< w h; h^2 inside an axis with equal spacings
  double position;       ///< in [0, length]
};

/// How AxisRows lie in a tile: n x 4, a node a row.
enum AxisColumn : Index { link_before, link_after, width_column, position_column, axis_columns };

/// @return n rows, for equal spacings
std::vector<AxisRow> axis_rows(const Axis& axis);

/// The same for given coordinates, in increasing order. Node-centred: those of all nodes, Dirichlet ends
/// included, of a periodic axis both ends; cell-centred: the n + 1 faces between cells, both ends included.
/// @throw Error when their number is not what the axis wants, or they do not increase, naming the first.
std::vector<AxisRow> axis_rows(const Axis& axis, const std::vector<double>& coordinates);

/// The largest link of an axis, at least the one over a unit of length.
double largest_link(const std::vector<AxisRow>& rows);

}  // namespace asterism::grid
