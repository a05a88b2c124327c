// Conjugate gradients. Solutions, iterations, and the same bits however the rows are divided.
#include <doctest/doctest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "../conjugate_gradients.hpp"
#include "cases.hpp"

namespace asterism::test {

TEST_CASE("b = A times ones: x is ones, with every preconditioner") {
  Runtime runtime;
  for (const char* name : models({"poisson2d:31x17", "poisson3d:9x8x7", "triangulation-like:20x13"})) {
    const Csr<double> a = model(name);
    for (const char* preconditioner : preconditioners()) {
      CAPTURE(name);
      CAPTURE(preconditioner);
      LinearSettings settings = with(preconditioner);
      settings.tolerance = 1e-9;
      const LinearSolution<double> solution = solve<double>(runtime, a, row_sums(a), settings);
      CHECK(solution.report.reason == Reason::solved);
      CHECK(solution.report.true_residual <= 1.1e-9);
      CHECK(distance_from_ones(solution.x) < 1e-4);
    }
  }
}

TEST_CASE("the same bits in every division into blocks, and on every number of ranks") {
  Runtime runtime;
  for (const char* name : models({"circuit-like:200", "poisson2d:23x17"})) {
    const Csr<double> a = model(name);
    for (const char* preconditioner : preconditioners()) {
      CAPTURE(name);
      CAPTURE(preconditioner);
      const std::vector<double> ones(static_cast<std::size_t>(a.total_rows), 1);
      const auto first_steps = [&](Index blocks, Rows rows) {
        LinearSettings settings = with(preconditioner, blocks);
        settings.max_iterations = 12;
        return solve<double>(runtime, a, ones, settings, rows).x;
      };
      const std::vector<double> one = first_steps(1, Rows::on_rank_0);
      const std::vector<double> two = first_steps(2, Rows::on_rank_0);
      const auto agrees = [&](const std::vector<double>& x) {
        return largest_difference(x, two) < 1e-9 * largest_difference(two, std::vector<double>(two.size()));
      };
      // On a GPU a small matrix that is one block gets a kernel of its own, which has its own order of addition, and
      // ranks with and without a GPU add in two ways.
      const bool unlike = shape_is("mpi_unlike3_gpu");
      CHECK((unlike || shape_is("gpu") ? agrees(one) : one == two));
      const auto is_same = [&](const std::vector<double>& x) { return unlike ? agrees(x) : x == two; };
      for (const Index blocks : {1, 3})
        if (blocks > 1 || runtime.ranks() > 1) CHECK(is_same(first_steps(blocks, Rows::shared)));
      if (runtime.ranks() > 1) CHECK(is_same(first_steps(1, Rows::unequal)));
    }
  }
}

TEST_CASE(
    "IC(0) and ILU(0) on cores, grains at the same time: the same bits in every division, few more iterations") {
  Runtime runtime;
  const Csr<double> a = model("poisson2d:10x300");  // more levels than grains, of which most rows are inside
  const std::vector<double> b = row_sums(a);
  const auto iterations = [&](const char* preconditioner) {
    return static_cast<double>(solve<double>(runtime, a, b, with(preconditioner)).report.iterations);
  };
  for (const char* preconditioner : {"ic0", "ilu0"}) {
    CAPTURE(preconditioner);
    CHECK(iterations(preconditioner) < 0.85 * iterations("mc-ilu0"));
    if (shape_is("gpu") || shape_is("mpi_unlike3_gpu")) continue;
    const auto first_steps = [&](Index blocks, Rows rows) {
      LinearSettings settings = with(preconditioner, blocks);
      settings.max_iterations = 12;
      return solve<double>(runtime, a, b, settings, rows).x;
    };
    const std::vector<double> one = first_steps(1, Rows::on_rank_0);
    for (const Index blocks : {2, 5}) CHECK(first_steps(blocks, Rows::shared) == one);
  }
}

TEST_CASE(
    "gpu: many iterations of several blocks in one task: the same bits with every number of blocks and every look") {
  Runtime runtime;
  for (const char* name :
       {"poisson2d:200x150", "poisson3d:31x30x29", "ecology-like:150x140", "circuit-like:400"}) {
    const Csr<double> a = model(name);
    const std::vector<double> b = row_sums(a);
    for (const char* preconditioner : {"none", "diagonal"}) {
      CAPTURE(name);
      CAPTURE(preconditioner);
      const auto solved = [&](Index blocks, Index check_every) {
        LinearSettings settings = with(preconditioner, blocks);
        settings.check_every = check_every;
        settings.tolerance = 1e-9;
        return solve<double>(runtime, a, b, settings);
      };
      const LinearSolution<double> two = solved(2, 10);
      CHECK(two.report.reason == Reason::solved);
      CHECK(two.report.true_residual <= 1.1e-9);
      for (const auto& [blocks, check_every] :
           {std::pair<Index, Index>{2, 7}, {3, 10}, {5, 100}, {16, 33}, {17, 10}}) {
        CAPTURE(blocks);
        const LinearSolution<double> other = solved(blocks, check_every);
        CHECK(other.report.reason == Reason::solved);
        CHECK(other.report.iterations == two.report.iterations);
        CHECK(other.x == two.x);  // 17 blocks: the steps are tasks
      }
    }
  }
}

TEST_CASE("ranks have rows by shares, and shares by what they can do") {
  constexpr Index n = 64 * 1024;
  const auto counts = [&](const std::vector<double>& shares) {
    std::vector<Index> rows;
    Index next = 0;
    for (std::size_t rank = 0; rank < shares.size(); ++rank) {
      const auto [first, end] = sparse::rows_of_rank(n, static_cast<int>(rank), shares);
      CHECK(first == next);
      next = end;
      rows.push_back(end - first);
    }
    CHECK(next == n);
    return rows;
  };
  CHECK(counts({1, 1, 1, 1}) == std::vector<Index>(4, n / 4));
  CHECK(counts({0, 3e9, 0, 1e9}) == std::vector<Index>{0, n / 4 * 3, 0, n / 4});
  CHECK(counts({5}) == std::vector<Index>{n});
  for (int k = 1; k < 1000; ++k) CHECK(counts({1e9 / k, 0, 3e8 / (k + 1), 0.1 * k}).size() == 4);

  using Speeds = std::vector<sparse::RankSpeed>;
  const auto shares = [](Index rows, const Speeds& speeds) { return sparse::shares_of_ranks(rows, speeds); };
  CHECK(shares(1'000'000, Speeds(4, {.rows = 1e9})) == std::vector<double>(4, 1e9));
  CHECK(shares(10'000, Speeds(4, {.rows = 1e9})) == std::vector<double>{1e9, 0, 0, 0});
  const Speeds cores{{.rows = 2e9}, {.rows = 5e8}, {.rows = 1e9}};
  CHECK(shares(1'000, cores) == std::vector<double>{2e9, 0, 0});
  CHECK(shares(300'000, cores) == std::vector<double>{2e9, 0, 1e9});
  CHECK(shares(100'000'000, cores) == std::vector<double>{2e9, 5e8, 1e9});
  const Speeds gpu_and_cores{{5e9, -1}, {1e11, 1}};
  CHECK(shares(4'000'000, gpu_and_cores) == std::vector<double>{0, 1e11});
  CHECK(shares(1'000'000'000, gpu_and_cores) == std::vector<double>{5e9, 1e11});
  const Speeds three_share_two_gpus{{5e10, 0}, {5e10, 0}, {1e11, 2}};
  CHECK(shares(1'000'000'000, three_share_two_gpus) == std::vector<double>{1e11, 0, 1e11});
  CHECK(shares(1'000'000, three_share_two_gpus) == std::vector<double>{1e11, 0, 0});

  Runtime runtime;
  const Speeds speeds = sparse::measure_rank_speeds(runtime, sparse::Workers::fastest);
  REQUIRE(speeds.size() == static_cast<std::size_t>(runtime.ranks()));
  std::vector<double> mine;
  for (const sparse::RankSpeed& speed : speeds) mine.push_back(speed.rows);
  for (const std::vector<double>& of_rank : {gather_lists(runtime, mine)})
    for (std::size_t k = 0; k < of_rank.size(); ++k) CHECK(of_rank[k] == mine[k % mine.size()]);
  if (shape_is("mpi_unlike3_gpu")) {
    CHECK(speeds[0].gpus_of == 0);
    CHECK(speeds[1].gpus_of < 0);
    CHECK(speeds[0].rows > 10 * speeds[1].rows);
  }
}

TEST_CASE("as many iterations as the textbook's loop takes" * doctest::skip(is_brief())) {
  Runtime runtime;
  for (const char* name : {"poisson2d:40x33", "ecology-like:30x30", "circuit-like:1000"}) {
    const Csr<double> a = model(name);
    const std::vector<double> b = row_sums(a);
    CAPTURE(name);
    const Index plain = iterations(
        a, b, [](const Vector& r) { return r; }, 1e-8);
    CHECK(std::abs(solve<double>(runtime, a, b, with("none")).report.iterations - plain) <= 1 + plain / 50);
    const auto by_diagonal = [&](Vector r) {
      for (Index i = 0; i < a.rows(); ++i)
        for (Index k = a.row_begin[at(i)]; k < a.row_begin[at(i + 1)]; ++k)
          if (a.columns[at(k)] == i) r[at(i)] /= a.values[at(k)];
      return r;
    };
    const Index diagonal = iterations(a, b, by_diagonal, 1e-8);
    CHECK(std::abs(solve<double>(runtime, a, b, with("diagonal")).report.iterations - diagonal) <=
          1 + diagonal / 50);
  }
}

TEST_CASE("better preconditioners take fewer iterations" * doctest::skip(is_brief())) {
  Runtime runtime;
  const Csr<double> a = model("ecology-like:60x60");
  const std::vector<double> ones(static_cast<std::size_t>(a.total_rows), 1);
  const auto takes = [&](const char* preconditioner) {
    return solve<double>(runtime, a, ones, with(preconditioner)).report.iterations;
  };
  CHECK(takes("mc-ilu0") < takes("diagonal"));
  CHECK(takes("mc-ilu:1,2") < takes("mc-ilu0"));
  CHECK(takes("mc-ilu:2,3") < takes("mc-ilu:1,2"));
  CHECK(takes("chebyshev:4") < takes("polynomial-diagonal:4"));
  CHECK(2 * takes("ic0") < takes("diagonal"));
}

}  // namespace asterism::test
