/// \file
/// Given boundary values, lifted into the right-hand side of the operator of a grid (laplacian.hpp): A u = f with them is
/// A u = f' with zero values.
#pragma once

#include <cmath>

#include "../../runtime/codelet.hpp"
#include "laplacian.hpp"

namespace asterism::grid {

/// A slab that given boundary values are lifted into, and its place along the slowest axis.
struct LiftedSlab {
  Operator a;
  Axis slow;               ///< the slowest axis
  bool is_equally_spaced;  ///< whether its nodes lie as `slow` says, not as coordinates do
  double unit;       ///< of length: h of the slab's AxisRows (A2); that of axis_rows is the axis' spacing()
  bool first, last;  ///< whether the slab has the grid's first plane, its last
};

/// A number of twice float64's digits. What is given at the ends at a corner may cancel, and with it what was rounded off
/// factors.
struct TwoPart {
  double value = 0, rest = 0;
};

ASTERISM_HOST_DEVICE inline TwoPart quotient(double a, double b) {
  const double value = a / b;
  return {value, std::fma(-value, b, a) / b};
}
ASTERISM_HOST_DEVICE inline TwoPart square(const TwoPart& a) {
  const double value = a.value * a.value;
  return {value, std::fma(a.value, a.value, -value) + 2 * a.value * a.rest};
}
/// @param few a number of few digits: a power of two
ASTERISM_HOST_DEVICE inline TwoPart times(double few, const TwoPart& a) {
  return {few * a.value, few * a.rest};
}

/// What a given value at the end of an axis adds to the right-hand side at the node next to it, over that
/// value: the value itself (Dirichlet) is taken to the right by its weight in (A1), -weight; the derivative g
/// along the axis (Neumann) changes the flux through the end of the node's cell, whose width is w, from zero
/// to g, so that f grows by g / w at the lower end and by -g / w at the upper (node-centred: w = h / 2, 2 g /
/// h).
/// @param weight of (A1), towards the end
/// @param per_width 1 / w
/// @param direction 1 at the lower end, -1 at the upper
ASTERISM_HOST_DEVICE inline TwoPart lift_factor(Condition condition, const TwoPart& weight,
                                                const TwoPart& per_width, double direction) {
  return condition == Condition::dirichlet ? times(-1, weight)
         : condition == Condition::neumann ? times(direction, per_width)
                                           : TwoPart{};
}

/// The factors of both ends of an axis.
struct LiftFactors {
  TwoPart lower, upper;
};

ASTERISM_HOST_DEVICE inline LiftFactors lift_factors(const Axis& axis) {
  const TwoPart per_h = quotient(static_cast<double>(axis.cells()), axis.length), per_h2 = square(per_h);
  const Index end = axis.n - 1;
  const auto per_width = [&](Index i) { return times(1 / relative_width(axis, i), per_h); };
  return {lift_factor(axis.lower, times(weights(axis, 1, 0).before, per_h2), per_width(0), 1.0),
          lift_factor(axis.upper, times(weights(axis, 1, end).after, per_h2), per_width(end), -1.0)};
}

/// The same along the slowest axis; zero where the slab has no end. The tile's width is w h, so 1 / w = unit / width.
/// @param front,back AxisRows of the slab's first plane and its last
ASTERISM_HOST_DEVICE inline LiftFactors lift_factors(const LiftedSlab& slab, const double* front,
                                                     const double* back) {
  LiftFactors factors;
  if (slab.is_equally_spaced) {
    factors = lift_factors(slab.slow);
  } else {
    const auto per_width = [&](const double* row) { return quotient(slab.unit, row[width_column]); };
    factors = {lift_factor(slab.slow.lower, {weights_between_planes(front).before}, per_width(front), 1.0),
               lift_factor(slab.slow.upper, {weights_between_planes(back).after}, per_width(back), -1.0)};
  }
  return {slab.first ? factors.lower : TwoPart{}, slab.last ? factors.upper : TwoPart{}};
}

/// Whether a tile of sides holds values: one of a single element says that all of them are zero.
ASTERISM_HOST_DEVICE inline bool given(const In<double>& sides) { return sides.rows * sides.cols > 1; }

/// A sum of products with twice the digits of float64 (Ogita, Rump, Oishi 2005, Dot2): what is given at the ends at a corner
/// may cancel, and cancel f.
class LiftedSum {
 public:
  ASTERISM_HOST_DEVICE explicit LiftedSum(double f) : sum_(f) {}
  ASTERISM_HOST_DEVICE void add(const TwoPart& factor, double side) {
    const double product = factor.value * side, sum = sum_ + product, added = sum - sum_;
    rest_ += std::fma(factor.value, side, -product) + factor.rest * side +
             ((sum_ - (sum - added)) + (product - added));
    sum_ = sum;
  }
  [[nodiscard]] ASTERISM_HOST_DEVICE double value() const { return sum_ + rest_; }

 private:
  double sum_, rest_ = 0;
};

/// What is given at the ends of a slab, over its nodes.
class Lift {
 public:
  /// As cpu::lift has them.
  ASTERISM_HOST_DEVICE Lift(const LiftedSlab& slab, Index rows, const In<double>& x_sides,
                            const In<double>& y_sides, const In<double>& z_sides, const In<double>& axis)
      : ny_(slab.a.y.n),
        nx_(slab.a.x.n),
        last_row_(rows - 1),
        x_sides_(x_sides),
        y_sides_(y_sides),
        z_sides_(z_sides),
        has_x_(given(x_sides) && !slab.a.x.periodic()),
        has_y_(given(y_sides) && !slab.a.y.periodic()),
        has_z_(given(z_sides) && !slab.slow.periodic()),
        is_first_(slab.first),
        is_last_(slab.last),
        x_(lift_factors(slab.a.x)),
        y_(lift_factors(slab.a.y)),
        z_(lift_factors(slab, axis.row(0), axis.row(rows - 1))) {}

  /// Lifts into line y of plane i, `line`, at the nodes that lie at an end: every `step`-th of them from number `start` on.
  template <class T>
  ASTERISM_HOST_DEVICE void into(T* line, Index i, Index y, Index start, Index step) const {
    const auto lift_node = [&](Index x) {
      line[x] = static_cast<T>(lifted(static_cast<double>(line[x]), i, y, x));
    };
    const bool is_all = (has_y_ && (y == 0 || y == ny_ - 1)) ||
                        (has_z_ && ((is_first_ && i == 0) || (is_last_ && i == last_row_)));
    if (is_all)
      for (Index x = start; x < nx_; x += step) lift_node(x);
    else if (has_x_)
      for (Index end = start; end < (nx_ > 1 ? 2 : 1); end += step) lift_node(end * (nx_ - 1));
  }

 private:
  Index ny_, nx_, last_row_;
  In<double> x_sides_, y_sides_, z_sides_;
  bool has_x_, has_y_, has_z_, is_first_, is_last_;
  LiftFactors x_, y_, z_;

  [[nodiscard]] ASTERISM_HOST_DEVICE double lifted(double f, Index i, Index y, Index x) const {
    LiftedSum sum(f);
    if (has_x_ && x == 0) sum.add(x_.lower, x_sides_.row(i)[y]);
    if (has_x_ && x == nx_ - 1) sum.add(x_.upper, x_sides_.row(i)[ny_ + y]);
    if (has_y_ && y == 0) sum.add(y_.lower, y_sides_.row(i)[x]);
    if (has_y_ && y == ny_ - 1) sum.add(y_.upper, y_sides_.row(i)[nx_ + x]);
    if (has_z_ && is_first_ && i == 0) sum.add(z_.lower, z_sides_.row(0)[y * nx_ + x]);
    if (has_z_ && is_last_ && i == last_row_) sum.add(z_.upper, z_sides_.row(1)[y * nx_ + x]);
    return sum.value();
  }
};

namespace cpu {

/// Lifts given values at the ends of axes into f, so that A u = f with zero values: see lift_factor. What a node has from
/// several ends is added up at once, and rounded once. What is given at a periodic end has no effect.
/// Each tile of sides may be 1 x 1 instead, whatever it holds: zero values.
/// @param f rows x (ny nx)
/// @param x_sides rows x 2 ny: for each plane, values at the lower end of x for y = 0 ... ny-1, then at the
///   upper
/// @param y_sides rows x 2 nx: likewise, at the ends of y
/// @param z_sides 2 x (ny nx): at the lower end of the slowest axis, at the upper; not read by a slab with
///   neither
/// @param axis the slab's AxisRows
template <class T>
void lift(const LiftedSlab& slab, InOut<T> f, In<double> x_sides, In<double> y_sides, In<double> z_sides,
          In<double> axis);

}  // namespace cpu

namespace cuda {

template <class T>
void lift(Stream stream, const LiftedSlab& slab, InOut<T> f, In<double> x_sides, In<double> y_sides,
          In<double> z_sides, In<double> axis);

}  // namespace cuda
}  // namespace asterism::grid

namespace asterism::grid::codelets {

/// The given values as cpu::lift has them.
template <template <class> class As, class T>
struct LiftPorts {
  As<InOut<T>> f;
  As<In<double>> x_sides, y_sides, z_sides;  ///< given values at the ends of x, of y and of the slowest axis
  As<In<double>> axis;                       ///< the slab's AxisRows
};
template <class T>
inline const Codelet<LiftedSlab, LiftPorts<AsPorts, T>> lift{
    typed_name<T>("lift"),
    [](const LiftedSlab& slab, LiftPorts<AsPorts, T> p) {
      cpu::lift(slab, p.f, p.x_sides, p.y_sides, p.z_sides, p.axis);
    },
    ASTERISM_CUDA_KERNEL([](Stream stream, const LiftedSlab& slab, LiftPorts<AsPorts, T> p) {
      cuda::lift(stream, slab, p.f, p.x_sides, p.y_sides, p.z_sides, p.axis);
    })};

}  // namespace asterism::grid::codelets
