/// \file
/// Files that are written under a temporary name beside their target and renamed when they are complete, so
/// that a failed run never leaves half a file or destroys an old one.
#pragma once

#include <cstddef>
#include <filesystem>

#include "descriptor.hpp"

namespace asterism::tools {

class OutputFile {
 public:
  /// Creates the temporary file, and removes those that killed processes left of the same target. Made before
  /// a long computation, it finds early whatever is wrong with the target.
  /// @throw Error when the target is a folder, lies in none, or may not be written.
  explicit OutputFile(const std::filesystem::path& target);

  /// Joins a file that another process created, whose temporary() is given. It has to end before the creator
  /// commits.
  static OutputFile attach(const std::filesystem::path& temporary);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  ///< removes what was created and not committed

  /// Sets the file's size and reserves the room on the disk, where the file system can do that.
  /// @throw Error when there is not enough room.
  void reserve(std::size_t bytes);

  /// Gives the file its name, replacing an old one in one step. When the bytes reach the disk is left to the
  /// system (no fsync, as in NumPy): a failing program cannot hurt the old file, only a power cut can.
  void commit();

  [[nodiscard]] int descriptor() const { return file_.number(); }
  [[nodiscard]] const std::filesystem::path& temporary() const { return temporary_; }

 private:
  OutputFile() = default;

  std::filesystem::path target_;  // empty when attached or committed: nothing to remove
  std::filesystem::path temporary_;
  Descriptor file_;
};

/// From now on SIGHUP, SIGINT, SIGTERM and SIGABRT remove temporary files, and what was spilled, before they
/// end the process.
void remove_temporaries_when_interrupted();

}  // namespace asterism::tools
