// Failures and stalls of one rank among several, and how all of them end.

#include <doctest/doctest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "../../support/child.hpp"
#include "../../support/skip.hpp"
#include "runtime/codelet.hpp"
#include "runtime/run.hpp"
#include "runtime/snapshot.hpp"
#include "start_and_copy.hpp"

using namespace asterism;
using namespace asterism::test;

namespace {

using Access = HostView<double>::Access;

void cpu_fail(const std::string& reason, InOut<double>) { throw std::runtime_error(reason); }
const Codelet<std::string, InOut<double>> fail{"test_ranks_fail", cpu_fail};

}  // namespace

TEST_CASE("ranks: a failure on one is thrown on all, and the runtime goes on") {
  Runtime runtime;
  const int last = runtime.ranks() - 1;
  const Tile<double> tile(runtime, 1, 1, last), copied(runtime, 1, 1, 0);
  for (int round = 0; round < 3; ++round) {
    start({0}, tile);
    fail("on the last rank", tile, {.label = "round " + std::to_string(round)});
    copy({}, tile, copied);
    CHECK_THROWS_WITH_AS(runtime.wait(),
                         ("task test_ranks_fail (round " + std::to_string(round) + ") failed" +
                          (last > 0 ? " on rank " + std::to_string(last) : "") + ": on the last rank")
                             .c_str(),
                         TaskFailure);
    if (runtime.rank() == 0)  // it was made from what the other rank did not write
      CHECK_THROWS_AS(HostView<double>(copied, Access::read), TaskFailure);
    if (runtime.rank() == last) CHECK_THROWS_AS(HostView<double>(tile, Access::read), TaskFailure);
    runtime.wait();
  }
  start({3}, tile);
  copy({}, tile, copied);
  runtime.wait();
  if (runtime.rank() == 0) CHECK(HostView<double>(copied, Access::read)(0, 0) == 93);
}

TEST_CASE("ranks: to wait for another rank's work is no stall" *
          doctest::skip(!shape_is("mpi2"))) {  // it waits for a second or two
  Options options;
  options.stall_seconds = 0.5;
  Runtime runtime(options);
  const int last = runtime.ranks() - 1;
  const Codelet<NoArgs, InOut<double>> nap{"test_ranks_nap", [](const NoArgs&, InOut<double> x) {
                                             std::this_thread::sleep_for(std::chrono::milliseconds(300));
                                             *x.data += 1;
                                           }};
  const Tile<double> there(runtime, 1, 1, last), here(runtime, 1, 1, 0);
  start({1}, there);
  for (int i = 0; i < 3; ++i) nap({}, there);  // its tasks
  copy({}, there, here);
  if (runtime.rank() == 0) CHECK(HostView<double>(here, Access::read)(0, 0) == 34);
  if (runtime.rank() == last) std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // its program
  nap({}, there);
  copy({}, there, here);
  if (runtime.rank() == 0) CHECK(HostView<double>(here, Access::read)(0, 0) == 35);
  runtime.wait();
}

TEST_CASE("ranks: a child stalls while the others meet" * doctest::skip()) {
  Options options;
  options.stall_seconds = 1;
  Runtime runtime(options);
  const Tile<double> tile(runtime, 1, 1, 1);
  start({0}, tile);
  if (runtime.rank() != 1) {
    runtime.barrier();
    return;
  }
  const HostView<double> view(tile, Access::read);
  start({1}, tile);
  runtime.wait();
}

TEST_CASE("ranks: a child stalls on one rank" * doctest::skip()) {
  Options options;
  options.stall_seconds = launched_rank() == 0 ? 60 : 0.5;
  Runtime runtime(options);
  const Tile<double> here(runtime, 1, 1, 0), there(runtime, 1, 1, 1);
  start({0}, there);
  if (runtime.rank() == 1) {
    const HostView<double> view(there, Access::read);
    start({1}, there);
    CHECK_THROWS_AS(runtime.wait(), Stall);
    return;
  }
  start({1}, there);
  copy({}, there, here);
  runtime.wait();
}

TEST_CASE("ranks: a child ends all" * doctest::skip()) {
  const Runtime runtime;
  if (runtime.rank() == runtime.ranks() - 1) end_all_ranks(9);
  std::this_thread::sleep_for(std::chrono::seconds(600));  // longer than a child may take
}

namespace {

/// Ends a Runtime by an exception that is caught outside its scope.
template <class Body>
void caught_outside(Body body) {
  try {
    Runtime runtime;
    body(runtime);
    runtime.wait();
  } catch (const std::exception&) {
    std::printf("caught\n");
  }
}

}  // namespace

TEST_CASE("ranks: a child looks at a tile of another" * doctest::skip()) {
  caught_outside([](Runtime& runtime) {
    const Tile<double> first(runtime, 1, 1, 0), last(runtime, 1, 1, 2);
    start({0}, first);
    copy({}, first, last);
    if (runtime.rank() == 1) HostView<double>(last, Access::read);
    copy({}, last, first);
  });
}

TEST_CASE("ranks: a child throws while its tile waits for another rank" * doctest::skip()) {
  caught_outside([](Runtime& runtime) {
    const Tile<double> first(runtime, 1, 1, 0), second(runtime, 1, 1, 1);
    start({0}, first);
    start({0}, second);
    if (runtime.rank() == 1) {
      copy({}, first, second);  // rank 0 does not send it
      throw std::runtime_error("of its own");
    }
  });
}

TEST_CASE("ranks: a child throws while its borrowed tile waits for another rank" * doctest::skip()) {
  double value = 0;
  caught_outside([&](Runtime& runtime) {
    const Tile<double> first(runtime, 1, 1, 0);
    const Tile<double> second(runtime, runtime.rank() == 1 ? &value : nullptr, 1, 1, 1, 1);
    start({0}, first);
    start({0}, second);
    if (runtime.rank() == 1) {
      copy({}, first, second);  // rank 0 does not send it
      throw Error("of its own");
    }
  });
}

TEST_CASE("ranks: a child throws alike on all" * doctest::skip()) {
  caught_outside([](Runtime& runtime) {
    const Tile<double> tile(runtime, 1, 1, 1);
    start({0}, tile);
    const Tile<double> empty(runtime, 0, 1, 1);
  });
}

TEST_CASE("ranks: a child ends its Runtime while the other waits for its tile" * doctest::skip()) {
  Options options;
  options.stall_seconds = 1;
  Runtime runtime(options);
  const Tile<double> here(runtime, 1, 1, 0), there(runtime, 1, 1, 1);
  start({0}, there);
  if (runtime.rank() == 1) return;
  copy({}, there, here);
  HostView<double>(here, Access::read);
}

TEST_CASE("ranks: an exception that one throws, or another that all do, ends them all" *
          doctest::skip(!shape_is("cpu"))) {
  check_endings({
      {"ranks: a child looks at a tile of another", 3, 2,
       " (rank 1): rank 1 looks at a tile of rank 2: only the owner has its content"},
      {"ranks: a child throws while its tile waits for another rank", 2, 4,
       " (rank 1): this rank left its Runtime by an exception"},
      {"ranks: a child throws while its borrowed tile waits for another rank", 2, 2, " (rank 1): of its own"},
      {"ranks: a child throws alike on all", 2, 0, ""},
      {"ranks: a child ends its Runtime while the other waits for its tile", 2, 3,
       " (rank 0): no progress for 1 s on any rank with 1 task waiting"},
  });
}

// Programs as users write them.

TEST_CASE("ranks: a child runs a program that throws on its last rank" * doctest::skip()) {
  const std::string what = std::getenv("THROWS") != nullptr ? std::getenv("THROWS") : "";
  Options options;
  options.cpu_memory = launched_rank() + 1 == std::atoi(std::getenv("RANKS")) ? std::size_t{1} << 20 : 0;
  std::exit(run(options, [&](Runtime& runtime) {
    const int last = runtime.ranks() - 1;
    const Tile<double> here(runtime, 1, 1, 0), there(runtime, 1, 1, last), large(runtime, 1000, 1000, last);
    start({0}, here);
    for (int i = 0; i < 10; ++i) copy({}, here, there);
    if (what == "task" || what == "look") fail("a pivot of 0", there);
    if (what == "look") return static_cast<int>(Snapshot<double>(there)(0, 0));
    if (runtime.rank() == last && what == "exception") throw std::runtime_error("no such file");
    if (runtime.rank() == last && what == "number") throw 7;
    if (what == "large") start({0}, large);
    if (what == "unwritten") copy({}, large, there);
    copy({}, there, here);
    if (runtime.rank() == 0 && what != "task") HostView<double>(here, Access::read);
    return what == "nothing" ? 5 : 0;
  }));
}

TEST_CASE("ranks: what one rank throws in a program ends all ranks with its words" *
          doctest::skip(!shape_is("cpu"))) {
  std::vector<Ending> endings;
  for (const int ranks : {1, 2, 4}) {
    const std::string last = ranks > 1 ? " (rank " + std::to_string(ranks - 1) + "): " : ": ";
    const auto expect = [&](const char* what, int status, const std::string& message) {
      endings.push_back({"ranks: a child runs a program that throws on its last rank",
                         ranks,
                         status,
                         message,
                         {"THROWS=" + std::string(what), "RANKS=" + std::to_string(ranks)}});
    };
    expect("exception", 4, last + "no such file");
    const std::string failed = ": task test_ranks_fail failed" +
                               (ranks > 1 ? " on rank " + std::to_string(ranks - 1) : std::string()) +
                               ": a pivot of 0";
    expect("task", 4, failed);
    expect("look", 4, failed);
    if (ranks == 1) continue;
    expect("large", 3,
           last + "task test_ranks_start can run nowhere: its tiles (1000 x 1000 of 8 bytes) need 7.6 MiB");
    expect("unwritten", 2,
           last + "task test_ranks_copy reads a 1000 x 1000 tile (port 0) before anything was written");
    if (ranks != 2) continue;
    expect("number", 4, last + "something was thrown that is no std::exception");
    expect("nothing", 5, "");
  }
  check_endings(endings);
}

TEST_CASE("ranks: one ends all, with its status" * doctest::skip(!shape_is("cpu"))) {
  CHECK(run_in_child("ranks: a child ends all").status == 9);
  check_endings({
      {"ranks: a child ends all", 4, 9, ""},
      {"ranks: a child stalls on one rank", 2, 3, " (rank 1): no progress for "},
      {"ranks: a child stalls while the others meet", 2, 3,
       " (rank 1): no progress for 1 s on any rank with 1 task waiting"},
  });
}
