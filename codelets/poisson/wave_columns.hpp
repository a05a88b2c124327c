/// \file
/// The columns of recurrences.hpp that are waves (waves.hpp): what its functions do for them. None of these does anything
/// where mu has no row of impedances.
#pragma once

#include "tridiagonal.hpp"

namespace asterism::poisson {

/// What the solutions of a column's homogeneous system do along the axis.
enum class Regime { decay, waves };

ASTERISM_HOST_DEVICE inline Regime regime_of(const In<double>& mu, Index k) {
  return has_impedance(mu, wave_mu_rows, k) ? Regime::waves : Regime::decay;
}

/// Row i of a tile of AxisRows as a rung of column k.
/// @param f the right-hand side but for the row's width
ASTERISM_HOST_DEVICE inline Rung rung_at(const In<double>& axis, Index i, const In<double>& mu, Index k, double f) {
  const Row row = row_at(axis, i);
  return rung(row, mu.row(mu_row)[k], mu.row(impedance_row)[k], row.width * f);
}

namespace cpu {

/// Calls body(first, columns) for strips of at most so many adjacent columns, all of one regime.
template <class Body>
void for_each_strip(const In<double>& mu, Regime regime, Index most, Body body) {
  for (Index first = 0, end = 0; first < mu.cols; first = end) {
    const bool wanted = regime_of(mu, first) == regime;
    for (end = first + 1; end < mu.cols && end - first < most && (regime_of(mu, end) == regime) == wanted;) ++end;
    if (wanted) body(first, end - first);
  }
}

void respond_waves(In<double> axis, In<double> mu, Out<double> response);
template <class T>
void reduce_waves(In<T> lines, In<double> axis, In<double> mu, double scale, InOut<double> state, Segment segment);
template <class T>
void solve_waves(InOut<T> lines, In<double> axis, In<double> mu, double scale, In<double> before, In<double> after);

}  // namespace cpu

namespace cuda {

void respond_waves(Stream stream, In<double> axis, In<double> mu, Out<double> response);
template <class T>
void reduce_wave_blocks(Stream stream, In<T> lines, Index first_row, In<double> axis, In<double> mu, double scale,
                        const Blocks& blocks);
void join_wave_blocks(Stream stream, In<double> mu, const Blocks& blocks, Out<double> shown);
/// `blocks` as reduce_wave_blocks left them.
template <class T>
void solve_wave_blocks(Stream stream, InOut<T> lines, In<double> axis, In<double> mu, double scale, In<double> before,
                       In<double> after, const Blocks& blocks);

}  // namespace cuda
}  // namespace asterism::poisson
