/// \file
/// Elements side by side, as a thread of a GPU computes with them, for `.cu` files only: a row of a table is read and
/// written in units, and all that is made of an element happens in registers.
#pragma once

#include "../matrices.hpp"

namespace asterism::qap::cuda {

/// What an instruction computes with: two elements of 16 bits, or one that is larger.
template <class E>
using Word = std::conditional_t<sizeof(E) == 8, unsigned long long, unsigned>;

/// What a thread reads at once.
template <class E>
struct alignas(sizeof(E) == 2 ? 8 : 16) Unit {
  static constexpr int in_word = sizeof(E) == 2 ? 2 : 1;
  static constexpr int words = sizeof(E) == 4 ? 4 : 2;
  static constexpr int elements = words * in_word;

  Word<E> word[words];
};

/// The words of a row, as factors that may be added to sums.
template <class E>
struct Factor {
  Word<E> all, upper;  ///< the second only of two elements: the second of these, above zeros

  static __device__ Factor of(Word<E> word) { return {word, upper_of(word)}; }
  /// With the signs of all elements turned.
  static __device__ Factor minus(Word<E> word) {
    if constexpr (sizeof(E) != 2) return {Word<E>{0} - word, 0};
    const Word<E> lower = (0U - (word & 0xffffU)) & 0xffffU;
    return of(lower | (0U - upper_of(word)));
  }

 private:
  static __device__ Word<E> upper_of(Word<E> word) { return sizeof(E) == 2 ? word & 0xffff0000U : 0; }
};

/// A word that things are added to, modulo 2^b in each element. Two elements have a sum each, with the other one's carries
/// in its other half: that takes an instruction for each product, and one that puts the halves together.
template <class E>
class Sum {
 public:
  explicit __device__ Sum(Word<E> word = 0) : lower_(word), upper_(word) {}

  /// @param scalar of it the lowest b bits count
  __device__ void add(Word<E> scalar, const Factor<E>& f) {
    lower_ += scalar * f.all;
    if constexpr (pair) upper_ += scalar * f.upper;
  }
  /// Adds both to every element.
  __device__ void add_both(Word<E> scalar, const Factor<E>& f) {
    lower_ += scalar + f.all;
    if constexpr (pair) upper_ += (scalar << 16) + f.upper;
  }
  [[nodiscard]] __device__ Word<E> word() const {
    if constexpr (pair) return __byte_perm(lower_, upper_, 0x7610);
    return lower_;
  }

 private:
  template <class>
  friend class Least;
  static constexpr bool pair = sizeof(E) == 2;

  Word<E> lower_, upper_;
};

/// The least elements so far that a word's place had, and in which rows: of equal ones the first that was taken.
template <class E>
class Least {
 public:
  __device__ void take(const Sum<E>& sum, int row) {
    const E element = static_cast<E>(sum.lower_);
    if (element >= element_) return;
    element_ = element;
    row_ = row;
  }
  [[nodiscard]] __device__ E element(int) const { return element_; }
  [[nodiscard]] __device__ int row(int) const { return row_; }

 private:
  E element_ = no_delta<E>();
  int row_ = 0;
};

/// An element above its row makes a number: the least of these has the least row of the least element.
template <>
class Least<std::int16_t> {
 public:
  __device__ void take(const Sum<std::int16_t>& sum, int row) {
    keys_[0] = min(keys_[0], static_cast<int>((sum.lower_ << 16) + row));
    keys_[1] = min(keys_[1], static_cast<int>((sum.upper_ & 0xffff0000U) | row));
  }
  [[nodiscard]] __device__ std::int16_t element(int i) const {
    return static_cast<std::int16_t>(keys_[i] >> 16);
  }
  [[nodiscard]] __device__ int row(int i) const { return keys_[i] & 0xffff; }

 private:
  int keys_[2] = {0x7fff0000, 0x7fff0000};
};

}  // namespace asterism::qap::cuda
