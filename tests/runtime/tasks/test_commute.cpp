// Updates in any order.

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "numbered_tiles.hpp"

using namespace asterism;
using namespace asterism::test;

TEST_CASE("commute: updates all count, one at a time, between what is before and after them") {
  struct Arguments {
    std::shared_ptr<std::atomic<int>> inside;
    std::shared_ptr<std::atomic<int>> overlaps;
  };
  Options options;
  options.gpus = 0;
  Runtime runtime(options);
  const Codelet add{
      "test_commute", +[](const Arguments& a, In<double> x, Commute<double> total) {
        if (++*a.inside != 1) ++*a.overlaps;
        const double before = *total.data;
        std::this_thread::sleep_for(std::chrono::microseconds(20));  // an update that comes between would be lost
        *total.data = before + *x.data;
        --*a.inside;
      }};
  const Arguments a{std::make_shared<std::atomic<int>>(0), std::make_shared<std::atomic<int>>(0)};
  const Codelet copy_value{"test_commute_copy", +[](In<double> from, Out<double> to) { *to.data = *from.data; }};
  const std::vector<Tile<double>> x = numbered(runtime, 20);
  const Tile<double> total(runtime, 1, 1), copy(runtime, 1, 1);
  double expected = 0;
  set(0, total);
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 100; ++i) {
      add(a, x[static_cast<std::size_t>(i % 20)], total, {.priority = i % 3});
      expected += i % 20 + 1;
    }
    copy_value(total, copy);  // sees all of this round, and none of the next
    add(a, x[0], total);
    CHECK(value(copy) == expected);
    set(expected, total);
  }
  runtime.wait();
  CHECK(value(total) == expected);
  CHECK(*a.overlaps == 0);
  CHECK(a.inside.use_count() == 1);
}

TEST_CASE("commute: updates need not wait for one that cannot run yet") {
  Options options;
  options.gpus = 0;
  Runtime runtime(options);
  const Codelet add{"test_commute_free", +[](In<double> x, Commute<double> total) { *total.data += *x.data; }};
  const Codelet note{"test_commute_note",
                     +[](const std::shared_ptr<std::atomic<bool>>& done, Commute<double>) { *done = true; }};
  const Tile<double> late(runtime, 1, 1), total(runtime, 1, 1);
  set(1, late);
  set(0, total);
  const auto done = std::make_shared<std::atomic<bool>>(false);
  {
    const HostView<double> held(late, HostView<double>::Access::read_write);
    add(late, total);
    note(done, total);
    for (int i = 0; i < 5000 && !*done; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(*done);  // before the update that was submitted first
    held(0, 0) = 5;
  }
  CHECK(value(total) == 5);
}

TEST_CASE("commute: tasks that commute on several tiles in opposite orders do not wait for each other") {
  Runtime runtime;
  const Codelet swap_some{"test_commute_two", +[](Commute<double> a, Commute<double> b) {
                            *a.data -= 1;
                            *b.data += 1;
                          }};
  const Tile<double> a(runtime, 1, 1), b(runtime, 1, 1);
  set(0, a);
  set(0, b);
  for (int i = 0; i < 300; ++i) {
    swap_some(a, b);
    swap_some(b, a);
    if (i % 3 == 0) swap_some(a, b);
  }
  CHECK(value(a) == -100);
  CHECK(value(b) == 100);
}

TEST_CASE("commute: an update reads, so there must be something; and what fails is lost") {
  Runtime runtime;
  const Codelet add{"test_commute_fail", +[](const int& number, Commute<double> total) {
                      if (number == 7) throw Error("no seventh");
                      *total.data += 1;
                    }};
  const Tile<double> total(runtime, 1, 1);
  CHECK(refusal([&] { add(0, total); }) ==
        "task test_commute_fail reads a 1 x 1 tile (port 0) before anything was written to it");
  set(0, total);
  for (int i = 0; i < 20; ++i) add(i, total);
  CHECK_THROWS_WITH_AS(runtime.wait(), "task test_commute_fail failed: no seventh", TaskFailure);
  CHECK_THROWS_AS(static_cast<void>(value(total)), TaskFailure);
  CHECK(refusal([&] {
          add(0, total);
        }).starts_with("task test_commute_fail reads a 1 x 1 tile (port 0) whose content is lost"));
  set(0, total);
  for (int i = 10; i < 20; ++i) add(i, total);
  CHECK(value(total) == 10);
  runtime.wait();
}
