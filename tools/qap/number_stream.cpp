#include "number_stream.hpp"

#include <fmt/format.h>

namespace asterism::tools {

bool NumberStream::at_token() {
  while (!line_ || line_->at_end()) {
    std::string_view line;
    if (!lines_.next(line)) return false;
    line_.emplace(lines_, line);
  }
  return true;
}

std::optional<Index> NumberStream::next(const char* what, Index least, Index most) {
  if (!at_token()) return std::nullopt;
  return line_->whole(what, least, most);
}

void NumberStream::expect_end(const char* after) {
  if (at_token()) fail(fmt::format("{} is too much: the file ends with {}", line_->told(), after));
}

}  // namespace asterism::tools
