// The real transforms against the sums that define them.

#include "codelets/chirp.hpp"
#include "codelets/transform.hpp"
#include "codelets/transform_fold.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <numbers>
#include <random>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#ifdef ASTERISM_WITH_CUDA
#include <string>

#include "runtime/codelet.hpp"
#include "runtime/runtime.hpp"
#include "runtime/tile.hpp"
#endif

using namespace asterism;
using kernels::Transform;

namespace {

const std::initializer_list<Transform> kinds = {
    Transform::dst1, Transform::dst2, Transform::dst3, Transform::dst4, Transform::dct1,
    Transform::dct2, Transform::dct3, Transform::dct4, Transform::dft,  Transform::idft};

constexpr int padding_value = 77;

/// How lines lie in an array with gaps between them.
struct Layout {
  Index count, length, width;
  Index gap = 0;        ///< between the lines' points, where they are not adjacent
  Index group_gap = 0;  ///< between groups
  bool spread = false;  ///< a line alone in its group has gaps too

  [[nodiscard]] Index stride() const { return width > 1 || spread ? width + gap : 1; }
  [[nodiscard]] Index distance() const { return length * stride() + group_gap; }
};

/// Lines of numbers among poisoned elements, which also lie before and behind them all.
template <class T>
struct Array {
  Layout layout;
  std::vector<T> data;

  explicit Array(Layout layout_, T value = 0)
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

  kernels::Lines<T> view() { return shape(data.data() + margin); }
  [[nodiscard]] kernels::Lines<T> shape(T* first = nullptr) const {
    return {first, layout.count, layout.distance(), layout.length, layout.stride(), layout.width};
  }

  [[nodiscard]] bool padding_is_untouched() const {
    Array rest = *this;
    rest.for_each([](Index, Index, T& x) { x = T{padding_value}; });
    return std::ranges::all_of(rest.data, [](T x) { return x == T{padding_value}; });
  }

  static constexpr Index margin = 3;
};

template <class T>
Array<T> random_lines(const Layout& layout) {
  std::mt19937 bits(static_cast<std::uint32_t>(1000 * layout.length + layout.count * layout.width));
  Array<T> lines(layout);
  lines.for_each([&](Index, Index, T& x) { x = static_cast<T>(std::ldexp(bits(), -31) - 1); });
  return lines;
}

/// `count` rows, `margin` elements between them.
template <class T>
Array<T> random_rows(Index count, Index n, Index margin = 0) {
  return random_lines<T>({.count = count, .length = n, .width = 1, .group_gap = margin});
}

template <class T>
void transform(Transform kind, Array<T>& lines) {
  kernels::cpu::transform(kind, lines.view());
}

template <class T>
void dst(Array<T>& lines) {
  transform(Transform::dst1, lines);
}

/// sin(pi m / N) for 0 <= m < 2N, exact where it is 0 or 1
std::vector<long double> sines(Index N) {
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

  /// @param x x(j) is point j
  template <class Points>
  [[nodiscard]] long double output(const Points& x, Index k) const {
    const auto s = [this](Index m) {
      return sine_[static_cast<std::size_t>(2 * m % (4 * N_))];
    };  // sin(pi m / N)
    const auto c = [this](Index m) {
      return sine_[static_cast<std::size_t>((2 * m + N_) % (4 * N_))];
    };  // cos
    const auto sum = [&](Index from, Index to, auto term) {
      long double result = 0;
      for (Index j = from; j < to; ++j) result += static_cast<long double>(x(j)) * term(j);
      return result;
    };
    const auto point = [&](Index j) { return static_cast<long double>(x(j)); };
    const Index n = n_, odd = 2 * k + 1;
    const long double sign = k % 2 == 0 ? 1 : -1;
    switch (kind_) {
      case Transform::dst1:
        return 2 * sum(0, n, [&](Index j) { return s((j + 1) * (k + 1)); });
      case Transform::dst2:
        return 2 * sum(0, n, [&](Index j) { return s((2 * j + 1) * (k + 1)); });
      case Transform::dst3:
        return sign * point(n - 1) + 2 * sum(0, n - 1, [&](Index j) { return s((j + 1) * odd); });
      case Transform::dst4:
        return 2 * sum(0, n, [&](Index j) { return s((2 * j + 1) * odd); });
      case Transform::dct1:
        if (n == 1) return point(0);
        return point(0) + sign * point(n - 1) + 2 * sum(1, n - 1, [&](Index j) { return c(j * k); });
      case Transform::dct2:
        return 2 * sum(0, n, [&](Index j) { return c((2 * j + 1) * k); });
      case Transform::dct3:
        return point(0) + 2 * sum(1, n, [&](Index j) { return c(j * odd); });
      case Transform::dct4:
        return 2 * sum(0, n, [&](Index j) { return c((2 * j + 1) * odd); });
      case Transform::dft:
        if (k <= n / 2) return sum(0, n, [&](Index j) { return c(2 * j * k); });
        return -sum(0, n, [&](Index j) { return s(2 * j * (n - k)); });
      case Transform::idft:
        return point(0) + (n % 2 == 0 ? sign * point(n / 2) : 0) +
               2 * sum(1, (n + 1) / 2, [&](Index j) { return c(2 * j * k); }) -
               2 * sum(n / 2 + 1, n, [&](Index j) { return s(2 * (n - j) * k); });
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

/// The error in the 2-norm of what became of the lines x, all together. Of long lines some outputs stand for
/// all.
template <class T, class U>
double error_by_definition(Transform kind, const Array<T>& got, const Array<U>& x) {
  const Index n = x.layout.length, step = n > 600 ? 11 : 1;
  const Definition definition(kind, n);
  RelativeError error;
  for (Index line = 0; line < x.lines(); ++line)
    for (Index k = step > 1 ? line % step : 0; k < n; k += step)
      error.add(static_cast<long double>(got(line, k)),
                definition.output([&](Index j) { return x(line, j); }, k));
  return error.value();
}

template <class T, class U>
double relative_error(const Array<T>& got, const Array<U>& expected) {
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

/// Even, odd, powers of two, primes, and these less or plus 1, which are the lengths of FFTs of some kinds.
const std::initializer_list<Index> lengths = {
    1,  2,  3,  4,   5,   6,   7,   8,   9,   10,  11,  12,   13,   14,   15,   16,   17,   31,   32,  33,
    64, 96, 97, 127, 128, 255, 256, 257, 509, 511, 513, 1000, 1020, 1021, 1024, 4094, 4095, 4096, 4097};

/// Arrays of lines of n points in all the ways that they lie.
std::vector<Layout> layouts(Index n) {
  std::vector<Layout> all = {
      {.count = 3, .length = n, .width = 1},
      {.count = 2, .length = n, .width = 3, .gap = 2, .group_gap = 5},
  };
  if (n > 100) return all;
  all.push_back({.count = 3, .length = n, .width = 1, .group_gap = 3});
  all.push_back({.count = 2, .length = n, .width = 1, .gap = 2, .group_gap = 1, .spread = true});
  all.push_back({.count = 1, .length = n, .width = 37});
  all.push_back({.count = 3, .length = n, .width = 70, .gap = 1});
  return all;
}

}  // namespace

TEST_CASE_TEMPLATE("transforms: by hand", T, float, double) {
  const auto of = [](Transform kind, const std::vector<T>& x) {
    Array<T> lines({.count = 1, .length = static_cast<Index>(x.size()), .width = 1});
    lines.for_each([&](Index, Index j, T& point) { point = x[static_cast<std::size_t>(j)]; });
    transform(kind, lines);
    std::vector<T> y;
    lines.for_each([&](Index, Index, T& point) { y.push_back(point); });
    return y;
  };
  CHECK(of(Transform::dst1, {3}) == std::vector<T>{6});
  CHECK(of(Transform::dct1, {3}) == std::vector<T>{3});
  CHECK(of(Transform::dct1, {3, 1}) == std::vector<T>{4, 2});
  CHECK(of(Transform::dct2, {3}) == std::vector<T>{6});
  CHECK(of(Transform::dct3, {3}) == std::vector<T>{3});
  CHECK(of(Transform::dst2, {3}) == std::vector<T>{6});
  CHECK(of(Transform::dst3, {3}) == std::vector<T>{3});
  CHECK(of(Transform::dft, {1, 2, 4, 8}) == std::vector<T>{15, -3, -5, 6});
  CHECK(of(Transform::idft, {15, -3, -5, 6}) == std::vector<T>{4, 8, 16, 32});

  const auto two = of(Transform::dst1, {2, 1});
  const auto root = std::numbers::sqrt3_v<T>;
  CHECK(two[0] == doctest::Approx(3 * root));
  CHECK(two[1] == doctest::Approx(root));

  const auto three = of(Transform::dst1, {1, 1, 1});
  CHECK(three[0] == doctest::Approx(2 + 2 * std::numbers::sqrt2_v<T>));
  CHECK(three[1] == doctest::Approx(0));
  CHECK(three[2] == doctest::Approx(2 * std::numbers::sqrt2_v<T> - 2));
}

TEST_CASE_TEMPLATE("transforms: equal the sums that define them", T, float, double) {
  double worst = 0;  // over the tolerance
  for (const Transform kind : kinds) {
    CAPTURE(std::string(kernels::name(kind)));
    for (const Index n : lengths)
      for (const Layout& layout : layouts(n)) {
        CAPTURE(n);
        CAPTURE(layout.width);
        const auto x = random_lines<T>(layout);
        auto y = x;
        transform(kind, y);
        const double error = error_by_definition(kind, y, x) / tolerance<T>(n);
        CHECK(error < 1);
        CHECK(y.padding_is_untouched());
        worst = std::max(worst, error);
      }
  }
  MESSAGE("largest error: ", worst, " of the tolerance");
}

TEST_CASE_TEMPLATE("transforms: there and back is a multiple of the identity", T, float, double) {
  for (const Transform kind : kinds) {
    CAPTURE(std::string(kernels::name(kind)));
    for (const Index n : lengths) {
      CAPTURE(n);
      const auto x = random_lines<T>({.count = 2, .length = n, .width = 2});
      auto y = x;
      kernels::cpu::plan_transform(kind, y.shape());
      transform(kind, y);
      transform(kernels::inverse(kind), y);
      y.for_each(
          [&](Index, Index, T& point) { point = static_cast<T>(point / kernels::round_trip(kind, n)); });
      CHECK(relative_error(y, x) < 2 * tolerance<T>(n));
      CHECK(kernels::inverse(kernels::inverse(kind)) == kind);
      CHECK(kernels::round_trip(kind, n) == kernels::round_trip(kernels::inverse(kind), n));
    }
  }
}

TEST_CASE("transforms: have names of their own") {
  for (const Transform a : kinds)
    for (const Transform b : kinds)
      CHECK((std::string_view(kernels::name(a)) == kernels::name(b)) == (a == b));
}

// --- Folding and unfolding, with the sum that defines the DFT in between -------------------------

namespace {

/// What the CUDA kernels do, with a slow DFT.
template <Transform kind>
std::vector<double> by_folding(const std::vector<double>& x) {
  using kernels::FftKind;
  using Number = std::complex<long double>;
  const auto n = static_cast<Index>(x.size()), N = kernels::fft_length(kind, n);
  const Index numbers = kernels::fft_numbers(kind, n);
  const auto at = [](const auto& table, Index i) { return table[static_cast<std::size_t>(i)]; };
  const auto rotation = [&](const auto& table, Index p) {
    return table.empty() ? kernels::Complex<double>{} : at(table, p);
  };

  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> sequence(static_cast<std::size_t>(2 * numbers),
                               nan);  // parts of complex numbers, or reals
  const auto put = [&](Index i, auto value) {
    if (i == kernels::nowhere) return;
    if constexpr (kernels::folds_to_real(kind)) {
      sequence.at(static_cast<std::size_t>(i)) = value;
    } else {
      sequence.at(static_cast<std::size_t>(2 * i)) = value.re;
      sequence.at(static_cast<std::size_t>(2 * i + 1)) = value.im;
    }
  };
  const auto fold_rotations = kernels::fold_rotations<double>(kind, n);
  for (Index p = 0; p < kernels::fold_pairs(kind, n); ++p) {
    const auto from = kernels::fold_from(kind, n, p), to = kernels::fold_to(kind, n, p);
    const auto point = [&](Index i) { return i == kernels::nowhere ? 0 : x.at(static_cast<std::size_t>(i)); };
    const auto pair =
        kernels::fold<kind, double>(n, p, point(from.first), point(from.second), rotation(fold_rotations, p));
    put(to.first, pair.first);
    put(to.second, pair.second);
  }

  const auto unit = [&](Index m) {
    return std::polar(1.0L, 2 * std::numbers::pi_v<long double> * static_cast<long double>(m % N) /
                                static_cast<long double>(N));
  };
  std::vector<double> spectrum(sequence.size(), nan);
  const auto complex_at = [&](Index i) { return Number(at(sequence, 2 * i), at(sequence, 2 * i + 1)); };
  if (kernels::fft_kind(kind) == FftKind::to_real) {
    for (Index j = 0; j < N; ++j) {
      long double sum = at(sequence, 0);  // whose imaginary part does not count
      for (Index k = 1; 2 * k <= N; ++k)
        sum += (2 * k == N ? 1.0L : 2.0L) * (complex_at(k) * unit(j * k)).real();
      spectrum[static_cast<std::size_t>(j)] = static_cast<double>(sum);
    }
  } else {
    for (Index k = 0; k < numbers; ++k) {
      Number sum = 0;
      for (Index j = 0; j < N; ++j)
        sum +=
            (kernels::folds_to_real(kind) ? Number(at(sequence, j)) : complex_at(j)) * std::conj(unit(j * k));
      if (N == 1 && kernels::folds_to_real(kind)) sum.imag(at(sequence, 1));  // no FFT then
      spectrum[static_cast<std::size_t>(2 * k)] = static_cast<double>(sum.real());
      spectrum[static_cast<std::size_t>(2 * k + 1)] = static_cast<double>(sum.imag());
    }
  }

  std::vector<double> y(x.size(), nan);
  const auto unfold_rotations = kernels::unfold_rotations<double>(kind, n);
  for (Index p = 0; p < kernels::unfold_pairs(kind, n); ++p) {
    const auto from = kernels::unfold_from(kind, n, p), to = kernels::unfold_to(kind, n, p);
    const auto number = [&](Index i) {
      if constexpr (kernels::unfolds_real(kind)) {
        return i == kernels::nowhere ? 0 : spectrum.at(static_cast<std::size_t>(i));
      } else {
        if (i == kernels::nowhere) return kernels::Complex<double>{0, 0};
        return kernels::Complex<double>{spectrum.at(static_cast<std::size_t>(2 * i)),
                                        spectrum.at(static_cast<std::size_t>(2 * i + 1))};
      }
    };
    const auto pair = kernels::unfold<kind>(number(from.first), number(from.second),
                                            rotation(unfold_rotations, p), rotation(unfold_rotations, p + 1));
    if (to.first != kernels::nowhere) y.at(static_cast<std::size_t>(to.first)) = pair.first;
    if (to.second != kernels::nowhere) y.at(static_cast<std::size_t>(to.second)) = pair.second;
  }
  return y;
}

template <Transform kind>
void check_folding() {
  CAPTURE(std::string(kernels::name(kind)));
  for (Index n = kind == Transform::dct1 ? 2 : 1; n < 40; ++n) {
    CAPTURE(n);
    const auto lines = random_rows<double>(1, n);
    const std::vector<double> x(lines.data.begin() + Array<double>::margin,
                                lines.data.begin() + Array<double>::margin + n);
    const auto y = by_folding<kind>(x);
    const Definition definition(kind, n);
    RelativeError error;
    for (Index k = 0; k < n; ++k)
      error.add(static_cast<long double>(y[static_cast<std::size_t>(k)]),
                definition.output([&](Index j) { return x[static_cast<std::size_t>(j)]; }, k));
    CHECK(error.value() < 2e-15);
  }
}

}  // namespace

TEST_CASE("transforms: folding, a DFT and unfolding make them") {
  check_folding<Transform::dst1>();
  check_folding<Transform::dst2>();
  check_folding<Transform::dst3>();
  check_folding<Transform::dst4>();
  check_folding<Transform::dct1>();
  check_folding<Transform::dct2>();
  check_folding<Transform::dct3>();
  check_folding<Transform::dct4>();
  check_folding<Transform::dft>();
  check_folding<Transform::idft>();
}

// --- Hard lengths, odd numbers, many threads -----------------------------------------------------

// Lengths on which FFTs of their own length round two to three times as much as on powers of two.
TEST_CASE_TEMPLATE("sine transform: large primes cost no accuracy", T, float, double) {
  constexpr double unit_roundoff = std::numeric_limits<T>::epsilon() / 2;
  for (const Index N : {37, 101, 127, 257, 509, 998, 1021, 4097, 10007}) {
    CAPTURE(N);
    CHECK(kernels::has_large_prime(N));
    const auto x = random_rows<T>(2, N - 1);
    auto y = x;
    dst(y);
    CHECK(error_by_definition(Transform::dst1, y, x) < 1.5 * unit_roundoff);
  }
  for (const Index N : {1, 2, 31, 1000, 4096, 49152}) CHECK_FALSE(kernels::has_large_prime(N));
}

TEST_CASE("sine transform: the high part of a chirp convolution is exact") {
  for (const Index N : {37, 1021, 4097, 49157}) {
    CAPTURE(N);
    const kernels::cpu::ChirpConvolution& convolve = kernels::cpu::chirp_convolution(N);
    const kernels::Chirp& chirp = convolve.chirp();
    const auto lines = convolve.lines();
    const auto noise = random_rows<double>(2, 2 * N);
    for (Index j = 0; j < 2 * chirp.M; ++j) lines.in[j] = {0, 0};
    for (Index j = 0; j < N; ++j)  // as large as (C2) allows
      lines.in[j] = kernels::to_grid(kernels::Complex<double>{2 * noise(0, 2 * j), 2 * noise(0, 2 * j + 1)},
                                     chirp.grid().coarse);
    convolve(lines);
    double farthest = 0;  // from the grid, in units of its spacing
    for (Index k = 0; 2 * k < N; ++k)
      for (const double v : {lines.in[k].re, lines.in[k].im}) {
        const double in_units = std::ldexp(v, 2 * chirp.bits);
        farthest = std::max(farthest, std::abs(in_units - std::nearbyint(in_units)));
      }
    CHECK(farthest < 0.25);
  }
}

TEST_CASE_TEMPLATE("sine transform: odd lines of hard lengths", T, float, double) {
  constexpr Index n = 1020;
  const auto transformed = [](auto value) {
    Array<T> line({.count = 1, .length = n, .width = 1});
    line.for_each([&](Index, Index j, T& x) { x = static_cast<T>(value(j)); });
    const Array<T> before = line;
    dst(line);
    return std::pair{line, before};
  };
  const auto [zeros, none] = transformed([](Index) { return 0.0; });
  for (Index k = 0; k < n; ++k) CHECK(zeros(0, k) == 0);
  for (const double factor : {1e-30, 1.0, 1e30}) {  // one huge number among small ones
    const auto [y, x] = transformed([factor](Index j) { return j == 7 ? 1e6 * factor : factor; });
    CHECK(error_by_definition(Transform::dst1, y, x) < tolerance<T>(n));
  }
  const auto [broken, nan] = transformed([](Index j) { return j == 3 ? std::nan("") : 1.0; });
  CHECK(std::isnan(broken(0, 0)));
  const double least = std::numeric_limits<T>::denorm_min();
  const auto [tiny, denormal] = transformed([least](Index) { return least; });
  CHECK(std::isfinite(tiny(0, 0)));
}

TEST_CASE_TEMPLATE("transforms: no lines, no points", T, float, double) {
  auto x = random_rows<T>(1, 5);
  const auto before = x.data;
  for (const Transform kind : kinds) {
    kernels::cpu::transform<T>(kind, {x.data.data(), 0, 5, 5, 1, 1});
    kernels::cpu::transform<T>(kind, {x.data.data(), 1, 5, 0, 1, 1});
    kernels::cpu::transform<T>(kind, {x.data.data(), 1, 5, 5, 1, 0});
  }
  CHECK(x.data == before);
}

TEST_CASE("sine transform: long lines stay accurate in single precision") {
  constexpr Index n = 49'151, samples = 40;  // N = 2^14 * 3
  const auto x = random_rows<float>(3, n);
  auto single = x;
  dst(single);

  Array<double> exact(x.layout);
  exact.for_each([&](Index line, Index j, double& point) { point = static_cast<double>(x(line, j)); });
  dst(exact);

  const Definition definition(Transform::dst1, n);
  RelativeError error;  // is the double transform right itself?
  for (Index line = 0; line < x.lines(); ++line)
    for (Index s = 0; s < samples; ++s) {
      const Index k = s * (n - 1) / (samples - 1);
      error.add(static_cast<long double>(exact(line, k)),
                definition.output([&](Index j) { return x(line, j); }, k));
    }
  CHECK(error.value() < tolerance<double>(n));
  CHECK(relative_error(single, exact) < tolerance<float>(n));
}

TEST_CASE_TEMPLATE("transforms: many threads at once", T, float, double) {
  // Lengths that no other test has planned, so that the threads plan at once too.
  const std::initializer_list<Index> unplanned = {719, 720, 20'000};
  for (const Transform kind : kinds)
    for (const Index n : unplanned) {
      CAPTURE(std::string(kernels::name(kind)));
      CAPTURE(n);
      const auto x = random_lines<T>({.count = 2, .length = n, .width = 3});
      std::vector<Array<T>> results(8, x);
      std::vector<std::thread> threads;
      for (auto& result : results) threads.emplace_back([kind, &result] { transform(kind, result); });
      for (auto& thread : threads) thread.join();

      auto alone = x;
      transform(kind, alone);
      for (const auto& result : results) CHECK(result.data == alone.data);
    }
}

#ifdef ASTERISM_WITH_CUDA

namespace {

template <class T>
struct Arguments {
  Transform kind;
  kernels::Lines<T> from, to;  ///< shapes alone
};

/// A shape, moved to where a task finds its lines.
template <class T, class Number>
kernels::Lines<Number> lines_at(const kernels::Lines<T>& shape, Number* data) {
  return {data, shape.count, shape.distance, shape.length, shape.stride, shape.width};
}

template <class T>
void gpu_in_place(Stream stream, const Arguments<T>& a, InOut<T> data, Scratch<T> work) {
  T* const first = data.data + Array<T>::margin;
  kernels::cuda::transform<T>(stream, a.kind, lines_at<T, const T>(a.to, first), lines_at(a.to, first),
                              work.data);
}

template <class T>
void gpu_out_of_place(Stream stream, const Arguments<T>& a, In<T> from, InOut<T> to, Scratch<T> work) {
  kernels::cuda::transform<T>(stream, a.kind, lines_at(a.from, from.data + Array<T>::margin),
                              lines_at(a.to, to.data + Array<T>::margin), work.data);
}

template <class T>
class Gpu {
 public:
  Array<T> in_place(Transform kind, Array<T> lines) {
    {
      Tile<T> work(runtime_, 1, scratch(kind, lines.shape()));
      const auto size = static_cast<Index>(lines.data.size());
      const Tile<T> tile(runtime_, lines.data.data(), 1, size, size);
      static const Codelet<Arguments<T>, InOut<T>, Scratch<T>> codelet(name("test_transform_in_place"),
                                                                       nullptr, &gpu_in_place<T>);
      codelet({kind, lines.shape(), lines.shape()}, tile, work);
      runtime_.wait();
    }
    return lines;
  }

  /// @param to the layout of what is returned
  Array<T> out_of_place(Transform kind, Array<T> from, const Layout& layout) {
    const auto before = from.data;
    Array<T> to(layout, std::numeric_limits<T>::quiet_NaN());
    {
      // As much as more lines want is enough.
      kernels::Lines<T> more = from.shape();
      more.count += 5;
      Tile<T> work(runtime_, 1, scratch(kind, more));
      const auto from_size = static_cast<Index>(from.data.size()),
                 to_size = static_cast<Index>(to.data.size());
      const Tile<T> source(runtime_, from.data.data(), 1, from_size, from_size);
      const Tile<T> target(runtime_, to.data.data(), 1, to_size, to_size);
      static const Codelet<Arguments<T>, In<T>, InOut<T>, Scratch<T>> codelet(
          name("test_transform_out_of_place"), nullptr, &gpu_out_of_place<T>);
      codelet({kind, from.shape(), to.shape()}, source, target, work);
      runtime_.wait();
    }
    CHECK(from.data == before);
    return to;
  }

 private:
  static Options one_gpu() {
    Options options;
    options.gpus = 1;
    return options;
  }

  static Index scratch(Transform kind, const kernels::Lines<T>& shape) {
    return std::max<Index>(1, kernels::cuda::transform_scratch<T>(kind, shape));
  }

  static std::string name(const char* operation) {
    return std::string(operation) + (sizeof(T) == sizeof(float) ? "_f32" : "_f64");
  }

  Runtime runtime_{one_gpu()};
};

}  // namespace

TEST_CASE_TEMPLATE("gpu: transforms equal the sums that define them", T, float, double) {
  Gpu<T> gpu;
  double worst = 0;  // over the tolerance
  for (const Transform kind : kinds) {
    CAPTURE(std::string(kernels::name(kind)));
    for (const Index n : lengths)
      for (const Layout& layout : layouts(n)) {
        CAPTURE(n);
        CAPTURE(layout.width);
        const auto x = random_lines<T>(layout);
        Layout elsewhere = layout;
        elsewhere.gap = 3 - layout.gap;
        elsewhere.group_gap = 4;
        for (const auto& y : {gpu.in_place(kind, x), gpu.out_of_place(kind, x, elsewhere)}) {
          const double error = error_by_definition(kind, y, x) / tolerance<T>(n);
          CHECK(error < 1);
          CHECK(y.padding_is_untouched());
          worst = std::max(worst, error);
        }
      }
  }
  MESSAGE("largest error: ", worst, " of the tolerance");
}

TEST_CASE_TEMPLATE("gpu: transforms of many short and of long lines equal the CPU's", T, float, double) {
  Gpu<T> gpu;
  // One of each way to fold: into complex numbers, from real ones, to real ones.
  for (const Transform kind : {Transform::dst1, Transform::dft, Transform::dct3})
    for (const Layout& layout :
         {// More short lines than a CUDA grid has rows of threads; rounds that do not divide the lines.
          Layout{.count = 300'000, .length = 1, .width = 1},
          Layout{.count = 70'001, .length = 6, .width = 1},
          Layout{.count = 7001, .length = 5, .width = 30},
          Layout{.count = 1, .length = 5, .width = 400'000},
          Layout{.count = 301, .length = 4095, .width = 1},
          Layout{.count = 2, .length = 1023, .width = 1021},
          Layout{.count = 5, .length = 49'151, .width = 1},
          Layout{.count = 1, .length = 49'152, .width = 9}}) {
      CAPTURE(std::string(kernels::name(kind)));
      CAPTURE(layout.length);
      const auto x = random_lines<T>(layout);
      auto expected = x;
      transform(kind, expected);
      kernels::cuda::plan_transform<T>(kind, x.shape());
      CHECK(relative_error(gpu.in_place(kind, x), expected) < tolerance<T>(layout.length));
    }
}

TEST_CASE_TEMPLATE("gpu: working memory is bounded, and fewer lines want no more", T, float, double) {
  constexpr Index bound = Index{160} << 20;  // lines, cuFFT's work area, and copies of strided ones
  for (const Transform kind : {Transform::dst1, Transform::dct2, Transform::dct4})
    for (const Index n : {5, 1021, 4096}) {
      Index before = 0;
      for (Index count = 1; count <= 1'000'000; count *= 7) {
        CAPTURE(n);
        CAPTURE(count);
        const Index scratch =
            kernels::cuda::transform_scratch<T>(kind, kernels::Lines<T>{nullptr, count, n * 3, n, 3, 3});
        CHECK(scratch >= before);
        CHECK(scratch * static_cast<Index>(sizeof(T)) < bound);
        before = scratch;
      }
    }
}

#endif
