// Relaxation in stripes against the plain loops on the whole grid; the same bits however the grid is arranged
// and cut.

#include "codelets/relax.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "matrix.hpp"

#ifdef ASTERISM_WITH_CUDA
#include "tiles.hpp"
#endif

using namespace asterism;
using namespace asterism::kernels;
using namespace asterism::test;

namespace {

using Real = long double;

/// A grid with its frame, and a right-hand side.
template <class T>
struct Grid {
  Index m, n;
  Matrix<T> v;  ///< (m + 2) x (n + 2): node (i, j) at (i + 1, j + 1)
  Matrix<T> f;
  Discretisation a;

  Grid(Index rows, Index cols, unsigned seed = 1, double ly = 1.0, double lx = 1.25)
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

bool is_red(Index i, Index j) { return (i + j + 4096) % 2 == 0; }

/// The column of number c in the tile's row r, by the definition in words.
Index column_of(const Stripe& stripe, Index r, Index c) {
  if (stripe.arrangement == Arrangement::natural) return c;
  return c / 2 + (is_red(stripe.first_row - stripe.halo + r, c - 1) ? 0 : stripe.half());
}

// --- The slow twins
// ------------------------------------------------------------------------------------------------------

/// thesis (4.12) on the whole grid, in long double.
struct Plain {
  Index m, n;
  Matrix<Real> v, g;
  Real y, x;

  template <class T>
  Plain(const Grid<T>& grid, bool has_source)
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
    Real largest = 0;
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j) largest = std::max(largest, std::abs(v(i + 1, j + 1)));
    return largest;
  }
};

template <class T>
Real distance(const Plain& plain, const Matrix<T>& v) {
  Real worst = 0;
  for (Index i = 0; i < plain.m; ++i)
    for (Index j = 0; j < plain.n; ++j) {
      const Real difference = std::abs(plain.v(i + 1, j + 1) - v(i, j));
      worst = difference <= worst ? worst : difference;  // NaN stays
    }
  return worst;
}

// --- Stripes, driven by hand
// ---------------------------------------------------------------------------------------------

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

  Given(const Grid<T>& grid, const Stripe& stripe, bool has_source)
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
Part<T> filled(const Grid<T>& grid, const Stripe& stripe, bool has_source) {
  Part<T> part(stripe, has_source);
  const Given<T> given(grid, stripe, has_source);
  cpu::fill_stripe<T>({stripe, grid.a.diagonal, has_source}, given.f.in(), given.initial.in(),
                      given.frame_rows.in(), given.frame_columns.in(), part.u.out(), part.other.out(),
                      part.g.out());
  CHECK(part.guarded());
  return part;
}

Stripe stripe_of(Index m, Index n, Index first_row, Index rows, Index halo, Arrangement arrangement) {
  return {rows, n, halo, first_row, first_row == 0, first_row + rows == m, arrangement};
}

/// The result is in `other` after an odd number of sweeps.
template <class T>
const Matrix<T>& result_of(const Work& work, const Part<T>& part) {
  return work.sweeps % 2 == 0 ? part.u : part.other;
}

template <class T>
void relax_whole(const Work& work, const Discretisation& a, Part<T>& part) {
  if (work.jacobi)
    cpu::jacobi<T>(work.jacobi_args(part.stripe, a), part.u.inout(), part.other.inout(), part.g.in(),
                   part.above.in(), part.below.in(), part.top.out(), part.bottom.out());
  else
    cpu::relax_colours<T>(work.colour_args(part.stripe, a), part.u.inout(), part.other.inout(), part.g.in(),
                          part.above.in(), part.below.in(), part.top.out(), part.bottom.out());
}

template <class T>
void relax_border(const Work& work, const Discretisation& a, Part<T>& part) {
  Matrix<T> memory(1, border_scratch(part.stripe));
  const Scratch<T> scratch{memory.out().data, 1, memory.cols(), memory.cols()};
  if (work.jacobi)
    cpu::jacobi_border<T>(work.jacobi_args(part.stripe, a), part.u.in(), part.g.in(), part.above.in(),
                          part.below.in(), part.top.out(), part.bottom.out(), scratch);
  else
    cpu::relax_colours_border<T>(work.colour_args(part.stripe, a), part.u.in(), part.g.in(), part.above.in(),
                                 part.below.in(), part.top.out(), part.bottom.out(), scratch);
  CHECK(memory.guarded());
}

template <class T>
void relax_interior(const Work& work, const Discretisation& a, Part<T>& part) {
  if (work.jacobi)
    cpu::jacobi_interior<T>(work.jacobi_args(part.stripe, a), part.u.inout(), part.other.inout(), part.g.in(),
                            part.above.in(), part.below.in());
  else
    cpu::relax_colours_interior<T>(work.colour_args(part.stripe, a), part.u.inout(), part.other.inout(),
                                   part.g.in(), part.above.in(), part.below.in());
}

/// A grid cut into stripes.
template <class T>
class Stripes {
 public:
  /// @param cut  the rows of each stripe
  Stripes(const Grid<T>& grid, const Work& work, const std::vector<Index>& cut, Index halo)
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
        cpu::fill_ghosts<T>(part.stripe, part.g.inout(), part.above.in(), part.below.in());
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
        cpu::copy_edges<T>(part.stripe, result_of(work_, part).in(), top.out(), bottom.out());
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
      cpu::copy_edges<T>(part.stripe, (part.*tile).in(), part.top.out(), part.bottom.out());
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

  const Grid<T>& grid_;
  Work work_;
  std::vector<Part<T>> parts_;
};

/// The grid after `tasks` tasks.
template <class T>
Matrix<T> relaxed_nodes(const Grid<T>& grid, const Work& work, const std::vector<Index>& cut, Index halo,
                        Index tasks, bool border_first = false) {
  Stripes<T> stripes(grid, work, cut, halo);
  for (Index task = 0; task < tasks; ++task) stripes.relax(border_first);
  return stripes.nodes();
}

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

}  // namespace

TEST_CASE("weights, diagonal, radius and omega") {
  const Discretisation square = discretise_five_point(127, 127, 1, 1);
  CHECK(square.along_y == 0.25);
  CHECK(square.along_x == 0.25);
  CHECK(square.diagonal == 4.0 * 128 * 128);
  CHECK(square.jacobi_radius == doctest::Approx(std::cos(std::numbers::pi / 128)).epsilon(1e-15));
  CHECK(square.optimal_omega() == doctest::Approx(2 / (1 + std::sin(std::numbers::pi / 128))).epsilon(1e-13));

  // h_y = 1/2, h_x = 3/4
  const Discretisation a = discretise_five_point(3, 1, 2, 1.5);
  CHECK(a.diagonal == doctest::Approx(2 * (4 + 16.0 / 9)).epsilon(1e-15));
  CHECK(a.along_y == doctest::Approx(4 / (2 * (4 + 16.0 / 9))).epsilon(1e-15));
  CHECK(a.along_y + a.along_x == doctest::Approx(0.5).epsilon(1e-15));
  CHECK(a.weights<float>().y == static_cast<float>(a.along_y));
  CHECK(a.weights<double>().x == a.along_x);
  // cos(pi / 4) along y, cos(pi / 2) along x
  CHECK(a.jacobi_radius == doctest::Approx(2 * a.along_y * std::sqrt(0.5)).epsilon(1e-15));

  CHECK(discretise_five_point(1, 1, 1, 1).optimal_omega() == doctest::Approx(1).epsilon(1e-15));
}

TEST_CASE("rows that are right") {
  const Stripe inner{10, 7, 4, 20, false, false}, upper{10, 7, 4, 0, true, false},
      lower{10, 7, 4, 30, false, true};
  CHECK(inner.begin(3) == 3);
  CHECK(inner.end(3) == 15);
  CHECK(upper.begin(3) == 4);
  CHECK(upper.end(3) == 15);
  CHECK(lower.begin(3) == 3);
  CHECK(lower.end(3) == 14);
  CHECK(inner.tile_rows() == 18);
  CHECK(reach(Sweep::red_black, 3) == 6);
  CHECK(reach(Sweep::symmetric, 3) == 7);
}

TEST_CASE_TEMPLATE("a filled stripe holds every number in its place, and zero elsewhere", T, float, double) {
  for (const auto& [m, n] : sizes)
    for (const Arrangement arrangement : {Arrangement::natural, Arrangement::separated})
      for (const Index halo : {1, 2, 5})
        for (const bool has_source : {false, true})
          for (const auto& [first_row, rows] :
               {std::pair<Index, Index>{0, m}, {0, m / 2}, {m / 2, m - m / 2}, {m / 3, m / 2 - m / 3}}) {
            const Stripe stripe = stripe_of(m, n, first_row, rows, halo, arrangement);
            const bool has_neighbours =
                (stripe.first || first_row >= halo) && (stripe.last || m - first_row - rows >= halo);
            if (rows < 1 || !has_neighbours) continue;
            CAPTURE(m);
            CAPTURE(n);
            CAPTURE(arrangement);
            CAPTURE(halo);
            CAPTURE(first_row);
            CAPTURE(rows);
            const Grid<T> grid(m, n);
            const Part<T> part = filled(grid, stripe, has_source);
            Matrix<T> u(stripe.tile_rows(), stripe.tile_cols()), g(u);
            u.fill([](Index, Index) { return 0; });
            g.fill([](Index, Index) { return 0; });
            for (Index r = 0; r < stripe.tile_rows(); ++r)
              for (Index c = 0; c < n + 2; ++c) {
                const Index i = first_row - halo + r, column = column_of(stripe, r, c);
                const bool frame_row = i < 0 || i >= m, own = r >= halo && r < halo + rows;
                if (frame_row || own || c == 0 || c == n + 1)
                  u(r, column) = grid.v(std::clamp<Index>(i + 1, 0, m + 1), c);
                if (own && c > 0 && c < n + 1)
                  g(r, column) = static_cast<T>(-static_cast<double>(grid.f(i, c - 1)) / grid.a.diagonal);
              }
            CHECK(part.u == u);
            CHECK(part.other == u);
            if (has_source) CHECK(part.g == g);
            Matrix<T> stored(rows, n);
            cpu::store_stripe<T>(stripe, part.u.in(), stored.out());
            CHECK(stored == block(grid.v, first_row + 1, 1, rows, n));
          }
}

TEST_CASE_TEMPLATE("sweeps are the papers' plain loops", T, float, double) {
  for (const auto& [m, n] : sizes) {
    CAPTURE(m);
    CAPTURE(n);
    const Grid<T> grid(m, n);
    for_works({1, 2, 3, 4, 5}, [&](const Work& work) {
      Plain plain(grid, work.has_source);
      Real largest = 1;
      for (Index sweep = 0; sweep < 2 * work.sweeps; ++sweep) {
        plain.sweep(work);
        largest = std::max(largest, plain.largest());
      }
      for (const Index halo : {Index{1}, work.needed()}) {
        if (halo > m) continue;
        CAPTURE(halo);
        // Each relaxation rounds a few times, and passes on what errors it found at most twice as large.
        const Real bound = 16 * static_cast<Real>(work.sweeps) * std::numeric_limits<T>::epsilon() * largest;
        CHECK(distance(plain, relaxed_nodes(grid, work, {m}, halo, 2)) <= bound);
      }
    });
  }
}

TEST_CASE_TEMPLATE("the same bits in any arrangement, any stripes and any number of sweeps to a task", T,
                   float, double) {
  for (const auto& [m, n] : {std::pair<Index, Index>{64, 33}, {41, 16}, {40, 1}, {37, 2}, {67, 131}}) {
    CAPTURE(m);
    CAPTURE(n);
    const Grid<T> grid(m, n);
    for_works({1, 2, 3, 4, 5}, [&](const Work& work) {
      Work one = work;
      one.sweeps = 1;
      one.arrangement = Arrangement::natural;
      const Matrix<T> expected = relaxed_nodes(grid, one, {m}, 1, 2 * work.sweeps);
      for (const Index halo : {work.needed(), work.needed() + 3}) {
        std::vector<std::vector<Index>> cuts{{m}};
        if (2 * halo <= m) cuts.push_back({halo, m - halo});
        if (3 * halo + 1 <= m) cuts.push_back({m - 2 * halo - 1, halo, halo + 1});
        for (const std::vector<Index>& cut : cuts) {
          CAPTURE(cut.size());
          CHECK(relaxed_nodes(grid, work, cut, halo, 2) == expected);
        }
        cuts = {{m}};
        if (4 * halo <= m) cuts.push_back({2 * halo, m - 2 * halo});
        if (6 * halo + 1 <= m) cuts.push_back({2 * halo, m - 4 * halo - 1, 2 * halo + 1});
        for (const std::vector<Index>& cut : cuts) {
          if (2 * halo > m) continue;
          CAPTURE(cut.size());
          CHECK(relaxed_nodes(grid, work, cut, halo, 2, true) == expected);
        }
      }
    });
  }
}

TEST_CASE_TEMPLATE("nothing but the right ghost rows is looked at", T, float, double) {
  const Grid<T> grid(40, 21);
  for_works({1, 2, 3, 4, 5}, [&](const Work& work) {
    const Index halo = work.needed() + 2;
    if (3 * halo > grid.m) return;
    Stripes<T> stripes(grid, work, {grid.m - 2 * halo, halo, halo}, halo);
    const Matrix<T> expected = [&] {
      Stripes<T> clean = stripes;
      clean.relax();
      return clean.nodes();
    }();
    stripes.exchange();
    constexpr T nan = std::numeric_limits<T>::quiet_NaN();
    for (Part<T>& part : stripes.parts())  // two rows more than the sweeps need
      for (const Index r : {Index{0}, Index{1}})
        for (Index j = 0; j < part.stripe.tile_cols(); ++j) {
          if (!part.stripe.first) part.above(r, j) = part.u(r, j) = part.other(r, j) = nan;
          if (!part.stripe.last)
            part.below(halo - 1 - r, j) = part.u(part.u.rows() - 1 - r, j) =
                part.other(part.u.rows() - 1 - r, j) = nan;
        }
    for (Part<T>& part : stripes.parts()) {
      relax_whole(work, grid.a, part);
      if (work.sweeps % 2 != 0) std::swap(part.u, part.other);
    }
    CHECK(stripes.nodes() == expected);
  });
}

TEST_CASE_TEMPLATE("stale ghost rows: as if neighbours exchanged nothing between the colours", T, float,
                   double) {
  const Grid<T> grid(23, 14);
  for (const Arrangement arrangement : {Arrangement::natural, Arrangement::separated})
    for (const Index sweeps : {1, 2, 3}) {
      Work work;
      work.arrangement = arrangement;
      work.sweeps = sweeps;
      CAPTURE(arrangement);
      CAPTURE(sweeps);
      const Matrix<T> right = relaxed_nodes(grid, work, {23}, 1, 2);
      work.stale = true;
      CHECK(relaxed_nodes(grid, work, {23}, 1, 2) == right);

      Plain plain(grid, true);
      for (Index task = 0; task < 2; ++task) {
        const Matrix<Real> before = plain.v;
        for (const auto& [begin, end] : {std::pair<Index, Index>{0, 7}, {7, 15}, {15, 23}})
          for (Index sweep = 0; sweep < sweeps; ++sweep)
            for (const Colour colour : {Colour::red, Colour::black})
              plain.relax(colour, work.omega, begin, end, before);
      }
      const Matrix<T> stale = relaxed_nodes(grid, work, {7, 8, 8}, 2, 2);
      CHECK(distance(plain, stale) <= 64 * static_cast<Real>(sweeps) * std::numeric_limits<T>::epsilon() *
                                          std::max<Real>(1, plain.largest()));
      CHECK(distance(plain, right) > Real{0.01});
    }
}

TEST_CASE_TEMPLATE("sums of squares: residual, solution, source", T, float, double) {
  for (const auto& [m, n] : sizes)
    for (const Arrangement arrangement : {Arrangement::natural, Arrangement::separated})
      for (const bool has_source : {false, true})
        for (const Index stripes_count : {1, 2, 3}) {
          const Index halo = 2;
          if (stripes_count > 1 && m < stripes_count * halo) continue;
          CAPTURE(m);
          CAPTURE(n);
          CAPTURE(arrangement);
          CAPTURE(has_source);
          CAPTURE(stripes_count);
          const Grid<T> grid(m, n);
          const Plain plain(grid, has_source);
          std::array<Real, residual_parts> expected{};
          for (Index i = 0; i < m; ++i)
            for (Index j = 0; j < n; ++j) {
              const Real d = static_cast<Real>(grid.a.diagonal), v = grid.v(i + 1, j + 1),
                         f = has_source ? static_cast<Real>(grid.f(i, j)) : Real{0};
              const Real applied = d * (plain.right_hand_side(plain.v, i, j) - plain.g(i, j) - v);
              expected[residual_squares] += (f - applied) * (f - applied);
              expected[solution_squares] += v * v;
              expected[source_squares] += f * f;
            }

          Work work;
          work.arrangement = arrangement;
          work.has_source = has_source;
          std::vector<Index> cut(static_cast<std::size_t>(stripes_count - 1), halo);
          cut.push_back(m - (stripes_count - 1) * halo);
          Stripes<T> stripes(grid, work, cut, halo);
          stripes.exchange();
          std::array<Real, residual_parts> total{};
          for (const Part<T>& part : stripes.parts()) {
            Matrix<double> sums(1, residual_parts), work_memory(1, residual_scratch);
            const Scratch<double> scratch{work_memory.out().data, 1, residual_scratch, residual_scratch};
            cpu::stripe_residual<T>(
                {part.stripe, grid.a.along_y, grid.a.along_x, grid.a.diagonal, has_source}, part.u.in(),
                part.g.in(), part.above.in(), part.below.in(), sums.out(), scratch);
            CHECK(sums.guarded());
            for (Index s = 0; s < residual_parts; ++s) total[static_cast<std::size_t>(s)] += sums(0, s);
          }
          for (std::size_t s = 0; s < total.size(); ++s) {
            CAPTURE(s);
            // g was rounded to T.
            const Real relative =
                s == solution_squares || !has_source ? 1e-13L : 4 * std::numeric_limits<T>::epsilon();
            CHECK(std::abs(total[s] - expected[s]) <= relative * expected[s]);
          }
        }
}

TEST_CASE_TEMPLATE("a NaN anywhere ends in the sums", T, float, double) {
  for (const Arrangement arrangement : {Arrangement::natural, Arrangement::separated})
    for (const Index j : {0, 1, 17, 18}) {
      Grid<T> grid(3, 19);
      grid.v(2, j + 1) = std::numeric_limits<T>::quiet_NaN();
      const Part<T> part = filled(grid, stripe_of(3, 19, 0, 3, 1, arrangement), true);
      Matrix<double> sums(1, residual_parts);
      cpu::stripe_residual<T>({part.stripe, grid.a.along_y, grid.a.along_x, grid.a.diagonal, true},
                              part.u.in(), part.g.in(), part.above.in(), part.below.in(), sums.out(),
                              {nullptr, 1, 0, 0});
      CHECK(std::isnan(sums(0, residual_squares)));
      CHECK(std::isnan(sums(0, solution_squares)));
    }
}

TEST_CASE("SOR with the best omega reaches the discrete solution of Laplace's equation") {
  // v = x y solves the five-point equations exactly.
  Grid<double> grid(31, 25);
  const auto exact = [](Index i, Index j) {
    return static_cast<double>(i) / 32 * (static_cast<double>(j) / 26);
  };
  grid.v.fill([&](Index i, Index j) {
    const bool inside = i > 0 && i <= 31 && j > 0 && j <= 25;
    return inside ? 0.0 : exact(i, j);
  });
  Work work;
  work.has_source = false;
  work.arrangement = Arrangement::separated;
  work.omega = grid.a.optimal_omega();
  work.sweeps = 4;
  const Matrix<double> v = relaxed_nodes(grid, work, {31}, 1, 50);
  double worst = 0;
  for (Index i = 0; i < 31; ++i)
    for (Index j = 0; j < 25; ++j) worst = std::max(worst, std::abs(v(i, j) - exact(i + 1, j + 1)));
  CHECK(worst <= 1e-13);
}

#ifdef ASTERISM_WITH_CUDA

namespace {

const Hints on_gpu{.where = Where::cuda};

template <class T>
using JacobiCodelet = Codelet<JacobiArgs, InOut<T>, InOut<T>, In<T>, In<T>, In<T>, Out<T>, Out<T>>;

/// Each of the implementations alone; the codelet would choose.
template <class T>
const std::array<JacobiCodelet<T>, 4> jacobi_kernels{
    {{typed_name<T>("test_jacobi_global"), nullptr, cuda::jacobi_global<T>},
     {typed_name<T>("test_jacobi_shared"), nullptr, cuda::jacobi_shared<T>},
     {typed_name<T>("test_jacobi_readonly"), nullptr, cuda::jacobi_readonly<T>},
     {typed_name<T>("test_jacobi_blocked"), nullptr, cuda::jacobi_blocked<T>}}};

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
  T largest = 1;
  for (Index i = 0; i < stripe.rows; ++i)
    for (Index c = 1; c <= stripe.nodes; ++c)
      largest = std::max(largest, std::abs(tile(stripe.halo + i, column_of(stripe, stripe.halo + i, c))));
  return largest;
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
    const Grid<T> grid(m, n);
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

}  // namespace

TEST_CASE_TEMPLATE("gpu: each of Jacobi's kernels", T, float, double) {
  Runtime runtime;
  for (const Index sweeps : {1, 2, 3, 4, 7, 13})
    for (const bool has_source : {false, true}) {
      CAPTURE(sweeps);
      CAPTURE(has_source);
      Work task;
      task.jacobi = true;
      task.sweeps = sweeps;
      task.has_source = has_source;
      for_parts<T>(task, [&](const Grid<T>& grid, const Work& work, const Part<T>& part) {
        Part<T> expected = part;
        relax_whole(work, grid.a, expected);
        for (const JacobiCodelet<T>& codelet : jacobi_kernels<T>) {
          CAPTURE(codelet.name());
          const PartTiles<T> tiles(runtime, part);
          codelet(work.jacobi_args(part.stripe, grid.a), tiles.u, tiles.other, tiles.g, tiles.above,
                  tiles.below, tiles.top, tiles.bottom, on_gpu);
          runtime.wait();
          check_part(work, expected, tiles);
        }
      });
    }
}

TEST_CASE_TEMPLATE("gpu: sweeps", T, float, double) {
  Runtime runtime;
  for_works({1, 2, 5}, [&](const Work& task) {
    for_parts<T>(task, [&](const Grid<T>& grid, const Work& work, const Part<T>& part) {
      Part<T> expected = part;
      relax_whole(work, grid.a, expected);
      const PartTiles<T> tiles(runtime, part);
      if (work.jacobi)
        codelets::jacobi<T>(work.jacobi_args(part.stripe, grid.a), tiles.u, tiles.other, tiles.g, tiles.above,
                            tiles.below, tiles.top, tiles.bottom, on_gpu);
      else
        codelets::relax_colours<T>(work.colour_args(part.stripe, grid.a), tiles.u, tiles.other, tiles.g,
                                   tiles.above, tiles.below, tiles.top, tiles.bottom, on_gpu);
      runtime.wait();
      check_part(work, expected, tiles);
    });
  });
}

TEST_CASE_TEMPLATE("gpu: the border, then the interior", T, float, double) {
  Runtime runtime;
  for_works({1, 2, 5}, [&](const Work& task) {
    for_parts<T>(task, [&](const Grid<T>& grid, const Work& work, const Part<T>& part) {
      const Stripe& stripe = part.stripe;
      if (stripe.rows < 2 * stripe.halo || stripe.halo < work.needed()) return;
      Part<T> expected = part;
      relax_whole(work, grid.a, expected);
      const PartTiles<T> tiles(runtime, part);
      const Tile<T> memory(runtime, 1, border_scratch(stripe));
      if (work.jacobi) {
        const JacobiArgs args = work.jacobi_args(stripe, grid.a);
        codelets::jacobi_border<T>(args, tiles.u, tiles.g, tiles.above, tiles.below, tiles.top, tiles.bottom,
                                   memory, on_gpu);
        codelets::jacobi_interior<T>(args, tiles.u, tiles.other, tiles.g, tiles.above, tiles.below, on_gpu);
      } else {
        const ColourArgs args = work.colour_args(stripe, grid.a);
        codelets::relax_colours_border<T>(args, tiles.u, tiles.g, tiles.above, tiles.below, tiles.top,
                                          tiles.bottom, memory, on_gpu);
        codelets::relax_colours_interior<T>(args, tiles.u, tiles.other, tiles.g, tiles.above, tiles.below,
                                            on_gpu);
      }
      runtime.wait();
      check_part(work, expected, tiles);
    });
  });
}

TEST_CASE_TEMPLATE("gpu: stale ghost rows", T, float, double) {
  Runtime runtime;
  for (const Arrangement arrangement : {Arrangement::natural, Arrangement::separated})
    for (const Index sweeps : {1, 2, 3}) {
      Work task;
      task.arrangement = arrangement;
      task.sweeps = sweeps;
      task.stale = true;
      for_parts<T>(task, [&](const Grid<T>& grid, const Work& work, const Part<T>& part) {
        Part<T> expected = part;
        relax_whole(work, grid.a, expected);
        const PartTiles<T> tiles(runtime, part);
        codelets::relax_colours<T>(work.colour_args(part.stripe, grid.a), tiles.u, tiles.other, tiles.g,
                                   tiles.above, tiles.below, tiles.top, tiles.bottom, on_gpu);
        runtime.wait();
        check_part(work, expected, tiles);
      });
    }
}

TEST_CASE_TEMPLATE("gpu: stripes are filled, shown to neighbours and stored", T, float, double) {
  Runtime runtime;
  for (const Arrangement arrangement : {Arrangement::natural, Arrangement::separated})
    for (const bool has_source : {false, true}) {
      CAPTURE(arrangement);
      CAPTURE(has_source);
      Work task;
      task.arrangement = arrangement;
      task.has_source = has_source;
      for_parts<T>(task, [&](const Grid<T>& grid, const Work&, const Part<T>& part) {
        const Stripe& stripe = part.stripe;
        const Part<T> expected = filled(grid, stripe, has_source);
        const PartTiles<T> tiles(runtime, Part<T>(stripe, has_source));
        const Given<T> given(grid, stripe, has_source);
        codelets::fill_stripe<T>({stripe, grid.a.diagonal, has_source}, upload(runtime, given.f),
                                 upload(runtime, given.initial), upload(runtime, given.frame_rows),
                                 upload(runtime, given.frame_columns), tiles.u, tiles.other, tiles.g, on_gpu);
        codelets::copy_edges<T>(stripe, tiles.u, tiles.top, tiles.bottom, on_gpu);
        const Tile<T> stored(runtime, stripe.rows, stripe.nodes);
        codelets::store_stripe<T>(stripe, tiles.u, stored, on_gpu);
        runtime.wait();
        CHECK(download(tiles.u) == expected.u);
        CHECK(download(tiles.other) == expected.u);
        if (has_source) {
          const Matrix<T> g = download(tiles.g);
          bool right = true;
          for (Index r = 0; r < g.rows(); ++r)
            for (Index j = 0; j < g.cols(); ++j)
              right = right && std::abs(g(r, j) - expected.g(r, j)) <=
                                   2 * std::numeric_limits<T>::epsilon() * std::abs(expected.g(r, j));
          CHECK(right);
        }
        Part<T> shown = expected;
        cpu::copy_edges<T>(stripe, shown.u.in(), shown.top.out(), shown.bottom.out());
        CHECK(download(tiles.top) == shown.top);
        CHECK(download(tiles.bottom) == shown.bottom);
        CHECK(download(stored) == block(grid.v, stripe.first_row + 1, 1, stripe.rows, grid.n));

        const Tile<T> above = upload(runtime, part.above), below = upload(runtime, part.below);
        codelets::fill_ghosts<T>(stripe, tiles.u, above, below, on_gpu);
        runtime.wait();
        cpu::fill_ghosts<T>(stripe, shown.u.inout(), part.above.in(), part.below.in());
        CHECK(download(tiles.u) == shown.u);
      });
    }
}

TEST_CASE_TEMPLATE("gpu: sums of squares", T, float, double) {
  Runtime runtime;
  for (const Arrangement arrangement : {Arrangement::natural, Arrangement::separated})
    for (const bool has_source : {false, true}) {
      CAPTURE(arrangement);
      CAPTURE(has_source);
      Work task;
      task.arrangement = arrangement;
      task.has_source = has_source;
      const Tile<double> memory(runtime, 1, residual_scratch);
      for_parts<T>(task, [&](const Grid<T>& grid, const Work&, const Part<T>& part) {
        const ResidualArgs args{part.stripe, grid.a.along_y, grid.a.along_x, grid.a.diagonal, has_source};
        const PartTiles<T> tiles(runtime, part);
        const Tile<double> sums(runtime, 1, residual_parts), again(runtime, 1, residual_parts);
        for (const Tile<double>* result : {&sums, &again})
          codelets::stripe_residual<T>(args, tiles.u, tiles.g, tiles.above, tiles.below, *result, memory,
                                       on_gpu);
        runtime.wait();
        Matrix<double> expected(1, residual_parts);
        cpu::stripe_residual<T>(args, part.u.in(), part.g.in(), part.above.in(), part.below.in(),
                                expected.out(), {nullptr, 1, 0, 0});
        const Matrix<double> made = download(sums);
        for (Index s = 0; s < residual_parts; ++s) {
          CAPTURE(s);
          CHECK(std::abs(made(0, s) - expected(0, s)) <= 1e-12 * expected(0, s));
        }
        CHECK(made == download(again));
      });
    }
}

#endif
