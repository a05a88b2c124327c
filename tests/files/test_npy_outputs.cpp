// An output appears complete or not at all.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "../support/messages.hpp"
#include "../support/process.hpp"
#include "../support/skip.hpp"
#include "npy_files.hpp"
#include "runtime/error.hpp"
#include "tools/files/npy/npy.hpp"

using namespace asterism;
using namespace asterism::test;
using namespace asterism::tools;
namespace fs = std::filesystem;

TEST_CASE("outputs that cannot be written are found at once, and nothing is touched") {
  const Folder folder;
  const auto message = [](const fs::path& path) {
    return message_of([&] { NpyWriter writer(path, Precision::f64, {2, 3}); });
  };
  const auto has = [](const std::string& text, const char* words) {
    CAPTURE(text);
    CHECK(text.find(words) != std::string::npos);
  };
  store(folder / "file", "old");
  has(message(folder.path()), "is a folder");
  has(message(folder.path() / ""), "not the name of a file");
  has(message(""), "not the name of a file");
  has(message(folder / "none/u.npy"), "none: No such file or directory");
  has(message(folder / "file/u.npy"), "file is not a folder");
  has(message("/dev/null"), "not a regular file");
  CHECK(load(folder / "file") == "old");
  CHECK(folder.entries() == 1);
}

namespace {

/// To root everything is allowed, and in some containers root cannot be anybody else.
SkipUnless somebody_can_be_refused() {
  const bool root = ::geteuid() == 0;
  return {!root || (::seteuid(65534) == 0 && ::seteuid(0) == 0), "root cannot be anybody else here"};
}

}  // namespace

TEST_CASE("outputs that this user may not write are found at once, and nothing is touched" *
          somebody_can_be_refused()) {
  const Folder folder;
  const auto message = [](const fs::path& path) {
    return message_of([&] { NpyWriter writer(path, Precision::f64, {2, 3}); });
  };
  store(folder / "file", "old");
  fs::permissions(folder / "file", fs::perms::owner_read);
  fs::create_directory(folder / "locked");
  fs::permissions(folder / "locked", fs::perms::owner_read | fs::perms::owner_exec);
  fs::permissions(folder.path(), fs::perms::all);
  const bool root = ::geteuid() == 0;
  if (root) REQUIRE(::seteuid(65534) == 0);
  CHECK(message(folder / "file").find("cannot be replaced: Permission denied") != std::string::npos);
  CHECK(message(folder / "locked/u.npy").find("cannot be written: Permission denied") != std::string::npos);
  if (root) REQUIRE(::seteuid(0) == 0);
  CHECK(load(folder / "file") == "old");
  CHECK(folder.entries() == 2);
}

TEST_CASE("a disk that is too small is the machine's fault, found at once") {
  const Folder folder;
  try {
    NpyWriter writer(folder / "u.npy", Precision::f64, {Index{1} << 30, Index{1} << 22});
    FAIL("32 PiB were reserved");
  } catch (const Error& error) {
    CHECK(error.blame() == Blame::machine);
    CHECK(std::string(error.what()).find("cannot be reserved") != std::string::npos);
  }
  CHECK(folder.entries() == 0);
}

TEST_CASE("an old file stays until a new one is complete") {
  const Folder folder;
  const fs::path path = folder / "u.npy";
  store(path, "old");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  { const NpyWriter writer(path, Precision::f64, {2, 3}); }
  CHECK(load(path) == "old");
  CHECK(folder.entries() == 1);

  NpyWriter writer(path, Precision::f64, {2, 3});
  CHECK(load(path) == "old");
  writer.commit();
  CHECK(fs::file_size(path) == 176);
  CHECK(fs::status(path).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(folder.entries() == 1);
}

TEST_CASE("through a symbolic link the file behind it is replaced") {
  const Folder folder;
  fs::create_directory(folder / "elsewhere");
  store(folder / "elsewhere/u.npy", "old");
  fs::create_symlink("elsewhere/u.npy", folder / "link.npy");
  NpyWriter writer(folder / "link.npy", Precision::f64, {2, 3});
  writer.commit();
  CHECK(fs::is_symlink(folder / "link.npy"));
  CHECK(fs::file_size(folder / "elsewhere/u.npy") == 176);
}

TEST_CASE("a process that is ended leaves the old file, and only when killed a temporary one beside it") {
  const Folder folder;
  const fs::path path = folder / "u.npy";
  store(path, "old");
  for (const int signal : {SIGINT, SIGTERM, SIGABRT, SIGKILL}) {
    CAPTURE(signal);
    const pid_t child = ::fork();
    if (child == 0) {
      std::signal(SIGINT, SIG_DFL);  // whatever the test program or the shell made of it
      remove_temporaries_when_interrupted();
      const NpyWriter writer(path, Precision::f64, {2, 3});
      std::raise(signal);
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == signal);
    CHECK(load(path) == "old");
    CHECK(folder.entries() == (signal == SIGKILL ? 2 : 1));  // until somebody writes there again
  }
}

TEST_CASE("what killed processes left of an output is removed by the next that writes it, and nothing else") {
  const Folder folder;
  const std::string dead = ".2147483647-", alive = "." + std::to_string(::getppid()) + "-";
  const std::vector<std::string> others{"u.npy" + alive + "0.part",
                                        "u.npy" + dead + "7.part",  // of one that we cannot see: locked
                                        "v.npy" + dead + "0.part",
                                        "u.npy" + dead + "0.part.npy",
                                        "u.npy" + dead + "x.part",
                                        "u.npy" + dead + ".part",
                                        "u.npy.-1-0.part",
                                        "u.npy.0-0.part",
                                        "u.npy.part",
                                        "u.npy"};
  for (const std::string& name : others) store(folder / name, "old");
  const int locked = ::open((folder / others[1]).c_str(), O_RDWR);
  REQUIRE(::flock(locked, LOCK_EX) == 0);
  for (const char* number : {"0", "12"}) store(folder / ("u.npy" + dead + number + ".part"), "old");
  const auto all = static_cast<long>(others.size());
  CHECK(folder.entries() == all + 2);
  {
    const NpyWriter writer(folder / "u.npy", Precision::f64, {2, 3});
    CHECK(folder.entries() == all + 1);
    const Descriptor another(::open(writer.temporary().c_str(), O_RDWR));  // that of a process that looks
    CHECK(::flock(another.number(), LOCK_EX | LOCK_NB) != 0);
  }
  for (const std::string& name : others) CHECK_MESSAGE(load(folder / name) == "old", name);
  CHECK(folder.entries() == all);
  ::close(locked);
}
