/// \file
/// The tiles by which segments of tridiagonal systems speak to each other, a column for each system, and the steps of the
/// interface system on a column of them.
#pragma once

#include "recurrences.hpp"

namespace asterism::poisson {

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

}  // namespace asterism::poisson
