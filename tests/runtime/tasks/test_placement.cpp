// Where tasks run: kernels and workers that there are, the worker that the submitter names, memory that they fit in.

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "numbered_tiles.hpp"
#include "plain_codelets.hpp"
#include "runtime/codelet.hpp"

using namespace asterism;
using namespace asterism::test;

TEST_CASE("codelets: where no worker is") {
  Options options;
  options.gpus = 0;
  Runtime runtime(options);
  const Tile<double> tile(runtime, 1, 1);
  set_first(1, tile);
  const Codelet<double, In<double>, InOut<double>> nowhere{"test_nowhere", nullptr, cuda_nothing};
  const Tile<double> other(runtime, 1, 1);
  set_first(1, other);
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
  for (int i = 0; i < 20; ++i) set_first(0, tiles.emplace_back(runtime, 1, 1));
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
      set_first(1, tiles[0], hints);
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
  set_first(1, tile);
  CHECK_THROWS_WITH_AS(reads({}, tile), "task test_reads writes no tile: it would have no effect", Error);
}

TEST_CASE("codelets: a task larger than the memory is refused before StarPU sees it") {
  Options options;
  options.gpus = 0;
  options.cpu_memory = std::size_t{20} << 20;
  Runtime runtime(options);
  const Tile<double> fits(runtime, 768, 1024), too_large(runtime, 1536, 2048),
      vast(runtime, 4'294'967'295, 1);
  set_first(1, fits);
  runtime.wait();
  for (const Tile<double>* tile : {&too_large, &vast}) {
    try {
      set_first(1, *tile);
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
      set_first(1, too_large),
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
  set_first(1, other);
  set_first(1, third);
  std::vector<double> memory(std::size_t{4} << 20);
  const Tile<double> borrowed(runtime, memory.data(), 2048, 2048, 2048);
  const Codelet<NoArgs, In<double>, In<double>, In<double>, Out<double>> four{
      "test_four", [](const NoArgs&, In<double>, In<double>, In<double>, Out<double>) {}};
  four({}, fits, fits, borrowed, other);
  four({}, fits, third, borrowed, other);
  CHECK_THROWS_AS(four({}, fits, third, other, fourth), Error);
  runtime.wait();
}
