/// \file
/// Numbers beyond the range of double: norms of values near its ends, and their squares.
#pragma once

#include <cmath>
#include <limits>

namespace asterism::sums {

/// fraction * 2^exponent, rounded as a double is. A power of two that is taken out of all operands comes out
/// of the result, bit for bit.
class Scaled {
 public:
  Scaled(double value = 0) : Scaled(value, 0) {}
  /// value * 2^exponent
  Scaled(double value, int exponent) {
    int own = 0;
    fraction_ = std::frexp(value, &own);
    if (value != 0 && std::isfinite(value)) exponent_ = exponent + own;
  }
  /// 0 or infinite where it is beyond the range of double. Every NaN is the one that prints without a sign.
  explicit operator double() const {
    return std::isnan(fraction_) ? std::numeric_limits<double>::quiet_NaN()
                                 : std::ldexp(fraction_, exponent_);
  }
  [[nodiscard]] bool is_finite() const { return std::isfinite(fraction_); }

  friend Scaled operator+(const Scaled& a, const Scaled& b) {
    if (a.fraction_ == 0) return b;
    const int exponent = b.fraction_ == 0 || a.exponent_ > b.exponent_ ? a.exponent_ : b.exponent_;
    return {std::ldexp(a.fraction_, a.exponent_ - exponent) + std::ldexp(b.fraction_, b.exponent_ - exponent),
            exponent};
  }
  friend Scaled operator-(const Scaled& a, const Scaled& b) { return a + Scaled(-b.fraction_, b.exponent_); }
  friend Scaled operator*(const Scaled& a, const Scaled& b) {
    return {a.fraction_ * b.fraction_, a.exponent_ + b.exponent_};
  }
  friend Scaled operator/(const Scaled& a, const Scaled& b) {
    return {a.fraction_ / b.fraction_, a.exponent_ - b.exponent_};
  }
  friend Scaled sqrt(const Scaled& a) {
    const int odd = a.exponent_ & 1;
    return {std::sqrt(std::ldexp(a.fraction_, odd)), (a.exponent_ - odd) / 2};
  }
  friend bool operator==(const Scaled&, const Scaled&) = default;
  friend bool operator<(const Scaled& a, const Scaled& b) { return (a - b).fraction_ < 0; }
  friend bool operator>(const Scaled& a, const Scaled& b) { return b < a; }

 private:
  double fraction_ = 0;  // magnitude from 1/2 to 1, or 0, infinite, NaN
  int exponent_ = 0;     // 0 where the fraction is one of those
};

/// a / b as norms have it: 0 / 0 = 0, for nothing is no part of nothing.
inline double ratio(const Scaled& a, const Scaled& b) { return a == 0 ? 0 : static_cast<double>(a / b); }

}  // namespace asterism::sums
