/// \file
/// Stripes of grids, driven by hand, for tests of the relaxation kernels.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "../support/matrix.hpp"
#include "codelets/relaxation/sweeps.hpp"
#include "stripe_work.hpp"

namespace asterism::test {

using namespace asterism::relaxation;

template <class T>
struct Part {
  Stripe stripe;
  Matrix<T> u, other, g, above, below, top, bottom;

  Part(const Stripe& s, bool has_source)
      : stripe(s),
        u(s.tile_rows(), s.tile_cols()),
        other(u),
        g(has_source ? u : Matrix<T>(1, 1)),
        above(s.first ? Matrix<T>(1, 1) : Matrix<T>(s.halo, s.tile_cols())),
        below(s.last ? Matrix<T>(1, 1) : Matrix<T>(s.halo, s.tile_cols())),
        top(s.halo, s.tile_cols()),
        bottom(s.halo, s.tile_cols()) {}

  [[nodiscard]] bool guarded() const {
    return u.guarded() && other.guarded() && g.guarded() && above.guarded() && below.guarded() &&
           top.guarded() && bottom.guarded();
  }
};

template <class T>
Matrix<T> block(const Matrix<T>& from, Index row, Index col, Index rows, Index cols) {
  return Matrix<T>(rows, cols).fill([&](Index i, Index j) { return from(row + i, col + j); });
}

/// What fill_stripe takes.
template <class T>
struct Given {
  Matrix<T> f, initial, frame_rows, frame_columns;

  Given(const FramedGrid<T>& grid, const Stripe& stripe, bool has_source)
      : f(has_source ? block(grid.f, stripe.first_row, 0, stripe.rows, grid.n) : Matrix<T>(1, 1)),
        initial(block(grid.v, stripe.first_row + 1, 1, stripe.rows, grid.n)),
        frame_rows(2, grid.n + 2),
        frame_columns(stripe.tile_rows(), 2) {
    for (Index c = 0; c < grid.n + 2; ++c) {
      if (stripe.first) frame_rows(0, c) = grid.v(0, c);
      if (stripe.last) frame_rows(1, c) = grid.v(grid.m + 1, c);
    }
    for (Index r = 0; r < stripe.tile_rows(); ++r) {
      const Index i = stripe.first_row - stripe.halo + r;
      if (i < 0 || i >= grid.m) continue;
      frame_columns(r, 0) = grid.v(i + 1, 0);
      frame_columns(r, 1) = grid.v(i + 1, grid.n + 1);
    }
  }
};

template <class T>
Part<T> filled(const FramedGrid<T>& grid, const Stripe& stripe, bool has_source) {
  Part<T> part(stripe, has_source);
  const Given<T> given(grid, stripe, has_source);
  cpu::fill_stripe<T>({stripe, grid.a.diagonal, has_source}, {.f = given.f.in(),
                                                              .initial = given.initial.in(),
                                                              .frame_rows = given.frame_rows.in(),
                                                              .frame_columns = given.frame_columns.in(),
                                                              .u = part.u.out(),
                                                              .other = part.other.out(),
                                                              .g = part.g.out()});
  CHECK(part.guarded());
  return part;
}

/// The tile with zeros at the stripe's own nodes.
template <class T>
Matrix<T> frame_alone(const Stripe& stripe, Matrix<T> tile) {
  for (Index r = stripe.halo; r < stripe.halo + stripe.rows; ++r)
    for (Index c = 1; c <= stripe.nodes; ++c) tile(r, column_of(stripe, r, c)) = 0;
  return tile;
}

/// Whether nobody has written the stripe's own nodes of a Matrix.
template <class T>
bool nodes_untouched(const Stripe& stripe, const Matrix<T>& tile) {
  for (Index r = stripe.halo; r < stripe.halo + stripe.rows; ++r)
    for (Index c = 1; c <= stripe.nodes; ++c)
      if (!std::isnan(tile(r, column_of(stripe, r, c)))) return false;
  return true;
}

inline Stripe stripe_of(Index m, Index n, Index first_row, Index rows, Index halo, Arrangement arrangement) {
  return {rows, n, halo, first_row, first_row == 0, first_row + rows == m, arrangement};
}

/// The result is in `other` after an odd number of sweeps.
template <class T>
const Matrix<T>& result_of(const Work& work, const Part<T>& part) {
  return work.sweeps % 2 == 0 ? part.u : part.other;
}

template <class T>
void relax_whole(const Work& work, const Discretisation& a, Part<T>& part) {
  const SweepPorts<AsPorts, T> ports{.u = part.u.inout(),
                                     .other = part.other.inout(),
                                     .g = part.g.in(),
                                     .above = part.above.in(),
                                     .below = part.below.in(),
                                     .top = part.top.out(),
                                     .bottom = part.bottom.out()};
  if (work.jacobi)
    cpu::jacobi<T>(work.jacobi_args(part.stripe, a), ports);
  else
    cpu::relax_colours<T>(work.colour_args(part.stripe, a), ports);
}

template <class T>
void relax_border(const Work& work, const Discretisation& a, Part<T>& part) {
  Matrix<T> memory(1, border_scratch(part.stripe));
  const BorderPorts<AsPorts, T> ports{.u = part.u.in(),
                                      .g = part.g.in(),
                                      .above = part.above.in(),
                                      .below = part.below.in(),
                                      .top = part.top.out(),
                                      .bottom = part.bottom.out(),
                                      .work = {memory.out().data, 1, memory.cols(), memory.cols()}};
  if (work.jacobi)
    cpu::jacobi_border<T>(work.jacobi_args(part.stripe, a), ports);
  else
    cpu::relax_colours_border<T>(work.colour_args(part.stripe, a), ports);
  CHECK(memory.guarded());
}

template <class T>
void relax_interior(const Work& work, const Discretisation& a, Part<T>& part) {
  const InteriorPorts<AsPorts, T> ports{.u = part.u.inout(),
                                        .other = part.other.inout(),
                                        .g = part.g.in(),
                                        .above = part.above.in(),
                                        .below = part.below.in()};
  if (work.jacobi)
    cpu::jacobi_interior<T>(work.jacobi_args(part.stripe, a), ports);
  else
    cpu::relax_colours_interior<T>(work.colour_args(part.stripe, a), ports);
}

/// A grid cut into stripes.
template <class T>
class Stripes {
 public:
  /// @param cut  the rows of each stripe
  Stripes(const FramedGrid<T>& grid, const Work& work, const std::vector<Index>& cut, Index halo)
      : grid_(grid), work_(work) {
    Index first = 0;
    for (const Index rows : cut) {
      parts_.push_back(
          filled(grid, stripe_of(grid.m, grid.n, first, rows, halo, work.arrangement), work.has_source));
      first += rows;
    }
    REQUIRE(first == grid.m);
    if (work.has_source) {
      show_edges(&Part<T>::g);
      exchange();
      for (Part<T>& part : parts_)
        cpu::fill_ghosts<T>(part.stripe, {.tile = part.g.inout(), .above = part.above.in(), .below = part.below.in()});
    }
    show_edges(&Part<T>::u);
  }

  /// One task on each stripe.
  void relax(bool border_first = false) {
    exchange();
    for (Part<T>& part : parts_) {
      const Part<T> before = part;
      if (border_first) {
        relax_border(work_, grid_.a, part);
        CHECK(part.u == before.u);
        Matrix<T> top = part.top, bottom = part.bottom;
        relax_interior(work_, grid_.a, part);
        CHECK(part.top == top);
        CHECK(part.bottom == bottom);
        cpu::copy_edges<T>(part.stripe,
                           {.tile = result_of(work_, part).in(), .top = top.out(), .bottom = bottom.out()});
        CHECK(part.top == top);
        CHECK(part.bottom == bottom);
      } else {
        relax_whole(work_, grid_.a, part);
      }
      CHECK(part.guarded());
      if (work_.has_source) CHECK(part.g == before.g);
      if (!part.stripe.first) CHECK(part.above == before.above);
      if (!part.stripe.last) CHECK(part.below == before.below);
      if (work_.sweeps % 2 != 0) std::swap(part.u, part.other);
      check_frame(part);
    }
  }

  [[nodiscard]] Matrix<T> nodes() const {
    Matrix<T> all(grid_.m, grid_.n);
    for (const Part<T>& part : parts_)
      cpu::store_stripe<T>(part.stripe, part.u.in(), all.out(part.stripe.first_row, part.stripe.rows));
    CHECK(all.guarded());
    return all;
  }

  std::vector<Part<T>>& parts() { return parts_; }

  /// The neighbours' rows become `above` and `below`.
  void exchange() {
    for (std::size_t s = 1; s < parts_.size(); ++s) {
      parts_[s].above = parts_[s - 1].bottom;
      parts_[s - 1].below = parts_[s].top;
    }
  }

 private:
  void show_edges(Matrix<T> Part<T>::*tile) {
    for (Part<T>& part : parts_)
      cpu::copy_edges<T>(part.stripe, {.tile = (part.*tile).in(), .top = part.top.out(), .bottom = part.bottom.out()});
  }

  /// Both tiles hold the frame beside the stripe's own rows, above the grid and below it.
  void check_frame(const Part<T>& part) const {
    const Stripe& stripe = part.stripe;
    bool kept = true;
    const auto check = [&](Index r, Index c) {
      const T expected = grid_.v(stripe.first_row + r - stripe.halo + 1, c);
      for (const Matrix<T>* tile : {&part.u, &part.other})
        kept = kept && (*tile)(r, column_of(stripe, r, c)) == expected;
    };
    for (Index r = stripe.halo; r < stripe.halo + stripe.rows; ++r)
      for (const Index c : {Index{0}, grid_.n + 1}) check(r, c);
    for (Index c = 0; c < grid_.n + 2; ++c) {
      if (stripe.first) check(stripe.halo - 1, c);
      if (stripe.last) check(stripe.halo + stripe.rows, c);
    }
    CHECK(kept);
  }

  const FramedGrid<T>& grid_;
  Work work_;
  std::vector<Part<T>> parts_;
};

/// The grid after `tasks` tasks.
template <class T>
Matrix<T> relaxed_nodes(const FramedGrid<T>& grid, const Work& work, const std::vector<Index>& cut,
                        Index halo, Index tasks, bool border_first = false) {
  Stripes<T> stripes(grid, work, cut, halo);
  for (Index task = 0; task < tasks; ++task) stripes.relax(border_first);
  return stripes.nodes();
}

}  // namespace asterism::test
