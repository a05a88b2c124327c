/// \file
/// Lists that are short nearly always.
#pragma once

#include <array>
#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace asterism::detail {

/// A list whose first `room` elements need no memory of their own. Its elements move when it grows beyond.
template <class T, std::size_t room>
class ShortList {
 public:
  T& push_back(T value) {
    if (size_ < room) return short_[size_++] = std::move(value);
    if (size_ == room)
      long_ = std::make_unique<std::vector<T>>(std::move_iterator(short_.begin()),
                                               std::move_iterator(short_.end()));
    ++size_;
    return long_->emplace_back(std::move(value));
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] T* data() { return size_ <= room ? short_.data() : long_->data(); }
  [[nodiscard]] const T* data() const { return size_ <= room ? short_.data() : long_->data(); }
  [[nodiscard]] T* begin() { return data(); }
  [[nodiscard]] T* end() { return data() + size_; }
  [[nodiscard]] const T* begin() const { return data(); }
  [[nodiscard]] const T* end() const { return data() + size_; }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }

 private:
  std::size_t size_ = 0;
  std::array<T, room> short_;
  std::unique_ptr<std::vector<T>> long_;  // all of them, once they are more
};

}  // namespace asterism::detail
