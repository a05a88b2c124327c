/// \file
/// The tiles by which segments of tridiagonal systems speak to each other, a column for each system, and the steps of the
/// interface system on a column of them.
#pragma once

#include <type_traits>

#include "recurrences.hpp"

namespace asterism::poisson {

/// What a segment tells of itself is in two tiles: what it shows (2 x n), which depends on the right-hand side, and how it
/// responds (6 x n), which depends on the matrix alone and need be told but once. So it is with prefixes (1 x n each), and
/// with segments joined to one, which take the prefixes' place on a periodic axis and are as single segments are.
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
enum PrefixShownRow : Index { alpha_row, prefix_shown_rows };
enum PrefixResponseRow : Index { gamma_row, prefix_response_rows };  // beta is 1 - gamma, gamma not 1 - beta

/// Both of a joined segment in one tile, as CUDA kernels keep blocks.
enum JoinedRow : Index {
  joined_response_row = shown_rows,
  joined_rows = joined_response_row + Index{response_rows}
};

/// The rows of a tile that cpu::reduce goes on from: what the segment shows, and how it would be continued.
enum StateRow : Index { reach_row = shown_rows, complement_row, state_rows };

/// How many rows all these tiles have, `mu`, and those of values beside segments (`beside`).
struct InterfaceRows {
  Index mu, shown, response, prefix_shown, prefix_response, joined, state, beside;

  bool operator==(const InterfaceRows&) const = default;

  /// Those of what an elimination carries on: a prefix, or on a periodic axis joined segments.
  [[nodiscard]] constexpr Index carried_shown(bool periodic) const { return periodic ? shown : prefix_shown; }
  [[nodiscard]] constexpr Index carried_response(bool periodic) const {
    return periodic ? response : prefix_response;
  }
};
constexpr InterfaceRows rows_without_waves{
    1, shown_rows, response_rows, prefix_shown_rows, prefix_response_rows, joined_rows, state_rows, 1};
constexpr InterfaceRows rows_with_waves{wave_mu_rows,   wave_shown_rows,  wave_response_rows, amplitude_rows,
                                        amplitude_rows, wave_joined_rows, wave_state_rows,    beyond_rows};

/// Those of systems with such a tile of mu.
inline InterfaceRows rows_with(const In<double>& mu) {
  return mu.rows == wave_mu_rows ? rows_with_waves : rows_without_waves;
}

/// What a segment, or all up to one, tells. What is shown may lack data: zeros. No segment tells nothing at all.
struct Told {
  In<double> shown{}, response{};
};

/// Working memory of a segment that is a ring, all of a periodic axis: the state of its reduction, which begins with what it
/// shows, and the values around it, which are its own.
struct Ring {
  InOut<double> state;
  Out<double> before, after;

  Ring(double* work, Index n, const InterfaceRows& rows)
      : state{work, rows.state, n, n},
        before{work + rows.state * n, rows.beside, n, n},
        after{before.row(rows.beside), rows.beside, n, n} {}
  /// Its elements.
  static constexpr Index size(Index n, const InterfaceRows& rows) {
    return (rows.state + 2 * rows.beside) * n;
  }

  [[nodiscard]] Out<double> shown() const { return {state.data, state.rows, state.cols, state.ld}; }
  [[nodiscard]] Told told(const In<double>& response) const { return {as_in(state), response}; }
};

/// Which of the two a step of the elimination is to find.
enum class Half { shown, response };
template <Half half>
using HalfConstant = std::integral_constant<Half, half>;

/// From which end of the axis an elimination comes. One that goes backward has before and after changed in all that it is
/// told and tells.
enum class Direction { forward, backward };

/// Whether a column is one of waves, and whether prefixes are joined segments.
ASTERISM_HOST_DEVICE inline bool is_wave(const Told& told, Index k) {
  return has_impedance(told.response, wave_response_rows, k);
}
ASTERISM_HOST_DEVICE inline bool is_joined(Index rows_of_prefix_response) {
  return rows_of_prefix_response >= response_rows;
}

/// Column k of tiles.
ASTERISM_HOST_DEVICE inline Response response_at(const In<double>& tile, Index k) {
  const auto at = [&](Index row) { return tile.row(row)[k]; };
  return {{at(first_before_row), at(first_after_row), at(first_lost_row)},
          {at(last_before_row), at(last_after_row), at(last_lost_row)}};
}
ASTERISM_HOST_DEVICE inline double shown_at(const In<double>& tile, Index row, Index k) {
  return tile.data == nullptr ? 0.0 : tile.row(row)[k];
}
/// As an elimination sees it that goes in this direction. Each row is read on its own, so that what a step does not use need
/// not come: it may lie across the link.
ASTERISM_HOST_DEVICE inline Boundary boundary_at(const Told& told, Direction direction, Index k) {
  const bool forward = direction == Direction::forward;
  const Response response = response_at(told.response, k);
  return {shown_at(told.shown, forward ? y_first_row : y_last_row, k),
          shown_at(told.shown, forward ? y_last_row : y_first_row, k),
          forward ? response : mirrored(response)};
}
ASTERISM_HOST_DEVICE inline Wave wave_shown_at(const In<double>& tile, Index row, Index k) {
  return tile.data == nullptr ? Wave{} : wave_at(tile, row, k);
}
ASTERISM_HOST_DEVICE inline Emitter emitter_at(const Told& told, Index k) {
  return {wave_shown_at(told.shown, 0, k), wave_shown_at(told.shown, 2, k),
          scattering_at(told.response, 0, k)};
}
ASTERISM_HOST_DEVICE inline Emitter emitter_at(const Told& told, Direction direction, Index k) {
  const Emitter given = emitter_at(told, k);
  return direction == Direction::forward ? given : mirrored(given);
}

/// Joined segments; none where nothing is told, or all is zeros: shares add up to 1.
ASTERISM_HOST_DEVICE inline Boundary joined_at(const Told& told, Index k) {
  if (told.response.data == nullptr) return {};
  const Boundary joined = boundary_at(told, Direction::forward, k);
  const Shares& last = joined.response.last;
  return last.before == 0.0 && last.after == 0.0 && last.lost == 0.0 ? Boundary{} : joined;
}
ASTERISM_HOST_DEVICE inline Emitter joined_waves_at(const Told& told, Index k) {
  return is_wave(told, k) ? emitter_at(told, k) : Emitter{};
}

ASTERISM_HOST_DEVICE inline Prefix prefix_at(const Told& told, Index k) {
  const double gamma = told.response.row(gamma_row)[k];
  return {shown_at(told.shown, alpha_row, k), 1.0 - gamma, gamma};
}
ASTERISM_HOST_DEVICE inline Beyond prefix_waves_at(const Told& told, Index k) {
  return {wave_shown_at(told.shown, 0, k), wave_at(told.response, 0, k)};
}

/// The prefix, or what joined segments make of the value before the first one.
ASTERISM_HOST_DEVICE inline Prefix prefix_from(const Told& told, const In<double>& start, Index k) {
  return is_joined(told.response.rows) ? prefix_of(joined_at(told, k), start.data[k]) : prefix_at(told, k);
}
ASTERISM_HOST_DEVICE inline Beyond prefix_waves_from(const Told& told, const In<double>& start, Index k) {
  return is_joined(told.response.rows) ? eliminate(beyond_at(start, k), joined_waves_at(told, k))
                                       : prefix_waves_at(told, k);
}

/// Writes column k of tiles.
ASTERISM_HOST_DEVICE inline void put(const Out<double>& tile, Index k, const Response& response) {
  const auto at = [&](Index row) -> double& { return tile.row(row)[k]; };
  at(first_before_row) = response.first.before;
  at(first_after_row) = response.first.after;
  at(first_lost_row) = response.first.lost;
  at(last_before_row) = response.last.before;
  at(last_after_row) = response.last.after;
  at(last_lost_row) = response.last.lost;
}
ASTERISM_HOST_DEVICE inline void put(HalfConstant<Half::shown> /*half*/, const Out<double>& tile, Index k,
                                     const Boundary& joined) {
  tile.row(y_first_row)[k] = joined.y_first;
  tile.row(y_last_row)[k] = joined.y_last;
}
ASTERISM_HOST_DEVICE inline void put(HalfConstant<Half::response> /*half*/, const Out<double>& tile, Index k,
                                     const Boundary& joined) {
  put(tile, k, joined.response);
  if (tile.rows == wave_response_rows) tile.row(wave_response_rows - 1)[k] = 0.0;
}
ASTERISM_HOST_DEVICE inline void put(HalfConstant<Half::shown> /*half*/, const Out<double>& tile, Index k,
                                     const Prefix& prefix) {
  tile.row(alpha_row)[k] = prefix.alpha;
}
ASTERISM_HOST_DEVICE inline void put(HalfConstant<Half::response> /*half*/, const Out<double>& tile, Index k,
                                     const Prefix& prefix) {
  tile.row(gamma_row)[k] = prefix.gamma;
}

/// One column of a step of the elimination: of prefixes, or of joined segments.
template <Half half>
ASTERISM_HOST_DEVICE inline void eliminate_decay(HalfConstant<half> which, Direction direction,
                                                 const Told& segment, const Told& before,
                                                 const Out<double>& after, Index k) {
  const Boundary b = boundary_at(segment, direction, k);
  if (is_joined(before.response.rows))
    put(which, after, k, join(joined_at(before, k), b));
  else
    put(which, after, k, eliminate(prefix_at(before, k), b));
}
template <Half half>
ASTERISM_HOST_DEVICE inline void eliminate_wave(HalfConstant<half> /*which*/, Direction direction,
                                                const Told& segment, const Told& before,
                                                const Out<double>& after, Index k) {
  const Emitter e = emitter_at(segment, direction, k);
  if (is_joined(before.response.rows)) {
    const Emitter joined = join(joined_waves_at(before, k), e);
    if constexpr (half == Half::shown) {
      put(after, 0, k, joined.emitted_before);
      put(after, 2, k, joined.emitted_after);
    } else {
      put(after, 0, k, joined.scattering, segment.response.row(wave_response_rows - 1)[k]);
    }
  } else {
    const Beyond next = eliminate(prefix_waves_at(before, k), e);
    put(after, 0, k, half == Half::shown ? next.amplitude : next.reflection);
  }
}
template <Half half>
ASTERISM_HOST_DEVICE inline void eliminate_column(HalfConstant<half> which, Direction direction,
                                                  const Told& segment, const Told& before,
                                                  const Out<double>& after, Index k) {
  if (is_wave(segment, k))
    eliminate_wave(which, direction, segment, before, after, k);
  else
    eliminate_decay(which, direction, segment, before, after, k);
}

/// One column of a step of the back substitution.
ASTERISM_HOST_DEVICE inline void substitute_decay(Direction direction, const Told& segment,
                                                  const Told& prefix, const In<double>& start,
                                                  const In<double>& after, const Out<double>& first,
                                                  const Out<double>& before, Index k) {
  const Prefix p = prefix_from(prefix, start, k);
  const Boundary b = boundary_at(segment, direction, k);
  const Neighbours neighbours = substitute(p, first_after(p, b.y_first, b.response.first), after.data[k]);
  first.data[k] = neighbours.first;
  before.data[k] = neighbours.before;
}
ASTERISM_HOST_DEVICE inline void substitute_wave(Direction direction, const Told& segment, const Told& prefix,
                                                 const In<double>& start, const In<double>& after,
                                                 const Out<double>& first, const Out<double>& before,
                                                 Index k) {
  const Emitter e = emitter_at(segment, direction, k);
  const Cut cut = substitute(prefix_waves_from(prefix, start, k), e, beyond_at(after, k));
  put(first, k, Beyond{cut.left, {}});
  put(before, k, Beyond{cut.right, {}});
}
ASTERISM_HOST_DEVICE inline void substitute_column(Direction direction, const Told& segment,
                                                   const Told& prefix, const In<double>& start,
                                                   const In<double>& after, const Out<double>& first,
                                                   const Out<double>& before, Index k) {
  if (is_wave(segment, k))
    substitute_wave(direction, segment, prefix, start, after, first, before, k);
  else
    substitute_decay(direction, segment, prefix, start, after, first, before, k);
}

/// One column of close.
ASTERISM_HOST_DEVICE inline void close_column(const Told& left, const Told& right,
                                              const Out<double>& before_start, const Out<double>& after_end,
                                              Index k) {
  if (is_wave(left, k) || is_wave(right, k)) {
    const Cut cut = close(join(joined_waves_at(left, k), mirrored(joined_waves_at(right, k))));
    put(before_start, k, Beyond{cut.right, {}});
    put(after_end, k, Beyond{cut.left, {}});
    return;
  }
  const Around around = close(join(joined_at(left, k), mirrored(joined_at(right, k))));
  before_start.data[k] = around.before;
  after_end.data[k] = around.after;
}

/// One column of meet.
ASTERISM_HOST_DEVICE inline void meet_column(const In<double>& mu, const Told& left, const Told& right,
                                             const In<double>& before_start, const In<double>& after_end,
                                             const Out<double>& first, const Out<double>& last, Index k) {
  if (has_impedance(mu, wave_mu_rows, k)) {
    const Cut cut = meet(prefix_waves_from(left, before_start, k), prefix_waves_from(right, after_end, k));
    put(first, k, Beyond{cut.left, {}});
    put(last, k, Beyond{cut.right, {}});
    return;
  }
  const Meeting meeting = meet(prefix_from(left, before_start, k), prefix_from(right, after_end, k));
  first.data[k] = meeting.first;
  last.data[k] = meeting.last;
}

// In all that follows `axis` has the segment's rows as AxisRows (rows x axis_columns) and mu is 1 x n. Where some modes
// are waves, mu has wave_mu_rows, and what is given for `n` columns below has for theirs as many rows as waves.hpp says:
// a value before or after a segment is a Beyond there.

}  // namespace asterism::poisson
