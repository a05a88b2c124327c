/// \file
/// The transforms (T1) of lines of any length in shared memory, by the formulas (T2) to (T8) that fold.hpp has: what
/// each thread of a block does between two barriers. The functions run on the host too, phase after phase and
/// thread after thread.
///
/// A line of shared memory holds one line of kind I or IV, whose FFTs are complex, or two lines x and y of the
/// other kinds as real and imaginary parts, as
///
///     DFT(x + i y) = X + i Y,   X_k = conj X_{N-k},   Y_k = conj Y_{N-k}.                          (P1)
#pragma once

#include <type_traits>
#include "../block_lines.cuh"
#include "passes.cuh"

namespace asterism::transforms::cuda {

/// How many lines of a kind share one of shared memory.
ASTERISM_HOST_DEVICE constexpr int lines_together(Transform kind) {
  return fft_kind(kind) == FftKind::complex ? 1 : 2;
}

/// What a block is told besides its lines.
template <class T>
struct AnyLength {
  Transform kind;
  int length;  ///< of the lines
  FftView<T> fft;
  const Complex<T>*fold_rotations, *unfold_rotations;  ///< of fold.hpp; null where there are none
};

/// What one thread of a block does in all phases: 0 ... phases() - 1.
template <class T>
class BlockOfAnyLength {
 public:
  ASTERISM_HOST_DEVICE BlockOfAnyLength(const BlockLines<T>& lines, const AnyLength<T>& plan,
                                        Complex<T>* shared, int thread, int threads)
      : lines_(lines), plan_(plan), shared_(shared), thread_(thread), threads_(threads) {}

  /// Zeros, lines, passes, lines.
  ASTERISM_HOST_DEVICE static int phases(const AnyLength<T>& plan) { return plan.fft.passes + 3; }

  ASTERISM_INLINED void run(int phase) const {
    if (phase == 0)
      clear();
    else if (phase == 1)
      for_kind([this](auto kind) { load<decltype(kind)::value>(); });
    else if (phase < plan_.fft.passes + 2)
      run_pass(plan_.fft.pass[phase - 2]);
    else
      for_kind([this](auto kind) { store<decltype(kind)::value>(); });
  }

 private:
  template <Transform kind>
  struct Kind {
    static constexpr Transform value = kind;
  };

  template <class Use>
  ASTERISM_INLINED void for_kind(Use use) const {
    switch (plan_.kind) {
      case Transform::dst1:
        return use(Kind<Transform::dst1>{});
      case Transform::dst2:
        return use(Kind<Transform::dst2>{});
      case Transform::dst3:
        return use(Kind<Transform::dst3>{});
      case Transform::dst4:
        return use(Kind<Transform::dst4>{});
      case Transform::dct1:
        return use(Kind<Transform::dct1>{});
      case Transform::dct2:
        return use(Kind<Transform::dct2>{});
      case Transform::dct3:
        return use(Kind<Transform::dct3>{});
      case Transform::dct4:
        return use(Kind<Transform::dct4>{});
      case Transform::dft:
        return use(Kind<Transform::dft>{});
      default:
        return use(Kind<Transform::idft>{});
    }
  }

  [[nodiscard]] ASTERISM_HOST_DEVICE int shared_lines() const {
    return (lines_.present + lines_together(plan_.kind) - 1) / lines_together(plan_.kind);
  }

  ASTERISM_HOST_DEVICE void clear() const {
    if (!plan_.fft.padded) return;
    for (int i = thread_; i < shared_lines() * lines_.pitch; i += threads_) shared_[i] = {0, 0};
  }

  ASTERISM_INLINED void run_pass(const Pass& pass) const {
    switch (pass.radix) {
      case 2:
        return run_pass_of<2>(pass);
      case 3:
        return run_pass_of<3>(pass);
      case 4:
        return run_pass_of<4>(pass);
      case 5:
        return run_pass_of<5>(pass);
      case 6:
        return run_pass_of<6>(pass);
      case 7:
        return run_pass_of<7>(pass);
      case 8:
        return run_pass_of<8>(pass);
      case 9:
        return run_pass_of<9>(pass);
      case 10:
        return run_pass_of<10>(pass);
      case 11:
        return run_pass_of<11>(pass);
      case 12:
        return run_pass_of<12>(pass);
      case 13:
        return run_pass_of<13>(pass);
      case 14:
        return run_pass_of<14>(pass);
      case 15:
        return run_pass_of<15>(pass);
      case 16:
        return run_pass_of<16>(pass);
      default:
        return run_pass_of<17>(pass);
    }
  }

  template <int R>
  ASTERISM_INLINED void run_pass_of(const Pass& pass) const {
    switch (pass.kind) {
      case PassKind::forward:
        return run_pass_of<R, PassKind::forward>(pass);
      case PassKind::convolving:
        return run_pass_of<R, PassKind::convolving>(pass);
      default:
        return run_pass_of<R, PassKind::backward>(pass);
    }
  }

  template <int R, PassKind kind>
  ASTERISM_INLINED void run_pass_of(const Pass& pass) const {
    const auto butterflies = static_cast<unsigned>(shared_lines()) * pass.per_line.divisor;
    for (auto i = static_cast<unsigned>(thread_); i < butterflies; i += static_cast<unsigned>(threads_)) {
      const unsigned line = pass.per_line.quotient(i);
      pass_butterfly<kind, R>(shared_line(static_cast<int>(line)), pass, plan_.fft.tables,
                              i - line * pass.per_line.divisor);
    }
  }

  /// Point j of a line, 0 for j = nowhere.
  [[nodiscard]] ASTERISM_HOST_DEVICE T point(int line, Index j) const {
    return j == nowhere ? T{0} : *lines_.source(line, static_cast<int>(j));
  }
  ASTERISM_HOST_DEVICE void put(int line, Index j, T value) const {
    if (j != nowhere) *lines_.target(line, static_cast<int>(j)) = value;
  }
  [[nodiscard]] ASTERISM_HOST_DEVICE static Complex<T> rotation(const Complex<T>* rotations, Index p) {
    return rotations == nullptr ? Complex<T>{1, 0} : rotations[p];
  }
  [[nodiscard]] ASTERISM_HOST_DEVICE Complex<T>* shared_line(int line) const {
    return shared_ + line * lines_.pitch;
  }

  /// The folding of pair p of a line.
  template <Transform kind>
  [[nodiscard]] ASTERISM_HOST_DEVICE auto folded(int line, Index p) const {
    const Index n = plan_.length;
    const PairPlaces from = fold_from(kind, n, p);
    return fold<kind>(n, p, point(line, from.first), point(line, from.second),
                      rotation(plan_.fold_rotations, p));
  }

  template <Transform kind, class Number>
  ASTERISM_HOST_DEVICE void unfold_to_line(int line, Index p, Number u, Number v) const {
    const PairPlaces to = unfold_to(kind, plan_.length, p);
    const Pair<T> outputs =
        unfold<kind>(u, v, rotation(plan_.unfold_rotations, p), rotation(plan_.unfold_rotations, p + 1));
    put(line, to.first, outputs.first);
    put(line, to.second, outputs.second);
  }

  template <Transform kind>
  ASTERISM_INLINED void load() const {
    const Index n = plan_.length;
    const std::uint16_t* const in = plan_.fft.in;
    const auto pairs = static_cast<unsigned>(fold_pairs(kind, n));
    if constexpr (fft_kind(kind) == FftKind::complex) {
      lines_.for_each(pairs, thread_, threads_, [&, this](int line, int p) {
        const PairPlaces to = fold_to(kind, n, p);
        const Pair<Complex<T>> z = folded<kind>(line, p);
        shared_line(line)[in[to.first]] = z.first;
        if (to.second != nowhere) shared_line(line)[in[to.second]] = z.second;
      });
    } else {
      lines_.for_each_pair(pairs, thread_, threads_, [&, this](int pair, int p) {
        const bool both = 2 * pair + 1 < lines_.present;
        const auto x = folded<kind>(2 * pair, p), y = both ? folded<kind>(2 * pair + 1, p) : decltype(x){};
        Complex<T>* const z = shared_line(pair);
        if constexpr (fft_kind(kind) == FftKind::from_real) {
          const PairPlaces to = fold_to(kind, n, p);
          z[in[to.first]] = {x.first, y.first};
          if (to.second != nowhere) z[in[to.second]] = {x.second, y.second};
        } else {  // the conjugate of X + i Y: the conjugate of its DFT is wanted
          const Complex<T> X = x.first, Y = y.first;
          z[in[p]] = {X.re - Y.im, -X.im - Y.re};
          if (p > 0 && 2 * p < n) z[in[n - p]] = {X.re + Y.im, X.im - Y.re};
        }
      });
    }
  }

  template <Transform kind>
  ASTERISM_INLINED void store() const {
    const Index n = plan_.length;
    const std::uint16_t* const out = plan_.fft.out;
    const auto pairs = static_cast<unsigned>(unfold_pairs(kind, n));
    if constexpr (fft_kind(kind) == FftKind::complex) {
      lines_.for_each(pairs, thread_, threads_, [&, this](int line, int p) {
        const PairPlaces from = unfold_from(kind, n, p);
        const Complex<T>* const z = shared_line(line);
        if constexpr (unfolds_real(kind)) {
          const auto number = [=](Index k) { return k % 2 == 0 ? z[out[k / 2]].re : z[out[k / 2]].im; };
          unfold_to_line<kind>(line, p, number(from.first), number(from.second));
        } else {
          unfold_to_line<kind>(line, p, z[out[from.first]],
                               from.second == nowhere ? Complex<T>{0, 0} : z[out[from.second]]);
        }
      });
    } else {
      lines_.for_each_pair(pairs, thread_, threads_, [&, this](int pair, int p) {
        const bool both = 2 * pair + 1 < lines_.present;
        const Complex<T>* const z = shared_line(pair);
        if constexpr (unfolds_real(kind)) {
          const PairPlaces from = unfold_from(kind, n, p);
          const Complex<T> u = z[out[from.first]],
                           v = from.second == nowhere ? Complex<T>{0, 0} : z[out[from.second]];
          unfold_to_line<kind>(2 * pair, p, u.re, v.re);
          if (both) unfold_to_line<kind>(2 * pair + 1, p, -u.im, -v.im);
        } else {  // (P1)
          const Complex<T> Z = z[out[p]], mirror = conj(z[out[p == 0 ? 0 : n - p]]), none{0, 0};
          const Complex<T> sum = Z + mirror, difference = times_minus_i(Z - mirror);
          unfold_to_line<kind>(2 * pair, p, Complex<T>{sum.re / 2, sum.im / 2}, none);
          if (both)
            unfold_to_line<kind>(2 * pair + 1, p, Complex<T>{difference.re / 2, difference.im / 2}, none);
        }
      });
    }
  }

  BlockLines<T> lines_;
  const AnyLength<T>& plan_;
  Complex<T>* shared_;
  int thread_, threads_;
};

}  // namespace asterism::transforms::cuda
