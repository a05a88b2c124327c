// The transforms of lines in shared memory against the sums that define them: what their threads do, on the
// host, and the kernels.

#include "codelets/transforms/power_of_two/line_transform.hpp"
#include "codelets/transforms/power_of_two/even_kinds.cuh"
#include "codelets/transforms/power_of_two/first_kinds.cuh"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <numbers>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#ifdef ASTERISM_WITH_CUDA
#include "runtime/codelet.hpp"
#include "runtime/runtime.hpp"
#include "runtime/tile.hpp"
#endif

using namespace asterism;
using transforms::Transform;

namespace {

constexpr Transform kinds[] = {Transform::dst1, Transform::dst2, Transform::dst3, Transform::dst4,
                               Transform::dct1, Transform::dct2, Transform::dct3, Transform::dct4,
                               Transform::dft,  Transform::idft};

bool is_first(Transform kind) { return kind == Transform::dst1 || kind == Transform::dct1; }

/// The length of lines whose FFT has the length 2^bits.
Index length(Transform kind, int bits) {
  const Index N = Index{1} << bits;
  return kind == Transform::dst1 ? N - 1 : kind == Transform::dct1 ? N + 1 : N;
}

/// (T1), as it stands.
class Definition {
 public:
  Definition(Transform kind, Index n) : kind_(kind), n_(n), quarter_(2 * transforms::fft_length(kind, n)) {
    for (Index i = 0; i < 4 * quarter_; ++i)
      cosines_.push_back(std::cos(std::numbers::pi_v<long double> * static_cast<long double>(i) /
                                  static_cast<long double>(2 * quarter_)));
  }

  /// Output k of the line x_j = x(j).
  template <class X>
  long double operator()(X x, Index k) const {
    long double sum = 0;
    for (Index j = 0; j < n_; ++j) sum += static_cast<long double>(x(j)) * weight(j, k);
    return sum;
  }

 private:
  /// cos(pi p / q), sin(pi p / q), where q divides 2 quarter_
  [[nodiscard]] long double cos(Index p, Index q) const {
    return cosines_[static_cast<std::size_t>(p * (2 * quarter_ / q) % (4 * quarter_))];
  }
  [[nodiscard]] long double sin(Index p, Index q) const {
    return cosines_[static_cast<std::size_t>((p * (2 * quarter_ / q) + 3 * quarter_) % (4 * quarter_))];
  }

  [[nodiscard]] long double weight(Index j, Index k) const {
    const Index n = n_;
    const long double alternating = k % 2 == 0 ? 1 : -1;
    switch (kind_) {
      case Transform::dst1:
        return 2 * sin((j + 1) * (k + 1), n + 1);
      case Transform::dst2:
        return 2 * sin((2 * j + 1) * (k + 1), 2 * n);
      case Transform::dst3:
        return j < n - 1 ? 2 * sin((j + 1) * (2 * k + 1), 2 * n) : alternating;
      case Transform::dst4:
        return 2 * sin((2 * j + 1) * (2 * k + 1), 4 * n);
      case Transform::dct1:
        return j == 0 ? 1 : j < n - 1 ? 2 * cos(j * k, n - 1) : alternating;
      case Transform::dct2:
        return 2 * cos((2 * j + 1) * k, 2 * n);
      case Transform::dct3:
        return j == 0 ? 1 : 2 * cos(j * (2 * k + 1), 2 * n);
      case Transform::dct4:
        return 2 * cos((2 * j + 1) * (2 * k + 1), 4 * n);
      case Transform::dft:
        return 2 * k <= n ? cos(2 * j * k, n) : -sin(2 * j * (n - k), n);
      default:
        return j == 0       ? 1
               : 2 * j < n  ? 2 * cos(2 * j * k, n)
               : 2 * j == n ? alternating
                            : -2 * sin(2 * (n - j) * k, n);
    }
  }

  Transform kind_;
  Index n_, quarter_;
  std::vector<long double> cosines_;
};

/// A block of memory with lines in it, and gaps around and between them.
struct Layout {
  Index count, width, n;
  [[nodiscard]] Index first() const { return 5; }
  [[nodiscard]] Index stride() const { return width == 1 ? 1 : width + 4; }
  [[nodiscard]] Index distance() const { return n * stride() + 3; }
  [[nodiscard]] Index size() const { return first() + count * distance(); }
  [[nodiscard]] std::size_t at(Index group, Index line, Index j) const {
    return static_cast<std::size_t>(first() + group * distance() + line + j * stride());
  }
};

template <class T>
std::vector<T> noise(Index size, Index seed) {
  std::mt19937 bits(static_cast<std::uint32_t>(seed));
  std::vector<T> numbers(static_cast<std::size_t>(size));
  for (T& x : numbers) x = static_cast<T>(std::ldexp(bits(), -31) - 1);
  return numbers;
}

/// The error of `got` relative to the transform of `x`, in the 2-norm, in units of rounding, at every step-th
/// point; of the gaps between lines, that of `got` against `before`: infinite when one was touched.
template <class T>
double error(Transform kind, const Layout& layout, const std::vector<T>& x, const std::vector<T>& got,
             std::vector<T> before, Index step = 1) {
  const Definition definition(kind, layout.n);
  long double difference = 0, norm = 0;
  for (Index g = 0; g < layout.count; ++g)
    for (Index line = 0; line < layout.width; ++line) {
      const auto point = [&](Index j) { return x[layout.at(g, line, j)]; };
      for (Index k = (g + line) % step; k < layout.n; k += step) {
        const long double y = definition(point, k),
                          d = static_cast<long double>(got[layout.at(g, line, k)]) - y;
        difference += d * d;
        norm += y * y;
      }
      for (Index k = 0; k < layout.n; ++k) before[layout.at(g, line, k)] = got[layout.at(g, line, k)];
    }
  const bool equal = std::equal(got.begin(), got.end(), before.begin(), before.end(),
                                [](T a, T b) { return a == b || (std::isnan(a) && std::isnan(b)); });
  if (!equal) return std::numeric_limits<double>::infinity();
  return static_cast<double>(std::sqrt(difference / norm)) / (std::numeric_limits<T>::epsilon() / 2);
}

double tolerance(int bits) { return 1 + 0.5 * bits; }  // measured: up to 3

/// What a kernel's block does, phase after phase and thread after thread.
template <class Kinds, class T, class Lines, int... phase>
void run_block(const Lines& lines, Transform kind, int threads, std::integer_sequence<int, phase...>) {
  static const auto numbers = transforms::LineTables::make<T>();
  static const auto places = transforms::output_places<T>();
  const transforms::Tables<T> tables{numbers.data(), places.data()};
  constexpr T poison = std::numeric_limits<T>::quiet_NaN();
  std::vector<transforms::Complex<T>> shared(static_cast<std::size_t>(lines.pitch) << lines.log_lines,
                                             {poison, poison});
  const auto run = [&](auto p) {
    for (int thread = 0; thread < threads; ++thread)
      Kinds::template run<decltype(p)::value>(lines, kind, shared.data(), tables, thread, threads);
  };
  (run(std::integral_constant<int, phase>{}), ...);
}

template <class T, int bits>
void check_phases() {
  using Even = transforms::EvenKinds<T, bits>;
  using First = transforms::FirstKinds<T, bits>;
  struct Shape {
    Index lines;
    int log_lines, threads, gap;
  };
  for (const Transform kind : kinds)
    for (const bool side_by_side : {false, true})
      for (const auto& [lines, log_lines, threads, gap] : {Shape{1, 0, 64, 0}, Shape{3, 2, 37, 2}}) {
        CAPTURE(transforms::name(kind));
        CAPTURE(bits);
        CAPTURE(side_by_side);
        CAPTURE(lines);
        const Index n = length(kind, bits);
        const Layout layout{side_by_side ? 1 : lines, side_by_side ? lines : 1, n};
        const auto x = noise<T>(layout.size(), n);
        const std::vector<T> before(x.size(), std::numeric_limits<T>::quiet_NaN());
        auto y = before;
        const Index apart = side_by_side ? 1 : layout.distance();
        transforms::BlockLines<T> block{x.data() + layout.first(),
                                              y.data() + layout.first(),
                                              apart,
                                              apart,
                                              static_cast<int>(layout.stride()),
                                              static_cast<int>(layout.stride()),
                                              static_cast<int>(lines),
                                              log_lines,
                                              side_by_side,
                                              (is_first(kind) ? First::numbers : Even::numbers) + gap};
        const auto transform = [&](const auto& lines_of_block) {
          y = before;
          if (is_first(kind))
            run_block<First, T>(lines_of_block, kind, threads,
                                std::make_integer_sequence<int, First::phases>{});
          else
            run_block<Even, T>(lines_of_block, kind, threads,
                               std::make_integer_sequence<int, Even::phases>{});
          CHECK(error(kind, layout, x, y, before) < tolerance(bits));
        };
        transform(block);
        if (!side_by_side) transform(transforms::ContiguousLines<T>(block));
      }
}

template <class T, int... i>
void check_all_phases(std::integer_sequence<int, i...>) {
  (check_phases<T, 2 + i>(), ...);
}

}  // namespace

TEST_CASE_TEMPLATE("line transform: what the threads do equals the sum that defines it", T, float, double) {
  check_all_phases<T>(std::make_integer_sequence<int, 8>{});  // up to 512: all radices, three passes
}

TEST_CASE_TEMPLATE("line transform: threads that go together meet in no bank", T, float, double) {
  constexpr int together = 128 / static_cast<int>(sizeof(transforms::Complex<T>));
  constexpr int bits = sizeof(T) == 8 ? 11 : 12;  // float32's other lengths meet once in some passes
  const auto check = [](auto place) {
    for (int thread = 0; thread < together; ++thread)
      for (int other = 0; other < thread; ++other)
        CHECK(transforms::slot<T>(place(thread)) % together !=
              transforms::slot<T>(place(other)) % together);
  };
  for (int pass = 0; pass < transforms::pass_count(bits, 4); ++pass) {
    CAPTURE(pass);
    const int radix = transforms::pass_radix(bits, 4, pass),
              stride = transforms::pass_stride(bits, 4, pass);
    check([=](int t) { return t >> stride << (stride + radix) | (t & ((1 << stride) - 1)); });
  }
  check([](int k) { return transforms::fft_place<bits, 4>(k); });
}

#ifdef ASTERISM_WITH_CUDA

TEST_CASE("line transform: which lines fit") {
  using transforms::cuda::line_transform_fits;
  for (const Transform kind : kinds) {
    CAPTURE(transforms::name(kind));
    for (int bits = 3; bits <= 10; ++bits)
      for (const Index width : {1, 2, 3, 511}) {
        const Index n = length(kind, bits);
        CHECK(line_transform_fits<float>(kind, n, width));
        CHECK(line_transform_fits<double>(kind, n, width));
        for (const Index other : {n - 1, n + 1, 3 * n})
          CHECK_FALSE(line_transform_fits<float>(kind, other, width));
      }
    for (const Index n : {-1, 0, 1}) CHECK_FALSE(line_transform_fits<double>(kind, n, 1));
    CHECK_FALSE(line_transform_fits<double>(kind, length(kind, 15), 1));
    CHECK_FALSE(line_transform_fits<float>(kind, length(kind, 16), 1));
    CHECK_FALSE(line_transform_fits<float>(kind, length(kind, 62), 1));
  }
}

namespace {

struct Call {
  Transform kind;
  Layout layout;
};

template <class T>
void gpu_in_place(Stream stream, const Call& call, InOut<T> memory) {
  const Layout& l = call.layout;
  T* const first = memory.data + l.first();
  transforms::cuda::line_transform<T>(stream, call.kind,
                                      {first, l.count, l.distance(), l.n, l.stride(), l.width},
                                      {first, l.count, l.distance(), l.n, l.stride(), l.width});
}

/// From lines without gaps between them.
template <class T>
void gpu_out_of_place(Stream stream, const Call& call, In<T> from, InOut<T> to) {
  const Layout& l = call.layout;
  transforms::cuda::line_transform<T>(stream, call.kind,
                                      {from.data, l.count, l.n * l.width, l.n, l.width, l.width},
                                      {to.data + l.first(), l.count, l.distance(), l.n, l.stride(), l.width});
}

template <class T>
class GpuTransform {
 public:
  void in_place(Transform kind, const Layout& layout, std::vector<T>& memory) {
    const Tile<T> tile(runtime_, memory.data(), 1, layout.size(), layout.size());
    static const Codelet<Call, InOut<T>> transform(name("test_line_transform_in_place"), nullptr,
                                                   &gpu_in_place<T>);
    transform({kind, layout}, tile);
    runtime_.wait();
  }

  void out_of_place(Transform kind, const Layout& layout, std::vector<T>& from, std::vector<T>& to) {
    const auto size = static_cast<Index>(from.size());
    const Tile<T> source(runtime_, from.data(), 1, size, size),
        target(runtime_, to.data(), 1, layout.size(), layout.size());
    static const Codelet<Call, In<T>, InOut<T>> transform(name("test_line_transform_out_of_place"), nullptr,
                                                          &gpu_out_of_place<T>);
    transform({kind, layout}, source, target);
    runtime_.wait();
  }

 private:
  static Options one_gpu() {
    Options options;
    options.gpus = 1;
    return options;
  }
  static std::string name(const char* operation) {
    return std::string(operation) + (sizeof(T) == sizeof(float) ? "_f32" : "_f64");
  }

  Runtime runtime_{one_gpu()};
};

}  // namespace

TEST_CASE_TEMPLATE("gpu: line transform equals the sum that defines it", T, float, double) {
  GpuTransform<T> gpu;
  for (const Transform kind : kinds)
    for (int bits = 2; bits <= 15; ++bits) {
      const Index n = length(kind, bits);
      // A block's lines and one more; one group of lines side by side that fill no block, and several.
      for (const auto& [count, width] :
           {std::pair<Index, Index>{bits < 9 ? 35 : 3, 1}, std::pair<Index, Index>{1, 3},
            std::pair<Index, Index>{2, bits < 9 ? 37 : 17}}) {
        CAPTURE(transforms::name(kind));
        CAPTURE(n);
        CAPTURE(width);
        if (!transforms::cuda::line_transform_fits<T>(kind, n, width)) continue;  // the longest
        const Layout layout{count, width, n};
        const Index step = n < 200 ? 1 : n / 20;
        const auto x = noise<T>(layout.size(), n);

        auto y = x;
        gpu.in_place(kind, layout, y);
        CHECK(error(kind, layout, x, y, x, step) < tolerance(bits));

        std::vector<T> dense(static_cast<std::size_t>(count * width * n));
        for (Index g = 0; g < count; ++g)
          for (Index j = 0; j < n; ++j)
            for (Index line = 0; line < width; ++line)
              dense[static_cast<std::size_t>((g * n + j) * width + line)] = x[layout.at(g, line, j)];
        const auto dense_before = dense;
        std::vector<T> z(x.size(), std::numeric_limits<T>::quiet_NaN());
        const auto before = z;
        gpu.out_of_place(kind, layout, dense, z);
        CHECK(error(kind, layout, x, z, before, step) < tolerance(bits));
        CHECK(dense == dense_before);
      }
    }
}

TEST_CASE_TEMPLATE("gpu: line transform and its inverse, many lines", T, float, double) {
  GpuTransform<T> gpu;
  for (const Transform kind : kinds)
    for (const auto& [bits, count, width] :
         {std::tuple{3, Index{100'001}, Index{1}}, std::tuple{9, Index{1001}, Index{1}},
          std::tuple{7, Index{3}, Index{1001}}, std::tuple{13, Index{150}, Index{1}}}) {
      CAPTURE(transforms::name(kind));
      const Layout layout{count, width, length(kind, bits)};
      const auto x = noise<T>(layout.size(), bits);
      auto y = x;
      gpu.in_place(kind, layout, y);
      gpu.in_place(transforms::inverse(kind), layout, y);
      double difference = 0, norm = 0;
      for (Index g = 0; g < count; ++g)
        for (Index line = 0; line < width; ++line)
          for (Index j = 0; j < layout.n; ++j) {
            const auto v = static_cast<double>(x[layout.at(g, line, j)]),
                       d = static_cast<double>(y[layout.at(g, line, j)]) /
                               transforms::round_trip(kind, layout.n) -
                           v;
            difference += d * d;
            norm += v * v;
          }
      CHECK(std::sqrt(difference / norm) < 2 * tolerance(bits) * (std::numeric_limits<T>::epsilon() / 2));
    }
}

#endif
