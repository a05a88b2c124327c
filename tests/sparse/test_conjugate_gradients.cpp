// Preconditioned conjugate gradients: solutions, iterations, and the same bits however the rows are divided.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "../support/messages.hpp"
#include "../support/skip.hpp"
#include "../support/worst.hpp"
#include "algorithms/sparse/krylov/spectrum.hpp"
#include "algorithms/sparse/models/models.hpp"
#include "columns_together.hpp"
#include "conjugate_gradients.hpp"
#include "linear_solves.hpp"

namespace asterism::test {
namespace {

using sparse::CgState;
using sparse::Csr;
using sparse::LinearSettings;
using sparse::model_matrix;
using sparse::parse_matrix_model;
using sparse::parse_preconditioner;

constexpr const char* all_preconditioners[] = {"none",
                                               "diagonal",
                                               "polynomial:3",
                                               "polynomial-diagonal:2",
                                               "polynomial-diagonal:3",
                                               "chebyshev:3",
                                               "ic0",
                                               "ilu0",
                                               "mc-sgs",
                                               "mc-ssor:1.3",
                                               "mc-ilu0",
                                               "mc-ilu:1,2",
                                               "mc-ilu:2,2"};

constexpr sparse::Reductions all_forms[] = {sparse::Reductions::two, sparse::Reductions::one,
                                            sparse::Reductions::pipelined};

/// Of these, some that are met on more than two ranks.
std::vector<sparse::Reductions> forms() {
  if (more_than_two_ranks()) return {sparse::Reductions::pipelined};
  return {std::begin(all_forms), std::end(all_forms)};
}

/// Ranks that share cores take turns, message by message; one worker does what several do, and sanitizers look at code
/// that one preconditioner of each kind goes through: there these have to do.
bool is_brief() { return shape_is("mpi") || shape_is("one_worker") || sanitized; }
std::vector<const char*> preconditioners() {
  if (is_brief()) return {"diagonal", "polynomial-diagonal:2", "ic0", "mc-ilu:1,2"};
  return {std::begin(all_preconditioners), std::end(all_preconditioners)};
}
std::vector<const char*> models(std::initializer_list<const char*> names) {
  return is_brief() ? std::vector<const char*>{*names.begin()} : std::vector<const char*>(names);
}

Csr<double> model(const char* name) { return model_matrix(parse_matrix_model(name)); }

LinearSettings with(const char* preconditioner, Index blocks = 0) {
  return {.preconditioner = parse_preconditioner(preconditioner), .blocks = blocks};
}

/// The largest difference from 1.
template <class T>
double distance_from_ones(const std::vector<T>& x) {
  return largest_difference(x, std::vector<T>(x.size(), 1));
}

}  // namespace

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

TEST_CASE("one reduction an iteration: the same bits in every division, as many iterations as with two" *
          doctest::skip(shape_is("gpu"))) {  // a single block
  Runtime runtime;
  const bool unlike = shape_is("mpi_unlike3_gpu");  // a GPU adds up in another way than cores
  for (const char* name : models({"poisson2d:40x33", "ecology-like:30x30", "circuit-like:200"})) {
    const Csr<double> a = model(name);
    const std::vector<double> b = row_sums(a);
    for (const sparse::Reductions form : forms())
      for (const char* preconditioner : {"none", "diagonal", "mc-sgs"}) {
        if (form == sparse::Reductions::two) continue;
        CAPTURE(name);
        CAPTURE(static_cast<int>(form));
        CAPTURE(preconditioner);
        const auto by = [&](sparse::Reductions reductions, Index blocks, Rows rows, Index most = 0) {
          LinearSettings settings = with(preconditioner, blocks);
          settings.reductions = reductions;
          settings.max_iterations = most;
          return solve<double>(runtime, a, b, settings, rows);
        };
        if (runtime.ranks() == 1 || unlike) {  // on more the same iterates are shown below
          const LinearSolution<double> two = by(sparse::Reductions::two, 2, Rows::shared);
          const LinearSolution<double> one = by(form, 2, Rows::shared);
          CHECK(one.facts.reductions == form);
          CHECK(one.report.reason == Reason::solved);
          CHECK(one.report.restarts == 0);
          CHECK(distance_from_ones(one.x) < 1e-3);
          CHECK(std::abs(one.report.iterations - two.report.iterations) <= 1 + two.report.iterations / 50);
          CHECK(one.x != two.x);  // it was another way
        }
        for (const Index steps :
             more_than_two_ranks() ? std::vector<Index>{17} : std::vector<Index>{1, 12, 17}) {
          const std::vector<double> x = by(form, 2, Rows::on_rank_0, steps).x;
          if (!unlike) {
            CHECK(by(form, 3, Rows::on_rank_0, steps).x == x);
            CHECK(by(form, 2, Rows::shared, steps).x == x);
          }
          const std::vector<double> by_two = by(sparse::Reductions::two, 2, Rows::shared, steps).x;
          CHECK(largest_difference(x, by_two) <=
                1e-9 * largest_difference(by_two, std::vector<double>(x.size())));
        }
      }
  }
}

TEST_CASE("the fastest of the forms is one of them, chosen by all ranks alike" *
          doctest::skip(more_than_two_ranks())) {
  Runtime runtime;
  const Csr<double> a = model("ecology-like:20x21");
  LinearSettings settings = with("diagonal", 2);
  settings.reductions = sparse::Reductions::fastest;
  const auto solved = solve<double>(runtime, a, row_sums(a), settings);
  CHECK(solved.report.reason == Reason::solved);
  CHECK(distance_from_ones(solved.x) < 1e-3);
  REQUIRE(solved.facts.reductions);
  CHECK(solved.facts.reductions != sparse::Reductions::fastest);
  const auto choices = gather(runtime, *solved.facts.reductions);
  CHECK(std::ranges::all_of(choices, [&](auto choice) { return choice == choices.front(); }));
  if (!shape_is("gpu")) CHECK(solved.facts.seconds.at("try") > 0);  // one task on all GPUs has one form
  settings.reductions = *solved.facts.reductions;                   // as it would be if it had been asked for
  CHECK(solve<double>(runtime, a, row_sums(a), settings).x == solved.x);
}

TEST_CASE("right-hand sides that go along together: each as if it were alone") {
  Runtime runtime;
  const bool has_ranks = runtime.ranks() > 1;
  std::vector<const char*> all{"diagonal", "mc-ilu:1,2"};
  if (!has_ranks && !shape_is("gpu"))
    all.insert(all.end(), {"none", "polynomial-diagonal:2", "chebyshev:3", "ic0"});
  for (const char* preconditioner : all)
    for (const Index blocks : {1, 3}) {
      CAPTURE(preconditioner);
      CAPTURE(blocks);
      for (const sparse::Reductions reductions : all_forms) {
        if (reductions != sparse::Reductions::two && blocks * runtime.ranks() == 1)
          continue;  // has none between blocks
        LinearSettings settings = with(preconditioner, blocks);
        settings.reductions = reductions;
        settings.check_every = 5;                     // not 500, of which most would be in vain
        settings.max_iterations = has_ranks ? 4 : 0;  // every one of them waits for messages
        sparse::ConjugateGradients<double> solver(
            runtime, rows_of_this_rank(runtime, model("ecology-like:12x14")), settings);
        const std::set<Index> iterations = check_columns_together(solver);
        // All but b = 0 take about as many with the better ones, and on ranks they are stopped.
        CHECK(iterations.size() > (has_ranks || preconditioner != all.front() ? 1 : 2));
      }
    }
}

/// Of one column of several.
std::vector<double> column_of(const std::vector<double>& all, Index columns, Index c) {
  std::vector<double> its;
  for (std::size_t i = static_cast<std::size_t>(c); i < all.size(); i += static_cast<std::size_t>(columns))
    its.push_back(all[i]);
  return its;
}

TEST_CASE(
    "a matrix that a GPU's cache cannot hold is read once for a few right-hand sides: the bits of each alone" *
    doctest::skip(!shape_is("gpu"))) {  // cores: above
  Runtime runtime;
  constexpr Index columns = 6, iterations = 7;  // not whole groups of those that a kernel multiplies
  for (const sparse::Format format :
       {sparse::Format::diagonals, sparse::Format::sliced_ell, sparse::Format::csr})
    for (const char* preconditioner : {"none", "diagonal"}) {
      CAPTURE(preconditioner);
      CAPTURE(static_cast<int>(format));
      LinearSettings settings = with(preconditioner, 1);
      settings.format = format;
      settings.max_iterations = iterations;
      settings.tolerance = 1e-12;
      settings.check_every = 3;
      const Csr<double> a = model("ecology-like:1300x1200");
      sparse::ConjugateGradients<double> solver(runtime, a, settings);
      REQUIRE(solver.facts().bytes_per_row * static_cast<double>(a.rows()) > 5e7);
      std::vector<double> b = scattered(a.rows() * columns), x(b.size());
      for (std::size_t i = 0; i < b.size(); i += columns) b[i + 2] = 0;  // one that is over at once
      const std::vector<sparse::LinearReport> together = solver.solve(b.data(), x.data(), columns);
      for (Index c = 0; c < columns; ++c) {
        CAPTURE(c);
        const std::vector<double> its_b = column_of(b, columns, c);
        std::vector<double> its_x(its_b.size());
        const sparse::LinearReport alone = solver.solve(its_b.data(), its_x.data());
        CHECK(together[static_cast<std::size_t>(c)].residual_history == alone.residual_history);
        CHECK(together[static_cast<std::size_t>(c)].iterations == alone.iterations);
        CHECK(column_of(x, columns, c) == its_x);
      }
    }
}

TEST_CASE("of two colours half of the rows are iterated on, in every division with the same bits") {
  Runtime runtime;
  const Csr<double> a = model("ecology-like:31x27");
  const std::vector<double> b = scattered(a.total_rows);
  LinearSettings refreshed = with("mc-ilu0", 2);
  refreshed.values = sparse::Values::refreshed;
  const auto whole = solve<double>(runtime, a, b, refreshed);
  CHECK(whole.facts.preconditioner.reduced_rows == 0);
  const bool has_gpu = shape_is("gpu") || shape_is("mpi_unlike3_gpu");
  std::optional<LinearSolution<double>> first;
  struct Division {
    Rows rows;
    Index blocks;
    const char* preconditioner = "mc-ilu0";
  };
  std::vector<Division> divisions{{Rows::shared, 2}, {Rows::unequal, 3}};
  if (!left_out_when_sanitized(runtime.ranks() > 1))
    divisions.insert(divisions.end(), {{Rows::shared, 1}, {Rows::unequal, 1}, {Rows::on_rank_0, 2}});
  if (!has_gpu) divisions.push_back({Rows::shared, 2, "auto"});  // of so few rows it is the diagonal there
  for (const auto& [rows, blocks, preconditioner] : divisions) {
    CAPTURE(preconditioner);
    CAPTURE(blocks);
    const auto solved = solve<double>(runtime, a, b, with(preconditioner, blocks), rows);
    CHECK(solved.report.reason == Reason::solved);
    CHECK(solved.report.true_residual <= 1.1e-8);
    CHECK(solved.facts.preconditioner.reduced_rows == a.total_rows / 2);
    CHECK(to_string(solved.facts.preconditioner.choice) == "mc-ilu0");
    if (!first) first = solved;
    // As above: one block on a GPU, and ranks with and without one, add up in other ways.
    const bool alike = !shape_is("mpi_unlike3_gpu") && (blocks > 1 || !has_gpu);
    const Index iterations = first->report.iterations;
    CHECK(std::abs(solved.report.iterations - iterations) <= (alike ? 0 : iterations / 20));
    CHECK((alike ? solved.x == first->x : largest_difference(solved.x, first->x) < 1e-4));
  }
  // In exact arithmetic both make the same iterates; norms differ by the red residual before the first one.
  CHECK(std::abs(first->report.iterations - whole.report.iterations) <= 1 + whole.report.iterations / 20);
  CHECK(largest_difference(first->x, whole.x) < 1e-4);
}

TEST_CASE("a GPU keeps on its chip what a Schur complement consists of, where there is room" *
          doctest::skip(!shape_is("gpu"))) {
  Runtime runtime;
  struct Case {
    const char* name;
    bool is_kept;
  };
  // Blocks of rows whose neighbours they need all, some or none of; with and without room for all of the halo; last
  // blocks of a few rows; too wide; too large.
  for (const auto& [name, is_kept] : {Case{"ecology-like:40x40", true},
                                      {"ecology-like:101x99", true},
                                      {"ecology-like:255x256", true},
                                      {"ecology-like:301x300", true},
                                      {"ecology-like:700x701", true},
                                      {"ecology-like:999x1001", true},
                                      {"ecology-like:1000x1000", true},
                                      {"ecology-like:2000x300", true},
                                      {"ecology-like:20x20", false},
                                      {"ecology-like:30x333", true},
                                      {"ecology-like:333x30", false},
                                      {"ecology-like:1500x1500", false}}) {
    CAPTURE(name);
    const Csr<double> a = model(name);
    const std::vector<double> b = row_sums(a);
    LinearSettings settings = with("mc-ilu0");
    settings.tolerance = 1e-7;
    const auto kept = solve<double>(runtime, a, b, settings);
    CHECK((kept.facts.formats.front() == sparse::Format::schur) == is_kept);
    if (!is_kept) continue;
    CHECK(kept.report.reason == Reason::solved);
    CHECK(kept.report.true_residual <= 1.1e-7);
    CHECK(kept.facts.preconditioner.reduced_rows == a.total_rows / 2);
    settings.check_every = 7;  // sweeps begin in other places
    const auto again = solve<double>(runtime, a, b, settings);
    CHECK(again.x == kept.x);
    CHECK(again.report.iterations == kept.report.iterations);
    settings.format = sparse::Format::diagonals;
    const auto formed = solve<double>(runtime, a, b, settings);
    CHECK(formed.facts.formats.front() == sparse::Format::diagonals);
    CHECK(std::abs(formed.report.iterations - kept.report.iterations) <= 2 + kept.report.iterations / 100);
    CHECK(distance_from_ones(kept.x) <= 2 * distance_from_ones(formed.x) + 1e-9);
  }
  const Csr<double> a = model("ecology-like:123x77");
  LinearSettings settings = with("mc-ilu0");
  settings.max_iterations = 25;
  const auto stopped = solve<double>(runtime, a, row_sums(a), settings);
  CHECK(stopped.report.reason == Reason::iteration_limit);
  CHECK(stopped.report.iterations == 25);
  settings.max_iterations = 0;
  const auto in_float = solve<double, float>(runtime, a, row_sums(a), settings);
  CHECK(in_float.facts.formats.front() == sparse::Format::schur);
  CHECK(distance_from_ones(in_float.x) < 1e-4);
  // A first guess, and one right-hand side after the other.
  sparse::ConjugateGradients<double> solver(runtime, a, settings);
  const std::vector<double> b = row_sums(a);
  std::vector<double> x(b.size(), 1);
  CHECK(solver.solve(b.data(), x.data()).iterations == 0);
  check_columns_together(solver);
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

TEST_CASE("a preconditioner in single precision for an iteration in double" * doctest::skip(is_brief())) {
  Runtime runtime;
  const Csr<double> a = model("triangulation-like:40x30");
  for (const char* preconditioner : all_preconditioners) {
    CAPTURE(preconditioner);
    const auto wide = solve<double>(runtime, a, row_sums(a), with(preconditioner));
    const auto mixed = solve<double, float>(runtime, a, row_sums(a), with(preconditioner));
    CHECK(mixed.report.reason == Reason::solved);
    CHECK(mixed.report.true_residual <= 1.1e-8);
    CHECK(std::abs(mixed.report.iterations - wide.report.iterations) <= 1 + wide.report.iterations / 20);
  }
}

TEST_CASE("single precision reaches what it can, and says so where it cannot" * doctest::skip(is_brief())) {
  Runtime runtime;
  const Csr<double> a = model("poisson2d:50x50");
  LinearSettings settings = with("mc-ilu0");
  settings.tolerance = 1e-5;
  const auto enough = solve<float>(runtime, a, row_sums(a), settings);
  CHECK(enough.report.reason == Reason::solved);
  CHECK(enough.report.true_residual <= 1.1e-5);
  settings.tolerance = 1e-9;
  const auto too_much = solve<float>(runtime, a, row_sums(a), settings);
  CHECK(too_much.report.reason != Reason::solved);
  CHECK(too_much.report.true_residual < 1e-4);
}

/// Of the kernels for a matrix on one GPU the first and the second have a row and some rows for each thread, the last has more.
TEST_CASE("single precision takes the iterations of double, at all sizes" * doctest::skip(!shape_is("gpu"))) {
  Runtime runtime;
  for (const char* name :
       {"triangulation-like:200x150", "triangulation-like:600x500", "triangulation-like:1000x700"}) {
    CAPTURE(name);
    const Csr<double> a = model(name);
    LinearSettings settings = with("diagonal");
    settings.tolerance = 1e-4;
    const auto wide = solve<double>(runtime, a, row_sums(a), settings);
    const auto narrow = solve<float>(runtime, a, row_sums(a), settings);
    CHECK(narrow.report.reason == Reason::solved);
    CHECK(narrow.report.true_residual <= 1.1e-4);
    CHECK(std::abs(narrow.report.iterations - wide.report.iterations) <= 1 + wide.report.iterations / 20);
  }
}

TEST_CASE("b = 0 is answered at once; sizes down to one row; numbers near the ends of the range") {
  Runtime runtime;
  for (const char* name :
       models({"poisson2d:2x1", "poisson2d:1x1", "poisson2d:31x1", "poisson3d:3x1x2", "circuit-like:2"})) {
    CAPTURE(name);
    const Csr<double> a = model(name);
    const auto nothing =
        solve<double>(runtime, a, std::vector<double>(static_cast<std::size_t>(a.total_rows)), {});
    CHECK(nothing.report.iterations == 0);
    CHECK(nothing.x == std::vector<double>(static_cast<std::size_t>(a.total_rows)));
    for (const double magnitude : {1.0, 1e-300, 1e300}) {
      CAPTURE(magnitude);
      std::vector<double> b = row_sums(a);
      for (double& value : b) value *= magnitude;
      for (const sparse::Reductions form : forms()) {
        CAPTURE(static_cast<int>(form));
        LinearSettings settings = with("auto", form == sparse::Reductions::two ? 0 : 2);
        settings.reductions = form;
        auto solution = solve<double>(runtime, a, b, settings);
        for (double& value : solution.x) value /= magnitude;
        CHECK(distance_from_ones(solution.x) < 1e-6);
      }
    }
  }
}

TEST_CASE("a matrix that is not definite is told, and a first guess is used") {
  Runtime runtime;
  Csr<double> a = model("poisson2d:20x20");
  const std::vector<double> ones(static_cast<std::size_t>(a.total_rows), 1);
  {
    const auto [first, end] = sparse::rows_of_rank(a.total_rows, runtime.rank(), runtime.ranks());
    const Csr<double> mine = sparse::rows_of(a, Part{.first = first, .size = end - first});
    sparse::ConjugateGradients<double> solver(runtime, mine, {});
    const std::vector<double> b = row_sums(a);
    std::vector<double> x(static_cast<std::size_t>(end - first), 1);
    CHECK(solver.solve(b.data() + first, x.data()).iterations == 0);
    x.assign(x.size(), 0.999);
    const sparse::LinearReport near = solver.solve(b.data() + first, x.data());
    x.assign(x.size(), 0);
    CHECK(near.iterations < solver.solve(b.data() + first, x.data()).iterations);
  }
  for (double& value : a.values)
    if (value > 0) value = 1;
  for (const sparse::Reductions form : forms())
    for (const Index blocks : {1, 3}) {
      LinearSettings settings = with("none", blocks);
      settings.reductions = form;
      CHECK(solve<double>(runtime, a, ones, settings).report.reason == Reason::indefinite);
    }
}

TEST_CASE_TEMPLATE("iterations until nothing is left of the residual say nothing of the matrix", T, float,
                   double) {
  Runtime runtime;
  LinearSettings settings = with("diagonal");
  settings.tolerance = 0;
  settings.max_iterations = 400;
  for (Index n = 2; n <= 24; n += is_brief() ? 7 : 1) {
    CAPTURE(n);
    std::vector<double> b;
    for (Index i = 0; i < n; ++i) b.push_back(std::sin(static_cast<double>(1 + 3 * i)));
    const auto report =
        solve<T>(runtime, model(fmt::format("poisson2d:{}x1", n).c_str()), b, settings).report;
    CHECK(report.reason != Reason::indefinite);
    CHECK(report.reason != Reason::not_finite);
  }
}

TEST_CASE("other values in the same places: the bits of a solver that is set up anew" *
          doctest::skip(more_than_two_ranks())) {
  Runtime runtime;
  const Csr<double> before = model("poisson2d:23x17");
  Csr<double> after = before;
  for (Index i = 0; i < after.rows(); ++i)
    for (Index k = after.row_begin[at(i)]; k < after.row_begin[at(i + 1)]; ++k)
      if (after.columns[at(k)] == i) after.values[at(k)] += 1 + static_cast<double>(i % 7) / 8;
  const auto [first, end] = sparse::rows_of_rank(before.total_rows, runtime.rank(), runtime.ranks());
  const Part part{.first = first, .size = end - first};
  const std::vector<double> b(static_cast<std::size_t>(end - first), 1);
  for (const char* preconditioner : preconditioners()) {
    CAPTURE(preconditioner);
    LinearSettings settings = with(preconditioner, 2);
    settings.values = sparse::Values::refreshed;
    settings.max_iterations = 8;
    const auto solved = [&](auto& solver) {
      std::vector<double> x(b.size());
      solver.solve(b.data(), x.data());
      return x;
    };
    sparse::ConjugateGradients<double> refreshed(runtime, sparse::rows_of(before, part), settings);
    const std::vector<double> old = solved(refreshed);
    refreshed.refresh(sparse::rows_of(after, part));
    sparse::ConjugateGradients<double> anew(runtime, sparse::rows_of(after, part), settings);
    CHECK(solved(refreshed) == solved(anew));
    refreshed.refresh(sparse::rows_of(before, part));
    CHECK(solved(refreshed) == old);
  }
  using Case = std::tuple<const Csr<double>&, const char*, const Csr<double>&>;
  for (const auto& [first_values, chosen, others] :
       {Case(before, "none", after), Case(after, "diagonal", before)}) {
    CAPTURE(chosen);  // which equal diagonal entries, or unequal ones, do not change
    LinearSettings settings = with("auto", 2);
    settings.values = sparse::Values::refreshed;
    settings.max_iterations = 8;
    sparse::ConjugateGradients<double> refreshed(runtime, sparse::rows_of(first_values, part), settings);
    refreshed.refresh(sparse::rows_of(others, part));
    CHECK(to_string(refreshed.facts().preconditioner.choice) == chosen);
    settings.preconditioner = parse_preconditioner(chosen);
    sparse::ConjugateGradients<double> anew(runtime, sparse::rows_of(others, part), settings);
    std::vector<double> x(b.size()), x_anew(b.size());
    refreshed.solve(b.data(), x.data());
    anew.solve(b.data(), x_anew.data());
    CHECK(x == x_anew);
  }
  sparse::ConjugateGradients<double> fixed(runtime, sparse::rows_of(before, part), with("ic0"));
  CHECK_THROWS_WITH_AS(fixed.refresh(sparse::rows_of(before, part)), doctest::Contains("said to be fixed"),
                       Error);
  LinearSettings settings = with("ic0");
  settings.values = sparse::Values::refreshed;
  sparse::ConjugateGradients<double> other(runtime, sparse::rows_of(before, part), settings);
  const Csr<double> elsewhere = model("poisson2d:17x23");
  CHECK_THROWS_WITH_AS(other.refresh(sparse::rows_of(elsewhere, part)),
                       doctest::Contains("not where they were"), Error);
}

TEST_CASE("a factorisation that breaks down is told by its row, or gets a larger diagonal" *
          doctest::skip(more_than_two_ranks())) {
  Runtime runtime;
  Csr<double> a = model("poisson2d:12x12");
  for (Index k = a.row_begin[70]; k < a.row_begin[71]; ++k)
    if (a.columns[at(k)] == 70) a.values[at(k)] = 0.5;
  const std::vector<double> ones(static_cast<std::size_t>(a.total_rows), 1);
  LinearSettings settings = with("ic0");
  settings.shift = sparse::DiagonalShift::none;
  const auto broken = solve<double>(runtime, a, ones, settings);
  CHECK(broken.report.reason == Reason::zero_pivot);
  REQUIRE(broken.facts.preconditioner.breakdown.has_value());
  CHECK(broken.facts.preconditioner.breakdown->row >= 70);
  CHECK(broken.x == std::vector<double>(ones.size()));
  settings.shift = sparse::DiagonalShift::automatic;
  CHECK(solve<double>(runtime, a, ones, settings).facts.preconditioner.shift > 0);
}

TEST_CASE("so many iterations and no more, whatever the residual" * doctest::skip(is_brief())) {
  Runtime runtime;
  const Csr<double> a = model("poisson2d:30x30");
  for (const double tolerance : {0.0, 1e-14}) {
    LinearSettings settings = with("none");
    settings.tolerance = tolerance;
    settings.max_iterations = 7;
    const auto report = solve<double>(runtime, a, row_sums(a), settings).report;
    CHECK(report.iterations == 7);
    CHECK(report.reason == (tolerance == 0 ? Reason::solved : Reason::iteration_limit));
  }
}

TEST_CASE("the spectrum is what theory says" * doctest::skip(is_brief())) {
  Runtime runtime;
  const Csr<double> a = model("poisson2d:30x30");
  const auto report = solve<double>(runtime, a, std::vector<double>(900, 1), with("none")).report;
  REQUIRE(report.spectrum.has_value());
  const double c = std::cos(std::acos(-1.0) / 31);
  CHECK(report.spectrum->least == doctest::Approx(4 - 4 * c).epsilon(1e-3));
  CHECK(report.spectrum->most == doctest::Approx(4 + 4 * c).epsilon(1e-2));
}

/// Whose Lanczos' matrix has 2 on its diagonal and 1 beside it.
CgState state_of_chain(int steps) {
  CgState state{};
  state.iterations = steps;
  double pivot = 2;
  for (int k = 0; k < steps; ++k) {
    state.alpha[k] = 1 / pivot;
    state.beta[k] = 1 / (pivot * pivot);
    pivot = 2 - 1 / pivot;
  }
  return state;
}

TEST_CASE("the ends of a spectrum, of coefficients that are known") {
  for (const int steps : {2, 3, 64, CgState::kept}) {
    CAPTURE(steps);
    const auto found = sparse::spectrum_of(state_of_chain(steps));
    REQUIRE(found);
    const double c = std::cos(std::acos(-1.0) / (steps + 1));
    CHECK(found->least == doctest::Approx(2 - 2 * c).epsilon(1e-8));
    CHECK(found->most == doctest::Approx(2 + 2 * c).epsilon(1e-8));
  }
  CHECK_FALSE(sparse::spectrum_of(state_of_chain(1)));
  CgState indefinite = state_of_chain(5), broken = state_of_chain(5), large = state_of_chain(5);
  indefinite.alpha[2] = -1;
  broken.alpha[3] = 0;
  CHECK_FALSE(sparse::spectrum_of(indefinite));
  CHECK_FALSE(sparse::spectrum_of(broken));
  for (double& alpha : large.alpha) alpha *= 1e-200;
  const auto found = sparse::spectrum_of(large);
  REQUIRE(found);
  CHECK(found->most == doctest::Approx(1e200 * (2 + std::sqrt(3.0))).epsilon(1e-8));
}

TEST_CASE("what makes no sense is refused with words") {
  Runtime runtime;
  const Csr<double> a = model("poisson2d:4x4");
  const std::vector<double> ones(16, 1);
  const auto message = [&](const Csr<double>& matrix, const std::vector<double>& b,
                           const LinearSettings& settings) {
    return message_of([&] { solve<double>(runtime, matrix, b, settings, Rows::on_rank_0); });
  };
  CHECK(message(a, ones, {.tolerance = 2}) == "the tolerance is 2: it must be at least 0 and below 1");
  CHECK(message(a, ones, {.tolerance = 0}) ==
        "neither a tolerance nor a number of iterations is given: there would be no end; give one");
  Csr<double> wide = a;
  wide.cols = 17;
  CHECK(message(wide, ones, {}).find("the matrix is 16 x 17: it must be square") != std::string::npos);
  Csr<double> outside = a;
  outside.columns.back() = 16;
  CHECK(message(outside, ones, {}).find("an entry in column 16 (the first is 0): there are 16") !=
        std::string::npos);
  std::vector<double> nan = ones;
  nan[5] = std::numeric_limits<double>::quiet_NaN();
  CHECK(message(a, nan, {}).find("the right-hand side has nan in row 5") != std::string::npos);
  Csr<double> negative = a;
  for (double& value : negative.values) value = -value;
  CHECK(message(negative, ones, with("diagonal"))
            .find("row 0 of the matrix (the first is 0) has -4 on its diagonal") != std::string::npos);
  for (const char* bad : {"", "ic", "ic0:1", "polynomial", "polynomial:-1", "polynomial:x", "mc-ssor:2",
                          "mc-ilu:1,0", "mc-ilu:-1"}) {
    CAPTURE(bad);
    CHECK(message_of([&] { parse_preconditioner(bad); }).find(std::string("preconditioner ") + bad + ":") ==
          0);
  }
  for (const char* good : all_preconditioners) CHECK(sparse::to_string(parse_preconditioner(good)) == good);
}

}  // namespace asterism::test
