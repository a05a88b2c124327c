/// \file
/// Arrays on the host that are filled by several threads.
#pragma once

#include <cstddef>
#include <memory>

#include "../../runtime/ports.hpp"

namespace asterism {

/// Numbers that nobody has cleared: a vector would do so in one thread, which takes longer than to fill it with several,
/// as the system gives memory when it is touched first.
template <class T>
class Uncleared {
 public:
  Uncleared() = default;
  explicit Uncleared(Index size)
      : size_(size), data_(std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(size))) {}

  [[nodiscard]] Index size() const { return size_; }
  [[nodiscard]] T* data() { return data_.get(); }
  [[nodiscard]] const T* data() const { return data_.get(); }
  [[nodiscard]] T& operator[](Index i) { return data_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] const T& operator[](Index i) const { return data_[static_cast<std::size_t>(i)]; }

 private:
  Index size_ = 0;
  std::unique_ptr<T[]> data_;
};

}  // namespace asterism
