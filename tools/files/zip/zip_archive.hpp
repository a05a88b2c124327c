/// \file
/// Members of a zip archive, stored or deflated, from their first byte to their last.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

struct zip;
struct zip_file;

namespace asterism::tools {

/// A member that is being read. It has to end before its archive.
class ZipMember {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }  ///< in bytes, not compressed
  [[nodiscard]] const std::filesystem::path& path() const {
    return path_;
  }  ///< for messages: "m.npz: data.npy"

  /// Reads the next bytes. @throw Error: the member ends before, or is damaged
  void read(void* into, std::size_t bytes);

  /// After the last byte: compares the checksum. @throw Error: it is another, or there are bytes left
  void require_end();

 private:
  friend class ZipArchive;
  struct Close {
    void operator()(zip_file* member) const;
  };
  [[noreturn]] void damaged() const;

  std::filesystem::path path_;
  std::size_t size_ = 0;
  std::size_t read_ = 0;
  std::unique_ptr<zip_file, Close> member_;
};

class ZipArchive {
 public:
  /// @throw Error: a file that cannot be read, that is not an archive
  explicit ZipArchive(std::filesystem::path path);

  /// @throw Error: no such member; an encrypted one
  [[nodiscard]] ZipMember open(const std::string& name) const;

 private:
  struct Close {
    void operator()(zip* archive) const;
  };

  std::filesystem::path path_;
  std::unique_ptr<zip, Close> archive_;
};

}  // namespace asterism::tools
