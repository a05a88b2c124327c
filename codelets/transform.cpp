#include "transform.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <type_traits>

#include "chirp.hpp"
#include "fftw.hpp"

namespace asterism::kernels {

template <class T>
std::vector<Complex<T>> dst_rotations(Index n) {
  // sin of at most pi/2 throughout: no cancellation, and exactly 0 where the cosine is.
  const auto N = static_cast<long double>(n + 1);
  const auto sin_pi = [](long double x) {
    return static_cast<T>(std::sin(std::numbers::pi_v<long double> * x));
  };
  std::vector<Complex<T>> rotations;
  rotations.reserve(static_cast<std::size_t>((n + 1) / 2 + 1));
  for (Index j = 0; 2 * j <= n + 1; ++j)
    rotations.push_back(
        {sin_pi(static_cast<long double>(n + 1 - 2 * j) / (2 * N)), sin_pi(static_cast<long double>(j) / N)});
  return rotations;
}

template std::vector<Complex<float>> dst_rotations(Index);
template std::vector<Complex<double>> dst_rotations(Index);

namespace cpu {
namespace {

/// What the transforms of lines of n points share that are done in the precision of T.
template <class T>
struct Plan {
  explicit Plan(Index n) : fft(plan_fft<T>(n + 1, 1, FFTW_FORWARD)), rotations(dst_rotations<T>(n)) {}

  typename Fftw<T>::Plan fft;
  std::vector<Complex<T>> rotations;
};

/// (T2) as it stands, in the precision of U.
template <class U, class T>
void direct(InOut<T> lines) {
  const Index N = lines.cols + 1;
  const auto& [fft, rotations] = planned<Plan<U>>(lines.cols);
  const auto [in, out] = fft_lines<U>(N);
  const Complex<U>* const rotation = rotations.data();
  for (Index i = 0; i < lines.rows; ++i) {
    T* const row = lines.row(i);
    in[0] = {0, 0};
    for (Index j = 1; 2 * j <= N; ++j) {
      const FoldedPair<U> pair = dst_fold<U>(row[j - 1], row[N - j - 1], rotation[j]);
      in[j] = pair.at_j;
      in[N - j] = pair.at_mirror;
    }
    Fftw<U>::execute(fft, fftw<U>(in), fftw<U>(out));
    const U* const u = reinterpret_cast<const U*>(out);
    for (Index k = 1; k < N; ++k) row[k - 1] = static_cast<T>(dst_unfold(u[k], u[2 * N - k]));
  }
}

/// (T2) by way of (C1).
void chirped(InOut<double> lines) {
  const ChirpConvolution& convolve = chirp_convolution(lines.cols + 1);
  const Chirp& chirp = convolve.chirp();
  const Index N = chirp.N, M = chirp.M;
  const Chirp::Grid grid = chirp.grid();
  const Complex<double>*const w = chirp.w.data(), *const v = chirp.v.data();
  const auto fft = convolve.lines();
  Complex<double>*const high = fft.in, *const rest = fft.in + M;

  for (Index i = 0; i < lines.rows; ++i) {
    double* const row = lines.row(i);
    int exponent = 0;
    for (Index j = 0; j < lines.cols; ++j) exponent = std::max(exponent, biased_exponent(row[j]));
    const double scale = line_scale(exponent), inverse = 1 / scale;

    const auto put = [&](Index j, Complex<double> a) {
      const HighAndRest split = chirp_split(a, grid.coarse);
      high[j] = split.high;
      rest[j] = split.rest;
    };
    put(0, {0, 0});
    for (Index j = 1; 2 * j <= N; ++j) {
      const FoldedPair<double> pair =
          chirp_fold(row[j - 1] * inverse, row[N - j - 1] * inverse, w[j], v[j], v[j - 1], grid.mirror_sign);
      put(j, pair.at_j);
      put(N - j, pair.at_mirror);
    }
    std::fill(high + N, high + M, Complex<double>{0, 0});
    std::fill(rest + N, rest + M, Complex<double>{0, 0});
    convolve(fft);
    for (Index l = 0; 2 * l < N; ++l) {
      const Complex<double> U = chirp_join({high[l], rest[l]}, w[l], grid.fine);
      if (l > 0) row[2 * l - 1] = U.re * scale;
      if (2 * l < lines.cols) row[2 * l] = U.im * scale;
    }
  }
}

}  // namespace

template <class T>
void plan_dst(Index n) {
  if (!has_large_prime(n + 1))
    planned<Plan<T>>(n);
  else if constexpr (std::is_same_v<T, float>)
    planned<Plan<double>>(n);
  else
    chirp_convolution(n + 1);
}

template <class T>
void dst(InOut<T> lines) {
  if (lines.rows < 1 || lines.cols < 1) return;
  if (!has_large_prime(lines.cols + 1))
    direct<T>(lines);
  else if constexpr (std::is_same_v<T, float>)
    direct<double>(lines);
  else
    chirped(lines);
}

template void plan_dst<float>(Index);
template void plan_dst<double>(Index);
template void dst(InOut<float>);
template void dst(InOut<double>);

}  // namespace cpu
}  // namespace asterism::kernels
