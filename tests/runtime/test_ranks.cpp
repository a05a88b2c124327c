// The same program text on one rank and on several.

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "../support/child.hpp"
#include "runtime/codelet.hpp"
#include "runtime/collectives.hpp"
#include "runtime/detail/ranks.hpp"
#include "runtime/pinned_buffer.hpp"

using namespace asterism;
using namespace asterism::test;

namespace {

using Access = HostView<double>::Access;

struct Cell {
  Index index;
};

void cpu_start(const Cell& cell, Out<double> x) {
  for (Index j = 0; j < x.cols; ++j) x.data[j] = static_cast<double>((cell.index * 31 + j * 7) % 101);
}
const Codelet<Cell, Out<double>> start{"test_ranks_start", cpu_start};

void cpu_mix(const NoArgs&, In<double> left, In<double> right, InOut<double> x) {
  for (Index j = 0; j < x.cols; ++j) x.data[j] = 0.25 * left.data[j] + 0.3 * x.data[j] + 0.45 * right.data[j];
}
const Codelet<NoArgs, In<double>, In<double>, InOut<double>> mix{"test_ranks_mix", cpu_mix};

void cpu_copy(const NoArgs&, In<double> from, Out<double> to) {
  for (Index i = 0; i < to.rows; ++i) std::copy_n(from.row(i), to.cols, to.row(i));
}
const Codelet<NoArgs, In<double>, Out<double>> copy{"test_ranks_copy", cpu_copy};

void cpu_fail(const std::string& reason, InOut<double>) { throw std::runtime_error(reason); }
const Codelet<std::string, InOut<double>> fail{"test_ranks_fail", cpu_fail};

}  // namespace

TEST_CASE("ranks: a ring of tiles gives the serial numbers whoever owns them") {
  constexpr Index n = 12, cols = 33;
  constexpr int sweeps = 10;
  std::vector<double> serial(n * cols);
  const auto row = [&](Index i) { return serial.data() + (i + n) % n * cols; };
  for (Index i = 0; i < n; ++i) cpu_start({i}, {row(i), 1, cols, cols});
  for (int sweep = 0; sweep < sweeps; ++sweep)
    for (Index i = 0; i < n; ++i)
      cpu_mix({}, {row(i - 1), 1, cols, cols}, {row(i + 1), 1, cols, cols}, {row(i), 1, cols, cols});

  Runtime runtime;
  const Tiles<double> tiles(runtime, n, cols, 1, cols,
                            [&](Index i, Index) { return static_cast<int>(i) % runtime.ranks(); });
  for (Index i = 0; i < n; ++i) start({i}, tiles[i]);
  for (int sweep = 0; sweep < sweeps; ++sweep)
    for (Index i = 0; i < n; ++i) mix({}, tiles[(i + n - 1) % n], tiles[(i + 1) % n], tiles[i]);
  for (Index i = 0; i < n; ++i) {
    CAPTURE(i);
    CHECK(tiles[i].owner() == static_cast<int>(i) % runtime.ranks());
    if (tiles[i].owner() != runtime.rank()) {
      CHECK_THROWS_WITH_AS(HostView<double>(tiles[i], Access::read),
                           ("rank " + std::to_string(runtime.rank()) + " looks at a tile of rank " +
                            std::to_string(tiles[i].owner()) + ": only the owner has its content")
                               .c_str(),
                           Error);
      continue;
    }
    const HostView<double> view(tiles[i], Access::read);
    for (Index j = 0; j < cols; ++j) CHECK(view(0, j) == row(i)[j]);
  }
  runtime.wait();
}

TEST_CASE("ranks: borrowed memory of each rank, and bytes between them") {
  Runtime runtime;
  const int rank = runtime.rank(), ranks = runtime.ranks(), last = ranks - 1;
  constexpr Index rows = 20, cols = 30, ld = 33;
  constexpr std::int64_t bytes = rows * cols * 8;
  std::vector<double> from(rows * ld, -1), to(rows * ld, -1);
  if (rank == 0)
    for (Index i = 0; i < rows; ++i) std::iota(from.data() + i * ld, from.data() + i * ld + cols, i * 1000);
  const std::int64_t before = runtime.traffic().between_ranks;
  {
    const Tile<double> source(runtime, rank == 0 ? from.data() : nullptr, rows, cols, ld, 0);
    const Tile<double> target(runtime, rank == last ? to.data() : nullptr, rows, cols, ld, last);
    copy({}, source, target);
    copy({}, source, target);  // what came once is kept
    runtime.wait();
    CHECK(runtime.traffic().between_ranks - before == (rank == last && ranks > 1 ? bytes : 0));
    if (rank == 0) HostView<double>(source, Access::read_write)(0, 0) = 0.5;
    start({0}, source);  // written again: it has to come again
    copy({}, source, target);
    runtime.wait();
    CHECK(runtime.traffic().between_ranks - before == (rank == last && ranks > 1 ? 2 * bytes : 0));
  }
  if (rank == last) {
    CHECK(to[cols - 1] == static_cast<double>((cols - 1) * 7 % 101));
    for (Index i = 1; i < rows; ++i) {
      CHECK(to[static_cast<std::size_t>(i * ld)] == static_cast<double>(i * 1000));
      CHECK(to[static_cast<std::size_t>(i * ld + cols)] == -1);
    }
  }
}

TEST_CASE("ranks: every byte that is received is counted once, on the rank that receives it") {
  Runtime runtime;
  const int rank = runtime.rank(), ranks = runtime.ranks();
  const auto received = [&, before = runtime.traffic().between_ranks] {
    runtime.wait();
    return runtime.traffic().between_ranks - before;
  };
  std::vector<Tile<double>> tiles, results;  // rank r's tiles are (r + 1) x 10
  for (int r = 0; r < ranks; ++r) {
    start({r}, tiles.emplace_back(runtime, r + 1, 10, r));
    results.emplace_back(runtime, 1, 10, r);
    start({1}, results.back());
  }
  CHECK(received() == 0);
  const auto bytes_of = [](int r) { return std::int64_t{8} * 10 * (r + 1); };
  std::int64_t expected = 0;
  // Every rank reads its neighbour's tile, through two ports of one task, and then once more.
  const int neighbour = (rank + 1) % ranks;
  for (int r = 0; r < ranks; ++r)
    for (int times = 0; times < 2; ++times) {
      const Tile<double>& next = tiles[static_cast<std::size_t>((r + 1) % ranks)];
      mix({}, next, next, results[static_cast<std::size_t>(r)]);
    }
  if (ranks > 1) expected += bytes_of(neighbour);
  CHECK(received() == expected);
  // The last rank reads all tiles but does not need its neighbour's, rank 0's, again.
  for (int r = 0; r < ranks; ++r) {
    const Tile<double>& tile = tiles[static_cast<std::size_t>(r)];
    mix({}, tile, tile, results.back());
    if (rank == ranks - 1 && r != rank && r != neighbour) expected += bytes_of(r);
  }
  CHECK(received() == expected);
  double sum = static_cast<double>(runtime.traffic().between_ranks), mine = static_cast<double>(expected);
  sum_over_ranks(runtime, &sum, 1);
  sum_over_ranks(runtime, &mine, 1);
  CHECK(sum == mine);
}

TEST_CASE("ranks: which worker runs a task concerns the rank that runs it only") {
  Runtime runtime;
  const int last = runtime.ranks() - 1;
  const Tile<double> tile(runtime, 1, 1, last);
  start({2}, tile, {.where = Where::cpu, .worker = runtime.rank() == last ? 0 : 99});
  runtime.wait();
  if (runtime.rank() == last) {
    CHECK(HostView<double>(tile, Access::read)(0, 0) == 62);
    CHECK_THROWS_AS(start({0}, tile, {.where = Where::cpu, .worker = 99}), Error);
  }
  runtime.wait();
}

TEST_CASE("ranks: what one of them has its workers do concerns nobody else") {
  Runtime runtime;
  const int last = runtime.ranks() - 1;
  std::atomic<int> calls = 0;
  if (runtime.rank() == 0) runtime.on_each_worker(WorkerKind::cpu, [&] { ++calls; });
  if (runtime.rank() == last) {
    runtime.on_worker(WorkerKind::cpu, 0, [&] { ++calls; });
    CHECK_THROWS_AS(runtime.on_worker(WorkerKind::cpu, 0, [] { throw std::runtime_error("here"); }), TaskFailure);
  }
  CHECK((calls > 0) == (runtime.rank() == 0 || runtime.rank() == last));
  double ranks = 1;
  sum_over_ranks(runtime, &ranks, 1);
  CHECK(ranks == runtime.ranks());
}

TEST_CASE("ranks: what they were given is compared, and what differs is said to all" *
          doctest::skip(!shape_is("mpi"))) {
  Runtime runtime;
  const int last = runtime.ranks() - 1;
  runtime.require_alike("grid: 3 x 5\nlambda: 0\n");
  const std::string mine = runtime.rank() == last ? "grid: 3 x 5\nlambda: 1\n" : "grid: 3 x 5\nlambda: 0\n";
  const std::string who = "rank " + std::to_string(last) + " was given other things than rank 0: ";
  CHECK_THROWS_WITH_AS(runtime.require_alike(mine),
                       (who + "\"lambda: 1\" for \"lambda: 0\"; start all ranks alike").c_str(), Error);
  CHECK_THROWS_WITH_AS(runtime.require_alike(runtime.rank() == last ? "grid: 3 x 5\n" : "grid: 3 x 5\nlambda: 0\n"),
                       (who + "nothing for \"lambda: 0\"; start all ranks alike").c_str(), Error);
  runtime.wait();
}

TEST_CASE("ranks: a task writes tiles of one rank only") {
  Runtime runtime;
  const Codelet<NoArgs, Out<double>, Out<double>> both{"test_ranks_both",
                                                       [](const NoArgs&, Out<double>, Out<double>) {}};
  const Tile<double> one(runtime, 1, 1, 0), other(runtime, 1, 1, runtime.ranks() - 1);
  if (runtime.ranks() == 1)
    both({}, one, other);
  else
    CHECK_THROWS_WITH_AS(both({}, one, other),
                         ("task test_ranks_both writes tiles of rank 0 and of rank " +
                          std::to_string(runtime.ranks() - 1) + ": it can run on one rank only")
                             .c_str(),
                         Error);
  CHECK_THROWS_AS(Tile<double>(runtime, 1, 1, runtime.ranks()), Error);
  runtime.wait();
}

TEST_CASE("ranks: tiles may outlive the Runtime that sent them") {
  auto runtime = std::make_unique<Runtime>();
  const Tile<double> here(*runtime, 1, 8, 0), there(*runtime, 1, 8, runtime->ranks() - 1);
  start({1}, here);
  copy({}, here, there);
  runtime.reset();
  CHECK_THROWS_AS(here.wait(), Error);
  CHECK_THROWS_AS(copy({}, here, there), Error);
}

TEST_CASE("ranks: rows too long to be sent are refused before MPI counts them" *
          doctest::skip(!shape_is("mpi"))) {
  Runtime runtime;
  constexpr Index cols = Index{1} << 28;
  const PinnedBuffer memory(runtime, runtime.rank() == 0 ? std::size_t{8} * cols : 0);  // not touched
  const Tile<double> wide(runtime, memory.as<double>(), 1, cols, cols, 0), target(runtime, 1, 1, 1);
  CHECK_THROWS_WITH_AS(
      copy({}, wide, target),
      "task test_ranks_copy on rank 1 reads a tile of rank 0 (port 0) with 1 rows, 2147483648 bytes "
      "apart: neither may pass 2147483647 between ranks; use smaller tiles",
      Error);
  runtime.wait();
}

TEST_CASE("ranks: sums, texts and barriers") {
  Runtime runtime;
  const int rank = runtime.rank(), ranks = runtime.ranks();
  CHECK(runtime.machine().rank == rank);
  CHECK(runtime.machine().ranks == ranks);
  CHECK(launched_rank() == rank);
  double values[] = {1, 0.1 * (rank + 1), rank == 0 ? 1e300 : -1e300 / (ranks - 1.0)};
  sum_over_ranks(runtime, values, 3);
  double tenths = 0;
  for (int r = 0; r < ranks; ++r) tenths += 0.1 * (r + 1);
  CHECK(values[0] == ranks);
  CHECK(values[1] == tenths);  // to the last bit: added in the order of ranks
  sum_over_ranks(runtime, values, 0);
  CHECK(broadcast(runtime, rank == 0 ? "from the first" : "a much longer text that nobody shall see") ==
        "from the first");
  CHECK(broadcast(runtime, "").empty());
  for (int i = 0; i < 100; ++i) runtime.barrier();
}

TEST_CASE("ranks: what each has, told to all") {
  Runtime runtime;
  const int rank = runtime.rank(), ranks = runtime.ranks();
  struct Told {
    std::int64_t number;
    char letter;
  };
  const std::vector<Told> told = gather(runtime, Told{(std::int64_t{1} << 60) + rank, static_cast<char>('a' + rank)});
  REQUIRE(told.size() == static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) {
    CHECK(told[static_cast<std::size_t>(r)].number == (std::int64_t{1} << 60) + r);
    CHECK(told[static_cast<std::size_t>(r)].letter == 'a' + r);
  }
  // Rank r has r numbers, so that the first list is empty.
  std::vector<int> expected;
  for (int r = 0; r < ranks; ++r) expected.insert(expected.end(), static_cast<std::size_t>(r), r);
  CHECK(gather_lists(runtime, std::vector<int>(static_cast<std::size_t>(rank), rank)) == expected);
  CHECK(gather_lists(runtime, std::vector<double>{}).empty());
  CHECK(broadcast(runtime, 7.5 + rank) == 7.5);
  CHECK_FALSE(any(runtime, false));
  CHECK(any(runtime, rank == ranks - 1));
  CHECK(any(runtime, true));
}

TEST_CASE("ranks: an error on one is thrown on all, and they go on together") {
  Runtime runtime;
  const int last = runtime.ranks() - 1;
  int calls = 0;
  agree(runtime, [&] { ++calls; });
  CHECK(calls == 1);
  try {
    agree(runtime, [&] {
      if (runtime.rank() == last) throw Error("no room for 5 tiles", Blame::machine);
    });
    FAIL("nobody threw");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) == (last == 0 ? "" : "rank " + std::to_string(last) + ": ") + "no room for 5 tiles");
    CHECK(error.blame() == Blame::machine);
    CHECK(error.thrown_by() == (last == 0 ? ThrownBy::this_rank : ThrownBy::all_ranks));
  }
  const auto everywhere = [&] { agree(runtime, [] { throw Error("grid is 0 x 5"); }); };
  CHECK_THROWS_WITH_AS(everywhere(), "grid is 0 x 5", Error);
  CHECK(gather(runtime, runtime.rank()).size() == static_cast<std::size_t>(runtime.ranks()));
}

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

TEST_CASE("ranks: where one cannot start, none does, and all may try again") {
  Options options;
  if (launched_rank() == 0) options.spill = "/dev/null/spill";
  const std::string where = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr ? "rank 0: " : "";
  CHECK_THROWS_WITH_AS(
      Runtime{options},
      (where + "spill folder /dev/null/spill: there is no such folder; make it, or name one that is there").c_str(),
      Error);
  options.spill.clear();
  if (launched_rank() == 0) options.gpus = 1000;  // found out after StarPU has started
  CHECK_THROWS_AS(Runtime{options}, Error);
  Runtime runtime;
  runtime.wait();
}

TEST_CASE("ranks: each has a spill folder of its own in the one that is given") {
  const std::filesystem::path folder = std::filesystem::absolute("spilled-by-ranks");
  std::filesystem::create_directories(folder);
  const auto entries = [&] {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  };
  {
    Options options;
    options.spill = folder;
    options.spill_bytes = std::size_t{32} << 20;
    const Runtime runtime(options);
    runtime.barrier();
    CHECK(entries() == runtime.ranks());
    runtime.barrier();
  }
  const Runtime runtime;
  runtime.barrier();
  CHECK(entries() == 0);
}

TEST_CASE("ranks: two thousand messages") {
  Runtime runtime;
  const int last = runtime.ranks() - 1;
  const Tile<double> here(runtime, 1, 8, 0), there(runtime, 1, 8, last);
  start({1}, here);
  for (int i = 0; i < 1000; ++i) {
    copy({}, here, there);
    copy({}, there, here);
  }
  runtime.wait();
  if (runtime.rank() == 0) CHECK(HostView<double>(here, Access::read)(0, 0) == 31);
}

TEST_CASE("ranks: GPUs of a node are divided among its ranks") {
  using ranks::share_of_gpus;
  for (int count = 1; count <= 9; ++count)
    for (int gpus = 0; gpus <= 9; ++gpus) {
      CAPTURE(count);
      CAPTURE(gpus);
      std::vector<int> users(static_cast<std::size_t>(gpus));
      int least = 1000, most = 0;
      for (int rank = 0; rank < count; ++rank) {
        const ranks::GpuShare share = share_of_gpus(rank, count, gpus, -1);
        least = std::min(least, share.count);
        most = std::max(most, share.count);
        for (int i = 0; i < share.count; ++i) ++users.at(static_cast<std::size_t>(share.first + i));
      }
      CHECK(least == (gpus == 0 ? 0 : std::max(1, gpus / count)));
      CHECK(most == (gpus == 0 ? 0 : (gpus + count - 1) / count));
      for (const int ranks_of_one : users) {  // no GPU idle, and none busier than it must be
        CHECK(ranks_of_one >= std::max(1, count / gpus));
        CHECK(ranks_of_one <= (gpus >= count ? 1 : (count + gpus - 1) / gpus));
      }
    }
  const auto is = [](ranks::GpuShare share, int first, int number) {
    return share.first == first && share.count == number;
  };
  CHECK(is(share_of_gpus(1, 2, 8, -1), 4, 4));
  CHECK(is(share_of_gpus(1, 2, 8, 1), 4, 1));    // fewer than its share
  CHECK(is(share_of_gpus(1, 2, 8, 8), 4, 8));    // all, from its own on
  CHECK(is(share_of_gpus(1, 2, 8, 100), 4, 8));  // no more than there are
  CHECK(is(share_of_gpus(1, 2, 8, 0), 4, 0));
  CHECK(is(share_of_gpus(3, 4, 2, -1), 1, 1));
}

TEST_CASE("ranks: to wait for another rank's work is no stall") {
  Options options;
  options.stall_seconds = 1;
  Runtime runtime(options);
  const int last = runtime.ranks() - 1;
  const Codelet<NoArgs, InOut<double>> nap{"test_ranks_nap", [](const NoArgs&, InOut<double> x) {
                                             std::this_thread::sleep_for(std::chrono::milliseconds(600));
                                             *x.data += 1;
                                           }};
  const Tile<double> there(runtime, 1, 1, last), here(runtime, 1, 1, 0);
  start({1}, there);
  for (int i = 0; i < 5; ++i) nap({}, there);  // its tasks
  copy({}, there, here);
  if (runtime.rank() == 0) CHECK(HostView<double>(here, Access::read)(0, 0) == 36);
  if (runtime.rank() == last) std::this_thread::sleep_for(std::chrono::seconds(5));  // its program
  nap({}, there);
  copy({}, there, here);
  if (runtime.rank() == 0) CHECK(HostView<double>(here, Access::read)(0, 0) == 37);
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
  std::this_thread::sleep_for(std::chrono::seconds(600));  // longer than ends_with waits
}

namespace {

/// Runs a test case on several ranks, in children, and expects a status and one message.
void ends_with(const std::string& test_case, const char* ranks, int status, const std::string& message) {
  const char* const mpiexec = std::getenv("ASTERISM_MPIEXEC");
  const Child child = run_in_child(test_case, {mpiexec != nullptr ? mpiexec : "mpirun", "-np", ranks});
  CHECK_MESSAGE(child.status == status, child.text);
  const std::size_t first = child.text.find("asterism (rank ");
  CHECK_MESSAGE((first == std::string::npos) == message.empty(), child.text);
  CHECK_MESSAGE(child.text.find(message) != std::string::npos, child.text);
  if (!message.empty()) CHECK_MESSAGE(child.text.find("asterism (rank ", first + 1) == std::string::npos, child.text);
}

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
  ends_with("ranks: a child looks at a tile of another", "3", 2,
            "asterism (rank 1): rank 1 looks at a tile of rank 2: only the owner has its content");
  ends_with("ranks: a child throws while its tile waits for another rank", "2", 4,
            "asterism (rank 1): this rank left its Runtime by an exception");
  ends_with("ranks: a child throws alike on all", "2", 0, "");
  ends_with("ranks: a child ends its Runtime while the other waits for its tile", "2", 3,
            "asterism (rank 0): no progress for 1 s on any rank with 1 task waiting");
}

TEST_CASE("ranks: one ends all, with its status" * doctest::skip(!shape_is("cpu"))) {
  CHECK(run_in_child("ranks: a child ends all").status == 9);
  ends_with("ranks: a child ends all", "4", 9, "");
  ends_with("ranks: a child stalls on one rank", "2", 3, "asterism (rank 1): no progress for ");
  ends_with("ranks: a child stalls while the others meet", "2", 3,
            "asterism (rank 1): no progress for 1 s on any rank with 1 task waiting");
}
