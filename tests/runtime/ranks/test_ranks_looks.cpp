// Snapshots and cancellations on several ranks.

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../../support/skip.hpp"
#include "runtime/codelet.hpp"
#include "runtime/collectives.hpp"
#include "runtime/snapshot.hpp"
#include "start_and_copy.hpp"

using namespace asterism;
using namespace asterism::test;

namespace {

const auto add = codelet("test_ranks_add", [](double summand, InOut<double> x) { *x.data += summand; });
const auto break_down =
    codelet("test_ranks_break_down", [](InOut<double>) { throw std::runtime_error("a pivot of 0"); });
std::atomic<int> gaps = 0;  // values that did not follow the one before
const auto follow = codelet("test_ranks_follow", [](In<double> from, InOut<double> to) {
  if (*from.data != *to.data + 1) ++gaps;
  *to.data = *from.data;
});
const auto nap = codelet("test_ranks_short_nap", [](InOut<double> x) {
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  *x.data += 1;
});

}  // namespace

TEST_CASE("ranks: a snapshot is valid on every rank") {
  Runtime runtime;
  const int last = runtime.ranks() - 1;
  const Tile<double> here(runtime, 2, 5, 0), there(runtime, 2, 5, last);
  start({0}, here);
  start({1}, there);
  std::vector<Snapshot<double>> looks;
  for (int i = 0; i < 100; ++i) {
    add(1, here);
    add(2, there);
    copy({}, i % 2 == 0 ? here : there, i % 2 == 0 ? there : here);
    looks.emplace_back(i % 3 == 0 ? here : there);
  }
  runtime.wait();
  double first = 0, second = 31;
  for (int i = 0; i < 100; ++i) {
    first += 1;
    second += 2;
    (i % 2 == 0 ? second : first) = i % 2 == 0 ? first : second;
    const Snapshot<double>& look = looks[static_cast<std::size_t>(i)];
    CHECK(look.ready());
    CHECK(look(0, 0) == (i % 3 == 0 ? first : second));
    CHECK(look.cols() == 5);
  }
}

TEST_CASE("ranks: a snapshot tells a failure on every rank, wherever it was, and nobody has waited") {
  Runtime runtime;
  const int last = runtime.ranks() - 1;
  for (int round = 0; round < 3; ++round) {
    const Tile<double> tile(runtime, 1, 1, last), copied(runtime, 1, 1, 0), good(runtime, 1, 1, last / 2);
    start({0}, tile);
    start({3}, good);
    const Snapshot<double> before(good);
    CHECK(before(0, 0) == 93);
    break_down(tile);
    copy({}, tile, copied);
    copy({}, copied, good);
    const std::string reason = "task test_ranks_break_down failed" +
                               (last > 0 ? " on rank " + std::to_string(last) : std::string()) +
                               ": a pivot of 0";
    for (const Tile<double>* lost : {&tile, &copied, &good}) {
      const Snapshot<double> look(*lost);
      CHECK_THROWS_WITH_AS(look.wait(), reason.c_str(), TaskFailure);
    }
    if (runtime.rank() == last) CHECK(runtime.task_has_failed());  // others may hear of it later
    CHECK_THROWS_WITH_AS(runtime.wait(), reason.c_str(), TaskFailure);
  }
}

TEST_CASE("ranks: one cancels for all") {
  Runtime runtime;
  const int ranks = runtime.ranks(), last = ranks - 1;
  for (int round = 0; round < 3; ++round) {
    std::vector<Tile<double>> tiles;
    for (int r = 0; r < ranks; ++r) start({0}, tiles.emplace_back(runtime, 1, 1, r));
    runtime.wait();
    for (int i = 0; i < 1900; ++i)  // fewer than Options::window: nobody waits for room
      for (const Tile<double>& tile : tiles) nap(tile);
    if (runtime.rank() == last) runtime.cancel();
    runtime.wait();
    CHECK_FALSE(runtime.cancelled());
    for (const Tile<double>& tile : tiles) {
      const Snapshot<double> look(tile);
      CHECK(look(0, 0) < 1900);
      add(1, tile);
      const Snapshot<double> next(tile);
      CHECK(next(0, 0) == look(0, 0) + 1);
    }
  }
}

TEST_CASE("ranks: what was not written because of a cancellation is read by no task that runs") {
  Runtime runtime;
  const int last = runtime.ranks() - 1;
  for (int round = 0; round < 2; ++round) {
    const Tile<double> here(runtime, 1, 1, 0), there(runtime, 1, 1, last), sent(runtime, 1, 1, 0);
    start({0}, here);
    start({0}, there);
    runtime.wait();  // else they might be cancelled, too
    // A step whose copy was left out would be seen by the next one that runs, as a gap.
    for (int i = 0; i < 1000; ++i) {
      nap(here);
      copy({}, here, sent);
      follow(sent, there);
      if (i == 100 && runtime.rank() == round % runtime.ranks()) runtime.cancel();
    }
    runtime.wait();
    add(0, here);
    const Snapshot<double> counted(here);
    CHECK(counted(0, 0) < 1000);
    CHECK(gaps == 0);
  }
}

TEST_CASE("ranks: a task's handle is empty on ranks that do not run it") {
  Runtime runtime;
  const int last = runtime.ranks() - 1;
  const Tile<double> there(runtime, 1, 1, last);
  start({0}, there);
  const Task task = nap(there);
  task.wait();
  CHECK(task.ended());
  if (runtime.rank() == last) CHECK(HostView<double>(there, HostView<double>::Access::read)(0, 0) == 1);
  runtime.wait();
}
