// Tasks that run on another rank than the one that owns what they write.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../../support/skip.hpp"
#include "runtime/codelet.hpp"
#include "runtime/collectives.hpp"
#include "runtime/contents.hpp"

using namespace asterism;
using namespace asterism::test;

namespace {

using Access = HostView<double>::Access;

/// Of this process, which kernels cannot ask.
int this_rank = 0;

const Codelet who{"test_choice_who", +[](Out<double> x) { std::fill_n(x.data, x.cols, this_rank); }};
/// Notes in a number's decimal digits who has changed it.
const Codelet sign{"test_choice_sign", +[](InOut<double> x) { *x.data = 10 * *x.data + this_rank + 1; }};
const Codelet add{"test_choice_add", +[](In<double> x, InOut<double> y) { *y.data += *x.data; }};
const Codelet fail_to_write{"test_choice_fail", +[](Out<double> x) {
                     *x.data = 7;
                     throw Error("no number");
                   }};

/// On the owner's rank, that a tile begins so.
void check(const Runtime& runtime, const Tile<double>& tile, double expected) {
  if (tile.owner() == runtime.rank()) CHECK(HostView<double>(tile, Access::read)(0, 0) == expected);
}

}  // namespace

TEST_CASE("ranks: a task runs on the rank that is chosen, and what it writes gets to its owner") {
  Runtime runtime;
  this_rank = runtime.rank();
  for (int owner = 0; owner < runtime.ranks(); ++owner)
    for (int executor = 0; executor < runtime.ranks(); ++executor) {
      CAPTURE(owner);
      CAPTURE(executor);
      const Tile<double> x(runtime, 1, 20, owner), y(runtime, 1, 20, owner);
      const Task task = who(x, {.rank = executor});
      CHECK(gather(x) == std::vector<double>(20, executor));
      who(y, {.where = Where::cpu, .worker = 0, .rank = executor});
      task.wait();
      check(runtime, y, executor);
      check(runtime, x, executor);
      runtime.wait();
    }
}

TEST_CASE("ranks: tasks of all ranks change a tile one after the other") {
  Runtime runtime;
  this_rank = runtime.rank();
  const int ranks = runtime.ranks();
  for (int owner = 0; owner < ranks; ++owner) {
    const Tile<double> x(runtime, 1, 1, owner);
    std::vector<Tile<double>> seen;
    set(x, 0);
    double expected = 0;
    for (int k = 0; k < 12; ++k) {
      const int executor = k * (k + 1) / 2 % ranks;  // some of them twice in a row
      sign(x, {.rank = executor});
      expected = 10 * expected + executor + 1;
      copy(x, seen.emplace_back(runtime, 1, 1, k % ranks));  // readers elsewhere: each time what is new
      check(runtime, seen.back(), expected);
    }
    set(x, 5);  // its owner's own tasks are in the same order
    sign(x, {.rank = ranks - 1});
    check(runtime, x, 50 + ranks);
  }
  runtime.wait();
}

TEST_CASE("ranks: tasks on random ranks give the serial numbers") {
  Runtime runtime;
  const int ranks = runtime.ranks();
  using Number = std::uint32_t;  // whose sums and products are exact
  const auto mix_numbers = [](Number c, const Number* a, Number* x, Number* y, Index count) {
    for (Index j = 0; j < count; ++j) {
      y[j] += 3 * x[j];
      x[j] = c * a[j] + 5 * x[j];
    }
  };
  static const auto mixed = mix_numbers;
  const Codelet mix{"test_choice_mix", +[](const Number& c, In<Number> a, InOut<Number> x,
                                           Commute<Number> y) { mixed(c, a.data, x.data, y.data, x.cols); }};
  constexpr int n = 9, cols = 50;
  std::vector<Tile<Number>> tiles;
  std::vector<std::vector<Number>> serial(n, std::vector<Number>(cols));
  for (int i = 0; i < n; ++i) {
    generate(tiles.emplace_back(runtime, 1, cols, i % ranks), [i](Index, Index j) { return i * 7 + j; },
             {.rank = i / 2 % ranks});
    std::iota(serial[static_cast<std::size_t>(i)].begin(), serial[static_cast<std::size_t>(i)].end(), i * 7);
  }
  std::mt19937 random(1);
  const auto below = [&](int end) { return static_cast<std::size_t>(random() % static_cast<unsigned>(end)); };
  for (Number k = 0; k < 300; ++k) {
    const std::size_t a = below(n), x = below(n), y = below(n);
    const int executor = static_cast<int>(below(ranks));
    if (a == x || a == y || x == y) continue;
    mixed(k, serial[a].data(), serial[x].data(), serial[y].data(), cols);
    mix(k, tiles[a], tiles[x], tiles[y], {.rank = executor});  // x and y are of any owners
  }
  for (std::size_t i = 0; i < n; ++i) CHECK(gather(tiles[i]) == serial[i]);
  runtime.wait();
}

TEST_CASE("ranks: what a rank has written it keeps for its next task" * doctest::skip(!shape_is("mpi"))) {
  Runtime runtime;
  this_rank = runtime.rank();
  const int last = runtime.ranks() - 1;
  const Tile<double> x(runtime, 1, 10, 0);
  const std::int64_t before = runtime.traffic().between_ranks;
  who(x, {.rank = last});   // goes home
  sign(x, {.rank = last});  // is there already, and goes home
  sign(x, {.rank = last});
  check(runtime, x, (last * 10 + last + 1) * 10 + last + 1);
  runtime.wait();
  CHECK(runtime.traffic().between_ranks - before == (runtime.rank() == 0 ? 3 * 80 : 0));
  sign(x);                  // of the owner
  sign(x, {.rank = last});  // comes, and goes home
  runtime.wait();
  CHECK(runtime.traffic().between_ranks - before == (runtime.rank() == 0      ? 4 * 80
                                                     : runtime.rank() == last ? 80
                                                                              : 0));
}

TEST_CASE("ranks: a task on a chosen rank fails: its tiles are lost for their owners, and all are told") {
  Runtime runtime;
  this_rank = runtime.rank();
  const int last = runtime.ranks() - 1;
  for (const auto& [owner, executor] : {std::pair(0, last), std::pair(last, 0), std::pair(last, last)}) {
    const Tile<double> x(runtime, 1, 1, owner), y(runtime, 1, 1, 0);
    set(x, 1);
    set(y, 2);
    fail_to_write(x, {.rank = executor});
    add(x, y);
    add(x, y, {.rank = last});
    for (const Tile<double>* lost : {&x, &y})
      if (lost->owner() == runtime.rank())
        CHECK_THROWS_AS(HostView<double>(*lost, Access::read), TaskFailure);
    CHECK_THROWS_AS(runtime.wait(), TaskFailure);
    for (const Tile<double>* lost : {&x, &y})
      if (lost->owner() == runtime.rank())
        CHECK_THROWS_AS(HostView<double>(*lost, Access::read), TaskFailure);
    who(x, {.rank = executor});  // anew
    set(y, 2);
    add(x, y, {.rank = last});
    check(runtime, y, 2 + executor);
    runtime.wait();
  }
}

TEST_CASE(
    "ranks: what a cancelled task on a chosen rank was to change is as it was, what it was to write is lost") {
  Runtime runtime;
  this_rank = runtime.rank();
  const int last = runtime.ranks() - 1;
  const Tile<double> changed(runtime, 1, 1, 0), written(runtime, 1, 1, 0);
  set(changed, 3);
  runtime.wait();
  runtime.cancel();
  while (!runtime.cancelled()) continue;
  runtime.barrier();
  sign(changed, {.rank = last});
  who(written, {.rank = last});
  runtime.wait();
  check(runtime, changed, 3);
  if (runtime.rank() == 0) CHECK_THROWS_AS(HostView<double>(written, Access::read), TaskFailure);
  who(written, {.rank = last});
  check(runtime, written, last);
  runtime.wait();
}

TEST_CASE("ranks: a rank that is none, or cannot run a task") {
  Runtime runtime({.gpus = 0});
  const int ranks = runtime.ranks();
  const Tile<double> x(runtime, 1, 1, 0);
  const std::string there = ranks == 1 ? "is rank 0 only" : "are ranks 0 to " + std::to_string(ranks - 1);
  for (const int rank : {ranks, -2}) {
    const std::string message =
        "task test_choice_who (x) asks for rank " + std::to_string(rank) + ": there " + there;
    CHECK_THROWS_WITH_AS(who(x, {.label = "x", .rank = rank}), message.c_str(), Error);
  }
  // Only the rank that is to run it knows what it has.
  const Codelet<NoArgs, Out<double>> for_gpus{
      "test_choice_gpu", nullptr, ASTERISM_CUDA_KERNEL(+[](Stream, const NoArgs&, Out<double>) {})};
  if (runtime.rank() == ranks - 1) {
    const std::string message =
        "task test_choice_gpu on rank " + std::to_string(ranks - 1) +
        " can run nowhere: the codelet has no CPU kernel; " +
        (built_with_cuda ? "there is no CUDA worker: allow CUDA workers"
                         : "this build has no CUDA: give it a kernel that can run here");
    CHECK_THROWS_WITH_AS(for_gpus(x, {.rank = ranks - 1}), message.c_str(), Error);
  }
  runtime.wait();
}
