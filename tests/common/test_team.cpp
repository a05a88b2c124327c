// Threads that work together on the host, and wait for the next work.
#include <doctest/doctest.h>

#include <sched.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "algorithms/common/team.hpp"

namespace asterism::test {
namespace {

/// That a team of so many threads counts, each once.
std::vector<int> calls_of(int threads) {
  std::vector<int> calls(static_cast<std::size_t>(threads));
  in_team(threads, [&](int thread) { ++calls[static_cast<std::size_t>(thread)]; });
  return calls;
}

cpu_set_t cores_of_caller() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) CPU_ZERO(&cores);
  return cores;
}

}  // namespace

TEST_CASE("every thread of a team works once, however many there were before") {
  for (const int threads : {1, 2, 7, 3, 20, 1, 20})
    CHECK(calls_of(threads) == std::vector<int>(static_cast<std::size_t>(threads), 1));
}

TEST_CASE("all of them at once: they can wait for each other") {
  for (int round = 0; round < 200; ++round) {
    std::vector<int> seen(5);
    in_steps(5, 4, [&](Index step, int thread) {
      if (step % 2 == 0) ++seen[static_cast<std::size_t>(thread)];
      if (step % 2 == 1) CHECK(seen == std::vector<int>(5, static_cast<int>(step / 2) + 1));
    });
  }
}

TEST_CASE("a team within a team, and several at once") {
  std::atomic<int> inner = 0;
  in_team(3, [&](int) { in_team(4, [&](int) { ++inner; }); });
  CHECK(inner == 12);
  std::atomic<int> all = 0;
  {
    std::vector<std::jthread> callers;
    for (int caller = 0; caller < 4; ++caller)
      callers.emplace_back([&] {
        for (int round = 0; round < 50; ++round)
          in_parts(4096, 3, [&](Index first, Index end) { all += static_cast<int>(end - first); });
      });
  }
  CHECK(all == 4 * 50 * 4096);
}

TEST_CASE("the first failure is thrown when all have ended, and the next team works") {
  std::atomic<int> ended = 0;
  CHECK_THROWS_WITH(in_team(4,
                            [&](int thread) {
                              ++ended;
                              if (thread > 0) throw std::runtime_error("thread " + std::to_string(thread));
                            }),
                    "thread 1");
  CHECK(ended == 4);
  CHECK(calls_of(4) == std::vector<int>(4, 1));
}

TEST_CASE("threads run where their caller may") {
  const cpu_set_t all = cores_of_caller();
  int first = 0;
  while (!CPU_ISSET(first, &all)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  const auto all_run_on = [](const cpu_set_t& cores) {
    std::atomic<bool> alike = true;
    in_team(3, [&](int) {
      const cpu_set_t mine = cores_of_caller();
      if (!CPU_EQUAL(&mine, &cores)) alike = false;
    });
    return alike.load();
  };
  CHECK(all_run_on(all));
  REQUIRE(sched_setaffinity(0, sizeof(one), &one) == 0);
  CHECK(all_run_on(one));
  REQUIRE(sched_setaffinity(0, sizeof(all), &all) == 0);
  CHECK(all_run_on(all));
}

}  // namespace asterism::test
