#include "kept_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <system_error>

namespace asterism {

namespace fs = std::filesystem;

fs::path cache_folder() {
  const auto variable = [](const char* name) -> fs::path {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    return value == nullptr ? "" : value;
  };
  if (const auto folder = variable("XDG_CACHE_HOME"); folder.is_absolute()) return folder / "asterism";
  const auto home = variable("HOME");
  return home.empty() ? home : home / ".cache" / "asterism";
}

bool can_write(const fs::path& folder) {
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  return fs::is_directory(folder, ignored) && access(folder.c_str(), W_OK | X_OK) == 0;
}

std::optional<std::string> read_kept(const fs::path& file) {
  constexpr off_t most = off_t{64} << 20;
  const int stream = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (stream < 0) return std::nullopt;
  std::optional<std::string> text;
  if (struct stat found{}; fstat(stream, &found) == 0 && S_ISREG(found.st_mode) && found.st_size <= most) {
    text.emplace(static_cast<std::size_t>(found.st_size), '\0');
    if (read(stream, text->data(), text->size()) != found.st_size) text.reset();
  }
  close(stream);
  return text;
}

bool keep(const fs::path& file, const std::string& text) {
  // A name of its own: several programs, on several hosts, may write the file at the same time.
  const fs::path part = file.string() + fmt::format(".{:08x}{}.part", std::random_device()(), getpid());
  std::ofstream stream(part, std::ios::binary);
  stream << text;
  stream.close();
  std::error_code failed;
  if (stream) fs::rename(part, file, failed);
  const bool kept = stream && !failed;
  if (!kept) fs::remove(part, failed);
  return kept;
}

}  // namespace asterism
