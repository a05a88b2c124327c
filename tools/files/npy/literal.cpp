#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "../../../runtime/error.hpp"
#include "header.hpp"

namespace asterism::tools {

namespace fs = std::filesystem;

namespace {

/// The Python literal of a header, {'descr': '<f8', 'fortran_order': False, 'shape': (3, 5), }: strict in
/// what it means, tolerant of the order of its keys, of white space, and of either quote.
class HeaderParser {
 public:
  /// \param first_byte  where `text` begins in the file.
  HeaderParser(const fs::path& path, std::string_view text, std::size_t first_byte)
      : path_(path), text_(text), first_byte_(first_byte) {}

  ArrayLiteral parse() {
    ArrayLiteral array;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      const std::size_t at = next();
      const std::string_view key = string();
      expect(':');
      if (key == "descr" && !descr) {
        descr = true;
        array.descr_at = first_byte_ + next();
        array.descr = type();
      } else if (key == "fortran_order" && !order) {
        order = true;
        c_order();
      } else if (key == "shape" && !shape) {
        shape = true;
        array.shape_at = first_byte_ + next();
        extents(array);
      } else {
        fail(at, fmt::format("the key {} is unknown or there twice", quoted(key)));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (next() != text_.size()) fail(at_, fmt::format("{} follows the end of the header", token()));
    if (!descr || !order || !shape)
      fail(0, fmt::format("the header has no {}", !descr   ? "'descr'"
                                                  : !order ? "'fortran_order'"
                                                           : "'shape'"));
    return array;
  }

 private:
  [[noreturn]] void fail(std::size_t at, const std::string& what) const {
    throw Error(fmt::format("{}: byte {}: {}", path_.string(), first_byte_ + at, what));
  }

  /// Skips white space; where the next token begins.
  std::size_t next() {
    at_ = std::min(text_.find_first_not_of(" \t\r\n\f", at_), text_.size());
    return at_;
  }

  /// The next token, for messages.
  std::string token() const {
    if (at_ == text_.size()) return "the end of the header";
    const std::size_t length = text_.find_first_of(" \t\r\n,:(){}[]", at_ + 1);
    return quoted(text_.substr(at_, std::min<std::size_t>(length - at_, 20)));
  }

  bool accept(char c) {
    if (next() == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) fail(at_, fmt::format("'{}' is wanted, not {}", c, token()));
  }

  std::string_view string() {
    const char quote = accept('"') ? '"' : '\'';
    if (quote == '\'') expect('\'');
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) fail(at_ - 1, "a string that does not end");
    const std::string_view content = text_.substr(at_, end - at_);
    at_ = end + 1;
    return content;
  }

  std::string_view type() {
    if (at_ < text_.size() && text_[at_] == '[')
      fail(at_, "a structured type; plain numbers, '<f4' or '<f8' say, are wanted");
    return string();
  }

  void c_order() {
    const std::size_t at = next();
    if (accept_word("False")) return;
    if (accept_word("True")) fail(at, "fortran_order is True; save numpy.ascontiguousarray(a) instead");
    fail(at, fmt::format("fortran_order is True or False, not {}", token()));
  }

  bool accept_word(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  void extents(ArrayLiteral& array) {
    std::vector<Index>& shape = array.shape;
    const std::size_t at = next();
    expect('(');
    bool comma = false;  // one extent without a comma, (3), is a number in Python, not a shape
    while (!accept(')')) {
      if (!shape.empty() && !comma) fail(at_, fmt::format("',' or ')' is wanted, not {}", token()));
      const std::size_t digits = next();
      Index extent = 0;
      const auto [end, status] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
      if (status == std::errc::result_out_of_range)
        fail(digits, fmt::format("the extent {} is too large", token()));
      if (status != std::errc{}) fail(digits, fmt::format("an extent is wanted, not {}", token()));
      at_ = static_cast<std::size_t>(end - text_.data());
      if (extent < 0) fail(digits, fmt::format("the extent {}: no extent is negative", extent));
      shape.push_back(extent);
      array.extents_at.push_back(first_byte_ + digits);
      comma = accept(',');
    }
    if (shape.size() == 1 && !comma) fail(at, "the shape is a number, not a tuple");
  }

  const fs::path& path_;
  std::string_view text_;
  std::size_t first_byte_, at_ = 0;
};

[[noreturn]] void fail_at(const fs::path& path, std::size_t byte, const std::string& what) {
  throw Error(fmt::format("{}: byte {}: {}", path.string(), byte, what));
}

Precision precision_in(const fs::path& path, const ArrayLiteral& array) {
  const std::string_view descr = array.descr;
  if (descr == "<f4") return Precision::f32;
  if (descr == "<f8") return Precision::f64;
  if (descr == ">f4" || descr == ">f8")
    fail_at(path, array.descr_at,
            fmt::format("{} is big-endian; save a.astype('<{}') instead", quoted(descr), descr.substr(1)));
  fail_at(path, array.descr_at,
          fmt::format("the type {} is not '<f4' or '<f8'; save a.astype('<f8') instead", quoted(descr)));
}

}  // namespace

ArrayLiteral parse_array_literal(const fs::path& path, std::string_view literal, std::size_t first_byte) {
  return HeaderParser(path, literal, first_byte).parse();
}

NpyHeader parse_header(const fs::path& path, std::string_view literal, std::size_t first_byte) {
  const ArrayLiteral array = parse_array_literal(path, literal, first_byte);
  NpyHeader header;
  header.precision = precision_in(path, array);
  if (array.shape.empty())
    fail_at(path, array.shape_at, "the shape () is that of a single number, not of an array");
  for (std::size_t i = 0; i < array.shape.size(); ++i)
    if (array.shape[i] < 1)
      fail_at(path, array.extents_at[i],
              fmt::format("the extent {}: every extent must be at least 1", array.shape[i]));
  header.shape = array.shape;
  return header;
}

}  // namespace asterism::tools
