/// \file
/// Where tiles are evicted to. Private to runtime/.
#pragma once

#include <filesystem>

namespace asterism {

/// A sub-folder asterism-HOST-PROCESS-XXXXXX of the folder that the user has given, for the files of this Runtime
/// alone; they and it are removed at its end. A process that was killed leaves its own behind, maybe with terabytes:
/// the next one on the same host removes it. Those of living processes and of other hosts, and whatever else is there,
/// stay.
class SpillFolder {
 public:
  /// @throw Error when the sub-folder cannot be made.
  explicit SpillFolder(const std::filesystem::path& parent);
  SpillFolder(const SpillFolder&) = delete;
  SpillFolder& operator=(const SpillFolder&) = delete;
  ~SpillFolder();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace asterism
