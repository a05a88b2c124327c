/// \file
/// NumPy arrays of any type of numbers in a zip archive (.npz), read from the first number to the last.
#pragma once

#include <string>
#include <vector>

#include "../../../runtime/ports.hpp"
#include "zip_archive.hpp"

namespace asterism::tools {

class ZippedArray {
 public:
  /// Opens NAME.npy of the archive and checks its header, and its size against its shape. @throw Error
  ZippedArray(const ZipArchive& archive, const std::string& name);

  [[nodiscard]] const std::vector<Index>& shape() const { return shape_; }
  [[nodiscard]] Index size() const { return size_; }               ///< how many numbers there are
  [[nodiscard]] const std::string& type() const { return type_; }  ///< without the order of its bytes: "f8"
  [[nodiscard]] const std::filesystem::path& path() const { return member_.path(); }  ///< for messages
  [[nodiscard]] Index position() const { return position_; }  ///< how many numbers were read or skipped

  /// The next numbers, or a double each. @throw Error: of another type; damaged; whole numbers that no double holds
  void read(Index* into, Index count);
  void read(double* into, Index count);
  void skip(Index count);

  /// What an array of a single text holds.
  std::string read_text();

  /// After all numbers. @throw Error: the checksum differs
  void require_end() { member_.require_end(); }

 private:
  template <class Take>
  void for_numbers(Index count, const Take& take);
  [[noreturn]] void wrong_type(const char* wanted) const;

  ZipMember member_;
  std::string type_;
  std::size_t number_bytes_ = 1;  // of each, never 0
  std::vector<Index> shape_;
  Index size_ = 1;
  Index position_ = 0;
};

/// One-dimensional, or an Error. @return its extent
Index require_line(const ZippedArray& array);

}  // namespace asterism::tools
