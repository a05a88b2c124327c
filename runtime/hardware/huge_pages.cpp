#include "huge_pages.hpp"

#include <starpu.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "../run/state.hpp"
#include "machine.hpp"

namespace asterism {
namespace {

constexpr std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

std::size_t page_size() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

/// From the first byte of a huge page on: the system has none for what begins within one.
void* map_pages(std::size_t bytes) {
  const std::size_t slack = bytes < huge_page ? 0 : huge_page, whole_pages = round_up(bytes, page_size());
  void* const from =
      mmap(nullptr, whole_pages + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (from == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(from);
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::size_t before = slack == 0 ? 0 : round_up(address, huge_page) - address;
  if (before > 0) munmap(begin, before);
  if (slack > before) munmap(begin + before + whole_pages, slack - before);
  madvise(begin + before, bytes, MADV_HUGEPAGE);
  return begin + before;
}

/// Writes one byte into every page: the kernel zeroes pages on first touch, which is most of the cost.
void touch(char* data, std::size_t bytes) {
  constexpr std::size_t least_share = 2 * huge_page;  // takes as long as ten threads to start
  const std::size_t page = page_size();
  const auto touch_share = [=](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; i += page) data[i] = 0;
  };
  const std::size_t threads =
      std::clamp<std::size_t>(bytes / least_share, 1, static_cast<std::size_t>(usable_cores()));
  const std::size_t share = round_up(bytes / threads + 1, page);
  std::vector<std::jthread> team;
  for (std::size_t begin = share; begin < bytes; begin += share)
    team.emplace_back(touch_share, begin, std::min(begin + share, bytes));
  touch_share(0, std::min(share, bytes));
}

/// Huge pages that were freed, for those who ask next: to fill what the system gives takes several times as long, as it
/// clears that first.
class FreedPages {
 public:
  /// @return nullptr: there is nothing so large
  void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    Range* best = nullptr;
    for (Range* range = begin(); range != end(); ++range)
      if (range->bytes >= bytes && (best == nullptr || range->bytes < best->bytes)) best = range;
    if (best == nullptr) return nullptr;
    char* const data = best->begin;
    bytes_ -= bytes;
    best->begin += bytes;
    best->bytes -= bytes;
    if (best->bytes == 0) remove(best);
    return data;
  }
  /// Those that have lain here longest go back to the system.
  void put(void* data, std::size_t bytes) noexcept {
    if (bytes > most_bytes) {
      munmap(data, bytes);
      return;
    }
    const std::lock_guard lock(mutex_);
    while (count_ == ranges_.size() || bytes_ + bytes > most_bytes) {
      munmap(begin()->begin, begin()->bytes);
      bytes_ -= begin()->bytes;
      remove(begin());
    }
    ranges_[count_++] = {static_cast<char*>(data), bytes};
    bytes_ += bytes;
  }

 private:
  struct Range {
    char* begin;
    std::size_t bytes;
  };
  static constexpr std::size_t most_bytes = 32 * huge_page;

  Range* begin() { return ranges_.data(); }
  Range* end() { return begin() + count_; }
  void remove(Range* range) {
    std::copy(range + 1, end(), range);
    --count_;
  }

  std::mutex mutex_;
  std::array<Range, 32> ranges_;  // in the order in which they came
  std::size_t count_ = 0, bytes_ = 0;
};

FreedPages& freed_pages() {
  static auto* const pages = new FreedPages;  // arrays of static objects are freed after it would be
  return *pages;
}

}  // namespace

HugePages::HugePages(std::size_t bytes) : data_(map_pages(bytes)), bytes_(bytes) {
  if (data_ == nullptr || starpu_cuda_worker_get_count() == 0) return;
  touch(static_cast<char*>(data_), bytes_);
  locked_ = starpu_memory_pin(data_, bytes_) == 0;
}

HugePages& HugePages::operator=(HugePages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(locked_, other.locked_);
  return *this;
}

HugePages::~HugePages() {
  const Runtime::State* const runtime = current_runtime();
  if (data_ == nullptr || (runtime != nullptr && runtime->stalled))
    return;  // after a stall tasks may still touch it
  if (locked_) starpu_memory_unpin(data_, bytes_);
  munmap(data_, bytes_);
}

void* allocate_uncleared(std::size_t bytes) {
  void* data = nullptr;
  if (bytes < huge_page) {
    data = std::malloc(std::max<std::size_t>(bytes, 1));
  } else {
    const std::size_t whole_pages = round_up(bytes, huge_page);
    data = freed_pages().take(whole_pages);
    if (data == nullptr) data = map_pages(whole_pages);
  }
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

void free_uncleared(void* data, std::size_t bytes) noexcept {
  if (bytes < huge_page)
    std::free(data);
  else
    freed_pages().put(data, round_up(bytes, huge_page));
}

}  // namespace asterism
