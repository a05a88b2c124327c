/// \file
/// The FFT of a line of 2^bits complex numbers in a block's shared memory,
///
///     X_k = sum_j z_j exp(-2 pi i j k / 2^bits),                                                   (F1)
///
/// in place, by decimation in frequency: a pass of radix R splits sub-lines of L numbers into R of s = L / R,
///
///     z'_{qs+j} = exp(-2 pi i j q / L) sum_m z_{ms+j} exp(-2 pi i m q / R),   0 <= q < R,  0 <= j < s. (F2)
///
/// A thread reads R numbers and writes them to where they were, so passes want one barrier each. The
/// frequencies come out in the order of their reversed digits (`fft_place`).
///
/// The functions run on the host too, thread after thread, so that the arithmetic of places can be tried
/// there.
#pragma once

#include <cmath>
#include <numbers>
#include <vector>

#include "fold.hpp"
#include "inlined.hpp"

namespace asterism::transforms {

template <class T>
ASTERISM_HOST_DEVICE inline Complex<T> conj(Complex<T> a) {
  return {a.re, -a.im};
}
template <class T>
ASTERISM_HOST_DEVICE inline Complex<T> times_i(Complex<T> a) {
  return {-a.im, a.re};
}
template <class T>
ASTERISM_HOST_DEVICE inline Complex<T> times_minus_i(Complex<T> a) {
  return {a.im, -a.re};
}
template <class T>
ASTERISM_HOST_DEVICE inline Complex<T> minus(Complex<T> a) {
  return {-a.re, -a.im};
}
/// a exp(i pi / 4) and a exp(-i pi / 4)
template <class T>
ASTERISM_HOST_DEVICE inline Complex<T> eighth_turn(Complex<T> a) {
  constexpr auto half_root = static_cast<Scalar<T>>(0.5 * std::numbers::sqrt2);
  return {(a.re - a.im) * half_root, (a.re + a.im) * half_root};
}
template <class T>
ASTERISM_HOST_DEVICE inline Complex<T> eighth_turn_back(Complex<T> a) {
  constexpr auto half_root = static_cast<Scalar<T>>(0.5 * std::numbers::sqrt2);
  return {(a.re + a.im) * half_root, (a.im - a.re) * half_root};
}

/// Where number i of a line lies, in units of complex numbers. 128 bytes are what shared memory gives at a
/// time: 2^b numbers. Each group of b bits of i is added, without carry, to the lowest, so that any 2^b
/// threads whose places differ in b successive bits, as in every pass and in the order of digits reversed,
/// meet in no bank. Linear: slot(i ^ j) = slot(i) ^ slot(j).
template <class T>
ASTERISM_HOST_DEVICE constexpr int slot(int i) {
  constexpr int b = sizeof(Scalar<T>) == 8 ? 3 : 4, mask = (1 << b) - 1;
  return i ^ (((i >> b) ^ (i >> 2 * b) ^ (i >> 3 * b) ^ (i >> 4 * b)) & mask);
}

/// The passes of an FFT of length 2^bits with radices up to 2^most: radix 2^pass_radix, and 2^pass_stride is
/// the s of (F2).
constexpr int pass_count(int bits, int most) { return (bits + most - 1) / most; }
constexpr int pass_radix(int bits, int most, int pass) {
  const int passes = pass_count(bits, most);
  return bits / passes + (pass < bits % passes ? 1 : 0);
}
constexpr int pass_stride(int bits, int most, int pass) {
  int left = bits;
  for (int p = 0; p <= pass; ++p) left -= pass_radix(bits, most, p);
  return left;
}

/// The place of frequency k.
template <int bits, int most>
ASTERISM_HOST_DEVICE constexpr int fft_place(int k) {
  int place = 0;
  for (int pass = 0, left = bits; pass < pass_count(bits, most); ++pass) {
    const int radix = pass_radix(bits, most, pass);
    left -= radix;
    place |= (k & ((1 << radix) - 1)) << left;
    k >>= radix;
  }
  return place;
}

/// The rotations of (F2) for a pass of radix R are tables of exp(-2 pi i j q / L), one after another, for
/// q = 1, 2, 3 and, of what is below R, 4, 8, 12: the others are products of two of these.
constexpr int rotation_tables(int radix) { return radix == 1 ? 1 : radix == 2 ? 3 : radix == 3 ? 4 : 6; }
constexpr int rotation_power(int table) { return table < 3 ? table + 1 : 4 * (table - 2); }

/// Where the tables of a pass start in those of an FFT; and how long these are.
constexpr int rotations_start(int bits, int most, int pass) {
  int start = 0;
  for (int p = 0; p < pass && p + 1 < pass_count(bits, most); ++p)
    start += rotation_tables(pass_radix(bits, most, p)) << pass_stride(bits, most, p);
  return start;
}
constexpr int fft_rotations(int bits, int most) {
  return rotations_start(bits, most, pass_count(bits, most));
}

/// exp(-i pi p / q)
template <class T>
Complex<T> unit_number(Index p, Index q) {
  const long double angle =
      std::numbers::pi_v<long double> * static_cast<long double>(p) / static_cast<long double>(q);
  const bool right_angle = 2 * p == q;
  return {right_angle ? T{0} : static_cast<T>(std::cos(angle)), static_cast<T>(-std::sin(angle))};
}

/// Appends the tables of an FFT of length 2^bits.
template <class T>
void append_fft_rotations(std::vector<Complex<T>>& table, int bits, int most) {
  for (int pass = 0; pass + 1 < pass_count(bits, most); ++pass) {
    const int radix = pass_radix(bits, most, pass), stride = pass_stride(bits, most, pass);
    for (int t = 0; t < rotation_tables(radix); ++t)
      for (Index j = 0; j < Index{1} << stride; ++j)
        table.push_back(unit_number<T>(2 * j * rotation_power(t), Index{1} << (stride + radix)));
  }
}

/// (F1) of 2, 4, 8 or 16 numbers in registers, in order.
template <class T>
ASTERISM_INLINED void dft2(Complex<T>& a, Complex<T>& b) {
  const Complex<T> sum = a + b;
  b = a - b;
  a = sum;
}
template <class T>
ASTERISM_INLINED void dft4(Complex<T>& a, Complex<T>& b, Complex<T>& c, Complex<T>& d) {
  dft2(a, c);
  dft2(b, d);
  const Complex<T> turned = times_i(d), even = a, odd = c;
  a = even + b;
  c = even - b;
  b = odd - turned;
  d = odd + turned;
}
template <class T>
ASTERISM_INLINED void dft8(Complex<T>* a) {
  dft4(a[0], a[2], a[4], a[6]);
  dft4(a[1], a[3], a[5], a[7]);
  const Complex<T> odd[4] = {a[1], eighth_turn_back(a[3]), times_minus_i(a[5]), minus(eighth_turn(a[7]))};
  const Complex<T> even[4] = {a[0], a[2], a[4], a[6]};
  ASTERISM_UNROLL
  for (int q = 0; q < 4; ++q) {
    a[q] = even[q] + odd[q];
    a[q + 4] = even[q] - odd[q];
  }
}
template <class T>
ASTERISM_INLINED void dft16(Complex<T>* a) {
  constexpr auto cosine = static_cast<Scalar<T>>(0.92387953251128675613),
                 sine = static_cast<Scalar<T>>(0.38268343236508977173);  // of pi / 8
  constexpr Complex<Scalar<T>> w1{cosine, -sine}, w3{sine, -cosine}, w9{-cosine, sine};
  ASTERISM_UNROLL
  for (int j = 0; j < 4; ++j) dft4(a[j], a[j + 4], a[j + 8], a[j + 12]);
  // a[j + 4 q] is rotated by exp(-2 pi i j q / 16).
  a[5] = a[5] * w1;
  a[6] = eighth_turn_back(a[6]);
  a[7] = a[7] * w3;
  a[9] = eighth_turn_back(a[9]);
  a[10] = times_minus_i(a[10]);
  a[11] = minus(eighth_turn(a[11]));
  a[13] = a[13] * w3;
  a[14] = minus(eighth_turn(a[14]));
  a[15] = a[15] * w9;
  ASTERISM_UNROLL
  for (int q = 0; q < 4; ++q) dft4(a[4 * q], a[4 * q + 1], a[4 * q + 2], a[4 * q + 3]);
  // Now a[4 q + p] is frequency q + 4 p.
  ASTERISM_UNROLL
  for (int q = 0; q < 4; ++q) ASTERISM_UNROLL
  for (int p = 0; p < q; ++p) {
    const Complex<T> other = a[4 * q + p];
    a[4 * q + p] = a[4 * p + q];
    a[4 * p + q] = other;
  }
}
template <int radix, class T>
ASTERISM_INLINED void dft(Complex<T>* a) {
  if constexpr (radix == 1) dft2(a[0], a[1]);
  if constexpr (radix == 2) dft4(a[0], a[1], a[2], a[3]);
  if constexpr (radix == 3) dft8(a);
  if constexpr (radix == 4) dft16(a);
}

/// The rotations of (F2): a_q by the q-th power of exp(-2 pi i j / L). `tables` is that of j.
template <int radix, class T>
ASTERISM_HOST_DEVICE inline void rotate(Complex<T>* a, const Complex<Scalar<T>>* tables, int stride) {
  constexpr int R = 1 << radix, few = R < 4 ? R : 4;
  Complex<Scalar<T>> w[4];
  ASTERISM_UNROLL
  for (int q = 1; q < few; ++q) {
    w[q] = tables[(q - 1) << stride];
    a[q] = a[q] * w[q];
  }
  ASTERISM_UNROLL
  for (int p = 4; p < R; p += 4) {
    const Complex<Scalar<T>> v = tables[(p / 4 + 2) << stride];
    a[p] = a[p] * v;
    ASTERISM_UNROLL
    for (int q = 1; q < 4; ++q) a[p + q] = a[p + q] * (v * w[q]);
  }
}

/// Butterfly t, 0 <= t < 2^(bits - pass_radix), of a pass over z, where number i lies at slot(i) ^ skew.
template <int bits, int most, int pass, class T>
ASTERISM_HOST_DEVICE inline void fft_butterfly(Complex<T>* z, int t, const Complex<Scalar<T>>* rotations, int skew = 0) {
  constexpr int radix = pass_radix(bits, most, pass), stride = pass_stride(bits, most, pass), R = 1 << radix;
  const int j = t & ((1 << stride) - 1), first = skew ^ slot<T>(((t >> stride) << (stride + radix)) | j);
  Complex<T> a[R];
  ASTERISM_UNROLL
  for (int m = 0; m < R; ++m) a[m] = z[first ^ slot<T>(m << stride)];
  dft<radix>(a);
  if constexpr (stride > 0) rotate<radix>(a, rotations + rotations_start(bits, most, pass) + j, stride);
  ASTERISM_UNROLL
  for (int q = 0; q < R; ++q) z[first ^ slot<T>(q << stride)] = a[q];
}

}  // namespace asterism::transforms
