#include "text_lines.hpp"

#include <fmt/format.h>

#include <utility>

#include "../../../runtime/error.hpp"
#include "../file_bytes.hpp"

namespace asterism::tools {

TextLines::TextLines(std::filesystem::path path, std::string_view kind)
    : path_(std::move(path)),
      file_(open_to_read(path_)),
      size_(size_to_read(file_.number(), path_, kind)),
      piece_(std::make_unique_for_overwrite<char[]>(longest_line)) {
  at_ = end_ = piece_.get();
}

bool TextLines::next_piece(std::string_view& line) {
  const std::size_t begun = left();
  if (begun == longest_line) {
    ++number_;
    fail(fmt::format("the line has more than {} bytes, so that this is hardly a text file", longest_line));
  }
  std::memmove(piece_.get(), at_, begun);
  const std::size_t got =
      read_up_to(file_.number(), path_, piece_.get() + begun, longest_line - begun, read_);
  read_ += got;
  at_ = piece_.get();
  end_ = at_ + begun + got;
  if (got > 0) return next(line);
  if (begun == 0) return false;
  line = {at_, begun};  // the last line, which has no end of its own
  at_ = end_;
  ++number_;
  return true;
}

void TextLines::go_to(Place place) {
  at_ = end_ = piece_.get();
  read_ = place.byte;
  number_ = place.lines;
}

void TextLines::fail(const std::string& what) const {
  throw Error(fmt::format("{}: line {}: {}", path_.string(), number_, what));
}

}  // namespace asterism::tools
