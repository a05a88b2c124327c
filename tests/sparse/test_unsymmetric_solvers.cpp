// BiCGStab and GMRES: iterates by definition, solutions, breakdowns, and the same bits however the rows are divided.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "../support/dense.hpp"
#include "../support/messages.hpp"
#include "../support/skip.hpp"
#include "../support/worst.hpp"
#include "algorithms/sparse/models/models.hpp"
#include "algorithms/sparse/unsymmetric/bicgstab.hpp"
#include "algorithms/sparse/unsymmetric/gmres.hpp"
#include "columns_together.hpp"
#include "linear_solves.hpp"
#include "random_matrix.hpp"

namespace asterism::test {
namespace {

using sparse::BiCgStab;
using sparse::Csr;
using sparse::Gmres;
using sparse::LinearSettings;
using sparse::parse_preconditioner;

bool is_brief() { return shape_is("mpi") || shape_is("one_worker"); }
std::vector<const char*> preconditioners() {
  if (is_brief()) return {"none", "diagonal", "polynomial-diagonal:2", "mc-ilu:1,2"};
  return {"none",        "diagonal", "polynomial:2", "polynomial-diagonal:3", "ilu0", "mc-sgs",
          "mc-ssor:1.2", "mc-ilu0",  "mc-ilu:1,2"};
}

Csr<double> model(const char* name) { return sparse::model_matrix(sparse::parse_matrix_model(name)); }

LinearSettings with(const char* preconditioner, Index blocks = 0) {
  return {.preconditioner = parse_preconditioner(preconditioner), .check_every = 5, .blocks = blocks};
}

/// Numbers without a pattern.
std::vector<double> uneven(Index n) {
  std::vector<double> b;
  for (Index i = 0; i < n; ++i) b.push_back(1 + std::sin(static_cast<double>(i * i)));
  return b;
}

template <class Body>
void with_each_solver(Body body) {
  SUBCASE("BiCGStab") {
    body([](Runtime& runtime, const Csr<double>& a, const std::vector<double>& b,
            const LinearSettings& settings,
            Rows rows = Rows::shared) { return solve_by<BiCgStab, double>(runtime, a, b, settings, rows); });
  }
  SUBCASE("GMRES") {
    body([](Runtime& runtime, const Csr<double>& a, const std::vector<double>& b,
            const LinearSettings& settings,
            Rows rows = Rows::shared) { return solve_by<Gmres, double>(runtime, a, b, settings, rows); });
  }
}

/// What is left of it without its parts along the others, which are orthonormal. Twice: rounding leaves some.
DenseVector orthogonal_to(const std::vector<DenseVector>& others, DenseVector x) {
  for (int pass = 0; pass < 2; ++pass)
    for (const DenseVector& other : others) x -= dot(other, x) * other;
  return x;
}

/// The least residual of x in the Krylov space of so many vectors.
double least_residual(const Dense& a, const DenseVector& b, Index vectors) {
  const auto add = [](std::vector<DenseVector>& orthonormal, const DenseVector& next) {
    const DenseVector rest = orthogonal_to(orthonormal, next);
    orthonormal.push_back(rest / norm(rest));
  };
  std::vector<DenseVector> basis, products;
  for (Index k = 0; k < vectors; ++k) {
    add(basis, k == 0 ? b : a * basis.back());
    add(products, a * basis.back());
  }
  return norm(orthogonal_to(products, b));
}

/// x of so many iterations from 0, as the paper has them.
DenseVector textbook_bicgstab(const Dense& a, const DenseVector& b, Index iterations) {
  DenseVector x(b.size()), r = b, p = b;
  const DenseVector shadow = b;
  for (Index k = 0; k < iterations; ++k) {
    const double rho = dot(shadow, r);
    const DenseVector q = a * p;
    const double alpha = rho / dot(shadow, q);
    const DenseVector s = r - alpha * q, t = a * s;
    const double omega = dot(t, s) / dot(t, t);
    x += alpha * p + omega * s;
    r = s - omega * t;
    p = r + dot(shadow, r) / rho * alpha / omega * (p - omega * q);
  }
  return x;
}

/// a_(i, i + 1) = 1 = -a_(i + 1, i)
Csr<double> skew_symmetric(Index rows) {
  std::vector<std::map<Index, double>> matrix(static_cast<std::size_t>(rows));
  for (Index i = 0; i + 1 < rows; ++i) {
    matrix[static_cast<std::size_t>(i)][i + 1] = 1;
    matrix[static_cast<std::size_t>(i + 1)][i] = -1;
  }
  return matrix_of(matrix);
}

}  // namespace

TEST_CASE("iterates are those of the definition") {
  Runtime runtime;
  const Csr<double> a = model("convection2d:9x8");
  const Dense all = dense(a);
  const std::vector<double> b = uneven(a.total_rows);
  LinearSettings settings = with("none");
  settings.tolerance = 0;
  for (const Index iterations : {1, 5, 9}) {
    CAPTURE(iterations);
    settings.max_iterations = iterations;
    const auto gmres = solve_by<Gmres, double>(runtime, a, b, settings);
    CHECK(gmres.report.iterations == iterations);
    CHECK(norm(dense(b) - all * dense(gmres.x)) ==
          doctest::Approx(least_residual(all, dense(b), iterations)).epsilon(1e-10));
    const auto bicgstab = solve_by<BiCgStab, double>(runtime, a, b, settings);
    CHECK(bicgstab.report.iterations == iterations);
    const DenseVector textbook = textbook_bicgstab(all, dense(b), iterations);
    CHECK(norm(dense(bicgstab.x) - textbook) < 1e-10 * norm(textbook));
  }
}

TEST_CASE("solutions with every preconditioner, in every division the same bits") {
  Runtime runtime;
  with_each_solver([&](auto solve) {
    const Csr<double> convection = model("convection2d:20x15");
    Csr<double> negative = random_matrix(230, 4, Symmetry::unsymmetric, 3);
    for (double& value : negative.values) value = -value;
    std::vector<Csr<double>> matrices{convection};
    if (!is_brief()) matrices.push_back(negative);
    for (const Csr<double>& a : matrices) {
      const std::vector<double> b = uneven(a.total_rows);
      const DenseVector x = solve_dense(dense(a), dense(b));
      for (const char* preconditioner : preconditioners()) {
        CAPTURE(preconditioner);
        const auto one = solve(runtime, a, b, with(preconditioner, 1), Rows::on_rank_0);
        CHECK(one.report.reason == Reason::solved);
        CHECK(one.report.true_residual <= 1.1e-8);
        CHECK(norm(dense(one.x) - x) < 1e-6 * norm(x));
        if (shape_is("gpu")) continue;  // several blocks there are on several GPUs
        for (const Index blocks : {3, 7}) {
          if (is_brief() && blocks == 7) continue;
          CAPTURE(blocks);
          CHECK(solve(runtime, a, b, with(preconditioner, blocks), Rows::shared).x == one.x);
        }
      }
    }
  });
}

TEST_CASE("GMRES that begins anew again and again: the residual never grows") {
  Runtime runtime;
  const Csr<double> a = model("convection2d:20x15");
  LinearSettings settings = with("none");
  settings.restart = 3;
  settings.check_every = 1;
  const auto solution = solve_by<Gmres, double>(runtime, a, uneven(a.total_rows), settings);
  CHECK(solution.report.reason == Reason::solved);
  const std::vector<double>& history = solution.report.residual_history;
  REQUIRE(history.size() > 10);
  for (std::size_t k = 1; k < history.size(); ++k) CHECK(history[k] <= history[k - 1] * (1 + 1e-10));
}

TEST_CASE("other types: all in single precision, or the preconditioner alone") {
  Runtime runtime;
  const Csr<double> a = model("convection2d:20x15");
  LinearSettings settings = with("mc-ilu0");
  const auto check = [](const auto& report) {
    CHECK(report.reason == Reason::solved);
    CHECK(report.true_residual <= 1.1e-5);
  };
  settings.tolerance = 1e-5;
  check(solve_by<BiCgStab, float>(runtime, a, row_sums(a), settings).report);
  check(solve_by<BiCgStab, double, float>(runtime, a, row_sums(a), settings).report);
  check(solve_by<Gmres, float>(runtime, a, row_sums(a), settings).report);
  check(solve_by<Gmres, double, float>(runtime, a, row_sums(a), settings).report);
}

TEST_CASE("a skew-symmetric matrix: GMRES solves, BiCGStab says that it breaks down") {
  Runtime runtime;
  const Csr<double> a = skew_symmetric(20);
  const std::vector<double> b = uneven(20);
  const auto solution = solve_by<Gmres, double>(runtime, a, b, with("none"));
  CHECK(solution.report.reason == Reason::solved);
  CHECK(norm(dense(a) * dense(solution.x) - dense(b)) < 1e-7);
  const auto broken = solve_by<BiCgStab, double>(runtime, a, b, with("none"));
  CHECK(broken.report.reason == Reason::breakdown);
  CHECK(broken.report.restarts >= 1);
  CHECK(broken.report.restarts <= 10);
  for (const double x : broken.x) CHECK(std::isfinite(x));
}

TEST_CASE("several right-hand sides with one set-up, or none") {
  Runtime runtime;
  const Csr<double> a = model("convection2d:9x8");
  const auto [first, end] = sparse::rows_of_rank(a.total_rows, runtime.rank(), runtime.ranks());
  Gmres<double> solver(runtime, sparse::rows_of(a, Part{.first = first, .size = end - first}),
                       with("mc-ilu0"));
  const std::vector<double> b = uneven(a.total_rows), sums = row_sums(a);
  std::vector<double> both, x(static_cast<std::size_t>(2 * (end - first)));
  for (Index i = first; i < end; ++i) {
    both.push_back(sums[static_cast<std::size_t>(i)]);
    both.push_back(b[static_cast<std::size_t>(i)]);
  }
  const auto reports = solver.solve(both.data(), x.data(), 2);
  REQUIRE(reports.size() == 2);
  const auto alone = solve_by<Gmres, double>(runtime, a, b, with("mc-ilu0"));
  CHECK(reports[1].iterations == alone.report.iterations);
  for (Index i = 0; i < end - first; ++i) {
    CHECK(x[static_cast<std::size_t>(2 * i)] == doctest::Approx(1).epsilon(1e-6));
    CHECK(x[static_cast<std::size_t>(2 * i + 1)] == alone.x[static_cast<std::size_t>(first + i)]);
  }
  CHECK(solver.solve(both.data(), x.data(), 0).empty());
}

TEST_CASE("right-hand sides that go along together: each as if it were alone") {
  Runtime runtime;
  const Csr<double> a = rows_of_this_rank(runtime, model("convection2d:12x14"));
  for (const char* preconditioner : {"diagonal", "mc-ilu0"})
    for (const Index blocks : {1, 3}) {
      CAPTURE(preconditioner);
      CAPTURE(blocks);
      LinearSettings settings = with(preconditioner, blocks);
      settings.max_iterations = runtime.ranks() > 1 ? 4 : 0;  // every one of them waits for messages
      settings.restart = 7;
      Gmres<double> gmres(runtime, a, settings);
      BiCgStab<double> bicgstab(runtime, a, settings);
      CHECK(check_columns_together(gmres).size() > 1);
      CHECK(check_columns_together(bicgstab).size() > 1);
    }
}

TEST_CASE("a cyclic shift: no progress before the last iteration; a basis that is complete ends early") {
  Runtime runtime;
  std::vector<std::map<Index, double>> shift(24), twice(40);
  for (Index i = 0; i < 24; ++i) shift[static_cast<std::size_t>(i)][(i + 1) % 24] = 1;
  for (Index i = 0; i < 40; ++i) twice[static_cast<std::size_t>(i)][i] = i % 2 == 0 ? 2 : -5;
  std::vector<double> b(24);
  b[0] = 1;
  const auto shifted = solve_by<Gmres, double>(runtime, matrix_of(shift), b, with("none"));
  CHECK(shifted.report.reason == Reason::solved);
  CHECK(shifted.report.iterations == 24);
  const auto short_basis =
      solve_by<Gmres, double>(runtime, matrix_of(twice), std::vector<double>(40, 1), with("none"));
  CHECK(short_basis.report.reason == Reason::solved);
  CHECK(short_basis.report.iterations == 2);
}

TEST_CASE("a matrix that falls apart: blocks that need nothing of each other, or one of another") {
  Runtime runtime;
  constexpr Index rows = 128, part = 32;  // as many as a grain
  std::vector<std::map<Index, double>> matrix(rows);
  for (Index i = 0; i < rows; ++i) {
    matrix[static_cast<std::size_t>(i)][i] = 4;
    if (i % part > 0) matrix[static_cast<std::size_t>(i)][i - 1] = -1;
    if (i % part < part - 1) matrix[static_cast<std::size_t>(i)][i + 1] = -2;
  }
  const Csr<double> apart = matrix_of(matrix);
  matrix[rows - 1][0] = 1;
  const Csr<double> coupled = matrix_of(matrix);
  with_each_solver([&](auto solve) {
    for (const Csr<double>* a : {&apart, &coupled})
      for (const char* preconditioner : preconditioners()) {
        CAPTURE(a == &coupled);
        CAPTURE(preconditioner);
        const auto solution = solve(runtime, *a, row_sums(*a), with(preconditioner, 4));
        CHECK(solution.report.reason == Reason::solved);
        CHECK(largest_difference(solution.x, std::vector<double>(rows, 1)) < 1e-6);
      }
  });
}

TEST_CASE("a first guess that is far off is no divergence") {
  Runtime runtime;
  const Csr<double> a = rows_of_this_rank(runtime, model("convection2d:9x8"));
  Gmres<double> solver(runtime, a, with("diagonal"));
  const std::vector<double> b(static_cast<std::size_t>(solver.row_count()), 1e-20);
  std::vector<double> x(b.size(), 1);
  CHECK(solver.solve(b.data(), x.data()).reason == Reason::solved);
}

TEST_CASE("a singular matrix is not solved with, and leaves numbers") {
  Runtime runtime;
  with_each_solver([&](auto solve) {
    std::vector<std::map<Index, double>> matrix(40);
    for (Index i = 0; i < 39; ++i)
      matrix[static_cast<std::size_t>(i)] = {{i, 1.0 + static_cast<double>(i % 7)}, {i + 1, 1}};
    matrix[39] = {{39, 0}};
    const auto solution = solve(runtime, matrix_of(matrix), std::vector<double>(40, 1), with("none"));
    CHECK(solution.report.reason != Reason::solved);
    CHECK(solution.report.reason != Reason::not_finite);
    for (const double x : solution.x) CHECK(std::isfinite(x));
  });
}

TEST_CASE("b = 0, a first guess that is the solution, magnitudes near the ends of the range, one row") {
  Runtime runtime;
  with_each_solver([&](auto solve) {
    for (const char* name : {"convection2d:9x8", "convection2d:1x1"}) {
      const Csr<double> a = model(name);
      const auto rows = static_cast<std::size_t>(a.total_rows);
      const auto nothing = solve(runtime, a, std::vector<double>(rows), LinearSettings{});
      CHECK(nothing.report.iterations == 0);
      CHECK(nothing.x == std::vector<double>(rows));
      for (const double magnitude : {1e-300, 1e300}) {
        std::vector<double> b = row_sums(a);
        for (double& value : b) value *= magnitude;
        auto solution = solve(runtime, a, b, LinearSettings{});
        for (double& value : solution.x) value /= magnitude;
        CHECK(largest_difference(solution.x, std::vector<double>(rows, 1)) < 1e-6);
      }
    }
  });
}

TEST_CASE("what makes no sense is refused with words") {
  Runtime runtime;
  with_each_solver([&](auto solve) {
    Csr<double> a = model("convection2d:4x4");
    const std::vector<double> ones(16, 1);
    const auto message = [&](const std::vector<double>& b, const LinearSettings& settings) {
      return message_of([&] { solve(runtime, a, b, settings, Rows::on_rank_0); });
    };
    CHECK(message(ones, with("ic0")).find("preconditioner ic0 is for symmetric positive definite matrices") ==
          0);
    CHECK(message(ones, with("chebyshev:2")).find("preconditioner chebyshev:2 is for symmetric") == 0);
    CHECK(message(ones, {.restart = 0}) == "a basis of 0 vectors: it must have at least 1 and at most 256");
    std::vector<double> nan = ones;
    nan[5] = std::numeric_limits<double>::quiet_NaN();
    CHECK(message(nan, {}).find("the right-hand side has nan in row 5") != std::string::npos);
    for (Index k = a.row_begin[3]; k < a.row_begin[4]; ++k)
      if (a.columns[static_cast<std::size_t>(k)] == 3) a.values[static_cast<std::size_t>(k)] = 0;
    CHECK(
        message(ones, with("diagonal"))
            .find(
                "row 3 of the matrix (the first is 0) has 0 on its diagonal: preconditioner diagonal divides by it") !=
        std::string::npos);
  });
}

}  // namespace asterism::test
