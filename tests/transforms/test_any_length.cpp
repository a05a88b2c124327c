// The transforms of lines of any length in shared memory against the sums that define them: what their threads do, on
// the host, and through cuda::transform every length up to 2100 and some beyond.

#include "codelets/transforms/any_length/kinds.cuh"
#include "codelets/transforms/any_length/radices.hpp"
#include "codelets/transforms/any_length/symmetric_kinds.cuh"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "../support/lines.hpp"
#include "../support/worst.hpp"

#ifdef ASTERISM_WITH_CUDA
#include "codelets/transforms/any_length/any_length.hpp"
#include "runtime/codelet.hpp"
#include "runtime/runtime.hpp"
#include "runtime/tile.hpp"
#endif

using namespace asterism;
using namespace asterism::test;
namespace any = asterism::transforms;

namespace {

/// The length of lines whose FFT has the length N.
Index length(Transform kind, Index N) {
  return kind == Transform::dst1 ? N - 1 : kind == Transform::dct1 ? N + 1 : N;
}

/// The error over the tolerance of some 30 outputs of each line.
template <class T>
double sampled_error(Transform kind, const LineArray<T>& got, const LineArray<T>& x) {
  const Index n = x.layout.length, step = n / 30 + 1;
  const Definition definition(kind, n);
  RelativeError error;
  for (Index line = 0; line < x.lines(); ++line) {
    const std::vector<long double> points = points_of(x, line);
    for (Index k = line % step; k < n; k += step)
      error.add(static_cast<long double>(got(line, k)), definition.output(points, k));
  }
  return error.value() / tolerance<T>(n);
}

template <class T>
any::FftView<T> view(const any::FftPlan<T>& plan) {
  any::FftView<T> fft = plan.view;
  fft.in = plan.in.data();
  fft.out = plan.out.data();
  fft.tables = plan.tables.data();
  return fft;
}

/// What a kernel's block does, phase after phase and thread after thread, in memory full of NaNs.
template <class Block, class T, class View>
void run_block(any::BlockLines<T> lines, const View& plan, int numbers, int threads) {
  constexpr T poison = std::numeric_limits<T>::quiet_NaN();
  lines.pitch = numbers + 1;
  std::vector<transforms::Complex<T>> shared(static_cast<std::size_t>(lines.pitch) << lines.log_lines,
                                             {poison, poison});
  for (int phase = 0; phase < Block::phases(plan); ++phase)
    for (int thread = 0; thread < threads; ++thread)
      Block(lines, plan, shared.data(), thread, threads).run(phase);
}

/// Plans for one N, and lines transformed with them.
template <class T>
class Emulation {
 public:
  explicit Emulation(Index N) : N_(N), plan_(N) {}

  /// @param symmetric a way of symmetric_plan.hpp; none: by foldings
  LineArray<T> operator()(Transform kind, const LineArray<T>& x,
                          const std::optional<any::SymmetricWay>& symmetric, int threads) const {
    LineArray<T> y(x.layout, std::numeric_limits<T>::quiet_NaN());
    const LineLayout& layout = x.layout;
    const bool side_by_side = layout.width > 1;
    const Index lines = x.lines(), apart = side_by_side ? 1 : layout.distance();
    int log_lines = any::lines_together(kind) - 1;
    while (1 << log_lines < lines) ++log_lines;
    const any::BlockLines<T> block{x.data.data() + LineArray<T>::margin,
                                   y.data.data() + LineArray<T>::margin,
                                   apart,
                                   apart,
                                   static_cast<int>(layout.stride()),
                                   static_cast<int>(layout.stride()),
                                   static_cast<int>(lines),
                                   log_lines,
                                   side_by_side,
                                   0};
    if (symmetric) {
      const any::SymmetricPlan<T> of_kind(kind, N_, *symmetric);
      const auto plan =
          any::symmetric_view(kind, N_, of_kind, view(of_kind.rows),
                              {of_kind.targets.data(), of_kind.sources.data(), of_kind.pairs.data(),
                               of_kind.odd.data(), of_kind.twist.empty() ? nullptr : of_kind.twist.data()});
      CHECK(plan.rows.numbers == symmetric->size.numbers);
      run_block<any::BlockOfSymmetricLines<T>>(block, plan, plan.rows.numbers, threads);
    } else {
      const auto fold = transforms::fold_rotations<T>(kind, layout.length),
                 unfold = transforms::unfold_rotations<T>(kind, layout.length);
      const auto plan =
          any::any_length(kind, layout.length, view(plan_), fold.empty() ? nullptr : fold.data(),
                          unfold.empty() ? nullptr : unfold.data());
      run_block<any::BlockOfAnyLength<T>>(block, plan, plan.fft.numbers, threads);
    }
    return y;
  }

 private:
  Index N_;
  any::FftPlan<T> plan_;
};

template <class T>
void check_emulation(Index N, const LineLayout& shape, int threads, Worst& worst) {
  const Emulation<T> emulation(N);
  for (const Transform kind : kinds) {
    LineLayout layout = shape;
    layout.length = length(kind, N);
    const auto x = random_lines<T>(layout);
    std::vector<std::optional<any::SymmetricWay>> ways{std::nullopt};
    if (kind == Transform::dst1 || kind == Transform::dct1)
      for (const any::SymmetricWay& way : any::symmetric_ways(N)) ways.emplace_back(way);
    for (const auto& symmetric : ways) {
      CAPTURE(std::string(transforms::name(kind)));
      CAPTURE(N);
      CAPTURE((symmetric ? symmetric->divisor : 0));
      const auto y = emulation(kind, x, symmetric, threads);
      const double error = sampled_error(kind, y, x);
      CHECK(error < 1);
      CHECK(y.padding_is_untouched());
      worst.take_in(error);
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("any length: what the threads do equals the sum that defines it", T, float, double) {
  Worst worst;  // over the tolerance
  for (Index N = 2; N <= 120; ++N) {
    check_emulation<T>(N, {.count = 3, .length = 0, .width = 1, .group_gap = 2}, 32, worst);
    if (N < 40) check_emulation<T>(N, {.count = 1, .length = 0, .width = 5, .gap = 1}, 64, worst);
  }
  // Every radix once more, behind rotations too; a prime with a smooth convolution, one with a padded one, several;
  // powers of such primes; halves of primes, and of primes beside others, padded and not, rotated or of other signs.
  for (const Index N :
       {256,         343,     289,          600,          601,      719,      1001,    1331,
        1667,        2021,    2197,         3 * 19 * 47,  4096,     8193,     19 * 19, 2 * 23 * 23,
        3 * 19 * 19, 47 * 47, 19 * 19 * 19, 19 * 19 * 29, 10'007,   30'030,   257,     1459,
        16'001,      10'001,  5001,         3 * 13 * 359, 47 * 149, 17 * 241, 27 * 43, 19 * 25 * 9})
    check_emulation<T>(N, {.count = 1, .length = 0, .width = 1}, 96, worst);
  MESSAGE("largest error: ", worst.value(), " of the tolerance");
}

TEST_CASE("any length: radices") {
  for (Index N = 2; N <= 20'000; ++N) {
    if (!any::has_radices(N)) continue;
    CAPTURE(N);
    Index product = 1;
    for (const any::Direction& direction : any::directions(N)) {
      Index of_direction = 1;
      for (const int radix : direction.radices) {
        CHECK((radix >= 2 && radix <= any::largest_radix));
        of_direction *= radix;
      }
      CHECK(of_direction == direction.length);
      CHECK(std::gcd(product, of_direction) == 1);
      product *= of_direction;
    }
    CHECK(product == N);
  }
  CHECK(any::large_primes(2 * 19 * 19 * 23) == std::vector<Index>{19, 19, 23});
  CHECK(any::smooth_convolution_length(600) == 600);
  CHECK(any::smooth_convolution_length(718) >= 2 * 718 - 1);  // 718 = 2 * 359
  CHECK(any::smooth_convolution_length(615, 1232) == 1232);   // 615 = 3 * 5 * 41, and 1280 is cheaper
  CHECK(any::smooth_convolution_length(615, 1000) == any::smooth_convolution_length(615));
}

TEST_CASE("any length: division by multiplication") {
  for (const unsigned divisor : {1U, 2U, 3U, 7U, 16U, 1001U, 29'056U}) {
    const any::Divisor fast(divisor);
    for (unsigned x = 0; x < 140'000; ++x)
      if (fast.quotient(x) != x / divisor) FAIL_CHECK(x << " / " << divisor);
  }
}

TEST_CASE("any length: which lengths have plans") {
  for (Index N = 2; N <= 4000; ++N) {  // above, two primes may want too much padding
    CAPTURE(N);
    CHECK(any::fft_plan_size(N).numbers >= N);
  }
  for (const Index N : {-1, 0, 65'537}) CHECK(any::fft_plan_size(N).numbers == 0);
}

#ifdef ASTERISM_WITH_CUDA

namespace {

template <class T>
struct Call {
  Transform kind;
  transforms::Lines<T> lines;  ///< their shape
};

template <class T>
void gpu_transform(Stream stream, const Call<T>& call, InOut<T> data, Scratch<T> work) {
  transforms::Lines<T> lines = call.lines;
  lines.data = data.data + LineArray<T>::margin;
  transforms::cuda::transform<T>(
      stream, call.kind, {lines.data, lines.count, lines.distance, lines.length, lines.stride, lines.width},
      lines, work.data);
}

template <class T>
class GpuLines {
 public:
  LineArray<T> operator()(Transform kind, LineArray<T> lines) {
    {
      const Index scratch = std::max<Index>(1, transforms::cuda::transform_scratch<T>(kind, lines.shape()));
      Tile<T> work(runtime_, 1, scratch);
      const auto size = static_cast<Index>(lines.data.size());
      const Tile<T> tile(runtime_, lines.data.data(), 1, size, size);
      static const Codelet<Call<T>, InOut<T>, Scratch<T>> codelet(
          sizeof(T) == 4 ? "test_any_length_f32" : "test_any_length_f64", nullptr, &gpu_transform<T>);
      codelet({kind, lines.shape()}, tile, work);
      runtime_.wait();
    }
    return lines;
  }

 private:
  static Options one_gpu() {
    Options options;
    options.gpus = 1;
    return options;
  }

  Runtime runtime_{one_gpu()};
};

template <class T>
void check_on_gpu(GpuLines<T>& gpu, Transform kind, const LineLayout& layout, Worst& worst) {
  CAPTURE(std::string(transforms::name(kind)));
  CAPTURE(layout.length);
  CAPTURE(layout.width);
  const auto x = random_lines<T>(layout);
  const auto y = gpu(kind, x);
  const double error = sampled_error(kind, y, x);
  CHECK(error < 1);
  CHECK(y.padding_is_untouched());
  worst.take_in(error);
}

}  // namespace

TEST_CASE("gpu: any length: which lines fit") {
  for (const Index n : {500, 600, 1000, 5000, 8192, 10'000})
    for (const Transform kind : kinds) {
      CAPTURE(n);
      CHECK(transforms::cuda::any_length_fits<double>(kind, n, 1));
      CHECK(transforms::cuda::any_length_fits<float>(kind, n, 1));
      if (n <= 1000) CHECK(transforms::cuda::any_length_fits<double>(kind, n, n));
    }
  CHECK_FALSE(transforms::cuda::any_length_fits<double>(Transform::dst1, 70'000, 1));
  CHECK_FALSE(transforms::cuda::any_length_fits<double>(Transform::dct2, 0, 1));
  CHECK_FALSE(transforms::cuda::any_length_fits<double>(Transform::dct1, 1, 1));
}

TEST_CASE_TEMPLATE("gpu: transforms of every length up to 2100", T, float, double) {
  GpuLines<T> gpu;
  Worst worst;  // over the tolerance
  for (Index n = 1; n <= 2100; ++n)
    for (const Transform kind : kinds)
      check_on_gpu(gpu, kind,
                   n % 2 == 0
                       ? LineLayout{.count = 2, .length = n, .width = 1, .group_gap = n % 3}
                       : LineLayout{.count = 1, .length = n, .width = n % 7 == 0 ? 18 : 3, .gap = n % 4},
                   worst);
  MESSAGE("largest error: ", worst.value(), " of the tolerance");
}

TEST_CASE_TEMPLATE("gpu: long lines by halves", T, float, double) {
  GpuLines<T> gpu;
  Worst worst;
  // Halves that are powers of two, primes, halves again, two primes; in one block, and in clusters.
  for (const Index N : {1024 * 64, 2 * 1019, 4 * 1019, 2 * 5003, 8 * 1511, 2 * 7283, 2 * 59 * 83, 2 * 16'001})
    for (const Transform kind : {Transform::dst1, Transform::dct1}) {
      const Index n = length(kind, N);
      check_on_gpu(gpu, kind, {.count = 3, .length = n, .width = 1, .group_gap = 5}, worst);
      check_on_gpu(gpu, kind, {.count = 2, .length = n, .width = 1, .gap = 1, .spread = true}, worst);
    }
  MESSAGE("largest error: ", worst.value(), " of the tolerance");
}

TEST_CASE_TEMPLATE("gpu: transforms of some lengths up to 65,536", T, float, double) {
  GpuLines<T> gpu;
  std::mt19937 bits(5);
  Worst worst;
  for (int i = 0; i < 300; ++i) {
    const Index most = i % 3 == 0 ? 65'536 : 16'384, n = 2101 + static_cast<Index>(bits()) % (most - 2100);
    check_on_gpu(gpu, *(kinds.begin() + i % kinds.size()), {.count = 2, .length = n, .width = 1}, worst);
  }
  MESSAGE("largest error: ", worst.value(), " of the tolerance");
}

#endif
