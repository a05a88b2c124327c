/// \file
/// The phases of `line_transform` for all kinds but the first: what each thread of a block does between two barriers. They
/// run on the host too, phase after phase and thread after thread.
///
/// dct2 and dft of n = 2 M points: with z_j = v_{2j} + i v_{2j+1}, where v is x for dft and (T5)'s for dct2,
/// Z = DFT_M(z), A = Z_k, B = conj Z_{M-k}, w = exp(-2 pi i k / n), 0 <= k <= M/2,
///
///     F = P - Q,   H = P + Q,   P = c (A + B),   Q = i d (A - B),   d = c w,                       (K1)
///
/// are F = 2 X_k and H = 2 conj X_{M-k} with c = 1, and with c = exp(-i pi k / 2n)
///
///     F = Y_k - i Y_{n-k},   exp(i pi / 4) H = Y_{M-k} + i Y_{M+k}.                                (K2)
///
/// idft and dct3 take the same steps back: F and H are made of the numbers given, and z = conj DFT_M(conj Z),
///
///     Z_k = S - R,   conj Z_{M-k} = S + R,   S = conj(c) (F + H),   R = i conj(d) (H - F)          (K3)
///
/// with F = Y_k - i Y_{n-k}, H = exp(-i pi / 4) (Y_{M-k} + i Y_{M+k}) for dct3, and F = X_k, H = conj X_{M-k}
/// for idft.
///
/// dct4 by (T10).
#pragma once

#include "../block_lines.cuh"

namespace asterism::transforms {

template <class T>
struct Halves {
  Complex<T> F, H;
};

/// (K1)
template <class T>
ASTERISM_HOST_DEVICE inline Halves<T> split_spectrum(Complex<T> Z, Complex<T> mirror,
                                                     const Complex<Scalar<T>>* c_and_d) {
  const Complex<T> B = conj(mirror), P = c_and_d[0] * (Z + B), Q = times_i(c_and_d[1] * (Z - B));
  return {P - Q, P + Q};
}

/// (K3), conjugate: what DFT_M is to transform.
/// @return in F number k, in H number M - k
template <class T>
ASTERISM_HOST_DEVICE inline Halves<T> join_spectrum(Halves<T> x, const Complex<Scalar<T>>* c_and_d) {
  const Complex<T> S = c_and_d[0] * conj(x.F + x.H), R = times_minus_i(c_and_d[1] * conj(x.H - x.F));
  return {S - R, conj(S + R)};
}

/// F and H of (K3) for dct3, from its inputs number k, n - k (0 for k = 0), M - k and M + k.
template <class T>
ASTERISM_HOST_DEVICE inline Halves<T> dct3_halves(T at_k, T at_n_k, T at_M_k, T at_Mk) {
  return {{at_k, -at_n_k}, eighth_turn_back(Complex<T>{at_M_k, at_Mk})};
}

/// The j of (T6) for which output k of the dct3 of 2^bits points is v_j, a part of z_{j/2}: the real for even
/// j.
template <int bits>
ASTERISM_HOST_DEVICE constexpr int dct3_place(int k) {
  return k % 2 == 0 ? k / 2 : (1 << bits) - 1 - k / 2;
}

/// How many points of how many lines a block has, one line at least, and how many threads for each 128 of them. Those of all
/// kinds are the fastest of some twenty tried on an H200 for each length from 64 to 16,384, or within 3 %, and so are
/// most_threads and least_blocks, which bound the registers of a thread.
struct KernelShape {
  int points, threads_per_128_points;
};

/// dst2-4, dct2-4, dft and idft of n = 2^bits points, bits >= 2.
template <class T, int bits>
struct EvenKinds {
  static constexpr int n = 1 << bits, M = n / 2, points = n;
  static constexpr int numbers = M;  ///< complex ones per line
  /// In float64 smaller radices, hence fewer registers and more threads, take 0.98 (8192 points) to 0.88
  /// (512, side by side) of the time with radix 16 on an H200; in float32 there are registers enough.
  static constexpr int most_radix = sizeof(Scalar<T>) == 8 ? 3 : 4;
  /// See KernelShape.
  static constexpr int most_threads = 512, least_blocks = sizeof(Scalar<T>) == 8 ? 2 : 1;
  static constexpr KernelShape contiguous =
      sizeof(Scalar<T>) == 8 ? KernelShape{1024, bits < 10 ? 16 : 8} : KernelShape{2048, bits == 10 ? 6 : bits < 14 ? 4 : 2};
  static constexpr KernelShape side_by_side =
      sizeof(Scalar<T>) == 8 ? KernelShape{bits < 9 ? 2048 : bits < 10 ? 4096 : bits < 12 ? 8192 : 16'384, bits < 9 ? 16 : 8}
                     : KernelShape{bits < 9 ? 4096 : bits < 10 ? 8192 : bits < 12 ? 16'384 : 32'768,
                                   bits < 9 ? 6 : bits < 10 ? 4 : 3};
  static constexpr int fft_bits = bits - 1, passes = pass_count(fft_bits, most_radix), phases = passes + 2;
  /// A thread takes so many points, so far apart: their places differ in three bits, for all of them alike.
  static constexpr int together = bits < 6 ? 1 : 8, apart = n / together;

  template <int phase, class Lines>
  ASTERISM_HOST_DEVICE static void run(const Lines& lines, Transform kind, Complex<T>* shared, const Tables<Scalar<T>>& tables,
                                       int thread, int threads) {
    if constexpr (phase == 0)
      load(lines, kind, shared, tables.numbers, thread, threads);
    else if constexpr (phase <= passes)
      transform<phase - 1>(lines, shared, tables.numbers, thread, threads);
    else
      store(lines, kind, shared, tables.numbers, thread, threads);
  }

 private:
  template <int pass>
  ASTERISM_HOST_DEVICE static void transform(const BlockLines<T>& lines, Complex<T>* shared,
                                             const Complex<Scalar<T>>* tables, int thread, int threads) {
    constexpr int log_count = fft_bits - pass_radix(fft_bits, most_radix, pass);
    for (int i = thread; i < 1 << (log_count + lines.log_lines); i += threads)
      fft_butterfly<fft_bits, most_radix, pass>(shared + (i >> log_count) * lines.pitch,
                                                i & ((1 << log_count) - 1),
                                                tables + LineTables::fft(fft_bits, most_radix));
  }

  ASTERISM_HOST_DEVICE static constexpr int place_of(int k) {
    return slot<T>(fft_place<fft_bits, most_radix>(k));
  }

  ASTERISM_HOST_DEVICE static const Complex<Scalar<T>>* pairs(Transform kind, const Complex<Scalar<T>>* tables) {
    return tables + (kind == Transform::dft || kind == Transform::idft ? LineTables::fourier(bits)
                                                                       : LineTables::cosine(bits));
  }

  template <class Lines>
  ASTERISM_HOST_DEVICE static void load(const Lines& lines, Transform kind, Complex<T>* shared,
                                        const Complex<Scalar<T>>* tables, int thread, int threads) {
    switch (kind) {
      case Transform::dft:
      case Transform::dct2:
      case Transform::dst2: {
        const bool fourier = kind == Transform::dft, sine = kind == Transform::dst2;
        lines.for_each(apart, thread, threads, [&](int line, int i) {
          const int j = fourier ? i : i % 2 == 0 ? i / 2 : n - 1 - i / 2;
          T* const pair = reinterpret_cast<T*>(shared + line * lines.pitch) + j % 2;
          const int at = slot<T>(j / 2);
          const T* const source = lines.source(line, i);
          const Index step = Index{apart} * lines.from_stride;
          T x[together];
          ASTERISM_UNROLL
          for (int a = 0; a < together; ++a) x[a] = source[a * step];
          ASTERISM_UNROLL
          for (int a = 0; a < together; ++a)
            pair[2 * (at ^ (fourier ? slot<T>(a * apart / 2) : slot<T>(a * apart / 4)))] =
                sine && i % 2 != 0 ? -x[a] : x[a];
        });
        break;
      }
      case Transform::idft:
      case Transform::dct3:
      case Transform::dst3: {
        const bool fourier = kind == Transform::idft;
        const Complex<Scalar<T>>* const c_and_d = pairs(kind, tables);
        const bool reverse = kind == Transform::dst3;
        lines.for_each(M / 2 + 1, thread, threads, [&](int line, int k) {
          const auto x = [&](int i) { return *lines.source(line, reverse ? n - 1 - i : i); };
          const T at_k = x(k), at_n_k = k == 0 ? T{0} : x(n - k), at_M_k = x(M - k), at_Mk = x(M + k);
          const Halves<T> halves = fourier ? Halves<T>{{at_k, at_n_k}, {at_M_k, k == 0 ? T{0} : -at_Mk}}
                                           : dct3_halves(at_k, at_n_k, at_M_k, at_Mk);
          put(shared + line * lines.pitch, k, join_spectrum(halves, c_and_d + 2 * k));
        });
        break;
      }
      default: {  // dct4, dst4
        const bool sine = kind == Transform::dst4;
        const Complex<Scalar<T>>* const r = tables + LineTables::fourth(bits);
        lines.for_each(M / 2, thread, threads, [&](int line, int j) {
          const T a = *lines.source(line, 2 * j), b = *lines.source(line, 2 * j + 1),
                  c = *lines.source(line, n - 2 - 2 * j), d = *lines.source(line, n - 1 - 2 * j);
          Complex<T>* const z = shared + line * lines.pitch;
          z[slot<T>(j)] = r[j] * (sine ? Complex<T>{d, a} : Complex<T>{a, d});
          z[slot<T>(M - 1 - j)] = r[M - 1 - j] * (sine ? Complex<T>{b, c} : Complex<T>{c, b});
        });
      }
    }
  }

  ASTERISM_HOST_DEVICE static void put(Complex<T>* z, int k, Halves<T> numbers_k_and_M_k) {
    z[slot<T>(k)] = numbers_k_and_M_k.F;
    if (k > 0) z[slot<T>(M - k)] = numbers_k_and_M_k.H;
  }

  template <class Lines>
  ASTERISM_HOST_DEVICE static void store(const Lines& lines, Transform kind, const Complex<T>* shared,
                                         const Complex<Scalar<T>>* tables, int thread, int threads) {
    switch (kind) {
      case Transform::dft:
      case Transform::dct2:
      case Transform::dst2: {
        const bool fourier = kind == Transform::dft;
        const Complex<Scalar<T>>* const c_and_d = pairs(kind, tables);
        lines.for_each(M / 2 + 1, thread, threads, [&](int line, int k) {
          const Complex<T>* const z = shared + line * lines.pitch;
          Halves<T> y = split_spectrum(z[place_of(k)], z[place_of((M - k) % M)], c_and_d + 2 * k);
          if (fourier)
            y = {{y.F.re / 2, -y.F.im / 2}, {y.H.re / 2, -y.H.im / 2}};
          else
            y.H = eighth_turn(y.H);
          const auto put_output = [&](int i, T value) {
            *lines.target(line, kind == Transform::dst2 ? n - 1 - i : i) = value;
          };
          put_output(k, y.F.re);
          if (k > 0) put_output(n - k, -y.F.im);
          put_output(M - k, y.H.re);
          if (k > 0) put_output(M + k, y.H.im);
        });
        break;
      }
      case Transform::idft:
      case Transform::dct3:
      case Transform::dst3: {
        const bool fourier = kind == Transform::idft, sine = kind == Transform::dst3;
        lines.for_each(apart, thread, threads, [&](int line, int i) {
          const int j = fourier ? i : dct3_place<bits>(i);
          const T* const pair = reinterpret_cast<const T*>(shared + line * lines.pitch) + j % 2;
          const int at = place_of(j / 2);
          const bool negative = (j % 2 != 0) != (sine && i % 2 != 0);
          T* const target = lines.target(line, i);
          const Index step = Index{apart} * lines.to_stride;
          ASTERISM_UNROLL
          for (int a = 0; a < together; ++a) {
            const int turn = fourier ? place_of(a * apart / 2) : place_of(a * apart / 4);
            const T y = pair[2 * (at ^ turn)];
            target[a * step] = negative ? -y : y;
          }
        });
        break;
      }
      default: {  // dct4, dst4
        const Complex<Scalar<T>>* const r = tables + LineTables::fourth(bits);
        lines.for_each(apart, thread, threads, [&](int line, int i) {
          const int k = i % 2 == 0 ? i / 2 : (n - 1 - i) / 2, at = place_of(k);
          // The alternating sign of the sine transform (T8) undoes that of (T10).
          const bool negative = i % 2 != 0 && kind == Transform::dct4;
          T* const target = lines.target(line, i);
          const Index step = Index{apart} * lines.to_stride;
          ASTERISM_UNROLL
          for (int a = 0; a < together; ++a) {
            const int turn = place_of(a * apart / 2);
            const Complex<T> y = r[k ^ (a * apart / 2)] * shared[line * lines.pitch + (at ^ turn)];
            target[a * step] = 2 * (i % 2 == 0 ? y.re : negative ? -y.im : y.im);
          }
        });
      }
    }
  }
};

}  // namespace asterism::transforms
