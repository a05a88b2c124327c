#include "pinned_buffer.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "../run/state.hpp"

namespace asterism {

PinnedBuffer::PinnedBuffer(Runtime& runtime, std::size_t bytes) : runtime_(&runtime.state()), bytes_(bytes) {
  if (bytes == 0) return;
  if (bytes > physical_memory())
    throw Error(
        fmt::format("{} of main memory are needed, this machine has {}; use more ranks, or --spill with a "
                    "limit on main memory",
                    human_bytes(static_cast<double>(bytes)),
                    human_bytes(static_cast<double>(physical_memory()))),
        Blame::machine);
  pages_ = HugePages(bytes);
  if (pages_.data() == nullptr)
    throw Error(fmt::format("cannot allocate {} of main memory: {}", human_bytes(static_cast<double>(bytes)),
                            std::strerror(errno)),
                Blame::machine);
}

PinnedBuffer::PinnedBuffer(PinnedBuffer&& other) noexcept { *this = std::move(other); }

PinnedBuffer& PinnedBuffer::operator=(PinnedBuffer&& other) noexcept {
  std::swap(runtime_, other.runtime_);
  std::swap(bytes_, other.bytes_);
  std::swap(pages_, other.pages_);
  return *this;
}

PinnedBuffer::~PinnedBuffer() {
  if (runtime_ != nullptr && runtime_ == current_runtime() && runtime_->stalled)
    pages_.leave();  // after a stall tasks may still touch it
}

}  // namespace asterism
