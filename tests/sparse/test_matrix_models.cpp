// The model matrices: their entries, what makes them positive definite, and how they are named.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "../../algorithms/sparse/graph/colouring.hpp"
#include "../../algorithms/sparse/models/models.hpp"
#include "../../runtime/error.hpp"
#include "../support/dense.hpp"
#include "../support/worst.hpp"
#include "conjugate_gradients.hpp"

using namespace asterism;
using namespace asterism::sparse;
using namespace asterism::test;

namespace {

Csr<double> model(const char* text) { return model_matrix(parse_matrix_model(text)); }

const char* const small_models[] = {
    "poisson2d:1x1",          "poisson2d:1x7",    "poisson2d:13x11",        "poisson3d:1x1x1",
    "poisson3d:5x1x3",        "poisson3d:4x3x5",  "ecology-like:1x1",       "ecology-like:7x1",
    "ecology-like:17x13",     "circuit-like:1",   "circuit-like:2",         "circuit-like:3",
    "circuit-like:97",        "circuit-like:100", "triangulation-like:1x1", "triangulation-like:1x5",
    "triangulation-like:11x7"};

std::string what_parsing_says(std::string_view text) {
  try {
    parse_matrix_model(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

bool says(std::string_view text, std::string_view part) {
  return what_parsing_says(text).find(part) != std::string::npos;
}

/// Sums of the rows: exact where entries are multiples of a power of two.
Vector row_sums(const Csr<double>& a) { return product(a, Vector(at(a.rows()), 1.0)); }

}  // namespace

TEST_CASE("poisson: differences on grids, x first") {
  const Dense expected{{4, -1, 0, -1, 0, 0},  //
                       {-1, 4, -1, 0, -1, 0}, {0, -1, 4, 0, 0, -1}, {-1, 0, 0, 4, -1, 0},
                       {0, -1, 0, -1, 4, -1}, {0, 0, -1, 0, -1, 4}};
  CHECK(dense(model("poisson2d:3x2")) == expected);
  CHECK(dense(model("poisson2d:1x1"))(0, 0) == 4);

  const Dense cube = dense(model("poisson3d:2x3x4"));
  for (Index i = 0; i < 24; ++i)
    for (Index j = 0; j < 24; ++j) {
      const Index steps = std::abs(i % 2 - j % 2) + std::abs(i / 2 % 3 - j / 2 % 3) + std::abs(i / 6 - j / 6);
      REQUIRE(cube(i, j) == (steps == 0 ? 6 : steps == 1 ? -1 : 0));
    }
}

TEST_CASE("convection: the flow comes from the left and from below, and ranks make their own rows") {
  const Dense expected{{7, -1, 0, -1, 0, 0},  //
                       {-3, 7, -1, 0, -1, 0}, {0, -3, 7, 0, 0, -1}, {-2, 0, 0, 7, -1, 0},
                       {0, -2, 0, -3, 7, -1}, {0, 0, -2, 0, -3, 7}};
  CHECK(dense(model("convection2d:3x2")) == expected);
  const MatrixModel flow = parse_matrix_model("convection2d:3x2");
  CHECK(!flow.is_symmetric());
  CHECK(parse_matrix_model("poisson2d:3x2").is_symmetric());
  const Csr<double> last = model_rows(flow, 4, 6);
  CHECK(last.first_row == 4);
  CHECK(last.columns == Array<Index>{1, 3, 4, 5, 2, 4, 5});
}

TEST_CASE(
    "symmetric models: any rows are those of the whole, in ascending order, symmetric to the bit, definite") {
  for (const char* const text : small_models) {
    CAPTURE(text);
    const MatrixModel m = parse_matrix_model(text);
    const Csr<double> whole = model_matrix(m);
    REQUIRE(whole.rows() == m.rows());
    REQUIRE(whole.cols == m.rows());
    for (const Index first : {Index{0}, m.rows() / 3, m.rows() / 2, m.rows()})
      for (const Index end : {first, std::min(first + 1, m.rows()), m.rows()}) {
        const Csr<double> part = model_rows(m, first, end);
        CHECK(part.first_row == first);
        CHECK(part.total_rows == m.rows());
        CHECK(part.cols == m.rows());
        REQUIRE(part.rows() == end - first);
        const Index before = whole.row_begin[at(first)];
        for (Index i = 0; i <= part.rows(); ++i)
          CHECK(part.row_begin[at(i)] + before == whole.row_begin[at(first + i)]);
        CHECK(std::ranges::equal(part.columns,
                                 std::span(whole.columns).subspan(at(before), part.columns.size())));
        CHECK(
            std::ranges::equal(part.values, std::span(whole.values).subspan(at(before), part.values.size())));
      }
    for (Index i = 0; i < whole.rows(); ++i)
      for (Index n = whole.row_begin[at(i)] + 1; n < whole.row_begin[at(i + 1)]; ++n)
        REQUIRE(whole.columns[at(n - 1)] < whole.columns[at(n)]);
    const Dense a = dense(whole);
    CHECK(a == transposed(a));
    CHECK(cholesky(a));
  }
}

TEST_CASE("rows that a model has not are refused") {
  const MatrixModel m = parse_matrix_model("poisson2d:2x3");
  CHECK_THROWS_WITH_AS(model_rows(m, 4, 7),
                       doctest::Contains("rows 4 to 7 are asked for of a model matrix of 6 rows"), Error);
  CHECK_THROWS_AS(model_rows(m, -1, 2), Error);
  CHECK_THROWS_AS(model_rows(m, 3, 2), Error);
}

TEST_CASE("triangulation-like: as many entries as parabolic_fem, seven in a row, a condition of about 1e5") {
  const Csr<double> a = model("triangulation-like");
  CHECK(a.rows() == 525'825);
  CHECK(a.entries() == 3'674'625);
  CHECK(std::ranges::count(a.values, 0.0) == 0);

  // The largest eigenvalue lies between the largest diagonal entry and the largest sum of a row's magnitudes; the
  // least is at least that of the mass matrix, 1/4 (each element's is 1/24, a node has six), and at most the quotient
  // of a sine.
  Worst largest_row;
  Vector sine(at(a.rows()));
  for (Index i = 0; i < a.rows(); ++i) {
    double sum = 0;
    for (Index n = a.row_begin[at(i)]; n < a.row_begin[at(i + 1)]; ++n) sum += std::abs(a.values[at(n)]);
    largest_row.take_in(sum);
    const double x = static_cast<double>(i % 1025 + 1) / 1026, y = static_cast<double>(i / 1025 + 1) / 514;
    sine[at(i)] = std::sin(std::numbers::pi * x) * std::sin(std::numbers::pi * y);
  }
  CHECK(largest_row.value() / 0.25 <= 1e6);
  CHECK(std::ranges::max(diagonal_of(a)) / (dot(sine, product(a, sine)) / dot(sine, sine)) >= 3e4);
}

TEST_CASE("triangulation-like: the elements of one square by hand") {
  // Alone, a node is all that its six triangles have: half the mass, and four to six times the step.
  const double lone = dense(model("triangulation-like:1x1"))(0, 0);
  CHECK(lone >= 0.5 + 4 * 2e4);
  CHECK(lone <= 0.5 + 6 * 2e4);
  // Stiffness takes constants to 0: what remains of an inner row is the mass of a node's triangles, 6 of 1/6.
  const Vector sums = row_sums(model("triangulation-like:5x5"));
  CHECK(sums[12] == doctest::Approx(1).epsilon(1e-9));
  CHECK(sums[0] > 1e4);
}

TEST_CASE("ecology-like: five points, dominant by a little") {
  const Csr<double> a = model("ecology-like:101x37");
  CHECK(a.entries() == 5 * 101 * 37 - 2 * 101 - 2 * 37);
  for (const double sum : row_sums(a)) REQUIRE((sum >= 0x1p-20 && sum <= 0x1p-17));
  CHECK(parse_matrix_model("ecology-like").rows() == 1'000'000);
}

TEST_CASE("circuit-like: irregular rows, all of one circuit, dominant to the last bit, four colours") {
  const Csr<double> a = model("circuit-like:20011");
  CHECK(static_cast<double>(a.entries()) / static_cast<double>(a.rows()) ==
        doctest::Approx(4.8).epsilon(0.02));
  for (const double sum : row_sums(a)) REQUIRE(sum > 0);
  std::vector<Index> rows_of_length(8);
  for (Index i = 0; i < a.rows(); ++i) ++rows_of_length.at(at(a.row_begin[at(i + 1)] - a.row_begin[at(i)]));
  for (const std::size_t length : {2U, 3U, 4U, 5U, 6U, 7U}) CHECK(rows_of_length[length] > 100);
  CHECK(colour(a, 1).count == 4);

  std::vector<Index> reached{0};
  std::vector<bool> seen(at(a.rows()));
  seen[0] = true;
  for (std::size_t head = 0; head < reached.size(); ++head)
    for (Index n = a.row_begin[at(reached[head])]; n < a.row_begin[at(reached[head] + 1)]; ++n)
      if (const std::size_t j = at(a.columns[at(n)]); !seen[j]) {
        seen[j] = true;
        reached.push_back(a.columns[at(n)]);
      }
  CHECK(reached.size() == at(a.rows()));
  CHECK(parse_matrix_model("circuit-like").rows() == 1'585'478);
}

TEST_CASE("names and sizes of models") {
  const MatrixModel cube = parse_matrix_model("poisson3d:3x5x70000000000");
  CHECK(cube.family == ModelFamily::poisson3d);
  CHECK(cube.nx == 3);
  CHECK(cube.ny == 5);
  CHECK(cube.nz == 70'000'000'000);
  CHECK(parse_matrix_model("triangulation-like").nx == 1025);
  CHECK(parse_matrix_model("triangulation-like:7x3").ny == 3);
  CHECK(parse_matrix_model("circuit-like:11").rows() == 11);

  // Rows far beyond 32 bits.
  const Csr<double> last = model_rows(cube, cube.rows() - 1, cube.rows());
  CHECK(last.columns ==
        Array<Index>{cube.rows() - 16, cube.rows() - 4, cube.rows() - 2, cube.rows() - 1});
}

TEST_CASE("what is no model is refused, and all that there are are told") {
  CHECK(says("poison2d:3x3", "no model is named \"poison2d\""));
  CHECK(says("poison2d:3x3", "  ecology-like[:NXxNY]"));
  CHECK(says("", "no model is named \"\""));
  CHECK(says("poisson2d", "sizes are missing, say poisson2d:NXxNY"));
  CHECK(says("poisson2d:5", "1 sizes are given, poisson2d:NXxNY has 2"));
  CHECK(says("circuit-like:5x5", "2 sizes are given, circuit-like:N has 1"));
  for (const char* const bad :
       {"poisson2d:0x3", "poisson2d:3x0", "poisson2d:-1x3", "poisson2d:3x", "poisson2d:x3",
        "poisson2d:", "poisson2d:3x4y", "poisson2d:3.5x4", "poisson2d:3X4"})
    CHECK(says(bad, "is no whole number of at least 1"));
  CHECK(says("poisson2d:0x3", "size \"0\""));
  CHECK(says("poisson2d:99999999999999999999x1", "is beyond 64 bits"));
  CHECK(says("poisson2d:4294967296x4294967296", "more than 2^56 rows"));
  CHECK(says("poisson3d:4294967296x4294967296x4294967296", "more than 2^56 rows"));
}
