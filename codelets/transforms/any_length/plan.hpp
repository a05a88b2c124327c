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
///
/// Of a sequence with z_{-j} = s z_j, s = 1 or -1, of a prime length N = p, half is enough. g^M = -1 for M = (p - 1)/2, so
///
///     Z_{g^-q} / 2 = z_0 / 2 + sum_m a_m c_{q-m},   c_r = (b_r + s b_{r-M}) / 2,   0 <= q, m < M,  (L4)
///
/// c_r = cos(2 pi g^-r / p) or -i sin(2 pi g^-r / p): a convolution of length M, cyclic for s = 1. For s = -1 c_{r+M} = -c_r;
/// with w^M = -1, a_m w^m and c_r w^r have the cyclic convolution Z_{g^-q} w^q / 2; w is exp(-i pi / M), or -1 for odd M.
/// Where M has a prime above 17, the numbers are part of a convolution of a length from 2 M - 1 on, without w.
#pragma once

#include <cstdint>
#include <vector>

#include "../fold.hpp"

namespace asterism::transforms {

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
/// multiply by the DFT of (L2)'s b between a butterfly and its inverse. Or it only rotates, as (L3) wants it, or brings
/// columns together and takes them apart again, as (Y3) of symmetric_plan.hpp has it.
enum class PassKind { forward, convolving, backward, rotating, combining, separating };

/// One pass over a line. Butterfly t of a line, 0 <= t < per_line, is number v = t mod span of group w = t / span;
/// it takes `radix` numbers, `span` apart, from `start + (w / groups) pitch + (w mod groups) radix span + v` on.
/// Where it only rotates, number t of the line is one of group w, which has rotation w mod groups. Between columns t is
/// pair t mod span of row t / span.
struct Pass {
  PassKind kind;
  int radix;
  Divisor per_line, span, groups;
  unsigned start, pitch;
  Divisor step;              ///< v / step is the j of (F2)
  unsigned rotations;        ///< of (F2): where those of q = 1 start, one for each j, then q = 2 ...; or of (L3)
  unsigned stride;           ///< (F2)'s s: so many j; 1: no rotations
  unsigned multipliers;      ///< the DFT of b, at start + q groups + group
  unsigned odd_multipliers;  ///< (L4): so far behind them are those for s = -1; 0: there are none
};

constexpr int most_passes = 20;
/// Fewer than these numbers has a line of a SymmetricPlan, whose places have 15 bits for twice their number.
constexpr int most_symmetric_numbers = 1 << 14;

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

/// Numbers of shared memory that a line takes, and passes over them; none where there is no plan.
struct PlanSize {
  Index numbers = 0;
  int passes = 0;
};

/// Of N numbers, none where they take more than 2^16; of one number there is nothing to do.
PlanSize fft_plan_size(Index N);

template <class T>
struct FftPlan {
  /// @param N of which there is a plan
  /// @param rows of N numbers that a line has, one behind another
  explicit FftPlan(Index N, Index rows = 1);

  FftView<T> view{};  ///< without the tables
  std::vector<std::uint16_t> in, out;
  std::vector<Complex<T>> tables;
};

/// Of rows of Q numbers, each a power g^m of p's generator, 0 <= m < M, or 0: none where p is no prime above 17 or divides Q.
PlanSize half_rows_size(Index p, Index Q);

/// What is done in rows by the FFT of Q numbers, and then in columns by (L4): for s = -1 in those that are called odd, for
/// s = 1 in the others. What comes between, PassKind::combining and separating, is left to whoever has the columns.
template <class T>
struct HalfRowsPlan {
  /// @param p,Q of which there is such a plan
  HalfRowsPlan(Index p, Index Q);

  Index rows;
  FftPlan<T> fft;
  std::vector<std::uint16_t> in, out;  ///< the rows of j and k, 0 <= j, k < p: that of j is that of -j, too
  std::vector<Complex<T>> twist;       ///< w^m for each row; empty: ones
};

}  // namespace asterism::transforms
