// Tridiagonal systems in segments that are joined, against dense matrices in long double.

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "../support/worst.hpp"
#include "tridiagonal_lines.hpp"

#ifdef ASTERISM_WITH_CUDA
#include "../support/tiles.hpp"
#endif

using namespace asterism;
using namespace asterism::poisson;
using namespace asterism::test;

namespace {

Boundary boundary_of(const Line& line, Index first, Index rows, double mu, const Column& f) {
  Boundary b;
  for (Index i = first; i < first + rows; ++i) {
    const grid::AxisRow& row = line.rows[at(i)];
    b.append({row.before, row.after, row.width}, mu, row.width * static_cast<double>(f[at(i)]));
  }
  return b;
}

}  // namespace

TEST_CASE("a segment without rows passes on what lies on its other side") {
  const Boundary b{0.5, -0.25, {{0.6, 0.3, 0.1}, {0.2, 0.7, 0.1}}};
  for (const Boundary& joined : {join(Boundary{}, b), join(b, Boundary{})}) {
    CHECK(joined.y_first == doctest::Approx(b.y_first));
    CHECK(joined.y_last == doctest::Approx(b.y_last));
    check_near(joined.response, b.response, 1e-15);
  }
  const Prefix prefix = eliminate({3.0, 0.5, 0.5}, Boundary{});
  CHECK(prefix.alpha == 3.0);
  CHECK(prefix.beta == 0.5);
  CHECK(prefix.gamma == 0.5);
  const Neighbours neighbours =
      substitute({3.0, 0.5, 0.5}, first_after({3.0, 0.5, 0.5}, 0.0, Response{}.first), 2.0);
  CHECK(neighbours.first == 2.0);
  CHECK(neighbours.before == 4.0);
}

TEST_CASE("joining segments is associative and gives the boundary of the whole") {
  for (const Line& line : all_lines(90)) {
    CAPTURE(line.name);
    const Matrix<double> mu = mixed_modes(line, 6);
    std::mt19937_64 engine(5);
    Column f;
    for (Index i = 0; i < 90; ++i) f.push_back(std::uniform_real_distribution<double>(-1, -0.5)(engine));
    for (Index k = 0; k < 6; ++k) {
      CAPTURE(mu(0, k));
      const auto segment = [&](Index first, Index rows) {
        return boundary_of(line, first, rows, mu(0, k), f);
      };
      const Boundary whole = segment(0, 90), a = segment(0, 1), b = segment(1, 40), c = segment(41, 49);
      for (const Boundary& joined : {join(join(a, b), c), join(a, join(b, c))}) {
        CHECK(joined.y_first == doctest::Approx(whole.y_first).epsilon(1e-13));
        CHECK(joined.y_last == doctest::Approx(whole.y_last).epsilon(1e-13));
        check_near(joined.response, whole.response, 1e-13);
      }
    }
  }
}

TEST_CASE_TEMPLATE("any cut into segments gives the solution of the whole", T, float, double) {
  for (const Index s : {1, 2, 3, 5, 33, 97})
    for (const Line& line : all_lines(s)) {
      const Matrix<double> mu = mixed_modes(line);
      const Matrix<T> f = Matrix<T>(s, columns).fill_random(7);
      if (line.periodic) {
        Matrix<T> v = f;
        solve_as_ring(v, line, mu, 2.5);
        check_solution(v, line, f, mu, 2.5, zeros(1, columns), zeros(1, columns), 16 * epsilon);
      }
      for (const Cuts& cuts : some_partitions(s)) {
        CAPTURE(cuts.rows.size());
        CAPTURE(cuts.forward);
        Matrix<T> v = f;
        solve_in_segments(v, line, systems_without_waves(line, mu), 2.5, cuts);
        check_solution(v, line, f, mu, 2.5, zeros(1, columns), zeros(1, columns), 16 * epsilon);
        CHECK(v.guarded());
      }
    }
}

TEST_CASE("what is constant between Neumann ends, or around a period, is right to almost all digits") {
  for (const Index s : {2, 3, 33, 97})
    for (const Line& line : all_lines(s)) {
      if (!line.singular) continue;
      CAPTURE(line.name);
      CAPTURE(s);
      constexpr double modes[] = {1e-30, 1e-12, 4e-9, 1e-3, 4.0, 1e6};
      const Matrix<double> mu = Matrix<double>(1, 6).fill([&](Index, Index k) { return modes[k]; });
      for (const Cuts& cuts : some_partitions(s)) {
        CAPTURE(cuts.rows.size());
        CAPTURE(cuts.forward);
        Matrix<double> v = Matrix<double>(s, 6).fill([](Index, Index) { return 3; });
        solve_in_segments(v, line, systems_without_waves(line, mu), 0.5, cuts);
        for (Index k = 0; k < 6; ++k) {
          CAPTURE(mu(0, k));
          Worst worst;
          for (Index i = 0; i < s; ++i) worst.take_in(v(i, k) * mu(0, k) / 1.5 + 1);
          CHECK(worst.value() <= 1e-13);
        }
      }
    }
}

TEST_CASE("indefinite systems are solved as long as no pivot vanishes") {
  constexpr double modes[] = {-1e-3, -0.11, -0.7, -3.3, -17.0};
  const Matrix<double> mu = Matrix<double>(1, 5).fill([&](Index, Index k) { return modes[k]; });
  for (const Index s : {1, 2, 3, 5, 33})
    for (const Line& line : all_lines(s)) {
      const Matrix<double> f = random(s, 5, 17);
      for (const Cuts& cuts : some_partitions(s)) {
        CAPTURE(cuts.rows.size());
        CAPTURE(cuts.forward);
        Matrix<double> v = f;
        solve_in_segments(v, line, systems_without_waves(line, mu), 2.5, cuts);
        check_solution(v, line, f, mu, 2.5, zeros(1, 5), zeros(1, 5), 1e-11);
      }
    }
}

TEST_CASE("the smoothest modes of 49,151 rows of float32 in slabs are solved to float32 accuracy") {
  constexpr Index s = 49'151, slab = 512;
  const Line line = make_line(s, grid::Condition::dirichlet, grid::Condition::dirichlet,
                              grid::Centering::node, Spacing::equal);
  const Matrix<double> mu = Matrix<double>(1, 3).fill([](Index, Index k) { return k == 0 ? 0.0 : 4e-9; });
  Matrix<float> f(s, 3);
  f.fill_random(8);
  for (Index i = 0; i < s; ++i)
    f(i, 0) = f(i, 1) = static_cast<float>(std::sin(3.14159265358979 * static_cast<double>(i + 1) / (s + 1)));
  Matrix<float> v = f;
  std::vector<Index> cuts;
  for (Index i = 0; i < s; i += slab) cuts.push_back(i);
  const Index segments = static_cast<Index>(cuts.size());
  solve_in_segments(v, line, systems_without_waves(line, mu), 1e-3, {cuts, (segments + 1) / 2});
  for (Index k = 0; k < 3; ++k) {
    // The algorithm of Thomas.
    Column exact = System{line, mu(0, k)}.right_hand_side(f, k, 1e-3, 0, 0),
           diagonal(at(s), -2 - Real{mu(0, k)});
    for (std::size_t i = 1; i < at(s); ++i) {
      diagonal[i] -= 1 / diagonal[i - 1];
      exact[i] -= exact[i - 1] / diagonal[i - 1];
    }
    exact.back() /= diagonal.back();
    for (std::size_t i = at(s) - 1; i-- > 0;) exact[i] = (exact[i] - exact[i + 1]) / diagonal[i];
    Worst largest;
    for (const Real x : exact) largest.take_in(x);
    Index wrong = 0;
    for (Index i = 0; i < s; ++i) {
      const Real x = exact[at(i)];
      if (!(std::abs(static_cast<Real>(v(i, k)) - x) <= 0x1p-24L * std::abs(x) + 1e-9L * largest.value()))
        ++wrong;
    }
    CHECK(wrong == 0);
  }
}

#ifdef ASTERISM_WITH_CUDA

namespace {

void gpu_interface(Stream stream, const Direction& direction, In<double> shown, In<double> response,
                   In<double> prefix_shown, In<double> prefix_response, In<double> start, In<double> after,
                   Out<double> shown_after, Out<double> response_after, Out<double> first,
                   Out<double> before) {
  const Told segment{shown, response}, prefix{prefix_shown, prefix_response};
  cuda::eliminate(stream, direction, segment, prefix, shown_after);
  cuda::eliminate_response(stream, direction, segment, prefix, response_after);
  cuda::substitute(stream, direction, segment, prefix, start, after, first, before);
}

void gpu_meet(Stream stream, const int&, In<double> mu, In<double> left_shown, In<double> left_response,
              In<double> right_shown, In<double> right_response, In<double> before_start,
              In<double> after_end, Out<double> first, Out<double> last) {
  cuda::meet(stream, mu, {left_shown, left_response}, {right_shown, right_response}, before_start, after_end,
             first, last);
}

void gpu_close(Stream stream, const int&, In<double> left_shown, In<double> left_response,
               In<double> right_shown, In<double> right_response, Out<double> before_start,
               Out<double> after_end) {
  cuda::close(stream, {left_shown, left_response}, {right_shown, right_response}, before_start, after_end);
}

/// As of a segment between others: a mode that is damped, one that hardly is, one that does not get through.
Matrix<double> some_responses(Index n) {
  constexpr double of_mode[3][response_rows] = {{0.6, 0.3, 0.1, 0.2, 0.7, 0.1},
                                                {0.875, 0.0625, 0.0625, 0.125, 0.8125, 0.0625},
                                                {0.5, 0, 0.5, 0, 0.25, 0.75}};
  return Matrix<double>(response_rows, n).fill([&](Index i, Index k) { return of_mode[k % 3][i]; });
}

/// Prefixes, or joined segments, before such a segment; in every fifth column from `none` on there are none.
ToldMatrices some_prefixes(bool joined, Index n, unsigned seed, Index none) {
  ToldMatrices told{random(rows_without_waves.carried_shown(joined), n, seed),
                    zeros(rows_without_waves.carried_response(joined), n)};
  const Matrix<double> responses = some_responses(n);
  for (Index k = 0; k < n; ++k) {
    if (k % 5 == none) {
      for (Index i = 0; i < told.shown.rows(); ++i) told.shown(i, k) = 0;
      if (!joined) told.response(gamma_row, k) = 1;
    } else if (joined) {
      for (Index i = 0; i < response_rows; ++i) told.response(i, k) = responses(i, (k + 1) % n);
    } else {
      told.response(gamma_row, k) = 0.375;
    }
  }
  return told;
}

void check_near(const Matrix<double>& a, const Matrix<double>& b, double bound = 1e-14) {
  Worst worst;
  for (Index i = 0; i < b.rows(); ++i)
    for (Index k = 0; k < b.cols(); ++k) worst.take_in((a(i, k) - b(i, k)) / (1 + std::abs(b(i, k))));
  CHECK(worst.value() <= bound);
}

}  // namespace

TEST_CASE("gpu: the interface system of slabs") {
  static const Codelet<Direction, In<double>, In<double>, In<double>, In<double>, In<double>, In<double>,
                       Out<double>, Out<double>, Out<double>, Out<double>>
      interface {
    "test_interface", nullptr, gpu_interface
  };
  static const Codelet<int, In<double>, In<double>, In<double>, In<double>, In<double>, In<double>,
                       In<double>, Out<double>, Out<double>>
      meet{"test_meet", nullptr, gpu_meet};
  static const Codelet<int, In<double>, In<double>, In<double>, In<double>, Out<double>, Out<double>> close{
      "test_close", nullptr, gpu_close};
  Runtime runtime;
  for (const Index n : gpu_widths)
    for (const bool joined : {false, true}) {
      CAPTURE(n);
      CAPTURE(joined);
      const ToldMatrices segment{random(shown_rows, n, 14), some_responses(n)},
          left = some_prefixes(joined, n, 15, 4), right = some_prefixes(joined, n, 18, 3);
      const Matrix<double> mu = random(1, n, 19), start = random(1, n, 16), end = random(1, n, 17);
      const auto value = [&] { return Tile<double>(runtime, 1, n); };
      const Tile<double> shown = upload(runtime, segment.shown), response = upload(runtime, segment.response),
                         left_shown = upload(runtime, left.shown),
                         left_response = upload(runtime, left.response),
                         right_shown = upload(runtime, right.shown),
                         right_response = upload(runtime, right.response), mu_tile = upload(runtime, mu),
                         start_tile = upload(runtime, start), end_tile = upload(runtime, end);
      const Tile<double> first_tile = value(), last_tile = value();

      for (const Direction direction : {Direction::forward, Direction::backward}) {
        CAPTURE(direction == Direction::forward);
        ToldMatrices after{{left.shown.rows(), n}, {left.response.rows(), n}};
        Matrix<double> first(1, n), before(1, n);
        cpu::eliminate(direction, segment.in(), left.in(), after.shown.out());
        cpu::eliminate_response(direction, segment.in(), left.in(), after.response.out());
        cpu::substitute(direction, segment.in(), left.in(), start.in(), end.in(), first.out(), before.out());
        const Tile<double> shown_after(runtime, left.shown.rows(), n),
            response_after(runtime, left.response.rows(), n);
        interface(direction, shown, response, left_shown, left_response, start_tile, end_tile, shown_after,
                  response_after, first_tile, last_tile);
        runtime.wait();
        check_near(download(shown_after), after.shown);
        check_near(download(response_after), after.response);
        check_near(download(first_tile), first);
        check_near(download(last_tile), before);
      }

      Matrix<double> first(1, n), last(1, n);
      cpu::meet(mu.in(), left.in(), right.in(), start.in(), end.in(), first.out(), last.out());
      meet(0, mu_tile, left_shown, left_response, right_shown, right_response, start_tile, end_tile,
           first_tile, last_tile);
      runtime.wait();
      // Between prefixes the same bits on all machines.
      check_near(download(first_tile), first, joined ? 1e-14 : 0);
      check_near(download(last_tile), last, joined ? 1e-14 : 0);
      if (!joined) continue;
      cpu::close(left.in(), right.in(), first.out(), last.out());
      close(0, left_shown, left_response, right_shown, right_response, first_tile, last_tile);
      runtime.wait();
      check_near(download(first_tile), first);
      check_near(download(last_tile), last);
    }
}

#endif
