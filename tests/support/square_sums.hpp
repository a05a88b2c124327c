/// \file
/// Sums of squares as kernels write them, for tests.
#pragma once

#include <array>
#include <limits>

#include "codelets/sums/sums.hpp"

namespace asterism::test {

/// A row of them, poisoned: one that is not written is NaN.
template <Index count>
class SquareSums {
 public:
  SquareSums() {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    sums_.fill({nan, {nan, nan}});
  }
  [[nodiscard]] Out<sums::SquareSum> out() { return {sums_.data(), 1, count, count}; }
  [[nodiscard]] double operator[](Index s) const {
    return static_cast<double>(sums_[static_cast<std::size_t>(s)].total());
  }

 private:
  std::array<sums::SquareSum, static_cast<std::size_t>(count)> sums_;
};

}  // namespace asterism::test
