/// \file
/// Many symmetric tridiagonal systems at once, one per column, solved in segments of consecutive rows.
///
/// Column k of a grid of m rows holds the system of one mode along the slowest axis (grid/axis.hpp (A2)),
///
///     before_j (v_{j-1} - v_j) + after_j (v_{j+1} - v_j) - width_j mu_k v_j = width_j f_j,           (S1)
///     j = 0 ... m-1,
///
/// symmetric because after_j = before_{j+1}. Beyond an end with a link lies zero, or, on a periodic axis, the
/// other end. mu_k is the eigenvalue of the transformed axes less the constant of the equation. What follows is
/// for mu_k >= 0; where mu_k < 0 the solutions are waves, to which waves.hpp does the same by other formulas, in
/// the same tiles. Without any link to zero and with mu_k = 0 the system is singular, and the result is infinite
/// or NaN.
///
/// "Before" and "after" are meant as in grid/axis.hpp: the row before row j is j - 1, the row after it j + 1, and
/// what lies before a segment are the rows of smaller index, wherever a drawing of the grid would put them.
///
/// A segment of rows is a system of its own once the unknowns `before` its first row and `after` its last one
/// are known. Only its first and last unknown matter to other segments. They are (Boundary)
///
///     first = y_first + first.before * before + first.after * after,
///     last  = y_last  + last.before  * before + last.after  * after,                                    (S2)
///
/// y from the right-hand side, the rest (Response) from the matrix alone. What is missing to weights that add
/// up to 1 is `lost` to mu: first.before + first.after + first.lost = 1, the same for last. For mu >= 0 all
/// shares are positive, and each comes from sums, products and quotients of positive numbers, `lost` too, so
/// that each is right to almost all digits. Differences like 1 - first.after are taken as first.before +
/// first.lost, which does not cancel: this is what keeps the smooth modes of long axes, and those between
/// Neumann ends.
///
/// So the systems can be solved in any partition into segments: reduce every segment to its Boundary, solve
/// the interface system among the boundaries (eliminate, substitute; close where the axis is periodic), then
/// solve every segment with its neighbours known. The same formulas serve slabs of a grid and blocks of rows
/// inside one CUDA kernel. An elimination may also begin at both ends at once, and meet in between: seen from the
/// last segment all is the same, with before and after changing places (mirrored).
///
/// All recurrences run in float64 whatever the type of the grid: in float32 the smooth modes of a long line,
/// whose rows are 1, -2 - (a few 1e-9), 1, would be wrong by a factor.
#pragma once

#include <cmath>

#include "../../runtime/ports.hpp"
#include "../grid/axis.hpp"
#include "waves.hpp"

namespace asterism::poisson {

/// The matrix of one row of (S1) but for mu.
struct Row {
  double before, after, width;

  [[nodiscard]] ASTERISM_HOST_DEVICE bool is_like(const Row& other) const {
    return before == other.before && after == other.after && width == other.width;
  }
};

/// Row i of a tile of AxisRows.
ASTERISM_HOST_DEVICE inline Row row_at(const In<double>& axis, Index i) {
  const double* const row = axis.row(i);
  return {row[grid::link_before], row[grid::link_after], row[grid::width_column]};
}

/// As a rung of waves.hpp, with the right-hand side width_j f_j.
ASTERISM_HOST_DEVICE inline Rung rung(const Row& row, double mu, double impedance, double f) {
  return {row.width * mu / impedance, row.after == 0.0 ? 0.0 : impedance / row.after, f / impedance};
}

/// The elimination of the rows of a segment in order, from zero known before the first, or any value y_{-1}:
///
///     v_j = y_j + m_j v_{j+1},   y_j = (before_j y_{j-1} - width_j f_j) / delta_j,   m_j = after_j /
///     delta_j, delta_j = before_j (1 - m_{j-1}) + width_j mu + after_j,   m_{-1} = 0. (S3)
struct Pivot {
  double complement = 1.0;  ///< 1 - m_j = (before_j (1 - m_{j-1}) + width_j mu) / delta_j
  double inverse = 0.0;     ///< 1 / delta_j

  ASTERISM_HOST_DEVICE void advance(const Row& row, double mu) {
    const double kept = row.before * complement + row.width * mu;
    inverse = 1.0 / (kept + row.after);
    complement = kept * inverse;
  }

  [[nodiscard]] ASTERISM_HOST_DEVICE double m(const Row& row) const { return row.after * inverse; }

  /// y_j from y_{j-1} and width_j f_j.
  [[nodiscard]] ASTERISM_HOST_DEVICE double eliminate(const Row& row, double y_before, double f) const {
    return inverse * (row.before * y_before - f);
  }
};

/// How much of the values around a segment arrives at one of its unknowns (S2).
struct Shares {
  double before, after, lost;
};

/// The first and last unknown of a segment as far as its matrix decides. The default is a segment without
/// rows: it passes on what lies on its other side.
struct Response {
  Shares first{0.0, 1.0, 0.0}, last{1.0, 0.0, 0.0};

  /// Takes in the next row: (S3) with the value before the segment as an unknown of its own, put into what
  /// first.after stood for. @return 1 / delta_j
  ASTERISM_HOST_DEVICE double append(const Row& row, double mu) {
    const double loss = row.width * mu;
    const double inverse = 1.0 / (row.before * (last.before + last.lost) + loss + row.after);
    last = {row.before * last.before * inverse, row.after * inverse,
            (row.before * last.lost + loss) * inverse};
    const double reach = first.after;
    first = {first.before + reach * last.before, reach * last.after, first.lost + reach * last.lost};
    return inverse;
  }
};

/// What a segment shows of itself to the rest of one column: the terms of (S2).
struct Boundary {
  double y_first = 0.0, y_last = 0.0;
  Response response;

  /// Takes in the next row with width_j f_j. All terms of y_first carry weights of one sign, so that nothing
  /// cancels that the system itself does not cancel.
  ASTERISM_HOST_DEVICE void append(const Row& row, double mu, double f) {
    const double reach = response.first.after;
    y_last = response.append(row, mu) * (row.before * y_last - f);
    y_first += reach * y_last;
  }
};

/// A Boundary where nobody asks how the segment responds: what it shows, and how it would be continued.
struct Reduction {
  double y_first = 0.0, y_last = 0.0;
  double reach = 1.0;                      ///< first.after
  double complement = Pivot{}.complement;  ///< 1 - last.after

  /// Takes in the next row with width_j f_j.
  ASTERISM_HOST_DEVICE void append(const Row& row, double mu, double f) {
    Pivot pivot{complement};
    pivot.advance(row, mu);
    complement = pivot.complement;
    y_last = pivot.eliminate(row, y_last, f);
    y_first += reach * y_last;
    reach *= pivot.m(row);
  }
};

/// A segment seen from the other end of the axis, where what was before comes after.
ASTERISM_HOST_DEVICE inline Shares mirrored(const Shares& s) { return {s.after, s.before, s.lost}; }
ASTERISM_HOST_DEVICE inline Response mirrored(const Response& r) { return {mirrored(r.last), mirrored(r.first)}; }
ASTERISM_HOST_DEVICE inline Boundary mirrored(const Boundary& b) {
  return {b.y_last, b.y_first, mirrored(b.response)};
}

/// The Boundary of two adjacent segments taken as one, a before b. Between them meet the unknowns
///
///     b's first:  x = y_first + first.before z + first.after after,
///     a's last:   z = y_last + last.before before + last.after x.
ASTERISM_HOST_DEVICE inline Boundary join(const Boundary& a, const Boundary& b) {
  const Shares &a_first = a.response.first, &a_last = a.response.last;
  const Shares &b_first = b.response.first, &b_last = b.response.last;
  // 1 - b_first.before a_last.after, without cancellation
  const double r = 1.0 / (b_first.after + b_first.lost + b_first.before * (a_last.before + a_last.lost));
  const double x_y = r * (b.y_first + b_first.before * a.y_last);
  const Shares x{r * b_first.before * a_last.before, r * b_first.after,
                 r * (b_first.lost + b_first.before * a_last.lost)};
  const double z_y = a.y_last + a_last.after * x_y;
  const Shares z{a_last.before + a_last.after * x.before, a_last.after * x.after,
                 a_last.lost + a_last.after * x.lost};
  return {a.y_first + a_first.after * x_y,
          b.y_last + b_last.before * z_y,
          {{a_first.before + a_first.after * x.before, a_first.after * x.after,
            a_first.lost + a_first.after * x.lost},
           {b_last.before * z.before, b_last.after + b_last.before * z.after,
            b_last.lost + b_last.before * z.lost}}};
}

/// The interface system, eliminated from the first segment to segment c: last_c = alpha + beta first_{c+1}.
/// The default lies before the first segment: alpha is the known value there.
struct Prefix {
  double alpha = 0.0, beta = 0.0;
  double gamma = 1.0;  ///< 1 - beta
};

/// The first unknown of a segment in terms of the value after the segment: first = y + share after.
struct First {
  double y, share;
  double rest;  ///< 1 - share
};

/// The first unknown of the segment after a prefix.
ASTERISM_HOST_DEVICE inline First first_after(const Prefix& prefix, double y_first, const Shares& first) {
  const double rest = first.lost + first.before * prefix.gamma;
  const double r = 1.0 / (first.after + rest);  // 1 / (1 - first.before beta)
  return {r * (y_first + first.before * prefix.alpha), r * first.after, r * rest};
}

/// One step of the forward elimination of the interface system: from segment c-1 to c.
ASTERISM_HOST_DEVICE inline Prefix eliminate(const Prefix& before, const Boundary& b, const First& first) {
  const Shares& last = b.response.last;
  return {b.y_last + last.before * (before.alpha + before.beta * first.y),
          last.after + last.before * before.beta * first.share,
          last.lost + last.before * (before.gamma + before.beta * first.rest)};
}
ASTERISM_HOST_DEVICE inline Prefix eliminate(const Prefix& before, const Boundary& b) {
  return eliminate(before, b, first_after(before, b.y_first, b.response.first));
}

/// The values beside a segment that its own solve needs, or passes on.
struct Neighbours {
  double before;  ///< the last unknown of the segment before
  double first;   ///< this segment's first unknown: the value after the segment before
};

/// One step of the back substitution: what lies before segment c, and its own first unknown, from the value
/// after it.
ASTERISM_HOST_DEVICE inline Neighbours substitute(const Prefix& before, const First& c, double after) {
  const double first = c.y + c.share * after;
  return {before.alpha + before.beta * first, first};
}

/// The unknowns on both sides of where two eliminations meet.
struct Meeting {
  double first;  ///< of the segment after it
  double last;   ///< of the segment before it
};

/// From the prefix that comes from the first segment and, mirrored, the one that comes from the last:
/// last = left.alpha + left.beta first, first = right.alpha + right.beta last. Who is on either side works this out on
/// his own and has to get the same bits, or the unknowns do not fit each other by the error of both, which may be large
/// where little is lost to mu: so each operation is rounded on its own, wherever this runs.
ASTERISM_HOST_DEVICE inline Meeting meet(const Prefix& left, const Prefix& right) {
  const double rest = std::fma(left.beta, right.gamma, left.gamma);  // 1 - left.beta right.beta
  const double first = std::fma(right.beta, left.alpha, right.alpha) / rest;
  return {first, std::fma(left.beta, first, left.alpha)};
}

/// On a periodic axis the value before the first row is not known, but the last unknown, whereas the
/// elimination takes it for given: there the first segments joined to one take the place of a Prefix, and
/// this makes it one as soon as the value before the first row is known.
ASTERISM_HOST_DEVICE inline Prefix prefix_of(const Boundary& joined, double before) {
  const Shares& last = joined.response.last;
  return {joined.y_last + last.before * before, last.after, last.before + last.lost};
}

/// The values around a whole column.
struct Around {
  double before, after;
};

/// Those of a periodic axis, where they are its own last and first unknown:
/// last = y_last + last.before last + last.after first, first = y_first + first.before last + first.after
/// first. Their difference is found on its own: where little is lost to mu both may be large and uncertain, by
/// the same amount.
ASTERISM_HOST_DEVICE inline Around close(const Boundary& whole) {
  const auto& [first, last] = whole.response;
  const double r = 1.0 / (first.before * last.lost + first.lost * last.after + first.lost * last.lost);
  const double after = r * ((last.after + last.lost) * whole.y_first + first.before * whole.y_last);
  return {after + r * (first.lost * whole.y_last - last.lost * whole.y_first), after};
}

}  // namespace asterism::poisson
