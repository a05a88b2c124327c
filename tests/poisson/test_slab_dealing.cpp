// Which rank and GPU gets which slabs: by weights that are given, by speed, by the number of workers; and that u is
// the same.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <tuple>
#include <vector>

#include "algorithms/common/speeds.hpp"
#include "algorithms/poisson/slabs/dealing.hpp"
#include "algorithms/poisson/slabs/speeds.hpp"
#include "poisson_solves.hpp"
#include "runtime/collectives.hpp"

using namespace asterism;
using namespace asterism::test;
using poisson::Layout;

namespace {

/// A rank's workers, of unknown speed.
void add_workers(std::vector<Candidate>& workers, int rank, int gpus, int cores) {
  for (int k = 0; k < gpus; ++k)
    workers.push_back({.rank = rank, .where = Where::cuda, .worker = k, .alone = gpus == 1});
  for (int k = 0; k < cores; ++k)
    workers.push_back({.rank = rank, .where = Where::cpu, .worker = k, .alone = cores == 1});
}

std::vector<double> speeds_of(const std::vector<Candidate>& lanes) {
  std::vector<double> speeds;
  for (const Candidate& lane : lanes) speeds.push_back(lane.speed);
  return speeds;
}

poisson::Grid grid_of(Index planes, Index batch = 1) {
  return poisson::discretise({.shape = {planes, 8}, .batch = batch});
}

Layout layout_of(Index planes, Index slab_planes, Dealing dealing = Dealing::blocks) {
  Layout layout;
  layout.slab_planes = slab_planes;
  layout.slabs = (planes + slab_planes - 1) / slab_planes;
  layout.dealing = dealing;
  return layout;
}

Partition dealt(Index planes, Index slab_planes, const std::vector<Candidate>& all) {
  const std::vector<Candidate> lanes = poisson::lanes_of(poisson::slab_workers(all));
  return partition_of_slabs(grid_of(planes), layout_of(planes, slab_planes), lanes, speeds_of(lanes));
}

std::vector<Index> planes_of_ranks(const Partition& slabs, int ranks) {
  std::vector<Index> planes;
  for (int rank = 0; rank < ranks; ++rank) planes.push_back(slabs.elements_of(rank).count());
  return planes;
}

/// How many ranks the launcher starts: known before there is a Runtime.
int launched_ranks() {
  const char* const size = std::getenv("OMPI_COMM_WORLD_SIZE");
  return size != nullptr ? std::atoi(size) : 1;
}

/// Of every rank, after a solver has dealt the slabs.
std::vector<Index> planes_dealt(Runtime& runtime, const poisson::Problem& problem,
                                const poisson::Settings& settings) {
  const poisson::Solver<double> solver(runtime, problem, settings);
  return gather(runtime, solver.plane_count());
}

}  // namespace

TEST_CASE("equal ranks: slab by slab what the integer rules say, in blocks and in turns") {
  for (const int ranks : {1, 2, 3, 4, 7})
    for (const int gpus : {0, 1, 2, 3})
      for (const Index slabs : {1, 2, 3, 5, 8, 12, 97})
        for (const Index batch : {1, 3})
          for (const Dealing dealing : {Dealing::blocks, Dealing::turns}) {
            std::vector<Candidate> all;
            for (int rank = 0; rank < ranks; ++rank) add_workers(all, rank, gpus, 2);
            std::vector<Candidate> workers = poisson::slab_workers(all);
            for (Candidate& worker : workers) worker.speed = 1.2345e9;  // measured, and equal
            const std::vector<Candidate> lanes = poisson::lanes_of(workers);
            const Partition parts = partition_of_slabs(
                grid_of(3 * slabs, batch), layout_of(3 * slabs, 3, dealing), lanes, speeds_of(lanes));
            const Index count = batch * slabs;
            REQUIRE(parts.count() == count);
            CHECK(parts.extent() == 3 * count);
            for (Index number = 0; number < count; ++number) {
              REQUIRE(parts.owner(number) == number * ranks / count);
              const Partition::Range mine = parts.parts_of(parts.owner(number));
              const Index in_rank = number - mine.first;
              const Index its_lanes = std::max(1, gpus);
              const Index lane =
                  dealing == Dealing::turns ? in_rank % its_lanes : in_rank * its_lanes / mine.count();
              REQUIRE(parts.hints(number).worker == (gpus > 1 ? lane : -1));
              REQUIRE(parts.hints(number).where == (gpus > 0 ? Where::cuda : Where::cpu));
            }
          }
}

TEST_CASE("unlike ranks have slabs in proportion to what they have of workers") {
  std::vector<Candidate> cores;
  add_workers(cores, 0, 0, 1);
  add_workers(cores, 1, 0, 2);
  CHECK(planes_of_ranks(dealt(120, 10, cores), 2) == std::vector<Index>{40, 80});
  CHECK(planes_of_ranks(dealt(125, 10, cores), 2) == std::vector<Index>{50, 75});  // whole slabs

  std::vector<Candidate> mixed;  // a GPU and its cores, which leave the slabs to it; 20 cores
  add_workers(mixed, 0, 1, 16);
  add_workers(mixed, 1, 0, 20);
  CHECK(planes_of_ranks(dealt(1100, 10, mixed), 2) == std::vector<Index>{1000, 100});

  // By speed: the second of two GPUs of a rank, and the cores of another, have half of what the first one does.
  std::vector<Candidate> workers = poisson::slab_workers(mixed);
  add_workers(workers, 2, 2, 0);
  for (Candidate& worker : workers) worker.speed = worker.where == Where::cuda ? 2e10 : 1e10 / 20;
  workers.back().speed = 1e10;
  const std::vector<Candidate> lanes = poisson::lanes_of(workers);
  REQUIRE(lanes.size() == 4);
  CHECK(lanes[1].worker == -1);
  CHECK(lanes[1].speed == doctest::Approx(1e10));
  const Partition slabs = partition_of_slabs(grid_of(60), layout_of(60, 1), lanes, speeds_of(lanes));
  CHECK(planes_of_ranks(slabs, 3) == std::vector<Index>{20, 10, 30});
  CHECK(slabs.hints(49).worker == 0);
  CHECK(slabs.hints(50).worker == 1);
}

TEST_CASE("no more slabs than cores: each slab has a core to itself") {
  std::vector<Candidate> all;
  add_workers(all, 0, 0, 4);
  add_workers(all, 1, 2, 4);
  add_workers(all, 2, 0, 2);
  const auto workers_of = [&](Index planes, Index slab_planes, Index batch) {
    const std::vector<Candidate> lanes = poisson::lanes_of(poisson::slab_workers(all));
    const Layout layout = layout_of(planes, slab_planes);
    const Partition slabs = poisson::on_cores_of_their_own(
        partition_of_slabs(grid_of(planes, batch), layout, lanes, std::vector<double>(lanes.size(), 1)),
        layout.slabs, all);
    std::vector<int> workers;
    for (const Part& slab : slabs.parts()) workers.push_back(slab.worker);
    return workers;
  };
  // 12 slabs: 3 of rank 0, 6 of the GPUs of rank 1, 3 of rank 2, which has two cores
  CHECK(workers_of(12, 1, 1) == std::vector<int>{0, 1, 2, 0, 0, 0, 1, 1, 1, -1, -1, -1});
  // 8 slabs: 2, 4 and 2
  CHECK(workers_of(8, 1, 1) == std::vector<int>{0, 1, 0, 0, 1, 1, 0, 1});
  // two problems: rank 0 has half of the first, the GPUs of rank 1 the other half of it and half of the second
  CHECK(workers_of(8, 1, 2) == std::vector<int>{0, 1, 2, 3, 0, 0, 0, 0, 1, 1, 1, 1, -1, -1, -1, -1});
  // one each, which any core may take
  CHECK(workers_of(4, 1, 1) == std::vector<int>{-1, 0, 1, -1});
}

TEST_CASE("weights of ranks, shared by their lanes") {
  std::vector<Candidate> all;
  add_workers(all, 0, 2, 0);
  add_workers(all, 1, 0, 3);
  const std::vector<Candidate> lanes = poisson::lanes_of(poisson::slab_workers(all));
  CHECK(poisson::weights_of_lanes(lanes, {1, 2}, 2) == std::vector<double>{0.5, 0.5, 2});
  CHECK_THROWS_WITH_AS(poisson::weights_of_lanes(lanes, {1, 2, 3}, 2),
                       "3 weights for 2 ranks: give each rank one, or none at all", Error);
  Runtime runtime;
  const std::vector<double> too_many(static_cast<std::size_t>(runtime.ranks()) + 1, 1);
  CHECK_THROWS_WITH_AS(poisson::Solver<double>(runtime, {.shape = {9, 9}}, {.weights = too_many}),
                       doctest::Contains("give each rank one"), Error);
  std::vector<double> negative(static_cast<std::size_t>(runtime.ranks()), 1);
  negative.back() = -1;
  CHECK_THROWS_WITH_AS(poisson::Solver<double>(runtime, {.shape = {9, 9}}, {.weights = negative}),
                       doctest::Contains("not negative"), Error);
}

TEST_CASE_TEMPLATE("whatever the weights of ranks, u is the same to the last bit", T, float, double) {
  Runtime runtime;
  const Index ranks = runtime.ranks(), planes = 8 * ranks * (ranks + 1);
  const auto solve = [&](const poisson::Problem& problem, poisson::Mode mode,
                         const std::vector<double>& weights) {
    const auto solved = solve_model<T>(runtime, problem, grid::Model::random,
                                       {.mode = mode, .slab_planes = 4, .weights = weights});
    CHECK(solved.check.scaled_residual < 4 * eps<T>);
    return gather_lists(runtime, solved.u);
  };
  std::vector<double> rising(static_cast<std::size_t>(ranks)), alone(static_cast<std::size_t>(ranks));
  std::iota(rising.begin(), rising.end(), 1.0);
  alone.back() = 1;
  for (const auto& [ends, mode, batch] : {std::tuple{all_ends[0], poisson::Mode::incore, Index{1}},
                                          {all_ends[3], poisson::Mode::streaming, Index{2}},
                                          {all_ends[4], poisson::Mode::incore, Index{2}},
                                          {all_ends[4], poisson::Mode::streaming, Index{1}}}) {
    const poisson::Problem problem{.shape = {planes, 30}, .ends = {ends, all_ends[1]}, .batch = batch};
    const std::vector<T> equal = solve(problem, mode, {});
    REQUIRE(static_cast<Index>(equal.size()) == batch * planes * 30);
    CHECK(solve(problem, mode, rising) == equal);
    CHECK(solve(problem, mode, alone) == equal);  // the others have nothing
    const std::vector<Index> dealt = planes_dealt(runtime, problem, {.slab_planes = 4, .weights = rising});
    for (Index rank = 0; rank < ranks; ++rank)  // rank + 1 of 1 + 2 + ... + ranks
      CHECK(dealt[static_cast<std::size_t>(rank)] == batch * planes * 2 * (rank + 1) / (ranks * (ranks + 1)));
  }
}

TEST_CASE("ranks with unlike cores have unlike numbers of slabs" * doctest::skip(!shape_is("mpi"))) {
  const bool last = launched_rank() == launched_ranks() - 1;
  Runtime runtime({.cpus = last ? 2 : 1});
  const Index ranks = runtime.ranks(), planes = 40 * (ranks + 1);
  const poisson::Problem problem{.shape = {planes, 50}};  // too small to be measured
  for (const Balance balance : {Balance::measured, Balance::equal}) {
    const std::vector<Index> dealt = planes_dealt(runtime, problem, {.slab_planes = 4, .balance = balance});
    CHECK(dealt.front() == 40);
    CHECK(dealt.back() == 80);
  }
  CHECK(solve_model<double>(runtime, problem, grid::Model::random).check.scaled_residual < 4 * eps<double>);
}

TEST_CASE("where a rank could not hold what its workers are worth, all have as much" *
          doctest::skip(!shape_is("mpi"))) {
  const bool last = launched_rank() == launched_ranks() - 1;
  const Index ranks = launched_ranks(), planes = 100 * ranks * (ranks + 1), columns = 2000;
  const auto bytes = [&](Index count) { return static_cast<std::size_t>(count * columns) * sizeof(double); };
  Options options{.cpus = last ? 2 : 1};
  const Index equal = planes / ranks, by_number = 2 * planes / (ranks + 1);
  if (last) options.cpu_memory = bytes((equal + by_number) / 2);  // enough for the one, not for the other
  Runtime runtime(options);
  const std::vector<Index> dealt =
      planes_dealt(runtime, {.shape = {planes, columns}}, {.slab_planes = 20, .balance = Balance::equal});
  for (const Index its : dealt) CHECK(its == equal);
}

TEST_CASE("workers are measured with slabs, and all ranks know the same speeds") {
  Runtime runtime;
  const poisson::Problem problem{.shape = {600, 400}};
  const poisson::Grid grid = poisson::discretise(problem);
  for (const poisson::Mode mode : {poisson::Mode::incore, poisson::Mode::streaming}) {
    poisson::SlabArgs args{grid.a.y, grid.a.x, 1, 1, grid.interface()};
    args.scale = 1 / round_trip(args);
    Layout layout = poisson::choose_layout<double>(
        runtime.machine(), {.cores = runtime.machine().count(WorkerKind::cpu)}, grid, {.mode = mode}, args);
    args.planes_at_once = layout.planes_at_once;
    std::vector<Candidate> workers = poisson::slab_workers(all_workers(runtime));
    poisson::measure_slabs<double>(runtime, grid, layout, args, workers);
    std::vector<double> speeds = speeds_of(workers);
    for (const double speed : speeds) CHECK(speed > 1e4);
    CHECK(broadcast(runtime, speeds.back()) == speeds.back());
  }
}

TEST_CASE("GPUs take part where the grid is worth it, each with as many slabs as the others") {
  Machine machine;
  machine.memories = {
      {.name = "main", .kind = MemoryKind::main, .capacity = std::size_t{100} << 30, .used = 0}};
  for (unsigned gpu = 1; gpu <= 2; ++gpu) {
    machine.memories.push_back(
        {.name = "GPU", .kind = MemoryKind::gpu, .capacity = std::size_t{70} << 30, .used = 0});
    machine.workers.push_back({.name = "CUDA", .kind = WorkerKind::cuda, .node = gpu});
  }
  poisson::RankedMachine all;
  const auto slabs = [&](std::vector<Index> shape, bool fetch_result, Index batch = 1) {
    const poisson::Grid grid = poisson::discretise({.shape = std::move(shape), .batch = batch});
    const poisson::SlabArgs args{grid.a.y, grid.a.x, 1, 1, grid.interface()};
    return poisson::choose_layout<double>(machine, all, grid, {.fetch_result = fetch_result}, args).slabs;
  };
  CHECK(slabs({63, 63}, false) == 1);
  CHECK(slabs({2047, 2047}, false) == 1);  // 32 MiB
  CHECK(slabs({2047, 2047}, true) % 2 == 0);
  CHECK(slabs({127, 127, 127}, false) == 1);
  // Measured on two H200s: what one takes .36 ms for, two would take .40 for; .48 and .39; .49 and .39; 1.01 and .71.
  CHECK(slabs({4095, 4095}, false) == 1);
  CHECK(slabs({3071, 3071}, false) == 2);
  CHECK(slabs({255, 255, 255}, false) == 2);
  CHECK(slabs({200, 200, 200}, false) ==
        2);  // three whole blocks of rows and a bit would be four slabs, .59 ms
  CHECK(slabs({5000, 5000}, false) == 2);
  CHECK(slabs({8191, 8191}, false) == 2);
  CHECK(slabs({1023, 1023}, false, 20) == 1);  // ten problems each
  CHECK(slabs({1023, 1023}, false, 21) == 2);
  machine.ranks = 2;
  CHECK(slabs({8191, 8191}, false) == 4);
  all.equal = false;  // they may have slabs by their speeds
  CHECK(slabs({8191, 8191}, false) == 16);
  machine.ranks = 1, all.equal = true;
  for (Memory& memory : machine.memories)
    if (memory.kind == MemoryKind::gpu) memory.capacity = std::size_t{34} << 20;
  CHECK(slabs({2047, 2047}, false) % 2 == 0);  // one of them alone has no room for it
}

TEST_CASE("slabs that pass through a small GPU leave room for interface tiles that do so, too") {
  Machine machine;
  machine.memories = {
      {.name = "main", .kind = MemoryKind::main, .capacity = std::size_t{100} << 30, .used = 0},
      {.name = "GPU", .kind = MemoryKind::gpu, .capacity = 0, .used = 0}};
  machine.workers = {{.name = "CPU", .kind = WorkerKind::cpu, .node = 0},
                     {.name = "CUDA", .kind = WorkerKind::cuda, .node = 1}};
  const poisson::Grid grid = poisson::discretise({.shape = {2047, 1023, 1023}});
  const poisson::SlabArgs args{grid.a.y, grid.a.x, 1, 1, grid.interface()};
  const auto layout = [&](Index mebibytes, Index slab_planes = 0) {
    machine.memories.back().capacity = static_cast<std::size_t>(mebibytes) << 20;
    return poisson::choose_layout<float>(machine, {.cores = 1}, grid, {.slab_planes = slab_planes}, args);
  };
  Index before = 0;
  for (const Index mebibytes : {384, 512, 1024, 2048}) {
    CAPTURE(mebibytes);
    const Layout small = layout(mebibytes);
    CHECK(small.interface_passes());
    const Index slab = small.slab_planes * 1023 * 1023 * 4;
    CHECK(2 * slab + 8 * small.scratch < mebibytes << 20);
    CHECK(small.slab_planes >= before);
    before = small.slab_planes;
  }
  CHECK_FALSE(layout(4096).interface_passes());
  CHECK(layout(1024, 24).slab_planes == 24);
}

TEST_CASE("a large grid is divided by measured speed, and solved") {
  Runtime runtime;
  const poisson::Problem problem{.shape = {2100, 2000}};
  const auto solved =
      solve_model<double>(runtime, problem, grid::Model::random, {.balance = Balance::measured});
  CHECK(solved.check.scaled_residual < 4 * eps<double>);
  const auto planes = static_cast<double>(solved.u.size()) / 2000;
  const std::vector<double> all = gather(runtime, planes);
  CHECK(std::accumulate(all.begin(), all.end(), 0.0) == 2100);
}
