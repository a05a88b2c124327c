#include "output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "../../runtime/run/ending.hpp"
#include "../../runtime/error.hpp"
#include "file_bytes.hpp"

namespace asterism::tools {
namespace {

namespace fs = std::filesystem;

// The temporary files of this process: what a signal handler can reach. A file beyond the table's room is
// merely not removed by signals.
std::array<std::atomic<char*>, 16> temporaries;

void remember(const fs::path& path) {
  char* name = ::strdup(path.c_str());
  for (auto& slot : temporaries) {
    char* expected = nullptr;
    if (slot.compare_exchange_strong(expected, name)) return;
  }
  std::free(name);
}

void forget(const fs::path& path) {
  for (auto& slot : temporaries) {
    char* name = slot.load();
    // Whoever takes the name out of the table owns it: the handler may have been faster.
    if (name && path == name && slot.compare_exchange_strong(name, nullptr)) std::free(name);
  }
}

extern "C" void remove_temporaries(int signal) {
  for (auto& slot : temporaries)
    if (const char* name = slot.exchange(nullptr)) ::unlink(name);
  remove_own_folders();
  // The handler was reset to the default one (SA_RESETHAND), so that the process ends by this signal.
  ::raise(signal);
}

void check_target(const fs::path& target, const fs::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0)
    throw Error(fmt::format("{}: cannot be written: its folder {}: {}", target.string(), folder.string(),
                            system_reason()));
  if (!S_ISDIR(status.st_mode))
    throw Error(fmt::format("{}: cannot be written: {} is not a folder", target.string(), folder.string()));
  if (::stat(target.c_str(), &status) != 0) return;
  if (S_ISDIR(status.st_mode))
    throw Error(fmt::format("{}: is a folder: give the name of a file in it", target.string()));
  if (!S_ISREG(status.st_mode))
    throw Error(fmt::format("{}: is not a regular file, so it cannot be replaced", target.string()));
  if (::faccessat(AT_FDCWD, target.c_str(), W_OK, AT_EACCESS) != 0)
    throw Error(fmt::format("{}: exists and cannot be replaced: {}", target.string(), system_reason()));
}

/// The process that made a temporary file NAME.PROCESS-NUMBER.part for a target; 0 when it is no such name.
pid_t process_of(std::string_view name, const std::string& target) {
  constexpr std::string_view end = ".part";
  if (!name.starts_with(target + '.')) return 0;
  name.remove_prefix(target.size() + 1);
  if (!name.ends_with(end)) return 0;
  pid_t process = 0;
  unsigned number = 0;
  const char* const last = name.data() + name.size() - end.size();
  const auto first = std::from_chars(name.data(), last, process);
  if (first.ec != std::errc{} || first.ptr == last || *first.ptr != '-') return 0;
  const auto second = std::from_chars(first.ptr + 1, last, number);
  return second.ec == std::errc{} && second.ptr == last && process > 0 ? process : 0;
}

/// Removes what processes that were killed left of this target. A living one has its file locked: the number
/// alone would not tell, as it may run in another container or on another host. Where there are no locks, the
/// file stays.
void remove_abandoned(const fs::path& target) {
  const std::string name = target.filename().string();
  std::error_code failed;
  for (fs::directory_iterator entry(target.parent_path(), failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const pid_t process = process_of(entry->path().filename().string(), name);
    if (process == 0 || ::kill(process, 0) == 0 || errno != ESRCH) continue;
    const Descriptor file(::open(entry->path().c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file.number() >= 0 && ::flock(file.number(), LOCK_EX | LOCK_NB) == 0) ::unlink(entry->path().c_str());
  }
}

/// Locks a file that was just made. @return whether it is still there: before it was locked it could be
/// removed
bool lock(int file) {
  ::flock(file, LOCK_EX);
  struct stat status {};
  return ::fstat(file, &status) == 0 && status.st_nlink > 0;
}

}  // namespace

OutputFile::OutputFile(const fs::path& target) {
  if (target.empty() || !target.has_filename())
    throw Error(fmt::format("'{}': is not the name of a file to write", target.string()));
  // Through a symbolic link the file that it points to is replaced, not the link.
  std::error_code failure;
  const fs::path real = fs::canonical(target, failure);
  target_ = failure ? fs::absolute(target) : real;
  check_target(target_, target_.parent_path());
  remove_abandoned(target_);

  static std::atomic<unsigned> count{0};
  do {
    do {
      temporary_ = fmt::format("{}.{}-{}.part", target_.string(), ::getpid(), count++);
      file_ = Descriptor(::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    } while (descriptor() < 0 && errno == EEXIST);  // left by a process of the same number that was killed
    if (descriptor() < 0)
      throw Error(fmt::format("{}: cannot be written: {}", target.string(), system_reason()));
  } while (!lock(descriptor()));
  remember(temporary_);

  // The old file's permissions carry over, as if it were overwritten; where that is refused they are those of
  // a new one.
  if (!failure) fs::permissions(temporary_, fs::status(target_).permissions(), failure);
}

OutputFile OutputFile::attach(const fs::path& temporary) {
  OutputFile joined;
  joined.temporary_ = temporary;
  joined.file_ = Descriptor(::open(temporary.c_str(), O_RDWR | O_CLOEXEC));
  if (joined.descriptor() < 0)
    throw Error(fmt::format("{}: cannot be opened: {}; all nodes must see the folder of the output",
                            temporary.string(), system_reason()));
  return joined;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : target_(std::move(other.target_)),
      temporary_(std::move(other.temporary_)),
      file_(std::move(other.file_)) {
  other.target_.clear();
}

OutputFile::~OutputFile() {
  if (target_.empty()) return;
  ::unlink(temporary_.c_str());
  forget(temporary_);
}

void OutputFile::reserve(std::size_t bytes) {
  const auto length = static_cast<off_t>(bytes);
  // Not posix_fallocate: where the file system cannot reserve, that writes to every block instead.
  if (::fallocate(file_.number(), 0, 0, length) == 0) return;
  if ((errno == EOPNOTSUPP || errno == ENOSYS) && ::ftruncate(file_.number(), length) == 0) return;
  throw Error(fmt::format("{}: {} bytes cannot be reserved: {}", target_.string(), bytes, system_reason()),
              Blame::machine);
}

void OutputFile::commit() {
  if (::rename(temporary_.c_str(), target_.c_str()) != 0)
    throw Error(fmt::format("{}: cannot be renamed to {}: {}", temporary_.string(), target_.string(),
                            system_reason()));
  forget(temporary_);
  target_.clear();
}

void remove_temporaries_when_interrupted() {
  struct sigaction action {};
  action.sa_handler = remove_temporaries;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGABRT}) {  // StarPU's assertions end in the last one
    struct sigaction old {};
    ::sigaction(signal, nullptr, &old);
    if (old.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);  // a run under nohup stays so
  }
}

}  // namespace asterism::tools
