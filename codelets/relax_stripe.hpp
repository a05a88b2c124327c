/// \file
/// What the CPU's and the GPU's kernels of relax.hpp both know of stripes: where the numbers of a row lie,
/// and the stripe's ends as stripes of their own.
#pragma once

#include "relax.hpp"

namespace asterism::kernels {

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

}  // namespace asterism::kernels
