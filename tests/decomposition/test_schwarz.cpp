// Subdomains as preconditioners of Krylov methods, and the coarse space: what they are, and how few iterations they leave.
#include <doctest/doctest.h>

#include <numeric>
#include <set>
#include <string_view>

#include "../sparse/columns_together.hpp"
#include "../support/messages.hpp"
#include "../support/skip.hpp"
#include "algorithms/decomposition/cut/coarse_matrix.hpp"
#include "algorithms/sparse/unsymmetric/bicgstab.hpp"
#include "algorithms/sparse/unsymmetric/gmres.hpp"
#include "subdomain_solves.hpp"

namespace asterism::test {
namespace {

using namespace decomposition;
using sparse::ConjugateGradients;

/// M^-1 r by its formulas, (Z1) to (Z3).
class DenseSchwarz {
 public:
  DenseSchwarz(const sparse::Csr<double>& a, const SchwarzSettings& settings)
      : a_(dense(a)), settings_(settings), subdomains_(cut_into_subdomains(a, settings.subdomains)) {
    if (settings.combination == Combination::symmetric) weigh(subdomains_, settings.subdomains);
    counts_ = DenseVector(static_cast<std::size_t>(a_.rows()));
    for (const Subdomain& s : subdomains_)
      for (const Index row : s.rows) ++counts_[static_cast<std::size_t>(row)];
    const auto patches = cut_into_patches(a, subdomains_, std::max<Index>(1, settings.patches));
    Index next = 0;
    Dense z(a_.rows(), a_.rows());
    for (std::size_t p = 0; p < patches.size(); ++p) {
      for (std::size_t i = 0; i < patches[p].size(); ++i)
        z(subdomains_[p].rows[static_cast<std::size_t>(subdomains_[p].owned[i])], next + patches[p][i]) = 1;
      next += 1 + std::ranges::max(patches[p]);
    }
    std::vector<Index> all(static_cast<std::size_t>(a_.rows())), used(static_cast<std::size_t>(next));
    std::iota(all.begin(), all.end(), 0);
    std::iota(used.begin(), used.end(), 0);
    z_ = part_of(z, all, used);
  }

  [[nodiscard]] DenseVector apply(const DenseVector& r) const {
    if (settings_.patches == 0) return local(r);
    const DenseVector first = coarse(r), r1 = r - a_ * first, z1 = local(r1);
    if (settings_.combination == Combination::restricted) return first + z1;
    return first + z1 + coarse(r1 - a_ * z1);
  }

 private:
  [[nodiscard]] DenseVector local(const DenseVector& r) const {
    DenseVector z(r.size());
    for (const Subdomain& s : subdomains_) {
      const DenseVector w =
          is_weighed() ? 1 / std::sqrt(part_of(counts_, s.rows)) : DenseVector(1, s.rows.size());
      const DenseVector y = w * solve_dense(part_of(a_, s.rows, s.rows), w * part_of(r, s.rows));
      const auto give_back = [&](std::size_t place) {
        z[static_cast<std::size_t>(s.rows[place])] += y[place];
      };
      if (settings_.combination == Combination::symmetric)
        for (std::size_t place = 0; place < s.rows.size(); ++place) give_back(place);
      else
        for (const std::int32_t place : s.owned) give_back(static_cast<std::size_t>(place));
    }
    return z;
  }
  [[nodiscard]] bool is_weighed() const { return !subdomains_.front().counts.empty(); }
  [[nodiscard]] DenseVector coarse(const DenseVector& r) const {
    const Dense zt = transposed(z_);
    return z_ * solve_dense(zt * a_ * z_, zt * r);
  }

  Dense a_, z_{0, 0};
  DenseVector counts_;  // of subdomains that have a row
  SchwarzSettings settings_;
  std::vector<Subdomain> subdomains_;
};

template <class Solver>
Index iterations_of(Runtime& runtime, const sparse::Csr<double>& a, const SchwarzSettings& schwarz) {
  const auto found = solve_by_schwarz<Solver>(runtime, a, scattered(a.total_rows), schwarz);
  CHECK(found.report.reason == Reason::solved);
  CHECK(found.report.true_residual <= 1.1e-8);
  return found.report.iterations;
}

/// Two iterations x += M^-1 (b - A x), by tasks and by formulas.
void check_two_iterations(const char* name, Index count, SolveOn solve_on) {
  Runtime runtime;
  const auto a = model(name);
  const std::vector<double> b = scattered(a.total_rows);
  const DenseVector right = dense(b);
  sparse::LinearSettings settings;
  settings.tolerance = 0;
  settings.max_iterations = 2;
  for (const Combination combination : {Combination::restricted, Combination::symmetric})
    for (const Index patches : {0, 1, 5})
      for (const Cut cut : {Cut::rows, Cut::graph}) {
        CAPTURE(static_cast<int>(combination));
        CAPTURE(patches);
        CAPTURE(static_cast<int>(cut));
        const SchwarzSettings schwarz{.subdomains = {.count = count, .cut = cut, .overlap = 1},
                                      .combination = combination,
                                      .patches = patches,
                                      .factors = {.solve_on = solve_on}};
        const DenseSchwarz twin(a, schwarz);
        const DenseVector x1 = twin.apply(right), x2 = x1 + twin.apply(right - dense(a) * x1);
        const auto found = solve_by_schwarz<Dbds<double>>(runtime, a, b, schwarz, settings);
        CHECK(difference(found.x, x2) < 1e-9 * std::abs(x2).max());
      }
}

}  // namespace

TEST_CASE("what is applied is (Z1) to (Z3): two iterations x += M^-1 (b - A x)") {
  check_two_iterations("ecology-like:9x12", 4, SolveOn::fastest);
}
TEST_CASE("what is applied is (Z1) to (Z3) with weights, in three dimensions") {
  check_two_iterations("poisson3d:5x6x7", 8, SolveOn::fastest);
}
#ifdef ASTERISM_WITH_CUDA
TEST_CASE("gpu: what is applied is (Z1) to (Z3), also where subdomains are solved for together") {
  check_two_iterations("ecology-like:9x12", 4, SolveOn::gpus);
  check_two_iterations("poisson3d:5x6x7", 8, SolveOn::gpus);
}
#endif

TEST_CASE("conjugate gradients, BiCGStab and GMRES take subdomains, also with factors in f32") {
  Runtime runtime;
  const SchwarzSettings restricted{.subdomains = {.count = 6, .cut = Cut::graph, .overlap = 2}};
  SchwarzSettings symmetric = restricted;
  symmetric.combination = Combination::symmetric;
  const auto a = model("poisson2d:40x40");
  const Index stationary = iterations_of<Dbds<double>>(runtime, a, restricted);
  const Index cg = iterations_of<ConjugateGradients<double>>(runtime, a, symmetric);
  CHECK(3 * cg < stationary);
  CHECK(2 * iterations_of<sparse::BiCgStab<double>>(runtime, a, restricted) < cg + 10);
  CHECK(iterations_of<sparse::Gmres<double>>(runtime, a, restricted) <= cg + 2);
  const auto mixed =
      solve_by_schwarz<ConjugateGradients<double>, float>(runtime, a, scattered(1600), symmetric);
  CHECK(mixed.report.reason == Reason::solved);
  CHECK(std::abs(mixed.report.iterations - cg) <= 1);
  SchwarzSettings general = restricted;
  general.factors.matrix_class = sparse::MatrixClass::general;
  general.patches = 4;
  const auto convection = model("convection2d:40x40");
  CHECK(iterations_of<sparse::BiCgStab<double>>(runtime, convection, general) < 15);
  CHECK(iterations_of<sparse::Gmres<double>>(runtime, convection, general) < 25);
}

TEST_CASE(
    "iterations with a coarse space grow at most 1.2 times from 4 to 64 subdomains, without one they do not stop" *
    doctest::skip(!shape_is("cpu")) * quick_enough()) {
  Runtime runtime;
  for (const char* name :
       {"poisson2d:48x48", "poisson3d:12x12x12", "triangulation-like:48x48", "ecology-like:48x48"}) {
    CAPTURE(name);
    const auto a = model(name);
    const auto iterations = [&](Index count, Index patches) {
      return iterations_of<ConjugateGradients<double>>(
          runtime, a,
          {.subdomains = {.count = count, .cut = Cut::graph, .overlap = 1},
           .combination = Combination::symmetric,
           .patches = patches});
    };
    const auto few = static_cast<double>(iterations(4, 16)), many = static_cast<double>(iterations(64, 16));
    CHECK(many <= 1.2 * few);
    // Where bodies of this size are cut, weights leave little growth.
    const bool is_body = std::string_view(name).starts_with("poisson3d");
    CHECK(static_cast<double>(iterations(64, 0)) > 1.3 * (is_body ? many : few));
  }
}

TEST_CASE("weights take iterations where bodies are cut" * doctest::skip(!shape_is("cpu")) * quick_enough()) {
  Runtime runtime;
  const auto a = model("poisson3d:20x20x20");
  const auto iterations = [&](Index count) {
    return iterations_of<ConjugateGradients<double>>(
        runtime, a,
        {.subdomains = {.count = count, .cut = Cut::graph, .overlap = 2},
         .combination = Combination::symmetric,
         .patches = 16});
  };
  CHECK(iterations(16) <= 18);  // 23 and 24 without weights
  CHECK(iterations(64) <= 17);
}

namespace {

template <class Solver, class V = double>
void check_together(SchwarzSettings schwarz, const sparse::LinearSettings& settings, SolveOn solve_on) {
  Runtime runtime;
  const auto a = rows_of_this_rank(runtime, model("ecology-like:12x14"));
  schwarz.factors.solve_on = solve_on;
  Solver solver(runtime, a, settings, std::make_shared<Schwarz<double, V>>(runtime, a, schwarz));
  const std::set<Index> counts = check_columns_together(solver);
  if (settings.max_iterations == 0) CHECK(counts.size() > 2);
}

void check_all_together(SolveOn solve_on) {
  const SchwarzSettings restricted{.subdomains = {.count = 4, .cut = Cut::graph, .overlap = 1}};
  SchwarzSettings balanced = restricted;
  balanced.combination = Combination::symmetric;
  balanced.patches = 3;
  check_together<ConjugateGradients<double>, float>(balanced, {.tolerance = 1e-11}, solve_on);
  check_together<ConjugateGradients<double>>(balanced, {.tolerance = 0, .max_iterations = 4}, solve_on);
  if (sanitized) return;
  for (const sparse::Reductions form : {sparse::Reductions::one, sparse::Reductions::pipelined})
    check_together<ConjugateGradients<double>>(balanced, {.reductions = form}, solve_on);
  check_together<Dbds<double>, float>(restricted, {.tolerance = 1e-2, .check_every = 3}, solve_on);
}

}  // namespace

TEST_CASE("right-hand sides that go along together have the bits that each has alone" *
          doctest::skip(more_than_two_ranks())) {
  check_all_together(SolveOn::fastest);
}
#ifdef ASTERISM_WITH_CUDA
TEST_CASE("gpu: right-hand sides that go along together have the bits that each has alone") {
  check_all_together(SolveOn::gpus);
}
#endif
TEST_CASE("GMRES and BiCGStab on subdomains: right-hand sides that go along together" *
          doctest::skip(more_than_two_ranks() || sanitized)) {
  const SchwarzSettings restricted{.subdomains = {.count = 5, .cut = Cut::graph, .overlap = 1}};
  check_together<sparse::Gmres<double>>(restricted, {}, SolveOn::fastest);
  check_together<sparse::BiCgStab<double>>(restricted, {}, SolveOn::fastest);
}

TEST_CASE("a coarse matrix without factors is told, by its name") {
  Runtime runtime;
  Dense path(8, 8);  // constants are in its kernel, and in the coarse space
  for (int i = 0; i + 1 < 8; ++i) {
    path(i, i) += 1;
    path(i + 1, i + 1) += 1;
    path(i, i + 1) = path(i + 1, i) = -1;
  }
  const auto mine = rows_of_this_rank(runtime, csr_of(path));
  const SchwarzSettings settings{.subdomains = {.count = 2}, .patches = 1};
  message_has(message_of([&] { Schwarz<double>(runtime, mine, settings); }),
              {"the coarse matrix (a row for each patch)", "not positive definite", "row 1"});
}

TEST_CASE("a matrix that is not positive definite, though its blocks are, is told") {
  Runtime runtime;
  // [1 2; 2 1] for pairs of rows that different subdomains have
  sparse::Csr<double> a;
  a.total_rows = a.cols = 64;
  for (Index i = 0; i < 64; ++i) {
    const Index other = (i + 32) % 64;
    for (const Index j : {std::min(i, other), std::max(i, other)}) {
      a.columns.push_back(j);
      a.values.push_back(i == j ? 1 : 2);
    }
    a.row_begin.push_back(static_cast<Index>(a.columns.size()));
  }
  const SchwarzSettings schwarz{.subdomains = {.count = 2}, .combination = Combination::symmetric};
  CHECK(solve_by_schwarz<ConjugateGradients<double>>(runtime, a, scattered(64), schwarz).report.reason ==
        Reason::indefinite);
  const auto found = solve_by_schwarz<Dbds<double>>(runtime, a, scattered(64), schwarz);
  CHECK(found.report.reason == Reason::divergence);
}

}  // namespace asterism::test
