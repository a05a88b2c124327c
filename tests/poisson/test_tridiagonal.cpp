// One segment: its solution, its responses and what it shows, against dense matrices in long double.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "../support/worst.hpp"
#include "tridiagonal_lines.hpp"

#ifdef ASTERISM_WITH_CUDA
#include "../support/tiles.hpp"
#endif

using namespace asterism;
using namespace asterism::poisson;
using namespace asterism::test;

TEST_CASE("pivots keep 1 - m where nothing is lost for 100,000 rows") {
  Pivot pivot;
  Response response;
  const Row row{1, 1, 1};
  for (int j = 1; j <= 100'000; ++j) {
    pivot.advance(row, 0.0);
    response.append(row, 0.0);
  }
  CHECK(pivot.complement == doctest::Approx(1.0 / 100'001).epsilon(1e-12));
  CHECK(response.last.before == doctest::Approx(1.0 / 100'001).epsilon(1e-12));
  CHECK(response.first.after == doctest::Approx(1.0 / 100'001).epsilon(1e-10));
  CHECK(response.first.before == doctest::Approx(100'000.0 / 100'001).epsilon(1e-13));
  CHECK(response.first.lost == 0.0);
}

TEST_CASE_TEMPLATE("solve by hand: one row, three rows", T, float, double) {
  Matrix<T> one(1, 1);
  one.fill([](Index, Index) { return 6; });
  Matrix<double> axis = zeros(1, grid::axis_columns), mode(1, 1), before(1, 1), after(1, 1);
  axis(0, grid::link_before) = 2;
  axis(0, grid::link_after) = 3;
  axis(0, grid::width_column) = 0.5;
  mode(0, 0) = 4;
  before(0, 0) = 4;
  after(0, 0) = 5;
  cpu::solve<T>(one.inout(), axis.in(), mode.in(), 1.0, before.in(), after.in());
  CHECK(one(0, 0) == doctest::Approx(20.0 / 7));  // 2 (4 - v) + 3 (5 - v) - 2 v = 3

  Matrix<T> three(3, 1);
  three.fill([](Index i, Index) { return i == 1 ? 2 : 0; });
  const Line line = make_line(3, grid::Condition::dirichlet, grid::Condition::dirichlet,
                              grid::Centering::node, Spacing::equal);
  cpu::solve<T>(three.inout(), line.tile().in(), zeros(1, 1).in(), 1.0, zeros(1, 1).in(), zeros(1, 1).in());
  CHECK(three(0, 0) == doctest::Approx(-1.0));
  CHECK(three(1, 0) == doctest::Approx(-2.0));
  CHECK(three(2, 0) == doctest::Approx(-1.0));
}

TEST_CASE_TEMPLATE("solve agrees with the dense matrix", T, float, double) {
  for (const Index s : sizes)
    for (const Line& line : all_lines(s)) {
      if (line.periodic) continue;
      const Matrix<double> mu = mixed_modes(line), mu_before = mu, axis = line.tile(), axis_before = axis;
      const Matrix<T> f = Matrix<T>(s, columns).fill_random(1);
      const Matrix<double> before = random(1, columns, 2), before_before = before;
      const Matrix<double> after = random(1, columns, 3), after_before = after;
      Matrix<T> v = f;
      cpu::solve<T>(v.inout(), axis.in(), mu.in(), 0.37, before.in(), after.in());
      check_solution(v, line, f, mu, 0.37, before, after);
      CHECK(v.guarded());
      CHECK(mu == mu_before);
      CHECK(axis == axis_before);
      CHECK(before == before_before);
      CHECK(after == after_before);
    }
}

TEST_CASE("responses agree with the dense matrix to almost all digits") {
  for (const Index s : {1, 2, 3, 5, 33})
    for (const Line& line : all_lines(s)) {
      if (line.periodic) continue;
      CAPTURE(line.name);
      CAPTURE(s);
      const Matrix<double> mu = mixed_modes(line), mu_before = mu, axis = line.tile(), axis_before = axis;
      Matrix<double> response(response_rows, columns);
      cpu::respond(axis.in(), mu.in(), response.out());
      for (Index k = 0; k < columns; ++k) {
        CAPTURE(mu(0, k));
        const Response r = response_at(response.in(), k);
        if (line.singular) {  // no links to the outside: everything is lost
          check_near(r, {{0, 0, 1}, {0, 0, 1}}, 1e-14);
          continue;
        }
        const Dense inverse = inverse_of({line, mu(0, k)});
        const auto expected = [&](Index i) {
          Real lost = 0;
          for (Index j = 0; j < s; ++j)
            lost -= inverse[at(i)][at(j)] * Real{mu(0, k)} * Real{line.rows[at(j)].width};
          return Shares{static_cast<double>(-inverse[at(i)].front() * Real{line.rows.front().before}),
                        static_cast<double>(-inverse[at(i)].back() * Real{line.rows.back().after}),
                        static_cast<double>(lost)};
        };
        check_near(r, {expected(0), expected(s - 1)}, 2e-14);
      }
      CHECK(response.guarded());
      CHECK(mu == mu_before);
      CHECK(axis == axis_before);
    }
}

TEST_CASE_TEMPLATE("reduce gives the first and last unknown between zeros, in one go or appended", T, float,
                   double) {
  for (const Index s : sizes)
    for (const Line& line : all_lines(s)) {
      if (line.periodic) continue;
      const Matrix<double> mu = mixed_modes(line), mu_before = mu, axis = line.tile(), axis_before = axis;
      const Matrix<T> f = Matrix<T>(s, columns).fill_random(4), f_before = f;
      Matrix<double> state(state_rows, columns);
      cpu::reduce<T>(f.in(), axis.in(), mu.in(), -1.7, state.inout(), Segment::start);
      CHECK(state.guarded());
      CHECK(f == f_before);
      CHECK(mu == mu_before);
      CHECK(axis == axis_before);

      Matrix<double> appended(state_rows, columns);
      for (Index i = 0; i < s; i += 7) {
        const Index rows = std::min<Index>(7, s - i);
        cpu::reduce<T>(f.in(i, rows), axis.in(i, rows), mu.in(), -1.7, appended.inout(),
                       i == 0 ? Segment::start : Segment::append);
      }
      CHECK(appended == state);

      if (s > largest_dense) continue;
      CAPTURE(line.name);
      CAPTURE(s);
      std::map<double, Dense> inverses;
      for (Index k = 0; k < columns; ++k) {
        CAPTURE(mu(0, k));
        const System system{line, mu(0, k)};
        if (inverses.find(mu(0, k)) == inverses.end()) inverses[mu(0, k)] = inverse_of(system);
        const Column rhs = system.right_hand_side(f, k, -1.7, 0, 0);
        const auto check_row = [&](ShownRow row, Index i) {
          Real exact = 0, terms = 0;
          for (Index j = 0; j < s; ++j) {
            exact += inverses[mu(0, k)][at(i)][at(j)] * rhs[at(j)];
            terms += std::abs(inverses[mu(0, k)][at(i)][at(j)] * rhs[at(j)]);
          }
          // Nothing cancels but the right-hand side; the dense matrix itself is right to 1e-19 / mu.
          const Real bound = (2e-14L + (line.singular ? 1e-18L / Real{mu(0, k)} : 0)) * terms;
          CHECK(static_cast<double>(std::abs(static_cast<Real>(state(row, k)) - exact) / bound) <= 1.0);
        };
        check_row(y_first_row, 0);
        check_row(y_last_row, s - 1);
      }
    }
}

TEST_CASE_TEMPLATE("a NaN stays in its column", T, float, double) {
  const Line line = make_line(40, grid::Condition::neumann, grid::Condition::dirichlet, grid::Centering::cell,
                              Spacing::equal);
  Matrix<T> v = Matrix<T>(40, columns).fill_random(9);
  v(20, 5) = std::numeric_limits<T>::quiet_NaN();
  Matrix<double> state(state_rows, columns);
  const Matrix<double> mu = mixed_modes(line), axis = line.tile(), zero = zeros(1, columns);
  cpu::reduce<T>(v.in(), axis.in(), mu.in(), 1.0, state.inout(), Segment::start);
  cpu::solve<T>(v.inout(), axis.in(), mu.in(), 1.0, zero.in(), zero.in());
  for (Index k = 0; k < columns; ++k) {
    CHECK(std::isnan(state(y_first_row, k)) == (k == 5));
    CHECK(std::isnan(state(y_last_row, k)) == (k == 5));
    CHECK(std::isnan(v(0, k)) == (k == 5));
  }
}

#ifdef ASTERISM_WITH_CUDA

namespace {

/// Reduces a segment in groups of `group` rows, as a slab's transformed rows come in.
template <class T>
void gpu_reduce(Stream stream, const Index& group, In<T> lines, In<double> axis, In<double> mu,
                Out<double> shown, Scratch<double> work) {
  const cuda::Blocks blocks{work.data, lines.rows, lines.cols};
  for (Index i = 0; i < lines.rows; i += group) {
    const Index rows = std::min(group, lines.rows - i);
    cuda::reduce_blocks<T>(stream, {lines.row(i), rows, lines.cols, lines.ld}, i,
                           {axis.row(i), rows, axis.cols, axis.ld}, mu, -1.7, blocks);
  }
  cuda::join_blocks(stream, mu, blocks, shown);
}

/// In blocks even where columns are short.
struct Solve {
  double scale = 0.37;
  bool in_blocks = false;
};
constexpr bool ways[] = {false, true};

template <class T>
void gpu_solve(Stream stream, const Solve& a, InOut<T> lines, In<double> axis, In<double> mu,
               In<double> before, In<double> after, Scratch<double> work) {
  const auto solve = a.in_blocks ? cuda::solve_in_blocks<T> : cuda::solve<T>;
  solve(stream, lines, axis, mu, a.scale, before, after, work.data);
}

void gpu_respond(Stream stream, const int&, In<double> axis, In<double> mu, Out<double> response) {
  cuda::respond(stream, axis, mu, response);
}

template <class T>
void gpu_solve_ring(Stream stream, const Solve& a, InOut<T> lines, In<double> axis, In<double> mu,
                    In<double> response, Scratch<double> work) {
  const auto solve = a.in_blocks ? cuda::solve_ring_in_blocks<T> : cuda::solve_ring<T>;
  solve(stream, lines, axis, mu, a.scale, response, work.data);
}

// One block and less, several groups of the interface system, of several blocks, and some empty; the longest of short columns.
constexpr Index gpu_heights[] = {1, 2, 31, 32, 33, 64, 97, 519, 1000, 1024, 3000};

std::vector<Line> gpu_lines(Index n) {
  using enum grid::Condition;
  Line widening = make_line(n, dirichlet, neumann, grid::Centering::cell, Spacing::equal);
  widening.name += " of two widths";  // alike in most blocks, but not in all of these
  for (Index i = 0; i < n / 3; ++i) widening.rows[at(i)].width *= 2;
  return {make_line(n, dirichlet, dirichlet, grid::Centering::node, Spacing::equal),
          make_line(n, neumann, dirichlet, grid::Centering::cell, Spacing::stretched),
          make_line(n, neumann, neumann, grid::Centering::cell, Spacing::equal), widening};
}

}  // namespace

TEST_CASE_TEMPLATE("gpu: what segments show, in one go and in groups of rows", T, float, double) {
  static const Codelet<Index, In<T>, In<double>, In<double>, Out<double>, Scratch<double>> reduce{
      sizeof(T) == 4 ? "test_reduce_f32" : "test_reduce_f64", nullptr, gpu_reduce<T>};
  Runtime runtime;
  for (const Index n : gpu_widths)
    for (const Index s : gpu_heights)
      for (const Line& line : gpu_lines(s)) {
        const Matrix<double> mu = mixed_modes(line, n), axis = line.tile();
        // Of one sign, so that the result is right to almost all digits whatever the order of sums.
        const Matrix<T> f = Matrix<T>(s, n).fill([](Index i, Index k) { return 1 + (i * 7 + k * 5) % 11; });
        Matrix<double> expected(state_rows, n);
        cpu::reduce<T>(f.in(), axis.in(), mu.in(), -1.7, expected.inout(), Segment::start);
        const Tile<T> lines = upload(runtime, f);
        const Tile<double> axis_tile = upload(runtime, axis), modes = upload(runtime, mu);
        for (const Index group : {s, 2 * cuda::block_rows}) {
          const Tile<double> shown(runtime, shown_rows, n), work(runtime, 1, cuda::blocks_scratch(s, n));
          reduce(group, lines, axis_tile, modes, shown, work);
          runtime.wait();
          const Matrix<double> joined = download(shown);
          CAPTURE(line.name);
          CAPTURE(s);
          for (Index k = 0; k < n; ++k) {
            CAPTURE(mu(0, k));
            CHECK(joined(y_first_row, k) == doctest::Approx(expected(y_first_row, k)).epsilon(1e-12));
            CHECK(joined(y_last_row, k) == doctest::Approx(expected(y_last_row, k)).epsilon(1e-12));
          }
        }
      }
}

TEST_CASE_TEMPLATE("gpu: solutions of segments", T, float, double) {
  static const Codelet<Solve, InOut<T>, In<double>, In<double>, In<double>, In<double>, Scratch<double>>
      solve{sizeof(T) == 4 ? "test_solve_f32" : "test_solve_f64", nullptr, gpu_solve<T>};
  Runtime runtime;
  for (const Index n : gpu_widths)
    for (const Index s : gpu_heights)
      for (const Line& line : gpu_lines(s)) {
        const Matrix<double> mu = mixed_modes(line, n), before = random(1, n, 12), after = random(1, n, 13);
        const Matrix<T> f = Matrix<T>(s, n).fill_random(11);
        const Tile<double> axis = upload(runtime, line.tile()), modes = upload(runtime, mu),
                           before_tile = upload(runtime, before), after_tile = upload(runtime, after);
        const Tile<double> work(runtime, 1, cuda::blocks_scratch(s, n));
        for (const bool in_blocks : ways) {
          CAPTURE(in_blocks);
          const Tile<T> lines = upload(runtime, f);
          solve({.in_blocks = in_blocks}, lines, axis, modes, before_tile, after_tile, work);
          runtime.wait();
          check_solution(download(lines), line, f, mu, 0.37, before, after, 16 * epsilon);
        }
      }
}

TEST_CASE_TEMPLATE("gpu: so many columns that a thread takes a whole one", T, float, double) {
  static const Codelet<Solve, InOut<T>, In<double>, In<double>, In<double>, In<double>, Scratch<double>>
      solve{sizeof(T) == 4 ? "test_solve_wide_f32" : "test_solve_wide_f64", nullptr, gpu_solve<T>};
  static const Codelet<Index, In<T>, In<double>, In<double>, Out<double>, Scratch<double>> reduce{
      sizeof(T) == 4 ? "test_reduce_wide_f32" : "test_reduce_wide_f64", nullptr, gpu_reduce<T>};
  Runtime runtime;
  constexpr Index n = cuda::many_columns + 1;
  CHECK(cuda::takes_whole_columns(n, rows_without_waves.mu));
  for (const Index s : {1, 15, 32, 33, 161, 321}) {  // in blocks of 16 rows one, two, three, 11, 21
    CAPTURE(s);
    const Line line = gpu_lines(s)[1];
    const Matrix<double> mu = mixed_modes(line, n), before = random(1, n, 12), after = random(1, n, 13),
                         axis = line.tile();
    const Matrix<T> f =
        Matrix<T>(s, n).fill([](Index i, Index k) { return std::sin(static_cast<double>(i * 3 + k)); });
    const Tile<T> lines = upload(runtime, f);
    const Tile<double> axis_tile = upload(runtime, axis), modes = upload(runtime, mu),
                       before_tile = upload(runtime, before), after_tile = upload(runtime, after);
    const Tile<double> work(runtime, 1, cuda::blocks_scratch(s, n));
    const auto compare = [&](const auto& found, const auto& expected, Index rows, double bound) {
      Worst worst, largest;
      for (Index i = 0; i < rows; ++i)
        for (Index k = 0; k < n; ++k) {
          worst.take_in(Real{found(i, k)} - Real{expected(i, k)});
          largest.take_in(expected(i, k));
        }
      CHECK(largest.value() > 0);
      CHECK(worst.value() <= bound * largest.value());
    };

    Matrix<double> state(state_rows, n);
    cpu::reduce<T>(f.in(), axis.in(), mu.in(), -1.7, state.inout(), Segment::start);
    for (const Index group : {s, 3 * cuda::group_rows(n)}) {
      const Tile<double> shown(runtime, shown_rows, n);
      reduce(group, lines, axis_tile, modes, shown, work);
      runtime.wait();
      compare(download(shown), state, shown_rows, 1e-12);
    }

    Matrix<T> expected = f;
    cpu::solve<T>(expected.inout(), axis.in(), mu.in(), 0.37, before.in(), after.in());
    solve({}, lines, axis_tile, modes, before_tile, after_tile, work);
    runtime.wait();
    compare(download(lines), expected, s, sizeof(T) == 4 ? 1e-7 : 1e-11);
  }
}

TEST_CASE_TEMPLATE("gpu: rings", T, float, double) {
  static const Codelet<Solve, InOut<T>, In<double>, In<double>, In<double>, Scratch<double>> solve{
      sizeof(T) == 4 ? "test_solve_ring_f32" : "test_solve_ring_f64", nullptr, gpu_solve_ring<T>};
  using enum grid::Condition;
  Runtime runtime;
  for (const Index n : {Index{1}, Index{33}, cuda::many_columns + 1})
    for (const Index s : gpu_heights)
      for (const Spacing spacing : {Spacing::equal, Spacing::stretched}) {
        if (n > gpu_widths[2] && (s > 97 || spacing == Spacing::equal)) continue;
        const Line line = make_line(s, periodic, periodic, grid::Centering::node, spacing);
        CAPTURE(n);
        CAPTURE(s);
        const Matrix<double> mu = mixed_modes(line, n), axis = line.tile();
        const Matrix<T> f =
            Matrix<T>(s, n).fill([](Index i, Index k) { return std::sin(static_cast<double>(i * 3 + k)); });
        Matrix<double> response(response_rows, n);
        cpu::respond(axis.in(), mu.in(), response.out());
        const Tile<double> work(runtime, 1, cuda::blocks_scratch(s, n) + Ring::size(n, rows_without_waves));
        const auto solved = [&](bool in_blocks) {
          const Tile<T> lines = upload(runtime, f);
          solve({.in_blocks = in_blocks}, lines, upload(runtime, axis), upload(runtime, mu),
                upload(runtime, response), work);
          runtime.wait();
          return download(lines);
        };
        if (n <= gpu_widths[2]) {
          for (const bool in_blocks : ways) {
            CAPTURE(in_blocks);
            check_solution(solved(in_blocks), line, f, mu, 0.37, zeros(1, n), zeros(1, n), 16 * epsilon);
          }
          continue;
        }
        const Matrix<T> v = solved(false);
        Matrix<T> expected = f;
        solve_as_ring(expected, line, mu, 0.37);
        Worst worst, largest;
        for (Index i = 0; i < s; ++i)
          for (Index k = 0; k < n; ++k) {
            worst.take_in(Real{v(i, k)} - Real{expected(i, k)});
            largest.take_in(expected(i, k));
          }
        CHECK(worst.value() <= (sizeof(T) == 4 ? 1e-7 : 1e-11) * largest.value());
      }
}

TEST_CASE("gpu: responses") {
  static const Codelet<int, In<double>, In<double>, Out<double>> respond{"test_respond", nullptr,
                                                                         gpu_respond};
  Runtime runtime;
  for (const Index n : gpu_widths)
    for (const Index s : {1, 2, 33, 1000})
      for (const Line& line : gpu_lines(s)) {
        const Matrix<double> mu = mixed_modes(line, n), axis = line.tile();
        Matrix<double> expected(response_rows, n);
        cpu::respond(axis.in(), mu.in(), expected.out());
        const Tile<double> axis_tile = upload(runtime, axis), modes = upload(runtime, mu),
                           response(runtime, response_rows, n);
        respond(0, axis_tile, modes, response);
        runtime.wait();
        const Matrix<double> found = download(response);
        CAPTURE(line.name);
        CAPTURE(s);
        for (Index k = 0; k < n; ++k)
          check_near(response_at(found.in(), k), response_at(expected.in(), k), 1e-12);
      }
}

#endif
