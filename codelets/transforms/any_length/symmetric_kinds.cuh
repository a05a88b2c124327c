/// \file
/// dst1 and dct1 by (Y1) and (Y2) or (Y3) of symmetric_plan.hpp, as kinds.cuh has all kinds.
#pragma once

#include <type_traits>

#include "../block_lines.cuh"
#include "batches.cuh"
#include "passes.cuh"
#include "symmetric_plan.hpp"

namespace asterism::transforms {

/// What one thread of a block, or of several that share lines, does in all phases: 0 ... phases() - 1.
/// @tparam Memory where the lines' numbers are, see passes.cuh
template <class T, class Memory = Complex<T>*>
class BlockOfSymmetricLines {
 public:
  ASTERISM_HOST_DEVICE BlockOfSymmetricLines(const BlockLines<T>& lines, const SymmetricView<Scalar<T>>& plan,
                                             Memory shared, int thread, int threads)
      : lines_(lines), plan_(plan), shared_{shared, lines.present, lines.pitch, thread, threads} {}

  /// Zeros, lines, passes, (Y2), lines.
  ASTERISM_HOST_DEVICE static int phases(const SymmetricView<Scalar<T>>& plan) {
    return plan.rows.passes + (has_butterflies(plan) ? 4 : 3);
  }

  ASTERISM_INLINED void run(int phase) const {
    if (phase == 0)
      clear();
    else if (phase == 1)
      load();
    else if (phase < plan_.rows.passes + 2)
      run(plan_.rows.pass[phase - 2]);
    else if (phase == plan_.rows.passes + 2 && has_butterflies(plan_))
      last_pass();
    else
      store();
  }

 private:
  ASTERISM_HOST_DEVICE static bool has_butterflies(const SymmetricView<Scalar<T>>& plan) {
    return plan.divisor <= largest_radix;
  }
  /// N is a prime: z_0 / 2 is wanted, and Z_k / 2 found.
  [[nodiscard]] ASTERISM_HOST_DEVICE bool finds_halves() const { return plan_.divisor == plan_.N; }

  /// What tells the columns of (Y3) apart.
  struct Columns {
    const std::uint8_t* odd;
    [[nodiscard]] ASTERISM_HOST_DEVICE bool is_odd(unsigned column) const { return odd[column] != 0; }
  };

  ASTERISM_INLINED void run(const Pass& pass) const {
    if (pass.kind == PassKind::combining)
      combine(pass);
    else if (pass.kind == PassKind::separating)
      separate(pass);
    else
      run_pass(shared_, pass, plan_.rows.tables, Columns{plan_.tables.odd});
  }

  /// A number of an odd column and its row's w^m, or the conjugate of that.
  [[nodiscard]] ASTERISM_HOST_DEVICE Complex<T> twisted(Complex<T> z, unsigned row) const {
    return plan_.tables.twist == nullptr ? z : z * plan_.tables.twist[row];
  }
  [[nodiscard]] ASTERISM_HOST_DEVICE Complex<T> untwisted(Complex<T> z, unsigned row) const {
    return plan_.tables.twist == nullptr ? z : z * conj(plan_.tables.twist[row]);
  }
  [[nodiscard]] ASTERISM_HOST_DEVICE Complex<T> mirrored(Complex<T> z) const {
    return sine() ? Complex<T>{-z.re, -z.im} : z;
  }

  /// Calls use(row, plus, minus) for the numbers of d and -d in all rows, `minus` null for d = 0.
  template <class Use>
  ASTERISM_INLINED void for_pairs(const Pass& pass, Use use) const {
    shared_.for_each(pass.per_line, [&, this](Memory line, unsigned t) {
      const unsigned row = pass.span.quotient(t);
      const PlacePair places = plan_.tables.pairs[t - row * pass.span.divisor];
      const Memory numbers = line + row * static_cast<unsigned>(plan_.row_numbers);
      use(row, numbers[places.plus], places.plus == places.minus ? nullptr : &numbers[places.minus]);
    });
  }

  /// E and O of (Y3), and zeros for z'_{0,d} in the columns of O
  ASTERISM_INLINED void combine(const Pass& pass) const {
    const bool sine = this->sine(), doubles = !finds_halves();
    for_pairs(pass, [=, this](unsigned row, Complex<T>& plus, Complex<T>* minus) {
      if (minus == nullptr) {
        if (row == 0) return;
        const Complex<T> own = doubles ? plus + plus : plus;
        plus = sine ? twisted(own, row) : own;
      } else if (row == 0) {
        *minus = {0, 0};
      } else {
        const Complex<T> z = plus, mirror = mirrored(*minus);
        plus = z + mirror;
        *minus = twisted(z - mirror, row);
      }
    });
  }

  /// Z of (Y3)
  ASTERISM_INLINED void separate(const Pass& pass) const {
    const bool sine = this->sine();
    for_pairs(pass, [=, this](unsigned row, Complex<T>& plus, Complex<T>* minus) {
      if (minus == nullptr) {
        if (sine) plus = untwisted(plus, row);
      } else if (row == 0) {
        *minus = mirrored(plus);
      } else {
        const Complex<T> even = plus, odd = untwisted(*minus, row);
        plus = even + odd;
        *minus = mirrored(even - odd);
      }
    });
  }

  [[nodiscard]] ASTERISM_HOST_DEVICE bool sine() const { return plan_.kind == Transform::dst1; }

  [[nodiscard]] ASTERISM_HOST_DEVICE BatchShare share_of(int count) const {
    return {count, 1 << lines_.log_lines, lines_.present, lines_.side_by_side, shared_.thread, shared_.threads};
  }

  ASTERISM_HOST_DEVICE void clear() const {
    if (!plan_.rows.padded) return;
    for (int i = shared_.thread; i < lines_.present * lines_.pitch; i += shared_.threads)
      shared_.first[i] = {0, 0};
  }

  /// Number `at` of the real numbers of a line.
  [[nodiscard]] ASTERISM_HOST_DEVICE T& real_number(int line, unsigned at) const {
    const Memory numbers = shared_.first + line * lines_.pitch;
    if constexpr (std::is_pointer_v<Memory>)
      return reinterpret_cast<T*>(numbers)[at];
    else
      return reinterpret_cast<T*>(&numbers[at / 2])[at % 2];
  }

  struct Point {
    T x;
    Target target;
  };

  ASTERISM_INLINED void put(int line, const Point& point) const {
    const bool sine = this->sine();
    const T x = signed_as(sine && point.target.negative, point.x);
    real_number(line, point.target.at) = x;
    if (point.target.has_mirror) real_number(line, point.target.mirror) = signed_as(sine, x);
  }

  ASTERISM_INLINED void load() const {
    const bool sine = this->sine();
    const int last = plan_.N, before = sine ? 1 : 0;
    in_batches<batch_of<T>(4)>(
        share_of(last - 1),
        [=, this](int line, int i) {
          return Point{*lines_.source(line, i + 1 - before), plan_.tables.targets[i + 1]};
        },
        [this](int line, int, const Point& point) { put(line, point); });
    const T end = finds_halves() ? T{1} / 2 : T{1};
    in_batches<1>(
        share_of(2), [=](int, int i) { return i * last; },
        [=, this](int line, int, int i) { put(line, {sine ? T{0} : end * *lines_.source(line, i), plan_.tables.targets[i]}); });
  }

  ASTERISM_INLINED void last_pass() const {
    switch (plan_.divisor) {
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
    shared_.for_each(plan_.last_pass, [&, this](Memory line, unsigned d) {
      const PlacePair places = plan_.tables.pairs[d];
      const Memory plus = line + places.plus, minus = line + places.minus;
      const int row = plan_.row_numbers;
      Complex<T> z[D];
      z[0] = plus[0];
      ASTERISM_UNROLL
      for (int a = 1; a <= D / 2; ++a) {
        z[a] = plus[a * row];
        z[D - a] = mirrored(minus[a * row]);
      }
      butterfly<D>(z);
      plus[0] = z[0];
      ASTERISM_UNROLL
      for (int c = 1; c <= D / 2; ++c) {
        if (places.plus != places.minus) minus[c * row] = z[D - c];
        plus[c * row] = z[c];
      }
    });
  }

  ASTERISM_INLINED void store() const {
    const int before = sine() ? 1 : 0, points = plan_.N + 1 - 2 * before;
    const T scale = finds_halves() ? 2 : 1;
    in_batches<batch_of<T>(4)>(
        share_of(points),
        [=, this](int line, int i) {
          const Source source = plan_.tables.sources[i + before];
          const Complex<T> Z = shared_.first[line * lines_.pitch + source.at];
          return scale * (signed_as(source.negative_first, Z.re) + signed_as(source.negative_second, Z.im));
        },
        [=, this](int line, int i, T y) { *lines_.target(line, i) = y; });
  }

  BlockLines<T> lines_;
  const SymmetricView<Scalar<T>>& plan_;
  SharedLines<Memory> shared_;
};

}  // namespace asterism::transforms
