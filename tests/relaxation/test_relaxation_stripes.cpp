// Who takes part, how the rows are divided among them, and how many sweeps they make at a time.

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "algorithms/common/speeds.hpp"
#include "algorithms/relaxation/stripes/speeds.hpp"
#include "algorithms/relaxation/stripes/room.hpp"
#include "relaxation_solves.hpp"

using namespace asterism;
using namespace asterism::test;
using relaxation::Cut;
using relaxation::Exchange;

TEST_CASE("stripes in proportion to speeds") {
  const auto heights = [](const std::vector<Candidate>& workers, const Settings& settings) {
    std::vector<Index> rows;
    const Cut cut = relaxation::cut_rows<double>(workers, {.shape = {1000, 1000}}, settings);
    for (const asterism::Part& part : cut.stripes.parts()) rows.push_back(part.size);
    return rows;
  };
  const std::vector<Candidate> workers{
      {0, Where::cuda, 0, 3e9}, {0, Where::cuda, 1, 1e9}, {1, Where::cuda, 0, 1e9}};
  CHECK(heights(workers, {.sweeps = 1, .stripes = 3}) == std::vector<Index>{600, 200, 200});
  CHECK(heights(workers, {.sweeps = 1, .stripes = 6}) == std::vector<Index>{300, 300, 100, 100, 100, 100});
  CHECK(heights(workers, {.sweeps = 1, .stripes = 4, .balance = Balance::equal}) ==
        std::vector<Index>{250, 250, 250, 250});
  // The slowest get what a stripe cannot do without.
  const std::vector<Candidate> unequal{
      {0, Where::cpu, 0, 1}, {0, Where::cpu, 1, 1e-9}, {0, Where::cpu, 2, 1}};
  CHECK(heights(unequal, {.sweeps = 1, .exchange = Exchange::overlapped, .stripes = 3}) ==
        std::vector<Index>{500, 4, 496});
  CHECK(heights(unequal, {.sweeps = 1, .stripes = 3}) == std::vector<Index>{500, 2, 498});
  const Cut cut = relaxation::cut_rows<double>(workers, {.shape = {1000, 1000}},
                                               {.sweeps = 64, .check_every = 64, .stripes = 3});
  CHECK(cut.halo == 2 * cut.sweeps_per_task);
  CHECK(cut.stripes.parts()[2].rank == 1);
  CHECK(cut.stripes.parts()[2].worker == 0);
  CHECK(cut.stripes.parts()[1].first == 600);
  // Left to itself: a stripe for each worker where there are nodes enough, more where its memory asks for it.
  const auto count = [&](const std::vector<Candidate>& all, Index rows) {
    return relaxation::cut_rows<double>(all, {.shape = {rows, 4096}}, {.sweeps = 1}).stripes.parts().size();
  };
  CHECK(count({{0, Where::cuda, 0, 1, 141e9}, {0, Where::cuda, 1, 1, 141e9}}, 4096) == 2);
  CHECK(count({{0, Where::cuda, 0, 1, 141e9}, {0, Where::cuda, 1, 1, 141e9}}, 256) == 1);
  CHECK(count({{0, Where::cuda, 0, 1, 1e9}}, 16384) == 3);  // 5 x 16384 x 4096 x 8 bytes = 2.7e9
  CHECK(count({{0, Where::cpu, 0, 1, 0}}, Index{1} << 20) == 2);
  CHECK(count({{0, Where::cpu, 0, 1, 0}, {1, Where::cpu, 0, 1, 0}}, 4) == 1);  // 2 x 2 ghost rows each
  CHECK(count({{0, Where::cpu, 0, 1, 0}, {1, Where::cpu, 0, 1, 0}}, 8) == 2);  // no rank is left out
}

namespace {

/// A rank's workers; speeds in nodes per second.
std::vector<Candidate> workers_of(int rank, int gpus, double gpu_speed, int cores, double core_speed,
                                  double gpu_memory = 141e9) {
  std::vector<Candidate> workers;
  for (int k = 0; k < gpus; ++k) workers.push_back({rank, Where::cuda, k, gpu_speed, gpu_memory});
  for (int k = 0; k < cores; ++k) workers.push_back({rank, Where::cpu, k, core_speed});
  return workers;
}

/// What the solver makes of them for an n x n grid of float64.
Cut cut_for(const std::vector<Candidate>& all, Index n, Settings settings = {}) {
  settings.sweeps = settings.check_every = 1000;
  const Problem problem{.shape = {n, n}};
  return relaxation::cut_rows<double>(relaxation::choose_workers<double>(all, problem, settings), problem,
                                      settings);
}

Index count(const Cut& cut, Where where) {
  return std::count_if(cut.stripes.parts().begin(), cut.stripes.parts().end(),
                       [&](const asterism::Part& part) { return part.where == where; });
}

}  // namespace

TEST_CASE("cores beside a GPU join it only where a sweep takes less time with them") {
  const std::vector<Candidate> slow_cores = workers_of(0, 1, 2e11, 16, 1e9),
                               fast_cores = workers_of(0, 1, 1e11, 16, 5e9);
  for (const Index n : {64, 512, 2048, 16384}) {
    CAPTURE(n);
    const Cut cut = cut_for(slow_cores, n);
    CHECK(cut.stripes.parts().size() == 1);
    CHECK(count(cut, Where::cuda) == 1);
  }
  const Cut joined = cut_for(fast_cores, 32768);
  CHECK(count(joined, Where::cuda) == 1);
  CHECK(count(joined, Where::cpu) == 16);
  CHECK(joined.stripes.parts()[0].size == doctest::Approx(32768 / 1.8).epsilon(0.01));
  // The same cores at a grid that is done before the rows are exchanged; and where nobody has measured.
  CHECK(count(cut_for(fast_cores, 1024), Where::cpu) == 0);
  CHECK(count(cut_for(workers_of(0, 1, 1, 16, 1), 32768), Where::cpu) == 0);
  CHECK(count(cut_for(fast_cores, 32768, {.stripes = 1}), Where::cpu) == 0);
}

TEST_CASE("all GPUs take part, and the cores of ranks that have none") {
  const Cut several = cut_for(workers_of(0, 4, 2e11, 16, 1e9), 16384);
  CHECK(count(several, Where::cuda) == 4);
  CHECK(count(several, Where::cpu) == 0);

  // Eight cores are a fiftieth of two GPUs: they take part where stripes are asked for, and left to itself
  // the solver takes them where they are faster.
  for (const auto& [core_speed, stripes] : {std::pair<double, Index>{1e9, 10}, {2e10, 0}}) {
    std::vector<Candidate> ranks = workers_of(0, 2, 2e11, 16, 1e9);
    for (const Candidate& worker : workers_of(1, 0, 0, 8, core_speed)) ranks.push_back(worker);
    const Cut cut = cut_for(ranks, 16384, {.stripes = stripes});
    CAPTURE(core_speed);
    CHECK(count(cut, Where::cuda) == 2);
    CHECK(count(cut, Where::cpu) == 8);
    CHECK(cut.stripes.parts().back().rank == 1);
  }
}

TEST_CASE("borders are exchanged during the sweeps, but between a node's GPUs and between a rank's cores") {
  const auto exchange = [](const std::vector<Candidate>& workers, Exchange wanted = Exchange::automatic) {
    return relaxation::cut_rows<double>(workers, {.shape = {1000, 1000}}, {.sweeps = 1, .exchange = wanted}).exchange;
  };
  const Candidate core{.rank = 0, .where = Where::cpu}, other_rank{.rank = 1, .where = Where::cpu},
      gpu{.rank = 0, .where = Where::cuda}, other_gpu{.rank = 1, .where = Where::cuda},
      far_gpu{.rank = 2, .where = Where::cuda, .node = 2},
      with_disk{.rank = 0, .where = Where::cpu, .memory = 64e6};
  CHECK(exchange({core, core}) == Exchange::blocking);
  CHECK(exchange({core, other_rank}) == Exchange::overlapped);
  CHECK(exchange({gpu, core}) == Exchange::overlapped);
  CHECK(exchange({gpu, gpu}) == Exchange::blocking);
  CHECK(exchange({gpu, other_gpu}) == Exchange::blocking);
  CHECK(exchange({gpu, other_gpu, far_gpu}) == Exchange::overlapped);
  CHECK(exchange({gpu, other_rank}) == Exchange::overlapped);
  CHECK(exchange({with_disk, with_disk}) == Exchange::overlapped);
  for (const Exchange wanted : {Exchange::overlapped, Exchange::blocking, Exchange::stale})
    CHECK(exchange({core, core}, wanted) == wanted);
}

TEST_CASE("cores with a disk behind little memory: all tiles of a task, for all of them at once") {
  const std::vector<Candidate> cores{{.where = Where::cpu, .worker = 0, .memory = 64e6 / 3},
                                     {.where = Where::cpu, .worker = 1, .memory = 64e6 / 3}};
  const Problem problem{.shape = {3000, 3000}};
  const Cut cut = relaxation::cut_rows<double>(cores, problem, {.sweeps = 4, .check_every = 4});
  CHECK(cut.stripes.parts().size() >= 12);
  for (const asterism::Part& part : cut.stripes.parts()) {
    const relaxation::Stripe stripe{.rows = part.size, .nodes = 3000, .halo = cut.halo};
    CHECK(8 * (3 * stripe.tile_rows() * stripe.tile_cols() + 4 * cut.halo * stripe.tile_cols()) < 64e6 / 3);
  }
  const auto refuses = [&](const std::vector<Candidate>& workers, Index stripes, const char* what) {
    CHECK_THROWS_WITH_AS(
        relaxation::cut_rows<double>(workers, problem, {.sweeps = 4, .check_every = 4, .stripes = stripes}),
        doctest::Contains(what), Error);
  };
  refuses(cores, 4, "ask for more stripes (--stripes), or allow more memory (--memory)");
  // Without a disk all stripes are there at a time.
  const Candidate alone{.where = Where::cpu, .rank_memory = 200e6};
  refuses({alone}, 0, "name a folder for what does not fit (--spill)");
  refuses({alone}, 100, "name a folder for what does not fit (--spill)");
  refuses(cores, Index{1} << 62, "ask for at most 750 stripes (--stripes)");
}

TEST_CASE("little memory: no more stripes than it asks for, of fewer sweeps; or what a task needs") {
  const Problem problem{.shape = {1500, 1500}};
  const auto cut = [&](double memory) {
    const std::vector<Candidate> cores{{.where = Where::cpu, .worker = 0, .memory = memory},
                                       {.where = Where::cpu, .worker = 1, .memory = memory}};
    return relaxation::cut_rows<double>(cores, problem, {.sweeps = 4, .check_every = 4});
  };
  // Two stripes of four sweeps have more ghost rows than there is room for, which says nothing of lower ones.
  CHECK(cut(8e6 / 3).stripes.parts().size() < 50);
  CHECK(cut(6e6 / 3).stripes.parts().size() < 90);
  CHECK(cut(3e6 / 3).stripes.parts().size() < 375);
  CHECK_THROWS_WITH_AS(
      cut(2e6 / 3),
      "375 stripes: a task needs 681.6 KiB for the 4 rows of one and what is beside them, and a "
      "worker's share of memory has 585.9 KiB for it; there can be no more stripes (--stripes): "
      "allow more memory (--memory)",
      Error);
}

TEST_CASE("no stripe is higher than its worker's memory allows, nor a tile larger than StarPU counts") {
  const relaxation::Stripe plain{.nodes = 4096, .halo = 1, .arrangement = Arrangement::natural};
  const Candidate small{.where = Where::cuda, .memory = 256e6}, core{.where = Where::cpu};
  const Index rows = relaxation::most_rows(small, plain, 8);
  CHECK(5 * rows * 4096 * 8 <= 0.9 * 256e6);
  CHECK(5 * rows * 4096 * 8 > 0.85 * 256e6);
  CHECK((relaxation::most_rows(core, plain, 8) + 2) * plain.tile_cols() < Index{1} << 32);
  CHECK(relaxation::most_rows({.where = Where::cuda, .memory = 1e4}, plain, 8) == 0);

  // Rows as long as a problem may have them.
  for (const Arrangement arrangement : {Arrangement::natural, Arrangement::separated})
    CHECK(relaxation::most_rows(core, {.nodes = 1431655742, .halo = 1, .arrangement = arrangement}, 8) >= 1);
  CHECK(relaxation::most_rows(core, {.nodes = 1431655743, .halo = 1, .arrangement = Arrangement::separated},
                              8) == 0);

  // A GPU's part of the grid is larger than its memory, as it is faster than the cores.
  std::vector<Candidate> unequal = workers_of(0, 1, 1e11, 16, 5e9, 72e9);
  for (const Index n : {16384, 65536, 131072})
    for (const Index per_task : {0, 1, 64}) {
      CAPTURE(n);
      CAPTURE(per_task);
      const Cut cut = relaxation::cut_rows<double>(
          unequal, {.shape = {n, n}},
          {.sweeps = 1000, .check_every = 1000, .sweeps_per_task = per_task, .stripes = 0});
      const relaxation::Stripe stripe{.nodes = n, .halo = cut.halo};
      Index next = 0;
      for (const asterism::Part& part : cut.stripes.parts()) {
        CHECK(part.first == next);
        CHECK(part.size <=
              relaxation::most_rows(unequal[part.where == Where::cuda ? 0 : 1], stripe, sizeof(double)));
        next += part.size;
      }
      CHECK(next == n);
      if (n == 65536) CHECK(count(cut, Where::cuda) == 2);
      CHECK(cut.stripes.parts()[0].size * count(cut, Where::cuda) ==
            doctest::Approx(static_cast<double>(n) / 1.8).epsilon(0.01));
    }
  CHECK_THROWS_AS(cut_for(workers_of(0, 1, 1e11, 0, 0, 1e6), 65536), Error);
}

TEST_CASE("fewer stripes than workers: the fastest have them, rank by rank") {
  std::vector<Candidate> ranks = workers_of(0, 0, 0, 16, 1e9);
  for (const Candidate& worker : workers_of(1, 1, 2e11, 0, 0)) ranks.push_back(worker);
  const auto cut = [&](Index n, Index stripes) {
    return relaxation::cut_rows<double>(ranks, {.shape = {n, n}},
                                        {.sweeps = 1, .check_every = 1, .stripes = stripes});
  };
  const Cut chosen = cut(512, 0);
  CHECK(chosen.stripes.parts().size() == 8);
  CHECK(count(chosen, Where::cuda) == 1);
  CHECK(chosen.stripes.parts().back().where == Where::cuda);
  CHECK(cut(512, 1).stripes.parts()[0].rank == 1);
  // Equals are taken from all ranks.
  const std::vector<Candidate> equals{{0, Where::cpu, 0}, {0, Where::cpu, 1}, {0, Where::cpu, 2},
                                      {1, Where::cpu, 0}, {1, Where::cpu, 1}, {1, Where::cpu, 2}};
  for (Index stripes = 1; stripes <= 6; ++stripes) {
    const relaxation::Division division = relaxation::divide(equals, stripes);
    REQUIRE(division.count() == stripes);
    REQUIRE(division.workers.size() == static_cast<std::size_t>(stripes));
    CHECK(division.workers.front().rank == 0);
    CHECK(division.workers.back().rank == (stripes > 1 ? 1 : 0));
  }
}

TEST_CASE("as many stripes as are worth their tasks: by their nodes, on cores also by their rows") {
  const auto stripes = [](int gpus, int cores, Index rows, Index columns) {
    return relaxation::worthwhile_stripes(workers_of(0, gpus, 1, cores, 1), rows, columns, rows);
  };
  CHECK(stripes(0, 2, 90, 90) == 1);
  CHECK(stripes(0, 2, 127, 127) == 2);
  CHECK(stripes(0, 16, 335, 335) == 5);
  CHECK(stripes(0, 16, 1023, 1023) == 16);
  CHECK(stripes(0, 16, 8, 1 << 20) == 8);  // no more than there are rows
  CHECK(stripes(0, 16, 4096, 3) == 1);     // rows, but hardly a node
  CHECK(stripes(2, 0, 1023, 1023) == 1);
  CHECK(stripes(2, 0, 2047, 2047) == 2);
}

TEST_CASE("ranks that would only slow the others down have no rows") {
  std::vector<Candidate> ranks = workers_of(0, 1, 4e11, 0, 0);
  for (const Candidate& worker : workers_of(1, 0, 0, 16, 5e8)) ranks.push_back(worker);
  const Cut alone = cut_for(workers_of(0, 1, 4e11, 0, 0), 2048), cut = cut_for(ranks, 2048);
  CHECK(cut.stripes.parts().size() == 1);
  CHECK(cut.stripes.parts()[0].rank == 0);
  CHECK(cut.sweeps_per_task == alone.sweeps_per_task);
  // Two ranks with GPUs stay together where the grid is large, and wherever stripes are asked for.
  for (const Candidate& worker : workers_of(2, 1, 4e11, 0, 0)) ranks.push_back(worker);
  const Cut large = cut_for(ranks, 32768);
  CHECK(count(large, Where::cuda) == 2);
  const Cut asked = cut_for(ranks, 2048, {.stripes = 18});
  CHECK(count(asked, Where::cpu) == 16);
  // A slow GPU beside a fast one.
  std::vector<Candidate> unequal = workers_of(0, 1, 1e9, 0, 0);
  for (const Candidate& worker : workers_of(1, 1, 4e11, 0, 0)) unequal.push_back(worker);
  const Cut fast = cut_for(unequal, 2048);
  CHECK(fast.stripes.parts().size() == 1);
  CHECK(fast.stripes.parts()[0].rank == 1);
}

TEST_CASE("groups of tiles are done when the last task of each has ended") {
  Runtime runtime;
  const Codelet<int, Out<double>> nap{"test_nap", [](const int& milliseconds, Out<double> x) {
                                        std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
                                        *x.data = 0;
                                      }};
  std::vector<Tile<double>> tiles;
  std::vector<std::vector<const detail::TileBase*>> groups(3);
  for (int k = 0; k < 100; ++k) tiles.emplace_back(runtime, 1, 1);
  for (std::size_t k = 0; k < tiles.size(); ++k) {
    nap(k == 51 ? 100 : 0, tiles[k]);
    groups[k % 2].push_back(&tiles[k]);
  }
  const std::vector<double> seconds = seconds_until_done(groups);
  REQUIRE(seconds.size() == 3);
  for (const double s : seconds) CHECK(s >= 0);
  if (runtime.rank() == 0) CHECK(seconds[1] >= 0.05);
  CHECK(seconds[2] == 0);
  CHECK(seconds_until_done({}).empty());
}

TEST_CASE("tasks on GPUs are whole passes of their kernels") {
  const std::vector<Candidate> gpus{{0, Where::cuda, 0, 2e11, 141e9}, {0, Where::cuda, 1, 1.9e11, 141e9}};
  for (const Index n : {4000, 9001, 16'383})
    for (const std::size_t count : {1, 2}) {
      const std::vector<Candidate> workers(gpus.begin(), gpus.begin() + static_cast<std::ptrdiff_t>(count));
      const auto sweeps = [&](relaxation::Method method) {
        return relaxation::cut_rows<double>(workers, {.shape = {n, n}},
                                            {.method = method, .check_every = 1000})
            .sweeps_per_task;
      };
      CAPTURE(n);
      CHECK(sweeps(relaxation::Method::sor) % 8 == 0);
      CHECK(sweeps(relaxation::Method::jacobi) % 16 == 0);
    }
}

TEST_CASE("tasks on a GPU have so many sweeps that their cost does not count") {
  for (const double speed : {6e10, 2e11, 4e11}) {
    const std::vector<Candidate> gpu = workers_of(0, 1, speed, 0, 0);
    const Cut small = cut_for(gpu, 2048), large = cut_for(gpu, 16384);
    CAPTURE(speed);
    CHECK(small.sweeps_per_task >= 32);
    CHECK(small.sweeps_per_task % 2 == 0);
    CHECK(small.halo == 1);
    CHECK(large.sweeps_per_task <= small.sweeps_per_task);
    // As predicted a sweep of 2048^2 nodes runs at 80 % of the speed of one of 16384^2.
    CHECK(small.seconds_per_sweep * 64 < large.seconds_per_sweep / 0.8);
  }
  // No more than between two residuals, and what was asked for.
  const Problem problem{.shape = {2048, 2048}};
  const std::vector<Candidate> gpu = workers_of(0, 1, 2e11, 0, 0);
  CHECK(relaxation::cut_rows<double>(gpu, problem, {.tolerance = 1e-6, .check_every = 20}).sweeps_per_task <=
        20);
  CHECK(cut_for(gpu, 2048, {.sweeps_per_task = 3}).sweeps_per_task == 3);
}

TEST_CASE("workers are measured, and all ranks know the same speeds") {
  Runtime runtime;
  Settings settings{.omega = 1.5, .sweeps = 1};
  const std::vector<Candidate> workers =
      relaxation::measured_workers<double>(runtime, {.shape = {100, 120}}, settings);
  const Machine machine = runtime.machine();
  const auto mine = std::count_if(workers.begin(), workers.end(),
                                  [&](const Candidate& worker) { return worker.rank == runtime.rank(); });
  // Of ranks that share their GPUs the first one has these.
  const int first = first_with_gpus(runtime)[static_cast<std::size_t>(runtime.rank())];
  const int gpus = first == runtime.rank() ? machine.count(WorkerKind::cuda) : 0;
  CHECK(mine == gpus + machine.count(WorkerKind::cpu));
  const bool measures = runtime.ranks() > 1 || machine.count(WorkerKind::cuda) > 0;
  std::vector<double> sums;
  for (const Candidate& worker : workers) {
    if (measures)
      CHECK(worker.speed > 1e4);
    else
      CHECK(worker.speed == 1);
    sums.push_back(worker.speed);
  }
  sum_over_ranks(runtime, sums.data(), static_cast<Index>(sums.size()));
  for (std::size_t i = 0; i < sums.size(); ++i)
    CHECK(sums[i] == doctest::Approx(runtime.ranks() * workers[i].speed));
  settings.balance = Balance::equal;
  for (const Candidate& worker :
       relaxation::measured_workers<double>(runtime, {.shape = {100, 120}}, settings))
    CHECK(worker.speed == 1);
}
