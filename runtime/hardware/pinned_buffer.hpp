/// \file
/// Page-locked host memory.
#pragma once

#include <cstddef>

#include "../runtime.hpp"
#include "huge_pages.hpp"

namespace asterism {

/// Host memory in huge pages, page-locked where there is a GPU, so that copies run at the link's speed. Zeroed; aligned to a
/// page. Must end after the Tiles that borrow from it.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  /// @throw Error when the machine has not that much memory.
  PinnedBuffer(Runtime& runtime, std::size_t bytes);

  [[nodiscard]] std::size_t bytes() const { return pages_.bytes(); }
  [[nodiscard]] void* data() const { return pages_.data(); }
  template <class T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(data());
  }

 private:
  HugePages pages_;
};

}  // namespace asterism
