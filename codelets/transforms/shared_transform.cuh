/// \file
/// The phases of `line_transform`: what each thread of a block does between two barriers. They run on the
/// host too, phase after phase and thread after thread.
///
/// dct2 and dft of n = 2 M points: with z_j = v_{2j} + i v_{2j+1}, where v is x for dft and (T5)'s for dct2,
/// Z = DFT_M(z), A = Z_k, B = conj Z_{M-k}, w = exp(-2 pi i k / n), 0 <= k <= M/2,
///
///     F = P - Q,   H = P + Q,   P = c (A + B),   Q = i d (A - B),   d = c w,                       (L1)
///
/// are F = 2 X_k and H = 2 conj X_{M-k} with c = 1, and with c = exp(-i pi k / 2n)
///
///     F = Y_k - i Y_{n-k},   exp(i pi / 4) H = Y_{M-k} + i Y_{M+k}.                                (L2)
///
/// idft and dct3 take the same steps back: F and H are made of the numbers given, and z = conj DFT_M(conj Z),
///
///     Z_k = S - R,   conj Z_{M-k} = S + R,   S = conj(c) (F + H),   R = i conj(d) (H - F)          (L3)
///
/// with F = Y_k - i Y_{n-k}, H = exp(-i pi / 4) (Y_{M-k} + i Y_{M+k}) for dct3, and F = X_k, H = conj X_{M-k}
/// for idft.
///
/// dct4, with r_j = exp(-i pi (8j+1) / 8n):
///
///     T = DFT_M( r_j (x_{2j} + i x_{n-1-2j}) ),
///     Y_{2k} = 2 Re(r_k T_k),   Y_{n-1-2k} = -2 Im(r_k T_k).                                       (L4)
///
/// dst1 and dct1: (T2) and (T4) do twice the arithmetic that is necessary, since each output is there twice.
/// With N = n + 1 or n - 1 and e, s as there, the outputs of even and of odd numbers are transforms too:
///
///     dst1:  Y_{2l} = dst1(e_1 ... e_{N/2-1})_l,   Y_{2l+1} = dst3(s_1 ... s_{N/2})_l,
///     dct1:  Y_{2l} = dct1(s_0 ... s_{N/2})_l,     Y_{2l+1} = dct3(e_0 ... e_{N/2-1})_l            (L5)
///
/// (l of dst1 and of its dst1 counted from 1). That is done `levels` times, and (T2) or
/// (T4) for the rest, where the mean (T3) is left out: it would be that of a quarter of the outputs.
#pragma once

#include "shared_fft.cuh"

namespace asterism::transforms::cuda {

/// The lines of a block, a power of two of them in shared memory, `present` of them in the array: so far
/// apart, and with points so far apart.
template <class T>
struct BlockLines {
  const T* from;
  T* to;
  Index from_step, to_step;
  int from_stride, to_stride;
  int present, log_lines;
  bool side_by_side;  ///< then neighbouring threads take neighbouring lines, else neighbouring points
  int pitch;          ///< of the lines in shared memory, in complex numbers

  ASTERISM_HOST_DEVICE const T* source(int line, int j) const {
    return from + line * from_step + Index{j} * from_stride;
  }
  ASTERISM_HOST_DEVICE T* target(int line, int j) const { return to + line * to_step + Index{j} * to_stride; }

  /// Calls use(line, i) for the thread's share of i = 0 ... count - 1 for every present line.
  template <class Use>
  ASTERISM_HOST_DEVICE void for_each(unsigned count, int thread, int threads, Use use) const {
    for (unsigned i = static_cast<unsigned>(thread); i < count << log_lines;
         i += static_cast<unsigned>(threads)) {
      const unsigned line = side_by_side ? i & ((1U << log_lines) - 1) : i / count,
                     place = side_by_side ? i >> log_lines : i % count;
      if (static_cast<int>(line) < present) use(static_cast<int>(line), static_cast<int>(place));
    }
  }
};

/// The tables of one precision, for all lengths up to 2^max_bits: one after another those of the FFTs with
/// radices up to 16 and up to 8, then for lines of 2^bits points c and d of (L1) for dct2 and dft, r of (L4),
/// and the rotations of (T2) for N = 2^bits.
struct LineTables {
  static constexpr int max_bits = 15;

  static constexpr int pairs(int bits) { return (1 << bits) / 4 + 1; }   ///< k = 0 ... n/4
  static constexpr int fourths(int bits) { return (1 << bits) / 2; }     ///< j = 0 ... n/2 - 1
  static constexpr int halves(int bits) { return (1 << bits) / 2 + 1; }  ///< j = 0 ... N/2

  static constexpr int fft(int bits, int most) {
    int start = most == 4 ? 0 : fft(max_bits + 1, 4);
    for (int b = 0; b < bits; ++b) start += fft_rotations(b, most);
    return start;
  }
  static constexpr int cosine(int bits) { return fft(max_bits + 1, 3) + 2 * sum(bits, pairs); }
  static constexpr int fourier(int bits) { return cosine(max_bits + 1) + 2 * sum(bits, pairs); }
  static constexpr int fourth(int bits) { return fourier(max_bits + 1) + sum(bits, fourths); }
  static constexpr int first(int bits) { return fourth(max_bits + 1) + sum(bits, halves); }
  static constexpr int size() { return first(max_bits + 1); }

  static constexpr int sum(int bits, int (*of)(int)) {
    int total = 0;
    for (int b = 0; b < bits; ++b) total += of(b);
    return total;
  }

  template <class T>
  static std::vector<Complex<T>> make() {
    std::vector<Complex<T>> table;
    table.reserve(size());
    for (const int most : {4, 3})
      for (int b = 0; b <= max_bits; ++b) append_fft_rotations(table, b, most);
    for (int b = 0; b <= max_bits; ++b)
      for (Index k = 0, n = Index{1} << b; k < pairs(b); ++k) {
        table.push_back(unit_number<T>(k, 2 * n));
        table.push_back(unit_number<T>(5 * k, 2 * n));
      }
    for (int b = 0; b <= max_bits; ++b)
      for (Index k = 0, n = Index{1} << b; k < pairs(b); ++k) {
        table.push_back({1, 0});
        table.push_back(unit_number<T>(2 * k, n));
      }
    for (int b = 0; b <= max_bits; ++b)
      for (Index j = 0, n = Index{1} << b; j < fourths(b); ++j)
        table.push_back(unit_number<T>(8 * j + 1, 8 * n));
    for (int b = 0; b <= max_bits; ++b)
      for (Index j = 0, N = Index{1} << b; j < halves(b); ++j) table.push_back(conj(unit_number<T>(j, N)));
    return table;
  }
};

template <class T>
struct Halves {
  Complex<T> F, H;
};

/// (L1)
template <class T>
ASTERISM_HOST_DEVICE inline Halves<T> split_spectrum(Complex<T> Z, Complex<T> mirror,
                                                     const Complex<T>* c_and_d) {
  const Complex<T> B = conj(mirror), P = c_and_d[0] * (Z + B), Q = times_i(c_and_d[1] * (Z - B));
  return {P - Q, P + Q};
}

/// (L3), conjugate: what DFT_M is to transform.
/// @return in F number k, in H number M - k
template <class T>
ASTERISM_HOST_DEVICE inline Halves<T> join_spectrum(Halves<T> x, const Complex<T>* c_and_d) {
  const Complex<T> S = c_and_d[0] * conj(x.F + x.H), R = times_minus_i(c_and_d[1] * conj(x.H - x.F));
  return {S - R, conj(S + R)};
}

/// F and H of (L3) for dct3, from its inputs number k, n - k (0 for k = 0), M - k and M + k.
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

/// dst2-4, dct2-4, dft and idft of n = 2^bits points, bits >= 2.
template <class T, int bits>
struct EvenKinds {
  static constexpr int n = 1 << bits, M = n / 2;
  static constexpr int numbers = M;  ///< complex ones per line
  /// In float64 smaller radices, hence fewer registers and more threads, take 0.98 (8192 points) to 0.88
  /// (512, side by side) of the time with radix 16 on an H200; in float32 there are registers enough.
  static constexpr int most_radix = sizeof(T) == 8 ? 3 : 4;
  /// The fastest of those tried on an H200, or within 5 %, for lengths from 64 to 16,384: see block_shape.
  static constexpr int most_threads = sizeof(T) == 8 ? 512 : 1024, least_blocks = sizeof(T) == 8 ? 2 : 1;
  static constexpr int threads_per_128_points = sizeof(T) == 8 ? 8 : 4,
                       few_points = sizeof(T) == 8 ? 1024 : 2048;
  static constexpr int fft_bits = bits - 1, passes = pass_count(fft_bits, most_radix), phases = passes + 2;
  /// A thread takes so many points, so far apart: their places differ in three bits, for all of them alike.
  static constexpr int together = bits < 6 ? 1 : 8, apart = n / together;

  template <int phase>
  ASTERISM_HOST_DEVICE static void run(const BlockLines<T>& lines, Transform kind, Complex<T>* shared,
                                       const Complex<T>* tables, int thread, int threads) {
    if constexpr (phase == 0)
      load(lines, kind, shared, tables, thread, threads);
    else if constexpr (phase <= passes)
      transform<phase - 1>(lines, shared, tables, thread, threads);
    else
      store(lines, kind, shared, tables, thread, threads);
  }

 private:
  template <int pass>
  ASTERISM_HOST_DEVICE static void transform(const BlockLines<T>& lines, Complex<T>* shared,
                                             const Complex<T>* tables, int thread, int threads) {
    constexpr int log_count = fft_bits - pass_radix(fft_bits, most_radix, pass);
    for (int i = thread; i < 1 << (log_count + lines.log_lines); i += threads)
      fft_butterfly<fft_bits, most_radix, pass>(shared + (i >> log_count) * lines.pitch,
                                                i & ((1 << log_count) - 1),
                                                tables + LineTables::fft(fft_bits, most_radix));
  }

  ASTERISM_HOST_DEVICE static constexpr int place_of(int k) {
    return slot<T>(fft_place<fft_bits, most_radix>(k));
  }

  ASTERISM_HOST_DEVICE static const Complex<T>* pairs(Transform kind, const Complex<T>* tables) {
    return tables + (kind == Transform::dft || kind == Transform::idft ? LineTables::fourier(bits)
                                                                       : LineTables::cosine(bits));
  }

  ASTERISM_HOST_DEVICE static void load(const BlockLines<T>& lines, Transform kind, Complex<T>* shared,
                                        const Complex<T>* tables, int thread, int threads) {
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
        const Complex<T>* const c_and_d = pairs(kind, tables);
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
        const Complex<T>* const r = tables + LineTables::fourth(bits);
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

  ASTERISM_HOST_DEVICE static void store(const BlockLines<T>& lines, Transform kind, const Complex<T>* shared,
                                         const Complex<T>* tables, int thread, int threads) {
    switch (kind) {
      case Transform::dft:
      case Transform::dct2:
      case Transform::dst2: {
        const bool fourier = kind == Transform::dft;
        const Complex<T>* const c_and_d = pairs(kind, tables);
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
        const Complex<T>* const r = tables + LineTables::fourth(bits);
        lines.for_each(apart, thread, threads, [&](int line, int i) {
          const int k = i % 2 == 0 ? i / 2 : (n - 1 - i) / 2, at = place_of(k);
          // The alternating sign of the sine transform (T8) undoes that of (L4).
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

/// Elements j and N - j of the sequence that (T2) and (T4) transform.
template <class T>
struct FoldedPair {
  Complex<T> at_j, at_mirror;
};

/// @param x,mirror x_j and x_{N-j}
/// @param rotation exp(i pi j / N)
template <class T>
ASTERISM_HOST_DEVICE inline FoldedPair<T> dst_fold(T x, T mirror, Complex<T> rotation) {
  const T e = x - mirror, s = x + mirror, c = s * rotation.re, d = s * rotation.im;
  return {{-c, d + e}, {c, d - e}};
}
template <class T>
ASTERISM_HOST_DEVICE inline FoldedPair<T> dct_fold(T x, T mirror, Complex<T> rotation) {
  const T s = x + mirror, e = x - mirror, c = e * rotation.re, d = e * rotation.im;
  return {{s + d, c}, {s - d, c}};
}

/// How often (L5) splits lines of N = 2^bits. Milliseconds on an H200 with one, two and three times: 8191
/// lines of 8191 points 0.51, 0.44, 0.8 (registers spilled) in float64 and 0.28, 0.26, 0.28 in float32; 511^2
/// lines of 511 0.76, 0.68, 1.4 in float64.
constexpr int split_levels(int bits) { return bits < 4 ? 0 : 2; }

/// dst1 (N = n + 1) and dct1 (N = n - 1), N = 2^bits, bits >= 2.
template <class T, int bits>
struct FirstKinds {
  static constexpr int N = 1 << bits, levels = split_levels(bits);
  static constexpr int rest_bits = bits - levels;  ///< N of the transform that (T2) or (T4) does
  /// log2 of the length of the dst3 or dct3 of (L5), level = 1 ... levels.
  static constexpr int odd_bits(int level) { return bits - level; }
  /// Where their complex numbers start: N/4 of the first level, N/8 of the second ..., then the rest.
  static constexpr int odd_start(int level) { return N / 2 - (N >> level); }
  static constexpr int rest_start = levels == 0 ? 0 : N / 2 - (N >> (levels + 1));
  static constexpr int numbers = rest_start + (1 << rest_bits);  ///< complex ones per line
  /// As in EvenKinds. With smaller radices, or fewer registers than 128 and 80, float64 and float32 want 1.1
  /// to 1.2 times as long.
  static constexpr int most_radix = 4, most_threads = sizeof(T) == 8 ? 512 : 768, least_blocks = 1;
  static constexpr int threads_per_128_points = sizeof(T) == 8 ? 4 : 3;
  static constexpr int few_points = sizeof(T) == 4 ? 4096 : bits < 9 ? 1024 : 2048;
  static constexpr int passes = pass_count(rest_bits, most_radix), phases = passes + 2;

  template <int phase>
  ASTERISM_HOST_DEVICE static void run(const BlockLines<T>& lines, Transform kind, Complex<T>* shared,
                                       const Complex<T>* tables, int thread, int threads) {
    if constexpr (phase == 0)
      load(lines, kind, shared, tables, thread, threads);
    else if constexpr (phase <= passes)
      transform<phase - 1, 1>(lines, shared, tables, thread, threads);
    else
      store(lines, kind, shared, thread, threads);
  }

 private:
  /// A thread takes the x_j that (L5) and (T2) bring together: x[a] at place(a, k), a = 0 ... group - 1,
  /// which are multiples of N / group * 2, plus and minus k. The mirror of x[a] is x[group - 1 - a].
  static constexpr int group = 4 << levels;
  ASTERISM_HOST_DEVICE static constexpr int place(int a, int k) {
    constexpr int step = 2 * N / group;
    return a % 2 == 0 ? a / 2 * step + k : (a + 1) / 2 * step - k;
  }

  ASTERISM_HOST_DEVICE static void load(const BlockLines<T>& lines, Transform kind, Complex<T>* shared,
                                        const Complex<T>* tables, int thread, int threads) {
    const bool sine = kind == Transform::dst1;
    lines.for_each(N / group + 1, thread, threads, [&](int line, int k) {
      T x[group];
      const int zero = sine ? -1 : 0;  // where x_0 is, or would be
      const T* const plus = lines.source(line, zero + k);
      const T* const minus = lines.source(line, zero - k);
      const Index step = Index{2 * N / group} * lines.from_stride;
      ASTERISM_UNROLL
      for (int a = 0; a < group; ++a) {
        const bool is_end = (a == 0 || a == group - 1) && k == 0;  // x_0 and x_N of a dst1 are zeros
        x[a] = sine && is_end ? T{0} : a % 2 == 0 ? plus[a / 2 * step] : minus[(a + 1) / 2 * step];
      }
      fold<1>(x, k, sine, shared + line * lines.pitch, tables);
    });
  }

  /// (L5), from the level on.
  template <int level>
  ASTERISM_HOST_DEVICE static void fold(T* x, int k, bool sine, Complex<T>* z, const Complex<T>* tables) {
    if constexpr (level <= levels) {
      constexpr int n = 1 << odd_bits(level), M = n / 2, half = group >> level;
      const Complex<T>* const c_and_d = tables + LineTables::cosine(odd_bits(level));
      T odd[half];
      ASTERISM_UNROLL
      for (int a = 0; a < half; ++a) {
        const T sum = x[a] + x[2 * half - 1 - a], difference = x[a] - x[2 * half - 1 - a];
        odd[a] = sine ? sum : difference;
        x[a] = sine ? difference : sum;
      }
      ASTERISM_UNROLL
      for (int a = 0; a < half / 4; ++a) {
        const int i = place(a, k);
        const T at_i = odd[a], at_M_i = odd[half / 2 - 1 - a], at_Mi = odd[half / 2 + a],
                at_n_i = odd[half - 1 - a];
        // (T8): dst3 is the dct3 of the numbers reversed, and s_j is its number n - j.
        const Halves<T> halves =
            sine ? dct3_halves(at_n_i, at_i, at_Mi, at_M_i) : dct3_halves(at_i, at_n_i, at_M_i, at_Mi);
        const Halves<T> Z = join_spectrum(halves, c_and_d + 2 * i);
        z[odd_start(level) + slot<T>(i)] = Z.F;
        if (i > 0) z[odd_start(level) + slot<T>(M - i)] = Z.H;
      }
      fold<level + 1>(x, k, sine, z, tables);
    } else {
      const Complex<T>* const rotations = tables + LineTables::first(rest_bits);
      ASTERISM_UNROLL
      for (int a = 0; a < 2; ++a) {
        const int j = place(a, k);
        const FoldedPair<T> pair =
            sine ? dst_fold(x[a], x[3 - a], rotations[j]) : dct_fold(x[a], x[3 - a], rotations[j]);
        z[rest_start + slot<T>(j)] = pair.at_j;
        if (j > 0) z[rest_start + slot<T>((1 << rest_bits) - j)] = pair.at_mirror;
      }
    }
  }

  /// A pass over the lines of this level and those below.
  template <int pass, int level>
  ASTERISM_HOST_DEVICE static void transform(const BlockLines<T>& lines, Complex<T>* shared,
                                             const Complex<T>* tables, int thread, int threads) {
    constexpr bool is_rest = level > levels;
    constexpr int fft_bits = is_rest ? rest_bits : odd_bits(level) - 1;
    if constexpr (pass < pass_count(fft_bits, most_radix)) {
      constexpr int start = is_rest ? rest_start : odd_start(level),
                    log_count = fft_bits - pass_radix(fft_bits, most_radix, pass);
      const int all = 1 << (log_count + lines.log_lines);
      for (; thread < all; thread += threads)
        fft_butterfly<fft_bits, most_radix, pass>(shared + (thread >> log_count) * lines.pitch + start,
                                                  thread & ((1 << log_count) - 1),
                                                  tables + LineTables::fft(fft_bits, most_radix));
      thread -= all;  // the next level's first butterflies are for the threads that have no more of these
    }
    if constexpr (!is_rest) transform<pass, level + 1>(lines, shared, tables, thread, threads);
  }

  /// Where output k is, and those that are `apart` further on each: turn[i] leads 2^i of them on.
  struct Source {
    const T* numbers;
    int at, turn[3];
    bool negative;

    ASTERISM_HOST_DEVICE T output(int a) const {
      int place = at;
      ASTERISM_UNROLL
      for (int i = 0; i < 3; ++i) place ^= a >> i & 1 ? turn[i] : 0;
      return negative ? -numbers[place] : numbers[place];
    }
  };

  /// A thread makes so many outputs, so far apart: they are of one level, and their places differ in three
  /// bits.
  static constexpr int together = bits < 7 ? 1 : 8, apart = N / together;

  /// @param k of the level's transform
  template <int level>
  ASTERISM_HOST_DEVICE static Source source(const Complex<T>* z, int k, bool sine) {
    Source s;
    if constexpr (level <= levels) {
      if (k % 2 == 0) return source<level + 1>(z, k / 2, sine);
      constexpr int fft_bits = odd_bits(level) - 1;
      const int l = k / 2, j = dct3_place<odd_bits(level)>(l);
      s.numbers = reinterpret_cast<const T*>(z + odd_start(level));
      s.at = 2 * slot<T>(fft_place<fft_bits, most_radix>(j / 2)) + j % 2;
      for (int i = 0; i < 3; ++i)
        s.turn[i] = 2 * slot<T>(fft_place<fft_bits, most_radix>(apart >> (level + 2) << i));
      s.negative = (j % 2 != 0) != (sine && l % 2 != 0);
    } else {
      s.numbers = reinterpret_cast<const T*>(z + rest_start);
      s.at = 2 * slot<T>(fft_place<rest_bits, most_radix>(k / 2)) + k % 2;
      for (int i = 0; i < 3; ++i)
        s.turn[i] = 2 * slot<T>(fft_place<rest_bits, most_radix>(apart >> (levels + 1) << i));
      s.negative = false;
    }
    return s;
  }

  ASTERISM_HOST_DEVICE static void store(const BlockLines<T>& lines, Transform kind, const Complex<T>* shared,
                                         int thread, int threads) {
    const bool sine = kind == Transform::dst1;
    lines.for_each(apart, thread, threads, [&](int line, int k) {
      const Complex<T>* const z = shared + line * lines.pitch;
      const Source from = source<1>(z, k, sine);
      T* const target = lines.target(line, k - (sine ? 1 : 0));
      const Index step = Index{apart} * lines.to_stride;
      ASTERISM_UNROLL
      for (int a = 0; a < together; ++a)
        if (a > 0 || !sine || k > 0) target[a * step] = from.output(a);
      if (!sine && k == 0) *lines.target(line, N) = source<1>(z, N, sine).output(0);
    });
  }
};

}  // namespace asterism::transforms::cuda
