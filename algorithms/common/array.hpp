/// \file
/// Growing arrays of numbers, for what is as large as a matrix.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <type_traits>
#include <utility>

#include "../../runtime/hardware/huge_pages.hpp"
#include "team.hpp"

namespace asterism {

/// As a std::vector, but that nobody clears what resize() adds, which has to be written before it is read; that copies are
/// made by several threads; and that to grow to a size, or to be destroyed, takes the same time for any number of elements:
/// a vector with such an allocator goes through them all, where it is compiled with little optimisation.
template <class T>
class Array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  Array() = default;
  /// @throw std::bad_alloc: as all that adds elements
  explicit Array(std::size_t size) { resize(size); }
  Array(std::size_t size, const T& value) { resize(size, value); }
  Array(std::initializer_list<T> values) : Array(values.begin(), values.end()) {}
  template <std::forward_iterator It>
  Array(It first, It last) {
    append(first, last);
  }
  Array(const Array& other) : Array(other.size_) { copy_from(other); }
  Array(Array&& other) noexcept { swap(other); }
  Array& operator=(Array other) noexcept {
    swap(other);
    return *this;
  }
  ~Array() { free_uncleared(data_, capacity_ * sizeof(T)); }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] T* data() { return data_; }
  [[nodiscard]] const T* data() const { return data_; }
  [[nodiscard]] T* begin() { return data_; }
  [[nodiscard]] const T* begin() const { return data_; }
  [[nodiscard]] T* end() { return data_ + size_; }
  [[nodiscard]] const T* end() const { return data_ + size_; }
  [[nodiscard]] T& operator[](std::size_t i) { return data_[i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const { return data_[i]; }
  [[nodiscard]] T& front() { return *data_; }
  [[nodiscard]] const T& front() const { return *data_; }
  [[nodiscard]] T& back() { return data_[size_ - 1]; }
  [[nodiscard]] const T& back() const { return data_[size_ - 1]; }

  /// What is there stays.
  void resize(std::size_t size) {
    reserve(size);
    size_ = size;
  }
  void resize(std::size_t size, const T& value) {
    const std::size_t before = size_;
    resize(size);
    if (size > before)
      in_parts(
          static_cast<Index>(size - before), 0,
          [&](Index first, Index last) { std::fill(data_ + before + first, data_ + before + last, value); },
          least_copied);
  }
  void clear() { size_ = 0; }
  void push_back(T value) {
    if (size_ == capacity_) reserve(std::max<std::size_t>(16, 2 * size_));
    data_[size_++] = value;
  }
  template <std::forward_iterator It>
  void append(It first, It last) {
    const std::size_t before = size_, size = before + static_cast<std::size_t>(std::distance(first, last));
    if (size > capacity_) reserve(std::max(size, 2 * before));
    resize(size);
    std::copy(first, last, begin() + before);
  }
  template <std::forward_iterator It>
  void assign(It first, It last) {
    clear();
    append(first, last);
  }
  void reserve(std::size_t capacity) {
    if (capacity <= capacity_) return;
    Array larger;
    larger.data_ = static_cast<T*>(allocate_uncleared(capacity * sizeof(T)));
    larger.capacity_ = capacity;
    larger.size_ = size_;
    larger.copy_from(*this);
    swap(larger);
  }

  friend bool operator==(const Array& a, const Array& b) { return std::ranges::equal(a, b); }

 private:
  void swap(Array& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }
  void copy_from(const Array& other) {
    in_parts(
        static_cast<Index>(size_), 0,
        [&](Index first, Index end) { std::copy(other.data_ + first, other.data_ + end, data_ + first); },
        least_copied);
  }

  T* data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace asterism
