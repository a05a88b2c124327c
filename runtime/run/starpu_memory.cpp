#include "starpu_memory.hpp"

#include <starpu.h>

#include <cerrno>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "../hardware/huge_pages.hpp"

namespace asterism {
namespace {

/// Never destroyed: StarPU gives memory back at the program's end.
struct Given {
  std::mutex mutex;
  std::unordered_map<void*, HugePages> pages;
};

Given& given() {
  static Given* const all = new Given;
  return *all;
}

/// Throws nothing: StarPU is C.
int allocate(unsigned, void** data, std::size_t bytes, int flags) try {
  const bool for_gpus = (flags & STARPU_MALLOC_PINNED) != 0 && starpu_cuda_worker_get_count() > 0;
  if (bytes < huge_page && !for_gpus) {
    *data = std::malloc(bytes);
    return *data == nullptr ? -ENOMEM : 0;
  }
  HugePages pages(bytes);
  if (pages.data() == nullptr) return -ENOMEM;
  *data = pages.data();
  const std::lock_guard lock(given().mutex);
  given().pages.emplace(*data, std::move(pages));
  return 0;
} catch (const std::exception&) {  // no memory for the list, or no thread
  return -ENOMEM;
}

int deallocate(unsigned, void* data, std::size_t, int) {
  HugePages pages;  // given back after the lock is
  {
    const std::lock_guard lock(given().mutex);
    if (const auto found = given().pages.find(data); found != given().pages.end()) {
      pages = std::move(found->second);
      given().pages.erase(found);
      return 0;
    }
  }
  std::free(data);
  return 0;
}

}  // namespace

void give_starpu_huge_pages() { starpu_malloc_set_hooks(allocate, deallocate); }

}  // namespace asterism
