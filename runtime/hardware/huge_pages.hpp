/// \file
/// Main memory in huge pages, which GPUs copy from and to at the link's speed.
#pragma once

#include <cstddef>

namespace asterism {

inline constexpr std::size_t huge_page = std::size_t{2} << 20;

/// Zeroed, aligned to a page (of 2 MiB and more to a huge one), and page-locked where there is a GPU: then cores that there are to use touch it first, many
/// times faster than cudaHostAlloc. Where the system does not lock it, copies are slower, and still right.
class HugePages {
 public:
  HugePages() = default;
  /// data() is nullptr where there is not so much memory: errno says why.
  explicit HugePages(std::size_t bytes);
  HugePages(HugePages&& other) noexcept { *this = static_cast<HugePages&&>(other); }
  HugePages& operator=(HugePages&& other) noexcept;
  ~HugePages();

  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] bool locked() const { return locked_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  bool locked_ = false;
};

/// Memory that nobody has cleared, page-locked by nobody: of 2 MiB and more it is in huge pages, which threads touch many
/// times faster. Up to 64 MiB of it are kept when they are freed, for the next who ask. @throw std::bad_alloc
void* allocate_uncleared(std::size_t bytes);
void free_uncleared(void* data, std::size_t bytes) noexcept;

}  // namespace asterism
