/// \file
/// The phases of `line_transform` for kind I, as even_kinds.cuh has them for the others. Cores run them, too, with a line in
/// each lane of a register (lanes/in_lanes.cpp).
///
/// dst1 and dct1: (T2) and (T4) do twice the arithmetic that is necessary, since each output is there twice. So (T9) is
/// done `levels` times, and (T2) or (T4) for the rest, where the mean (T3) is left out: it would be that of a quarter of the
/// outputs.
#pragma once

#include "even_kinds.cuh"

namespace asterism::transforms {

/// Elements j and N - j of the sequence that (T2) and (T4) transform.
template <class T>
struct FoldedPair {
  Complex<T> at_j, at_mirror;
};

/// @param x,mirror x_j and x_{N-j}
/// @param rotation exp(i pi j / N)
template <class T>
ASTERISM_HOST_DEVICE inline FoldedPair<T> dst_fold(T x, T mirror, Complex<Scalar<T>> rotation) {
  const T e = x - mirror, s = x + mirror, c = s * rotation.re, d = s * rotation.im;
  return {{-c, d + e}, {c, d - e}};
}
template <class T>
ASTERISM_HOST_DEVICE inline FoldedPair<T> dct_fold(T x, T mirror, Complex<Scalar<T>> rotation) {
  const T s = x + mirror, e = x - mirror, c = e * rotation.re, d = e * rotation.im;
  return {{s + d, c}, {s - d, c}};
}

/// How often (T9) splits lines of N = 2^bits. Milliseconds on an H200 with one, two and three times: 8191
/// lines of 8191 points 0.51, 0.44, 0.8 (registers spilled) in float64 and 0.28, 0.26, 0.28 in float32; 511^2
/// lines of 511 0.76, 0.68, 1.4 in float64.
constexpr int split_levels(int bits) { return bits < 4 ? 0 : 2; }

/// dst1 (N = n + 1) and dct1 (N = n - 1), N = 2^bits, bits >= 2.
template <class T, int bits>
struct FirstKinds {
  static constexpr int N = 1 << bits, levels = split_levels(bits);
  static constexpr int points = N - 1;  ///< of a line of dst1; dct1 has two more
  static constexpr int rest_bits = bits - levels;  ///< N of the transform that (T2) or (T4) does
  /// log2 of the length of the dst3 or dct3 of (T9), level = 1 ... levels.
  static constexpr int odd_bits(int level) { return bits - level; }
  /// Where their complex numbers start, behind the rest: N/4 of the first level, N/8 of the second. All at multiples of their
  /// number, so that places differ as slots do.
  static constexpr int odd_start(int level) { return (1 << rest_bits) + N / 2 - (N >> level); }
  static constexpr int numbers = odd_start(levels + 1);  ///< complex ones per line
  /// The slots of the rest differ by this, so that fewer outputs that lie side by side, one in four of them of the rest,
  /// meet in a bank: 2.0 in a turn instead of 2.5 (8191 points in float64), 2.0 instead of 3.0 (float32).
  static constexpr int rest_skew = rest_bits < 4 ? 0 : sizeof(Scalar<T>) == 8 ? 5 : 10;
  /// As in EvenKinds. With smaller radices, or fewer registers than 128 and 80, float64 and float32 want 1.1
  /// to 1.2 times as long.
  static constexpr int most_radix = 4, most_threads = sizeof(Scalar<T>) == 8 ? 512 : 768, least_blocks = 1;
  static constexpr KernelShape contiguous =
      sizeof(Scalar<T>) == 8 ? KernelShape{bits < 9 ? 1024 : 2048, 4}
                     : KernelShape{bits < 10 ? 2048 : 4096,
                                   bits < 9 ? 6 : bits < 10 ? 8 : bits < 13 ? 4 : bits < 14 ? 2 : 3};
  static constexpr KernelShape side_by_side =
      sizeof(Scalar<T>) == 8 ? KernelShape{bits < 7 ? 2048 : bits < 9 ? 4096 : bits < 11 ? 8192 : 16'384, 4}
                     : KernelShape{bits < 7 ? 4096 : bits < 9 ? 8192 : bits < 11 ? 16'384 : 32'768, 3};
  static constexpr int passes = pass_count(rest_bits, most_radix), phases = passes + 2;

  static void append_places(std::vector<OutputPlace>& table) {
    for (int k = 0; k < apart; ++k) {
      const Source of_dst1 = source<1>(k, true), of_dct1 = source<1>(k, false);
      table.push_back(OutputPlace::of(of_dst1.place, of_dst1.negative, of_dct1.negative));
    }
  }

  template <int phase, class Lines>
  ASTERISM_HOST_DEVICE static void run(const Lines& lines, Transform kind, Complex<T>* shared, const Tables<Scalar<T>>& tables,
                                       int thread, int threads) {
    if constexpr (phase == 0) {
      if (kind == Transform::dst1)
        load<true>(lines, shared, tables.numbers, thread, threads);
      else
        load<false>(lines, shared, tables.numbers, thread, threads);
    } else if constexpr (phase <= passes) {
      transform<phase - 1, 1>(lines, shared, tables.numbers, thread, threads);
    } else {
      if (kind == Transform::dst1)
        store<true>(lines, shared, tables.places, thread, threads);
      else
        store<false>(lines, shared, tables.places, thread, threads);
    }
  }

 private:
  /// A thread takes the x_j that (T9) and (T2) bring together: x[a] at place(a, k), a = 0 ... group - 1,
  /// which are multiples of N / group * 2, plus and minus k. The mirror of x[a] is x[group - 1 - a].
  static constexpr int group = 4 << levels;
  ASTERISM_HOST_DEVICE static constexpr int place(int a, int k) {
    constexpr int step = 2 * N / group;
    return a % 2 == 0 ? a / 2 * step + k : (a + 1) / 2 * step - k;
  }

  template <bool sine, class Lines>
  ASTERISM_HOST_DEVICE static void load(const Lines& lines, Complex<T>* shared, const Complex<Scalar<T>>* tables, int thread,
                                        int threads) {
    lines.for_each(N / group + 1, thread, threads, [&](int line, int k) {
      T x[group];
      constexpr int zero = sine ? -1 : 0;  // where x_0 is, or would be
      const T* const plus = lines.source(line, zero + k);
      const T* const minus = lines.source(line, zero - k);
      const Index step = Index{2 * N / group} * lines.from_stride;
      ASTERISM_UNROLL
      for (int a = 0; a < group; ++a) {
        const bool is_end = (a == 0 || a == group - 1) && k == 0;  // x_0 and x_N of a dst1 are zeros
        x[a] = sine && is_end ? T{0} : a % 2 == 0 ? plus[a / 2 * step] : minus[(a + 1) / 2 * step];
      }
      fold<1, sine>(x, k, Slots(k), shared + line * lines.pitch, tables);
    });
  }

  /// The slots of what a thread makes of its points: slot(place(a, k)) for a = 0 and 1, and slot(n - place(a, k)) for n,
  /// a multiple of 2 N / group. They differ from two slots, those of k and -k, by what slots of multiples do.
  struct Slots {
    int plus, minus;

    ASTERISM_HOST_DEVICE explicit Slots(int k) : plus(slot<T>(k)), minus(slot<T>(step - k)) {}
    [[nodiscard]] ASTERISM_HOST_DEVICE int at(int a) const { return a == 0 ? plus : minus; }
    /// Not for place 0.
    [[nodiscard]] ASTERISM_HOST_DEVICE int mirrored(int n, int a) const {
      return (a == 0 ? minus : plus) ^ slot<T>(n - step);
    }

   private:
    static constexpr int step = 2 * N / group;
    static_assert(levels <= 2, "place(a, k) for a = 0 and 1");
  };

  /// (T9), from the level on.
  template <int level, bool sine>
  ASTERISM_HOST_DEVICE static void fold(T* x, int k, Slots slots, Complex<T>* z, const Complex<Scalar<T>>* tables) {
    if constexpr (level <= levels) {
      constexpr int n = 1 << odd_bits(level), M = n / 2, half = group >> level;
      const Complex<Scalar<T>>* const c_and_d = tables + LineTables::cosine(odd_bits(level));
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
        z[odd_start(level) + slots.at(a)] = Z.F;
        if (i > 0) z[odd_start(level) + slots.mirrored(M, a)] = Z.H;
      }
      fold<level + 1, sine>(x, k, slots, z, tables);
    } else {
      const Complex<Scalar<T>>* const rotations = tables + LineTables::first(rest_bits);
      ASTERISM_UNROLL
      for (int a = 0; a < 2; ++a) {
        const int j = place(a, k);
        const FoldedPair<T> pair =
            sine ? dst_fold(x[a], x[3 - a], rotations[j]) : dct_fold(x[a], x[3 - a], rotations[j]);
        z[slots.at(a) ^ rest_skew] = pair.at_j;
        if (j > 0) z[slots.mirrored(1 << rest_bits, a) ^ rest_skew] = pair.at_mirror;
      }
    }
  }

  /// A pass over the lines of this level and those below.
  template <int pass, int level>
  ASTERISM_HOST_DEVICE static void transform(const BlockLines<T>& lines, Complex<T>* shared,
                                             const Complex<Scalar<T>>* tables, int thread, int threads) {
    constexpr bool is_rest = level > levels;
    constexpr int fft_bits = is_rest ? rest_bits : odd_bits(level) - 1;
    if constexpr (pass < pass_count(fft_bits, most_radix)) {
      constexpr int start = is_rest ? 0 : odd_start(level),
                    log_count = fft_bits - pass_radix(fft_bits, most_radix, pass);
      const int all = 1 << (log_count + lines.log_lines);
      for (; thread < all; thread += threads)
        fft_butterfly<fft_bits, most_radix, pass>(shared + (thread >> log_count) * lines.pitch + start,
                                                  thread & ((1 << log_count) - 1),
                                                  tables + LineTables::fft(fft_bits, most_radix), is_rest ? rest_skew : 0);
      thread -= all;  // the next level's first butterflies are for the threads that have no more of these
    }
    if constexpr (!is_rest) transform<pass, level + 1>(lines, shared, tables, thread, threads);
  }

  /// A thread makes so many outputs, so far apart: they are of one level, and their places differ in three
  /// bits.
  static constexpr int apart = OutputPlace::apart(bits), together = N / apart;

  /// Where output k of the level's transform is, in units of real numbers; and whether it is negative there.
  struct Source {
    int place;
    bool negative;
  };
  template <int level>
  ASTERISM_HOST_DEVICE static constexpr Source source(int k, bool sine) {
    if constexpr (level <= levels) {
      if (k % 2 == 0) return source<level + 1>(k / 2, sine);
      const int l = k / 2, j = dct3_place<odd_bits(level)>(l);
      return {2 * (odd_start(level) + slot<T>(fft_place<odd_bits(level) - 1, most_radix>(j / 2))) + j % 2,
              (j % 2 != 0) != (sine && l % 2 != 0)};
    } else {
      return {2 * (slot<T>(fft_place<rest_bits, most_radix>(k / 2)) ^ rest_skew) + k % 2, false};
    }
  }

  /// By how much the places of outputs differ that are 2^i apart further on: those of the odd level 2 and of the others,
  /// whose FFTs have one length.
  template <int fft_bits>
  ASTERISM_HOST_DEVICE static constexpr unsigned turn(int i) {
    return static_cast<unsigned>(2 * slot<T>(fft_place<fft_bits, most_radix>((1 << fft_bits) / (2 * together) << i)));
  }

  template <bool sine, class Lines>
  ASTERISM_HOST_DEVICE static void store(const Lines& lines, const Complex<T>* shared, const OutputPlace* places, int thread,
                                         int threads) {
    const auto read = [&](int, int k) { return places[OutputPlace::start(bits) + k]; };
    lines.for_each_ahead(apart, thread, threads, read, [&](int line, int k, OutputPlace first) {
      const T* const numbers = reinterpret_cast<const T*>(shared + line * lines.pitch);
      const T sign = first.is_negative(sine) ? T{-1} : T{1};
      T* const target = lines.target(line, k - (sine ? 1 : 0));
      const Index step = Index{apart} * lines.to_stride;
      const bool of_level_2 = levels == 2 && k % 4 == 2;
      unsigned turns[3] = {};
      if constexpr (together > 1) {
        ASTERISM_UNROLL
        for (int i = 0; i < 3; ++i) turns[i] = of_level_2 ? turn<rest_bits - 1>(i) : turn<rest_bits>(i);
      }
      ASTERISM_UNROLL
      for (int a = 0; a < together; ++a) {
        unsigned place = first.place();
        ASTERISM_UNROLL
        for (int i = 0; i < 3; ++i) place ^= a >> i & 1 ? turns[i] : 0;
        if (a > 0 || !sine || k > 0) target[a * step] = sign * numbers[place];
      }
      if (!sine && k == 0) *lines.target(line, N) = numbers[source<1>(N, sine).place];
    });
  }
};

/// For all lengths, as OutputPlace::start says.
template <class T>
std::vector<OutputPlace> output_places() {
  std::vector<OutputPlace> table;
  const auto append = [&]<int... i>(std::integer_sequence<int, i...>) {
    (FirstKinds<T, OutputPlace::least_bits + i>::append_places(table), ...);
  };
  append(std::make_integer_sequence<int, LineTables::max_bits - OutputPlace::least_bits + 1>{});
  return table;
}

}  // namespace asterism::transforms
