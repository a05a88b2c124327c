// The real transforms against the sums that define them.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <numbers>
#include <string_view>
#include <thread>
#include <vector>

#include "../support/lines.hpp"
#include "../support/skip.hpp"
#include "../support/worst.hpp"
#include "codelets/transforms/bias.hpp"

#ifdef ASTERISM_WITH_CUDA
#include <string>

#include "runtime/codelet.hpp"
#include "runtime/runtime.hpp"
#include "runtime/tile.hpp"
#endif

using namespace asterism;
using namespace asterism::test;

namespace {

/// Even, odd, powers of two, primes, and these less or plus 1, which are the lengths of FFTs of some kinds.
const std::initializer_list<Index> lengths = {
    1,  2,  3,  4,   5,   6,   7,   8,   9,   10,  11,  12,   13,   14,   15,   16,   17,   31,   32,  33,
    64, 96, 97, 127, 128, 255, 256, 257, 509, 511, 513, 1000, 1020, 1021, 1024, 4094, 4095, 4096, 4097};

/// Arrays of lines of n points in all the ways that they lie.
std::vector<LineLayout> layouts(Index n) {
  std::vector<LineLayout> all = {
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
    LineArray<T> lines({.count = 1, .length = static_cast<Index>(x.size()), .width = 1});
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
  Worst worst;  // over the tolerance
  for (const Transform kind : kinds) {
    CAPTURE(std::string(transforms::name(kind)));
    for (const Index n : lengths)
      for (const LineLayout& layout : layouts(n)) {
        CAPTURE(n);
        CAPTURE(layout.width);
        if (left_out_when_sanitized(n > 4000 && n != 4096)) continue;
        const auto x = random_lines<T>(layout);
        auto y = x;
        transform(kind, y);
        const double error = error_by_definition(kind, y, x) / tolerance<T>(n);
        CHECK(error < 1);
        CHECK(y.padding_is_untouched());
        worst.take_in(error);
      }
  }
  MESSAGE("largest error: ", worst.value(), " of the tolerance");
}

TEST_CASE_TEMPLATE("transforms: a line gets the same bits alone and among others", T, float, double) {
  for (const Transform kind : kinds) {
    CAPTURE(std::string(transforms::name(kind)));
    // FFTs of 255 to 257, of 2505 and 2507 and, in halves, of 2506 = 2 x 7 x 179 numbers
    for (const Index n : {256, 2505, 2507}) {
      CAPTURE(n);
      for (const Index count : {1, 3, 8, 16, 19}) {
        CAPTURE(count);
        auto rows = random_rows<T>(count, n);
        LineArray<T> columns({.count = 1, .length = n, .width = count, .spread = true});
        columns.for_each([&](Index line, Index j, T& x) { x = rows(line, j); });
        LineArray<T> last({.count = 1, .length = n, .width = 1});
        last.for_each([&](Index, Index j, T& x) { x = rows(count - 1, j); });
        for (LineArray<T>* const lines : {&rows, &columns, &last}) transform(kind, *lines);
        Index different = 0;
        rows.for_each([&](Index line, Index j, T x) { different += columns(line, j) != x; });
        last.for_each([&](Index, Index j, T x) { different += rows(count - 1, j) != x; });
        CHECK(different == 0);
      }
    }
  }
}

TEST_CASE_TEMPLATE("transforms: there and back is a multiple of the identity", T, float, double) {
  for (const Transform kind : kinds) {
    CAPTURE(std::string(transforms::name(kind)));
    for (const Index n : lengths) {
      CAPTURE(n);
      const auto x = random_lines<T>({.count = 2, .length = n, .width = 2});
      auto y = x;
      transforms::cpu::plan_transform(kind, y.shape());
      transform(kind, y);
      transform(transforms::inverse(kind), y);
      y.for_each(
          [&](Index, Index, T& point) { point = static_cast<T>(point / transforms::round_trip(kind, n)); });
      CHECK(relative_error(y, x) < 2 * tolerance<T>(n));
      CHECK(transforms::inverse(transforms::inverse(kind)) == kind);
      CHECK(transforms::round_trip(kind, n) == transforms::round_trip(transforms::inverse(kind), n));
    }
  }
}

TEST_CASE_TEMPLATE("transforms: their bias is by how much all lines come back too long", T, float, double) {
  constexpr double rounding = std::numeric_limits<T>::epsilon() / 2;
  std::vector<T> longer = transforms::noise<T>(1000);
  for (T& point : longer) point = static_cast<T>(static_cast<double>(point) * 200 * 1.001);
  CHECK(transforms::bias_of(Transform::dst1, 99, longer) == doctest::Approx(0.001).epsilon(1000 * rounding));

  for (const Transform kind : {Transform::dst1, Transform::dct2, Transform::dft})
    for (const Index n : {97, 255, 256, 511, 1012}) {
      CAPTURE(std::string(transforms::name(kind)));
      CAPTURE(n);
      const auto x = random_lines<T>({.count = 64, .length = n, .width = 1});
      auto y = x;
      transform(kind, y);
      transform(transforms::inverse(kind), y);
      long double errors = 0, squares = 0;
      for (Index line = 0; line < 64; ++line)
        for (Index j = 0; j < n; ++j) {
          const long double before = x(line, j), factor = transforms::round_trip(kind, n);
          errors += before * (y(line, j) / factor - before);
          squares += before * before;
        }
      const double bias = transforms::cpu::bias<T>(kind, n);
      CHECK(std::abs(bias - static_cast<double>(errors / squares)) < 0.3 * rounding);
      CHECK(std::abs(bias) < 4 * rounding);
    }
}

TEST_CASE("transforms: have names of their own") {
  for (const Transform a : kinds)
    for (const Transform b : kinds)
      CHECK((std::string_view(transforms::name(a)) == transforms::name(b)) == (a == b));
}

TEST_CASE_TEMPLATE("transforms: no lines, no points", T, float, double) {
  auto x = random_rows<T>(1, 5);
  const auto before = x.data;
  for (const Transform kind : kinds) {
    transforms::cpu::transform<T>(kind, {x.data.data(), 0, 5, 5, 1, 1});
    transforms::cpu::transform<T>(kind, {x.data.data(), 1, 5, 0, 1, 1});
    transforms::cpu::transform<T>(kind, {x.data.data(), 1, 5, 5, 1, 0});
  }
  CHECK(x.data == before);
}

TEST_CASE("sine transform: long lines stay accurate in single precision") {
  constexpr Index n = 49'151, samples = 40;  // N = 2^14 * 3
  const auto x = random_rows<float>(3, n);
  auto single = x;
  dst(single);

  LineArray<double> exact(x.layout);
  exact.for_each([&](Index line, Index j, double& point) { point = static_cast<double>(x(line, j)); });
  dst(exact);

  const Definition definition(Transform::dst1, n);
  RelativeError error;  // is the double transform right itself?
  for (Index line = 0; line < x.lines(); ++line) {
    const std::vector<long double> points = points_of(x, line);
    for (Index s = 0; s < samples; ++s) {
      const Index k = s * (n - 1) / (samples - 1);
      error.add(static_cast<long double>(exact(line, k)), definition.output(points, k));
    }
  }
  CHECK(error.value() < tolerance<double>(n));
  CHECK(relative_error(single, exact) < tolerance<float>(n));
}

TEST_CASE_TEMPLATE("transforms: many threads at once", T, float, double) {
  // Lengths that no other test has planned, so that the threads plan at once too.
  const std::initializer_list<Index> unplanned = {719, 720, 20'000};
  for (const Transform kind : kinds)
    for (const Index n : unplanned) {
      CAPTURE(std::string(transforms::name(kind)));
      CAPTURE(n);
      const auto x = random_lines<T>({.count = 2, .length = n, .width = 3});
      std::vector<LineArray<T>> results(8, x);
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
  transforms::Lines<T> from, to;  ///< shapes alone
  bool backwards = false;
};

/// A shape, moved to where a task finds its lines.
template <class T, class Number>
transforms::Lines<Number> lines_at(const transforms::Lines<T>& shape, Number* data) {
  return {data, shape.count, shape.distance, shape.length, shape.stride, shape.width};
}

template <class T>
void gpu_in_place(Stream stream, const Arguments<T>& a, InOut<T> data, Scratch<T> work) {
  T* const first = data.data + LineArray<T>::margin;
  const auto from = lines_at<T, const T>(a.to, first);
  const auto to = lines_at(a.to, first);
  if (a.backwards)
    transforms::cuda::transform<T>(stream, a.kind, backwards(from), backwards(to), work.data);
  else
    transforms::cuda::transform<T>(stream, a.kind, from, to, work.data);
}

template <class T>
void gpu_out_of_place(Stream stream, const Arguments<T>& a, In<T> from, InOut<T> to, Scratch<T> work) {
  transforms::cuda::transform<T>(stream, a.kind, lines_at(a.from, from.data + LineArray<T>::margin),
                                 lines_at(a.to, to.data + LineArray<T>::margin), work.data);
}

template <class T>
class Gpu {
 public:
  LineArray<T> in_place(Transform kind, LineArray<T> lines, bool backwards = false) {
    {
      Tile<T> work(runtime_, 1, scratch(kind, lines.shape()));
      const auto size = static_cast<Index>(lines.data.size());
      const Tile<T> tile(runtime_, lines.data.data(), 1, size, size);
      static const Codelet<Arguments<T>, InOut<T>, Scratch<T>> codelet(name("test_transform_in_place"),
                                                                       nullptr, &gpu_in_place<T>);
      codelet({kind, lines.shape(), lines.shape(), backwards}, tile, work);
      runtime_.wait();
    }
    return lines;
  }

  /// @param to the layout of what is returned
  LineArray<T> out_of_place(Transform kind, LineArray<T> from, const LineLayout& layout) {
    const auto before = from.data;
    LineArray<T> to(layout, std::numeric_limits<T>::quiet_NaN());
    {
      // As much as more lines want is enough.
      transforms::Lines<T> more = from.shape();
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

  static Index scratch(Transform kind, const transforms::Lines<T>& shape) {
    return std::max<Index>(1, transforms::cuda::transform_scratch<T>(kind, shape));
  }

  static std::string name(const char* operation) {
    return std::string(operation) + (sizeof(T) == sizeof(float) ? "_f32" : "_f64");
  }

  Runtime runtime_{one_gpu()};
};

}  // namespace

TEST_CASE_TEMPLATE("gpu: transforms equal the sums that define them", T, float, double) {
  Gpu<T> gpu;
  Worst worst;  // over the tolerance
  for (const Transform kind : kinds) {
    CAPTURE(std::string(transforms::name(kind)));
    for (const Index n : lengths)
      for (const LineLayout& layout : layouts(n)) {
        CAPTURE(n);
        CAPTURE(layout.width);
        const auto x = random_lines<T>(layout);
        LineLayout elsewhere = layout;
        elsewhere.gap = 3 - layout.gap;
        elsewhere.group_gap = 4;
        for (const auto& y :
             {gpu.in_place(kind, x), gpu.in_place(kind, x, true), gpu.out_of_place(kind, x, elsewhere)}) {
          const double error = error_by_definition(kind, y, x) / tolerance<T>(n);
          CHECK(error < 1);
          CHECK(y.padding_is_untouched());
          worst.take_in(error);
        }
      }
  }
  MESSAGE("largest error: ", worst.value(), " of the tolerance");
}

TEST_CASE_TEMPLATE("gpu: transforms of many short and of long lines equal the CPU's", T, float, double) {
  Gpu<T> gpu;
  // One of each way to fold: into complex numbers, from real ones, to real ones.
  for (const Transform kind : {Transform::dst1, Transform::dft, Transform::dct3})
    for (const LineLayout& layout :
         {// More short lines than a CUDA grid has rows of threads; rounds that do not divide the lines.
          LineLayout{.count = 300'000, .length = 1, .width = 1},
          LineLayout{.count = 70'001, .length = 6, .width = 1},
          LineLayout{.count = 7001, .length = 5, .width = 30},
          LineLayout{.count = 1, .length = 5, .width = 400'000},
          LineLayout{.count = 301, .length = 4095, .width = 1},
          LineLayout{.count = 2, .length = 1023, .width = 1021},
          LineLayout{.count = 5, .length = 49'151, .width = 1},
          LineLayout{.count = 1, .length = 49'152, .width = 9}}) {
      CAPTURE(std::string(transforms::name(kind)));
      CAPTURE(layout.length);
      const auto x = random_lines<T>(layout);
      auto expected = x;
      transform(kind, expected);
      transforms::cuda::plan_transform<T>(kind, x.shape());
      for (const bool backwards : {false, true})
        CHECK(relative_error(gpu.in_place(kind, x, backwards), expected) < tolerance<T>(layout.length));
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
        const Index scratch = transforms::cuda::transform_scratch<T>(
            kind, transforms::Lines<T>{nullptr, count, n * 3, n, 3, 3});
        CHECK(scratch >= before);
        CHECK(scratch * static_cast<Index>(sizeof(T)) < bound);
        before = scratch;
      }
    }
}

#endif
