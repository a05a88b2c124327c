#include "file_bytes.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "../../runtime/error.hpp"

namespace asterism::tools {

namespace fs = std::filesystem;

std::string system_reason() { return std::generic_category().message(errno); }

std::size_t read_up_to(int file, const fs::path& path, void* into, std::size_t bytes, std::size_t offset) {
  std::size_t done = 0;
  while (done < bytes) {
    const auto got =
        ::pread(file, static_cast<char*>(into) + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      throw Error(
          fmt::format("{}: byte {}: cannot be read: {}", path.string(), offset + done, system_reason()),
          Blame::machine);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void read_all(int file, const fs::path& path, void* into, std::size_t bytes, std::size_t offset) {
  const std::size_t got = read_up_to(file, path, into, bytes, offset);
  if (got < bytes)
    throw Error(fmt::format("{}: byte {}: the file ends here: it became shorter while it was read",
                            path.string(), offset + got));
}

void write_all(int file, const fs::path& path, const void* from, std::size_t bytes, std::size_t offset) {
  for (std::size_t done = 0; done < bytes;) {
    const auto put = ::pwrite(file, static_cast<const char*>(from) + done, bytes - done,
                              static_cast<off_t>(offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0)
      throw Error(
          fmt::format("{}: byte {}: cannot be written: {}", path.string(), offset + done, system_reason()),
          Blame::machine);
    done += static_cast<std::size_t>(put);
  }
}

}  // namespace asterism::tools
