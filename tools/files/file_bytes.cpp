#include "file_bytes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "../../runtime/error.hpp"

namespace asterism::tools {

namespace fs = std::filesystem;

std::string system_reason() { return std::generic_category().message(errno); }

Descriptor open_to_read(const fs::path& path) {
  // Non-blocking: a named pipe without a writer would wait for ever instead of being refused.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number() < 0) throw Error(fmt::format("{}: cannot be opened: {}", path.string(), system_reason()));
  return file;
}

std::size_t size_to_read(int file, const fs::path& path, std::string_view kind) {
  struct stat status {};
  if (::fstat(file, &status) != 0) throw Error(fmt::format("{}: {}", path.string(), system_reason()));
  if (S_ISDIR(status.st_mode)) throw Error(fmt::format("{}: is a folder, not {}", path.string(), kind));
  if (!S_ISREG(status.st_mode))
    throw Error(
        fmt::format("{}: is not a regular file, so its rows cannot be read in any order", path.string()));
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) throw Error(fmt::format("{}: byte 0: the file is empty", path.string()));
  return size;
}

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

bool begins_with(const fs::path& path, std::string_view bytes, std::string_view kind) {
  const Descriptor file = open_to_read(path);
  size_to_read(file.number(), path, kind);
  std::string start(bytes.size(), '\0');
  return read_up_to(file.number(), path, start.data(), start.size(), 0) == bytes.size() && start == bytes;
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
