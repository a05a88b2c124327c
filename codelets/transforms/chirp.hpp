/// \file
/// Sine transforms of lengths with a large prime factor, in double precision.
///
/// FFTs of such lengths (Rader's and Bluestein's algorithms) round two to three times as much as those of
/// smooth lengths. What follows is Bluestein's, arranged so that the FFTs' rounding does not matter. With w_j
/// = exp(-i pi j^2 / N), the DFT of (T2), see transform.hpp, is
///
///     U_k = w_k V_k,   V_k = sum_{j=0}^{N-1} a_j c_{k-j},   a_j = u_j w_j,   c_m = conj(w_m), (C1)
///
/// a convolution, cyclic of any length M that is free of large primes and at least N + N/2 + 1, because no
/// more than the first half of U is wanted. The folding of (T2) and w_j together are, with v_j = exp(-i pi
/// (j^2 + j) / N),
///
///     a_j = i e_j w_j - s_j v_j,   a_{N-j} = (-1)^N (s_j v_{j-1} - i e_j w_j)   for j <= N/2. (C2)
///
/// Both factors are split into a multiple of 2^-b, the high part, and a small rest. The high parts'
/// convolution is a multiple of 2^-2b: computed by FFT with an error below half of that, and rounded, it is
/// exact. In
///
///     a * c = a_high * c_high + (a_high * c_low + a_low * c), (C3)
///
/// the sum in parentheses is smaller by a factor of 2^b, and so is its error.
///
/// The choice of b. Let the line be scaled by a power of two such that |x_j| < 2; then |a_j| < 4 and, in
/// 2-norms, |a| <= 4 sqrt(N), |c| <= sqrt(M). One FFT has the relative error phi <= 7 log2(M) u, u = 2^-53
/// (Higham, Accuracy and Stability of Numerical Algorithms, theorem 24.2), so that before the inverse FFT
/// there is an error that contributes at most (2 phi + 3u) |a| |c| to an element (Cauchy-Schwarz), and the
/// inverse FFT adds phi max|DFT(c)| |a|, where max|DFT(c)| <= 2 sqrt(M): a frequency has at most two points
/// of stationary phase, each worth less than 1.2 sqrt(N). Together less than 4 sqrt(N M) 32 log2(M) u. This
/// is to be at most a quarter of 2^-2b.
#pragma once

#include <bit>
#include <cmath>
#include <vector>

#include "fold.hpp"

struct fftw_plan_s;

namespace asterism::transforms {

/// The M of (C1): 2^p times 1, 3, 5, 7, 9 or 15.
Index convolution_length(Index N);

/// The numbers of (C1) to (C3) that depend on N alone.
struct Chirp {
  explicit Chirp(Index N);

  Index N, M;
  int bits;                                ///< b
  std::vector<Complex<double>> w, v;       ///< for j = 0 ... N/2
  std::vector<Complex<double>> high, low;  ///< c_high, c_low: M numbers each, c_m of m < 0 at M + m

  /// What these functions want of it in a kernel.
  struct Grid {
    double coarse, fine;  ///< round to multiples of 2^-b and 2^-2b, see to_grid()
    double mirror_sign;   ///< (-1)^N
  };
  [[nodiscard]] Grid grid() const {
    return {std::ldexp(1.5, 52 - bits), std::ldexp(1.5, 52 - 2 * bits), N % 2 == 0 ? 1.0 : -1.0};
  }
};

/// A number and its rest, or two lines of them.
struct HighAndRest {
  Complex<double> high, rest;
};

/// The scale of a line: exponents of its numbers are combined by max().
ASTERISM_HOST_DEVICE inline int biased_exponent(double x) {
  return static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 52 & 2047);
}

/// The power of two that a line whose largest biased exponent is `exponent` is divided by. It and its inverse
/// are normal numbers, even for lines of zeros and for lines with a number that is not finite.
ASTERISM_HOST_DEVICE inline double line_scale(int exponent) {
  const int clamped = exponent < 1 ? 1 : exponent > 2045 ? 2045 : exponent;
  return std::bit_cast<double>(static_cast<std::uint64_t>(clamped) << 52);
}

/// The nearest multiple of 2^-p to an x below 2^(51-p), where big = 1.5 2^(52-p).
ASTERISM_HOST_DEVICE inline double to_grid(double x, double big) { return (x + big) - big; }
ASTERISM_HOST_DEVICE inline Complex<double> to_grid(Complex<double> z, double big) {
  return {to_grid(z.re, big), to_grid(z.im, big)};
}

/// (C2)
/// @param x,mirror x_j and x_{N-j}, scaled
/// @param w,v,v_before w_j, v_j and v_{j-1}
ASTERISM_HOST_DEVICE inline Pair<Complex<double>> chirp_fold(double x, double mirror, Complex<double> w,
                                                             Complex<double> v, Complex<double> v_before,
                                                             double mirror_sign) {
  const double e = x - mirror, s = x + mirror, f = mirror_sign * s, g = mirror_sign * e;
  return {{-e * w.im - s * v.re, e * w.re - s * v.im},
          {f * v_before.re + g * w.im, f * v_before.im - g * w.re}};
}

ASTERISM_HOST_DEVICE inline HighAndRest chirp_split(Complex<double> a, double coarse) {
  const Complex<double> high = to_grid(a, coarse);
  return {high, a - high};
}

/// (C3) in the space of the DFTs.
ASTERISM_HOST_DEVICE inline HighAndRest chirp_multiply(HighAndRest a, Complex<double> c_high,
                                                       Complex<double> c_low) {
  return {a.high * c_high, a.high * c_low + a.rest * (c_high + c_low)};
}

/// U_k, from the two parts of V_k as the inverse FFTs leave them.
ASTERISM_HOST_DEVICE inline Complex<double> chirp_join(HighAndRest V, Complex<double> w, double fine) {
  return (to_grid(V.high, fine) + V.rest) * w;
}

namespace cpu {

/// Convolutions with the chirp of one length, by FFTW. Made by chirp_convolution() only, which keeps planners
/// apart, and never destroyed.
class ChirpConvolution {
 public:
  explicit ChirpConvolution(Index N);

  /// The tables, but with the DFTs of c_high and c_low, over M, in their place.
  [[nodiscard]] const Chirp& chirp() const { return chirp_; }

  /// Memory of the calling thread, until it wants other lines: 2M numbers each, perhaps the same ones.
  struct Lines {
    Complex<double>*in, *out;
  };
  [[nodiscard]] Lines lines() const;

  /// a_high and, from M on, its rest, both 0 from N on, give way in `in` to the two parts of V, unrounded.
  void operator()(Lines lines) const;

 private:
  Chirp chirp_;
  fftw_plan_s *forward_, *backward_;
};

/// The shared one for lines of N - 1 points. Thread-safe; lives until the process ends.
const ChirpConvolution& chirp_convolution(Index N);

}  // namespace cpu
}  // namespace asterism::transforms
