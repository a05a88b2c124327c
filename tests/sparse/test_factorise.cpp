// Patterns of fill and incomplete factorisations: by hand, against dense twins, and by the iterations that they save.

#include "../../algorithms/sparse/preconditioners/factorise.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "../../algorithms/sparse/graph/levels.hpp"
#include "../../algorithms/sparse/models/models.hpp"
#include "../../algorithms/sparse/preconditioners/fill.hpp"
#include "../../runtime/error.hpp"
#include "../support/dense.hpp"
#include "../support/skip.hpp"
#include "conjugate_gradients.hpp"
#include "random_matrix.hpp"

using namespace asterism;
using namespace asterism::sparse;
using namespace asterism::test;

namespace {

using Segments = std::vector<Numbering::Segment>;

SkipUnless matrices_there() {
  return {!matrices().empty(), "ASTERISM_DATA is not set: the folder with matrices/"};
}

Csr<double> model(const char* text) { return model_matrix(parse_matrix_model(text)); }

/// (I1) for all entries, in a dense matrix; entries within a segment are left out.
Dense levels_of_fill(PatternView a, int p, const Segments& segments) {
  const Dense entries = dense(a);
  const double infinite = 1e6;
  const Index n = a.rows();
  Dense dropped(n, n), level(n, n), filled(n, n);
  for (const auto& [first, end, colour] : segments)
    for (Index i = first; i < end; ++i)
      for (Index j = first; j < end; ++j) dropped(i, j) = i != j ? 1 : 0;
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j)
      level(i, j) = i == j || (entries(i, j) != 0 && dropped(i, j) == 0) ? 0 : infinite;
    for (Index k = 0; k < i; ++k)
      if (level(i, k) <= p)
        for (Index j = k + 1; j < n; ++j)
          if (dropped(i, j) == 0) level(i, j) = std::min(level(i, j), level(i, k) + level(k, j) + 1);
    for (Index j = 0; j < n; ++j) {
      if (level(i, j) > p) level(i, j) = infinite;
      filled(i, j) = level(i, j) < infinite ? 1 : 0;
    }
  }
  return filled;
}

/// The steps up to which there is a path between two rows, as 1s.
Dense power(PatternView a, int steps) {
  Dense result = diagonal(a.rows(), 1);
  for (int step = 0; step < steps; ++step) {
    const Dense next = result * dense(a);
    for (Index i = 0; i < a.rows(); ++i)
      for (Index j = 0; j < a.rows(); ++j)
        if (next(i, j) != 0) result(i, j) = 1;
  }
  return result;
}

/// Where b has none, a has none.
bool is_within(const Dense& a, const Dense& b) {
  return entries_where(a, [&](Index i, Index j) { return b(i, j) == 0; }) == Dense(a.rows(), a.cols());
}

Dense unit_lower(Dense lu) {
  for (Index i = 0; i < lu.rows(); ++i) lu(i, i) = 1;
  return lower(lu);
}

/// Sorted by colour, with ILU(p, q)'s pattern and factors.
struct Coloured {
  Numbering numbering;
  Csr<double> matrix;
  Csr<double> lu;

  Coloured(const Csr<double>& a, int p, int q)
      : numbering(number_by_colour(colour(a, q), a.rows())), matrix(permuted(a, numbering)) {
    const Factorisation done = incomplete_lu(matrix, fill_pattern(matrix, p, numbering.segments));
    CHECK_FALSE(done.breakdown);
    lu = done.factor;
  }
};

/// What the sources of the published counts solve: b = A 1, to 1e-8.
Index iterations_to_ones(const Csr<double>& a, const Preconditioner& solve) {
  return iterations(a, product(a, Vector(at(a.rows()), 1.0)), solve, 1e-8);
}

bool within(Index count, double published, double share) {
  INFO("published " << published << ", here " << count);
  return std::abs(static_cast<double>(count) - published) <= share * published;
}

Csr<double> two_by_two(double a, double b, double c, double d) {
  return matrix_of({{{0, a}, {1, b}}, {{0, c}, {1, d}}});
}

}  // namespace

TEST_CASE("fill of an arrow: one elimination fills all, level by level") {
  //  x x . x
  //  x x x .      row 0 joins 1 and 3 with level 1; row 1 then 2 and 3, by an entry of level 1, with level 2
  //  . x x .
  //  x . . x
  const Csr<double> a = matrix_of({{{0, 1.0}, {1, 1.0}, {3, 1.0}},
                                   {{0, 1.0}, {1, 1.0}, {2, 1.0}},
                                   {{1, 1.0}, {2, 1.0}},
                                   {{0, 1.0}, {3, 1.0}}});
  CHECK(fill_pattern(a, 0).columns == a.columns);
  const Pattern one = fill_pattern(a, 1);
  CHECK(one.row_begin == Array<Index>{0, 3, 7, 9, 12});
  CHECK(one.columns == Array<Index>{0, 1, 3, 0, 1, 2, 3, 1, 2, 0, 1, 3});
  const Pattern two = fill_pattern(a, 2);
  CHECK(two.columns == Array<Index>{0, 1, 3, 0, 1, 2, 3, 1, 2, 3, 0, 1, 2, 3});
  // Rows 1 and 3 of a segment are not joined, and then join no others.
  const Segments segments{{0, 1, 0}, {1, 4, 1}};
  CHECK(fill_pattern(a, 3, segments).columns == Array<Index>{0, 1, 3, 0, 1, 2, 0, 3});
}

TEST_CASE("the diagonal is always there") {
  const Csr<double> a = matrix_of({{{1, 1.0}}, {}, {{0, 1.0}}});
  CHECK(fill_pattern(a, 0).columns == Array<Index>{0, 1, 1, 0, 2});
  CHECK(fill_pattern(a, 1).columns == Array<Index>{0, 1, 1, 0, 1, 2});
  CHECK(fill_pattern(Csr<double>{}, 3).rows() == 0);
}

TEST_CASE("fill against a dense twin, within |A|^(p + 1), with and without segments") {
  for (unsigned seed = 1; seed <= 24; ++seed) {
    const Symmetry symmetry = seed % 2 == 0 ? Symmetry::symmetric : Symmetry::unsymmetric;
    const Csr<double> a = random_matrix(2 * static_cast<Index>(seed), 0.5 + seed % 4, symmetry, seed);
    for (const int p : {0, 1, 2, 3, 1000, std::numeric_limits<int>::max()}) {
      const Dense pattern = dense(fill_pattern(a, p));
      CHECK(pattern == levels_of_fill(a, std::min(p, 1000), {}));
      if (p < 4) CHECK(is_within(pattern, power(a, p + 1)));
    }
    for (const int q : {1, 2, 3}) {
      const Numbering numbering = number_by_colour(colour(a, q), a.rows());
      const Csr<double> sorted = permuted(a, numbering);
      for (const int p : {0, 1, 2, 3}) {
        const Dense pattern = dense(fill_pattern(sorted, p, numbering.segments));
        CHECK(pattern == levels_of_fill(sorted, p, numbering.segments));
        if (q > p) CHECK(pattern == dense(fill_pattern(sorted, p)));  // nothing had to be dropped
      }
    }
  }
}

TEST_CASE("fill is the same for any number of threads") {
  const Csr<double> a = model("circuit-like:20000");
  const Numbering numbering = number_by_colour(colour(a, 2), a.rows());
  const Csr<double> sorted = permuted(a, numbering);
  const Pattern one = fill_pattern(sorted, 2, numbering.segments, 1);
  for (const int threads : {0, 2, 5}) {
    const Pattern several = fill_pattern(sorted, 2, numbering.segments, threads);
    CHECK(several.row_begin == one.row_begin);
    CHECK(several.columns == one.columns);
  }
}

TEST_CASE("factors in turns by several threads have the bits of one row after the other") {
  const auto same = [](const Factorisation& a, const Factorisation& b) {
    CHECK(a.factor.columns == b.factor.columns);
    CHECK(a.factor.values == b.factor.values);
  };
  const Csr<double> a = model("ecology-like:60x70");
  const Numbering numbering = number_by_colour(colour(a, 2), a.rows());
  const Csr<double> sorted = permuted(a, numbering);
  const Pattern pattern = fill_pattern(sorted, 1, numbering.segments);
  Turns colours = one_by_one(a.rows());
  colours.begins = {0};
  for (const Numbering::Segment& segment : numbering.segments) colours.begins.push_back(segment.end);
  const Levels levels = levels_of(a, Triangle::lower);
  for (const int threads : {1, 2, 5}) {
    same(incomplete_lu(sorted, pattern, colours, 0, threads), incomplete_lu(sorted, pattern));
    same(incomplete_cholesky(a, a, {levels.rows, levels.level_begin}, 0, threads), incomplete_cholesky(a, a));
  }
  // Rows 9 and 4000 break down: 9 is told, whoever comes first.
  Csr<double> broken = a;
  for (const Index row : {Index{9}, Index{4000}})
    for (Index n = broken.row_begin[at(row)]; n < broken.row_begin[at(row + 1)]; ++n)
      if (broken.columns[at(n)] == row) broken.values[at(n)] = -1;
  for (const int threads : {1, 3})
    CHECK(incomplete_cholesky(broken, broken, {levels.rows, levels.level_begin}, 0, threads).breakdown->row ==
          9);
}

TEST_CASE("fill that cannot be found is refused") {
  const Csr<double> a = model("poisson2d:2x2");
  CHECK_THROWS_WITH_AS(fill_pattern(a, -1), doctest::Contains("level -1 is asked for"), Error);
  CHECK_THROWS_WITH_AS(fill_pattern(a, 0, Segments{{0, 3, 0}}), doctest::Contains("3 rows, the matrix 4"),
                       Error);
  CHECK_THROWS_WITH_AS(fill_pattern(a, 0, Segments{{0, 3, 0}, {2, 4, 1}}),
                       doctest::Contains("segment [2, 4) follows row 3"), Error);
}

TEST_CASE("ILU(0) by hand") {
  const Factorisation done = incomplete_lu(two_by_two(2, 6, 4, 15), two_by_two(2, 6, 4, 15));
  CHECK_FALSE(done.breakdown);
  CHECK(done.shift == 0);
  CHECK(done.factor.values == Array<double>{2, 6, 2, 3});
  // Of the pattern, not of the matrix: what it lacks is ignored, what it has more is zero before.
  const Csr<double> diagonal = matrix_of({{{0, 1.0}}, {{1, 1.0}}});
  CHECK(incomplete_lu(two_by_two(2, 6, 4, 15), diagonal).factor.values == Array<double>{2, 15});
  CHECK(incomplete_lu(diagonal, two_by_two(1, 1, 1, 1)).factor.values == Array<double>{1, 0, 0, 1});
}

TEST_CASE("incomplete factors give A on their pattern; with all fill they give A") {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    const Csr<double> a = random_matrix(4 * static_cast<Index>(seed), 3, Symmetry::unsymmetric, seed);
    for (const int p : {0, 1, 2, 1000}) {
      const Pattern pattern = fill_pattern(a, p);
      const Factorisation done = incomplete_lu(a, pattern);
      REQUIRE_FALSE(done.breakdown);
      CHECK(done.factor.columns == pattern.columns);
      const Dense lu = dense(done.factor), there = dense(pattern);
      const Dense difference = unit_lower(lu) * upper(lu) - dense(a);
      const Dense on_it = entries_where(difference, [&](Index i, Index j) { return there(i, j) != 0; });
      CHECK(norm(on_it) <= 1e-13 * norm(dense(a)));
      if (p == 1000) CHECK(norm(difference) <= 1e-13 * norm(dense(a)));
    }
  }
}

TEST_CASE("ILU with all fill is the LU of an oracle that does not exchange rows") {
  const Csr<double> a = random_matrix(30, 4, Symmetry::symmetric, 9);
  const Dense l = cholesky(dense(a)).value();
  Dense u = transposed(l);
  for (Index i = 0; i < u.rows(); ++i)
    for (Index j = i; j < u.cols(); ++j) u(i, j) *= l(i, i);
  CHECK(norm(upper(dense(incomplete_lu(a, fill_pattern(a, 1000)).factor)) - u) <= 1e-13 * norm(u));
  CHECK(norm(dense(incomplete_cholesky(a, fill_pattern(a, 1000)).factor) - l) <= 1e-13 * norm(l));
}

TEST_CASE("IC(0) against the textbook's loops over a dense matrix") {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    const Csr<double> a = random_matrix(4 * static_cast<Index>(seed), 3, Symmetry::symmetric, seed);
    Dense l = dense(a);
    for (Index k = 0; k < a.rows(); ++k) {
      l(k, k) = std::sqrt(l(k, k));
      for (Index i = k + 1; i < a.rows(); ++i) l(i, k) /= l(k, k);
      for (Index j = k + 1; j < a.rows(); ++j)
        for (Index i = j; i < a.rows(); ++i)
          if (l(i, j) != 0) l(i, j) -= l(i, k) * l(j, k);
    }
    const Factorisation done = incomplete_cholesky(a, a);
    REQUIRE_FALSE(done.breakdown);
    CHECK(norm(dense(done.factor) - lower(l)) <= 1e-14 * norm(l));
  }
}

TEST_CASE("a breakdown tells its row and pivot") {
  const auto broken = [](const Factorisation& done) {
    REQUIRE(done.breakdown);
    return *done.breakdown;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Csr<double> singular = two_by_two(1, 2, 2, 4), indefinite = two_by_two(1, 2, 2, 1),
                    no_number = two_by_two(1, 0, 0, nan);
  CHECK(broken(incomplete_lu(two_by_two(0, 1, 1, 0), singular)).row == 0);
  CHECK(broken(incomplete_lu(singular, singular)).row == 1);
  CHECK(broken(incomplete_lu(singular, singular)).pivot == 0);
  CHECK(broken(incomplete_lu(two_by_two(1, 2, 2, 4 + 0x1p-50), singular)).pivot == 0x1p-50);
  CHECK(broken(incomplete_lu(no_number, no_number)).row == 1);
  CHECK_FALSE(incomplete_lu(two_by_two(1e-300, 0, 0, 1e-300), singular).breakdown);
  CHECK_FALSE(incomplete_lu(indefinite, indefinite).breakdown);  // negative pivots are none for LU

  CHECK(broken(incomplete_cholesky(indefinite, indefinite)).row == 1);
  CHECK(broken(incomplete_cholesky(indefinite, indefinite)).pivot == -3);
  CHECK(broken(incomplete_cholesky(singular, singular)).pivot == 0);
  CHECK(broken(incomplete_cholesky(no_number, no_number)).row == 1);
}

TEST_CASE("the shift grows until there is no breakdown") {
  const Csr<double> indefinite = two_by_two(1, 2, 2, 1);
  const Factorisation done =
      with_growing_shift([&](double shift) { return incomplete_cholesky(indefinite, indefinite, shift); });
  CHECK_FALSE(done.breakdown);
  CHECK(done.shift == doctest::Approx(1.024));  // it has to be above 1
  CHECK(done.factor.values[0] == doctest::Approx(std::sqrt(2.024)));
  CHECK(done.factor.values[1] == doctest::Approx(2 / std::sqrt(2.024)));

  const Csr<double> good = model("poisson2d:3x3"), hopeless = two_by_two(1, 2, 2, 0);
  CHECK(with_growing_shift([&](double shift) { return incomplete_lu(good, good, shift); }).shift == 0);
  const Factorisation failed =
      with_growing_shift([&](double shift) { return incomplete_cholesky(hopeless, hopeless, shift); });
  REQUIRE(failed.breakdown);
  CHECK(failed.breakdown->row == 1);
  CHECK(failed.shift > 1000);
}

TEST_CASE("what cannot be factorised is refused") {
  const Csr<double> a = model("poisson2d:2x1"), larger = model("poisson2d:3x1");
  CHECK_THROWS_WITH_AS(incomplete_lu(a, larger), doctest::Contains("the matrix has 2 rows, the pattern 3"),
                       Error);
  CHECK_THROWS_WITH_AS(incomplete_cholesky(a, matrix_of({{{0, 1.0}}, {{0, 1.0}}})),
                       doctest::Contains("no diagonal entry in row 1"), Error);
  CHECK_THROWS_WITH_AS(incomplete_lu(a, a, -0.5), doctest::Contains("shifted by -0.5"), Error);
  CHECK_THROWS_AS(incomplete_lu(a, a, std::numeric_limits<double>::quiet_NaN()), Error);
  CHECK_THROWS_AS(incomplete_lu(model_rows({ModelFamily::poisson2d, 4}, 0, 2), a), Error);
}

// The counts are rocALUTION's.
TEST_CASE("iterations on the Laplacian of a 100 x 100 grid") {
  const Csr<double> a = model("poisson2d:100x100");
  CHECK(within(iterations_to_ones(a, diagonal_preconditioner(a)), 182, 0.05));
  const Csr<double> l = incomplete_cholesky(a, a).factor;
  CHECK(within(iterations_to_ones(a, cholesky_preconditioner(l)), 78, 0.05));
  const Coloured ilu0(a, 0, 1), ilu1(a, 1, 2);
  CHECK(within(iterations_to_ones(ilu0.matrix, lu_preconditioner(ilu0.lu)), 92, 0.05));
  CHECK(within(iterations_to_ones(ilu0.matrix, gauss_seidel_preconditioner(ilu0.matrix)), 92, 0.05));
  CHECK(within(iterations_to_ones(ilu1.matrix, lu_preconditioner(ilu1.lu)), 84, 0.1));
}

TEST_CASE("iterations on matrices of structures and power grids" * matrices_there()) {
  struct Published {
    const char* name;
    double diagonal, cholesky, coloured_lu, coloured_gauss_seidel;
  };
  for (const auto& [name, diagonal, cholesky, coloured_lu, coloured_gauss_seidel] :
       {Published{"1138_bus", 934, 126, 137, 465}, Published{"bcsstk16", 196, 40, 62, 75}}) {
    CAPTURE(name);
    const Csr<double> a = read_matrix(name);
    CHECK(within(iterations_to_ones(a, diagonal_preconditioner(a)), diagonal, 0.05));
    const Csr<double> l = incomplete_cholesky(a, a).factor;
    CHECK(within(iterations_to_ones(a, cholesky_preconditioner(l)), cholesky, 0.05));
    const Coloured c(a, 0, 1);
    CHECK(within(iterations_to_ones(c.matrix, lu_preconditioner(c.lu)), coloured_lu, 0.05));
    CHECK(within(iterations_to_ones(c.matrix, gauss_seidel_preconditioner(c.matrix)), coloured_gauss_seidel,
                 0.05));
  }
}

TEST_CASE("matrices that break IC(0) do with a shift, which saves iterations" * matrices_there()) {
  for (const auto& [name, diagonal] : {std::pair{"bcsstk21", 321}, std::pair{"ex15", 217}}) {
    CAPTURE(name);
    const Csr<double> a = read_matrix(name);
    const Factorisation broken = incomplete_cholesky(a, a);
    REQUIRE(broken.breakdown);
    CHECK(broken.breakdown->pivot <= 0);
    const Factorisation shifted =
        with_growing_shift([&](double shift) { return incomplete_cholesky(a, a, shift); });
    CHECK_FALSE(shifted.breakdown);
    CHECK(shifted.shift > 0);
    CHECK(shifted.shift < 1);
    CHECK(within(iterations_to_ones(a, diagonal_preconditioner(a)), diagonal, 0.05));
    CHECK(iterations_to_ones(a, cholesky_preconditioner(shifted.factor)) < diagonal);
  }
}

TEST_CASE("more fill, fewer iterations: [Weiss 2011]'s order of ILU(p, q)" * quick_enough()) {
  for (const char* const text : {"ecology-like:120x120", "circuit-like:10000"}) {
    CAPTURE(text);
    const Csr<double> a = model(text);
    const Vector ones(at(a.rows()), 1.0);  // the same in any order of the rows
    Index before = iterations(
        a, ones, [](const Vector& r) { return r; }, 1e-6);
    const auto improves = [&](int p, int q) {
      const Coloured c(a, p, q);
      const Index now = iterations(c.matrix, ones, lu_preconditioner(c.lu), 1e-6);
      INFO("ILU(" << p << ", " << q << "): " << now << " after " << before);
      CHECK(now < before);
      before = now;
    };
    improves(0, 1);
    improves(1, 2);
    improves(2, 3);
    improves(3, 4);
    const Index most = before;
    before = std::numeric_limits<Index>::max();
    improves(3, 3);  // drops entries, for fewer colours
    CHECK(before >= most);
  }
}
