#include "line_tokens.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <system_error>

#include "../npy/header.hpp"

namespace asterism::tools {
namespace {

/// A + before a number is usual, but std::from_chars takes none.
const char* after_plus(const char* at, const char* end) {
  return end - at > 1 && *at == '+' && at[1] != '-' && at[1] != '+' ? at + 1 : at;
}

}  // namespace

const char* LineTokens::token_end() const { return std::find_if(at_, end_, blank); }

std::string LineTokens::told() {
  if (at_end()) return "the end of the line";
  constexpr std::ptrdiff_t longest = 40;
  const auto length = token_end() - at_;
  const std::string text = quoted({at_, static_cast<std::size_t>(std::min(length, longest))});
  return length > longest ? text + "..." : text;
}

void LineTokens::missing(const char* what) { fail(fmt::format("the {} is missing", what)); }

void LineTokens::too_many(const char* wanted) {
  fail(fmt::format("{} is too much: the line has '{}' alone", told(), wanted));
}

std::string_view LineTokens::word() {
  if (at_end()) return {};
  const char* const begin = at_;
  at_ = token_end();
  return {begin, static_cast<std::size_t>(at_ - begin)};
}

// What whole() does not take at once: signs, very many digits, and what is wrong.
Index LineTokens::other_whole(const char* what, Index least, Index most) {
  const char* const after = token_end();
  Index number = 0;
  const auto [end, status] = std::from_chars(after_plus(at_, after), after, number);
  if (status == std::errc::invalid_argument || end != after)
    fail(fmt::format("the {} is {}, which is no whole number", what, told()));
  if (status == std::errc::result_out_of_range)
    fail(fmt::format("the {} is {}, which is beyond 64 bits", what, told()));
  if (number < least || number > most)
    fail(fmt::format("the {} is {}, which is not in {} to {}", what, told(), least, most));
  at_ = after;
  return number;
}

// std::from_chars says "out of range" of what is too large and of what is too small.
double LineTokens::far_real(const char* after) {
  const double number = std::strtod(std::string(at_, after).c_str(), nullptr);
  if (!std::isfinite(number)) fail(fmt::format("the value {} is too large for a double", told()));
  return number;
}

double LineTokens::real() {
  if (at_end()) missing("value");
  double number = 0;
  const auto [end, status] = std::from_chars(after_plus(at_, end_), end_, number);
  if (status == std::errc::invalid_argument || (end != end_ && !blank(*end)))
    fail(fmt::format("the value is {}, which is no number", told()));
  if (status == std::errc::result_out_of_range) number = far_real(end);
  if (!std::isfinite(number)) fail(fmt::format("the value is {}: every number must be finite", told()));
  at_ = end;
  return number;
}

double LineTokens::integer() {
  constexpr Index exact = Index{1} << 53;
  return static_cast<double>(whole("value", -exact, exact));
}

}  // namespace asterism::tools
