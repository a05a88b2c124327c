// The system that is left of one with two colours, against dense algebra, however ranks have the rows.
#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "../support/dense.hpp"
#include "../support/skip.hpp"
#include "algorithms/decomposition/cut/whole_matrix.hpp"
#include "algorithms/sparse/models/models.hpp"
#include "algorithms/sparse/reduction/reduced_system.hpp"
#include "linear_solves.hpp"

namespace asterism::test {
namespace {

using sparse::Csr;
using sparse::MatrixClass;
using sparse::ReducedSystem;

enum class Mirrored { yes, no };

/// Rows of two colours by chance, about three neighbours each, some without any; a diagonal that outweighs its row.
Dense two_coloured(Index n, Mirrored mirrored, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> value(-1, 1), chance(0, 1);
  std::vector<bool> side;
  for (Index i = 0; i < n; ++i) side.push_back(chance(random) < 0.5);
  Dense a(n, n);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < i; ++j)
      if (side[static_cast<std::size_t>(i)] != side[static_cast<std::size_t>(j)] &&
          chance(random) * static_cast<double>(n) < 6) {
        a(i, j) = value(random);
        a(j, i) = mirrored == Mirrored::yes ? a(i, j) : value(random);
      }
  for (Index i = 0; i < n; ++i) {
    double sum = 1 + 0.5 * value(random);
    for (Index j = 0; j < n; ++j) sum += std::abs(a(i, j));
    a(i, i) = sum;
  }
  return a;
}

std::optional<ReducedSystem<double>> reduced(const Runtime& runtime, const Csr<double>& mine,
                                             MatrixClass matrix_class, const sparse::KeepsSchur& keeps = {}) {
  std::map<std::string, double> seconds;
  return ReducedSystem<double>::of(runtime, mine, matrix_class, keeps, seconds);
}

struct Case {
  Index n;
  Mirrored mirrored;
  Rows rows;
};

/// S = C - F D^-1 E, and x from b by way of it.
void check(const Runtime& runtime, const Case& its) {
  CAPTURE(its.n);
  const Dense whole = two_coloured(its.n, its.mirrored, static_cast<unsigned>(its.n));
  const Csr<double> all = csr_of(whole);
  const std::optional<sparse::Colouring> colours = sparse::two_colours(all);
  REQUIRE(colours);
  std::vector<Index> red, black;
  for (Index i = 0; i < its.n; ++i)
    (colours->of_rows[static_cast<std::size_t>(i)] == 0 ? red : black).push_back(i);

  const auto [first, end] = rows_of(its.rows, runtime, its.n);
  const Csr<double> mine = sparse::rows_of(all, Part{.first = first, .size = end - first});
  const auto system = reduced(runtime, mine, MatrixClass::general);
  REQUIRE(system);
  CHECK(system->facts().rows_of_colours ==
        std::vector<Index>{static_cast<Index>(red.size()), static_cast<Index>(black.size())});
  Dense inverse = part_of(whole, red, red);  // of D
  for (Index r = 0; r < inverse.rows(); ++r) inverse(r, r) = 1 / inverse(r, r);
  const Dense s =
      part_of(whole, black, black) - part_of(whole, black, red) * inverse * part_of(whole, red, black);
  const Dense found = dense(decomposition::whole_matrix(runtime, system->matrix()));
  REQUIRE(found.rows() == s.rows());
  CHECK(norm(found - s) < 1e-12);
  if (its.mirrored == Mirrored::yes) CHECK(found == transposed(found));

  constexpr double scale = 4;
  const DenseVector x = dense(scattered(its.n)), b = whole * x, x_black = part_of(x, black) / scale,
                    b_black = s * x_black;
  const double *const my_b = std::begin(b) + first, *const my_x = std::begin(x) + first;
  const auto reduced_b = system->right_hand_side(my_b, scale);
  const auto reduced_x = system->first_guess(my_x, scale);
  const auto at = static_cast<std::size_t>(system->matrix().first_row);
  REQUIRE(static_cast<Index>(reduced_b.size()) == system->matrix().rows());
  for (std::size_t k = 0; k < reduced_b.size(); ++k) {
    CHECK(std::abs(reduced_b[k] - b_black[at + k]) < 1e-11);
    CHECK(reduced_x[k] == x_black[at + k]);
  }
  std::vector<double> again(static_cast<std::size_t>(end - first), 77);
  const auto scaled = system->solution(my_b, reduced_x, scale, again.data());
  for (Index i = 0; i < end - first; ++i) {
    const auto row = static_cast<std::size_t>(first + i);
    CHECK(std::abs(again[static_cast<std::size_t>(i)] - x[row]) < 1e-13);
    CHECK(std::abs(system->residual(i, my_b, scale, scaled)) < 1e-11);
    CHECK(std::abs(system->residual(i, my_x, scale, scaled) - (x[row] - b[row]) / scale) < 1e-11);
  }
}

}  // namespace

TEST_CASE("the rows of one of two colours are eliminated") {
  const Runtime runtime;
  for (const Index n : {7, 17, 64, 97, 500})
    for (const Mirrored mirrored : {Mirrored::yes, Mirrored::no})
      for (const Rows rows : {Rows::shared, Rows::unequal, Rows::on_rank_0})
        check(runtime, {n, mirrored, rows});
}

namespace {

bool keep_all(const sparse::BlockShape&, int) { return true; }

/// Of a matrix with whole diagonals: S x, and x from b, as the system with S formed has them.
void check_unformed(const Runtime& runtime, const Csr<double>& a) {
  CAPTURE(a.total_rows);
  const auto formed = reduced(runtime, a, MatrixClass::positive_definite);
  const auto system = reduced(runtime, a, MatrixClass::positive_definite, keep_all);
  REQUIRE(formed);
  REQUIRE(system);
  REQUIRE(system->unformed() != nullptr);
  const auto& [shape, values, begins, columns, differences] = system->unformed()->arrays();
  const Index rows = shape.rows, n = a.total_rows;
  REQUIRE(rows == formed->own_rows());
  CHECK(system->own_rows() == rows);
  CHECK(system->facts().reduced_rows == rows);
  CHECK(system->unformed()->entries() == rows + (a.entries() - n) / 2);
  const Dense s = dense(formed->matrix());
  const sparse::SchurRows<double> schur{values.data(), values.data() + rows, rows,
                                        static_cast<int>(columns.size()), columns.data()};
  const DenseVector x = dense(scattered(n)), y = dense(scattered(rows)), sy = s * y;
  for (Index k = 0; k < rows; ++k) {
    CHECK(std::abs(schur.product(k, std::begin(y)) - sy[static_cast<std::size_t>(k)]) < 1e-12);
    const double pivot = 1 / system->unformed()->inverse_diagonal()[static_cast<std::size_t>(k)];
    CHECK(std::abs(pivot - s(k, k)) < 1e-12 * values[k]);
  }
  CHECK(shape.reach == columns[columns.size() - 1] - columns[0]);

  constexpr double scale = 4;
  const DenseVector b = dense(a) * x;
  const auto its_b = system->right_hand_side(std::begin(b), scale),
             formed_b = formed->right_hand_side(std::begin(b), scale);
  const auto its_x = system->first_guess(std::begin(x), scale);
  for (std::size_t k = 0; k < its_b.size(); ++k) CHECK(std::abs(its_b[k] - formed_b[k]) < 1e-12);
  std::vector<double> again(static_cast<std::size_t>(n), 77);
  const auto scaled = system->solution(std::begin(b), its_x, scale, again.data());
  for (Index i = 0; i < n; ++i) {
    const auto row = static_cast<std::size_t>(i);
    CHECK(std::abs(again[row] - x[row]) < 1e-12);
    CHECK(std::abs(system->residual(i, std::begin(b), scale, scaled)) < 1e-12);
    CHECK(std::abs(system->residual(i, std::begin(x), scale, scaled) - (x[row] - b[row]) / scale) < 1e-12);
  }
}

}  // namespace

TEST_CASE("a Schur complement need not be formed: all follows from its factors" *
          doctest::skip(!shape_is("cpu"))) {  // one rank has all of a matrix that is kept so
  const Runtime runtime;
  for (const char* name : {"ecology-like:8x6", "ecology-like:9x7", "ecology-like:7x10", "ecology-like:1x9",
                           "ecology-like:30x2", "ecology-like:2x1"}) {
    CAPTURE(name);
    check_unformed(runtime, sparse::model_matrix(sparse::parse_matrix_model(name)));
  }
  const auto is_unformed = [&](const Dense& a, const sparse::KeepsSchur& keeps) {
    const auto system = reduced(runtime, csr_of(a), MatrixClass::positive_definite, keeps);
    return system && system->unformed() != nullptr;
  };
  const Dense path{{4, 1, 0}, {1, 4, 1}, {0, 1, 4}};
  CHECK(is_unformed(path, keep_all));
  CHECK_FALSE(is_unformed(path, {}));
  CHECK_FALSE(is_unformed(path, [](const sparse::BlockShape&, int) { return false; }));
  CHECK_FALSE(is_unformed({{4, 1, 0}, {1, 4, 1}, {0, 1.5, 4}}, keep_all));  // not symmetric
  CHECK_FALSE(is_unformed({{4, 1, 0}, {1, 4, 1}, {0, 0, 4}}, keep_all));
  CHECK_FALSE(is_unformed({{4, 0, 0}, {1, 4, 1}, {0, 1, 4}}, keep_all));
  CHECK_FALSE(is_unformed({{1, 2}, {2, 1}}, keep_all));                     // indefinite
  CHECK_FALSE(is_unformed(two_coloured(97, Mirrored::yes, 97), keep_all));  // too many diagonals
}

TEST_CASE("where a system is not reduced") {
  const Runtime runtime;
  const auto is_reduced = [&](const Dense& a, MatrixClass matrix_class) {
    return reduced(runtime, rows_of_this_rank(runtime, csr_of(a)), matrix_class).has_value();
  };
  using enum MatrixClass;
  CHECK(is_reduced({{2, 1}, {1, 2}}, positive_definite));
  CHECK_FALSE(is_reduced(diagonal(5, 1), positive_definite));  // a single colour
  CHECK_FALSE(is_reduced(diagonal(1, 3), positive_definite));
  CHECK_FALSE(is_reduced({{4, 1, 1}, {1, 4, 1}, {1, 1, 4}}, positive_definite));
  CHECK_FALSE(is_reduced({{1, 2}, {2, 1}}, positive_definite));  // indefinite: the pivot is -3
  CHECK(is_reduced({{1, 2}, {2, 1}}, general));
  CHECK_FALSE(is_reduced({{1, 1}, {1, 1}}, general));  // singular: it is 0
  // A star: all others are neighbours of neighbours.
  Dense star = diagonal(60, 60);
  for (Index i = 1; i < 60; ++i) star(0, i) = star(i, 0) = 1;
  CHECK_FALSE(is_reduced(star, positive_definite));
}

}  // namespace asterism::test
