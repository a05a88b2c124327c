/// \file
/// What the CPU's and the GPU's kernels of sweeps.hpp both know of stripes: where the numbers of a row lie,
/// and the stripe's ends as stripes of their own.
#pragma once

#include "sweeps.hpp"

namespace asterism::relaxation {

/// A tile that is only read.
template <class T>
In<T> reading(const InOut<T>& tile) {
  return {tile.data, tile.rows, tile.cols, tile.ld};
}

/// The weights of a task's sweeps.
template <class T, class Args>
FivePoint<T> weights(const Args& args) {
  return {static_cast<T>(args.along_y), static_cast<T>(args.along_x)};
}

/// Where a number of the extended row of the tile's row `r` lies.
ASTERISM_HOST_DEVICE inline Index column_of(const Stripe& stripe, Index r, Index number) {
  if (stripe.arrangement == Arrangement::natural) return number;
  return number / 2 + ((number & 1) == stripe.start(Colour::red, r) ? 0 : stripe.half());
}

/// Which number of the extended row of the tile's row `r` lies in a column; more than n + 1: padding.
ASTERISM_HOST_DEVICE inline Index number_in(const Stripe& stripe, Index r, Index column) {
  if (stripe.arrangement == Arrangement::natural) return column;
  const Index half = stripe.half();
  return column < half ? 2 * column + stripe.start(Colour::red, r)
                       : 2 * (column - half) + stripe.start(Colour::black, r);
}

/// The columns of a node in its row of the tile, and of its neighbours.
struct Places {
  Index own;          ///< also of its g
  Index across;       ///< in the rows above and below
  Index left, right;  ///< in the same row
};

/// Those of node number 2 k + s of a colour, s being where the colour starts in the row (Stripe::start).
ASTERISM_HOST_DEVICE inline Places places_of(const Stripe& stripe, Colour colour, Index k, Index s) {
  if (stripe.arrangement == Arrangement::natural) {
    const Index number = 2 * k + s;
    return {number, number, number - 1, number + 1};
  }
  const bool red = colour == Colour::red;
  const Index own = k + (red ? 0 : stripe.half()), across = k + (red ? stripe.half() : 0);
  return {own, across, across - 1 + s, across + s};
}

/// One end of a stripe as a stripe of its own: G rows, with G ghost rows on either side.
struct End {
  Stripe stripe;
  Index first_tile_row;  ///< of the whole stripe's tile

  static End upper(const Stripe& whole) {
    Stripe stripe = whole;
    stripe.rows = whole.halo;
    stripe.last = false;
    return {stripe, 0};
  }
  static End lower(const Stripe& whole) {
    Stripe stripe = whole;
    stripe.rows = whole.halo;
    stripe.first_row = whole.first_row + whole.rows - whole.halo;
    stripe.first = false;
    return {stripe, whole.rows - whole.halo};
  }
};

}  // namespace asterism::relaxation
