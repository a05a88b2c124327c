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
/// inside one CUDA kernel.
///
/// All recurrences run in float64 whatever the type of the grid: in float32 the smooth modes of a long line,
/// whose rows are 1, -2 - (a few 1e-9), 1, would be wrong by a factor.
#pragma once

#include "../../runtime/ports.hpp"
#include "../grid/axis.hpp"
#include "waves.hpp"

namespace asterism::poisson {

/// The matrix of one row of (S1) but for mu.
struct Row {
  double before, after, width;
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

/// The rows of a tile of what segments show of themselves (2 x n: what depends on the right-hand side), of
/// responses (6 x n), of prefixes (3 x n), and of segments joined to one (8 x n), which take the prefixes'
/// place on a periodic axis: first what they show, then their response.
enum ShownRow : Index { y_first_row, y_last_row, shown_rows };
enum ResponseRow : Index {
  first_before_row,
  first_after_row,
  first_lost_row,
  last_before_row,
  last_after_row,
  last_lost_row,
  response_rows
};
enum PrefixRow : Index { alpha_row, beta_row, gamma_row, prefix_rows };
enum JoinedRow : Index {
  joined_response_row = shown_rows,
  joined_rows = joined_response_row + Index{response_rows}
};

/// The rows of a tile that cpu::reduce goes on from: what the segment shows, and how it would be continued.
enum StateRow : Index { reach_row = shown_rows, complement_row, state_rows };

/// How many rows all these tiles have, `mu`, and those of values beside segments (`beside`).
struct InterfaceRows {
  Index mu, shown, response, prefix, joined, state, beside;
};
constexpr InterfaceRows rows_without_waves{1, shown_rows, response_rows, prefix_rows, joined_rows, state_rows, 1};
constexpr InterfaceRows rows_with_waves{wave_mu_rows,      wave_shown_rows, wave_response_rows, beyond_rows,
                                        wave_joined_rows, wave_state_rows, beyond_rows};

/// Whether `reduce` starts a segment or appends rows to one that is there already.
enum class Segment { start, append };

/// Column k of tiles.
ASTERISM_HOST_DEVICE inline Response response_at(const In<double>& tile, Index k, Index first_row = 0) {
  const auto at = [&](Index row) { return tile.row(first_row + row)[k]; };
  return {{at(first_before_row), at(first_after_row), at(first_lost_row)},
          {at(last_before_row), at(last_after_row), at(last_lost_row)}};
}
ASTERISM_HOST_DEVICE inline Boundary boundary_at(const In<double>& shown, const In<double>& response,
                                                 Index k) {
  return {shown.row(y_first_row)[k], shown.row(y_last_row)[k], response_at(response, k)};
}

/// Joined segments; none where there is no tile, or zeros: shares add up to 1.
ASTERISM_HOST_DEVICE inline Boundary joined_at(const In<double>& tile, Index k) {
  if (tile.data == nullptr) return {};
  const Response response = response_at(tile, k, joined_response_row);
  if (response.last.before == 0.0 && response.last.after == 0.0 && response.last.lost == 0.0) return {};
  return {tile.row(y_first_row)[k], tile.row(y_last_row)[k], response};
}

/// A prefix; that before the first segment where there is no tile, or zeros: beta + gamma = 1.
ASTERISM_HOST_DEVICE inline Prefix prefix_at(const In<double>& tile, Index k) {
  if (tile.data == nullptr) return {};
  const double beta = tile.row(beta_row)[k];
  return {tile.row(alpha_row)[k], beta, beta == 0.0 ? 1.0 : tile.row(gamma_row)[k]};
}

/// Writes column k of tiles.
ASTERISM_HOST_DEVICE inline void put(const Out<double>& tile, Index k, const Response& response,
                                     Index first_row = 0) {
  const auto at = [&](Index row) -> double& { return tile.row(first_row + row)[k]; };
  at(first_before_row) = response.first.before;
  at(first_after_row) = response.first.after;
  at(first_lost_row) = response.first.lost;
  at(last_before_row) = response.last.before;
  at(last_after_row) = response.last.after;
  at(last_lost_row) = response.last.lost;
}

/// One column of a step of the forward elimination: of prefixes, or of joined segments where `after` has so
/// many rows.
ASTERISM_HOST_DEVICE inline void eliminate_decay(const In<double>& shown, const In<double>& response,
                                                 const In<double>& prefix_before, const Out<double>& prefix_after,
                                                 Index k) {
  const Boundary b = boundary_at(shown, response, k);
  if (prefix_after.rows >= joined_rows) {
    const Boundary joined = join(joined_at(prefix_before, k), b);
    prefix_after.row(y_first_row)[k] = joined.y_first;
    prefix_after.row(y_last_row)[k] = joined.y_last;
    put(prefix_after, k, joined.response, joined_response_row);
    if (prefix_after.rows == wave_joined_rows) prefix_after.row(wave_joined_rows - 1)[k] = 0.0;
  } else {
    const Prefix next = eliminate(prefix_at(prefix_before, k), b);
    prefix_after.row(alpha_row)[k] = next.alpha;
    prefix_after.row(beta_row)[k] = next.beta;
    prefix_after.row(gamma_row)[k] = next.gamma;
  }
}
ASTERISM_HOST_DEVICE inline void eliminate_wave(const In<double>& shown, const In<double>& response,
                                                const In<double>& prefix_before, const Out<double>& prefix_after,
                                                Index k) {
  const Emitter e = emitter_at(shown, response, k);
  if (prefix_after.rows >= joined_rows)
    put(prefix_after, k, join(joined_waves_at(prefix_before, k), e), response.row(wave_response_rows - 1)[k]);
  else
    put(prefix_after, k, eliminate(beyond_at(prefix_before, k), e));
}
ASTERISM_HOST_DEVICE inline void eliminate_column(const In<double>& shown, const In<double>& response,
                                                  const In<double>& prefix_before,
                                                  const Out<double>& prefix_after, Index k) {
  if (has_impedance(response, wave_response_rows, k))
    eliminate_wave(shown, response, prefix_before, prefix_after, k);
  else
    eliminate_decay(shown, response, prefix_before, prefix_after, k);
}

/// One column of a step of the back substitution.
ASTERISM_HOST_DEVICE inline void substitute_decay(const In<double>& shown, const In<double>& response,
                                                  const In<double>& prefix_before,
                                                  const In<double>& before_start, const In<double>& after,
                                                  const Out<double>& first, const Out<double>& before, Index k) {
  const double start = before_start.data[k];
  Prefix prefix = prefix_before.rows >= joined_rows ? prefix_of(joined_at(prefix_before, k), start)
                                                    : prefix_at(prefix_before, k);
  if (prefix_before.data == nullptr) prefix.alpha = start;
  const Boundary b = boundary_at(shown, response, k);
  const Neighbours neighbours =
      substitute(prefix, first_after(prefix, b.y_first, b.response.first), after.data[k]);
  first.data[k] = neighbours.first;
  before.data[k] = neighbours.before;
}
ASTERISM_HOST_DEVICE inline void substitute_wave(const In<double>& shown, const In<double>& response,
                                                 const In<double>& prefix_before,
                                                 const In<double>& before_start, const In<double>& after,
                                                 const Out<double>& first, const Out<double>& before, Index k) {
  const Beyond start = prefix_before.rows >= joined_rows
                           ? eliminate(beyond_at(before_start, k), joined_waves_at(prefix_before, k))
                           : beyond_at(prefix_before, k);
  const Cut cut = substitute(start, emitter_at(shown, response, k), beyond_at(after, k));
  put(first, k, Beyond{cut.left, {}});
  put(before, k, Beyond{cut.right, {}});
}
ASTERISM_HOST_DEVICE inline void substitute_column(const In<double>& shown, const In<double>& response,
                                                   const In<double>& prefix_before,
                                                   const In<double>& before_start, const In<double>& after,
                                                   const Out<double>& first, const Out<double>& before, Index k) {
  if (has_impedance(response, wave_response_rows, k))
    substitute_wave(shown, response, prefix_before, before_start, after, first, before, k);
  else
    substitute_decay(shown, response, prefix_before, before_start, after, first, before, k);
}

/// One column of close.
ASTERISM_HOST_DEVICE inline void close_column(const In<double>& joined, const Out<double>& before_start,
                                              const Out<double>& after_end, Index k) {
  if (has_impedance(joined, wave_joined_rows, k)) {
    const Cut cut = close(joined_waves_at(joined, k));
    put(before_start, k, Beyond{cut.right, {}});
    put(after_end, k, Beyond{cut.left, {}});
    return;
  }
  const Around around = close(joined_at(joined, k));
  before_start.data[k] = around.before;
  after_end.data[k] = around.after;
}

// In all that follows `axis` has the segment's rows as AxisRows (rows x axis_columns) and mu is 1 x n. Where some modes
// are waves, mu has wave_mu_rows, and what is given for `n` columns below has for theirs as many rows as waves.hpp says:
// a value before or after a segment is a Beyond there.

namespace cpu {

/// The Response (6 x n; 7 x n with waves) of the segment with the rows `axis`.
void respond(In<double> axis, In<double> mu, Out<double> response);

/// What the segment shows of the systems (S1) with f = scale * lines, one per column. `state`: state_rows x
/// n (wave_state_rows), whose first shown_rows (wave_shown_rows) are the result; read for Segment::append only.
template <class T>
void reduce(In<T> lines, In<double> axis, In<double> mu, double scale, InOut<double> state, Segment segment);

/// One step of the forward elimination for every column. `shown` may have more rows (a state). The prefixes
/// have prefix_rows (beyond_rows), or joined_rows (wave_joined_rows) on a periodic axis; before the first segment
/// `prefix_before` is zeros or has no data, but for waves it is what lies before the axis.
void eliminate(In<double> shown, In<double> response, In<double> prefix_before, Out<double> prefix_after);

/// The values before the first row and after the last of every column of a periodic axis (1 x n each; beyond_rows x n
/// with waves), from all segments joined.
void close(In<double> joined, Out<double> before_start, Out<double> after_end);

/// One step of the back substitution for every column. All but the tiles above are 1 x n (beyond_rows x n): `before_start` as `close`
/// gives it, zeros on an axis that is not periodic; `after` the `first` of the next segment, after the last one zeros, or
/// after_end on a periodic axis.
void substitute(In<double> shown, In<double> response, In<double> prefix_before, In<double> before_start,
                In<double> after, Out<double> first, Out<double> before);

/// Solves (S1) with f = scale * lines in place, for every column, between the known values `before` and
/// `after` (1 x n).
template <class T>
void solve(InOut<T> lines, In<double> axis, In<double> mu, double scale, In<double> before, In<double> after);

}  // namespace cpu

namespace cuda {

/// Rows that one thread keeps in registers. Segments are cut into blocks of this many rows (the last may be
/// shorter).
constexpr Index block_rows = 32;

ASTERISM_HOST_DEVICE constexpr Index blocks_of(Index rows) { return (rows + block_rows - 1) / block_rows; }

/// Elements of working memory for a segment of `rows` x `n`: the Boundary of every block, or what it emits and how it
/// scatters.
constexpr Index blocks_scratch(Index rows, Index n, const InterfaceRows& tiles = rows_without_waves) {
  return tiles.joined * blocks_of(rows) * n;
}

/// The working memory of the blocks of a segment of `rows` x `n`: planes of blocks x n, plane p with row p of every
/// block's Boundary, as in a tile of joined segments.
struct Blocks {
  double* data;
  Index rows, n;
  [[nodiscard]] ASTERISM_HOST_DEVICE double* plane(Index p) const { return data + p * blocks_of(rows) * n; }
};

/// As cpu::respond.
void respond(Stream stream, In<double> axis, In<double> mu, Out<double> response);

/// The boundaries of the blocks among a group of rows of the segment, from its row `first_row` on, a multiple
/// of block_rows. `lines` and `axis` have the group's rows: a multiple of block_rows unless they are the
/// segment's last.
template <class T>
void reduce_blocks(Stream stream, In<T> lines, Index first_row, In<double> axis, In<double> mu, double scale,
                   const Blocks& blocks);

/// What the whole segment shows (2 x n; 4 x n with waves) from its blocks, which stay as they are.
void join_blocks(Stream stream, In<double> mu, const Blocks& blocks, Out<double> shown);

/// As on the CPU.
void eliminate(Stream stream, In<double> shown, In<double> response, In<double> prefix_before,
               Out<double> prefix_after);
void close(Stream stream, In<double> joined, Out<double> before_start, Out<double> after_end);
void substitute(Stream stream, In<double> shown, In<double> response, In<double> prefix_before,
                In<double> before_start, In<double> after, Out<double> first, Out<double> before);

/// As cpu::solve: reads the lines twice and writes them once; the blocks' boundaries add 5 to 9 bytes per
/// element (the more, the fewer columns there are to many rows). `work`: blocks_scratch(rows, n) elements.
template <class T>
void solve(Stream stream, InOut<T> lines, In<double> axis, In<double> mu, double scale, In<double> before,
           In<double> after, double* work);

}  // namespace cuda
}  // namespace asterism::poisson
