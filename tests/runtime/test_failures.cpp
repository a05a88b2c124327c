// Failures inside tasks, and what the watchdog says when nothing moves any more.

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../support/child.hpp"
#include "runtime/codelet.hpp"

using namespace asterism;
using namespace asterism::test;

namespace {

using Access = HostView<double>::Access;

enum class Throw { nothing, exception, number };

struct Kernel {
  Throw what = Throw::nothing;
  std::shared_ptr<std::atomic<int>> runs;
};

void cpu_step(const Kernel& kernel, InOut<double> x) {
  ++*kernel.runs;
  if (kernel.what == Throw::exception) throw std::runtime_error("a pivot of 0 in row 17");
  if (kernel.what == Throw::number) throw 42;
  *x.data += 1;
}
const Codelet<Kernel, InOut<double>> step{"test_step", cpu_step};

void cpu_set(const double& value, Out<double> x) { *x.data = value; }
const Codelet<double, Out<double>> set{"test_failures_set", cpu_set};

}  // namespace

TEST_CASE("failures: what a kernel throws arrives at wait, with the task's name") {
  Runtime runtime;
  const auto runs = std::make_shared<std::atomic<int>>(0);
  const Tile<double> tile(runtime, 1, 1);
  set(0, tile);

  step({Throw::exception, runs}, tile, {.label = "slab 3"});
  for (int i = 0; i < 100; ++i) step({Throw::nothing, runs}, tile);
  try {
    runtime.wait();
    FAIL("nothing arrived");
  } catch (const TaskFailure& failure) {
    CHECK(std::string(failure.what()) == "task test_step (slab 3) failed: a pivot of 0 in row 17");
    CHECK(failure.task() == "test_step (slab 3)");
    CHECK(failure.blame() == Blame::task);
  }
  CHECK(*runs == 1);  // the tasks after it did nothing

  runtime.wait();  // told once
  set(0, tile);
  step({Throw::number, runs}, tile);
  step({Throw::exception, runs}, tile);
  CHECK_THROWS_WITH_AS(runtime.wait(),
                       "task test_step failed: something was thrown that is no std::exception", TaskFailure);

  set(5, tile);
  step({Throw::nothing, runs}, tile);
  runtime.wait();
  CHECK(HostView<double>(tile, Access::read)(0, 0) == 6);
}

TEST_CASE("failures: what a failed task or one after it should have written cannot be read") {
  Runtime runtime;
  const auto runs = std::make_shared<std::atomic<int>>(0);
  const Tile<double> good(runtime, 1, 1), bad(runtime, 1, 1), never(runtime, 1, 1), later(runtime, 1, 1);
  const auto read = [](const Tile<double>& tile) { return HostView<double>(tile, Access::read)(0, 0); };
  const char* const reason = "task test_step (slab 3) failed: a pivot of 0 in row 17";
  set(1, good);
  set(2, bad);
  CHECK(read(good) == 1);
  step({Throw::exception, runs}, bad, {.label = "slab 3"});
  bad.wait();
  set(7, never);
  for (const bool told : {false, true}) {
    CAPTURE(told);
    CHECK(runtime.task_has_failed() == !told);
    for (int again = 0; again < 2; ++again) {  // nothing is cleared by it
      CHECK_THROWS_WITH_AS(read(bad), reason, TaskFailure);
      CHECK_THROWS_WITH_AS(read(never), reason, TaskFailure);
      CHECK_THROWS_WITH_AS(HostView<double>(never, Access::read_write), reason, TaskFailure);
      CHECK_THROWS_AS(bad.return_home(), TaskFailure);
      CHECK(read(good) == 1);
    }
    if (!told) CHECK_THROWS_WITH_AS(runtime.wait(), reason, TaskFailure);
  }
  try {
    step({Throw::nothing, runs}, bad, {.label = "slab 4"});
    FAIL("the lost tile was read");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) ==
          "task test_step (slab 4) reads a 1 x 1 tile (port 0) whose content is lost, because task "
          "test_step (slab 3) failed: a pivot of 0 in row 17; write the tile anew before it is read");
    CHECK(error.blame() == Blame::task);
  }
  set(3, later);
  set(4, bad);
  { HostView<double>(never, Access::write)(0, 0) = 5; }
  step({Throw::nothing, runs}, bad);
  step({Throw::nothing, runs}, never);
  CHECK(read(bad) == 5);
  CHECK(read(never) == 6);
  CHECK(read(later) == 3);
  runtime.wait();
}

TEST_CASE("failures: a view never comes before the failure of the tile's task") {
  Runtime runtime;
  const auto runs = std::make_shared<std::atomic<int>>(0);
  for (int round = 0; round < 200; ++round) {
    const Tile<double> tile(runtime, 1, 1), other(runtime, 1, 1);
    set(0, tile);
    step({Throw::number, runs}, tile);
    set(0, other);  // skipped or not
    CHECK_THROWS_AS(HostView<double>(tile, Access::read), TaskFailure);
    CHECK_THROWS_AS(runtime.wait(), TaskFailure);
  }
}

TEST_CASE("failures: one of many at once") {
  Runtime runtime;
  std::vector<Tile<double>> tiles;
  const auto runs = std::make_shared<std::atomic<int>>(0);
  for (int i = 0; i < 200; ++i) set(0, tiles.emplace_back(runtime, 1, 1));
  for (int round = 0; round < 20; ++round) {
    for (std::size_t i = 0; i < tiles.size(); ++i)
      step({i % 3 == 0 ? Throw::exception : Throw::nothing, runs}, tiles[i]);
    CHECK_THROWS_AS(runtime.wait(), TaskFailure);
    runtime.wait();
    for (const Tile<double>& tile : tiles) set(0, tile);
  }
}

// A stall cannot be survived: these run in processes of their own.

namespace {

Options impatient() {
  Options options;
  options.gpus = 0;
  options.stall_seconds = 1;
  return options;
}

[[noreturn]] void report_and_end(const Stall& stall) {
  std::printf("stalled: %s\n", stall.what());
  std::fflush(stdout);
  end_all_ranks(static_cast<int>(stall.blame()));
}

void check_stalled(const Child& child) {
  CHECK_MESSAGE(child.status == 3, child.text);
  CHECK_MESSAGE(child.text.find("stalled: no progress for ") != std::string::npos, child.text);
}

}  // namespace

TEST_CASE("failures: a child waits for a tile that it holds itself" * doctest::skip()) {
  Runtime runtime(impatient());
  const Tile<double> tile(runtime, 3, 5);
  set(0, tile);
  try {
    const HostView<double> view(tile, Access::read);
    set(1, tile, {.label = "slab 3"});
    runtime.wait();
  } catch (const Stall& stall) {
    report_and_end(stall);
  }
}

TEST_CASE("failures: a tile held by the host that waits for its task is a stall, and says so") {
  const Child child = run_in_child("failures: a child waits for a tile that it holds itself");
  check_stalled(child);
  CHECK_MESSAGE(
      child.text.find("the oldest is test_failures_set (slab 3) with tiles 3 x 5 (120 bytes, held by a "
                      "HostView of this program)") != std::string::npos,
      child.text);
}

TEST_CASE("failures: a child ends a tile that it holds" * doctest::skip()) {
  Runtime runtime(impatient());
  double value = 0;
  auto tile = std::make_unique<Tile<double>>(runtime, &value, 1, 1, 1);
  auto* const view = new HostView<double>(*tile, Access::read);
  CHECK(view->rows() == 1);
  tile.reset();
  end_all_ranks(5);
}

TEST_CASE("failures: a tile ended under a view is told, not waited for") {
  const Child child = run_in_child("failures: a child ends a tile that it holds");
  CHECK(child.status == 5);
  CHECK_MESSAGE(child.text.find("asterism: at the end of a tile: no progress for ") != std::string::npos,
                child.text);
}

TEST_CASE("failures: a child fills main memory" * doctest::skip()) {
  Options options = impatient();
  options.cpu_memory = std::size_t{20} << 20;
  Runtime runtime(options);
  std::vector<Tile<double>> tiles;
  std::vector<std::unique_ptr<HostView<double>>> views;
  try {
    for (int i = 0; i < 4; ++i) {
      set(0, tiles.emplace_back(runtime, 1024, 1024));  // 8 MiB
      runtime.wait();
      views.push_back(std::make_unique<HostView<double>>(tiles.back(), Access::read));
    }
  } catch (const Stall& stall) {
    report_and_end(stall);
  }
}

TEST_CASE("failures: main memory full of held tiles is a stall, and says so") {
  const Child child = run_in_child("failures: a child fills main memory");
  check_stalled(child);
  CHECK_MESSAGE(child.text.find("test_failures_set with tiles 1024 x 1024 (8.0 MiB)") != std::string::npos,
                child.text);
  CHECK_MESSAGE(child.text.find("16.0 MiB of 20.0 MiB in use") != std::string::npos, child.text);
}

TEST_CASE("failures: a child goes on after a stall" * doctest::skip()) {
  {
    Runtime runtime(impatient());
    double value = 0;
    const Tile<double> tile(runtime, &value, 1, 1, 1);
    const HostView<double> view(tile, Access::read);
    set(1, tile);
    CHECK_THROWS_AS(runtime.wait(), Stall);
    CHECK_THROWS_AS(runtime.wait(), Stall);
    CHECK_THROWS_AS(HostView<double>(tile, Access::read), Stall);
  }
  std::printf("unwound\n");
  std::fflush(stdout);
  end_all_ranks(7);
}

TEST_CASE("failures: after a stall everything ends without waiting") {
  const Child child = run_in_child("failures: a child goes on after a stall");
  CHECK_MESSAGE(child.status == 7, child.text);
  CHECK_MESSAGE(child.text.find("unwound") != std::string::npos, child.text);
}

TEST_CASE("failures: long tasks are no stall") {
  Options options = impatient();
  options.stall_seconds = 0.4;
  Runtime runtime(options);
  const Codelet<NoArgs, InOut<double>> nap{"test_nap", [](const NoArgs&, InOut<double>) {
                                             std::this_thread::sleep_for(std::chrono::milliseconds(1000));
                                           }};
  const Tile<double> tile(runtime, 1, 1);
  set(0, tile);
  nap({}, tile);
  runtime.wait();
  std::this_thread::sleep_for(std::chrono::milliseconds(600));  // nor is a program that is busy elsewhere
  set(1, tile);
  runtime.wait();
}
