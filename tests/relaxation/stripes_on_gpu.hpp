/// \file
/// Stripes of grids on a GPU, and checks of what tasks there leave of them against the CPU's.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "../support/matrix.hpp"
#include "../support/tiles.hpp"
#include "../support/worst.hpp"
#include "codelets/relaxation/sweeps.hpp"
#include "stripe_work.hpp"
#include "stripes.hpp"

namespace asterism::test {

using namespace asterism::relaxation;

inline const Hints on_gpu{.where = Where::cuda};

/// A stripe on the device.
template <class T>
struct PartTiles {
  Tile<T> u, other, g, above, below, top, bottom;

  PartTiles(Runtime& runtime, const Part<T>& part)
      : u(upload(runtime, part.u)),
        other(upload(runtime, part.other)),
        g(upload(runtime, part.g)),
        above(upload(runtime, part.above)),
        below(upload(runtime, part.below)),
        top(upload(runtime, part.top)),
        bottom(upload(runtime, part.bottom)) {}

  [[nodiscard]] SweepPorts<AsTiles, T> sweep() const {
    return {.u = u, .other = other, .g = g, .above = above, .below = below, .top = top, .bottom = bottom};
  }
  [[nodiscard]] BorderPorts<AsTiles, T> border(const Tile<T>& work) const {
    return {.u = u, .g = g, .above = above, .below = below, .top = top, .bottom = bottom, .work = work};
  }
  [[nodiscard]] InteriorPorts<AsTiles, T> interior() const {
    return {.u = u, .other = other, .g = g, .above = above, .below = below};
  }
};

/// Whether rows that lie in the tile's rows `begin` and after are the same, up to `bound`; the frame's
/// numbers exactly.
template <class T>
bool close(const Stripe& stripe, Index begin, const Matrix<T>& made, Index made_row,
           const Matrix<T>& expected, Index expected_row, Index rows, T bound) {
  for (Index k = 0; k < rows; ++k)
    for (Index c = 0; c < stripe.nodes + 2; ++c) {
      const Index column = column_of(stripe, begin + k, c);
      const T difference = std::abs(made(made_row + k, column) - expected(expected_row + k, column));
      const bool frame = c == 0 || c == stripe.nodes + 1;
      if (!(difference <= (frame ? T{0} : bound))) return false;
    }
  return true;
}

template <class T>
T largest_in(const Stripe& stripe, const Matrix<T>& tile) {
  Worst largest;
  largest.take_in(1);
  for (Index i = 0; i < stripe.rows; ++i)
    for (Index c = 1; c <= stripe.nodes; ++c)
      largest.take_in(tile(stripe.halo + i, column_of(stripe, stripe.halo + i, c)));
  return static_cast<T>(largest.value());
}

/// Checks what a task on the device left of a stripe against the CPU's.
template <class T>
void check_part(const Work& work, const Part<T>& expected, const PartTiles<T>& tiles) {
  const Stripe& stripe = expected.stripe;
  const Matrix<T> made = download(work.sweeps % 2 == 0 ? tiles.u : tiles.other);
  const Matrix<T>& right = result_of(work, expected);
  const T bound =
      32 * static_cast<T>(work.sweeps) * std::numeric_limits<T>::epsilon() * largest_in(stripe, right);
  CHECK(close(stripe, stripe.halo, made, stripe.halo, right, stripe.halo, stripe.rows, bound));
  CHECK(close(stripe, stripe.halo, download(tiles.top), 0, expected.top, 0, stripe.halo, bound));
  CHECK(close(stripe, stripe.rows, download(tiles.bottom), 0, expected.bottom, 0, stripe.halo, bound));
  // The frame's rows stay in both tiles.
  for (const Tile<T>* tile : {&tiles.u, &tiles.other}) {
    const Matrix<T> whole = download(*tile);
    if (stripe.first)
      CHECK(close(stripe, stripe.halo - 1, whole, stripe.halo - 1, expected.u, stripe.halo - 1, 1, T{0}));
    const Index after = stripe.halo + stripe.rows;
    if (stripe.last) CHECK(close(stripe, after, whole, after, expected.u, after, 1, T{0}));
  }
}

/// Calls body(grid, work, part) for stripes of all kinds that are ready for a task.
template <class T, class Body>
void for_parts(const Work& work, Body body) {
  constexpr std::array<std::pair<Index, Index>, 6> gpu_sizes{
      {{1, 1}, {2, 3}, {17, 33}, {70, 130}, {260, 64}, {75, 1027}}};
  for (const auto& [m, n] : gpu_sizes) {
    const Index halo = work.needed();
    CAPTURE(m);
    CAPTURE(n);
    const FramedGrid<T> grid(m, n);
    for (const auto& [cut, ghosts] : {std::pair<std::vector<Index>, Index>{{m}, 1},
                                      {{m}, halo},
                                      {{2 * halo, m - 4 * halo, 2 * halo}, halo},
                                      {{halo + 1, m - 2 * halo - 2, halo + 1}, halo + 1}}) {
      if (*std::min_element(cut.begin(), cut.end()) < ghosts) continue;
      CAPTURE(cut.size());
      CAPTURE(ghosts);
      Stripes<T> stripes(grid, work, cut, ghosts);
      stripes.exchange();
      for (const Part<T>& part : stripes.parts()) {
        CAPTURE(part.stripe.first_row);
        body(grid, work, part);
      }
    }
  }
}

}  // namespace asterism::test
