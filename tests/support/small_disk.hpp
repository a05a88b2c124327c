/// \file
/// Disks that fill up.
#pragma once

#include <doctest/doctest.h>
#include <sys/mount.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "process.hpp"
#include "skip.hpp"

namespace asterism::test {

/// Only root may mount a disk, and not in every container.
inline SkipUnless disks_can_be_mounted() {
  static const bool can = [] {
    std::error_code no_such_folder;
    std::string folder = std::filesystem::temp_directory_path(no_such_folder) / "asterism-mount-XXXXXX";
    if (no_such_folder || ::mkdtemp(folder.data()) == nullptr) return false;
    const bool mounted = ::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=64K") == 0;
    if (mounted) ::umount2(folder.c_str(), MNT_DETACH);
    ::rmdir(folder.c_str());
    return mounted;
  }();
  return {can, "only root may mount a small disk"};
}

/// A file system of its own, in main memory.
class SmallDisk {
 public:
  /// @param options of mount(8): "size=4M"
  explicit SmallDisk(const std::string& options) {
    REQUIRE(::mount("tmpfs", folder_.c_str(), "tmpfs", 0, options.c_str()) == 0);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() { ::umount2(folder_.c_str(), MNT_DETACH); }

  [[nodiscard]] std::string folder() const { return folder_.string(); }
  void change(const std::string& options) const {
    REQUIRE(::mount("tmpfs", folder_.c_str(), "tmpfs", MS_REMOUNT, options.c_str()) == 0);
  }
  /// Takes all room that is left.
  void fill() const {
    std::ofstream file(folder_ / "full", std::ios::binary);
    const std::string block(4096, 'x');
    while (file.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }

 private:
  std::filesystem::path folder_ = fresh_folder("small-disk");
};

}  // namespace asterism::test
