// What ranks tell each other, and how they agree: on what they were given, on errors, on how each of them starts.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "../../support/skip.hpp"
#include "runtime/collectives.hpp"
#include "runtime/ranks/ranks.hpp"
#include "runtime/runtime.hpp"

using namespace asterism;
using namespace asterism::test;

TEST_CASE("ranks: what they were given is compared, and what differs is said to all" *
          doctest::skip(!shape_is("mpi"))) {
  Runtime runtime;
  const int last = runtime.ranks() - 1;
  runtime.require_alike("grid: 3 x 5\nlambda: 0\n");
  const std::string mine = runtime.rank() == last ? "grid: 3 x 5\nlambda: 1\n" : "grid: 3 x 5\nlambda: 0\n";
  const std::string who = "rank " + std::to_string(last) + " was given other things than rank 0: ";
  CHECK_THROWS_WITH_AS(runtime.require_alike(mine),
                       (who + "\"lambda: 1\" for \"lambda: 0\"; start all ranks alike").c_str(), Error);
  CHECK_THROWS_WITH_AS(
      runtime.require_alike(runtime.rank() == last ? "grid: 3 x 5\n" : "grid: 3 x 5\nlambda: 0\n"),
      (who + "nothing for \"lambda: 0\"; start all ranks alike").c_str(), Error);
  CHECK_THROWS_WITH_AS(runtime.require_alike(runtime.rank() == last ? "grid: 3 x 5\n" : "grid: 3 x 5"),
                       (who + "nothing for nothing; start all ranks alike").c_str(), Error);
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
  const std::vector<Told> told =
      gather(runtime, Told{(std::int64_t{1} << 60) + rank, static_cast<char>('a' + rank)});
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
    CHECK(std::string(error.what()) ==
          (last == 0 ? "" : "rank " + std::to_string(last) + ": ") + "no room for 5 tiles");
    CHECK(error.blame() == Blame::machine);
    CHECK(error.thrown_by() == (last == 0 ? ThrownBy::this_rank : ThrownBy::all_ranks));
  }
  const auto number = [&] {
    agree(runtime, [&] {
      if (runtime.rank() == runtime.ranks() - 1) throw 7;
    });
  };
  if (runtime.ranks() > 1) CHECK_THROWS_AS(number(), Error);
  const auto everywhere = [&] { agree(runtime, [] { throw Error("grid is 0 x 5"); }); };
  CHECK_THROWS_WITH_AS(everywhere(), "grid is 0 x 5", Error);
  CHECK(gather(runtime, runtime.rank()).size() == static_cast<std::size_t>(runtime.ranks()));
}

TEST_CASE("ranks: where one cannot start, none does, and all may try again") {
  Options options;
  if (launched_rank() == 0) options.spill = "/dev/null/spill";
  const std::string where = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr ? "rank 0: " : "";
  CHECK_THROWS_WITH_AS(
      Runtime{options},
      (where + "spill folder /dev/null/spill: there is no such folder; make it, or name one that is there")
          .c_str(),
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
