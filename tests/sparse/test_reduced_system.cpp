// The system that is left of one with two colours, against dense algebra, however ranks have the rows.
#include <doctest/doctest.h>

#include <Eigen/Dense>
#include <random>

#include "algorithms/sparse/reduction/reduced_system.hpp"
#include "linear_solves.hpp"

namespace asterism::test {
namespace {

using sparse::Csr;
using sparse::MatrixClass;
using sparse::ReducedSystem;

enum class Mirrored { yes, no };

/// Rows of two colours by chance, about three neighbours each, some without any; a diagonal that outweighs its row.
Eigen::MatrixXd two_coloured(Index n, Mirrored mirrored, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> value(-1, 1), chance(0, 1);
  std::vector<bool> side;
  for (Index i = 0; i < n; ++i) side.push_back(chance(random) < 0.5);
  Eigen::MatrixXd a = Eigen::MatrixXd::Zero(n, n);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < i; ++j)
      if (side[static_cast<std::size_t>(i)] != side[static_cast<std::size_t>(j)] &&
          chance(random) * static_cast<double>(n) < 6) {
        a(i, j) = value(random);
        a(j, i) = mirrored == Mirrored::yes ? a(i, j) : value(random);
      }
  for (Index i = 0; i < n; ++i) a(i, i) = 1 + 0.5 * value(random) + a.row(i).cwiseAbs().sum();
  return a;
}

Csr<double> compressed(const Eigen::MatrixXd& dense) {
  Csr<double> a;
  a.total_rows = a.cols = dense.rows();
  for (Index i = 0; i < dense.rows(); ++i) {
    for (Index j = 0; j < dense.cols(); ++j)
      if (dense(i, j) != 0) {
        a.columns.push_back(j);
        a.values.push_back(dense(i, j));
      }
    a.row_begin.push_back(static_cast<Index>(a.columns.size()));
  }
  return a;
}

/// All of its rows, from all ranks.
Eigen::MatrixXd dense(const Runtime& runtime, const Csr<double>& mine) {
  Eigen::MatrixXd a = Eigen::MatrixXd::Zero(mine.total_rows, mine.cols);
  std::vector<double> rows;
  for (Index i = 0; i < mine.rows(); ++i) {
    Eigen::RowVectorXd row = Eigen::RowVectorXd::Zero(mine.cols);
    for (Index n = mine.row_begin[static_cast<std::size_t>(i)];
         n < mine.row_begin[static_cast<std::size_t>(i) + 1]; ++n)
      row(mine.columns[static_cast<std::size_t>(n)]) = mine.values[static_cast<std::size_t>(n)];
    rows.insert(rows.end(), row.begin(), row.end());
  }
  rows = gather_lists(runtime, rows);
  REQUIRE(static_cast<Index>(rows.size()) == mine.total_rows * mine.cols);
  for (Index i = 0; i < mine.total_rows; ++i)
    for (Index j = 0; j < mine.cols; ++j) a(i, j) = rows[static_cast<std::size_t>(i * mine.cols + j)];
  return a;
}

std::optional<ReducedSystem<double>> reduced(const Runtime& runtime, const Csr<double>& mine,
                                             MatrixClass matrix_class) {
  std::map<std::string, double> seconds;
  return ReducedSystem<double>::of(runtime, mine, matrix_class, seconds);
}

struct Case {
  Index n;
  Mirrored mirrored;
  Rows rows;
};

/// S = C - F D^-1 E, and x from b by way of it.
void check(const Runtime& runtime, const Case& its) {
  CAPTURE(its.n);
  const Eigen::MatrixXd whole = two_coloured(its.n, its.mirrored, static_cast<unsigned>(its.n));
  const Csr<double> all = compressed(whole);
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
  const Eigen::MatrixXd s =
      whole(black, black) - whole(black, red) * whole(red, red).inverse() * whole(red, black);
  const Eigen::MatrixXd found = dense(runtime, system->matrix());
  CHECK((found - s).norm() < 1e-12);
  if (its.mirrored == Mirrored::yes) CHECK(found == found.transpose());

  const std::vector<double> numbers = scattered(its.n);
  const Eigen::VectorXd x = Eigen::Map<const Eigen::VectorXd>(numbers.data(), its.n), b = whole * x;
  constexpr double scale = 4;
  const auto reduced_b = system->right_hand_side(b.data() + first, scale);
  const auto reduced_x = system->first_guess(x.data() + first, scale);
  const Eigen::VectorXd x_black = x(black) / scale, b_black = s * x_black;
  const Index at = system->matrix().first_row;
  REQUIRE(static_cast<Index>(reduced_b.size()) == system->matrix().rows());
  for (std::size_t k = 0; k < reduced_b.size(); ++k) {
    CHECK(std::abs(reduced_b[k] - b_black(at + static_cast<Index>(k))) < 1e-11);
    CHECK(reduced_x[k] == x_black(at + static_cast<Index>(k)));
  }
  std::vector<double> again(static_cast<std::size_t>(end - first), 77);
  const auto scaled = system->solution(b.data() + first, reduced_x, scale, again.data());
  for (Index i = 0; i < end - first; ++i) {
    CHECK(std::abs(again[static_cast<std::size_t>(i)] - x(first + i)) < 1e-13);
    CHECK(std::abs(system->residual(i, b.data() + first, scale, scaled)) < 1e-11);
    CHECK(std::abs(system->residual(i, x.data() + first, scale, scaled) - (x - b)(first + i) / scale) <
          1e-11);
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

TEST_CASE("where a system is not reduced") {
  const Runtime runtime;
  const auto is_reduced = [&](const Eigen::MatrixXd& a, MatrixClass matrix_class) {
    return reduced(runtime, rows_of_this_rank(runtime, compressed(a)), matrix_class).has_value();
  };
  using enum MatrixClass;
  Eigen::MatrixXd pair(2, 2);
  pair << 2, 1, 1, 2;
  CHECK(is_reduced(pair, positive_definite));
  CHECK_FALSE(is_reduced(Eigen::MatrixXd::Identity(5, 5), positive_definite));  // a single colour
  CHECK_FALSE(is_reduced(Eigen::MatrixXd::Constant(1, 1, 3.), positive_definite));
  Eigen::MatrixXd triangle = Eigen::MatrixXd::Constant(3, 3, 1.);
  triangle.diagonal().setConstant(4);
  CHECK_FALSE(is_reduced(triangle, positive_definite));
  pair << 1, 2, 2, 1;  // indefinite: the pivot is -3
  CHECK_FALSE(is_reduced(pair, positive_definite));
  CHECK(is_reduced(pair, general));
  pair << 1, 1, 1, 1;  // singular: it is 0
  CHECK_FALSE(is_reduced(pair, general));
  // A star: all others are neighbours of neighbours.
  Eigen::MatrixXd star = Eigen::MatrixXd::Identity(60, 60) * 60;
  star.row(0).setConstant(1);
  star.col(0).setConstant(1);
  star(0, 0) = 60;
  CHECK_FALSE(is_reduced(star, positive_definite));
}

}  // namespace asterism::test
