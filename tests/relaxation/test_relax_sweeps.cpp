// Sweeps over stripes against the plain loops on the whole grid; the same bits however the grid is arranged
// and cut.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "../support/matrix.hpp"
#include "../support/worst.hpp"
#include "codelets/relaxation/sweeps.hpp"
#include "plain_sweeps.hpp"
#include "stripe_work.hpp"
#include "stripes.hpp"

#ifdef ASTERISM_WITH_CUDA
#include "stripes_on_gpu.hpp"
#endif

using namespace asterism;
using namespace asterism::relaxation;
using namespace asterism::test;

TEST_CASE_TEMPLATE("sweeps are the papers' plain loops", T, float, double) {
  for (const auto& [m, n] : sizes) {
    CAPTURE(m);
    CAPTURE(n);
    const FramedGrid<T> grid(m, n);
    for_works({1, 2, 3, 4, 5}, [&](const Work& work) {
      Plain plain(grid, work.has_source);
      Worst largest;
      largest.take_in(1);
      for (Index sweep = 0; sweep < 2 * work.sweeps; ++sweep) {
        plain.sweep(work);
        largest.take_in(plain.largest());
      }
      for (const Index halo : {Index{1}, work.needed()}) {
        if (halo > m) continue;
        CAPTURE(halo);
        // Each relaxation rounds a few times, and passes on what errors it found at most twice as large.
        const Real bound =
            16 * static_cast<Real>(work.sweeps) * std::numeric_limits<T>::epsilon() * largest.value();
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
    const FramedGrid<T> grid(m, n);
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

TEST_CASE_TEMPLATE("rows so long that a core's caches have room for few: the same bits by groups of passes",
                   T, float, double) {
  for (const Index n :
       {Index{2'003}, Index{10'007}}) {  // a grid that stays in the second cache, and one that does not
    CAPTURE(n);
    constexpr Index m = 40;
    const FramedGrid<T> grid(m, n);
    for_works({5}, [&](const Work& work) {
      Work one = work;
      one.sweeps = 1;
      one.arrangement = Arrangement::natural;
      CHECK(relaxed_nodes(grid, work, {m}, work.needed(), 1) ==
            relaxed_nodes(grid, one, {m}, 1, work.sweeps));
    });
  }
}

TEST_CASE_TEMPLATE("nothing but the right ghost rows is looked at", T, float, double) {
  const FramedGrid<T> grid(40, 21);
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
  const FramedGrid<T> grid(23, 14);
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

TEST_CASE("SOR with the best omega reaches the discrete solution of Laplace's equation") {
  // v = x y solves the five-point equations exactly.
  FramedGrid<double> grid(31, 25);
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
  Worst worst;
  for (Index i = 0; i < 31; ++i)
    for (Index j = 0; j < 25; ++j) worst.take_in(v(i, j) - exact(i + 1, j + 1));
  CHECK(worst.value() <= 1e-13);
}

#ifdef ASTERISM_WITH_CUDA

namespace {

template <class T>
using JacobiCodelet = Codelet<JacobiArgs, SweepPorts<AsPorts, T>>;

/// Each of the implementations alone; the codelet would choose.
template <class T>
const std::array<JacobiCodelet<T>, 4> jacobi_kernels{
    {{typed_name<T>("test_jacobi_global"), nullptr, cuda::jacobi_global<T>},
     {typed_name<T>("test_jacobi_shared"), nullptr, cuda::jacobi_shared<T>},
     {typed_name<T>("test_jacobi_readonly"), nullptr, cuda::jacobi_readonly<T>},
     {typed_name<T>("test_jacobi_blocked"), nullptr, cuda::jacobi_blocked<T>}}};

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
      for_parts<T>(task, [&](const FramedGrid<T>& grid, const Work& work, const Part<T>& part) {
        Part<T> expected = part;
        relax_whole(work, grid.a, expected);
        for (const JacobiCodelet<T>& codelet : jacobi_kernels<T>) {
          CAPTURE(codelet.name());
          const PartTiles<T> tiles(runtime, part);
          codelet(work.jacobi_args(part.stripe, grid.a), tiles.sweep(), on_gpu);
          runtime.wait();
          check_part(work, expected, tiles);
        }
      });
    }
}

TEST_CASE_TEMPLATE("gpu: sweeps", T, float, double) {
  Runtime runtime;
  for_works({1, 2, 5}, [&](const Work& task) {
    for_parts<T>(task, [&](const FramedGrid<T>& grid, const Work& work, const Part<T>& part) {
      Part<T> expected = part;
      relax_whole(work, grid.a, expected);
      const PartTiles<T> tiles(runtime, part);
      if (work.jacobi)
        relaxation::codelets::jacobi<T>(work.jacobi_args(part.stripe, grid.a), tiles.sweep(), on_gpu);
      else
        relaxation::codelets::relax_colours<T>(work.colour_args(part.stripe, grid.a), tiles.sweep(), on_gpu);
      runtime.wait();
      check_part(work, expected, tiles);
    });
  });
}

TEST_CASE_TEMPLATE("gpu: the border, then the interior", T, float, double) {
  Runtime runtime;
  for_works({1, 2, 5}, [&](const Work& task) {
    for_parts<T>(task, [&](const FramedGrid<T>& grid, const Work& work, const Part<T>& part) {
      const Stripe& stripe = part.stripe;
      if (stripe.rows < 2 * stripe.halo || stripe.halo < work.needed()) return;
      Part<T> expected = part;
      relax_whole(work, grid.a, expected);
      const PartTiles<T> tiles(runtime, part);
      const Tile<T> memory(runtime, 1, border_scratch(stripe));
      if (work.jacobi) {
        const JacobiArgs args = work.jacobi_args(stripe, grid.a);
        relaxation::codelets::jacobi_border<T>(args, tiles.border(memory), on_gpu);
        relaxation::codelets::jacobi_interior<T>(args, tiles.interior(), on_gpu);
      } else {
        const ColourArgs args = work.colour_args(stripe, grid.a);
        relaxation::codelets::relax_colours_border<T>(args, tiles.border(memory), on_gpu);
        relaxation::codelets::relax_colours_interior<T>(args, tiles.interior(), on_gpu);
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
      for_parts<T>(task, [&](const FramedGrid<T>& grid, const Work& work, const Part<T>& part) {
        Part<T> expected = part;
        relax_whole(work, grid.a, expected);
        const PartTiles<T> tiles(runtime, part);
        relaxation::codelets::relax_colours<T>(work.colour_args(part.stripe, grid.a), tiles.sweep(), on_gpu);
        runtime.wait();
        check_part(work, expected, tiles);
      });
    }
}

#endif
