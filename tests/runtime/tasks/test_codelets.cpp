// Codelets: what a kernel is given, dependencies, many tasks.

#include "runtime/codelet.hpp"

#include <doctest/doctest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "../../support/tiles.hpp"
#include "numbered_tiles.hpp"
#include "plain_codelets.hpp"

using namespace asterism;
using namespace asterism::test;

TEST_CASE("codelets: ports show the tile, arguments arrive whole") {
  struct Arguments {
    std::shared_ptr<int> counter;
    std::string text;
    std::vector<double> numbers;
  };
  const auto kernel = [](const Arguments& a, In<float> in, InOut<double> inout, Out<std::int32_t> out,
                         Scratch<double> scratch) {
    ++*a.counter;
    const bool ok = a.text == "a text too long to be kept within the string itself" &&
                    a.numbers.size() == 3 && in.rows == 2 && in.cols == 3 && in.ld == 5 &&
                    in.row(1)[2] == 7 && inout.rows == 1 && inout.cols == 1 && out.cols == 1 &&
                    scratch.rows == 4 && scratch.cols == 9 && scratch.ld >= 9;
    for (Index i = 0; i < scratch.rows; ++i) std::fill_n(scratch.row(i), scratch.cols, 1.0);
    *inout.data += std::accumulate(scratch.row(3), scratch.row(3) + 9, 0.0);
    *out.data = ok ? 1 : 0;
  };
  const Codelet<Arguments, In<float>, InOut<double>, Out<std::int32_t>, Scratch<double>> codelet{"test_ports",
                                                                                                 kernel};
  const auto counter = std::make_shared<int>(0);
  Runtime runtime;
  {
    std::vector<float> values(10, 7);
    const Tile<float> in(runtime, values.data(), 2, 3, 5);
    double sum = 1;
    std::int32_t ok = -1;
    {
      const Tile<double> inout(runtime, &sum, 1, 1, 1), scratch(runtime, 4, 9);
      const Tile<std::int32_t> out(runtime, &ok, 1, 1, 1);
      for (int i = 0; i < 5; ++i)
        codelet({counter, "a text too long to be kept within the string itself", {1, 2, 3}}, in, inout, out,
                scratch,
                {.where = Where::cpu,
                 .priority = i,
                 .flops = 1e3,
                 .cost = 5,
                 .label = "number " + std::to_string(i)});
      CHECK_THROWS_AS(download(scratch), Error);  // nothing is kept in it
    }
    CHECK(sum == 46);
    CHECK(ok == 1);
    CHECK(std::all_of(values.begin(), values.end(), [](float x) { return x == 7; }));
  }
  runtime.wait();
  CHECK(*counter == 5);
  CHECK(counter.use_count() == 1);  // tasks that ended keep nothing
}

TEST_CASE("codelets: arguments may own tiles") {
  struct Arguments {
    std::shared_ptr<std::vector<double>> memory;
    std::shared_ptr<const Tile<double>> tile;  // of that memory, which ends after it
  };
  const Codelet<Arguments, In<double>, InOut<double>> add{
      "test_add_owned", [](const Arguments&, In<double> x, InOut<double> sum) { *sum.data += *x.data; }};
  double sum = 0;
  std::weak_ptr<std::vector<double>> last;
  {
    Runtime runtime;
    const Tile<double> total(runtime, &sum, 1, 1, 1);
    for (int i = 0; i < 200; ++i) {
      auto memory = std::make_shared<std::vector<double>>(1, i);
      auto tile = std::make_shared<const Tile<double>>(runtime, memory->data(), 1, 1, 1);
      last = memory;
      add({memory, tile}, *tile, total);
      if (i == 100) {
        memory.reset();
        tile.reset();
        runtime.wait();
        CHECK(last.expired());  // tasks that ended keep nothing
      }
    }
  }
  CHECK(sum == 199 * 100);
  CHECK(last.expired());
}

TEST_CASE("codelets: one of several implementations runs") {
  const Codelet<double, InOut<double>> either{"test_either",
                                              {[](const double& a, InOut<double> x) { *x.data += a; },
                                               [](const double& a, InOut<double> x) { *x.data += a; }},
                                              {}};
  Runtime runtime;
  double sum = 0;
  {
    const Tile<double> tile(runtime, &sum, 1, 1, 1);
    for (int i = 0; i < 100; ++i) either(1, tile);
  }
  CHECK(sum == 100);
}

TEST_CASE("codelets: too many implementations are told at the call, not before main()") {
  const auto add = [](const double& a, InOut<double> x) { *x.data += a; };
  const Codelet<double, InOut<double>> five{"test_five", {add, add, add, add, add}, {}};
  Runtime runtime;
  const Tile<double> tile(runtime, 1, 1);
  set_first(1, tile);
  CHECK_THROWS_WITH_AS(five(1, tile), "codelet test_five has 5 CPU kernels: StarPU takes 4 at most", Error);
  runtime.wait();
}

TEST_CASE("codelets: kernels without arguments, and lambdas whose types a codelet follows from") {
  const Codelet one{"test_one", +[](Out<double> x) { *x.data = 1; }};
  const Codelet doubled{"test_doubled", +[](In<double> x, Out<double> y) { *y.data = 2 * *x.data; }, nullptr};
  const Codelet add{"test_add", +[](const int& a, InOut<double> x) { *x.data += a; }};
  const Codelet<NoArgs, InOut<double>> negate{"test_negate", [](InOut<double> x) { *x.data = -*x.data; }};
  const Codelet<NoArgs, InOut<double>> halve{"test_halve", [](const NoArgs&, InOut<double> x) { *x.data /= 2; }};
  Runtime runtime;
  const Tile<double> x(runtime, 1, 1), y(runtime, 1, 1);
  one(x, {.where = Where::cpu, .label = "first"});
  doubled(x, y);
  doubled({}, x, y);
  add(5, y);
  negate(y);
  negate({}, y);
  negate({}, y, {.priority = 1});
  halve(y);
  CHECK(value(x) == 1);
  CHECK(value(y) == -3.5);
}

TEST_CASE("codelets: chains, fans and lattices give what a loop gives") {
  Runtime runtime;
  constexpr int n = 50;
  std::vector<double> serial(n, 1.0);
  std::vector<Tile<double>> tiles;
  for (int i = 0; i < n; ++i) set_first(1, tiles.emplace_back(runtime, 1, 1));
  const auto at = [&](int i) -> const Tile<double>& { return tiles[static_cast<std::size_t>(i)]; };
  const auto add = [&](double a, int from,
                       int to) {  // integers: exact in any order that keeps the dependencies
    serial[static_cast<std::size_t>(to)] += a * serial[static_cast<std::size_t>(from)];
    axpy(a, at(from), at(to), {.priority = from % 3});
  };
  for (int i = 1; i < n; ++i) add(1, i - 1, i);      // a chain
  for (int i = 1; i < n; ++i) add(2, 0, i);          // a fan out
  for (int i = 0; i + 1 < n; ++i) add(1, i, n - 1);  // a fan in
  for (int sweep = 0; sweep < 5; ++sweep)            // a lattice
    for (int i = 1; i < n; ++i) add(1, i - 1, i);
  for (int i = 0; i < n; ++i) {
    CAPTURE(i);
    CHECK(value(at(i)) == serial[static_cast<std::size_t>(i)]);
  }
}

TEST_CASE("codelets: a tiny window bounds what is in flight") {
  static std::atomic<int> before;
  Options options;
  options.window = 3;
  Runtime runtime(options);
  const Codelet<int, InOut<double>> count{"test_count", [](const int&, InOut<double> x) {
                                            *x.data += 1;
                                            ++before;
                                          }};
  double sum = 0;
  before = 0;
  {
    const Tile<double> tile(runtime, &sum, 1, 1, 1);
    for (int i = 0; i < 10'000; ++i) {
      count(i, tile);
      if (before < i + 1 - 3 - 1)
        FAIL_CHECK("task " << i << " was submitted after " << before.load() << " had run");
    }
  }
  CHECK(sum == 10'000);
}

TEST_CASE("codelets: may end before their tasks, and be made again under the same name") {
  for (int start = 0; start < 3; ++start) {
    Runtime runtime;
    const Tile<double> tile(runtime, 1, 1);
    set_first(0, tile);
    for (int i = 0; i < 20; ++i) {
      const Codelet<NoArgs, InOut<double>> brief{"test_brief",
                                                 [](const NoArgs&, InOut<double> x) { *x.data += 1; }};
      brief({}, tile);
    }
    CHECK(value(tile) == 20);
  }
}

// Sanitizers have heaps of their own.
#if !defined(ASTERISM_SANITIZE_ADDRESS) && !defined(ASTERISM_SANITIZE_THREAD)
TEST_CASE("codelets: memory does not grow with the number of tasks") {
  // The submitting thread's heap, to the byte. A StarPU that lacks the changes of tools/setup keeps 32 bytes
  // of it for every task that reads `a`.
  const auto allocated_bytes = [] {
    const auto heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
  };
  // All threads' memory; pages come and go with what the allocator keeps of the blocks that were freed.
  const auto resident_bytes = [] {
    std::size_t total = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> total >> resident;
    return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  };
  Runtime runtime;
  const Tile<double> a(runtime, 1, 1), b(runtime, 1, 1);
  set_first(1, a);
  set_first(0, b);
  const auto submit = [&](int tasks) {
    for (int i = 0; i < tasks; ++i)
      axpy(1, a, b, {.label = "a label long enough to be allocated on its own"});
    runtime.wait();
  };
  submit(20'000);
  const std::size_t allocated = allocated_bytes(), resident = resident_bytes();
  submit(80'000);
  CHECK(allocated_bytes() < allocated + (std::size_t{1} << 20));
  CHECK(resident_bytes() < resident + (std::size_t{4} << 20));
  CHECK(value(b) == 100'000);
}

TEST_CASE("codelets: waves of tasks take the same memory again") {
  Runtime runtime(Options{.window = 20'000});
  const Tile<double> a(runtime, 1, 1), b(runtime, 1, 1);
  set_first(1, a);
  set_first(0, b);
  const auto wave = [&] {
    for (int i = 0; i < 10'000; ++i) axpy(1, a, b);
    runtime.wait();
  };
  const auto pages_taken = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
  };
  for (int i = 0; i < 3; ++i) wave();
  const long before = pages_taken();
  for (int i = 0; i < 10; ++i) wave();
  CHECK(pages_taken() - before < 10'000);  // each wave more than 3000 where the heap goes back to the system
}

#endif
