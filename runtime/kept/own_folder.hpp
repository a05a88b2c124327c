/// \file
/// Folders of a process' own: for what tiles are evicted to, and what StarPU works in. Private to runtime/.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace asterism {

/// A sub-folder asterism-HOST-PROCESS-XXXXXX of the folder that the user has given, for the files of this Runtime
/// alone; they and it are removed at its end, at the process's, and by remove_own_folders(). A process that was killed
/// leaves its own behind, maybe with terabytes: the next one on the same host removes it. Those of living processes and
/// of other hosts, and whatever else is there, stay. A Runtime has one or two.
class OwnFolder {
 public:
  /// @throw Error when the sub-folder cannot be made.
  explicit OwnFolder(const std::filesystem::path& parent);
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;
  ~OwnFolder();

  /// A new file in it.
  struct File {
    std::string name;
    int error;  ///< errno where it could not be made; 0 otherwise
  };
  /// Makes a file and reserves its room, so that writing to it cannot find the disk full (where the file system can
  /// reserve nothing: unless somebody else takes that room first).
  [[nodiscard]] File reserve(std::size_t bytes) const;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;
  std::size_t place_ = 0;
};

}  // namespace asterism
