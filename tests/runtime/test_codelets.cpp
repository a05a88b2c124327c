// Codelets: what a kernel is given, which implementation runs where, dependencies, many tasks.

#include "runtime/codelet.hpp"

#include <doctest/doctest.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "../support/tiles.hpp"

using namespace asterism;
using namespace asterism::test;

namespace {

void cpu_set(const double& value, Out<double> x) { *x.data = value; }
const Codelet set{"test_set", cpu_set};  // what the ports are follows from the kernel

void cpu_axpy(const double& a, In<double> x, InOut<double> y) {
  for (Index i = 0; i < y.rows; ++i)
    for (Index j = 0; j < y.cols; ++j) y.row(i)[j] += a * x.row(i)[j];
}
void cuda_nothing(Stream, const double&, In<double>, InOut<double>) {}
const Codelet axpy{"test_axpy", cpu_axpy, nullptr};

double value(const Tile<double>& tile) {
  return HostView<double>(tile, HostView<double>::Access::read)(0, 0);
}

}  // namespace

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
  set(1, tile);
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

TEST_CASE("codelets: where no worker is") {
  Options options;
  options.gpus = 0;
  Runtime runtime(options);
  const Tile<double> tile(runtime, 1, 1);
  set(1, tile);
  const Codelet<double, In<double>, InOut<double>> nowhere{"test_nowhere", nullptr, cuda_nothing};
  const Tile<double> other(runtime, 1, 1);
  set(1, other);
  const auto refusal = [&](const auto& codelet, Where where) {
    try {
      codelet(1, tile, other, {.where = where, .label = "slab 3"});
    } catch (const Error& error) {
      const bool asked_in_vain = std::string(error.what()).find("give it one") != std::string::npos;
      CHECK(error.blame() == (asked_in_vain ? Blame::input : Blame::machine));
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string text = refusal(nowhere, Where::anywhere);
#ifdef ASTERISM_WITH_CUDA
  CHECK(text ==
        "task test_nowhere (slab 3) can run nowhere: the codelet has no CPU kernel; there is no CUDA worker: "
        "allow CUDA workers");
  CHECK(refusal(axpy, Where::cuda) ==
        "task test_axpy (slab 3) asks for CUDA workers, but the codelet has no CUDA "
        "kernel: give it one, or leave Hints::where alone");
  CHECK(refusal(nowhere, Where::cuda) ==
        "task test_nowhere (slab 3) asks for CUDA workers, but there is no CUDA worker: allow CUDA workers");
#else
  CHECK(text ==
        "task test_nowhere (slab 3) can run nowhere: the codelet has no CPU kernel; this build has no CUDA: "
        "give it a kernel that can run here");
  CHECK(
      refusal(axpy, Where::cuda) ==
      "task test_axpy (slab 3) asks for CUDA workers, but this build has no CUDA: leave Hints::where alone");
#endif
  CHECK(refusal(nowhere, Where::cpu) ==
        "task test_nowhere (slab 3) asks for CPU workers, but the codelet has no CPU "
        "kernel: give it one, or leave Hints::where alone");
  CHECK(refusal(axpy, Where::cpu).empty());
  runtime.wait();
}

TEST_CASE("codelets: on the worker that the submitter names, and on no other") {
  Options options;
  options.gpus = 0;
  options.cpus = 2;
  Runtime runtime(options);
  struct Seen {
    std::mutex mutex;
    std::set<std::thread::id> threads[3];  // of tasks for worker 0, for worker 1, for either
  };
  struct Arguments {
    std::shared_ptr<Seen> seen;
    int index;
  };
  const Codelet<Arguments, InOut<double>> note{"test_note", [](const Arguments& a, InOut<double> x) {
                                                 std::this_thread::sleep_for(std::chrono::microseconds(100));
                                                 const std::lock_guard lock(a.seen->mutex);
                                                 a.seen->threads[a.index].insert(std::this_thread::get_id());
                                                 *x.data += 1;
                                               }};
  const auto seen = std::make_shared<Seen>();
  std::vector<Tile<double>> tiles;
  for (int i = 0; i < 20; ++i) set(0, tiles.emplace_back(runtime, 1, 1));
  for (int round = 0; round < 4; ++round)
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      // Uneven, and each tile on both workers in turn: a scheduler would do it otherwise.
      const int worker = i % 5 == static_cast<std::size_t>(round) ? 1 : 0;
      note({seen, worker}, tiles[i], {.where = Where::cpu, .worker = worker});
      if (round == 3) note({seen, 2}, tiles[i], {.where = Where::cpu});
    }
  runtime.wait();
  CHECK(seen->threads[0].size() == 1);
  CHECK(seen->threads[1].size() == 1);
  CHECK(seen->threads[0] != seen->threads[1]);
  for (const Tile<double>& tile : tiles) CHECK(value(tile) == 5);

  const auto refusal = [&](const Hints& hints) {
    try {
      set(1, tiles[0], hints);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refusal({.where = Where::cpu, .label = "slab 3", .worker = 2}) ==
        "task test_set (slab 3) asks for CPU worker 2: there are 2, counted from 0");
  CHECK(refusal({.where = Where::cpu, .worker = -2}) ==
        "task test_set asks for CPU worker -2: there are 2, counted from 0");
  CHECK(refusal({.worker = 0}) == "task test_set asks for worker 0 of no kind: say CPU or CUDA");
  runtime.wait();
  for (const Tile<double>& tile : tiles) CHECK(value(tile) == 5);  // what was refused did nothing
}

TEST_CASE("codelets: something must be written") {
  const Codelet<NoArgs, In<double>> reads{"test_reads", [](const NoArgs&, In<double>) {}};
  Runtime runtime;
  const Tile<double> tile(runtime, 1, 1);
  set(1, tile);
  CHECK_THROWS_WITH_AS(reads({}, tile), "task test_reads writes no tile: it would have no effect", Error);
}

TEST_CASE("codelets: a task larger than the memory is refused before StarPU sees it") {
  Options options;
  options.gpus = 0;
  options.cpu_memory = std::size_t{20} << 20;
  Runtime runtime(options);
  const Tile<double> fits(runtime, 768, 1024), too_large(runtime, 1536, 2048),
      vast(runtime, 4'294'967'295, 1);
  set(1, fits);
  runtime.wait();
  for (const Tile<double>* tile : {&too_large, &vast}) {
    try {
      set(1, *tile);
      FAIL("was accepted");
    } catch (const Error& error) {
      CHECK(error.blame() == Blame::machine);
      const std::string text = error.what();
      CHECK_MESSAGE(text.find(" at once, main memory has 20.0 MiB") != std::string::npos, text);
    }
  }
#ifdef ASTERISM_WITH_CUDA
  const std::string no_cuda = "the codelet has no CUDA kernel";
#else
  const std::string no_cuda = "this build has no CUDA";
#endif
  CHECK_THROWS_WITH_AS(
      set(1, too_large),
      ("task test_set can run nowhere: its tiles (1536 x 2048 of 8 bytes) need 24.0 MiB at once, "
       "main memory has 20.0 MiB; " +
       no_cuda + ": use smaller tiles, or allow more memory")
          .c_str(),
      Error);
  // Working memory counts too.
  const Codelet<NoArgs, Out<double>, Scratch<double>> works{
      "test_works", [](const NoArgs&, Out<double>, Scratch<double>) {}};
  const Tile<double> room(runtime, 1024, 2048);  // 16 MiB beside 6
  CHECK_THROWS_AS(works({}, fits, room), Error);
  works({}, fits, Tile<double>(runtime, 768, 1024));
  // Counted together, but each once; the caller's memory is there already.
  const Tile<double> other(runtime, 768, 1024), third(runtime, 768, 1024), fourth(runtime, 768, 1024);
  set(1, other);
  set(1, third);
  std::vector<double> memory(std::size_t{4} << 20);
  const Tile<double> borrowed(runtime, memory.data(), 2048, 2048, 2048);
  const Codelet<NoArgs, In<double>, In<double>, In<double>, Out<double>> four{
      "test_four", [](const NoArgs&, In<double>, In<double>, In<double>, Out<double>) {}};
  four({}, fits, fits, borrowed, other);
  four({}, fits, third, borrowed, other);
  CHECK_THROWS_AS(four({}, fits, third, other, fourth), Error);
  runtime.wait();
}

TEST_CASE("codelets: chains, fans and lattices give what a loop gives") {
  Runtime runtime;
  constexpr int n = 50;
  std::vector<double> serial(n, 1.0);
  std::vector<Tile<double>> tiles;
  for (int i = 0; i < n; ++i) set(1, tiles.emplace_back(runtime, 1, 1));
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
    set(0, tile);
    for (int i = 0; i < 20; ++i) {
      const Codelet<NoArgs, InOut<double>> brief{"test_brief",
                                                 [](const NoArgs&, InOut<double> x) { *x.data += 1; }};
      brief({}, tile);
    }
    CHECK(value(tile) == 20);
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which have heaps of their own
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
  set(1, a);
  set(0, b);
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

#endif

#ifdef ASTERISM_WITH_CUDA

namespace {

Options one_gpu() {
  Options options;
  options.gpus = 1;
  return options;
}

}  // namespace

TEST_CASE("gpu: tiles travel to a CUDA kernel and back unharmed, and their bytes are counted") {
  Runtime runtime(one_gpu());
  const Codelet codelet{"test_gpu_nothing", cpu_axpy, cuda_nothing};
  constexpr Index n = 256;
  constexpr std::int64_t bytes = n * n * 8;
  std::vector<double> x(n * n, 3), y(n * n, 4);
  {
    const Tile<double> from(runtime, x.data(), n, n, n), to(runtime, y.data(), n, n, n);
    codelet(1, from, to, {.where = Where::cuda});
    runtime.wait();
    CHECK(runtime.traffic().to_device == 2 * bytes);
  }
  CHECK(runtime.traffic().from_device == bytes);
  CHECK(std::all_of(x.begin(), x.end(), [](double value) { return value == 3; }));
  CHECK(std::all_of(y.begin(), y.end(), [](double value) { return value == 4; }));
}

TEST_CASE("gpu: on the GPU that the submitter names") {
  Runtime runtime;
  const int gpus = runtime.machine().count(WorkerKind::cuda);
  struct Seen {
    std::mutex mutex;
    std::map<int, std::set<std::thread::id>> threads;
  };
  struct Arguments {
    std::shared_ptr<Seen> seen;
    int worker;
  };
  const Codelet<Arguments, Out<double>> note{"test_gpu_note", nullptr,
                                             [](Stream, const Arguments& a, Out<double>) {
                                               const std::lock_guard lock(a.seen->mutex);
                                               a.seen->threads[a.worker].insert(std::this_thread::get_id());
                                             }};
  const auto seen = std::make_shared<Seen>();
  std::vector<Tile<double>> tiles;
  for (int k = 0; k < 40; ++k) {
    const int worker = k * k % gpus;
    note({seen, worker}, tiles.emplace_back(runtime, 1, 1), {.where = Where::cuda, .worker = worker});
  }
  runtime.wait();
  std::set<std::thread::id> all;
  for (const auto& [worker, threads] : seen->threads) {
    CHECK(threads.size() == 1);
    all.merge(std::set(threads));
  }
  CHECK(all.size() == seen->threads.size());
  CHECK_THROWS_AS(note({seen, 0}, tiles[0], {.where = Where::cuda, .worker = gpus}), Error);
}

TEST_CASE("gpu: what throws in a CUDA kernel arrives at wait") {
  Runtime runtime(one_gpu());
  const Codelet<NoArgs, InOut<double>> fails{
      "test_gpu_fails", nullptr,
      [](Stream, const NoArgs&, InOut<double>) { throw Error("launch: CUDA says no"); }};
  double number = 0;
  const Tile<double> tile(runtime, &number, 1, 1, 1);
  fails({}, tile, {.label = "slab 1"});
  CHECK_THROWS_WITH_AS(runtime.wait(), "task test_gpu_fails (slab 1) failed: launch: CUDA says no",
                       TaskFailure);
  runtime.wait();
}

TEST_CASE("gpu: a task that fits in main memory only runs there") {
  Options options = one_gpu();
  options.gpu_memory = std::size_t{512} << 20;
  Runtime runtime(options);
  const Tile<double> tile(runtime, 8192, 8192 + 1024);  // 576 MiB
  const Codelet<double, Out<double>> both{"test_gpu_both", cpu_set,
                                          [](Stream, const double&, Out<double>) {}};
  CHECK_THROWS_AS(both(1, tile, {.where = Where::cuda}), Error);
  both(1, tile);
  CHECK(value(tile) == 1);
}

TEST_CASE("gpu: four times the GPU's memory passes through it") {
  Options options = one_gpu();
  options.gpu_memory = std::size_t{512} << 20;
  Runtime runtime(options);
  const Codelet<NoArgs, InOut<double>> visit{"test_gpu_visit", nullptr,
                                             [](Stream, const NoArgs&, InOut<double>) {}};
  std::vector<Tile<double>> tiles;
  for (int k = 0; k < 64; ++k) set(k, tiles.emplace_back(runtime, 2048, 2048));  // 32 MiB
  for (const Tile<double>& tile : tiles) {
    tile.write_through();
    visit({}, tile);
    tile.wont_use();
  }
  for (int k = 0; k < 64; ++k) CHECK(value(tiles[static_cast<std::size_t>(k)]) == k);
  CHECK(runtime.traffic().to_device >= std::int64_t{2} << 30);
}

TEST_CASE("gpu: what a GPU keeps stays there while a stream passes") {
  Options options = one_gpu();
  options.gpu_memory = std::size_t{512} << 20;
  Runtime runtime(options);
  const Codelet<NoArgs, InOut<double>> visit{"test_gpu_visit", nullptr,
                                             [](Stream, const NoArgs&, InOut<double>) {}};
  const Tile<double> kept = Tile<double>::kept_on_gpu(runtime, 2048, 2048, 0);  // 32 MiB
  set(7, kept);
  visit({}, kept);
  kept.wait();
  std::vector<Tile<double>> tiles;
  for (int k = 0; k < 64; ++k) set(k, tiles.emplace_back(runtime, 2048, 2048)), visit({}, tiles.back());
  runtime.wait();
  const std::int64_t to_device = runtime.traffic().to_device;
  visit({}, kept);
  runtime.wait();
  CHECK(runtime.traffic().to_device == to_device);  // it was there
  CHECK(value(kept) == 7);
  CHECK_THROWS_WITH_AS(Tile<double>::kept_on_gpu(runtime, 2, 2, 1),
                       "tile for GPU 1: there are 1, counted from 0", Error);
}

#endif
