// Colours, the numbers that rows get by them, and levels: by hand, and against slow twins.

#include "../../algorithms/sparse/graph/colouring.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "../../algorithms/sparse/graph/levels.hpp"
#include "../../algorithms/sparse/graph/numbering.hpp"
#include "../../algorithms/sparse/models/models.hpp"
#include "../../runtime/error.hpp"
#include "../support/dense.hpp"
#include "conjugate_gradients.hpp"
#include "random_matrix.hpp"

using namespace asterism;
using namespace asterism::sparse;
using namespace asterism::test;

namespace {

Csr<double> model(const char* text) { return model_matrix(parse_matrix_model(text)); }

/// Steps between all rows in the graph of A + A^T, one search for each row; above `most` where there are more.
Dense distances(PatternView a, int most) {
  std::vector<std::set<Index>> graph(at(a.rows()));
  for (Index i = 0; i < a.rows(); ++i)
    for (const Index j : a.row(i)) {
      graph[at(i)].insert(j);
      graph[at(j)].insert(i);
    }
  Dense result(a.rows(), a.rows());
  for (Index i = 0; i < a.rows(); ++i) {
    for (Index j = 0; j < a.rows(); ++j) result(i, j) = most + 1;
    std::set<Index> reached{i};
    for (int steps = 0; steps <= most; ++steps) {
      std::set<Index> next;
      for (const Index j : reached)
        if (result(i, j) > steps) {
          result(i, j) = steps;
          next.insert(graph[at(j)].begin(), graph[at(j)].end());
        }
      reached = std::move(next);
    }
  }
  return result;
}

/// First fit in the rows' order.
Array<int> first_fit(const Dense& distance, int q) {
  Array<int> colours;
  for (Index i = 0; i < distance.rows(); ++i) {
    std::set<int> taken;
    for (Index j = 0; j < i; ++j)
      if (distance(i, j) <= q) taken.insert(colours[at(j)]);
    int mine = 0;
    while (taken.contains(mine)) ++mine;
    colours.push_back(mine);
  }
  return colours;
}

void check_valid(const Colouring& colours, const Dense& distance, int q) {
  REQUIRE(static_cast<Index>(colours.of_rows.size()) == distance.rows());
  for (Index i = 0; i < distance.rows(); ++i)
    for (Index j = 0; j < i; ++j)
      if (distance(i, j) <= q) REQUIRE(colours.of_rows[at(i)] != colours.of_rows[at(j)]);
  const std::set<int> used(colours.of_rows.begin(), colours.of_rows.end());
  CHECK(static_cast<int>(used.size()) == colours.count);
  if (!used.empty()) CHECK((*used.begin() == 0 && *used.rbegin() == colours.count - 1));
}

Csr<double> path(Index rows) { return model_matrix({ModelFamily::poisson2d, rows}); }

}  // namespace

TEST_CASE("a path of rows: two colours, and one more for each step") {
  CHECK(colour(path(5), 1).of_rows == Array<int>{0, 1, 0, 1, 0});
  CHECK(colour(path(5), 2).of_rows == Array<int>{0, 1, 2, 0, 1});
  CHECK(colour(path(5), 4).of_rows == Array<int>{0, 1, 2, 3, 4});
  CHECK(colour(path(5), 100).count == 5);
}

TEST_CASE("no rows, one row, and rows without neighbours") {
  CHECK(colour(Csr<double>{}, 1).count == 0);
  CHECK(colour(Csr<double>{}, 3).of_rows.empty());
  CHECK(colour(path(1), 1).count == 1);
  CHECK(colour(matrix_of({{{0, 1.0}}, {{1, 1.0}}, {}}), 2).of_rows == Array<int>{0, 0, 0});
}

TEST_CASE("two colours wherever two are enough, where rows in order would take more") {
  // A path in the order 0 - 3 - 2 - 1: rows 0, 1 and 2, which come first, could not tell.
  const Csr<double> a = matrix_of({{{0, 1.0}, {3, 1.0}},
                                   {{1, 1.0}, {2, 1.0}},
                                   {{1, 1.0}, {2, 1.0}, {3, 1.0}},
                                   {{0, 1.0}, {2, 1.0}, {3, 1.0}}});
  CHECK(first_fit(distances(a, 1), 1) == Array<int>{0, 0, 1, 2});
  CHECK(colour(a, 1).of_rows == Array<int>{0, 1, 0, 1});
}

TEST_CASE("an entry on one side of the diagonal is a step both ways") {
  const Csr<double> a = matrix_of({{{0, 1.0}}, {{0, 1.0}, {1, 1.0}}, {{2, 1.0}}, {{3, 1.0}, {1, 1.0}}});
  CHECK(colour(a, 1).of_rows == Array<int>{0, 1, 0, 0});
  CHECK(colour(a, 2).of_rows == Array<int>{0, 1, 0, 2});
}

TEST_CASE("against slow twins: no two rows within q steps share a colour, and rows get the first that fits") {
  for (unsigned seed = 1; seed <= 30; ++seed)
    for (int q = 1; q <= 4; ++q) {
      const Symmetry symmetry = seed % 2 == 0 ? Symmetry::symmetric : Symmetry::unsymmetric;
      const Csr<double> a = random_matrix(1 + 3 * static_cast<Index>(seed), 0.5 + seed % 5, symmetry, seed);
      const Dense distance = distances(a, q);
      const Colouring colours = colour(a, q);
      check_valid(colours, distance, q);
      if (colours.count > 2) CHECK(colours.of_rows == first_fit(distance, q));
    }
}

// Published for the two matrices that the first two models are like; the others are what there was at first.
TEST_CASE("not more colours than published, the same for any number of threads") {
  struct Published {
    const char* model;
    int colours[4];
  };
  for (const auto& [text, most] :
       {Published{"ecology-like:90x101", {2, 7, 8, 19}}, Published{"circuit-like:9001", {4, 10, 17, 35}},
        Published{"triangulation-like:90x101", {4, 9, 17, 27}},
        Published{"poisson3d:17x19x23", {2, 13, 22, 46}}})
    for (int q = 1; q <= 4; ++q) {
      CAPTURE(text);
      CAPTURE(q);
      const Csr<double> a = model(text);
      const Colouring one = colour(a, q, 1);
      CHECK(one.count <= most[q - 1]);
      for (const int threads : {0, 2, 3, 5}) CHECK(colour(a, q, threads).of_rows == one.of_rows);
    }
}

TEST_CASE("a valid colouring over many chunks of rows") {
  const Csr<double> a = random_matrix(2500, 2, Symmetry::symmetric, 5);
  for (const int q : {1, 2}) check_valid(colour(a, q, 2), distances(a, q), q);
}

TEST_CASE("what cannot be coloured is refused") {
  CHECK_THROWS_WITH_AS(colour(path(3), 0), doctest::Contains("q = 0 is asked for"), Error);
  CHECK_THROWS_WITH_AS(colour(model_rows({ModelFamily::poisson2d, 5}, 1, 3), 1),
                       doctest::Contains("rows 1 to 3 of a matrix of 5 rows are given"), Error);
  Csr<double> wide = path(3);
  wide.cols = 4;
  CHECK_THROWS_WITH_AS(colour(wide, 1), doctest::Contains("the matrix is 3 x 4"), Error);
}

TEST_CASE("rows by unit, colour and number") {
  const Colouring colours{3, {2, 0, 1, 0, 2, 0, 0}};
  using Segment = Numbering::Segment;

  const Numbering plain = number_by_colour(colours, 100);
  CHECK(plain.old_of_new == std::vector<Index>{1, 3, 5, 6, 2, 0, 4});
  CHECK(plain.new_of_old == std::vector<Index>{5, 0, 4, 1, 6, 2, 3});
  CHECK(plain.segments == std::vector<Segment>{{0, 4, 0}, {4, 5, 1}, {5, 7, 2}});

  const Numbering in_units = number_by_colour(colours, 3);
  CHECK(in_units.old_of_new == std::vector<Index>{1, 2, 0, 3, 5, 4, 6});
  CHECK(in_units.segments ==
        std::vector<Segment>{{0, 1, 0}, {1, 2, 1}, {2, 3, 2}, {3, 5, 0}, {5, 6, 2}, {6, 7, 0}});
  CHECK(in_units.of_colours == std::vector<std::vector<Segment>>{
                                   {{0, 1, 0}, {3, 5, 0}, {6, 7, 0}}, {{1, 2, 1}}, {{2, 3, 2}, {5, 6, 2}}});

  const Numbering natural = number_by_colour(colours, 1);
  CHECK(natural.old_of_new == std::vector<Index>{0, 1, 2, 3, 4, 5, 6});
  CHECK(number_by_colour({}, 1).rows() == 0);
  CHECK_THROWS_WITH_AS(number_by_colour(colours, 0), doctest::Contains("units of 0 rows"), Error);
}

TEST_CASE("a permuted matrix has its rows and columns in the new order") {
  for (const Index unit : {Index{1}, Index{7}, Index{1000}}) {
    const Csr<double> a = random_matrix(40, 4, Symmetry::unsymmetric, 3);
    const Numbering numbering = number_by_colour(colour(a, 2), unit);
    const Csr<double> permuted_a = permuted(a, numbering);
    const Dense before = dense(a), after = dense(permuted_a);
    for (Index i = 0; i < 40; ++i)
      for (Index j = 0; j < 40; ++j)
        REQUIRE(after(numbering.new_of_old[at(i)], numbering.new_of_old[at(j)]) == before(i, j));
    CHECK(permuted_a.entries() == a.entries());
    CHECK(permuted_a.total_rows == 40);
    for (Index i = 0; i < 40; ++i)
      CHECK(std::is_sorted(permuted_a.columns.begin() + permuted_a.row_begin[at(i)],
                           permuted_a.columns.begin() + permuted_a.row_begin[at(i + 1)]));
    const Pattern pattern = permuted(PatternView(a), numbering);
    CHECK(pattern.row_begin == permuted_a.row_begin);
    CHECK(pattern.columns == permuted_a.columns);
  }
  CHECK_THROWS_WITH_AS(permuted(path(3), number_by_colour(colour(path(4), 1), 4)),
                       doctest::Contains("the matrix has 3 rows, the numbering 4"), Error);
}

TEST_CASE("from one numbering to another") {
  const Csr<double> a = random_matrix(50, 3, Symmetry::unsymmetric, 8);
  const Colouring colours = colour(a, 1);
  const Numbering by_colour = number_by_colour(colours, 50), in_units = number_by_colour(colours, 16);
  const Csr<double> direct = permuted(a, in_units),
                    around = permuted(permuted(a, by_colour), renumbering(by_colour, in_units));
  CHECK(around.row_begin == direct.row_begin);
  CHECK(around.columns == direct.columns);
  CHECK(around.values == direct.values);
  CHECK(renumbering(by_colour, in_units).segments == in_units.segments);
  CHECK_THROWS_WITH_AS(renumbering(by_colour, number_by_colour(colour(path(4), 1), 4)),
                       doctest::Contains("50 rows and 4"), Error);
}

TEST_CASE("levels of triangular systems") {
  //  x . . . .     row 0 needs none, row 1 none, row 2 row 0, row 3 rows 1 and 2, row 4 row 1
  const Csr<double> a = matrix_of({{{0, 1.0}, {4, 1.0}},
                                   {{1, 1.0}},
                                   {{0, 1.0}, {2, 1.0}, {3, 1.0}},
                                   {{1, 1.0}, {2, 1.0}, {3, 1.0}},
                                   {{1, 1.0}, {4, 1.0}}});
  const Levels lower = levels_of(a, Triangle::lower);
  CHECK(lower.of_rows == std::vector<Index>{0, 0, 1, 2, 1});
  CHECK(lower.rows == std::vector<Index>{0, 1, 2, 4, 3});
  CHECK(lower.level_begin == std::vector<Index>{0, 2, 4, 5});
  const Levels upper = levels_of(a, Triangle::upper);
  CHECK(upper.of_rows == std::vector<Index>{1, 0, 1, 0, 0});
  CHECK(upper.rows == std::vector<Index>{1, 3, 4, 0, 2});
  CHECK(upper.count() == 2);
  CHECK(levels_of(Csr<double>{}, Triangle::lower).count() == 0);
}

TEST_CASE("levels: as many as a path is long, as colours where rows are sorted by them") {
  CHECK(levels_of(path(9), Triangle::lower).count() == 9);
  CHECK(levels_of(path(9), Triangle::upper).count() == 9);
  const Csr<double> grid = model("poisson2d:30x40");
  CHECK(levels_of(grid, Triangle::lower).count() == 69);
  for (const int q : {1, 2, 3}) {
    const Colouring colours = colour(grid, q);
    const Csr<double> sorted = permuted(grid, number_by_colour(colours, grid.rows()));
    for (const Triangle triangle : {Triangle::lower, Triangle::upper})
      CHECK(levels_of(sorted, triangle).count() <= colours.count);
  }
}
