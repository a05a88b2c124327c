// Conjugate gradients. Where an iteration has nothing to do, cannot go on, or has to end.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "../conjugate_gradients.hpp"
#include "cases.hpp"

namespace asterism::test {

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

}  // namespace asterism::test
