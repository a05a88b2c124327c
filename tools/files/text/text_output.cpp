#include "text_output.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "../../../runtime/error.hpp"
#include "../file_bytes.hpp"

namespace asterism::tools {
namespace {

template <class T>
void append(std::string& text, T number) {
  std::array<char, 32> digits{};  // of a double at most 24
  text.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
}

}  // namespace

void TextOutput::put(Index number) { append(piece_, number); }

void TextOutput::put(double number) {
  if (!std::isfinite(number))
    throw Error(fmt::format("{}: cannot be written: a number is {}: every number must be finite",
                            target_.string(), number));
  append(piece_, number);
}

void TextOutput::write() {
  write_all(file_.descriptor(), target_, piece_.data(), piece_.size(), written_);
  written_ += piece_.size();
  piece_.clear();
}

}  // namespace asterism::tools
