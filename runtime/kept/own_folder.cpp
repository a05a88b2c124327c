#include "own_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "../error.hpp"
#include "../run/ending.hpp"

namespace asterism {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t random_letters = 6;
constexpr const char* lock_file = "lock";

/// How the names of all sub-folders of this host begin.
std::string prefix() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("asterism-{}-", host.data());
}

/// The process that made a sub-folder of that name; 0 when it is no such name, or one of another host.
pid_t process_of(std::string_view name) {
  const std::string mine = prefix();
  if (!name.starts_with(mine)) return 0;
  name.remove_prefix(mine.size());
  pid_t process = 0;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), process);
  const std::string_view rest(end, static_cast<std::size_t>(name.data() + name.size() - end));
  const bool fits = failed == std::errc{} && rest.size() == 1 + random_letters && rest[0] == '-' &&
                    std::all_of(rest.begin() + 1, rest.end(),
                                [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; });
  return fits && process > 0 ? process : 0;
}

/// Locks the file that a living process keeps locked in its sub-folder. @return the open file; -1 where there is none,
/// or where somebody else has the lock
int lock(const fs::path& folder, int flags) {
  const int file = open((folder / lock_file).c_str(), O_RDWR | O_CLOEXEC | flags, 0600);
  if (file >= 0 && flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    close(file);
    errno = EWOULDBLOCK;
    return -1;
  }
  return file;  // unlocked where the file system has no locks: there the number of the process has to do
}

/// Whether nobody uses the sub-folder any more. The number of its process alone would not tell: another container of
/// the same host name does not see it. The lock alone would not either: some file systems have none.
bool abandoned(const fs::path& folder, pid_t process) {
  if (kill(process, 0) == 0 || errno != ESRCH) return false;
  const int file = lock(folder, 0);
  if (file < 0) return errno == ENOENT;
  close(file);
  return true;
}

void remove_abandoned(const fs::path& parent) {
  std::vector<fs::path> found;  // first, as removing while iterating is asking for trouble
  std::error_code failed;
  for (fs::directory_iterator entry(parent, failed), end; !failed && entry != end; entry.increment(failed)) {
    std::error_code unknown;
    if (entry->symlink_status(unknown).type() != fs::file_type::directory) continue;
    if (const pid_t process = process_of(entry->path().filename().string()); process != 0)
      if (abandoned(entry->path(), process)) found.push_back(entry->path());
  }
  for (const fs::path& folder : found) fs::remove_all(folder, failed);  // what is another user's stays
}

// This process's sub-folders: what a signal handler can reach. Whoever sets one to not there removes it.
struct Place {
  std::array<char, PATH_MAX> path;
  std::atomic<bool> is_taken = false, is_there = false;
};
std::array<Place, 4> places;

/// Removes all that is in a folder. Async-signal-safe, which readdir is not.
void remove_content(int folder) {
  alignas(dirent64) std::array<char, 4096> entries;
  lseek(folder, 0, SEEK_SET);
  for (ssize_t size = 0; (size = getdents64(folder, entries.data(), entries.size())) > 0;)
    for (ssize_t at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries.data() + at);
      at += entry->d_reclen;
      const char* const name = entry->d_name;
      if (std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0 || unlinkat(folder, name, 0) == 0) continue;
      if (const int inner = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); inner >= 0) {
        remove_content(inner);
        close(inner);
        unlinkat(folder, name, AT_REMOVEDIR);
      }
    }
}

void remove(Place& place) {
  if (!place.is_there.exchange(false)) return;
  const int folder = open(place.path.data(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (int attempt = 0; attempt < 1000; ++attempt) {  // other threads may be about to make a file each
    remove_content(folder);
    if (rmdir(place.path.data()) == 0 || (errno != ENOTEMPTY && errno != EEXIST)) break;
  }
  close(folder);
}

int reserve_room(int file, std::size_t bytes) {
  const auto length = static_cast<off_t>(bytes);
  // Not posix_fallocate: where the file system cannot reserve, that writes to every block instead.
  do
    if (fallocate(file, 0, 0, length) == 0) return 0;
  while (errno == EINTR);
  if (errno != EOPNOTSUPP && errno != ENOSYS) return errno;
  struct statvfs disk {};
  if (fstatvfs(file, &disk) == 0 && bytes > disk.f_bavail * disk.f_frsize) return ENOSPC;
  return ftruncate(file, length) == 0 ? 0 : errno;
}

}  // namespace

void remove_own_folders() noexcept {
  for (Place& place : places) remove(place);
}

OwnFolder::OwnFolder(const fs::path& parent) {
  remove_abandoned(parent);
  std::string name = (parent / fmt::format("{}{}-{}", prefix(), getpid(), std::string(random_letters, 'X'))).string();
  if (mkdtemp(name.data()) == nullptr)
    throw Error(fmt::format("folder {}: no folder can be made in it: {}", parent.string(), std::strerror(errno)),
                Blame::machine);
  path_ = name;
  lock_ = lock(path_, O_CREAT);
  [[maybe_unused]] static const int at_exit = std::atexit(remove_own_folders);  // after a Stall nobody else does
  while (places[place_].is_taken.exchange(true)) place_ = (place_ + 1) % places.size();
  std::copy_n(name.c_str(), name.size() + 1, places[place_].path.begin());  // mkdtemp takes none that is longer
  places[place_].is_there = true;
}

OwnFolder::~OwnFolder() {
  remove(places[place_]);
  places[place_].is_taken = false;
  if (lock_ >= 0) close(lock_);
}

OwnFolder::File OwnFolder::reserve(std::size_t bytes) const {
  static std::atomic<std::size_t> count{0};
  if (!places[place_].is_there) return {{}, ECANCELED};  // the process ends
  const std::string name = std::to_string(count++);
  const fs::path path = path_ / name;
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return {{}, errno};
  const int error = reserve_room(file, bytes);
  close(file);
  if (error != 0) unlink(path.c_str());
  return {name, error};
}

}  // namespace asterism
