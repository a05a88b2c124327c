// Looking without waiting: snapshots, callbacks, handles of tasks; cancelling.

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "numbered_tiles.hpp"
#include "runtime/snapshot.hpp"

using namespace asterism;
using namespace asterism::test;

namespace {

using Flag = std::shared_ptr<std::atomic<int>>;

Flag flag() { return std::make_shared<std::atomic<int>>(0); }

/// Waits in the task until somebody raises the flag.
const auto wait_for = codelet("test_looks_wait", [](const Flag& open, InOut<double> x) {
  while (*open == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  *x.data += 1;
});
const auto add = codelet("test_looks_add", [](double summand, InOut<double> x) { *x.data += summand; });
const auto break_down =
    codelet("test_looks_fail", [](InOut<double>) { throw std::runtime_error("a pivot of 0"); });
const auto copy_value =
    codelet("test_looks_copy", [](In<double> from, Out<double> to) { *to.data = *from.data; });

template <class Condition>
bool soon(Condition condition) {
  for (int i = 0; i < 10000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return condition();
}

Options on_cpus() {
  Options options;
  options.gpus = 0;
  return options;
}

}  // namespace

TEST_CASE("looks: a snapshot is of its moment, and can be asked whether it is ready") {
  Runtime runtime(on_cpus());
  const Tile<double> tile(runtime, 2, 3);
  const Flag open = flag(), called = flag();
  set(4, tile);
  wait_for(open, tile);
  const Snapshot<double> look(tile);
  add(10, tile);
  look.then([called] { ++*called; });
  const Snapshot<double> later(tile), copied = look;
  CHECK_FALSE(look.ready());
  CHECK_FALSE(look.failed());
  CHECK(*called == 0);
  CHECK(look.rows() == 2);
  *open = 1;
  CHECK(soon([&] { return copied.ready() && *called == 1; }));
  CHECK(look(0, 0) == 5);
  CHECK(look(1, 2) == 4);
  CHECK_THROWS_WITH_AS(look(2, 0), "there is no row 2 in a snapshot of 2, counted from 0", Error);
  CHECK_THROWS_WITH_AS(look(0, -1), "there is no column -1 in a snapshot of 3, counted from 0", Error);
  CHECK_THROWS_WITH_AS(Snapshot<double>()(0, 0),
                       "this is an empty snapshot: assign one of a tile to it first", Error);
  CHECK(later(0, 0) == 15);
  look.then([called] { ++*called; });
  CHECK(*called == 2);
  runtime.wait();
}

TEST_CASE("looks: many at once, and tasks do not wait for them") {
  Runtime runtime(on_cpus());
  const Tile<double> tile(runtime, 1, 1);
  set(0, tile);
  std::vector<Snapshot<double>> looks;
  for (int i = 0; i < 500; ++i) {
    add(1, tile);
    looks.emplace_back(tile);
  }
  runtime.wait();
  for (int i = 0; i < 500; ++i) {
    CHECK(looks[static_cast<std::size_t>(i)].ready());
    CHECK(looks[static_cast<std::size_t>(i)](0, 0) == i + 1);
  }
}

TEST_CASE("looks: what is in main memory is seen also where a GPU's worker calls back") {
  Runtime runtime;
  const Tiles<double> tiles(runtime, 500, 1, 1, 1);
  std::atomic<int> right = 0;
  for (Index k = 0; k < tiles.count(); ++k) {
    set(static_cast<double>(k), tiles[k]);
    add(0.5, tiles[k]);
    const Snapshot<double> look(tiles[k]);
    look.then([&right, look, k] { right += look(0, 0) == static_cast<double>(k) + 0.5 ? 1 : 0; });
  }
  runtime.wait();
  CHECK(right == tiles.count());
}

TEST_CASE("looks: a snapshot outlives its tile and its Runtime") {
  Snapshot<double> look;
  CHECK_FALSE(look.ready());
  CHECK(refusal([&] { look.wait(); }) == "this is an empty snapshot: assign one of a tile to it first");
  {
    Runtime runtime(on_cpus());
    {
      const Tile<double> tile(runtime, 1, 1), never(runtime, 1, 2);
      set(8, tile);
      look = Snapshot<double>(tile);
      CHECK(refusal([&] { Snapshot<double>{never}; }) ==
            "a snapshot is made of a 1 x 2 tile before anything was written to it");
      CHECK(refusal([&] { Snapshot<double>{Tile<double>{}}; }).starts_with("this is an empty tile"));
    }
  }
  CHECK(look.ready());
  CHECK(look(0, 0) == 8);
}

TEST_CASE("looks: what a failed task should have written is a failure, also when it was written anew since") {
  Runtime runtime(on_cpus());
  const char* const reason = "task test_looks_fail (step 3) failed: a pivot of 0";
  for (int round = 0; round < 20; ++round) {
    const Tile<double> tile(runtime, 1, 1), other(runtime, 1, 1);
    set(1, tile);
    const Snapshot<double> good(tile);
    const Task failing = break_down(tile, {.label = "step 3"});
    const Task after = copy_value(tile, other);
    const Snapshot<double> bad(tile), skipped(other);
    set(2, tile);
    CHECK_THROWS_WITH_AS(bad.wait(), reason, TaskFailure);
    CHECK_THROWS_WITH_AS(static_cast<void>(skipped(0, 0)), reason, TaskFailure);
    CHECK(bad.ready());
    CHECK(bad.failed());
    CHECK(good(0, 0) == 1);
    CHECK_THROWS_WITH_AS(failing.wait(), reason, TaskFailure);
    CHECK_THROWS_WITH_AS(after.wait(), reason, TaskFailure);
    CHECK_THROWS_WITH_AS(runtime.wait(), reason, TaskFailure);
    CHECK_THROWS_AS(bad.wait(), TaskFailure);
    set(3, tile);
    const Snapshot<double> mended(tile);
    CHECK(mended(0, 0) == 3);
    runtime.wait();
  }
}

TEST_CASE("looks: what a callback throws is a failure of the run") {
  Runtime runtime(on_cpus());
  const Tile<double> tile(runtime, 1, 1);
  const Flag open = flag();
  set(0, tile);
  wait_for(open, tile);
  Snapshot<double>(tile).then([] { throw std::runtime_error("not this one"); });
  *open = 1;
  CHECK_THROWS_WITH_AS(runtime.wait(), "task that called back failed: not this one", TaskFailure);
  runtime.wait();

  set(0, tile);
  const Snapshot<double> ready(tile);
  ready.wait();
  ready.then([] { throw std::runtime_error("nor this one"); });  // called at once
  CHECK_THROWS_WITH_AS(runtime.wait(), "task that called back failed: nor this one", TaskFailure);
}

TEST_CASE("threads: four submit, look and wait") {
  Runtime runtime(on_cpus());
  constexpr int threads = 4, rounds = 50;
  std::vector<Tile<double>> own, shared;
  for (int t = 0; t < threads; ++t) own.emplace_back(runtime, 1, 1);
  for (int t = 0; t < threads; ++t) set(0, shared.emplace_back(runtime, 1, 1));
  std::vector<std::thread> all;
  std::atomic<int> right = 0;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      const Tile<double>& mine = own[static_cast<std::size_t>(t)];
      set(0, mine);
      for (int round = 0; round < rounds; ++round) {
        add(1, mine);
        for (const Tile<double>& of_all : shared) add(1, of_all);
        if (round % 10 == 9 && Snapshot<double>(mine)(0, 0) == round + 1) ++right;
        if (round % 10 == 5) runtime.wait();
      }
    });
  for (std::thread& thread : all) thread.join();
  CHECK(right == threads * rounds / 10);
  for (const Tile<double>& of_all : shared) CHECK(value(of_all) == threads * rounds);
}

TEST_CASE("tasks: one is waited for alone") {
  Runtime runtime(on_cpus());
  const Tile<double> tile(runtime, 1, 1), other(runtime, 1, 1);
  const Flag open = flag();
  set(0, tile);
  set(0, other);
  Task quick = add(5, other), slow;
  CHECK(slow.ended());
  quick.wait();
  CHECK(quick.ended());
  slow = wait_for(open, tile);
  CHECK_FALSE(slow.ended());
  *open = 1;
  slow.wait();
  CHECK(slow.ended());
  runtime.wait();
  CHECK(value(tile) == 1);
  std::vector<Task> all;
  for (int i = 0; i < 1000; ++i) all.push_back(add(1, i % 2 == 0 ? tile : other));
  for (const Task& task : all) task.wait();
  CHECK(value(tile) == 501);
  quick = all.front();
}

TEST_CASE("tasks: handles outlive the Runtime, arguments do not outlive the wait") {
  Task task;
  const Flag open = flag();
  {
    Runtime runtime(on_cpus());
    const Tile<double> tile(runtime, 1, 1);
    set(0, tile);
    *open = 1;
    task = wait_for(open, tile);
    CHECK(open.use_count() > 1);
    runtime.wait();
    CHECK(open.use_count() == 1);
  }
  CHECK(task.ended());
  task.wait();
}

TEST_CASE("tasks: arguments of all sizes and alignments are kept") {
  struct Large {
    std::array<double, 100> values;
    Flag flag;
  };
  struct alignas(128) Aligned {
    double value;
  };
  Runtime runtime(on_cpus());
  const auto take_large =
      codelet("test_large", [](const Large& a, InOut<double> x) { *x.data += a.values[99]; });
  const auto take_aligned = codelet("test_aligned", [](const Aligned& a, InOut<double> x) {
    *x.data += reinterpret_cast<std::uintptr_t>(&a) % 128 == 0 ? a.value : -1000;
  });
  const Tile<double> tile(runtime, 1, 1);
  set(0, tile);
  const Flag owned = flag();
  {
    Large large{{}, owned};
    large.values[99] = 7;
    for (int i = 0; i < 10; ++i) take_large(large, tile);
  }
  for (int i = 0; i < 10; ++i) take_aligned({3}, tile);
  runtime.wait();
  CHECK(value(tile) == 100);
  CHECK(owned.use_count() == 1);
}

TEST_CASE(
    "cancel: tasks that have not begun do nothing, what they were to change stays, and the run goes on") {
  Runtime runtime(on_cpus());
  const Tile<double> tile(runtime, 1, 1), counted(runtime, 1, 1), copy(runtime, 1, 1);
  const Flag open = flag();
  for (int round = 0; round < 10; ++round) {
    *open = 0;
    set(1, tile);
    set(7, counted);
    set(0, copy);
    for (const Tile<double>* ready : {&tile, &counted, &copy}) ready->wait();
    const Task running = wait_for(open, tile);
    std::vector<Task> waiting;
    for (int i = 0; i < 100; ++i) waiting.push_back(add(1, tile));
    copy_value(tile, copy);
    CHECK_FALSE(runtime.cancelled());
    runtime.cancel();
    CHECK(runtime.cancelled());
    CHECK_FALSE(runtime.task_has_failed());
    add(1, counted);
    *open = 1;
    runtime.wait();
    CHECK_FALSE(runtime.cancelled());
    // Whether it had begun is up to its worker; all others had not.
    CHECK(value(tile) <= 2);
    CHECK(value(counted) == 7);
    CHECK_THROWS_WITH_AS(static_cast<void>(value(copy)),
                         "task that was to write a tile failed: it was cancelled before it began",
                         TaskFailure);
    CHECK_THROWS_AS(waiting.back().wait(), TaskFailure);
    add(1, counted);
    CHECK(value(counted) == 8);
  }
}

TEST_CASE("cancel: a search ends when a callback has seen enough") {
  Runtime runtime(on_cpus());
  const auto keep_best = codelet("test_search", [](double found, Commute<double> best) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    *best.data = std::max(*best.data, found);
  });
  const Tile<double> best(runtime, 1, 1);
  set(0, best);
  for (int i = 1; i <= 1000; ++i) {
    keep_best(i, best);
    if (i % 50 != 0) continue;
    const Snapshot<double> look(best);
    look.then([&runtime, look] {
      if (look(0, 0) >= 100) runtime.cancel();
    });
  }
  runtime.wait();
  CHECK(value(best) >= 100);
  CHECK(value(best) < 1000);
}

TEST_CASE("cancel: a failure beside it is still thrown") {
  Runtime runtime(on_cpus());
  const Tile<double> tile(runtime, 1, 1);
  const auto fail_late = codelet("test_fail_late", [](const Flag& open, InOut<double>) {
    *open = 1;
    while (*open != 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    throw std::runtime_error("too late");
  });
  const Flag open = flag();
  set(0, tile);
  fail_late(open, tile);
  CHECK(soon([&] { return *open == 1; }));
  runtime.cancel();
  *open = 2;
  CHECK_THROWS_WITH_AS(runtime.wait(), "task test_fail_late failed: too late", TaskFailure);
}
