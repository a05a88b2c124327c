// Conjugate gradients. Right-hand sides that go along together.
#include <doctest/doctest.h>

#include <set>
#include <vector>

#include "../columns_together.hpp"
#include "cases.hpp"

namespace asterism::test {
namespace {

/// Of one column of several.
std::vector<double> column_of(const std::vector<double>& all, Index columns, Index c) {
  std::vector<double> its;
  for (std::size_t i = static_cast<std::size_t>(c); i < all.size(); i += static_cast<std::size_t>(columns))
    its.push_back(all[i]);
  return its;
}

}  // namespace

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

}  // namespace asterism::test
