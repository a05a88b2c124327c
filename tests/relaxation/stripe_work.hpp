/// \file
/// What tests of the relaxation kernels have done: grids with their frames, what a task does to a stripe, where it
/// finds the numbers.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <utility>
#include <vector>

#include "../support/matrix.hpp"
#include "codelets/relaxation/sweeps.hpp"

namespace asterism::test {

using namespace asterism::relaxation;

/// A grid with its frame, and a right-hand side.
template <class T>
struct FramedGrid {
  Index m, n;
  Matrix<T> v;  ///< (m + 2) x (n + 2): node (i, j) at (i + 1, j + 1)
  Matrix<T> f;
  Discretisation a;

  FramedGrid(Index rows, Index cols, unsigned seed = 1, double ly = 1.0, double lx = 1.25)
      : m(rows), n(cols), v(rows + 2, cols + 2), f(rows, cols), a(discretise_five_point(rows, cols, ly, lx)) {
    v.fill_random(seed);
    f.fill_random(seed + 1);
    f.fill([&](Index i, Index j) { return static_cast<T>(a.diagonal) * f(i, j); });  // g as large as v
  }
};

/// What a task does to a stripe.
struct Work {
  bool jacobi = false;
  Sweep order = Sweep::red_black;
  Arrangement arrangement = Arrangement::natural;
  Index sweeps = 1;
  bool has_source = true;
  double omega = 1.5;
  bool stale = false;

  [[nodiscard]] Index needed() const { return jacobi ? jacobi_reach(sweeps) : reach(order, sweeps); }
  [[nodiscard]] JacobiArgs jacobi_args(const Stripe& stripe, const Discretisation& a) const {
    return {stripe, a.along_y, a.along_x, sweeps, has_source};
  }
  [[nodiscard]] ColourArgs colour_args(const Stripe& stripe, const Discretisation& a) const {
    return {stripe, a.along_y, a.along_x, omega, sweeps, order, has_source, stale};
  }
};

template <class Body>
void for_works(const std::vector<Index>& counts, Body body) {
  for (const Index sweeps : counts)
    for (const bool has_source : {false, true}) {
      Work work;
      work.sweeps = sweeps;
      work.has_source = has_source;
      CAPTURE(sweeps);
      CAPTURE(has_source);
      work.jacobi = true;
      body(work);
      work.jacobi = false;
      for (const Sweep order : {Sweep::red_black, Sweep::symmetric})
        for (const Arrangement arrangement : {Arrangement::natural, Arrangement::separated}) {
          work.order = order;
          work.arrangement = arrangement;
          CAPTURE(order);
          CAPTURE(arrangement);
          body(work);
        }
    }
}

inline bool is_red(Index i, Index j) { return (i + j + 4096) % 2 == 0; }

/// The column of number c in the tile's row r, by the definition in words.
inline Index column_of(const Stripe& stripe, Index r, Index c) {
  if (stripe.arrangement == Arrangement::natural) return c;
  return c / 2 + (is_red(stripe.first_row - stripe.halo + r, c - 1) ? 0 : stripe.half());
}

/// Rows and columns.
constexpr std::array<std::pair<Index, Index>, 17> sizes{{{1, 1},
                                                         {1, 2},
                                                         {2, 1},
                                                         {1, 17},
                                                         {16, 1},
                                                         {2, 2},
                                                         {2, 3},
                                                         {3, 2},
                                                         {3, 5},
                                                         {5, 3},
                                                         {5, 16},
                                                         {16, 17},
                                                         {17, 16},
                                                         {17, 33},
                                                         {33, 64},
                                                         {64, 33},
                                                         {3, 131}}};

}  // namespace asterism::test
