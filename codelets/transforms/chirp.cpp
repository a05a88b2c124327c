#include "chirp.hpp"

#include <algorithm>
#include <numbers>

#include "fftw.hpp"

namespace asterism::transforms {
namespace {

/// sin(pi p / q) for p >= 0, from an argument of at most pi/2.
long double sin_pi(Index p, Index q) {
  p %= 2 * q;
  const bool negative = p > q;
  if (negative) p -= q;
  p = std::min(p, q - p);
  const long double sine =
      std::sin(std::numbers::pi_v<long double> * static_cast<long double>(p) / static_cast<long double>(q));
  return negative ? -sine : sine;
}

struct Unit {
  long double re, im;
};

/// exp(-i pi p / N) for 0 <= p
Unit rotation(Index p, Index N) { return {sin_pi(N + 2 * p, 2 * N), -sin_pi(p, N)}; }

/// The largest b for which 4 sqrt(N M) 32 log2(M) u <= 2^-2b / 4.
int split_bits(Index N, Index M) {
  const auto n = static_cast<double>(N), m = static_cast<double>(M);
  return static_cast<int>(44 - std::log2(std::sqrt(n * m) * std::log2(m))) / 2;
}

}  // namespace

Index convolution_length(Index N) {
  const Index least = N + N / 2 + 1;
  Index shortest = 0;
  for (const Index odd : {1, 3, 5, 7, 9, 15}) {
    const auto power = std::bit_ceil(static_cast<std::uint64_t>((least + odd - 1) / odd));
    const Index length = odd * static_cast<Index>(power);
    if (shortest == 0 || length < shortest) shortest = length;
  }
  return shortest;
}

Chirp::Chirp(Index N_) : N(N_), M(convolution_length(N)), bits(split_bits(N, M)) {
  const auto half = static_cast<std::size_t>(N / 2 + 1), size = static_cast<std::size_t>(M);
  const double coarse = grid().coarse, mirror_sign = grid().mirror_sign;
  w.resize(half);
  v.resize(half);
  high.assign(size, {0, 0});
  low.assign(size, {0, 0});
  const auto narrow = [](Unit z) {
    return Complex<double>{static_cast<double>(z.re), static_cast<double>(z.im)};
  };
  const auto put = [&](std::size_t at, Unit c) {
    high[at] = to_grid(narrow(c), coarse);
    low[at] = narrow({c.re - high[at].re, c.im - high[at].im});
  };
  Index square = 0, product = 0;  // j^2 and j^2 + j modulo 2N
  for (std::size_t j = 0; j < half; ++j) {
    const Unit exact = rotation(square, N);
    w[j] = narrow(exact);
    v[j] = narrow(rotation(product, N));
    const Unit c{exact.re, -exact.im}, mirror{mirror_sign * c.re, mirror_sign * c.im};
    put(j, c);
    if (j > 0) {
      put(size - j, c);
      put(size - static_cast<std::size_t>(N) + j, mirror);
    }
    const auto J = static_cast<Index>(j);
    square = (square + 2 * J + 1) % (2 * N);
    product = (product + 2 * J + 2) % (2 * N);
  }
}

namespace cpu {

ChirpConvolution::ChirpConvolution(Index N)
    : chirp_(N),
      forward_(plan_fft<double>(chirp_.M, 2, FFTW_FORWARD)),
      backward_(plan_fft<double>(chirp_.M, 2, FFTW_BACKWARD)) {
  const auto [in, out] = lines();
  std::ranges::copy(chirp_.high, in);
  std::ranges::copy(chirp_.low, in + chirp_.M);
  fftw_execute_dft(forward_, fftw(in), fftw(out));
  const auto over_M = [M = static_cast<double>(chirp_.M)](Complex<double> z) {
    return Complex<double>{z.re / M, z.im / M};
  };
  std::transform(out, out + chirp_.M, chirp_.high.begin(), over_M);
  std::transform(out + chirp_.M, out + 2 * chirp_.M, chirp_.low.begin(), over_M);
}

ChirpConvolution::Lines ChirpConvolution::lines() const {
  const auto [in, out] = fft_lines<Complex<double>>(2 * chirp_.M);
  return {in, out};
}

void ChirpConvolution::operator()(Lines lines) const {
  fftw_execute_dft(forward_, fftw(lines.in), fftw(lines.out));
  Complex<double>*const high = lines.out, *const rest = lines.out + chirp_.M;
  for (Index k = 0; k < chirp_.M; ++k) {
    const auto at = static_cast<std::size_t>(k);
    const HighAndRest product = chirp_multiply({high[k], rest[k]}, chirp_.high[at], chirp_.low[at]);
    high[k] = product.high;
    rest[k] = product.rest;
  }
  fftw_execute_dft(backward_, fftw(lines.out), fftw(lines.in));
}

const ChirpConvolution& chirp_convolution(Index N) { return planned<ChirpConvolution>(N); }

}  // namespace cpu
}  // namespace asterism::transforms
