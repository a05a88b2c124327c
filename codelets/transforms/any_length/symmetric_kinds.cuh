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
    return {plan_.N + 1,         1 << lines_.log_lines, lines_.present,
            lines_.side_by_side, shared_.thread,        shared_.threads};
  }

  ASTERISM_HOST_DEVICE void clear() const {
    if (!plan_.rows.padded) return;
    for (int i = shared_.thread; i < lines_.present * lines_.pitch; i += shared_.threads)
      shared_.first[i] = {0, 0};
  }

  struct Point {
    T x;
    Target target;
  };

  ASTERISM_INLINED void load() const {
    const bool sine = this->sine();
    const int last = plan_.N, before = sine ? 1 : 0;
    in_batches<4>(
        share(),
        [=, this](int line, int i) {
          const bool is_end = sine && (i == 0 || i == last);
          return Point{is_end ? T{0} : *lines_.source(line, i - before), plan_.targets[i]};
        },
        [=, this](int line, int, const Point& point) {
          T* const z = reinterpret_cast<T*>(shared_.first + line * lines_.pitch);
          const T x = sine && point.target.negative ? -point.x : point.x;
          z[point.target.at] = x;
          if (point.target.has_mirror) z[point.target.mirror] = sine ? -x : x;
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
      const PlacePair places = plan_.pairs[d];
      Complex<T>* const plus = line + places.plus;
      Complex<T>* const minus = line + places.minus;
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
        if (plus != minus) minus[c * row] = z[D - c];
        plus[c * row] = z[c];
      }
    });
  }

  ASTERISM_INLINED void store() const {
    const bool sine = this->sine();
    const int last = plan_.N, before = sine ? 1 : 0;
    in_batches<4>(
        share(),
        [=, this](int line, int k) {
          const Source source = plan_.sources[k];
          const Complex<T> Z = shared_.first[line * lines_.pitch + source.at];
          return (source.negative_first ? -Z.re : Z.re) + (source.negative_second ? -Z.im : Z.im);
        },
        [=, this](int line, int k, T y) {
          if (!sine || (k > 0 && k < last)) *lines_.target(line, k - before) = y;
        });
  }

  BlockLines<T> lines_;
  const SymmetricView<T>& plan_;
  SharedLines<Complex<T>*> shared_;
};

}  // namespace asterism::transforms::cuda
