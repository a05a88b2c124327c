// Sums of squares of numbers from one end of the range of double to the other, and norms that lie beyond it,
// against long double.

#include "codelets/sums/sums.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace asterism;
using sums::ratio;
using sums::Scaled;
using sums::SquareSum;

namespace {

using Real = long double;  // of 15 bits of exponent, here

/// Exponents from `least` to `most`, both signs.
std::vector<double> random_numbers(Index count, int least, int most) {
  std::mt19937_64 engine(5);
  std::uniform_int_distribution<int> exponent(least, most);
  std::uniform_real_distribution<double> fraction(-1, 1);
  std::vector<double> numbers(static_cast<std::size_t>(count));
  for (double& number : numbers) number = std::ldexp(fraction(engine), exponent(engine));
  return numbers;
}

Real plain_sum(const std::vector<double>& numbers) {
  Real sum = 0;
  for (const double number : numbers) sum += static_cast<Real>(number) * static_cast<Real>(number);
  return sum;
}

SquareSum one_by_one(const std::vector<double>& numbers) {
  SquareSum sum{};
  for (const double number : numbers) sum.add(number);
  return sum;
}

SquareSum together(const std::vector<double>& numbers) {
  return sums::cpu::sum_of_squares(static_cast<Index>(numbers.size()),
                                   [&](Index j) { return numbers[static_cast<std::size_t>(j)]; });
}

/// a / b of numbers that need not be doubles.
double quotient(const Scaled& a, Real b) {
  int exponent = 0;
  const Real fraction = std::frexp(b, &exponent);
  return static_cast<double>(a / Scaled(static_cast<double>(fraction), exponent));
}

const std::pair<int, int> ranges[] = {{-1073, 1023}, {-1, 1},     {-1073, -600}, {-1021, -500}, {-490, -470},
                                      {470, 490},    {500, 1023}, {-600, 600},   {-1073, -1060}};

}  // namespace

TEST_CASE("sums of squares of any numbers, one by one, together and in parts") {
  for (const auto& [least, most] : ranges)
    for (const Index count : {1, 2, 15, 16, 17, 1000}) {
      CAPTURE(least);
      CAPTURE(most);
      CAPTURE(count);
      std::vector<double> numbers = random_numbers(count, least, most);
      const Real expected = plain_sum(numbers);
      CHECK(quotient(together(numbers).total(), expected) == doctest::Approx(1).epsilon(1e-14));
      CHECK(quotient(one_by_one(numbers).total(), expected) == doctest::Approx(1).epsilon(1e-13));
      CHECK(quotient(together(numbers).root(), std::sqrt(expected)) == doctest::Approx(1).epsilon(1e-14));
      const auto half = numbers.begin() + count / 2;
      SquareSum parts = together({numbers.begin(), half});
      parts += one_by_one({half, numbers.end()});
      CHECK(quotient(parts.total(), expected) == doctest::Approx(1).epsilon(1e-13));
    }
  CHECK(together({}).root() == 0);
  CHECK(together({0, -0.0}).root() == 0);
  CHECK(static_cast<double>(together({3e200, -4e200}).root()) == doctest::Approx(5e200).epsilon(1e-15));
  CHECK(static_cast<double>(one_by_one({3e-200, 4e-200}).root()) == doctest::Approx(5e-200).epsilon(1e-15));
  // The norm of so many largest numbers is no double.
  const std::vector<double> largest(100, std::numeric_limits<double>::max());
  CHECK(std::isinf(static_cast<double>(together(largest).root())));
  CHECK(static_cast<double>(together(largest).root() / largest[0]) == doctest::Approx(10));
}

TEST_CASE("sums of squares know NaN and infinity") {
  for (const double value : {1.0, 1e-300, 1e300, 0.0}) {
    std::vector<double> numbers(40, value);
    numbers[33] = std::numeric_limits<double>::quiet_NaN();
    for (const SquareSum& sum : {together(numbers), one_by_one(numbers)}) {
      CHECK(!sum.root().is_finite());
      CHECK(std::isnan(static_cast<double>(sum.root())));
    }
    numbers[33] = -std::numeric_limits<double>::infinity();
    for (const SquareSum& sum : {together(numbers), one_by_one(numbers)})
      CHECK(std::isinf(static_cast<double>(sum.root())));
  }
}

TEST_CASE("a power of two comes out of a norm as it went in") {
  const std::vector<double> numbers = random_numbers(1000, -10, 10);
  const Scaled root = together(numbers).root();
  for (const int power : {-1000, -900, -500, -470, 1, 470, 500, 900, 1000}) {
    CAPTURE(power);
    std::vector<double> scaled = numbers;
    for (double& number : scaled) number = std::ldexp(number, power);
    const double factor = static_cast<double>(together(scaled).root() / Scaled(1, power) / root);
    CHECK(factor == doctest::Approx(1).epsilon(4e-16));
  }
}

TEST_CASE("numbers beyond the range of double") {
  const Scaled huge = Scaled(0x1.8p1000) * 0x1p1000, tiny = Scaled(1.5, -5000);
  CHECK(std::isinf(static_cast<double>(huge)));
  CHECK(static_cast<double>(tiny) == 0);
  CHECK(static_cast<double>(huge / 0x1p1000) == 0x1.8p1000);
  CHECK(huge + tiny == huge);
  CHECK(tiny + huge == huge);
  CHECK(huge - huge == 0);
  CHECK(huge + 0 == huge);
  CHECK(Scaled(0) + tiny == tiny);
  CHECK(sqrt(huge * huge) == huge);
  CHECK(sqrt(tiny * tiny * 4) == 2 * tiny);
  CHECK(sqrt(Scaled(2)) == std::sqrt(2.0));
  CHECK(sqrt(Scaled(0)) == 0);
  CHECK(tiny < huge);
  CHECK(tiny - huge < 0);
  CHECK_FALSE(huge < huge);
  CHECK(huge > 1e308);
  CHECK(static_cast<double>(Scaled(3) / 7) == 3.0 / 7);
  CHECK(static_cast<double>(Scaled(-5e-324)) == -5e-324);
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(huge < infinity);
  CHECK_FALSE(Scaled(infinity).is_finite());
  CHECK(static_cast<double>(Scaled(infinity) + huge) == infinity);
  CHECK(static_cast<double>(tiny / infinity) == 0);
  // Prints as "nan", not as "-nan", whatever made it.
  for (const Scaled& none : {Scaled(infinity) / infinity, Scaled(infinity) - infinity,
                             -1 * Scaled(std::nan("")), sqrt(Scaled(-1))}) {
    CHECK(std::isnan(static_cast<double>(none)));
    CHECK_FALSE(std::signbit(static_cast<double>(none)));
    CHECK_FALSE(none < 1);
    CHECK_FALSE(none > 1);
  }
  CHECK(ratio(0, 0) == 0);
  CHECK(ratio(huge, 2 * huge) == 0.5);
  CHECK(std::isinf(ratio(1, 0)));
}
