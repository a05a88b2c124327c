#include "pinned_buffer.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "../error.hpp"
#include "machine.hpp"

namespace asterism {

PinnedBuffer::PinnedBuffer(Runtime&, std::size_t bytes) {
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

}  // namespace asterism
