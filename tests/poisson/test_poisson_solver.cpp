// What the solver makes of ranks, memories and tiles, and what it refuses.

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "poisson_solves.hpp"
#include "runtime/collectives.hpp"
#include "runtime/contents.hpp"

using namespace asterism;
using namespace asterism::test;
using grid::Model;
using poisson::Condition;
using poisson::Ends;
using poisson::Problem;
using std::numbers::pi;

TEST_CASE("leading extents of 1 go behind the first axis that is longer, with all that belongs to the axes") {
  const Problem thin{.shape = {1, 1, 9}, .lengths = {2, 3, 5}, .ends = {all_ends[0], all_ends[1], all_ends[3]}};
  const Problem turned = poisson::with_planes_to_cut(thin);
  CHECK(turned.shape == std::vector<Index>{9, 1, 1});
  CHECK(turned.lengths == std::vector<double>{5, 2, 3});
  CHECK(letters(turned.ends) == letters({all_ends[3], all_ends[0], all_ends[1]}));
  CHECK(poisson::with_planes_to_cut({.shape = {1, 7, 9}}).shape == std::vector<Index>{7, 1, 9});
  CHECK(poisson::with_planes_to_cut({.shape = {7, 1, 9}}).shape == std::vector<Index>{7, 1, 9});
  CHECK(poisson::with_planes_to_cut({.shape = {1, 1}}).shape == std::vector<Index>{1, 1});
  CHECK(poisson::with_planes_to_cut({.shape = {1, 9}, .coordinates = {0, 1, 3}}).shape == std::vector<Index>{1, 9});
  const Problem unsound{.shape = {1, 9}, .ends = {{}, {{Condition::periodic}, {Condition::neumann}}}};
  CHECK_THROWS_WITH_AS(poisson::discretise(unsound), doctest::Contains("x axis"), Error);
}

TEST_CASE("ranks share the planes, and every plane once") {
  Runtime runtime;
  for (const Index planes : {2, 3, 4, 5, 17, 64})
    for (const Index batch : {1, 3}) {
      poisson::Solver<double> solver(runtime, {.shape = {planes, 8}, .batch = batch});
      double mine[] = {static_cast<double>(solver.plane_count())};
      sum_over_ranks(runtime, mine, 1);
      CHECK(mine[0] == static_cast<double>(batch * planes));
      CHECK(solver.first_plane() + solver.plane_count() <= batch * planes);
    }
}

TEST_CASE("one rank has all slabs, and the others, on GPUs or not, know what they tell each other" *
          doctest::skip(!shape_is("mpi"))) {
  Runtime runtime;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(runtime.ranks()); ++rank)
    for (const Ends& ends : {all_ends[0], all_ends[4]})
      for (const poisson::Mode mode : {poisson::Mode::incore, poisson::Mode::streaming}) {
        std::vector<double> weights(static_cast<std::size_t>(runtime.ranks()), 0);
        weights[rank] = 1;
        CAPTURE(rank);
        CHECK(solve_model<double>(runtime, {.shape = {32, 30}, .ends = {ends, all_ends[1]}}, Model::random,
                                  {.mode = mode, .slab_planes = 4, .weights = weights})
                  .check.scaled_residual < 4 * eps<double>);
      }
}

namespace {

/// Main memory of this process that is in use, in bytes.
std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  file >> all >> resident;
  REQUIRE(resident > 0);
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

TEST_CASE("a solver that is used again and again takes no more memory" *
          doctest::skip(shape_is("mpi") || shape_is("disk")) * quick_enough()) {  // sanitizers keep what is given back
  Runtime runtime;
  const auto grows = [&](const poisson::Settings& settings, int solves) {
    poisson::Solver<double> solver(runtime, {.shape = {15, 15}}, settings);
    std::vector<double> f(15 * 15, 1);
    Tiles<double> tiles = solver.borrow(f.data());
    for (int i = 0; i < solves / 10; ++i) solver.solve(tiles);
    const std::size_t before = resident_bytes();
    for (int i = solves / 10; i < solves; ++i) solver.solve(tiles);
    const std::size_t after = resident_bytes();
    return after > before ? after - before : 0;
  };
  CHECK(grows({}, 10000) < std::size_t{1} << 20);  // less than 120 bytes for each solve
  CHECK(grows({.slab_planes = 5}, 3000) < std::size_t{1} << 19);
}

// On a GPU what was launched twice comes back as a graph.
TEST_CASE_TEMPLATE("solved again, the same tiles get the same bits, and others theirs", T, float, double) {
  Runtime runtime;
  const std::vector<poisson::Ends> dirichlet(3, all_ends[0]);
  std::vector<poisson::Ends> ring = dirichlet;
  ring.front() = {{Condition::periodic}, {Condition::periodic}};
  for (const auto& ends : {dirichlet, ring})
    for (const Index planes : {0, 7}) {
      poisson::Solver<T> solver(runtime, {.shape = {20, 30, 43}, .ends = ends}, {.slab_planes = planes});
      Tiles<T> tiles = solver.own(), others = solver.own();
      const auto solve = [&](Tiles<T>& f, Index of) {
        for (Index c = 0; c < f.count(); ++c)
          generate(f[c], [of](Index i, Index j) { return static_cast<T>((i * 37 + j * j * 11 + of) % 101 - 50); });
        solver.solve(f);
        return gather(f);
      };
      const std::vector<T> first = solve(tiles, 0), second = solve(tiles, 5);
      CHECK(first != second);
      for (int again = 0; again < 3; ++again) {
        CHECK(solve(tiles, 0) == first);
        CHECK(solve(others, 5) == second);
        CHECK(solve(tiles, 5) == second);
      }
    }
}

// Slabs for GPUs need more room to work in than the last rank has here.
TEST_CASE("ranks with unlike cores and memories agree on the slabs" *
          doctest::skip(!shape_is("mpi") || ranks_have_gpus())) {
  const char* const size = std::getenv("OMPI_COMM_WORLD_SIZE");
  const int launched = size != nullptr ? std::atoi(size) : 1;
  REQUIRE(launched > 1);
  const bool last = launched_rank() == launched - 1;
  Options options;
  options.cpus = last ? 2 : 1;
  if (last) {
    options.cpu_memory = std::size_t{20} << 20;
    options.spill = "unlike-spill";
    std::filesystem::create_directory(options.spill);
  }
  Runtime runtime(options);
  const poisson::Problem problem{.shape = {Index{1100} * runtime.ranks(), 2000}};
  const auto solved = solve_model<double>(runtime, problem, grid::Model::random);
  CHECK(solved.layout.mode == poisson::Mode::streaming);  // the last rank has to, so all do
  CHECK(solved.check.scaled_residual < 4 * eps<double>);
  double scratch = static_cast<double>(solved.layout.scratch), sum = scratch;
  sum_over_ranks(runtime, &sum, 1);
  CHECK(sum == runtime.ranks() * scratch);

  const poisson::Problem other{.shape = {40, last ? 31 : 30}};
  const std::string rank = std::to_string(launched - 1);
  CHECK_THROWS_WITH_AS(poisson::Solver<double>(runtime, other),
                       ("rank " + rank + " was given other things than rank 0: \"grid: 40 x 31\" for " +
                        "\"grid: 40 x 30\"; start all ranks alike")
                           .c_str(),
                       Error);
}

TEST_CASE("tiles of another cut are refused") { check_tiles_of_another_cut<poisson::Solver>(); }

TEST_CASE("solve in the caller's own memory") {
  Runtime runtime;
  std::vector<double> u(33 * 65);
  const Problem problem{.shape = {33, 65}};
  if (runtime.ranks() > 1) {
    CHECK_THROWS_AS(poisson::solve(runtime, problem, u.data()), Error);
    return;
  }
  const poisson::Grid grid = poisson::discretise(problem);
  const auto exact = [&](Index i, Index j) {
    return grid.slow.fraction(i) * (1 - grid.slow.fraction(i)) * std::sin(pi * grid.a.x.fraction(j));
  };
  const double x_part = grid::eigenvalue(grid.a.x, 0);
  for (Index i = 0; i < 33; ++i)  // second differences of a parabola are exact
    for (Index j = 0; j < 65; ++j)
      u[static_cast<std::size_t>(i * 65 + j)] = -2 * std::sin(pi * grid.a.x.fraction(j)) - x_part * exact(i, j);
  poisson::solve(runtime, problem, u.data());
  for (Index i = 0; i < 33; ++i)
    for (Index j = 0; j < 65; ++j)
      CHECK(u[static_cast<std::size_t>(i * 65 + j)] == doctest::Approx(exact(i, j)).epsilon(1e-10));
}

TEST_CASE("not a number in f is a result, not a crash") {
  Runtime runtime;
  for (const Ends& ends : {all_ends[0], all_ends[3]}) {
    const Problem problem{.shape = {20, 20}, .ends = {ends, ends}};
    const Solved<double> solved =
        solve_from<double>(runtime, problem, {.slab_planes = 4},
                           from_values<double>([](Index, Index) { return std::numeric_limits<double>::quiet_NaN(); }));
    CHECK(std::isnan(solved.check.scaled_residual));
  }
}

TEST_CASE("the scale of f is of no account") {
  check_scaling<double, poisson::Solver>({-900, -600, 600, 900});
  check_scaling<float, poisson::Solver>({-80, 80});
}

TEST_CASE_TEMPLATE("a solve is judged by its residual", T, float, double) { check_judgement<T, poisson::Solver>(); }

TEST_CASE("what crosses between ranks is what the slabs show" * doctest::skip(!shape_is("mpi"))) {
  Runtime runtime;
  poisson::Solver<double> solver(runtime, {.shape = {256, 16, 16}}, {.slab_planes = 16});
  Tiles<double> f = solver.own();
  const auto bytes_of_a_solve = [&] {
    bool has_slabs = false;
    for (Index number = 0; number < solver.slab_count(); ++number) {
      solver.fill(number, f[number], {Model::random, 1});
      has_slabs = has_slabs || f[number].owner() == runtime.rank();
    }
    double sums[] = {0, has_slabs ? 1.0 : 0.0};
    sums[0] = static_cast<double>(solver.solve(f).traffic.between_ranks);
    sum_over_ranks(runtime, sums, 2);
    if (!shape_is("mpi_unlike3_gpu")) CHECK(sums[1] == runtime.ranks());  // there the GPU's may get all
    return std::pair(sums[0], sums[1] - 1);
  };
  // Between two ranks: a plane to the middle and one back, or where that is, one each way; and in the first solve, where
  // the middle is, how the prefixes respond (a plane each way).
  constexpr double plane = 256 * 8;
  const Index middle = (solver.slab_count() + 1) / 2;
  const bool met = f[middle - 1].owner() != f[middle].owner();
  const auto [first, boundaries] = bytes_of_a_solve();
  CHECK(first == (boundaries * 2 + (met ? 2 : 0)) * plane);
  for (int again = 0; again < 2; ++again) CHECK(bytes_of_a_solve().first == boundaries * 2 * plane);
}

/// Cut as each rank wants it, as far as the others let it.
struct CutProblem : poisson::SlabbedProblem<double> {
  CutProblem(Runtime& runtime, const Problem& problem, const poisson::Layout& wanted)
      : SlabbedProblem(runtime, problem, {},
                       [&](const Machine&, const poisson::RankedMachine&, const poisson::Grid& grid,
                           const poisson::Settings& agreed) {
                         poisson::Layout layout = wanted;
                         if (agreed.mode != poisson::Mode::automatic) layout.mode = agreed.mode;
                         if (agreed.slab_planes > 0) layout.slab_planes = agreed.slab_planes;
                         layout.slabs = (grid.planes + layout.slab_planes - 1) / layout.slab_planes;
                         return layout;
                       }) {}
};

TEST_CASE("ranks that would cut a grid differently agree on all that their tasks depend on" *
          doctest::skip(!shape_is("mpi"))) {
  Runtime runtime;
  const bool is_last = runtime.rank() + 1 == runtime.ranks();
  const CutProblem cut(runtime, {.shape = {100, 8}},
                       {.mode = is_last ? poisson::Mode::streaming : poisson::Mode::incore,
                        .slab_planes = 10 + runtime.rank(),
                        .scratch = 5 - runtime.rank(),
                        .repeats_responses = is_last});
  const poisson::Layout& agreed = cut.layout();
  CHECK(agreed.mode == poisson::Mode::streaming);
  CHECK(agreed.slab_planes == 10);
  CHECK(agreed.slabs == 10);
  CHECK(agreed.scratch == 5);
  CHECK(agreed.repeats_responses);
}

TEST_CASE("what cannot be is said before anything runs") {
  Runtime runtime;
  const auto message = [&](const Problem& problem, const poisson::Settings& settings = {}) -> std::string {
    try {
      const poisson::Solver<double> solver(runtime, problem, settings);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const Ends neumann = all_ends[3];
  CHECK(message({.shape = {0, 5}}) == "grid is 0 x 5: every extent must be at least 1");
  CHECK(message({.shape = {5, -1, 2}}) == "grid is 5 x -1 x 2: every extent must be at least 1");
  CHECK(message({.shape = {5}}) == "the grid has 1 axes: problems in 2 and 3 dimensions are solved");
  CHECK(message({.shape = {5, 5}, .lengths = {0, 1}}) == "lengths are 0 x 1: all must be positive and finite");
  CHECK(message({.shape = {5, 5}, .lengths = {1}}) == "1 lengths for 2 axes: give one for each");
  CHECK(message({.shape = {5, 5}, .lengths = {1, std::numeric_limits<double>::infinity()}}) ==
        "lengths are 1 x inf: all must be positive and finite");
  CHECK(message({.shape = {5, 5}}, {.slab_planes = -3}) == "slabs of -3 planes: a slab needs at least 1");
  CHECK(message({.shape = {5, 5}, .batch = 0}) == "a batch of 0 problems: it must have at least 1");
  CHECK(message({.shape = {5, 5}, .ends = {neumann}}) == "conditions for 1 of 2 axes: give them for each");
  CHECK(message({.shape = {5, 5}, .ends = {neumann, {{Condition::periodic}, {Condition::neumann}}}}) ==
        "x axis: periodic at one end, Neumann at the other; periodic is for both ends or none");
  CHECK(message({.shape = {5, 1}, .ends = {neumann, neumann}}).starts_with("x axis: one node, Neumann at both ends"));
  CHECK(message({.shape = {5, 5}, .ends = {{{Condition::dirichlet, 0, {1, 2, 3}}, {}}, neumann}}) ==
        "y axis, lower end: 3 values are given, the side has 5 nodes");
  CHECK(message({.shape = {2, 5, 3}, .ends = {neumann, {{}, {Condition::dirichlet, 0, {1, 2, 3}}}, neumann}}) ==
        "y axis, upper end: 3 values are given, the side has 6 nodes");
  CHECK(message({.shape = {5, 5}, .ends = {{{Condition::periodic, 2}, {Condition::periodic}}, neumann}}) ==
        "y axis, lower end: a value is given, but the axis is periodic");
  CHECK(message({.shape = {5, 5}, .lambda = std::nan("")}) == "lambda is nan: it must be finite");
  CHECK(message({.shape = {3, 5}, .coordinates = {0, 1, 2}}).find("coordinates") != std::string::npos);
  CHECK(message({.shape = {3, 5}, .coordinates = {0, 1, 3, 2, 4}}).find("increase") != std::string::npos);
}

TEST_CASE("a slab that cannot fit in the limited memory is refused" * doctest::skip(!shape_is("disk"))) {
  Runtime runtime;
  CHECK_THROWS_WITH_AS(poisson::Solver<double>(runtime, {.shape = {4000, 4000}}, {.slab_planes = 2000}),
                       doctest::Contains("do not fit in"), Error);
}

TEST_CASE("a grid four times as large as main memory streams through it to the disk" *
          doctest::skip(!shape_is("disk"))) {
  Runtime runtime;  // 48 MiB of main memory; the grids have 200 MiB
  for (const std::vector<Index>& shape : {std::vector<Index>{5119, 5119}, {1023, 160, 160}}) {
    const Solved<double> solved = solve_model<double>(runtime, {.shape = shape}, Model::random);
    CHECK(solved.layout.mode == poisson::Mode::streaming);
    CHECK(solved.report.traffic.to_disk > 0);
    CHECK(solved.check.scaled_residual <= 2 * eps<double>);
  }
}

TEST_CASE_TEMPLATE("gpu: streaming through a small device memory equals in core", T, float, double) {
  for (const std::vector<Index>& shape : {std::vector<Index>{16000, 4095}, {1000, 255, 256}}) {
    const Problem problem{.shape = shape};
    std::vector<T> in_core, streamed;
    {
      Runtime runtime({.gpus = 1});
      in_core = solve_model<T>(runtime, problem, Model::random).u;
    }
    {
      Runtime runtime({.gpus = 1, .gpu_memory = sizeof(T) * (std::size_t{32} << 20)});
      const Solved<T> solved =
          solve_model<T>(runtime, problem, Model::random, {.slab_planes = shape.size() == 2 ? 512 : 32});
      CHECK(solved.layout.mode == poisson::Mode::streaming);
      CHECK(solved.check.scaled_residual <= 2 * eps<T>);
      streamed = solved.u;
    }
    CHECK(distance(streamed, in_core) < 1e3 * eps<T>);
  }
}

TEST_CASE_TEMPLATE("gpu: of many columns what slabs tell each other streams as they do, in each solve anew",
                   T, float, double) {
  Problem problem{.shape = {300, 520, 520}};
  for (const bool is_stretched : {false, true}) {
    CAPTURE(is_stretched);
    if (is_stretched) problem.coordinates = stretched(problem, 1);
    Runtime runtime({.gpus = 1, .gpu_memory = sizeof(T) * (std::size_t{32} << 20)});
    poisson::Solver<T> solver(runtime, problem);
    CHECK(solver.layout().interface_passes());
    CHECK(solver.slab_count() > 8);
    std::vector<T> u(static_cast<std::size_t>(solver.plane_count() * solver.grid().columns()));
    Tiles<T> slabs = solver.borrow(u.data());
    const Known<T> known{Model::random, 7};
    const auto fill = [&](Index c, Tile<T>& f) { solver.fill(c, f, known); };
    for (int turn = 0; turn < 2; ++turn) {
      CAPTURE(turn);
      for (Index c = 0; c < slabs.count(); ++c) fill(c, slabs[c]);
      solver.solve(slabs);
      CHECK(solver.check(slabs, fill, known).scaled_residual <= 2 * eps<T>);
    }
  }
}
