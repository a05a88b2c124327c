// Which part belongs to whom, and how large it is: by arithmetic, and where its tiles lie.

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/common/partition.hpp"
#include "algorithms/common/speeds.hpp"
#include "runtime/codelet.hpp"
#include "runtime/per_rank.hpp"
#include "runtime/runtime.hpp"

using namespace asterism;

namespace {

using Indices = std::vector<Index>;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr Index huge = std::numeric_limits<Index>::max();

/// So many workers on each of several ranks.
std::vector<Candidate> workers_of(const std::vector<int>& of_ranks, Where where = Where::cuda) {
  std::vector<Candidate> workers;
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank)
    for (int k = 0; k < of_ranks[rank]; ++k)
      workers.push_back(
          {.rank = static_cast<int>(rank), .where = where, .worker = k, .alone = of_ranks[rank] == 1});
  return workers;
}

std::vector<double> ones(std::size_t count) { return std::vector<double>(count, 1); }

Indices sizes(const Partition& partition) {
  Indices sizes;
  for (const Part& part : partition.parts()) sizes.push_back(part.size);
  return sizes;
}

Indices parts_of_ranks(const Partition& partition, int ranks) {
  Indices counts;
  for (int rank = 0; rank < ranks; ++rank) counts.push_back(partition.parts_of(rank).count());
  return counts;
}

/// From 0 to n, and never back.
void check_bounds(const Indices& bounds, Index n, std::size_t parts) {
  REQUIRE(bounds.size() == parts + 1);
  CHECK(bounds.front() == 0);
  CHECK(bounds.back() == n);
  CHECK(std::is_sorted(bounds.begin(), bounds.end()));
}

}  // namespace

TEST_CASE("bounds by weight: in proportion, as near as whole elements allow") {
  CHECK(bounds_by_weight(10, {1, 1}) == Indices{0, 5, 10});
  CHECK(bounds_by_weight(9, {1, 2}) == Indices{0, 3, 9});
  CHECK(bounds_by_weight(100, {3, 0, 1}) == Indices{0, 75, 75, 100});
  CHECK(bounds_by_weight(1000, {3e9, 1e9, 1e9}) == Indices{0, 600, 800, 1000});
  CHECK(bounds_by_weight(7, {1, 1, 1}) == Indices{0, 2, 5, 7});
  CHECK(bounds_by_weight(7, {1, 1, 1}, {.rounding = Rounding::down}) == Indices{0, 2, 4, 7});
  CHECK(bounds_by_weight(7, {1, 1, 1}, {.rounding = Rounding::up}) == Indices{0, 3, 5, 7});
  // Multiples of a unit, and what is left over; no part below the least, as far as there is enough.
  CHECK(bounds_by_weight(50, {1, 1}, {.unit = 16}) == Indices{0, 32, 50});
  CHECK(bounds_by_weight(100, {1, 1, 1}, {.unit = 16}) == Indices{0, 32, 64, 100});
  CHECK(bounds_by_weight(100, {1, 1e-9, 1}, {.least = 4}) == Indices{0, 50, 54, 100});
  CHECK(bounds_by_weight(100, {0, 0, 1}, {.least = 4}) == Indices{0, 4, 8, 100});
  CHECK(bounds_by_weight(5, {1, 1, 1}, {.least = 100}) == Indices{0, 2, 3, 5});
}

TEST_CASE("bounds by weight: nothing, one, primes, more workers than work, whatever the weights") {
  const std::vector<std::vector<double>> all_weights{{1},
                                                     {0},
                                                     {0, 0, 0},
                                                     {1, 0},
                                                     {0, 1},
                                                     {1e-300, 1e300},
                                                     {1e308, 1e308, 1e308},
                                                     {5e-324, 5e-324},
                                                     {1, 1e-3, 1},
                                                     std::vector<double>(97, 0.1),
                                                     std::vector<double>(1000, 3.7e9)};
  for (const std::vector<double>& weights : all_weights)
    for (const Index n :
         {Index{0}, Index{1}, Index{2}, Index{97}, Index{7919}, Index{1} << 40, huge - 1, huge})
      for (const Rounding rounding : {Rounding::nearest, Rounding::down, Rounding::up})
        for (const Index least : {0, 1, 5}) {
          CAPTURE(n);
          CAPTURE(weights.size());
          check_bounds(bounds_by_weight(n, weights, {.least = least, .rounding = rounding}), n,
                       weights.size());
        }
  CHECK(bounds_by_weight(huge, {1, 0}) == Indices{0, huge, huge});
  CHECK(bounds_by_weight(12, {0, 0, 0}) == Indices{0, 4, 8, 12});  // nobody has any: equal parts
  CHECK_THROWS_WITH_AS(bounds_by_weight(5, {}), doctest::Contains("at least 1 weight"), Error);
  CHECK_THROWS_WITH_AS(bounds_by_weight(5, {1, -2}), doctest::Contains("weight 1 of 2 is -2"), Error);
  CHECK_THROWS_WITH_AS(bounds_by_weight(5, {std::nan("")}), doctest::Contains("weight 0 of 1 is nan"), Error);
  CHECK_THROWS_AS(bounds_by_weight(5, {1, inf}), Error);
  CHECK_THROWS_WITH_AS(bounds_by_weight(-1, {1}), doctest::Contains("-1 elements"), Error);
}

TEST_CASE("equal weights of any size: the integer rules, for as many parts as you like") {
  for (const double weight : {1.0, 0.1, 1.2345e9})
    for (const Index workers : {1, 2, 3, 4, 7, 64, 97})
      for (const Index n : {Index{1}, Index{5}, Index{97}, Index{128}, Index{10007}, Index{1} << 40}) {
        const std::vector<double> weights(static_cast<std::size_t>(workers), 1.0);
        const Indices down = bounds_by_weight(n, weights, {.rounding = Rounding::down});
        for (Index p = 0; p < workers; ++p) REQUIRE(down[static_cast<std::size_t>(p)] == n * p / workers);
        if (n > 20000) continue;
        const std::vector<std::size_t> takers =
            deal(n, std::vector<double>(static_cast<std::size_t>(workers), weight), Dealing::blocks);
        for (Index p = 0; p < n; ++p)
          REQUIRE(takers[static_cast<std::size_t>(p)] == static_cast<std::size_t>(p * workers / n));
        const std::vector<std::size_t> turns =
            deal(n, std::vector<double>(static_cast<std::size_t>(workers), weight), Dealing::turns);
        for (Index p = 0; p < n; ++p)
          REQUIRE(turns[static_cast<std::size_t>(p)] == static_cast<std::size_t>(p % workers));
      }
}

TEST_CASE("bounds by cost: rows of a matrix by their numbers of non-zeros") {
  CHECK(bounds_by_cost({0, 1, 2, 3, 4}, {1, 1}) == Indices{0, 2, 4});
  CHECK(bounds_by_cost({0, 90, 95, 98, 100}, {1, 1}) == Indices{0, 1, 4});  // a full row first
  CHECK(bounds_by_cost({0, 2, 5, 10, 100}, {1, 1}) == Indices{0, 3, 4});    // and last
  CHECK(bounds_by_cost({0, 0, 0, 6, 6, 12}, {1, 1}) == Indices{0, 3, 5});   // empty rows
  CHECK(bounds_by_cost({7, 8, 9, 10}, {2, 1}) ==
        Indices{0, 2, 3});  // of a rank, whose rows do not begin at 0
  CHECK(bounds_by_cost({0, 0, 0, 0, 0}, {1, 1}) == Indices{0, 2, 4});  // costs nothing: equal parts
  CHECK(bounds_by_cost({0}, {1, 1, 1}) == Indices{0, 0, 0, 0});
  CHECK(bounds_by_cost({0, 5}, {1, 1, 1}) == Indices{0, 0, 1, 1});
  CHECK(bounds_by_cost({0, huge / 2, huge}, {1, 1}) == Indices{0, 1, 2});
  check_bounds(bounds_by_cost({0, 1, 1, 1, 50, 50, 51, 52}, std::vector<double>(20, 1)), 7, 20);
  CHECK_THROWS_AS(bounds_by_cost({}, {1}), Error);
  CHECK_THROWS_AS(bounds_by_cost({0, 3, 2}, {1}), Error);
  // No part costs more than its due and a row.
  Indices cost_before{0};
  for (Index row = 0; row < 1000; ++row) cost_before.push_back(cost_before.back() + 1 + row * 7919 % 50);
  const Indices bounds = bounds_by_cost(cost_before, {1, 2, 0, 4});
  check_bounds(bounds, 1000, 4);
  const double due = static_cast<double>(cost_before.back()) / 7;
  for (const auto& [part, weight] : {std::pair<std::size_t, double>{0, 1}, {1, 2}, {2, 0}, {3, 4}}) {
    const auto cost = [&](std::size_t bound) { return cost_before[static_cast<std::size_t>(bounds[bound])]; };
    CHECK(std::abs(static_cast<double>(cost(part + 1) - cost(part)) - weight * due) <= 51);
  }
}

TEST_CASE("parts by weight: a worker for each, its rank's in a row") {
  const std::vector<Candidate> workers = workers_of({2, 1});
  const Partition rows = cut_by_weight(100, workers, {1, 1, 2});
  CHECK(sizes(rows) == Indices{25, 25, 50});
  CHECK(rows.extent() == 100);
  CHECK(rows.owner(1) == 0);
  CHECK(rows.elements_of(0).first == 0);
  CHECK(rows.elements_of(0).end == 50);
  CHECK(rows.elements_of(1).count() == 50);
  CHECK(rows.elements_of(7).count() == 0);
  CHECK(rows.part_of(0) == 0);
  CHECK(rows.part_of(24) == 0);
  CHECK(rows.part_of(25) == 1);
  CHECK(rows.part_of(99) == 2);
  CHECK_THROWS_AS((void)rows.part_of(100), Error);
  CHECK_THROWS_AS((void)rows.part_of(-1), Error);
  // A worker is named where its rank has others.
  CHECK(rows.hints(1).worker == 1);
  CHECK(rows.hints(1).where == Where::cuda);
  CHECK(rows.hints(2).worker == -1);

  CHECK(rows.before(0) == std::nullopt);
  CHECK(rows.before(0, Border::periodic) == 2);
  CHECK(rows.before(2) == 1);
  CHECK(rows.after(2) == std::nullopt);
  CHECK(rows.after(2, Border::periodic) == 0);
  CHECK(Partition(std::vector<Part>{{.size = 3}}).after(0, Border::periodic) == 0);

  // More workers than elements: some parts are empty, and no element is in them.
  const Partition few = cut_by_weight(2, workers_of({3, 3}), ones(6));
  CHECK(std::accumulate(few.parts().begin(), few.parts().end(), Index{0},
                        [](Index sum, const Part& part) { return sum + part.size; }) == 2);
  for (Index element = 0; element < 2; ++element) CHECK(few[few.part_of(element)].size == 1);
  CHECK(Partition().count() == 0);
  CHECK(Partition().extent() == 0);
  CHECK(Partition().parts_of(0).count() == 0);
}

TEST_CASE("parts that do not follow each other are refused") {
  const auto refused = [](std::vector<Part> parts, const char* what) {
    CHECK_THROWS_WITH_AS(Partition(std::move(parts)), doctest::Contains(what), Error);
  };
  refused({{.size = 3}, {.first = 4, .size = 1}}, "part 1 has 1 elements from 4 on: it has to begin at 3");
  refused({{.size = -1}}, "part 0 has -1 elements");
  refused({{.size = 1, .rank = 1}, {.first = 1, .size = 1, .rank = 0}}, "part 1 belongs to rank 0");
}

TEST_CASE("parts of given sizes: to ranks by what their workers weigh, in blocks or in turns") {
  const Indices sizes_of_parts(12, 5);
  const Partition equal = deal_parts(sizes_of_parts, workers_of({1, 1}), {1, 1}, Dealing::blocks);
  CHECK(parts_of_ranks(equal, 2) == Indices{6, 6});
  CHECK(equal.extent() == 60);
  const Partition unequal = deal_parts(sizes_of_parts, workers_of({1, 1}), {1, 2}, Dealing::blocks);
  CHECK(parts_of_ranks(unequal, 2) == Indices{4, 8});
  CHECK(unequal.elements_of(1).first == 20);
  // One core beside three, and a rank that has none of it.
  CHECK(parts_of_ranks(deal_parts(sizes_of_parts, workers_of({1, 3}), ones(4), Dealing::blocks), 2) ==
        Indices{3, 9});
  CHECK(parts_of_ranks(deal_parts(sizes_of_parts, workers_of({1, 0, 2}), ones(3), Dealing::turns), 3) ==
        Indices{4, 0, 8});
  // One slow worker: next to nothing for it, and the rest as if it were not there.
  const Partition slow =
      deal_parts(Indices(1000, 1), workers_of({1, 1, 1}), {1e9, 1e3, 1e9}, Dealing::blocks);
  CHECK(parts_of_ranks(slow, 3) == Indices{500, 1, 499});
  CHECK(parts_of_ranks(deal_parts(Indices(1000, 1), workers_of({1, 1, 1}), {1, 0, 1}, Dealing::blocks), 3) ==
        Indices{500, 0, 500});

  const auto takers = [](const Partition& partition) {
    std::vector<int> workers;
    for (const Part& part : partition.parts()) workers.push_back(part.worker);
    return workers;
  };
  const Indices six(6, 1);
  CHECK(takers(deal_parts(six, workers_of({2}), {1, 1}, Dealing::blocks)) ==
        std::vector<int>{0, 0, 0, 1, 1, 1});
  CHECK(takers(deal_parts(six, workers_of({2}), {1, 1}, Dealing::turns)) ==
        std::vector<int>{0, 1, 0, 1, 0, 1});
  CHECK(takers(deal_parts(six, workers_of({2}), {2, 1}, Dealing::turns)) ==
        std::vector<int>{0, 0, 1, 0, 0, 1});
  CHECK(takers(deal_parts(six, workers_of({2}), {0, 1}, Dealing::turns)) ==
        std::vector<int>{1, 1, 1, 1, 1, 1});
  // Weights whose sums are rounded: seven sevenths are no less than a whole.
  std::vector<double> sevenths(8, 1.0 / 7);
  sevenths[0] = 1;
  for (const Index count : {2, 6, 50, 998, 12346})
    CHECK(parts_of_ranks(deal_parts(Indices(static_cast<std::size_t>(count), 1), workers_of({1, 7}), sevenths,
                                    Dealing::blocks),
                         2) == Indices{count / 2, count / 2});
  // Fewer parts than workers.
  CHECK(takers(deal_parts({1, 1}, workers_of({4}), ones(4), Dealing::blocks)) == std::vector<int>{0, 2});
  CHECK(deal_parts({}, workers_of({4}), ones(4), Dealing::blocks).count() == 0);
  CHECK_THROWS_AS(deal_parts({1}, {}, {}, Dealing::blocks), Error);
  CHECK_THROWS_WITH_AS(deal_parts({1}, workers_of({2}), ones(3), Dealing::blocks),
                       doctest::Contains("3 weights for 2"), Error);
  CHECK_THROWS_AS(cut_by_weight(5, workers_of({2}), ones(1)), Error);
}

TEST_CASE("speeds within a tenth of each other are equal, kind by kind") {
  std::vector<Candidate> workers = workers_of({2, 1});
  for (const Candidate& core : workers_of({0, 2}, Where::cpu)) workers.push_back(core);
  const std::vector<double> measured{1.05e11, 1e11, 1.09e11, 1e9, 2e9};
  for (std::size_t i = 0; i < workers.size(); ++i) workers[i].speed = measured[i];
  even_out(workers);
  const std::vector<double> expected{1e11, 1e11, 1e11, 1e9, 2e9};
  for (std::size_t i = 0; i < workers.size(); ++i) CHECK(workers[i].speed == expected[i]);
}

TEST_CASE("no worker is measured as faster than it is, whoever is submitted first") {
  using namespace std::chrono_literals;
  Runtime runtime;
  std::vector<Candidate> cores;
  std::ranges::copy_if(all_workers(runtime), std::back_inserter(cores),
                       [](const Candidate& worker) { return worker.where == Where::cpu; });
  const Codelet<NoArgs, Out<double>> nap{"test_nap", [](const NoArgs&, Out<double> out) {
                                           std::this_thread::sleep_for(5ms);
                                           out.data[0] = 1;
                                         }};
  std::vector<Tile<double>> tiles;
  for (const Candidate& core : cores) tiles.emplace_back(runtime, 1, 1, core.rank);
  std::vector<Trial> trials;
  for (std::size_t k = 0; k < cores.size(); ++k)
    trials.push_back({.work = 1,
                      .submit =
                          [&nap, &core = cores[k], &tile = tiles[k]] {
                            nap({}, tile, {.where = Where::cpu, .worker = core.worker});
                            std::this_thread::sleep_for(10ms);
                          },
                      .last = &tiles[k]});
  measure_speeds(runtime, cores, trials);
  for (const Candidate& core : cores) {
    CHECK(core.speed <= 200);  // a nap takes 5 ms at least
    CHECK(core.speed > 0);
  }
}

TEST_CASE("all ranks know all workers, and whose tiles are where") {
  Runtime runtime;
  const std::vector<Candidate> workers = all_workers(runtime);
  const Machine machine = runtime.machine();
  const auto mine = std::count_if(workers.begin(), workers.end(),
                                  [&](const Candidate& worker) { return worker.rank == runtime.rank(); });
  CHECK(mine == machine.count(WorkerKind::cuda) + machine.count(WorkerKind::cpu));
  CHECK(workers.back().rank == runtime.ranks() - 1);
  for (const Candidate& worker : workers) {
    const auto alike = std::count_if(workers.begin(), workers.end(), [&](const Candidate& other) {
      return other.rank == worker.rank && other.where == worker.where;
    });
    CHECK(worker.alone == (alike == 1));
    CHECK(!is_measured(worker));
  }

  const Index rows = 10 * static_cast<Index>(workers.size()) + 3;
  const Partition partition = cut_by_weight(rows, workers, ones(workers.size()));
  const Tiles<double> owned = partition.tiles<double>(runtime, 4);
  const Tiles<double> small = partition.equal_tiles<double>(runtime, 2, 3);
  const Partition::Range range = partition.elements_of(runtime.rank());
  std::vector<double> memory(static_cast<std::size_t>(range.count() * 4), 7);
  {
    const Tiles<double> borrowed = partition.tiles<double>(runtime, 4, [&](Index part, Index) {
      return partition.owner(part) == runtime.rank()
                 ? memory.data() + (partition[part].first - range.first) * 4
                 : nullptr;
    });
    for (Index part = 0; part < partition.count(); ++part) {
      CHECK(owned[part].rows() == partition[part].size);
      CHECK(owned[part].owner() == partition.owner(part));
      CHECK(small[part].rows() == 2);
      if (partition.owner(part) != runtime.rank()) continue;
      const HostView<double> view(borrowed[part], HostView<double>::Access::read_write);
      CHECK(view(0, 0) == 7);
      view(view.rows() - 1, 3) = static_cast<double>(partition[part].first + partition[part].size);
    }
  }
  for (Index part = 0; part < partition.count(); ++part) {
    const Part& its = partition[part];
    if (its.rank == runtime.rank())
      CHECK(memory[static_cast<std::size_t>((its.first + its.size - range.first) * 4 - 1)] ==
            static_cast<double>(its.first + its.size));
  }
  const PerRank<double> per_rank(runtime, 1, 1);
  CHECK(partition.mine(per_rank, partition.count() - 1).owner() == runtime.ranks() - 1);
}
