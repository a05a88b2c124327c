/// \file
/// Whole numbers in a text file, separated by any white space.
#pragma once

#include <optional>
#include <string_view>

#include "../files/text/line_tokens.hpp"
#include "../files/text/text_lines.hpp"

namespace asterism::tools {

class NumberStream {
 public:
  /// @param kind what the caller wants: "a QAPLIB instance" @throw Error as TextLines
  NumberStream(const std::filesystem::path& path, std::string_view kind) : lines_(path, kind) {}

  /// The next number. @param what it is: "size" @throw Error: it is none, or not in `least` to `most`
  /// @return none at the end of the file
  std::optional<Index> next(const char* what, Index least, Index most);

  /// @throw Error where anything but white space follows @param after what the file should end with
  void expect_end(const char* after);

  [[nodiscard]] TextLines& lines() { return lines_; }
  [[noreturn]] void fail(const std::string& what) const { lines_.fail(what); }

 private:
  /// Goes on to the next line with anything on it, where nothing is left on this one.
  bool at_token();

  TextLines lines_;
  std::optional<LineTokens> line_;
};

}  // namespace asterism::tools
