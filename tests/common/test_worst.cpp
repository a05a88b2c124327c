// The largest of many errors: what is not finite is the worst of them, wherever it stands.

#include "../support/worst.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

using namespace asterism;
using namespace asterism::test;

namespace {

const double not_a_number = std::numeric_limits<double>::quiet_NaN(),
             infinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("the largest magnitude, of either sign") {
  Worst worst;
  CHECK(worst.value() == 0);
  for (const double error : {1.0, -3.0, 2.0}) worst.take_in(error);
  CHECK(worst.value() == 3);
}

TEST_CASE("what is not finite is within no bound, first, between others or last") {
  for (const double bad : {not_a_number, -not_a_number, infinity, -infinity})
    for (std::size_t place = 0; place < 3; ++place) {
      std::vector<double> errors{0.5, 0.25, 2.0};
      errors[place] = bad;
      Worst worst;
      for (const double error : errors) worst.take_in(error);
      CHECK_FALSE(worst.value() <= infinity);
      CHECK_FALSE(worst.value() > 1);

      const std::vector<double> zeros(3);
      CHECK_FALSE(largest_difference(errors, zeros) <= infinity);
      CHECK_FALSE(largest_difference(zeros, errors) <= infinity);
      const auto row = [&](Index, Index j) { return errors[static_cast<std::size_t>(j)]; };
      const auto zero = [](Index, Index) { return 0; };
      CHECK_FALSE(largest_difference(Matrix<double>(1, 3).fill(row), Matrix<float>(1, 3).fill(zero)) <=
                  infinity);
      CHECK_FALSE(largest_difference(Matrix<float>(1, 3).fill(zero), Matrix<double>(1, 3).fill(row)) <=
                  infinity);
    }
}

TEST_CASE("the largest difference, of as many elements") {
  CHECK(largest_difference<float>({1, 2, 3}, {1, 4, 2}) == 2);
  CHECK(largest_difference<float>({}, {}) == 0);
  CHECK_FALSE(largest_difference<float>({1, 2, 3}, {1, 2}) <= infinity);
  const auto number = [](Index i, Index j) { return 10 * i + j; };
  CHECK(largest_difference(Matrix<double>(2, 3).fill(number), Matrix<float>(2, 3, 1).fill(number)) == 0);
  CHECK_FALSE(largest_difference(Matrix<double>(2, 3).fill(number), Matrix<double>(3, 2).fill(number)) <=
              infinity);
}
