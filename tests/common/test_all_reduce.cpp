// Sums of tiles by tasks, on every rank.
#include <doctest/doctest.h>

#include <cmath>

#include "algorithms/common/all_reduce.hpp"

namespace asterism {
namespace {

const Codelet<double, Out<double>> set_part{"test_set_part", +[](const double& seed, Out<double> part) {
                                              for (Index i = 0; i < part.rows; ++i)
                                                for (Index j = 0; j < part.cols; ++j)
                                                  part.row(i)[j] = std::ldexp(
                                                      std::sin(seed + static_cast<double>(i * part.cols + j)),
                                                      static_cast<int>(seed) % 40);
                                            }};

/// The same sum, in the same order.
double expected(Index parts, Index element) {
  double sum = 0;
  for (Index p = 0; p < parts; ++p)
    sum +=
        std::ldexp(std::sin(static_cast<double>(p) + static_cast<double>(element)), static_cast<int>(p) % 40);
  return sum;
}

}  // namespace

TEST_CASE("every rank has the sum of all parts, to the last bit that of their order") {
  Runtime runtime;
  for (const Index count : {1, 2, 7, 64, 65, 200}) {
    CAPTURE(count);
    constexpr Index rows = 2, cols = 3;
    std::vector<Tile<double>> parts;
    for (Index p = 0; p < count; ++p)
      parts.emplace_back(runtime, rows, cols, static_cast<int>(p) % runtime.ranks());
    for (Index p = 0; p < count; ++p) set_part(static_cast<double>(p), parts[static_cast<std::size_t>(p)]);
    const PerRank<double> totals(runtime, rows, cols);
    all_reduce<double>(parts, totals);
    runtime.wait();
    const HostView<double> view(totals.mine(), HostView<double>::Access::read);
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < cols; ++j) CHECK(view(i, j) == expected(count, i * cols + j));
  }
}

TEST_CASE("the sum of no parts is zero") {
  Runtime runtime;
  const PerRank<float> totals(runtime, 1, 5);
  all_reduce<float>({}, totals);
  runtime.wait();
  const HostView<float> view(totals.mine(), HostView<float>::Access::read);
  for (Index j = 0; j < 5; ++j) CHECK(view(0, j) == 0);
}

#ifdef ASTERISM_WITH_CUDA
TEST_CASE("gpu: the same sums, to the last bit") {
  Runtime runtime;
  const Index count = 150;
  std::vector<Tile<double>> parts;
  for (Index p = 0; p < count; ++p) parts.emplace_back(runtime, 3, 700);
  for (Index p = 0; p < count; ++p) set_part(static_cast<double>(p), parts[static_cast<std::size_t>(p)]);
  const PerRank<double> totals(runtime, 3, 700);
  all_reduce<double>(parts, totals, {.where = Where::cuda});
  runtime.wait();
  const HostView<double> view(totals[0], HostView<double>::Access::read);
  for (Index i = 0; i < 3; ++i)
    for (Index j = 0; j < 700; ++j) CHECK(view(i, j) == expected(count, i * 700 + j));
}
#endif

}  // namespace asterism
