/// \file
/// The tridiagonal systems of modes with mu < 0 (recurrences.hpp (S1)), whose solutions are waves along the axis.
///
/// A segment between known values, which is what recurrences.hpp takes a segment for, may be singular then though the
/// system as a whole is not: half waves may fit into it. A segment between absorbing ends never is. So these systems are
/// taken apart into what goes one way and the other. With the flux F_j = before_j (v_j - v_{j-1}), (S1) is a ladder of
/// shunts and links,
///
///     F_{j+1} = F_j + width_j mu v_j + width_j f_j,     v_{j+1} = v_j + F_{j+1} / after_j,                  (H1)
///
/// and at the cut before row j, for any impedance z > 0, one for the whole axis,
///
///     R_j = (v_j - i F_j / z) / 2 goes after,   L_j = (v_j + i F_j / z) / 2 goes before,   v_j = R_j + L_j.   (H2)
///
/// A segment (of rows first ... end - 1) scatters what enters it, and adds what its right-hand side emits:
///
///     L_first = emitted.before + before R_first + through L_end,
///     R_end   = emitted.after + through R_first + after L_end.                                             (H3)
///
/// This is the impedance-to-impedance map of the Helmholtz equation (Gillman, Barnett, Martinsson 2015), in one dimension:
/// as the ladder neither gains nor loses, the matrix of (H3) is unitary for every mu and every spacing, waves that the grid
/// does not resolve included; nothing in it grows, and only a system that is nearly singular itself has small divisors
/// where all segments have been joined.
///
/// All that holds for any z, which decides what rounding does. Amplitudes are about |v| + |F| / z, and rounding them at a
/// cut breaks its link by after (|v| + |F| / z) eps and its shunt by (z |v| + |F|) eps. |F| comes up to after |v|, next to
/// an end that is held or where f is rough. So with
///
///     z = the largest link of the axis                                                                    (H4)
///
/// both are within what rounding v itself does to the residual. Waves that are long next to the grid's spacing pass without
/// reflection at z = w = h sqrt(-mu) only, h the unit of length of (A2); but there the link is broken by after / w times as
/// much, which is as many as there are rows where a wave is as long as the axis, and z = sqrt(after w) still leaves residuals
/// that grow with the root of it. What z takes from the error of long waves is little to the condition of their systems.
///
/// Two ways of rounding (H3) of one segment do not agree: who joins blocks to what a segment emits has to join the same
/// blocks to its response, or the segment's ends do not fit its inside. And an inside is solved from what enters the
/// segment, also where that comes back from an end of the axis: solved from an end that reflects, it is rounded otherwise
/// than the segment's emission, and the difference at the next cut grows as the segment nears a resonance of its own.
#pragma once

#include <algorithm>
#include <cmath>

#include "../../runtime/ports.hpp"

namespace asterism::poisson {

/// A complex amplitude.
struct Wave {
  double re = 0.0, im = 0.0;
};

ASTERISM_HOST_DEVICE inline Wave operator+(const Wave& a, const Wave& b) { return {a.re + b.re, a.im + b.im}; }
ASTERISM_HOST_DEVICE inline Wave operator-(const Wave& a, const Wave& b) { return {a.re - b.re, a.im - b.im}; }
ASTERISM_HOST_DEVICE inline Wave operator*(const Wave& a, const Wave& b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
ASTERISM_HOST_DEVICE inline Wave operator+(double a, const Wave& b) { return {a + b.re, b.im}; }
ASTERISM_HOST_DEVICE inline Wave inverse(const Wave& a) {
  const double r = 1.0 / (a.re * a.re + a.im * a.im);
  return {r * a.re, -r * a.im};
}
/// i s a
ASTERISM_HOST_DEVICE inline Wave turned(double s, const Wave& a) { return {-s * a.im, s * a.re}; }

/// The impedance for a mode of that mu (H4), 0 where it is no wave: there is none without links either.
inline double impedance(double mu, double largest_link) {
  return mu < 0 ? largest_link : 0.0;
}

/// One row of (H1) in units of the impedance: width mu / z, z / after (0 where there is no link), width f / z.
struct Rung {
  double shunt, link, source;
};

/// What lies on one side of a cut: what comes from there is amplitude + reflection (what goes there).
struct Beyond {
  Wave amplitude, reflection;
};

/// A cut beside a known value, at the end of a link of z / link: v = value + link F / z. @param link 0: the value itself
ASTERISM_HOST_DEVICE inline Beyond beyond_value(double value, double link) {
  const Wave r = inverse({1.0, -link});
  return {{r.re * value, r.im * value}, Wave{-1.0, 0.0} * Wave{1.0, link} * r};
}
/// A cut without a link: F = 0.
ASTERISM_HOST_DEVICE inline Beyond beyond_nothing() { return {{}, {1.0, 0.0}}; }

/// The elimination of one row, from what lies before it.
struct RungPivot {
  Beyond start;               ///< what lies before the row's cut
  Wave shunt, link;           ///< factors of L across the shunt and the link
  Wave middle;                ///< amplitude between them
  Rung rung;

  ASTERISM_HOST_DEVICE RungPivot(const Beyond& before, const Rung& row) : start(before), rung(row) {
    const Wave answer = 1.0 + start.reflection;
    shunt = inverse(1.0 + turned(rung.shunt / 2, answer));
    middle = shunt * (start.amplitude - turned(rung.source / 2, answer));
    link = inverse(1.0 + turned(rung.link / 2, -2.0 + shunt * answer));
  }

  /// What lies before the next row's cut.
  [[nodiscard]] ASTERISM_HOST_DEVICE Beyond after() const {
    return {link * middle, 1.0 + link * (-2.0 + shunt * (1.0 + start.reflection))};
  }

  /// L at the row's cut from L at the next row's.
  [[nodiscard]] ASTERISM_HOST_DEVICE Wave substitute(const Wave& next) const {
    const Wave between = link * (next - turned(rung.link / 2, middle));
    return shunt * (between - turned(0.5, Wave{rung.shunt * start.amplitude.re + rung.source,
                                               rung.shunt * start.amplitude.im}));
  }

  /// The row's unknown from L at its cut.
  [[nodiscard]] ASTERISM_HOST_DEVICE double unknown(const Wave& l) const {
    return (start.amplitude + (1.0 + start.reflection) * l).re;
  }
};

/// How a segment scatters (H3). The default is a segment without rows.
struct Scattering {
  Wave before, through{1.0, 0.0}, after;
};

/// What a segment shows of itself to the rest of one column: the terms of (H3).
struct Emitter {
  Wave emitted_before, emitted_after;
  Scattering scattering;

  /// Takes in the next row.
  ASTERISM_HOST_DEVICE void append(const Rung& rung) {
    Scattering& s = scattering;
    const RungPivot pivot({emitted_after, s.after}, rung);
    const Wave& t = s.through;
    emitted_before = emitted_before + t * pivot.substitute({});
    const Wave square = t * t * pivot.shunt;
    s.before = s.before - turned(rung.shunt / 2, square) - turned(rung.link / 2, square * pivot.shunt * pivot.link);
    s.through = t * pivot.shunt * pivot.link;
    const Beyond next = pivot.after();
    emitted_after = next.amplitude;
    s.after = next.reflection;
  }
};

/// The same seen from the other end of the axis.
ASTERISM_HOST_DEVICE inline Scattering mirrored(const Scattering& s) { return {s.after, s.through, s.before}; }
ASTERISM_HOST_DEVICE inline Emitter mirrored(const Emitter& e) {
  return {e.emitted_after, e.emitted_before, mirrored(e.scattering)};
}

/// Two adjacent segments taken as one, a before b.
ASTERISM_HOST_DEVICE inline Emitter join(const Emitter& a, const Emitter& b) {
  const Scattering &p = a.scattering, &q = b.scattering;
  const Wave r = inverse(1.0 + Wave{-1.0, 0.0} * p.after * q.before);
  const Wave right = r * (a.emitted_after + p.after * b.emitted_before);  // R between them where nothing enters
  const Wave left = b.emitted_before + q.before * right;
  const Wave through = r * p.through;
  return {a.emitted_before + p.through * left,
          b.emitted_after + q.through * right,
          {p.before + p.through * q.before * through, q.through * through,
           q.after + q.through * r * p.after * q.through}};
}

/// What lies before the cut after a segment, from what lies before the segment.
ASTERISM_HOST_DEVICE inline Beyond eliminate(const Beyond& before, const Emitter& e) {
  const Scattering& s = e.scattering;
  const Wave r = inverse(1.0 + Wave{-1.0, 0.0} * before.reflection * s.before);
  const Wave right = r * (before.amplitude + before.reflection * e.emitted_before);
  return {e.emitted_after + s.through * right, s.after + s.through * r * before.reflection * s.through};
}

/// Both amplitudes at a cut.
struct Cut {
  Wave right, left;
};

/// Those at a cut between what lies before and after it.
ASTERISM_HOST_DEVICE inline Cut meet(const Beyond& before, const Beyond& after) {
  const Wave r = inverse(1.0 + Wave{-1.0, 0.0} * before.reflection * after.reflection);
  const Wave left = r * (after.amplitude + after.reflection * before.amplitude);
  return {before.amplitude + before.reflection * left, left};
}

/// Those at the cut before a segment.
ASTERISM_HOST_DEVICE inline Cut substitute(const Beyond& before, const Emitter& e, const Beyond& after) {
  const Wave end = meet(eliminate(before, e), after).left;
  const Scattering& s = e.scattering;
  return meet(before, {e.emitted_before + s.through * end, s.before});
}

/// Those at the ends of a periodic axis: L = emitted.before + before R + through L, R the same. What is uncertain of them
/// where that is nearly singular, is so by the same wave in both: with pivoting.
ASTERISM_HOST_DEVICE inline Cut close(const Emitter& whole) {
  const Scattering& s = whole.scattering;
  const Wave rest = 1.0 + Wave{-1.0, 0.0} * s.through;
  const auto size2 = [](const Wave& a) { return a.re * a.re + a.im * a.im; };
  if (size2(rest) >= size2(s.after)) {
    const Wave pivot = inverse(rest), m = pivot * s.after;
    const Wave right = inverse(rest - m * s.before) * (whole.emitted_after + m * whole.emitted_before);
    return {right, pivot * (whole.emitted_before + s.before * right)};
  }
  const Wave pivot = inverse(s.after), m = pivot * rest;
  const Wave right = inverse(m * rest - s.before) * (whole.emitted_before + m * whole.emitted_after);
  return {right, pivot * (rest * right - whole.emitted_after)};
}

// --- In tiles --------------------------------------------------------------------------------------------------------
//
// Where there are modes with mu < 0 the tiles of interface_tiles.hpp have more rows, for their columns: mu has the impedances
// in a second row, 0 for the other modes; responses and joined segments repeat it in their last row.

enum WaveMuRow : Index { mu_row, impedance_row, wave_mu_rows };

/// Rows of amplitudes, two for each: of an amplitude; of a Beyond; of what a segment emits; of its scattering, with the
/// impedance behind; of joined segments, that behind what they emit; of what cpu::reduce goes on from: what is emitted,
/// through and after.
constexpr Index amplitude_rows = 2, beyond_rows = 4, wave_shown_rows = 4, wave_response_rows = 7,
                wave_joined_rows = wave_shown_rows + wave_response_rows, wave_state_rows = 8;

ASTERISM_HOST_DEVICE inline Wave wave_at(const In<double>& tile, Index row, Index k) {
  return {tile.row(row)[k], tile.row(row + 1)[k]};
}
ASTERISM_HOST_DEVICE inline void put(const Out<double>& tile, Index row, Index k, const Wave& wave) {
  tile.row(row)[k] = wave.re;
  tile.row(row + 1)[k] = wave.im;
}

/// Whether column k of mu or of a response is one of waves: whether its last row is not 0, in a tile of so many rows.
ASTERISM_HOST_DEVICE inline bool has_impedance(const In<double>& tile, Index rows, Index k) {
  return tile.data != nullptr && tile.rows == rows && tile.row(rows - 1)[k] != 0.0;
}

ASTERISM_HOST_DEVICE inline Beyond beyond_at(const In<double>& tile, Index k) {
  return {wave_at(tile, 0, k), wave_at(tile, 2, k)};
}
ASTERISM_HOST_DEVICE inline void put(const Out<double>& tile, Index k, const Beyond& beyond) {
  put(tile, 0, k, beyond.amplitude);
  put(tile, 2, k, beyond.reflection);
}

ASTERISM_HOST_DEVICE inline Scattering scattering_at(const In<double>& tile, Index first_row, Index k) {
  return {wave_at(tile, first_row, k), wave_at(tile, first_row + 2, k), wave_at(tile, first_row + 4, k)};
}
ASTERISM_HOST_DEVICE inline void put(const Out<double>& tile, Index first_row, Index k, const Scattering& s,
                                     double impedance) {
  put(tile, first_row, k, s.before);
  put(tile, first_row + 2, k, s.through);
  put(tile, first_row + 4, k, s.after);
  tile.row(first_row + 6)[k] = impedance;
}

ASTERISM_HOST_DEVICE inline void put(const Out<double>& tile, Index k, const Emitter& joined, double impedance) {
  put(tile, 0, k, joined.emitted_before);
  put(tile, 2, k, joined.emitted_after);
  put(tile, wave_shown_rows, k, joined.scattering, impedance);
}

/// Joined segments in one tile.
ASTERISM_HOST_DEVICE inline Emitter joined_waves_at(const In<double>& tile, Index k) {
  return {wave_at(tile, 0, k), wave_at(tile, 2, k), scattering_at(tile, wave_shown_rows, k)};
}

}  // namespace asterism::poisson
