/// \file
/// A text file line by line, from memory that one piece of it takes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "../../../runtime/ports.hpp"
#include "../descriptor.hpp"

namespace asterism::tools {

class TextLines {
 public:
  /// @param kind  what the caller wants: "a Matrix Market file"
  /// @throw Error: a file that cannot be read, that is empty, a folder, a pipe
  TextLines(std::filesystem::path path, std::string_view kind);

  /// The next line, without its end; it stays where it is until next() is called again.
  /// @return whether there was one
  /// @throw Error: a line longer than longest_line, a file that cannot be read any more
  bool next(std::string_view& line) {
    const char* const end = static_cast<const char*>(std::memchr(at_, '\n', left()));
    if (end == nullptr) return next_piece(line);
    line = {at_, static_cast<std::size_t>(end - at_)};
    at_ = end + 1;
    ++number_;
    return true;
  }

  /// Where a line begins.
  struct Place {
    std::size_t byte;
    Index lines;  ///< before it
  };
  /// Of what next() will give.
  [[nodiscard]] Place place() const { return {read_ - left(), number_}; }
  void go_to(Place place);

  [[nodiscard]] Index number() const { return number_; }  ///< of the last line that was given; the first is 1
  [[nodiscard]] std::size_t bytes_left() const { return size_ - std::min(size_, place().byte); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// @throw Error with the file, the number of the last line, and `what`
  [[noreturn]] void fail(const std::string& what) const;

  static constexpr std::size_t longest_line = std::size_t{1} << 20;

 private:
  [[nodiscard]] std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  bool next_piece(std::string_view& line);

  std::filesystem::path path_;
  Descriptor file_;
  std::size_t size_;
  std::unique_ptr<char[]> piece_;
  const char* at_ = nullptr;   // what next() looks at, in the piece
  const char* end_ = nullptr;  // of what is in the piece
  std::size_t read_ = 0;       // bytes of the file before end_
  Index number_ = 0;
};

}  // namespace asterism::tools
