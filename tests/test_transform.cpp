// The sine transforms against the sum that defines them.

#include "codelets/chirp.hpp"
#include "codelets/transform.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <numbers>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#ifdef ASTERISM_WITH_CUDA
#include <string>

#include "runtime/codelet.hpp"
#include "runtime/runtime.hpp"
#include "runtime/tile.hpp"
#endif

using namespace asterism;

namespace {

constexpr int padding_value = 77;

/// Lines of n numbers, `margin` poisoned elements before each line and behind it.
template <class T>
struct Lines {
  Index rows, cols, margin, ld;
  std::vector<T> data;

  Lines(Index rows_, Index cols_, Index margin_ = 0)
      : rows(rows_),
        cols(cols_),
        margin(margin_),
        ld(cols_ + 2 * margin_),
        data(static_cast<std::size_t>(rows_ * ld), T{padding_value}) {}

  T* row(Index i) { return data.data() + i * ld + margin; }
  const T* row(Index i) const { return data.data() + i * ld + margin; }
  InOut<T> view() { return {row(0), rows, cols, ld}; }

  [[nodiscard]] bool padding_is_untouched() const {
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < margin; ++j)
        if (row(i)[j - margin] != T{padding_value} || row(i)[cols + j] != T{padding_value}) return false;
    return true;
  }
};

template <class T>
Lines<T> random_lines(Index rows, Index cols, Index margin = 0) {
  std::mt19937 bits(static_cast<std::uint32_t>(1000 * cols + rows));
  Lines<T> lines(rows, cols, margin);
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < cols; ++j) lines.row(i)[j] = static_cast<T>(std::ldexp(bits(), -31) - 1);
  return lines;
}

/// sin(pi m / N) for 0 <= m < 2N
std::vector<long double> sines(Index N) {
  std::vector<long double> table;
  for (Index m = 0; m < 2 * N; ++m)
    table.push_back(std::sin(std::numbers::pi_v<long double> * static_cast<long double>(m) /
                             static_cast<long double>(N)));
  return table;
}

/// The slow twin: output k of one line, by its definition.
template <class T>
long double dst_output(const T* x, Index n, Index k, const std::vector<long double>& sine) {
  long double sum = 0;
  for (Index j = 1; j <= n; ++j)
    sum += static_cast<long double>(x[j - 1]) * sine[static_cast<std::size_t>(j * k % (2 * (n + 1)))];
  return 2 * sum;
}

template <class T>
Lines<double> twin(const Lines<T>& x) {
  const auto sine = sines(x.cols + 1);
  Lines<double> y(x.rows, x.cols);
  for (Index i = 0; i < x.rows; ++i)
    for (Index k = 1; k <= x.cols; ++k)
      y.row(i)[k - 1] = static_cast<double>(dst_output(x.row(i), x.cols, k, sine));
  return y;
}

/// 2-norm of the error of `got` over that of `expected`, all lines together; NaN passes no test.
template <class T, class U>
double relative_error(const Lines<T>& got, const Lines<U>& expected) {
  double error = 0, norm = 0;
  for (Index i = 0; i < got.rows; ++i)
    for (Index j = 0; j < got.cols; ++j) {
      const auto e = static_cast<double>(expected.row(i)[j]), d = static_cast<double>(got.row(i)[j]) - e;
      error += d * d;
      norm += e * e;
    }
  return std::sqrt(error / norm);
}

template <class T>
double tolerance(Index n) {
  constexpr double unit_roundoff = std::numeric_limits<T>::epsilon() / 2;
  return 5 * unit_roundoff * std::log2(static_cast<double>(n) + 2);
}

/// N = n + 1 even, odd, a power of two, prime, with a large prime factor.
const std::initializer_list<Index> lengths = {1,   2,    3,    4,    5,    6,    7,    8,    9,   15,
                                              16,  17,   31,   96,   97,   127,  128,  255,  256, 257,
                                              511, 1000, 1020, 1021, 2047, 4094, 4095, 4096, 4098};

}  // namespace

TEST_CASE_TEMPLATE("sine transform: by hand", T, float, double) {
  const auto transform = [](std::vector<T> x) {
    const auto n = static_cast<Index>(x.size());
    kernels::cpu::dst<T>({x.data(), 1, n, n});
    return x;
  };
  CHECK(transform({3}) == std::vector<T>{6});

  const auto two = transform({2, 1});
  const auto root = std::numbers::sqrt3_v<T>;
  CHECK(two[0] == doctest::Approx(3 * root));
  CHECK(two[1] == doctest::Approx(root));

  const auto three = transform({1, 1, 1});
  CHECK(three[0] == doctest::Approx(2 + 2 * std::numbers::sqrt2_v<T>));
  CHECK(three[1] == doctest::Approx(0));
  CHECK(three[2] == doctest::Approx(2 * std::numbers::sqrt2_v<T> - 2));
}

TEST_CASE_TEMPLATE("sine transform: equals the sum that defines it", T, float, double) {
  for (const Index n : lengths)
    for (const Index margin : {0, 1, 3}) {
      CAPTURE(n);
      CAPTURE(margin);
      if (margin == 3 && n > 300) continue;
      const auto x = random_lines<T>(3, n, margin);
      auto y = x;
      kernels::cpu::dst(y.view());
      CHECK(relative_error(y, twin(x)) < tolerance<T>(n));
      CHECK(y.padding_is_untouched());
    }
}

TEST_CASE_TEMPLATE("sine transform: twice is a multiple of the identity", T, float, double) {
  for (const Index n : lengths) {
    CAPTURE(n);
    const auto x = random_lines<T>(2, n);
    auto y = x;
    kernels::cpu::plan_dst<T>(n);
    kernels::cpu::dst(y.view());
    kernels::cpu::dst(y.view());
    for (T& number : y.data) number = static_cast<T>(number / kernels::dst_twice(n));
    CHECK(relative_error(y, x) < 2 * tolerance<T>(n));
  }
}

// Lengths on which FFTs of their own length round two to three times as much as on powers of two.
TEST_CASE_TEMPLATE("sine transform: large primes cost no accuracy", T, float, double) {
  constexpr double unit_roundoff = std::numeric_limits<T>::epsilon() / 2;
  for (const Index N : {37, 101, 127, 257, 509, 998, 1021, 4097, 10007}) {
    CAPTURE(N);
    CHECK(kernels::has_large_prime(N));
    auto y = random_lines<T>(2, N - 1);
    const auto expected = twin(y);
    kernels::cpu::dst(y.view());
    CHECK(relative_error(y, expected) < 1.5 * unit_roundoff);
  }
  for (const Index N : {1, 2, 31, 1000, 4096, 49152}) CHECK_FALSE(kernels::has_large_prime(N));
}

TEST_CASE("sine transform: the high part of a chirp convolution is exact") {
  for (const Index N : {37, 1021, 4097, 49157}) {
    CAPTURE(N);
    const kernels::cpu::ChirpConvolution& convolve = kernels::cpu::chirp_convolution(N);
    const kernels::Chirp& chirp = convolve.chirp();
    const auto lines = convolve.lines();
    const auto noise = random_lines<double>(2, 2 * N);
    for (Index j = 0; j < 2 * chirp.M; ++j) lines.in[j] = {0, 0};
    for (Index j = 0; j < N; ++j)  // as large as (C2) allows
      lines.in[j] = kernels::to_grid(kernels::Complex<double>{2 * noise.row(0)[2 * j], 2 * noise.row(0)[2 * j + 1]},
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
    Lines<T> line(1, n);
    for (Index j = 0; j < n; ++j) line.row(0)[j] = static_cast<T>(value(j));
    const Lines<T> before = line;
    kernels::cpu::dst(line.view());
    return std::pair{line, before};
  };
  const auto [zeros, none] = transformed([](Index) { return 0.0; });
  for (const T y : zeros.data) CHECK(y == 0);
  for (const double factor : {1e-30, 1.0, 1e30}) {  // one huge number among small ones
    const auto [y, x] = transformed([factor](Index j) { return j == 7 ? 1e6 * factor : factor; });
    CHECK(relative_error(y, twin(x)) < tolerance<T>(n));
  }
  const auto [broken, nan] = transformed([](Index j) { return j == 3 ? std::nan("") : 1.0; });
  CHECK(std::isnan(broken.row(0)[0]));
  const double least = std::numeric_limits<T>::denorm_min();
  const auto [tiny, denormal] = transformed([least](Index) { return least; });
  CHECK(std::isfinite(tiny.row(0)[0]));
}

TEST_CASE_TEMPLATE("sine transform: no lines, no points", T, float, double) {
  auto x = random_lines<T>(1, 5);
  const auto before = x.data;
  kernels::cpu::dst<T>({x.data.data(), 0, 5, 5});
  kernels::cpu::dst<T>({x.data.data(), 1, 0, 5});
  CHECK(x.data == before);
}

TEST_CASE("sine transform: long lines stay accurate in single precision") {
  constexpr Index n = 49'151, samples = 40;  // N = 2^14 * 3
  const auto x = random_lines<float>(3, n);
  auto single = x;
  kernels::cpu::dst(single.view());

  Lines<double> exact(x.rows, n);
  for (Index i = 0; i < x.rows; ++i)
    for (Index j = 0; j < n; ++j) exact.row(i)[j] = static_cast<double>(x.row(i)[j]);
  kernels::cpu::dst(exact.view());

  Lines<double> sampled(x.rows, samples), summed(x.rows, samples);  // is the double transform right itself?
  const auto sine = sines(n + 1);
  for (Index i = 0; i < x.rows; ++i)
    for (Index s = 0; s < samples; ++s) {
      const Index k = 1 + s * (n - 1) / (samples - 1);
      sampled.row(i)[s] = exact.row(i)[k - 1];
      summed.row(i)[s] = static_cast<double>(dst_output(x.row(i), n, k, sine));
    }
  CHECK(relative_error(sampled, summed) < tolerance<double>(n));
  CHECK(relative_error(single, exact) < tolerance<float>(n));
}

TEST_CASE_TEMPLATE("sine transform: many threads at once", T, float, double) {
  // Lengths that no other test has planned, so that the threads plan at once too.
  const std::initializer_list<Index> unplanned = {719, 720, 20'000};
  for (const Index n : unplanned) {
    CAPTURE(n);
    const auto x = random_lines<T>(8, n);
    std::vector<Lines<T>> results(8, x);
    std::vector<std::thread> threads;
    for (auto& result : results) threads.emplace_back([&result] { kernels::cpu::dst(result.view()); });
    for (auto& thread : threads) thread.join();

    auto alone = x;
    kernels::cpu::dst(alone.view());
    for (const auto& result : results) CHECK(result.data == alone.data);
  }
}

#ifdef ASTERISM_WITH_CUDA

namespace {

struct Transform {
  Index cols, margin, lines_at_once;
};

template <class T>
void gpu_in_place(Stream stream, const Transform& t, InOut<T> lines, Scratch<T> work) {
  T* const first = lines.data + t.margin;
  kernels::cuda::dst<T>(stream, {first, lines.rows, t.cols, lines.ld}, {first, lines.rows, t.cols, lines.ld},
                        work.data, t.lines_at_once);
}

template <class T>
void gpu_out_of_place(Stream stream, const Transform& t, In<T> from, InOut<T> to, Scratch<T> work) {
  kernels::cuda::dst<T>(stream, {from.data + t.margin, from.rows, t.cols, from.ld},
                        {to.data + t.margin, to.rows, t.cols, to.ld}, work.data, t.lines_at_once);
}

template <class T>
class GpuTransform {
 public:
  Lines<T> in_place(Lines<T> lines, Index lines_at_once) {
    {
      Tile<T> work(runtime_, 1, kernels::cuda::dst_scratch<T>(lines.cols, lines_at_once));
      const Tile<T> tile(runtime_, lines.data.data(), lines.rows, lines.ld, lines.ld);
      static const Codelet<Transform, InOut<T>, Scratch<T>> dst(name("test_dst_in_place"), nullptr,
                                                                &gpu_in_place<T>);
      dst({lines.cols, lines.margin, lines_at_once}, tile, work);
      runtime_.wait();
    }
    return lines;
  }

  Lines<T> out_of_place(Lines<T> from, Index lines_at_once) {
    const auto before = from.data;
    Lines<T> to(from.rows, from.cols, from.margin);
    for (Index i = 0; i < to.rows; ++i)
      for (Index j = 0; j < to.cols; ++j) to.row(i)[j] = std::numeric_limits<T>::quiet_NaN();
    {
      Tile<T> work(runtime_, 1, kernels::cuda::dst_scratch<T>(from.cols, lines_at_once));
      const Tile<T> source(runtime_, from.data.data(), from.rows, from.ld, from.ld);
      const Tile<T> target(runtime_, to.data.data(), to.rows, to.ld, to.ld);
      static const Codelet<Transform, In<T>, InOut<T>, Scratch<T>> dst(name("test_dst_out_of_place"), nullptr,
                                                                       &gpu_out_of_place<T>);
      dst({from.cols, from.margin, lines_at_once}, source, target, work);
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

  static std::string name(const char* operation) {
    return std::string(operation) + (sizeof(T) == sizeof(float) ? "_f32" : "_f64");
  }

  Runtime runtime_{one_gpu()};
};

}  // namespace

TEST_CASE_TEMPLATE("gpu: sine transform equals the sum that defines it", T, float, double) {
  GpuTransform<T> gpu;
  constexpr Index rows = 7;
  for (const Index n : lengths) {
    const Index margin = n % 3;
    CAPTURE(n);
    const auto x = random_lines<T>(rows, n, margin);
    const auto expected = twin(x);
    for (const Index lines_at_once :
         {Index{1}, Index{3}, Index{7}, kernels::cuda::dst_lines_at_once<T>(n, 20)}) {
      CAPTURE(lines_at_once);
      for (const auto& y : {gpu.in_place(x, lines_at_once), gpu.out_of_place(x, lines_at_once)}) {
        CHECK(relative_error(y, expected) < tolerance<T>(n));
        CHECK(y.padding_is_untouched());
      }
    }
  }
}

TEST_CASE_TEMPLATE("gpu: sine transform of many short and of long lines equals the CPU's", T, float, double) {
  GpuTransform<T> gpu;
  struct Shape {
    Index rows, cols;
  };
  // More short lines than a CUDA grid has rows of threads; lines_at_once that does not divide the rows.
  for (const auto& [rows, n] :
       {Shape{1'500'000, 1}, Shape{200'001, 6}, Shape{1001, 4095}, Shape{100, 49'151}}) {
    CAPTURE(n);
    const auto x = random_lines<T>(rows, n);
    auto expected = x;
    kernels::cpu::dst(expected.view());
    kernels::cuda::plan_dst<T>(n, kernels::cuda::dst_lines_at_once<T>(n, rows));
    const auto y = gpu.in_place(x, kernels::cuda::dst_lines_at_once<T>(n, rows));
    CHECK(relative_error(y, expected) < tolerance<T>(n));
  }
}

#endif
