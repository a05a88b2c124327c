/// \file
/// Arrays on the host that tiles lie over, filled by several threads.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include "../../runtime/hardware/huge_pages.hpp"
#include "../../runtime/ports.hpp"

namespace asterism {

/// Numbers that nobody has cleared: a vector would do so in one thread, which takes longer than to fill it with several,
/// as the system gives memory when it is touched first. Large arrays are in huge pages, so that tiles over them are copied
/// to GPUs at the link's speed.
template <class T>
class Uncleared {
 public:
  Uncleared() = default;
  /// @throw std::bad_alloc
  explicit Uncleared(Index size) : size_(size) {
    const std::size_t count = static_cast<std::size_t>(size), bytes = count * sizeof(T);
    if (bytes < huge_page) {
      few_ = std::make_unique_for_overwrite<T[]>(count);
      data_ = few_.get();
    } else {
      pages_ = HugePages(bytes);
      data_ = static_cast<T*>(pages_.data());
      if (data_ == nullptr) throw std::bad_alloc();
    }
  }
  Uncleared(Uncleared&& other) noexcept { *this = std::move(other); }
  Uncleared& operator=(Uncleared&& other) noexcept {
    std::swap(size_, other.size_);
    std::swap(few_, other.few_);
    std::swap(pages_, other.pages_);
    std::swap(data_, other.data_);
    return *this;
  }

  [[nodiscard]] Index size() const { return size_; }
  [[nodiscard]] T* data() { return data_; }
  [[nodiscard]] const T* data() const { return data_; }
  [[nodiscard]] T& operator[](Index i) { return data_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] const T& operator[](Index i) const { return data_[static_cast<std::size_t>(i)]; }

 private:
  Index size_ = 0;
  std::unique_ptr<T[]> few_;
  HugePages pages_;
  T* data_ = nullptr;
};

}  // namespace asterism
