#include "huge_pages.hpp"

#include <starpu.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
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

void* allocate_untouched(std::size_t bytes) {
  void* const data = bytes < huge_page ? std::malloc(std::max<std::size_t>(bytes, 1)) : map_pages(bytes);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

void free_untouched(void* data, std::size_t bytes) noexcept {
  if (bytes < huge_page)
    std::free(data);
  else
    munmap(data, bytes);
}

}  // namespace asterism
