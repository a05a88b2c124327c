// Conjugate gradients without a matrix: the iterations and the solution of those with it; operators that make no sense.
#include <doctest/doctest.h>

#include <limits>

#include "../support/messages.hpp"
#include "../support/skip.hpp"
#include "../support/worst.hpp"
#include "algorithms/sparse/models/models.hpp"
#include "linear_solves.hpp"

namespace asterism::test {
namespace {

using sparse::BlockVector;
using sparse::LinearOperator;

constexpr Index width = 37, height = 41, nodes = width * height;

template <template <class> class As>
struct FivePoints {
  As<Optional<In<double>>> above;
  As<In<double>> p;
  As<Optional<In<double>>> below;
  As<Out<double>> q;
};

/// 4 and -1 on the grid.
void multiply(const Index& first, FivePoints<AsPorts> t) {
  const auto value = [&](Index i) {
    return i < 0 ? t.above.data[t.above.cols + i] : i < t.p.cols ? t.p.data[i] : t.below.data[i - t.p.cols];
  };
  for (Index i = 0; i < t.q.cols; ++i) {
    const Index node = first + i, x = node % width;
    double sum = 4 * t.p.data[i];
    if (node >= width) sum -= value(i - width);
    if (x > 0) sum -= value(i - 1);
    if (x + 1 < width) sum -= value(i + 1);
    if (node + width < nodes) sum -= value(i + width);
    t.q.data[i] = sum;
  }
}
struct Scaling {
  double factor;
};
void scale(const Scaling& by, In<double> r, Out<double> z) {
  for (Index i = 0; i < r.cols; ++i) z.data[i] = by.factor * r.data[i];
}
void fail(In<double>, Out<double>) { throw Error("no product today"); }

const Codelet multiply_task{"test_multiply", multiply};
const Codelet scale_task{"test_scale", scale};
const Codelet fail_task{"test_fail", fail};

LinearOperator<double> five_points() {
  return {.rows = nodes,
          .line = width,
          .multiply = [](const BlockVector<double>& p, const BlockVector<double>& q) {
            for (Index b = 0; b < q.count(); ++b) {
              CHECK(q.first(b) % width == 0);
              CHECK(q.size(b) % width == 0);
              multiply_task(q.first(b),
                            {.above = p.if_there(b - 1), .p = p[b], .below = p.if_there(b + 1), .q = q[b]},
                            q.hints(b));
            }
          }};
}
LinearOperator<double> scaled_five_points(double factor) {
  LinearOperator<double> a = five_points();
  a.precondition = [factor](const BlockVector<double>& r, const BlockVector<double>& z) {
    for (Index b = 0; b < z.count(); ++b) scale_task({factor}, r[b], z[b], z.hints(b));
  };
  return a;
}

/// With every rank's rows, all of x.
struct Solved {
  sparse::LinearReport report;
  std::vector<double> x;
};
Solved solve(Runtime& runtime, const LinearOperator<double>& a, const std::vector<double>& b,
             const sparse::LinearSettings& settings) {
  sparse::ConjugateGradients<double> solver(runtime, a, settings);
  std::vector<double> x(static_cast<std::size_t>(solver.row_count()));
  Solved solved{solver.solve(b.data() + solver.first_row(), x.data()), {}};
  solved.x = gather_lists(runtime, x);
  return solved;
}

sparse::Csr<double> same_matrix() {
  return sparse::model_matrix({sparse::ModelFamily::poisson2d, width, height});
}

}  // namespace

TEST_CASE(
    "an operator's iterations and solution are its matrix's, for any blocks, with a preconditioner, too") {
  Runtime runtime;
  const auto matrix = same_matrix();
  const std::vector<double> b = row_sums(matrix);
  for (const char* name : {"none", "diagonal"}) {
    CAPTURE(name);
    const LinearOperator<double> a = std::string(name) == "none" ? five_points() : scaled_five_points(0.25);
    const auto known =
        solve<double>(runtime, matrix, b, {.preconditioner = sparse::parse_preconditioner(name)});
    for (const Index blocks : {0, 1, 2}) {
      CAPTURE(blocks);
      const Solved solved = solve(runtime, a, b, {.blocks = blocks});
      CHECK(solved.report.reason == Reason::solved);
      CHECK(solved.report.true_residual <= 1.1e-8);
      CHECK(std::abs(solved.report.iterations - known.report.iterations) <= 1);
      REQUIRE(solved.report.spectrum.has_value());
      CHECK(solved.report.spectrum->condition() ==
            doctest::Approx(known.report.spectrum->condition()).epsilon(1e-6));
      REQUIRE(solved.x.size() == known.x.size());
      Worst worst;
      for (std::size_t i = 0; i < known.x.size(); ++i) worst.take_in(solved.x[i] - known.x[i]);
      CHECK(static_cast<double>(worst.value()) < 1e-6);
    }
  }
}

TEST_CASE("a second right-hand side, one of zeros, and a good first guess") {
  Runtime runtime;
  const std::vector<double> b = row_sums(same_matrix()), zeros(b.size());
  sparse::ConjugateGradients<double> solver(runtime, scaled_five_points(0.25), {});
  const auto rows = static_cast<std::size_t>(solver.row_count());
  std::vector<double> x(rows);
  const Index first = solver.first_row();
  CHECK(solver.solve(b.data() + first, x.data()).reason == Reason::solved);
  CHECK(solver.solve(b.data() + first, x.data()).iterations == 0);
  CHECK(solver.solve(zeros.data() + first, x.data()).iterations == 0);
  for (const double value : x) CHECK(value == 0);
}

TEST_CASE("a preconditioner that is not positive definite, and a task that fails") {
  Runtime runtime;
  const std::vector<double> b = row_sums(same_matrix());
  CHECK(solve(runtime, scaled_five_points(-1), b, {}).report.reason == Reason::indefinite);
  LinearOperator<double> broken = five_points();
  broken.multiply = [](const auto& p, const auto& q) {
    for (Index k = 0; k < q.count(); ++k) fail_task(p[k], q[k], q.hints(k));
  };
  std::string what;
  try {
    solve(runtime, broken, b, {});
    runtime.wait();
  } catch (const TaskFailure& failure) {
    what = failure.what();
  }
  message_has(what, {"test_fail", "no product today"});
}

TEST_CASE("operators that make no sense are refused") {
  Runtime runtime;
  const auto refusal = [&](LinearOperator<double> a, const sparse::LinearSettings& settings = {}) {
    return message_of([&] { sparse::ConjugateGradients<double>(runtime, std::move(a), settings); });
  };
  LinearOperator<double> a = five_points();
  a.rows = 0;
  message_has(refusal(a), {"0 rows in lines of 37"});
  a.rows = nodes + 1;
  message_has(refusal(a), {"1518 rows in lines of 37", "whole"});
  message_has(refusal({.rows = 9, .multiply = {}}), {"LinearOperator::multiply"});
  message_has(refusal(five_points(), {.preconditioner = sparse::parse_preconditioner("ic0")}),
              {"preconditioner ic0: an operator has no entries", "LinearOperator::precondition"});
  message_has(refusal(five_points(), {.format = sparse::Format::csr}), {"and a format"});
  message_has(refusal(five_points(), {.tolerance = 2}), {"the tolerance is 2"});
}

}  // namespace asterism::test
