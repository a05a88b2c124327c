// Stripes: what they hold, what they show their neighbours, and the sums of squares over them.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "../support/matrix.hpp"
#include "../support/square_sums.hpp"
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

namespace {

/// What a CPU's sums are made of.
template <class T>
ResidualPorts<AsPorts, T> residual_ports(const Part<T>& part, Out<sums::SquareSum> sums) {
  return {.u = part.u.in(),
          .g = part.g.in(),
          .above = part.above.in(),
          .below = part.below.in(),
          .sums = sums,
          .work = {nullptr, 1, 0, 0}};
}

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
            const FramedGrid<T> grid(m, n);
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
            CHECK(frame_alone(stripe, part.other) == frame_alone(stripe, u));
            CHECK(nodes_untouched(stripe, part.other));
            if (has_source) CHECK(part.g == g);
            Matrix<T> stored(rows, n);
            cpu::store_stripe<T>(stripe, part.u.in(), stored.out());
            CHECK(stored == block(grid.v, first_row + 1, 1, rows, n));
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
          const FramedGrid<T> grid(m, n);
          const Plain plain(grid, has_source);
          std::array<Real, residual_parts> expected{};
          for (Index i = 0; i < m; ++i)
            for (Index j = 0; j < n; ++j) {
              const Real v = grid.v(i + 1, j + 1),
                         f = has_source ? static_cast<Real>(grid.f(i, j)) / static_cast<Real>(grid.a.diagonal)
                                        : Real{0};
              const Real applied = plain.right_hand_side(plain.v, i, j) - plain.g(i, j) - v;  // all over d
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
            SquareSums<residual_parts> sums;
            cpu::stripe_residual<T>({part.stripe, grid.a.along_y, grid.a.along_x, has_source},
                                    residual_ports(part, sums.out()));
            for (Index s = 0; s < residual_parts; ++s) total[static_cast<std::size_t>(s)] += sums[s];
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
      FramedGrid<T> grid(3, 19);
      grid.v(2, j + 1) = std::numeric_limits<T>::quiet_NaN();
      const Part<T> part = filled(grid, stripe_of(3, 19, 0, 3, 1, arrangement), true);
      SquareSums<residual_parts> sums;
      cpu::stripe_residual<T>({part.stripe, grid.a.along_y, grid.a.along_x, true}, residual_ports(part, sums.out()));
      CHECK(std::isnan(sums[residual_squares]));
      CHECK(std::isnan(sums[solution_squares]));
    }
}

#ifdef ASTERISM_WITH_CUDA

TEST_CASE_TEMPLATE("gpu: stripes are filled, shown to neighbours and stored", T, float, double) {
  Runtime runtime;
  for (const Arrangement arrangement : {Arrangement::natural, Arrangement::separated})
    for (const bool has_source : {false, true}) {
      CAPTURE(arrangement);
      CAPTURE(has_source);
      Work task;
      task.arrangement = arrangement;
      task.has_source = has_source;
      for_parts<T>(task, [&](const FramedGrid<T>& grid, const Work&, const Part<T>& part) {
        const Stripe& stripe = part.stripe;
        const Part<T> expected = filled(grid, stripe, has_source);
        const PartTiles<T> tiles(runtime, Part<T>(stripe, has_source));
        const Given<T> given(grid, stripe, has_source);
        relaxation::codelets::fill_stripe<T>({stripe, grid.a.diagonal, has_source},
                                             {.f = upload(runtime, given.f),
                                              .initial = upload(runtime, given.initial),
                                              .frame_rows = upload(runtime, given.frame_rows),
                                              .frame_columns = upload(runtime, given.frame_columns),
                                              .u = tiles.u,
                                              .other = tiles.other,
                                              .g = tiles.g},
                                             on_gpu);
        relaxation::codelets::copy_edges<T>(
            stripe, {.tile = tiles.u, .top = tiles.top, .bottom = tiles.bottom}, on_gpu);
        const Tile<T> stored(runtime, stripe.rows, stripe.nodes);
        relaxation::codelets::store_stripe<T>(stripe, tiles.u, stored, on_gpu);
        runtime.wait();
        CHECK(download(tiles.u) == expected.u);
        CHECK(frame_alone(stripe, download(tiles.other)) == frame_alone(stripe, expected.u));
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
        cpu::copy_edges<T>(stripe, {.tile = shown.u.in(), .top = shown.top.out(), .bottom = shown.bottom.out()});
        CHECK(download(tiles.top) == shown.top);
        CHECK(download(tiles.bottom) == shown.bottom);
        CHECK(download(stored) == block(grid.v, stripe.first_row + 1, 1, stripe.rows, grid.n));

        const Tile<T> above = upload(runtime, part.above), below = upload(runtime, part.below);
        relaxation::codelets::fill_ghosts<T>(stripe, {.tile = tiles.u, .above = above, .below = below}, on_gpu);
        runtime.wait();
        cpu::fill_ghosts<T>(stripe, {.tile = shown.u.inout(), .above = part.above.in(), .below = part.below.in()});
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
      const Tile<sums::SquareSum> memory(runtime, 1, residual_scratch);
      for_parts<T>(task, [&](const FramedGrid<T>& grid, const Work&, const Part<T>& part) {
        const ResidualArgs args{part.stripe, grid.a.along_y, grid.a.along_x, has_source};
        const PartTiles<T> tiles(runtime, part);
        const Tile<sums::SquareSum> sums(runtime, 1, residual_parts), again(runtime, 1, residual_parts);
        for (const Tile<sums::SquareSum>* result : {&sums, &again})
          relaxation::codelets::stripe_residual<T>(args,
                                                   {.u = tiles.u,
                                                    .g = tiles.g,
                                                    .above = tiles.above,
                                                    .below = tiles.below,
                                                    .sums = *result,
                                                    .work = memory},
                                                   on_gpu);
        runtime.wait();
        SquareSums<residual_parts> expected;
        cpu::stripe_residual<T>(args, residual_ports(part, expected.out()));
        const HostView<sums::SquareSum> made(sums, HostView<sums::SquareSum>::Access::read),
            repeated(again, HostView<sums::SquareSum>::Access::read);
        for (Index s = 0; s < residual_parts; ++s) {
          CAPTURE(s);
          CHECK(std::abs(static_cast<double>(made(0, s).total()) - expected[s]) <= 1e-12 * expected[s]);
          CHECK(made(0, s).total() == repeated(0, s).total());
        }
      });
    }
}

#endif
