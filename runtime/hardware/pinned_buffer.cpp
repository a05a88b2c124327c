#include "pinned_buffer.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "../run/state.hpp"

namespace asterism {
namespace {

/// Writes one byte into every page, with all cores that there are to use: the kernel zeroes pages on first touch, which is most of the cost.
void touch(char* data, std::size_t bytes) {
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto threads = static_cast<std::size_t>(usable_cores());
  const std::size_t share = (bytes / threads / page + 1) * page;
  std::vector<std::jthread> team;
  for (std::size_t begin = 0; begin < bytes; begin += share)
    team.emplace_back([=] {
      for (std::size_t i = begin; i < std::min(begin + share, bytes); i += page) data[i] = 0;
    });
}

}  // namespace

PinnedBuffer::PinnedBuffer(Runtime& runtime, std::size_t bytes) : runtime_(&runtime.state()), bytes_(bytes) {
  if (bytes == 0) return;
  if (bytes > physical_memory())
    throw Error(
        fmt::format("{} of main memory are needed, this machine has {}; use more ranks, or --spill with a "
                    "limit on main memory",
                    human_bytes(static_cast<double>(bytes)),
                    human_bytes(static_cast<double>(physical_memory()))),
        Blame::machine);
  data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data_ == MAP_FAILED) {
    data_ = nullptr;
    throw Error(fmt::format("cannot allocate {} of main memory: {}", human_bytes(static_cast<double>(bytes)),
                            std::strerror(errno)),
                Blame::machine);
  }
  madvise(data_, bytes, MADV_HUGEPAGE);
  if (starpu_cuda_worker_get_count() > 0) {
    touch(static_cast<char*>(data_), bytes);
    pinned_ = starpu_memory_pin(data_, bytes) == 0;  // otherwise copies are slower, and still right
  }
}

PinnedBuffer::PinnedBuffer(PinnedBuffer&& other) noexcept { *this = std::move(other); }

PinnedBuffer& PinnedBuffer::operator=(PinnedBuffer&& other) noexcept {
  std::swap(runtime_, other.runtime_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(pinned_, other.pinned_);
  return *this;
}

PinnedBuffer::~PinnedBuffer() {
  const bool runs = runtime_ == current_runtime();              // else it has ended, and StarPU with it
  if (data_ == nullptr || (runs && runtime_->stalled)) return;  // after a stall tasks may still touch it
  if (pinned_ && runs) starpu_memory_unpin(data_, bytes_);
  munmap(data_, bytes_);
}

}  // namespace asterism
