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
#include "batches.cuh"
#include "passes.cuh"

namespace asterism::transforms {

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
  bool means;                                          ///< (T3)
};

/// @param fft with its tables, and rotations, in the memory where they are wanted
template <class T>
AnyLength<T> any_length(Transform kind, Index n, const FftView<T>& fft, const Complex<T>* fold_rotations,
                        const Complex<T>* unfold_rotations) {
  bool convolves = false;
  for (int pass = 0; pass < fft.passes; ++pass)
    convolves = convolves || fft.pass[pass].kind == PassKind::convolving;
  return {kind, static_cast<int>(n), fft, fold_rotations, unfold_rotations, convolves};
}

/// What one thread of a block, or of several that share lines, does in all phases: 0 ... phases() - 1.
/// @tparam Memory where the lines' numbers are, see passes.cuh
template <class T, class Memory = Complex<T>*>
class BlockOfAnyLength {
 public:
  ASTERISM_HOST_DEVICE BlockOfAnyLength(const BlockLines<T>& lines, const AnyLength<Scalar<T>>& plan, Memory shared,
                                        int thread, int threads)
      : lines_(lines), plan_(plan), shared_(shared), thread_(thread), threads_(threads) {}

  /// Zeros, lines, passes, lines.
  ASTERISM_HOST_DEVICE static int phases(const AnyLength<Scalar<T>>& plan) { return plan.fft.passes + 3; }

  ASTERISM_INLINED void run(int phase) const {
    if (phase == 0)
      clear();
    else if (phase == 1)
      for_kind([this](auto kind) { load<decltype(kind)::value>(); });
    else if (phase < plan_.fft.passes + 2)
      run_pass(SharedLines<Memory>{shared_, shared_lines(), lines_.pitch, thread_, threads_},
               plan_.fft.pass[phase - 2], plan_.fft.tables);
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

  template <Transform kind>
  [[nodiscard]] ASTERISM_HOST_DEVICE BatchShare batch_share(Index pairs) const {
    const int lines = (1 << lines_.log_lines) / lines_together(kind);
    return {static_cast<int>(pairs), lines, shared_lines(), lines_.side_by_side, thread_, threads_};
  }

  /// Point j of a line, 0 for j = nowhere.
  [[nodiscard]] ASTERISM_HOST_DEVICE T point(int line, Index j) const {
    return j == nowhere ? T{0} : *lines_.source(line, static_cast<int>(j));
  }
  ASTERISM_HOST_DEVICE void put(int line, Index j, T value) const {
    if (j != nowhere) *lines_.target(line, static_cast<int>(j)) = value;
  }
  [[nodiscard]] ASTERISM_HOST_DEVICE static Complex<T> rotation(const Complex<Scalar<T>>* rotations, Index p) {
    return rotations == nullptr ? Complex<T>{1, 0} : Complex<T>{rotations[p].re, rotations[p].im};
  }
  [[nodiscard]] ASTERISM_HOST_DEVICE Memory shared_line(int line) const {
    return shared_ + line * lines_.pitch;
  }
  /// The place of element j of the FFT's sequence, or of frequency j; any for j = nowhere.
  [[nodiscard]] ASTERISM_HOST_DEVICE int place_in(Index j) const {
    return plan_.fft.in[j == nowhere ? 0 : j];
  }
  [[nodiscard]] ASTERISM_HOST_DEVICE int place_out(Index j) const {
    return plan_.fft.out[j == nowhere ? 0 : j];
  }

  /// What a pair of a folding takes, of one line or two, and where its elements go.
  struct Points {
    Pair<T> x, y;
    Complex<T> rotation;
    int first, second;
  };

  template <Transform kind>
  [[nodiscard]] ASTERISM_HOST_DEVICE Points points(int line, Index p) const {
    const Index n = plan_.length;
    constexpr int together = lines_together(kind);
    const PairPlaces from = fold_from(kind, n, p);
    const auto at = [&, this](int of) { return Pair<T>{point(of, from.first), point(of, from.second)}; };
    const bool both = together == 2 && 2 * line + 1 < lines_.present;
    // Of a Hermitian sequence the other half is made, too.
    const PairPlaces to =
        fft_kind(kind) == FftKind::to_real ? PairPlaces{p, p > 0 ? n - p : nowhere} : fold_to(kind, n, p);
    return {at(together * line), both ? at(2 * line + 1) : Pair<T>{0, 0}, rotation(plan_.fold_rotations, p),
            place_in(to.first), place_in(to.second)};
  }

  template <Transform kind>
  ASTERISM_INLINED void load() const {
    const Index n = plan_.length;
    in_batches<batch_of<T>(lines_together(kind) == 1 ? 4 : 2)>(
        batch_share<kind>(fold_pairs(kind, n)), [this](int line, int p) { return points<kind>(line, p); },
        [this, n](int line, int p, const Points& found) {
          const Memory z = shared_line(line);
          const auto x = fold<kind>(n, p, found.x.first, found.x.second, found.rotation);
          if constexpr (fft_kind(kind) ==
                        FftKind::to_real) {  // the conjugate of X + i Y: the conjugate of its DFT is wanted
            const Complex<T> X = x.first,
                             Y = fold<kind>(n, p, found.y.first, found.y.second, found.rotation).first;
            z[found.first] = {X.re - Y.im, -X.im - Y.re};
            if (p > 0 && 2 * p < n) z[found.second] = {X.re + Y.im, X.im - Y.re};
          } else {
            const bool has_second = fold_to(kind, n, p).second != nowhere;
            if constexpr (fft_kind(kind) == FftKind::from_real) {
              const auto y = fold<kind>(n, p, found.y.first, found.y.second, found.rotation);
              z[found.first] = {x.first, y.first};
              if (has_second) z[found.second] = {x.second, y.second};
            } else {
              z[found.first] = x.first;
              if (has_second) z[found.second] = x.second;
            }
          }
        });
  }

  /// What a pair of an unfolding takes, and its rotations.
  struct Numbers {
    Complex<T> u, v, rotation, next;
  };

  /// For kind I: number k of the spectrum, read as real numbers.
  [[nodiscard]] ASTERISM_HOST_DEVICE T real_number(const Memory& z, Index k) const {
    return reinterpret_cast<const T*>(&z[place_out(k / 2)])[k % 2];
  }

  template <Transform kind>
  [[nodiscard]] ASTERISM_HOST_DEVICE Numbers numbers(int line, Index p) const {
    const Index n = plan_.length;
    const Memory z = shared_line(line);
    const PairPlaces from = unfold_from(kind, n, p);
    if constexpr (kind == Transform::dst1 || kind == Transform::dct1) {
      const T u = real_number(z, from.first), same = kind == Transform::dst1 ? -u : u;
      return {{u, 0}, {plan_.means ? real_number(z, from.second) : same, 0}, {}, {}};
    } else {
      constexpr bool is_half = fft_kind(kind) == FftKind::from_real;  // then (P1) wants the mirror
      const Index second = is_half ? (p == 0 ? 0 : n - p) : from.second;
      return {z[place_out(from.first)], z[place_out(second)], rotation(plan_.unfold_rotations, p),
              rotation(plan_.unfold_rotations, p + 1)};
    }
  }

  template <Transform kind, class Number>
  ASTERISM_HOST_DEVICE void unfold_to_line(int line, Index p, Number u, Number v,
                                           const Numbers& found) const {
    const PairPlaces to = unfold_to(kind, plan_.length, p);
    const Pair<T> outputs = unfold<kind>(u, v, found.rotation, found.next);
    put(line, to.first, outputs.first);
    put(line, to.second, outputs.second);
  }

  template <Transform kind>
  ASTERISM_INLINED void store() const {
    in_batches<batch_of<T>(4)>(
        batch_share<kind>(unfold_pairs(kind, plan_.length)),
        [this](int line, int p) { return numbers<kind>(line, p); },
        [this](int line, int p, const Numbers& found) {
          const bool both = 2 * line + 1 < lines_.present;
          const Complex<T> u = found.u, v = found.v;
          if constexpr (kind == Transform::dst1 || kind == Transform::dct1) {
            unfold_to_line<kind>(line, p, u.re, v.re, found);
          } else if constexpr (fft_kind(kind) == FftKind::complex) {
            unfold_to_line<kind>(line, p, u, v, found);
          } else if constexpr (fft_kind(kind) == FftKind::to_real) {
            unfold_to_line<kind>(2 * line, p, u.re, v.re, found);
            if (both) unfold_to_line<kind>(2 * line + 1, p, -u.im, -v.im, found);
          } else {  // (P1)
            const Complex<T> sum = u + conj(v), difference = times_minus_i(u - conj(v)), none{0, 0};
            unfold_to_line<kind>(2 * line, p, Complex<T>{sum.re / 2, sum.im / 2}, none, found);
            if (both)
              unfold_to_line<kind>(2 * line + 1, p, Complex<T>{difference.re / 2, difference.im / 2}, none,
                                   found);
          }
        });
  }

  BlockLines<T> lines_;
  const AnyLength<Scalar<T>>& plan_;
  Memory shared_;
  int thread_, threads_;
};

}  // namespace asterism::transforms
