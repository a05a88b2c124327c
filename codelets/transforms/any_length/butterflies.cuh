/// \file
/// FFTs of 2 to 17 numbers in registers, in order:
///
///     X_k = sum_j a_j exp(-2 pi i j k / R).                                                        (A1)
///
/// Powers of two are shared_fft.cuh's. An odd prime R: with t_j = a_j + a_{R-j} and d_j = a_j - a_{R-j},
///
///     X_k, X_{R-k} = a_0 + sum_{j <= R/2} t_j cos(2 pi j k / R) -+ i sum_{j <= R/2} d_j sin(2 pi j k / R). (A2)
///
/// R = P Q without a common divisor [Good 1958]: with
/// j = Q j_1 + P j_2 mod R, k = k_1 mod P, k = k_2 mod Q, (A1) is a transform of P numbers along j_1 and one of Q
/// along j_2, with no rotations between.                                                             (A3)
#pragma once

#include <cmath>

#include "../shared_fft.cuh"

namespace asterism::transforms {

/// cos(2 pi k / R) and sin(2 pi k / R) for k = 1 ... R/2
template <int R>
struct Roots;
template <>
struct Roots<5> {
  ASTERISM_HOST_DEVICE static constexpr double cosine(int k) {
    constexpr double of[] = {0.309016994374947424102, -0.809016994374947424102};
    return of[k - 1];
  }
  ASTERISM_HOST_DEVICE static constexpr double sine(int k) {
    constexpr double of[] = {0.951056516295153572116, 0.587785252292473129169};
    return of[k - 1];
  }
};
template <>
struct Roots<7> {
  ASTERISM_HOST_DEVICE static constexpr double cosine(int k) {
    constexpr double of[] = {0.623489801858733530525, -0.222520933956314404289, -0.900968867902419126236};
    return of[k - 1];
  }
  ASTERISM_HOST_DEVICE static constexpr double sine(int k) {
    constexpr double of[] = {0.781831482468029808708, 0.974927912181823607018, 0.433883739117558120476};
    return of[k - 1];
  }
};
template <>
struct Roots<9> {
  ASTERISM_HOST_DEVICE static constexpr double cosine(int k) {
    constexpr double of[] = {0.766044443118978035202, 0.173648177666930348852, -0.5,
                             -0.939692620785908384054};
    return of[k - 1];
  }
  ASTERISM_HOST_DEVICE static constexpr double sine(int k) {
    constexpr double of[] = {0.642787609686539326323, 0.984807753012208059367, 0.866025403784438646764,
                             0.342020143325668733044};
    return of[k - 1];
  }
};
template <>
struct Roots<11> {
  ASTERISM_HOST_DEVICE static constexpr double cosine(int k) {
    constexpr double of[] = {0.841253532831181168862, 0.415415013001886425529, -0.142314838273285140444,
                             -0.654860733945285064057, -0.95949297361449738989};
    return of[k - 1];
  }
  ASTERISM_HOST_DEVICE static constexpr double sine(int k) {
    constexpr double of[] = {0.540640817455597582108, 0.909631995354518371412, 0.989821441880932732376,
                             0.755749574354258283774, 0.281732556841429697711};
    return of[k - 1];
  }
};
template <>
struct Roots<13> {
  ASTERISM_HOST_DEVICE static constexpr double cosine(int k) {
    constexpr double of[] = {0.8854560256532098959,   0.568064746731155802512,  0.120536680255323053349,
                             -0.35460488704253562597, -0.748510748171101098635, -0.970941817426052027157};
    return of[k - 1];
  }
  ASTERISM_HOST_DEVICE static constexpr double sine(int k) {
    constexpr double of[] = {0.464723172043768545656, 0.82298386589365639458,  0.992708874098053992801,
                             0.93501624268541482344,  0.663122658240795202377, 0.239315664287557767149};
    return of[k - 1];
  }
};
template <>
struct Roots<17> {
  ASTERISM_HOST_DEVICE static constexpr double cosine(int k) {
    constexpr double of[] = {0.932472229404355804573,  0.739008917220659115925,  0.445738355776538267396,
                             0.0922683594633019952397, -0.273662990072082863539, -0.602634636379256389179,
                             -0.850217135729614152134, -0.982973099683901778282};
    return of[k - 1];
  }
  ASTERISM_HOST_DEVICE static constexpr double sine(int k) {
    constexpr double of[] = {0.361241666187152948745, 0.673695643646557211713, 0.895163291355062322067,
                             0.995734176295034521871, 0.961825643172819070409, 0.798017227280239503333,
                             0.526432162877355800245, 0.183749517816570331574};
    return of[k - 1];
  }
};

/// (A2). Constants of constant places in unrolled loops: they end up in the instructions.
template <int R, class T>
ASTERISM_INLINED void prime_butterfly(Complex<T>* a) {
  constexpr int half = R / 2;
  Complex<T> t[half], d[half];
  Complex<T> total = a[0];
  ASTERISM_UNROLL
  for (int j = 0; j < half; ++j) {
    t[j] = a[j + 1] + a[R - 1 - j];
    d[j] = a[j + 1] - a[R - 1 - j];
    total = total + t[j];
  }
  ASTERISM_UNROLL
  for (int k = 1; k <= half; ++k) {
    Complex<T> even = a[0], odd{0, 0};
    ASTERISM_UNROLL
    for (int j = 1; j <= half; ++j) {
      const int turn = j * k % R;
      const bool beyond = turn > half;
      const auto cosine = static_cast<Scalar<T>>(Roots<R>::cosine(beyond ? R - turn : turn)),
                 sine = static_cast<Scalar<T>>(beyond ? -Roots<R>::sine(R - turn) : Roots<R>::sine(turn));
      even = {even.re + t[j - 1].re * cosine, even.im + t[j - 1].im * cosine};
      odd = {odd.re + d[j - 1].re * sine, odd.im + d[j - 1].im * sine};
    }
    a[k] = {even.re + odd.im, even.im - odd.re};
    a[R - k] = {even.re - odd.im, even.im + odd.re};
  }
  a[0] = total;
}

/// (A2) of three numbers. Lengths may have many threes, all with one constant, whose rounding would add up: it has twice
/// the digits here. For N = 1459, a convolution of 2 3^6 numbers, that leaves 2.5 of 3.4 units of rounding.
template <class T>
ASTERISM_INLINED void butterfly_of_3(Complex<T>* a) {
  constexpr double sine = 0.866025403784438646764, rest = 5.01754211090345132640e-17;  // of 2 pi / 3
  constexpr auto high = static_cast<Scalar<T>>(sine),
                 low = static_cast<Scalar<T>>(sine - static_cast<double>(high) + rest);
  using std::fma;
  const Complex<T> t = a[1] + a[2], d = a[1] - a[2], even{a[0].re - t.re / 2, a[0].im - t.im / 2},
                   odd{fma(d.re, high, d.re * low), fma(d.im, high, d.im * low)};
  a[0] = a[0] + t;
  a[1] = {even.re + odd.im, even.im - odd.re};
  a[2] = {even.re - odd.im, even.im + odd.re};
}

template <int R, class T>
ASTERISM_INLINED void butterfly(Complex<T>* a);

/// The inverse of a modulo n.
template <int a, int n>
constexpr int inverse_modulo() {
  int inverse = 1;
  while (a * inverse % n != 1 % n) ++inverse;
  return inverse;
}

/// (A3)
template <int P, int Q, class T>
ASTERISM_INLINED void coprime_butterfly(Complex<T>* a) {
  constexpr int R = P * Q, at_1 = Q * inverse_modulo<Q, P>(), at_2 = P * inverse_modulo<P, Q>();
  Complex<T> b[Q][P];
  ASTERISM_UNROLL
  for (int j_2 = 0; j_2 < Q; ++j_2) {
    ASTERISM_UNROLL
    for (int j_1 = 0; j_1 < P; ++j_1) b[j_2][j_1] = a[(Q * j_1 + P * j_2) % R];
    butterfly<P>(b[j_2]);
  }
  ASTERISM_UNROLL
  for (int k_1 = 0; k_1 < P; ++k_1) {
    Complex<T> c[Q];
    ASTERISM_UNROLL
    for (int j_2 = 0; j_2 < Q; ++j_2) c[j_2] = b[j_2][k_1];
    butterfly<Q>(c);
    ASTERISM_UNROLL
    for (int k_2 = 0; k_2 < Q; ++k_2) a[(at_1 * k_1 + at_2 * k_2) % R] = c[k_2];
  }
}

/// Nine numbers, as (F2) of shared_fft.cuh has them for radix 3 and 3.
template <class T>
ASTERISM_INLINED void butterfly_of_9(Complex<T>* a) {
  Complex<T> b[3][3];
  ASTERISM_UNROLL
  for (int j = 0; j < 3; ++j) {
    ASTERISM_UNROLL
    for (int m = 0; m < 3; ++m) b[j][m] = a[3 * m + j];
    butterfly<3>(b[j]);
    ASTERISM_UNROLL
    for (int q = 1; j > 0 && q < 3; ++q)
      b[j][q] = b[j][q] * Complex<Scalar<T>>{static_cast<Scalar<T>>(Roots<9>::cosine(j * q)),
                                             static_cast<Scalar<T>>(-Roots<9>::sine(j * q))};
  }
  ASTERISM_UNROLL
  for (int q = 0; q < 3; ++q) {
    Complex<T> c[3] = {b[0][q], b[1][q], b[2][q]};
    butterfly<3>(c);
    ASTERISM_UNROLL
    for (int p = 0; p < 3; ++p) a[q + 3 * p] = c[p];
  }
}

/// (A1)
template <int R, class T>
ASTERISM_INLINED void butterfly(Complex<T>* a) {
  static_assert(R >= 2 && R <= 17);
  if constexpr (R == 2)
    dft<1>(a);
  else if constexpr (R == 4)
    dft<2>(a);
  else if constexpr (R == 8)
    dft<3>(a);
  else if constexpr (R == 16)
    dft<4>(a);
  else if constexpr (R == 3)
    butterfly_of_3(a);
  else if constexpr (R == 9)
    butterfly_of_9(a);
  else if constexpr (R == 6)
    coprime_butterfly<2, 3>(a);
  else if constexpr (R == 10)
    coprime_butterfly<2, 5>(a);
  else if constexpr (R == 12)
    coprime_butterfly<4, 3>(a);
  else if constexpr (R == 14)
    coprime_butterfly<2, 7>(a);
  else if constexpr (R == 15)
    coprime_butterfly<3, 5>(a);
  else
    prime_butterfly<R>(a);
}

}  // namespace asterism::transforms
