/// \file
/// The largest of many errors, no NaN overlooked.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "matrix.hpp"

namespace asterism::test {

/// The largest magnitude taken in. One that is NaN or infinite is the worst there is and stays: value() is
/// NaN then, which is within no bound, not even an infinite one.
class Worst {
 public:
  void take_in(long double error) {
    const long double magnitude = std::abs(error);
    if (!std::isfinite(magnitude)) value_ = std::numeric_limits<long double>::quiet_NaN();
    if (magnitude > value_) value_ = magnitude;  // nothing is greater than NaN
  }
  [[nodiscard]] long double value() const { return value_; }

 private:
  long double value_ = 0;
};

/// As Worst has it; NaN too where one has more elements than the other.
template <class T>
double largest_difference(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::quiet_NaN();
  Worst worst;
  for (std::size_t k = 0; k < a.size(); ++k)
    worst.take_in(static_cast<long double>(a[k]) - static_cast<long double>(b[k]));
  return static_cast<double>(worst.value());
}

template <class A, class B>
double largest_difference(const Matrix<A>& a, const Matrix<B>& b) {
  if (a.rows() != b.rows() || a.cols() != b.cols()) return std::numeric_limits<double>::quiet_NaN();
  Worst worst;
  for (Index i = 0; i < a.rows(); ++i)
    for (Index j = 0; j < a.cols(); ++j)
      worst.take_in(static_cast<long double>(a(i, j)) - static_cast<long double>(b(i, j)));
  return static_cast<double>(worst.value());
}

}  // namespace asterism::test
