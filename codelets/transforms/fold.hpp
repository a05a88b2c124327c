/// \file
/// What comes before and after the FFT of a real transform: the formulas (T2) to (T8) of transform.hpp, point
/// by point.
///
/// Folding turns a line into the sequence that the FFT wants, unfolding turns the spectrum into outputs. Both
/// go by pairs: pair p of a folding takes up to two points of the line and makes up to two elements of the
/// sequence, and they share one rotation.
#pragma once

#include <climits>
#include <vector>

#include "../../runtime/ports.hpp"
#include "transform.hpp"

namespace asterism::transforms {

constexpr bool has_prime_above(Index most, Index N) {
  for (Index p = 2; p <= most; ++p)
    while (N % p == 0) N /= p;
  return N > 1;
}

/// Whether N has a prime factor from which on FFTs of length N (FFTW's: 37, cuFFT's own code for primes ends
/// at 127) round noticeably more than those of powers of two: by the factor 1.4 for N = 37, 1.9 for 1021, 2.3
/// for 49,157. Such lengths, where any_length/ has no plan for them, are transformed in double precision if T is
/// float; if it is double, dst1 is done as chirp.hpp says.
constexpr bool has_large_prime(Index N) { return has_prime_above(31, N); }

/// A complex number as FFTW and cuFFT store it.
template <class T>
struct alignas(2 * sizeof(T)) Complex {
  T re, im;
};

/// The type of a number in T: T itself, or that of the numbers in each of the lanes of lanes.hpp.
template <class T>
struct ScalarOf {
  using type = T;
};
template <class T>
using Scalar = typename ScalarOf<T>::type;

template <class T>
ASTERISM_HOST_DEVICE constexpr T signed_as(bool negative, T x) {
  return negative ? -x : x;
}
#ifdef __CUDACC__
// By the bit alone, which takes half the instructions of a choice.
ASTERISM_HOST_DEVICE inline double signed_as(bool negative, double x) {
#ifdef __CUDA_ARCH__
  return __hiloint2double(__double2hiint(x) ^ (negative ? INT_MIN : 0), __double2loint(x));
#else
  return negative ? -x : x;
#endif
}
ASTERISM_HOST_DEVICE inline float signed_as(bool negative, float x) {
#ifdef __CUDA_ARCH__
  return __int_as_float(__float_as_int(x) ^ (negative ? INT_MIN : 0));
#else
  return negative ? -x : x;
#endif
}
#endif

template <class T>
ASTERISM_HOST_DEVICE inline Complex<T> operator+(Complex<T> a, Complex<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
ASTERISM_HOST_DEVICE inline Complex<T> operator-(Complex<T> a, Complex<T> b) {
  return {a.re - b.re, a.im - b.im};
}
/// @tparam S T, or Scalar<T>
template <class T, class S>
ASTERISM_HOST_DEVICE inline Complex<T> operator*(Complex<T> a, Complex<S> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

template <class E>
struct Pair {
  E first, second;
};

/// Where a pair's numbers are; `nowhere` where there is none.
using PairPlaces = Pair<Index>;
constexpr Index nowhere = -1;

/// Where a pair is among the others: inside, neither first nor last, it has every place that its kind has at
/// all. Loops over those have no branches then.
enum class Position { anywhere, inside };

/// What goes into an FFT and what comes out. One that makes real numbers takes, and one that takes them
/// makes, the first half of a Hermitian sequence: n/2 + 1 numbers.
enum class FftKind { complex, from_real, to_real };

ASTERISM_HOST_DEVICE constexpr FftKind fft_kind(Transform kind) {
  switch (kind) {
    case Transform::dct2:
    case Transform::dst2:
    case Transform::dft:
      return FftKind::from_real;
    case Transform::dct3:
    case Transform::dst3:
    case Transform::idft:
      return FftKind::to_real;
    default:
      return FftKind::complex;
  }
}

/// Kind I: its FFT has another length than its lines.
ASTERISM_HOST_DEVICE constexpr bool is_first_kind(Transform kind) {
  return kind == Transform::dst1 || kind == Transform::dct1;
}

/// What a transform of lines of n points is done as: dct1 of one point, the identity, by another identity, as
/// (T4) wants two points.
constexpr Transform done_as(Transform kind, Index n) {
  return kind == Transform::dct1 && n == 1 ? Transform::dft : kind;
}

/// The length of the FFT of a line of n points: the N of (T2) and (T4).
ASTERISM_HOST_DEVICE constexpr Index fft_length(Transform kind, Index n) {
  return kind == Transform::dst1 ? n + 1 : kind == Transform::dct1 ? n - 1 : n;
}

/// Complex numbers that hold the sequence, the spectrum and what lies between.
ASTERISM_HOST_DEVICE constexpr Index fft_numbers(Transform kind, Index n) {
  return fft_kind(kind) == FftKind::complex ? fft_length(kind, n) : n / 2 + 1;
}

ASTERISM_HOST_DEVICE constexpr bool folds_to_real(Transform kind) {
  return fft_kind(kind) == FftKind::from_real;
}

/// Whether unfolding reads the spectrum as real numbers: its real and imaginary parts in turn, where it is
/// complex.
ASTERISM_HOST_DEVICE constexpr bool unfolds_real(Transform kind) {
  return fft_kind(kind) == FftKind::to_real || kind == Transform::dst1 || kind == Transform::dct1;
}

/// The rotations exp(i pi a_p / b) of the pairs' foldings and unfoldings, correctly rounded but for a few of
/// them. Empty for kinds without; of an unfolding one more than there are pairs.
template <class T>
std::vector<Complex<T>> fold_rotations(Transform kind, Index n);
template <class T>
std::vector<Complex<T>> unfold_rotations(Transform kind, Index n);

// --- Folding -------------------------------------------------------------------------------------

/// The number of pairs in a folding of n points.
ASTERISM_HOST_DEVICE constexpr Index fold_pairs(Transform kind, Index n) {
  switch (kind) {
    case Transform::dst1:
    case Transform::dct1:
      return fft_length(kind, n) / 2 + 1;
    case Transform::dct3:
    case Transform::dst3:
    case Transform::idft:
      return n / 2 + 1;
    default:
      return (n + 1) / 2;
  }
}

/// The points of the line that pair p takes.
ASTERISM_HOST_DEVICE constexpr PairPlaces fold_from(Transform kind, Index n, Index p,
                                                Position position = Position::anywhere) {
  const bool inside = position == Position::inside;
  const Index mirror = n - 1 - p;
  switch (kind) {
    case Transform::dst1:
      return inside || p > 0 ? PairPlaces{p - 1, n - p} : PairPlaces{nowhere, nowhere};  // x_0 = 0
    case Transform::dct1:
      return {p, mirror};
    case Transform::dct2:
    case Transform::dst2:
      return {2 * p, inside || 2 * p + 1 < n ? 2 * p + 1 : nowhere};
    case Transform::dct3:
      return {p, inside || p > 0 ? n - p : nowhere};
    case Transform::dst3:
      return {mirror, p - 1};  // nowhere for p = 0
    case Transform::idft:
      return {p, inside || (p > 0 && 2 * p < n) ? n - p : nowhere};
    default:
      return {p, inside || mirror > p ? mirror : nowhere};
  }
}

/// The elements of the sequence that pair p makes.
ASTERISM_HOST_DEVICE constexpr PairPlaces fold_to(Transform kind, Index n, Index p,
                                              Position position = Position::anywhere) {
  const bool inside = position == Position::inside;
  const Index mirror = n - 1 - p, N = fft_length(kind, n);
  switch (kind) {
    case Transform::dst1:
    case Transform::dct1:
      return {p, inside || (p > 0 && 2 * p < N) ? N - p : nowhere};
    case Transform::dct3:
    case Transform::dst3:
    case Transform::idft:
      return {p, nowhere};
    case Transform::dct4:
    case Transform::dst4:
      return {p, inside || mirror > p ? mirror : nowhere};
    // A real sequence of one number is its own spectrum, whose imaginary part is the number behind it.
    default:
      return {p, inside || mirror > p ? mirror : n == 1 ? 1 : nowhere};
  }
}

/// The values of those elements: complex numbers, or real ones where folds_to_real(kind).
/// @param x,y the points at fold_from(), 0 where there is none
/// @param r fold_rotations()[p]
template <Transform kind, class T>
ASTERISM_HOST_DEVICE inline auto fold(Index n, Index p, T x, T y, Complex<T> r) {
  if constexpr (kind == Transform::dst1) {  // (T2)
    const T e = x - y, s = x + y, c = s * r.re, d = s * r.im;
    return Pair<Complex<T>>{{-c, d + e}, {c, d - e}};
  } else if constexpr (kind == Transform::dct1) {  // (T4)
    const T e = x - y, s = x + y, c = e * r.re, d = e * r.im;
    return Pair<Complex<T>>{{s + d, c}, {s - d, c}};
  } else if constexpr (kind == Transform::dct3 || kind == Transform::dst3) {  // (T6), (T8)
    return Pair<Complex<T>>{{x * r.re + y * r.im, x * r.im - y * r.re}, {}};
  } else if constexpr (kind == Transform::dct4) {  // (T7)
    return Pair<Complex<T>>{{x * r.re, -x * r.im}, {y * r.im, -y * r.re}};
  } else if constexpr (kind == Transform::dst4) {  // (T8)
    return fold<Transform::dct4>(n, p, p % 2 == 0 ? x : -x, (n - 1 - p) % 2 == 0 ? y : -y, r);
  } else if constexpr (kind == Transform::idft) {
    return Pair<Complex<T>>{{x, y}, {}};
  } else if constexpr (kind == Transform::dst2) {  // (T8)
    return Pair<T>{x, -y};
  } else {  // dft, (T5)
    return Pair<T>{x, y};
  }
}

// --- Unfolding -----------------------------------------------------------------------------------

/// The number of pairs in an unfolding to n points.
ASTERISM_HOST_DEVICE constexpr Index unfold_pairs(Transform kind, Index n) {
  switch (kind) {
    case Transform::dst1:
    case Transform::dct1:
      return n;
    case Transform::dct2:
    case Transform::dst2:
    case Transform::dft:
      return n / 2 + 1;
    default:
      return (n + 1) / 2;
  }
}

/// The numbers of the spectrum that pair p takes, complex or as unfolds_real() says.
ASTERISM_HOST_DEVICE constexpr PairPlaces unfold_from(Transform kind, Index n, Index p,
                                                  Position position = Position::anywhere) {
  const bool inside = position == Position::inside;
  const Index mirror = n - 1 - p, N = fft_length(kind, n);
  switch (kind) {
    case Transform::dst1:
      return {p + 1, 2 * N - p - 1};
    case Transform::dct1:
      return {p, inside || p > 0 ? 2 * N - p : 0};
    case Transform::dct2:
    case Transform::dst2:
    case Transform::dft:
      return {p, nowhere};
    default:
      return {p, inside || mirror > p ? mirror : nowhere};
  }
}

/// The outputs that pair p makes.
ASTERISM_HOST_DEVICE constexpr PairPlaces unfold_to(Transform kind, Index n, Index p,
                                                Position position = Position::anywhere) {
  const bool inside = position == Position::inside;
  const Index mirror = n - 1 - p;
  const bool has_partner = inside || (p > 0 && 2 * p < n), has_second = inside || 2 * p + 1 < n;
  switch (kind) {
    case Transform::dst1:
    case Transform::dct1:
      return {p, nowhere};
    case Transform::dct2:
    case Transform::dft:
      return {p, has_partner ? n - p : nowhere};
    case Transform::dst2:
      return {mirror, has_partner ? p - 1 : nowhere};
    case Transform::dst4:
      return {n - 1 - 2 * p, has_second ? n - 2 - 2 * p : nowhere};
    case Transform::idft:
      return {p, has_second ? mirror : nowhere};
    default:
      return {2 * p, has_second ? 2 * p + 1 : nowhere};
  }
}

/// The values of those outputs.
/// @param u,v the numbers at unfold_from(), 0 where there is none
/// @param r,next unfold_rotations()[p] and [p + 1]
template <Transform kind, class Number, class T>
ASTERISM_HOST_DEVICE inline Pair<T> unfold(Number u, Number v, Complex<T> r, Complex<T> next) {
  if constexpr (kind == Transform::dst1) {  // (T3)
    return {(u - v) / 2, 0};
  } else if constexpr (kind == Transform::dct1) {  // (T4)
    return {(u + v) / 2, 0};
  } else if constexpr (kind == Transform::dct2 || kind == Transform::dst2) {  // (T5), (T8)
    return {2 * (r.re * u.re + r.im * u.im), 2 * (r.im * u.re - r.re * u.im)};
  } else if constexpr (kind == Transform::dct4 || kind == Transform::dst4) {  // (T7), (T8)
    return {2 * (r.re * u.re + r.im * u.im), 2 * (next.re * v.re - next.im * v.im)};
  } else if constexpr (kind == Transform::dft) {
    return {u.re, u.im};
  } else if constexpr (kind == Transform::dst3) {  // (T8)
    return {u, -v};
  } else {  // idft, (T6)
    return {u, v};
  }
}

}  // namespace asterism::transforms
