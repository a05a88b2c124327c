/// \file
/// How the FFT of a line of N complex numbers in shared memory is done, N with any prime factors.
///
/// N is a product of lengths without common divisors: the powers of the primes above 17, and the rest, which falls
/// apart into factors that share no prime. j and k of
///
///     X_k = sum_j z_j exp(-2 pi i j k / N)                                                         (L1)
///
/// are vectors then, j = sum_i j_i N / N_i mod N and k_i = k mod N_i, and (L1) is a transform of N_i numbers along
/// each of these directions, without rotations between them [Good 1958]. Lines are arrays of so many dimensions
/// in shared memory; tables say where z_j is put and X_k is found, so that no order has to be kept inside.
///
/// Along directions of primes up to 17, passes (F2) of shared_fft.cuh with the radices of butterflies.cuh.
///
/// Along a larger prime p, Rader's algorithm [Rader 1968]: with a generator g of the
/// numbers modulo p,
///
///     X_0 = x_0 + sum_m a_m,   X_{g^-q} = x_0 + sum_m a_m b_{q-m},   a_m = x_{g^m},
///     b_r = exp(-2 pi i g^-r / p),   0 <= q, m < p - 1,                                            (L2)
///
/// a cyclic convolution of length p - 1, or, where that has a prime above 17 itself, part of one of a length
/// from 2 p - 3 on. It is DFT, multiplication by the DFT of b, and inverse DFT: the passes, and the same
/// passes in the reverse order, so that there is no order to keep here either; the last forward pass, the
/// multiplication and the first backward pass are one. Frequency 0 of the product gets x_0 added, which adds it to all.
///
/// A power n = p^e of such a prime is e directions of p numbers, digit after digit [Cooley, Tukey 1965]: with
/// j = (n/p) j_1 + r and k = k_1 + p k',
///
///     X_{k_1 + p k'} = sum_r exp(-2 pi i r k' / (n/p)) exp(-2 pi i r k_1 / n) sum_{j_1} z_j exp(-2 pi i j_1 k_1 / p), (L3)
///
/// a transform along j_1, a pass of rotations, and (L3) once more for the digits of r.
#pragma once

#include <cstdint>
#include <vector>

#include "../fold.hpp"

namespace asterism::transforms::cuda {

/// Division by a number known beforehand; exact while dividend times divisor is below 2^32.
struct Divisor {
  constexpr Divisor() = default;
  constexpr explicit Divisor(unsigned number)
      : divisor(number),
        inverse(number == 1 ? 0 : static_cast<unsigned>(((std::uint64_t{1} << 32) + number - 1) / number)) {}

  ASTERISM_HOST_DEVICE constexpr unsigned quotient(unsigned x) const {
    return inverse == 0 ? x : static_cast<unsigned>(std::uint64_t{x} * inverse >> 32);
  }

  unsigned divisor = 1, inverse = 0;
};

/// What a pass does besides its butterflies: rotate behind them, rotate before them the other way round, or
/// multiply by the DFT of (L2)'s b between a butterfly and its inverse. Or it only rotates, as (L3) wants it.
enum class PassKind { forward, convolving, backward, rotating };

/// One pass over a line. Butterfly t of a line, 0 <= t < per_line, is number v = t mod span of group w = t / span;
/// it takes `radix` numbers, `span` apart, from `start + (w / groups) pitch + (w mod groups) radix span + v` on.
/// Where it only rotates, number t of the line is one of group w, which has rotation w mod groups.
struct Pass {
  PassKind kind;
  int radix;
  Divisor per_line, span, groups;
  unsigned start, pitch;
  Divisor step;          ///< v / step is the j of (F2)
  unsigned rotations;    ///< of (F2), where they start in the tables, one for each j; or of (L3)
  unsigned stride;       ///< (F2)'s s: so many j; 1: no rotations
  unsigned multipliers;  ///< the DFT of b, at start + q groups + group
};

/// How many tables of rotations a pass of a radix has: of the powers q = 1, 2, 3, 4, 8, 12, 16 below the
/// radix; the others are products of two of these.
ASTERISM_HOST_DEVICE constexpr int rotation_tables_of(int radix) {
  return radix <= 4 ? radix - 1 : 3 + (radix - 1) / 4;
}

constexpr int most_passes = 20;

/// What a kernel wants of a plan.
template <class T>
struct FftView {
  int length;   ///< N
  int numbers;  ///< of shared memory, of a line: at least N for each row
  bool padded;  ///< numbers that are neither z_j nor X_k lie between them, and are zeros at first
  int passes;
  Pass pass[most_passes];
  const std::uint16_t *in, *out;  ///< the places of z_j and of X_k, in the first row
  const Complex<T>* tables;
};

/// The numbers of shared memory that a line of N numbers takes, or 0 where there is no plan for N: N < 2, or more
/// than 2^16.
int fft_plan_numbers(Index N);

template <class T>
struct FftPlan {
  /// @param N of which there is a plan
  /// @param rows of N numbers that a line has, one behind another
  explicit FftPlan(Index N, Index rows = 1);

  FftView<T> view;  ///< without the tables
  std::vector<std::uint16_t> in, out;
  std::vector<Complex<T>> tables;
};

}  // namespace asterism::transforms::cuda
