// Conjugate gradients. Other values in the same places.
#include <doctest/doctest.h>

#include <tuple>
#include <vector>

#include "../conjugate_gradients.hpp"
#include "cases.hpp"

namespace asterism::test {

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

}  // namespace asterism::test
