// Sine transforms of hard lengths: those with large primes, by convolution with a chirp.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "../support/lines.hpp"
#include "../support/worst.hpp"
#include "codelets/transforms/lanes/in_lanes.hpp"
#include "codelets/transforms/chirp.hpp"
#include "codelets/transforms/transform.hpp"

using namespace asterism;
using namespace asterism::test;

// Lengths on which FFTs of their own length round two to three times as much as on powers of two.
TEST_CASE_TEMPLATE("sine transform: large primes cost no accuracy", T, float, double) {
  constexpr double unit_roundoff = std::numeric_limits<T>::epsilon() / 2;
  for (const Index N : {37, 101, 127, 257, 509, 998, 1021, 4097, 10007, 32771, 49157}) {
    CAPTURE(N);
    CHECK(transforms::has_large_prime(N));
    // Where there are plans in double precision those round as FFTs do, in a fifth of the time.
    const bool in_lanes = std::is_same_v<T, double> && transforms::cpu::wants_lanes(Transform::dst1, N - 1);
    CHECK(in_lanes == (std::is_same_v<T, double> && N <= 10007));
    const auto x = random_rows<T>(2, N - 1);
    auto y = x;
    dst(y);
    CHECK(error_by_definition(Transform::dst1, y, x) < (in_lanes ? 3.5 : 1.5) * unit_roundoff);
  }
  for (const Index N : {1, 2, 31, 1000, 4096, 49152}) CHECK_FALSE(transforms::has_large_prime(N));
}

TEST_CASE("sine transform: the high part of a chirp convolution is exact") {
  for (const Index N : {37, 1021, 4097, 49157}) {
    CAPTURE(N);
    const transforms::cpu::ChirpConvolution& convolve = transforms::cpu::chirp_convolution(N);
    const transforms::Chirp& chirp = convolve.chirp();
    const auto lines = convolve.lines();
    const auto noise = random_rows<double>(2, 2 * N);
    for (Index j = 0; j < 2 * chirp.M; ++j) lines.in[j] = {0, 0};
    for (Index j = 0; j < N; ++j)  // as large as (C2) allows
      lines.in[j] = transforms::to_grid(
          transforms::Complex<double>{2 * noise(0, 2 * j), 2 * noise(0, 2 * j + 1)}, chirp.grid().coarse);
    convolve(lines);
    Worst farthest;  // from the grid, in units of its spacing
    for (Index k = 0; 2 * k < N; ++k)
      for (const double v : {lines.in[k].re, lines.in[k].im}) {
        const double in_units = std::ldexp(v, 2 * chirp.bits);
        farthest.take_in(in_units - std::nearbyint(in_units));
      }
    CHECK(farthest.value() < 0.25);
  }
}

TEST_CASE_TEMPLATE("sine transform: odd lines of hard lengths", T, float, double) {
  static constexpr Index n = 1020;
  const auto transformed = [](auto value) {
    LineArray<T> line({.count = 1, .length = n, .width = 1});
    line.for_each([&](Index, Index j, T& x) { x = static_cast<T>(value(j)); });
    const LineArray<T> before = line;
    dst(line);
    return std::pair{line, before};
  };
  const auto [zeros, none] = transformed([](Index) { return 0.0; });
  for (Index k = 0; k < n; ++k) CHECK(zeros(0, k) == 0);
  for (const double factor : {1e-30, 1.0, 1e30}) {  // one huge number among small ones
    const auto [y, x] = transformed([factor](Index j) { return j == 7 ? 1e6 * factor : factor; });
    CHECK(error_by_definition(Transform::dst1, y, x) < tolerance<T>(n));
  }
  const auto [broken, nan] = transformed([](Index j) { return j == 3 ? std::nan("") : 1.0; });
  CHECK(std::isnan(broken(0, 0)));
  const double least = std::numeric_limits<T>::denorm_min();
  const auto [tiny, denormal] = transformed([least](Index) { return least; });
  CHECK(std::isfinite(tiny(0, 0)));
}
