/// \file
/// The numbers and words on a line of text, separated by blanks. Every failure names file, line and token.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "text_lines.hpp"

namespace asterism::tools {

class LineTokens {
 public:
  LineTokens(const TextLines& lines, std::string_view line)
      : lines_(lines), at_(line.data()), end_(line.data() + line.size()) {}

  /// Whether only blanks follow.
  bool at_end() {
    while (at_ != end_ && blank(*at_)) ++at_;
    return at_ == end_;
  }

  /// Whether the next token begins with a %: what follows is a comment.
  bool at_comment() { return !at_end() && *at_ == '%'; }

  /// The next token; empty where there is none.
  std::string_view word();

  /// A whole number from `least` to `most`. @param what  it is: "row" @throw Error
  Index whole(const char* what, Index least, Index most) {
    if (at_end()) missing(what);
    constexpr std::ptrdiff_t certain_digits = 18;  // so many cannot overflow
    const char* const most_digits = at_ + std::min(end_ - at_, certain_digits);
    const char* digit = at_;
    Index number = 0;
    while (digit != most_digits && *digit >= '0' && *digit <= '9') number = 10 * number + (*digit++ - '0');
    const bool plain = digit != at_ && (digit == end_ || blank(*digit));
    if (!plain || number < least || number > most) return other_whole(what, least, most);
    at_ = digit;
    return number;
  }

  /// A finite number. What is too small for a double becomes zero. @throw Error
  double real();

  /// A whole number that a double holds exactly. @throw Error
  double integer();

  /// @param wanted  what the line has: "row column value" @throw Error where anything follows
  void expect_end(const char* wanted) {
    if (!at_end()) too_many(wanted);
  }

  /// The next token in quotes, or what stands there instead, for messages.
  std::string told();

  [[noreturn]] void fail(const std::string& what) const { lines_.fail(what); }

 private:
  static bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
  [[nodiscard]] const char* token_end() const;
  [[nodiscard]] double far_real(const char* after);
  Index other_whole(const char* what, Index least, Index most);
  [[noreturn]] void missing(const char* what);
  [[noreturn]] void too_many(const char* wanted);

  const TextLines& lines_;
  const char* at_;
  const char* end_;
};

/// The next line that is neither blank nor a comment. @return whether there was one @throw Error
inline bool next_content(TextLines& lines, std::string_view& line) {
  while (lines.next(line)) {
    LineTokens tokens(lines, line);
    if (!tokens.at_end() && !tokens.at_comment()) return true;
  }
  return false;
}

}  // namespace asterism::tools
