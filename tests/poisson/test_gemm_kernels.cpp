// The kernels of the Poisson solver by dense transforms against definitions: entries of transforms' matrices, products,
// rows and columns.

#include "codelets/poisson/gemm_transform.hpp"
#include "codelets/poisson/slabs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "../support/matrix.hpp"
#include "../support/worst.hpp"
#include "poisson_solves.hpp"

#ifdef ASTERISM_WITH_CUDA
#include "../support/tiles.hpp"
#endif

using namespace asterism;
using namespace asterism::test;
using poisson::Product;
using poisson::Result;
using transforms::Transform;

namespace {

constexpr Transform kinds[] = {Transform::dst1, Transform::dst2, Transform::dst3, Transform::dst4,
                               Transform::dct1, Transform::dct2, Transform::dct3, Transform::dct4,
                               Transform::dft,  Transform::idft};

/// cos(pi a / b) and sin(pi a / b) in long double.
long double cosine(Index a, Index b) {
  return std::cos(std::numbers::pi_v<long double> * static_cast<long double>(a % (2 * b)) /
                  static_cast<long double>(b));
}
long double sine(Index a, Index b) {
  return std::sin(std::numbers::pi_v<long double> * static_cast<long double>(a % (2 * b)) /
                  static_cast<long double>(b));
}

/// What x_j adds to Y_k, read off (T1).
long double by_definition(Transform kind, Index n, Index j, Index k) {
  const long double alternating = k % 2 == 0 ? 1 : -1;
  switch (kind) {
    case Transform::dst1:
      return 2 * sine((j + 1) * (k + 1), n + 1);
    case Transform::dst2:
      return 2 * sine((2 * j + 1) * (k + 1), 2 * n);
    case Transform::dst3:
      return j < n - 1 ? 2 * sine((j + 1) * (2 * k + 1), 2 * n) : alternating;
    case Transform::dst4:
      return 2 * sine((2 * j + 1) * (2 * k + 1), 4 * n);
    case Transform::dct1:
      if (n == 1) return 1;
      return j > 0 && j < n - 1 ? 2 * cosine(j * k, n - 1) : j == 0 ? 1 : alternating;
    case Transform::dct2:
      return 2 * cosine((2 * j + 1) * k, 2 * n);
    case Transform::dct3:
      return j > 0 ? 2 * cosine(j * (2 * k + 1), 2 * n) : 1;
    case Transform::dct4:
      return 2 * cosine((2 * j + 1) * (2 * k + 1), 4 * n);
    case Transform::dft:
      return k <= n / 2 ? cosine(2 * j * k, n) : -sine(2 * j * (n - k), n);
    case Transform::idft: {  // Re(X_l exp(2 pi i k l / n)), for X_l and its conjugate X_{n-l}
      if (j == 0) return 1;
      if (2 * j == n) return alternating;
      return j < n - j ? 2 * cosine(2 * j * k, n) : -2 * sine(2 * (n - j) * k, n);
    }
  }
  return 0;
}

}  // namespace

TEST_CASE("entries of all transforms are those of their definitions, to the last digits of a double") {
  for (const Transform kind : kinds)
    for (const Index n : {1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 31, 64}) {
      Worst worst;
      for (Index j = 0; j < n; ++j)
        for (Index k = 0; k < n; ++k) {
          const long double expected = by_definition(kind, n, j, k), magnitude = std::abs(expected);
          const double entry = poisson::transform_entry(kind, n, j, k);
          if (magnitude < 1e-17)  // the zeros, which long double misses
            CHECK(entry == 0);
          else
            worst.take_in((entry - expected) / magnitude);
        }
      CAPTURE(std::string(transforms::name(kind)));
      CAPTURE(n);
      CHECK(worst.value() <= 3 * eps<double>);
    }
}

// With the argument reduced in floating point the entries in the corner would be wrong from the eleventh
// digit on.
TEST_CASE("entries of long transforms keep all digits") {
  for (const Transform kind : kinds)
    for (const Index n : {49151, 65535, 65536})
      for (Index j = n - 40; j < n; ++j)
        for (Index k = n - 40; k < n; ++k) {
          const auto error = static_cast<double>(
              std::abs(poisson::transform_entry(kind, n, j, k) - by_definition(kind, n, j, k)));
          REQUIRE(error <= 4 * eps<double>);
        }
}

TEST_CASE("entries at the exact places are exact") {
  for (const Index n : {4, 8, 20}) {
    for (Index k = 0; k < n; ++k) {
      CHECK(poisson::transform_entry(Transform::dft, n, 0, k) == (2 * k <= n ? 1 : 0));
      CHECK(poisson::transform_entry(Transform::dft, n, k, n / 2) == (k % 2 == 0 ? 1 : -1));
    }
    CHECK(poisson::transform_entry(Transform::dft, n, 1, n / 4) == 0);
    CHECK(poisson::transform_entry(Transform::dst1, n - 1, n / 2 - 1, 0) == 2);
    CHECK(poisson::transform_entry(Transform::dst1, n - 1, n / 2 - 1, 1) == 0);
  }
}

namespace {

template <class T>
Matrix<T> part_of(Transform kind, Index n, Index first_row, Index first_column, Index rows, Index cols) {
  Matrix<T> matrix(rows, cols);
  poisson::cpu::transform_matrix<T>({kind, n, first_row, first_column}, matrix.out());
  CHECK(matrix.guarded());
  return matrix;
}

template <class T>
long double product_at(const Matrix<T>& a, Index i, const Matrix<T>& b, Index j) {
  long double sum = 0;
  for (Index k = 0; k < b.rows(); ++k) sum += static_cast<long double>(a(i, k)) * b(k, j);
  return sum;
}

/// The largest error of C = from ... A B (+ before) over what the rounding of K products may add up to: K eps
/// sum |a| |b|.
template <class T>
double product_error(const Product& p, const Matrix<T>& a, const Matrix<T>& b, const Matrix<T>& before,
                     const Matrix<T>& c) {
  Worst worst;
  for (Index i = 0; i < c.rows(); ++i)
    for (Index j = 0; j < c.cols(); ++j) {
      if (i < p.to || i >= p.to + p.rows) {  // whatever it was
        const bool same = c(i, j) == before(i, j) || (std::isnan(c(i, j)) && std::isnan(before(i, j)));
        if (!same) return std::numeric_limits<double>::infinity();
        continue;
      }
      const Index row = p.from + i - p.to;
      long double expected = product_at(a, row, b, j), magnitude = 0;
      for (Index k = 0; k < b.rows(); ++k)
        magnitude += std::abs(static_cast<long double>(a(row, k)) * b(k, j));
      if (p.result == Result::adds) {
        expected += before(i, j);
        magnitude += std::abs(before(i, j));
      }
      worst.take_in((c(i, j) - expected) / (static_cast<long double>(b.rows() + 1) * magnitude));
    }
  return static_cast<double>(worst.value()) / eps<T>;
}

struct Sizes {
  Index rows, inner, cols;
};
constexpr Sizes product_sizes[] = {{1, 1, 1},   {2, 3, 1},    {1, 5, 7},    {7, 1, 3},     {13, 11, 17},
                                   {16, 32, 8}, {37, 41, 43}, {64, 63, 65}, {5, 300, 129}, {130, 257, 2}};

}  // namespace

TEST_CASE_TEMPLATE("parts of transforms' matrices", T, float, double) {
  for (const Transform kind : kinds) {
    const Matrix<T> part = part_of<T>(kind, 11, 3, 5, 7, 4);
    for (Index i = 0; i < 7; ++i)
      for (Index j = 0; j < 4; ++j)
        CHECK(part(i, j) == static_cast<T>(poisson::transform_entry(kind, 11, 3 + i, 5 + j)));
  }
}

TEST_CASE_TEMPLATE("products of dense matrices: strided, of some rows, replacing and adding", T, float,
                   double) {
  for (const auto& [rows, inner, cols] : product_sizes)
    for (const Result result : {Result::replaces, Result::adds}) {
      CAPTURE(rows);
      CAPTURE(inner);
      CAPTURE(cols);
      const Matrix<T> a = Matrix<T>(rows + 5, inner).fill_random(1),
                      b = Matrix<T>(inner, cols, 2).fill_random(2);
      const Matrix<T> a_before = a, b_before = b;
      Matrix<T> c(rows + 3, cols, 4);
      if (result == Result::adds) c.fill_random(3);
      const Matrix<T> before = c;
      const Product product{rows, 4, 2, result};
      poisson::cpu::multiply<T>(product, a.in(), b.in(), c.inout());
      CHECK(product_error(product, a, b, before, c) <= 1);
      CHECK(c.guarded());
      CHECK(a == a_before);
      CHECK(b == b_before);
    }
}

TEST_CASE_TEMPLATE("the matrices are those of the fast transforms", T, float, double) {
  for (const Transform kind : kinds)
    for (const Index n : {1, 2, 3, 5, 8, 31, 60}) {
      if (kind == Transform::dct1 && n == 1) continue;
      const Matrix<T> x = Matrix<T>(3, n).fill_random(5);
      Matrix<T> fast = x, dense(3, n);
      const transforms::Lines<T> lines{&fast(0, 0), 3, n + 3, n, 1, 1};
      transforms::cpu::plan_transform(kind, lines);
      transforms::cpu::transform(kind, lines);
      poisson::cpu::multiply<T>({3}, x.in(), part_of<T>(kind, n, 0, 0, n, n).in(), dense.inout());
      double error = 0, norm = 0;
      for (Index i = 0; i < 3; ++i)
        for (Index k = 0; k < n; ++k) {
          error += std::pow(static_cast<double>(dense(i, k)) - static_cast<double>(fast(i, k)), 2);
          norm += std::pow(static_cast<double>(fast(i, k)), 2);
        }
      CAPTURE(std::string(transforms::name(kind)));
      CAPTURE(n);
      CHECK(std::sqrt(error / norm) <= (4 + 2 * std::sqrt(static_cast<double>(n))) * eps<T>);
    }
}

TEST_CASE_TEMPLATE("there and back in blocks is the round trip's factor", T, float, double) {
  for (const Transform kind : kinds)
    for (const Index n : {1, 2, 3, 7, 16, 45}) {
      const Index blocks = std::min<Index>(n, 4);
      Matrix<T> sum(n, n);
      for (Index p = 0; p < blocks; ++p) {
        const Index first = n * p / blocks, modes = n * (p + 1) / blocks - first;
        poisson::cpu::multiply<T>(
            {n, 0, 0, p == 0 ? Result::replaces : Result::adds}, part_of<T>(kind, n, 0, first, n, modes).in(),
            part_of<T>(transforms::inverse(kind), n, first, 0, modes, n).in(), sum.inout());
      }
      const double factor = transforms::round_trip(kind, n);
      Worst worst;
      for (Index i = 0; i < n; ++i)
        for (Index j = 0; j < n; ++j)
          worst.take_in(static_cast<double>(sum(i, j)) / factor - (i == j ? 1 : 0));
      CAPTURE(std::string(transforms::name(kind)));
      CAPTURE(n);
      CHECK(worst.value() <= (2 + std::sqrt(static_cast<double>(n))) * eps<T>);
    }
}

TEST_CASE_TEMPLATE("first columns", T, float, double) {
  const Matrix<T> from = Matrix<T>(9, 5).fill_random(1), column = Matrix<T>(9, 1, 2).fill_random(2);
  Matrix<T> whole = from;
  poisson::cpu::set_first_column<T>(column.in(), whole.inout());
  for (Index i = 0; i < 9; ++i)
    for (Index j = 0; j < 5; ++j) CHECK(whole(i, j) == (j == 0 ? column(i, 0) : from(i, j)));
  CHECK(whole.guarded());
}

#ifdef ASTERISM_WITH_CUDA

TEST_CASE_TEMPLATE("gpu: parts of transforms' matrices are the CPU's", T, float, double) {
  Runtime runtime({.gpus = 1});
  for (const Transform kind : kinds)
    for (const Index n : {1, 5, 300, 1000}) {
      const Index rows = std::min<Index>(n, 257), cols = std::max<Index>(1, n / 2);
      const Tile<T> tile(runtime, rows, cols);
      poisson::codelets::transform_matrix<T>({kind, n, n - rows, n - cols}, tile, {.where = Where::cuda});
      runtime.wait();
      const Matrix<T> made = download(tile), expected = part_of<T>(kind, n, n - rows, n - cols, rows, cols);
      CAPTURE(std::string(transforms::name(kind)));
      CAPTURE(n);
      CHECK(largest_difference(made, expected) <= 4 * eps<T>);
    }
}

TEST_CASE_TEMPLATE("gpu: products of dense matrices", T, float, double) {
  Runtime runtime({.gpus = 1});
  for (const auto& [rows, inner, cols] : product_sizes)
    for (const Result result : {Result::replaces, Result::adds}) {
      CAPTURE(rows);
      CAPTURE(inner);
      CAPTURE(cols);
      const Matrix<T> a = Matrix<T>(rows + 5, inner).fill_random(1),
                      b = Matrix<T>(inner, cols).fill_random(2);
      Matrix<T> before(rows + 3, cols);  // NaN
      if (result == Result::adds) before.fill_random(3);
      const Tile<T> a_tile = upload(runtime, a), b_tile = upload(runtime, b),
                    c_tile = upload(runtime, before);
      const Product product{rows, 4, 2, result};
      poisson::codelets::multiply<T>(product, {.a = a_tile, .b = b_tile, .c = c_tile}, {.where = Where::cuda});
      const Product whole{rows + 5, 0, 0, Result::replaces};
      const Tile<T> new_tile(runtime, rows + 5, cols);
      poisson::codelets::multiply_anew<T>(whole, {.a = a_tile, .b = b_tile, .c = new_tile}, {.where = Where::cuda});
      runtime.wait();
      CHECK(product_error(product, a, b, before, download(c_tile)) <= 1);
      CHECK(product_error(whole, a, b, before, download(new_tile)) <= 1);
    }
}

TEST_CASE_TEMPLATE("gpu: first columns", T, float, double) {
  Runtime runtime({.gpus = 1});
  const Matrix<T> from = Matrix<T>(900, 50).fill_random(1), column = Matrix<T>(900, 1).fill_random(2);
  const Tile<T> from_tile = upload(runtime, from), column_tile = upload(runtime, column);
  poisson::codelets::set_first_column<T>({}, column_tile, from_tile, {.where = Where::cuda});
  runtime.wait();
  const Matrix<T> whole = download(from_tile);
  for (Index i = 0; i < 900; ++i)
    for (Index j = 0; j < 50; ++j) CHECK(whole(i, j) == (j == 0 ? column(i, 0) : from(i, j)));
}

#endif
