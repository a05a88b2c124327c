/// \file
/// Stripes of grids, driven by hand, and the plain loops on the whole grid: for tests of the relaxation
/// kernels.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "../support/matrix.hpp"
#include "../support/worst.hpp"
#include "codelets/relaxation/sweeps.hpp"

#ifdef ASTERISM_WITH_CUDA
#include "../support/tiles.hpp"
#endif

namespace asterism::test {

using namespace asterism::relaxation;

using Real = long double;

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

// --- The slow twins ----------------------------------------------------------------------------------------

/// [Czapinski 2014] (4.12) on the whole grid, in long double.
struct Plain {
  Index m, n;
  Matrix<Real> v, g;
  Real y, x;

  template <class T>
  Plain(const FramedGrid<T>& grid, bool has_source)
      : m(grid.m),
        n(grid.n),
        v(Matrix<Real>(m + 2, n + 2).fill([&](Index i, Index j) { return grid.v(i, j); })),
        g(Matrix<Real>(m, n).fill([&](Index i, Index j) {
          return has_source ? -static_cast<Real>(grid.f(i, j)) / static_cast<Real>(grid.a.diagonal) : Real{0};
        })),
        y(static_cast<Real>(grid.a.along_y)),
        x(static_cast<Real>(grid.a.along_x)) {}

  /// The right-hand side of (R1) at node (i, j), from the values in `from`.
  [[nodiscard]] Real right_hand_side(const Matrix<Real>& from, Index i, Index j) const {
    return y * (from(i, j + 1) + from(i + 2, j + 1)) + x * (from(i + 1, j) + from(i + 1, j + 2)) + g(i, j);
  }
  void jacobi() {
    const Matrix<Real> old = v;
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j) v(i + 1, j + 1) = right_hand_side(old, i, j);
  }
  void relax(Colour colour, Real omega) { relax(colour, omega, 0, m, v); }
  /// Rows [begin, end) alone, with the other rows as they are in `others`.
  void relax(Colour colour, Real omega, Index begin, Index end, const Matrix<Real>& others) {
    const auto beside = [&](Index i, Index j) {
      return i - 1 >= begin && i - 1 < end ? v(i, j + 1) : others(i, j + 1);
    };
    for (Index i = begin; i < end; ++i)
      for (Index j = 0; j < n; ++j) {
        if (is_red(i, j) != (colour == Colour::red)) continue;
        const Real sum =
            y * (beside(i, j) + beside(i + 2, j)) + x * (v(i + 1, j) + v(i + 1, j + 2)) + g(i, j);
        v(i + 1, j + 1) = (1 - omega) * v(i + 1, j + 1) + omega * sum;
      }
  }
  void sweep(const Work& work) {
    const auto omega = static_cast<Real>(work.omega);
    if (work.jacobi) return jacobi();
    relax(Colour::red, omega);
    relax(Colour::black, omega);
    if (work.order == Sweep::red_black) return;
    relax(Colour::black, omega);
    relax(Colour::red, omega);
  }
  [[nodiscard]] Real largest() const {
    Worst largest;
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j) largest.take_in(v(i + 1, j + 1));
    return largest.value();
  }
};

template <class T>
Real distance(const Plain& plain, const Matrix<T>& v) {
  Worst worst;
  for (Index i = 0; i < plain.m; ++i)
    for (Index j = 0; j < plain.n; ++j) worst.take_in(plain.v(i + 1, j + 1) - v(i, j));
  return worst.value();
}

// --- Stripes, driven by hand -------------------------------------------------------------------------------

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
  cpu::fill_stripe<T>({stripe, grid.a.diagonal, has_source}, {.f = given.f.in(), .initial = given.initial.in(), .frame_rows = given.frame_rows.in(), .frame_columns = given.frame_columns.in(), .u = part.u.out(), .other = part.other.out(), .g = part.g.out()});
  CHECK(part.guarded());
  return part;
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
        cpu::copy_edges<T>(part.stripe, {.tile = result_of(work_, part).in(), .top = top.out(), .bottom = bottom.out()});
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

#ifdef ASTERISM_WITH_CUDA

// --- The same on the device --------------------------------------------------------------------------------

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

#endif

}  // namespace asterism::test
