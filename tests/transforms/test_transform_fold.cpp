// Folding and unfolding around a DFT, which is here the sum that defines it.

#include <doctest/doctest.h>

#include <complex>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "../support/lines.hpp"
#include "codelets/transforms/fold.hpp"

using namespace asterism;
using namespace asterism::test;

namespace {

/// What the CUDA kernels do, with a slow DFT.
template <Transform kind>
std::vector<double> by_folding(const std::vector<double>& x) {
  using transforms::FftKind;
  using Number = std::complex<long double>;
  const auto n = static_cast<Index>(x.size()), N = transforms::fft_length(kind, n);
  const Index numbers = transforms::fft_numbers(kind, n);
  const auto at = [](const auto& table, Index i) { return table[static_cast<std::size_t>(i)]; };
  const auto rotation = [&](const auto& table, Index p) {
    return table.empty() ? transforms::Complex<double>{} : at(table, p);
  };

  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> sequence(static_cast<std::size_t>(2 * numbers),
                               nan);  // parts of complex numbers, or reals
  const auto put = [&](Index i, auto value) {
    if (i == transforms::nowhere) return;
    if constexpr (transforms::folds_to_real(kind)) {
      sequence.at(static_cast<std::size_t>(i)) = value;
    } else {
      sequence.at(static_cast<std::size_t>(2 * i)) = value.re;
      sequence.at(static_cast<std::size_t>(2 * i + 1)) = value.im;
    }
  };
  const auto fold_rotations = transforms::fold_rotations<double>(kind, n);
  for (Index p = 0; p < transforms::fold_pairs(kind, n); ++p) {
    const auto from = transforms::fold_from(kind, n, p), to = transforms::fold_to(kind, n, p);
    const auto point = [&](Index i) {
      return i == transforms::nowhere ? 0 : x.at(static_cast<std::size_t>(i));
    };
    const auto pair = transforms::fold<kind, double>(n, p, point(from.first), point(from.second),
                                                     rotation(fold_rotations, p));
    put(to.first, pair.first);
    put(to.second, pair.second);
  }

  const auto unit = [&](Index m) {
    return std::polar(1.0L, 2 * std::numbers::pi_v<long double> * static_cast<long double>(m % N) /
                                static_cast<long double>(N));
  };
  std::vector<double> spectrum(sequence.size(), nan);
  const auto complex_at = [&](Index i) { return Number(at(sequence, 2 * i), at(sequence, 2 * i + 1)); };
  if (transforms::fft_kind(kind) == FftKind::to_real) {
    for (Index j = 0; j < N; ++j) {
      long double sum = at(sequence, 0);  // whose imaginary part does not count
      for (Index k = 1; 2 * k <= N; ++k)
        sum += (2 * k == N ? 1.0L : 2.0L) * (complex_at(k) * unit(j * k)).real();
      spectrum[static_cast<std::size_t>(j)] = static_cast<double>(sum);
    }
  } else {
    for (Index k = 0; k < numbers; ++k) {
      Number sum = 0;
      for (Index j = 0; j < N; ++j)
        sum += (transforms::folds_to_real(kind) ? Number(at(sequence, j)) : complex_at(j)) *
               std::conj(unit(j * k));
      if (N == 1 && transforms::folds_to_real(kind)) sum.imag(at(sequence, 1));  // no FFT then
      spectrum[static_cast<std::size_t>(2 * k)] = static_cast<double>(sum.real());
      spectrum[static_cast<std::size_t>(2 * k + 1)] = static_cast<double>(sum.imag());
    }
  }

  std::vector<double> y(x.size(), nan);
  const auto unfold_rotations = transforms::unfold_rotations<double>(kind, n);
  for (Index p = 0; p < transforms::unfold_pairs(kind, n); ++p) {
    const auto from = transforms::unfold_from(kind, n, p), to = transforms::unfold_to(kind, n, p);
    const auto number = [&](Index i) {
      if constexpr (transforms::unfolds_real(kind)) {
        return i == transforms::nowhere ? 0 : spectrum.at(static_cast<std::size_t>(i));
      } else {
        if (i == transforms::nowhere) return transforms::Complex<double>{0, 0};
        return transforms::Complex<double>{spectrum.at(static_cast<std::size_t>(2 * i)),
                                           spectrum.at(static_cast<std::size_t>(2 * i + 1))};
      }
    };
    const auto pair =
        transforms::unfold<kind>(number(from.first), number(from.second), rotation(unfold_rotations, p),
                                 rotation(unfold_rotations, p + 1));
    if (to.first != transforms::nowhere) y.at(static_cast<std::size_t>(to.first)) = pair.first;
    if (to.second != transforms::nowhere) y.at(static_cast<std::size_t>(to.second)) = pair.second;
  }
  return y;
}

template <Transform kind>
void check_folding() {
  CAPTURE(std::string(transforms::name(kind)));
  for (Index n = kind == Transform::dct1 ? 2 : 1; n < 40; ++n) {
    CAPTURE(n);
    const auto lines = random_rows<double>(1, n);
    const std::vector<double> x(lines.data.begin() + LineArray<double>::margin,
                                lines.data.begin() + LineArray<double>::margin + n);
    const auto y = by_folding<kind>(x);
    const Definition definition(kind, n);
    const std::vector<long double> points = points_of(lines, 0);
    RelativeError error;
    for (Index k = 0; k < n; ++k)
      error.add(static_cast<long double>(y[static_cast<std::size_t>(k)]), definition.output(points, k));
    CHECK(error.value() < 2e-15);
  }
}

}  // namespace

TEST_CASE("transforms: folding, a DFT and unfolding make them") {
  check_folding<Transform::dst1>();
  check_folding<Transform::dst2>();
  check_folding<Transform::dst3>();
  check_folding<Transform::dst4>();
  check_folding<Transform::dct1>();
  check_folding<Transform::dct2>();
  check_folding<Transform::dct3>();
  check_folding<Transform::dct4>();
  check_folding<Transform::dft>();
  check_folding<Transform::idft>();
}
