// Tiles of several ranks: the same program text on one rank and on several, and what is sent.

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../support/skip.hpp"
#include "runtime/codelet.hpp"
#include "runtime/collectives.hpp"
#include "runtime/hardware/pinned_buffer.hpp"
#include "start_and_copy.hpp"

using namespace asterism;
using namespace asterism::test;

namespace {

using Access = HostView<double>::Access;

void cpu_mix(const NoArgs&, In<double> left, In<double> right, InOut<double> x) {
  for (Index j = 0; j < x.cols; ++j) x.data[j] = 0.25 * left.data[j] + 0.3 * x.data[j] + 0.45 * right.data[j];
}
const Codelet<NoArgs, In<double>, In<double>, InOut<double>> mix{"test_ranks_mix", cpu_mix};

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
    CHECK_THROWS_AS(runtime.on_worker(WorkerKind::cpu, 0, [] { throw std::runtime_error("here"); }),
                    TaskFailure);
  }
  CHECK((calls > 0) == (runtime.rank() == 0 || runtime.rank() == last));
  double ranks = 1;
  sum_over_ranks(runtime, &ranks, 1);
  CHECK(ranks == runtime.ranks());
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
                          std::to_string(runtime.ranks() - 1) + ": it can run on one rank only; choose it with Hints::rank")
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
