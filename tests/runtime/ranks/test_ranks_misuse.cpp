// What a program does wrong on all of its ranks alike: told as on one, and the Runtime goes on.

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "runtime/codelet.hpp"
#include "runtime/tile.hpp"
#include "start_and_copy.hpp"

using namespace asterism;
using namespace asterism::test;

namespace {

using Access = HostView<double>::Access;

/// That a number of the first rank still reaches the last one.
void check_alive(Runtime& runtime) {
  const int last = runtime.ranks() - 1;
  const Tile<double> here(runtime, 1, 1, 0), there(runtime, 1, 1, last);
  start({3}, here);
  copy({}, here, there);
  runtime.wait();
  if (runtime.rank() == last) CHECK(HostView<double>(there, Access::read)(0, 0) == 93);
}

}  // namespace

TEST_CASE("ranks: tiles that are empty, or of no rank, are refused on all") {
  Runtime runtime;
  const int last = runtime.ranks() - 1;
  Tile<double> tile(runtime, 1, 1, last);
  const Tile<double> moved(std::move(tile)), none;
  for (const Tile<double>* empty : {&std::as_const(tile), &none}) {
    CHECK_THROWS_WITH_AS(
        start({0}, *empty),
        "task test_ranks_start: port 0 is an empty tile (default-constructed, or moved from): "
        "assign one of a Runtime to it first",
        Error);
    CHECK_THROWS_AS(copy({}, moved, *empty), Error);
    CHECK_THROWS_AS(HostView<double>(*empty, Access::write), Error);
  }
  CHECK_THROWS_AS(Tile<double>(runtime, 1, 1, last + 1), Error);
  CHECK_THROWS_AS(Tile<double>(runtime, 1, 1, -1), Error);
  check_alive(runtime);
}

TEST_CASE("ranks: a kernel that there is not is told where it should run") {
  Runtime runtime;
  const int last = runtime.ranks() - 1;
  const Tile<double> tile(runtime, 1, 1, last);
  const auto on_gpu = [&] { start({0}, tile, {.where = Where::cuda}); };
  if (runtime.rank() == last)
    CHECK_THROWS_WITH_AS(on_gpu(), doctest::Contains("task test_ranks_start asks for CUDA workers, but "),
                         Error);
  else
    on_gpu();
  check_alive(runtime);
}

TEST_CASE("ranks: tiles outlive their Runtime, on all, and are of no use then") {
  std::optional<Runtime> runtime(std::in_place);
  const int last = runtime->ranks() - 1;
  const Tile<double> here(*runtime, 1, 1, 0), there(*runtime, 1, 1, last);
  start({3}, here);
  copy({}, here, there);
  runtime.reset();
  CHECK_THROWS_AS(copy({}, there, here), Error);
  CHECK_THROWS_AS(HostView<double>(there, Access::read), Error);
  Runtime another;
  const Tile<double> of_another(another, 1, 1, last);
  CHECK_THROWS_AS(copy({}, there, of_another), Error);
  check_alive(another);
}

TEST_CASE("ranks: arguments that own tiles end after their tasks") {
  struct Owner {
    std::shared_ptr<const Tile<double>> tile;
  };
  const Codelet<Owner, In<double>, InOut<double>> add{
      "test_ranks_add_owned", [](const Owner&, In<double> x, InOut<double> sum) { *sum.data += *x.data; }};
  Runtime runtime;
  const int last = runtime.ranks() - 1;
  const Tile<double> sum(runtime, 1, 1, last);
  start({0}, sum);
  std::weak_ptr<const Tile<double>> newest;
  for (int i = 0; i < 50; ++i) {
    const auto tile = std::make_shared<const Tile<double>>(runtime, 1, 1, 0);
    start({1}, *tile);
    add({tile}, *tile, sum);
    newest = tile;
  }
  runtime.wait();
  CHECK(newest.expired());
  if (runtime.rank() == last) CHECK(HostView<double>(sum, Access::read)(0, 0) == 50 * 31);
}

TEST_CASE("ranks: far more workers than cores are as many as there are cores, on all") {
  Runtime runtime({.cpus = 99, .gpus = 0});
  const int count = runtime.machine().count(WorkerKind::cpu);
  CHECK(count >= 1);
  CHECK(count <= static_cast<int>(std::thread::hardware_concurrency()));
  check_alive(runtime);
}
