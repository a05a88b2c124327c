/// \file
/// dst1 and dct1 by (Y1) and (Y2) of symmetric_plan.hpp, as kinds.cuh has all kinds.
#pragma once

#include "../block_lines.cuh"
#include "batches.cuh"
#include "passes.cuh"
#include "symmetric_plan.hpp"

namespace asterism::transforms::cuda {

/// What one thread of a block does in all phases: 0 ... phases() - 1.
template <class T>
class BlockOfSymmetricLines {
 public:
  ASTERISM_HOST_DEVICE BlockOfSymmetricLines(const BlockLines<T>& lines, const SymmetricView<T>& plan,
                                             Complex<T>* shared, int thread, int threads)
      : lines_(lines), plan_(plan), shared_{shared, lines.present, lines.pitch, thread, threads} {}

  /// Zeros, lines, passes, (Y2), lines.
  ASTERISM_HOST_DEVICE static int phases(const SymmetricView<T>& plan) { return plan.rows.passes + 4; }

  ASTERISM_INLINED void run(int phase) const {
    if (phase == 0)
      clear();
    else if (phase == 1)
      load();
    else if (phase < plan_.rows.passes + 2)
      run_pass(shared_, plan_.rows.pass[phase - 2], plan_.rows.tables);
    else if (phase == plan_.rows.passes + 2)
      last_pass();
    else
      store();
  }

 private:
  [[nodiscard]] ASTERISM_HOST_DEVICE bool sine() const { return plan_.kind == Transform::dst1; }

  [[nodiscard]] ASTERISM_HOST_DEVICE BatchShare share() const {
    return {plan_.points,        lines_.log_lines, lines_.present,
            lines_.side_by_side, shared_.thread,   shared_.threads};
  }

  ASTERISM_HOST_DEVICE void clear() const {
    if (!plan_.rows.padded) return;
    for (int i = shared_.thread; i < lines_.present * lines_.pitch; i += shared_.threads)
      shared_.first[i] = {0, 0};
  }

  struct Point {
    T x;
    int place, mirror;
  };

  /// X_i is the real part of z_{i/2} for even i, and up to its sign the imaginary part of z_{(N-i)/2} for odd i.
  [[nodiscard]] ASTERISM_HOST_DEVICE int element(int i) const { return (i % 2 == 0 ? i : plan_.N - i) / 2; }

  ASTERISM_INLINED void load() const {
    const bool sine = this->sine();
    const int N = plan_.N;
    in_batches<4>(
        share(),
        [=, this](int line, int i) {
          const int j = element(i);
          const bool is_end = sine && (i == 0 || i == N);
          return Point{is_end ? T{0} : *lines_.source(line, sine ? i - 1 : i), plan_.in[j],
                       plan_.in[j == 0 ? 0 : N - j]};
        },
        [=, this](int line, int i, const Point& point) {
          T* const z = reinterpret_cast<T*>(shared_.first + line * lines_.pitch) + i % 2;
          const bool is_mirror = point.place >= mirrored, is_negative = sine && (i % 2 != 0) != is_mirror;
          const int place = point.place % mirrored;
          z[2 * place] = is_negative ? -point.x : point.x;
          // Of row 0 both halves are stored.
          if (place < plan_.row_numbers && point.mirror != place)
            z[2 * point.mirror] = is_negative != sine ? -point.x : point.x;
        });
  }

  ASTERISM_INLINED void last_pass() const {
    switch (plan_.radix) {
      case 3:
        return last_pass_of<3>();
      case 5:
        return last_pass_of<5>();
      case 7:
        return last_pass_of<7>();
      case 9:
        return last_pass_of<9>();
      case 11:
        return last_pass_of<11>();
      case 13:
        return last_pass_of<13>();
      default:
        return last_pass_of<15>();
    }
  }

  /// (Y2)
  template <int D>
  ASTERISM_INLINED void last_pass_of() const {
    const bool sine = this->sine();
    shared_.for_each(plan_.last_pass, [&, this](Complex<T>* line, unsigned d) {
      Complex<T>* const plus = line + plan_.rows.out[d];
      Complex<T>* const minus =
          line + plan_.rows.out[d == 0 ? 0 : static_cast<unsigned>(plan_.rows.length) - d];
      const int row = plan_.row_numbers;
      Complex<T> z[D];
      z[0] = plus[0];
      ASTERISM_UNROLL
      for (int a = 1; a <= D / 2; ++a) {
        const Complex<T> other = minus[a * row];
        z[a] = plus[a * row];
        z[D - a] = {sine ? -other.re : other.re, sine ? -other.im : other.im};
      }
      butterfly<D>(z);
      plus[0] = z[0];
      ASTERISM_UNROLL
      for (int c = 1; c <= D / 2; ++c) {
        if (d > 0) minus[c * row] = z[D - c];
        plus[c * row] = z[c];
      }
    });
  }

  ASTERISM_INLINED void store() const {
    const bool sine = this->sine();
    const int N = plan_.N;
    in_batches<4>(
        share(),
        [=, this](int line, int k) {
          const bool beyond = 2 * k > N;
          const int place = plan_.out[beyond ? N - k : k];
          const Complex<T> Z = shared_.first[line * lines_.pitch + place % mirrored];
          const bool is_negative = sine && (beyond != (place >= mirrored));
          const T even = sine ? -Z.im : Z.re, alternating = sine ? Z.re : Z.im;
          const T y = k % 2 == 0 ? even + alternating : even - alternating;
          return is_negative ? -y : y;
        },
        [=, this](int line, int k, T y) {
          if (!sine || (k > 0 && k < N)) *lines_.target(line, sine ? k - 1 : k) = y;
        });
  }

  BlockLines<T> lines_;
  const SymmetricView<T>& plan_;
  SharedLines<T> shared_;
};

}  // namespace asterism::transforms::cuda
