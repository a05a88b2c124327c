// Conjugate gradients. Single precision: as a preconditioner, and for all of an iteration.
#include <doctest/doctest.h>

#include <cmath>

#include "cases.hpp"

namespace asterism::test {

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

}  // namespace asterism::test
