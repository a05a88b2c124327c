/// \file
/// Lines of numbers in arrays with gaps, and their real transforms by definition: for tests of the
/// transforms.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

#include "codelets/transforms/transform.hpp"

namespace asterism::test {

using transforms::Transform;

inline const std::initializer_list<Transform> kinds = {
    Transform::dst1, Transform::dst2, Transform::dst3, Transform::dst4, Transform::dct1,
    Transform::dct2, Transform::dct3, Transform::dct4, Transform::dft,  Transform::idft};

constexpr int padding_value = 77;

/// How lines lie in an array with gaps between them.
struct LineLayout {
  Index count, length, width;
  Index gap = 0;        ///< between the lines' points, where they are not adjacent
  Index group_gap = 0;  ///< between groups
  bool spread = false;  ///< a line alone in its group has gaps too

  [[nodiscard]] Index stride() const { return width > 1 || spread ? width + gap : 1; }
  [[nodiscard]] Index distance() const { return length * stride() + group_gap; }
};

/// Lines of numbers among poisoned elements, which also lie before and behind them all.
template <class T>
struct LineArray {
  LineLayout layout;
  std::vector<T> data;

  explicit LineArray(LineLayout layout_, T value = 0)
      : layout(layout_),
        data(static_cast<std::size_t>(layout.count * layout.distance() + 2 * margin), T{padding_value}) {
    for_each([&](Index, Index, T& x) { x = value; });
  }

  [[nodiscard]] Index lines() const { return layout.count * layout.width; }
  [[nodiscard]] Index at(Index line, Index j) const {
    return margin + line / layout.width * layout.distance() + j * layout.stride() + line % layout.width;
  }
  T& operator()(Index line, Index j) { return data[static_cast<std::size_t>(at(line, j))]; }
  const T& operator()(Index line, Index j) const { return data[static_cast<std::size_t>(at(line, j))]; }

  template <class Use>
  void for_each(Use use) {
    for (Index line = 0; line < lines(); ++line)
      for (Index j = 0; j < layout.length; ++j) use(line, j, (*this)(line, j));
  }

  transforms::Lines<T> view() { return shape(data.data() + margin); }
  [[nodiscard]] transforms::Lines<T> shape(T* first = nullptr) const {
    return {first, layout.count, layout.distance(), layout.length, layout.stride(), layout.width};
  }

  [[nodiscard]] bool padding_is_untouched() const {
    LineArray rest = *this;
    rest.for_each([](Index, Index, T& x) { x = T{padding_value}; });
    return std::ranges::all_of(rest.data, [](T x) { return x == T{padding_value}; });
  }

  static constexpr Index margin = 3;
};

template <class T>
LineArray<T> random_lines(const LineLayout& layout) {
  std::mt19937 bits(static_cast<std::uint32_t>(1000 * layout.length + layout.count * layout.width));
  LineArray<T> lines(layout);
  lines.for_each([&](Index, Index, T& x) { x = static_cast<T>(std::ldexp(bits(), -31) - 1); });
  return lines;
}

/// `count` rows, `margin` elements between them.
template <class T>
LineArray<T> random_rows(Index count, Index n, Index margin = 0) {
  return random_lines<T>({.count = count, .length = n, .width = 1, .group_gap = margin});
}

template <class T>
void transform(Transform kind, LineArray<T>& lines) {
  transforms::cpu::transform(kind, lines.view());
}

template <class T>
void dst(LineArray<T>& lines) {
  transform(Transform::dst1, lines);
}

/// sin(pi m / N) for 0 <= m < 2N, exact where it is 0 or 1
inline std::vector<long double> sines(Index N) {
  std::vector<long double> table;
  for (Index m = 0; m < 2 * N; ++m) {
    Index p = m % N;
    if (2 * p > N) p = N - p;
    const long double sine =
        std::sin(std::numbers::pi_v<long double> * static_cast<long double>(p) / static_cast<long double>(N));
    table.push_back(m < N ? sine : -sine);
  }
  return table;
}

/// The slow twin: outputs of a line by their definition (T1).
class Definition {
 public:
  Definition(Transform kind, Index n) : kind_(kind), n_(n), N_(half_turn(kind, n)), sine_(sines(2 * N_)) {}

  /// @param x the line's points
  [[nodiscard]] long double output(const std::vector<long double>& x, Index k) const {
    const Index n = n_, odd = 2 * k + 1;
    const long double sign = k % 2 == 0 ? 1 : -1;
    const auto point = [&](Index j) { return x[static_cast<std::size_t>(j)]; };
    switch (kind_) {
      case Transform::dst1:
        return 2 * sine_sum(x, 0, n, k + 1, k + 1);
      case Transform::dst2:
        return 2 * sine_sum(x, 0, n, k + 1, 2 * (k + 1));
      case Transform::dst3:
        return sign * point(n - 1) + 2 * sine_sum(x, 0, n - 1, odd, odd);
      case Transform::dst4:
        return 2 * sine_sum(x, 0, n, odd, 2 * odd);
      case Transform::dct1:
        if (n == 1) return point(0);
        return point(0) + sign * point(n - 1) + 2 * cosine_sum(x, 1, n - 1, 0, k);
      case Transform::dct2:
        return 2 * cosine_sum(x, 0, n, k, 2 * k);
      case Transform::dct3:
        return point(0) + 2 * cosine_sum(x, 1, n, 0, odd);
      case Transform::dct4:
        return 2 * cosine_sum(x, 0, n, odd, 2 * odd);
      case Transform::dft:
        if (k <= n / 2) return cosine_sum(x, 0, n, 0, 2 * k);
        return -sine_sum(x, 0, n, 0, 2 * (n - k));
      case Transform::idft:
        return point(0) + (n % 2 == 0 ? sign * point(n / 2) : 0) +
               2 * cosine_sum(x, 1, (n + 1) / 2, 0, 2 * k) - 2 * sine_sum(x, n / 2 + 1, n, 2 * n * k, -2 * k);
    }
    return 0;
  }

 private:
  /// The N in the angles pi m / N.
  static Index half_turn(Transform kind, Index n) {
    switch (kind) {
      case Transform::dst1:
        return n + 1;
      case Transform::dct1:
        return std::max<Index>(n - 1, 1);
      case Transform::dst4:
      case Transform::dct4:
        return 4 * n;
      case Transform::dft:
      case Transform::idft:
        return n;
      default:
        return 2 * n;
    }
  }

  /// The sum of x_j sin(pi (first + j step) / N), from <= j < to
  [[nodiscard]] long double sine_sum(const std::vector<long double>& x, Index from, Index to, Index first,
                                     Index step) const {
    return sum(x, from, to, 2 * (first + from * step), 2 * step);
  }

  /// The same with the cosine
  [[nodiscard]] long double cosine_sum(const std::vector<long double>& x, Index from, Index to, Index first,
                                       Index step) const {
    return sum(x, from, to, 2 * (first + from * step) + N_, 2 * step);
  }

  /// The angles are multiples of half an angle pi / N. From one to the next it takes a sum, and no division.
  [[nodiscard]] long double sum(const std::vector<long double>& x, Index from, Index to, Index angle,
                                Index step) const {
    const auto turn = static_cast<Index>(sine_.size());
    angle = (angle % turn + turn) % turn;
    step = (step % turn + turn) % turn;
    long double result = 0;
    for (Index j = from; j < to; ++j) {
      result += x[static_cast<std::size_t>(j)] * sine_[static_cast<std::size_t>(angle)];
      angle += step;
      if (angle >= turn) angle -= turn;
    }
    return result;
  }

  Transform kind_;
  Index n_, N_;
  std::vector<long double> sine_;
};

/// A norm of errors, relative to that of what is expected; NaN passes no test.
struct RelativeError {
  long double error = 0, norm = 0;

  void add(long double got, long double expected) {
    error += (got - expected) * (got - expected);
    norm += expected * expected;
  }
  [[nodiscard]] double value() const { return static_cast<double>(std::sqrt(error / norm)); }
};

template <class T>
std::vector<long double> points_of(const LineArray<T>& lines, Index line) {
  std::vector<long double> points;
  for (Index j = 0; j < lines.layout.length; ++j) points.push_back(static_cast<long double>(lines(line, j)));
  return points;
}

/// The error in the 2-norm of what became of the lines x, all together. Of long lines some outputs stand for
/// all.
template <class T, class U>
double error_by_definition(Transform kind, const LineArray<T>& got, const LineArray<U>& x) {
  const Index n = x.layout.length, step = n > 600 ? 11 : 1;
  const Definition definition(kind, n);
  RelativeError error;
  for (Index line = 0; line < x.lines(); ++line) {
    const std::vector<long double> points = points_of(x, line);
    for (Index k = step > 1 ? line % step : 0; k < n; k += step)
      error.add(static_cast<long double>(got(line, k)), definition.output(points, k));
  }
  return error.value();
}

template <class T, class U>
double relative_error(const LineArray<T>& got, const LineArray<U>& expected) {
  RelativeError error;
  for (Index line = 0; line < got.lines(); ++line)
    for (Index j = 0; j < got.layout.length; ++j)
      error.add(static_cast<long double>(got(line, j)), static_cast<long double>(expected(line, j)));
  return error.value();
}

template <class T>
double tolerance(Index n) {
  constexpr double unit_roundoff = std::numeric_limits<T>::epsilon() / 2;
  return 5 * unit_roundoff * std::max(1.0, std::log2(static_cast<double>(n)));
}

}  // namespace asterism::test
