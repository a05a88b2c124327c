// Tridiagonal systems whose solutions are waves (mu < 0), whole and in segments, against dense matrices in long double.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "../support/skip.hpp"
#include "../support/worst.hpp"
#include "tridiagonal_lines.hpp"

#ifdef ASTERISM_WITH_CUDA
#include "../support/tiles.hpp"
#endif

using namespace asterism;
using namespace asterism::poisson;
using namespace asterism::test;

namespace {

/// mu for which q rows between values of zero are singular, where spacings are 1.
double half_wave_in(Index q) {
  const double s = 2 * std::sin(std::numbers::pi / (2.0 * static_cast<double>(q + 1)));
  return -s * s;
}

/// Waves of all lengths, those that do not fit onto the grid and those of which a half fits into some segment, beside modes
/// that decay.
Matrix<double> waves(Index n) {
  const double modes[] = {-1e-9,           -1e-4,           -0.03, half_wave_in(7), half_wave_in(4), half_wave_in(2),
                          half_wave_in(1), half_wave_in(31), -3.0,  -3.999,          -4.0,            -4.7,
                          -77.0,           1e-3,            4.0};
  return Matrix<double>(1, n).fill([&](Index, Index k) { return modes[static_cast<std::size_t>(k) % std::size(modes)]; });
}

/// @param detuned what the impedance is larger by than (H4)
Systems systems_of(const Line& line, const Matrix<double>& modes, double detuned = 1) {
  const InterfaceRows& rows = rows_with_waves;
  const Index n = modes.cols();
  const Matrix<double> response = response_of_none(rows, line, n);
  const auto impedance = [&](Index k) {
    return detuned * poisson::impedance(modes(0, k), grid::largest_link(line.rows));
  };
  Systems systems{rows,
                  zeros(rows.mu, n),
                  zeros(rows.beside, n),
                  zeros(rows.beside, n),
                  zeros(rows.carried_shown(line.periodic), n),
                  response,
                  response};
  systems.mu.fill([&](Index row, Index k) { return row == mu_row ? modes(0, k) : impedance(k); });
  if (line.periodic) return systems;
  for (Index k = 0; k < n; ++k) {
    if (impedance(k) == 0) continue;
    const double lower_link = line.rows.front().before, upper_link = line.rows.back().after;
    const Beyond lower = lower_link == 0 ? beyond_nothing() : beyond_value(0, impedance(k) / lower_link),
                 upper = upper_link == 0 ? beyond_nothing() : beyond_value(0, 0);
    put(systems.before_axis.out(), k, lower);
    put(systems.after_axis.out(), k, upper);
    put(systems.lower_response.out(), 0, k, lower.reflection);
    put(systems.upper_response.out(), 0, k, upper.reflection);
  }
  return systems;
}

Real largest(const Column& v) {
  Worst most;
  for (const Real x : v) most.take_in(x);
  return most.value();
}

/// Checks every column: the residual is `rounding` of the largest terms, and the error what that implies.
template <class T>
void check_waves(const Matrix<T>& solved, const Line& line, const Matrix<T>& f, const Matrix<double>& modes, double scale,
                 double rounding) {
  CAPTURE(line.name);
  CAPTURE(line.size());
  if (sizeof(T) == 4) rounding += 0x1.01p-24;
  for (Index k = 0; k < f.cols(); ++k) {
    CAPTURE(modes(0, k));
    const System system{line, modes(0, k)};
    const Column rhs = system.right_hand_side(f, k, scale, 0, 0);
    Column v, terms;
    for (Index i = 0; i < line.size(); ++i) v.push_back(static_cast<Real>(solved(i, k)));
    const Real most = largest(v);
    for (Index i = 0; i < line.size(); ++i) {
      const grid::AxisRow& row = line.rows[at(i)];
      terms.push_back((2 * (row.before + row.after) + row.width * std::abs(modes(0, k))) * most + std::abs(rhs[at(i)]));
    }
    const Real allowed = Real{rounding} * largest(terms);
    Worst residual;
    for (Index i = 0; i < line.size(); ++i) residual.take_in((system.apply(v, i) - rhs[at(i)]) / allowed);
    CHECK(residual.value() <= 1.0);

    if (line.size() > largest_dense || k > 15) continue;
    const Dense inverse = inverse_of(system);
    Worst error;
    for (Index i = 0; i < line.size(); ++i) {
      Real exact = 0, bound = 0;
      for (Index j = 0; j < line.size(); ++j) {
        exact += inverse[at(i)][at(j)] * rhs[at(j)];
        bound += std::abs(inverse[at(i)][at(j)]) * allowed;
      }
      error.take_in((v[at(i)] - exact) / bound);
    }
    CHECK(error.value() <= 1.0);
  }
}

/// Of segments that are joined: gathered over a segment's rows, like the root of their number, it comes out at its ends.
double rounding_of(Index rows) { return std::max(8.0, 1.5 * std::sqrt(static_cast<double>(rows))) * epsilon; }

/// How many eigenvalues of a line that is not periodic are below -mu: the negative pivots of its elimination.
Index eigenvalues_below(const Line& line, double mu) {
  const System system{line, mu};
  Index count = 0;
  Real pivot = 1;
  for (Index i = 0; i < line.size(); ++i) {
    const Real link = line.rows[at(i)].before;
    pivot = -system.diagonal(i) - (i == 0 ? 0 : link * link / pivot);
    if (pivot < 0) ++count;
  }
  return count;
}

/// Whether mu is within 1e-6 of a system that is singular.
bool is_singular(const Line& line, double mu) {
  if (!line.periodic) return eigenvalues_below(line, mu * (1 - 1e-6)) != eigenvalues_below(line, mu * (1 + 1e-6));
  for (Index q = 0; q < line.size(); ++q) {
    const double s = 2 * std::sin(std::numbers::pi * static_cast<double>(q) / static_cast<double>(line.size()));
    if (std::abs(mu + s * s) < 1e-6 * -mu) return true;
  }
  return false;
}

/// The same modes, but for those for which the line is singular.
Matrix<double> regular(const Line& line, Matrix<double> modes) {
  for (Index k = 0; k < modes.cols(); ++k)
    while (modes(0, k) < 0 && is_singular(line, modes(0, k))) modes(0, k) *= 1.0123;
  return modes;
}

}  // namespace

TEST_CASE_TEMPLATE("waves are solved in segments of any heights as in one", T, float, double) {
  for (const Index s : {1, 2, 3, 5, 31, 33, 97, 300})
    for (const Line& line : all_lines(s)) {
      if (left_out_when_sanitized(s > 33)) break;
      const double rounding = rounding_of(s);
      const Index n = s > largest_dense ? 33 : 15;
      const Matrix<double> modes = regular(line, waves(n));
      const Matrix<T> f = Matrix<T>(s, n).fill_random(3);
      if (line.periodic) {
        Matrix<T> v = f;
        solve_as_ring(v, line, systems_of(line, modes).mu, 1.7);
        check_waves(v, line, f, modes, 1.7, rounding);
      }
      for (const Cuts& cuts : some_partitions(s))
        for (const double detuned : {1.0, 4.0, 0.25}) {
          if (detuned != 1 && (s > 40 || left_out_when_sanitized(s > 5))) continue;
          CAPTURE(cuts.rows.size());
          CAPTURE(cuts.forward);
          Matrix<T> v = f;
          solve_in_segments(v, line, systems_of(line, modes, detuned), 1.7, cuts);
          check_waves(v, line, f, modes, 1.7, std::max(detuned, 1 / detuned) * rounding);
          CHECK(v.guarded());
        }
    }
}

TEST_CASE("segments near a resonance of their own fit each other") {
  constexpr Index s = 29, cut = 15;
  for (const Line& line : all_lines(s)) {
    // Half waves in the segments and quarter waves, between ends that are held or not, and all between.
    const Matrix<double> modes = regular(line, Matrix<double>(1, 400).fill([](Index, Index k) {
      return half_wave_in(2 * s) * std::pow(1.02, static_cast<double>(k));
    }));
    const Matrix<double> f = random(s, modes.cols(), 7);
    for (const Index forward : {0, 1, 2}) {
      CAPTURE(forward);
      Matrix<double> v = f;
      solve_in_segments(v, line, systems_of(line, modes), 1.7, {{0, cut}, forward});
      check_waves(v, line, f, modes, 1.7, 8 * epsilon);
    }
  }
}

TEST_CASE("what a segment scatters neither gains nor loses") {
  for (const Line& line : all_lines(200)) {
    CAPTURE(line.name);
    for (const double mu : {-1e-6, -0.1, half_wave_in(4), -3.99, -4.1, -50.0}) {
      CAPTURE(mu);
      Emitter e;
      for (Index i = 1; i + 1 < line.size(); ++i) {
        const grid::AxisRow& row = line.rows[at(i)];
        e.append(rung({row.before, row.after, row.width}, mu, std::sqrt(-mu), 0.0));
      }
      const auto norm2 = [](const Wave& a) { return a.re * a.re + a.im * a.im; };
      const Scattering& s = e.scattering;
      CHECK(norm2(s.before) + norm2(s.through) == doctest::Approx(1).epsilon(1e-11));
      CHECK(norm2(s.after) + norm2(s.through) == doctest::Approx(1).epsilon(1e-11));
    }
  }
}

TEST_CASE("rows that are appended in several calls make the same segment") {
  const Line line = make_line(40, grid::Condition::dirichlet, grid::Condition::neumann, grid::Centering::cell,
                              Spacing::stretched);
  const Systems systems = systems_of(line, waves(33));
  const Matrix<double> axis = line.tile();
  const Matrix<double> f = random(40, 33, 8);
  Matrix<double> whole(wave_state_rows, 33), parts(wave_state_rows, 33);
  cpu::reduce<double>(f.in(), axis.in(), systems.mu.in(), 0.5, whole.inout(), Segment::start);
  for (const Index first : {0, 16, 32})
    cpu::reduce<double>(f.in(first, std::min<Index>(16, 40 - first)), axis.in(first, std::min<Index>(16, 40 - first)),
                        systems.mu.in(), 0.5, parts.inout(), first == 0 ? Segment::start : Segment::append);
  for (Index k = 0; k < 33; ++k)
    for (Index row = 0; row < (systems.mu(mu_row, k) < 0 ? wave_shown_rows : Index{shown_rows}); ++row)
      CHECK(parts(row, k) == whole(row, k));
}

#ifdef ASTERISM_WITH_CUDA

namespace {

template <class T>
void gpu_solve_waves(Stream stream, const double& scale, InOut<T> lines, In<double> axis, In<double> mu, In<double> before,
               In<double> after, Scratch<double> work) {
  cuda::solve<T>(stream, lines, axis, mu, scale, before, after, work.data);
}

template <class T>
void gpu_solve_ring_of_waves(Stream stream, const double& scale, InOut<T> lines, In<double> axis,
                             In<double> mu, In<double> response, Scratch<double> work) {
  cuda::solve_ring<T>(stream, lines, axis, mu, scale, response, work.data);
}

/// What a segment of rows shows and how it responds, in groups of two blocks.
void gpu_show(Stream stream, const double& scale, In<double> lines, In<double> axis, In<double> mu, Out<double> shown,
              Out<double> response, Scratch<double> work) {
  const cuda::Blocks blocks{work.data, lines.rows, lines.cols};
  constexpr Index group = 2 * cuda::block_rows;
  for (Index i = 0; i < lines.rows; i += group) {
    const Index rows = std::min(group, lines.rows - i);
    cuda::reduce_blocks<double>(stream, {lines.row(i), rows, lines.cols, lines.ld}, i,
                                {axis.row(i), rows, axis.cols, axis.ld}, mu, scale, blocks);
  }
  cuda::join_blocks(stream, mu, blocks, shown);
  cuda::respond(stream, axis, mu, response);
}

}  // namespace

TEST_CASE_TEMPLATE("gpu: waves beside modes that decay", T, float, double) {
  static const Codelet<double, InOut<T>, In<double>, In<double>, In<double>, In<double>, Scratch<double>> solve{
      sizeof(T) == 4 ? "test_solve_waves_f32" : "test_solve_waves_f64", nullptr, gpu_solve_waves<T>};
  static const Codelet<double, InOut<T>, In<double>, In<double>, In<double>, Scratch<double>> solve_ring{
      sizeof(T) == 4 ? "test_solve_ring_waves_f32" : "test_solve_ring_waves_f64", nullptr,
      gpu_solve_ring_of_waves<T>};
  Runtime runtime;
  for (const Index s : {1, 2, 31, 32, 33, 97, 519, 3000})
    for (const Line& line : all_lines(s)) {
      if (line.periodic && s > 1000)
        continue;  // what is gathered around the ring comes out at one of its rows
      for (const Index n : gpu_widths) {
        if (s > 1000 && n != gpu_widths[1]) continue;
        const Matrix<double> modes = regular(line, waves(n));
        const Systems systems = systems_of(line, modes);
        const Matrix<T> f = Matrix<T>(s, n).fill_random(11);
        const Tile<T> lines = upload(runtime, f);
        const Tile<double> axis = upload(runtime, line.tile()), mu = upload(runtime, systems.mu),
                           before = upload(runtime, systems.before_axis),
                           after = upload(runtime, systems.after_axis),
                           work(runtime, 1,
                                cuda::blocks_scratch(s, n, rows_with_waves) + Ring::size(n, rows_with_waves));
        if (line.periodic) {
          Matrix<double> response(rows_with_waves.response, n);
          cpu::respond(line.tile().in(), systems.mu.in(), response.out());
          solve_ring(0.37, lines, axis, mu, upload(runtime, response), work);
        } else {
          solve(0.37, lines, axis, mu, before, after, work);
        }
        runtime.wait();
        check_waves(download(lines), line, f, modes, 0.37, line.periodic ? 2 * rounding_of(s) : 16 * epsilon);
      }
    }
}

TEST_CASE("gpu: what segments of waves show, and how they respond") {
  static const Codelet<double, In<double>, In<double>, In<double>, Out<double>, Out<double>, Scratch<double>> show{
      "test_show_waves", nullptr, gpu_show};
  Runtime runtime;
  for (const Index s : {1, 33, 200, 1000})
    for (const Line& line : all_lines(s))
      for (const Index n : gpu_widths) {
        const Systems systems = systems_of(line, waves(n));
        const Matrix<double> f = random(s, n, 5), axis = line.tile();
        Matrix<double> state(wave_state_rows, n), expected(wave_response_rows, n);
        cpu::reduce<double>(f.in(), axis.in(), systems.mu.in(), 0.37, state.inout(), Segment::start);
        cpu::respond(axis.in(), systems.mu.in(), expected.out());
        const Tile<double> lines = upload(runtime, f), axis_tile = upload(runtime, axis),
                           mu = upload(runtime, systems.mu), shown(runtime, wave_shown_rows, n),
                           response(runtime, wave_response_rows, n),
                           work(runtime, 1, cuda::blocks_scratch(s, n, rows_with_waves));
        show(0.37, lines, axis_tile, mu, shown, response, work);
        runtime.wait();
        const Matrix<double> found = download(shown), responds = download(response);
        CAPTURE(line.name);
        CAPTURE(s);
        for (Index k = 0; k < n; ++k) {
          CAPTURE(systems.mu(mu_row, k));
          const bool wave = systems.mu(impedance_row, k) != 0;
          Worst size;
          size.take_in(1e-12);
          for (Index row = 0; row < (wave ? wave_shown_rows : Index{shown_rows}); ++row)
            size.take_in(state(row, k));
          for (Index row = 0; row < (wave ? wave_shown_rows : Index{shown_rows}); ++row)
            CHECK(std::abs(found(row, k) - state(row, k)) <= 1e-9 * size.value());
          CHECK(responds(wave_response_rows - 1, k) == expected(wave_response_rows - 1, k));
          for (Index row = 0; row < wave_response_rows - 1; ++row)
            CHECK(std::abs(responds(row, k) - expected(row, k)) <= 1e-9);
        }
      }
}

#endif
