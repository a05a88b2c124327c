/// \file
/// A matrix in main memory for tests of kernels: strided, poisoned, with a guard between its rows.
#pragma once

#include <limits>
#include <random>
#include <vector>

#include "runtime/ports.hpp"

namespace asterism::test {

template <class T>
class Matrix {
 public:
  static constexpr T guard = static_cast<T>(-12345.5);

  /// Elements are NaN, so that one that is read before it was written shows.
  Matrix(Index rows, Index cols, Index padding = 3)
      : rows_(rows), cols_(cols), ld_(cols + padding), values_(static_cast<std::size_t>(rows * ld_), guard) {
    fill([](Index, Index) { return std::numeric_limits<T>::quiet_NaN(); });
  }

  template <class Value>
  Matrix& fill(Value value) {
    for (Index i = 0; i < rows_; ++i)
      for (Index j = 0; j < cols_; ++j) (*this)(i, j) = static_cast<T>(value(i, j));
    return *this;
  }

  /// Uniform in (-1, 1).
  Matrix& fill_random(unsigned seed) {
    std::mt19937_64 engine(seed);
    std::uniform_real_distribution<double> uniform(-1.0, 1.0);
    return fill([&](Index, Index) { return uniform(engine); });
  }

  [[nodiscard]] Index rows() const { return rows_; }
  [[nodiscard]] Index cols() const { return cols_; }
  T& operator()(Index i, Index j) { return values_[static_cast<std::size_t>(i * ld_ + j)]; }
  const T& operator()(Index i, Index j) const { return values_[static_cast<std::size_t>(i * ld_ + j)]; }
  bool operator==(const Matrix& other) const { return values_ == other.values_; }

  [[nodiscard]] In<T> in() const { return in(0, rows_); }
  [[nodiscard]] In<T> in(Index first, Index rows) const {
    return {values_.data() + first * ld_, rows, cols_, ld_};
  }
  [[nodiscard]] Out<T> out() { return out(0, rows_); }
  [[nodiscard]] Out<T> out(Index first, Index rows) {
    return {values_.data() + first * ld_, rows, cols_, ld_};
  }
  [[nodiscard]] InOut<T> inout() { return inout(0, rows_); }
  [[nodiscard]] InOut<T> inout(Index first, Index rows) {
    return {values_.data() + first * ld_, rows, cols_, ld_};
  }

  /// Whether nobody wrote between the rows.
  [[nodiscard]] bool guarded() const {
    for (Index i = 0; i < rows_; ++i)
      for (Index j = cols_; j < ld_; ++j)
        if ((*this)(i, j) != guard) return false;
    return true;
  }

 private:
  Index rows_, cols_, ld_;
  std::vector<T> values_;
};

}  // namespace asterism::test
