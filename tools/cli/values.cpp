#include "values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "../../runtime/error.hpp"

namespace asterism::tools {
namespace {

/// "AxBxC" in its parts; the sign between them may be x, X or the multiplication sign.
std::vector<std::string_view> factors(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    std::size_t at = text.size(), length = 0;
    for (const std::string_view sign : {"x", "X", "\xc3\x97"})
      if (const auto found = text.find(sign); found < at) at = found, length = sign.size();
    parts.push_back(text.substr(0, at));
    if (length == 0) return parts;
    text.remove_prefix(at + length);
  }
}

/// Reads all of `text` as one number.
template <class T>
std::errc parse_number(std::string_view text, T& value) {
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc{} && end != text.data() + text.size() ? std::errc::invalid_argument : status;
}

/// The numbers of "AxBxC", `least` to 3 of them.
/// @param fail makes the Error of a part and what is wrong with it; @param parse reads a part
template <class Number, class Fail, class Parser>
std::vector<Number> parse_factors(const std::string& text, std::size_t least, const char* what,
                                  const Fail& fail, const Parser& parse) {
  const std::vector<std::string_view> parts = factors(text);
  if (parts.size() < least) throw fail(text, "has no 'x'");
  if (parts.size() > 3) throw fail(text, fmt::format("has {} {}", parts.size(), what));
  std::vector<Number> numbers;
  for (const std::string_view part : parts) numbers.push_back(parse(part));
  return numbers;
}

}  // namespace

std::size_t parse_size(const std::string& text) {
  constexpr auto most = std::numeric_limits<std::size_t>::max();
  const auto fail = [&](const char* what) {
    return Error(fmt::format(
        "size '{}' {}: write a number and K, M, G or T (powers of 1024), like 512M or 1.5G", text, what));
  };
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view number(text.data(), digits);
  std::string unit = text.substr(digits);
  std::transform(unit.begin(), unit.end(), unit.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? char(c - 32) : c; });

  int shift = 0;
  constexpr std::string_view prefixes = "KMGT";
  if (const auto prefix = prefixes.find(unit.empty() ? '?' : unit[0]); prefix != std::string_view::npos) {
    shift = 10 * (static_cast<int>(prefix) + 1);
    unit.erase(0, 1);
    if (unit == "IB" || unit == "I") unit.clear();
  }
  if (!unit.empty() && unit != "B") throw fail("has an unknown unit");

  // Whole numbers exactly, however many digits they have.
  if (number.find('.') == std::string_view::npos) {
    std::size_t value = 0;
    const std::errc status = parse_number(number, value);
    if (status == std::errc::result_out_of_range || (status == std::errc{} && value > most >> shift))
      throw fail("is beyond 64 bits");
    if (status != std::errc{}) throw fail("is not a number");
    return value << shift;
  }
  double value = 0;
  if (parse_number(number, value) != std::errc{}) throw fail("is not a number");
  if (shift == 0) throw fail("is a fraction of a byte");
  value = std::ldexp(value, shift);
  if (value >= 0x1p64) throw fail("is beyond 64 bits");
  return static_cast<std::size_t>(value);
}

std::vector<Index> parse_grid(const std::string& text, std::size_t least) {
  const auto fail = [&](std::string_view token, std::string_view what) {
    return Error(fmt::format(
        "grid '{}': '{}' {}: write rows x columns, like 4095x1023, or planes x rows x columns, like "
        "255x511x127",
        text, token, what));
  };
  const std::vector<Index> extents =
      parse_factors<Index>(text, least, "extents", fail, [&](std::string_view token) {
        Index extent = 0;
        const std::errc status = parse_number(token, extent);
        if (status == std::errc::result_out_of_range) throw fail(token, "is too large");
        if (status != std::errc{}) throw fail(token, "is not a whole number");
        return extent;
      });
  const auto refuse = [&](const char* what) {
    return Error(fmt::format("grid is {}: {}", fmt::join(extents, " x "), what));
  };
  for (const Index extent : extents)
    if (extent < 1) throw refuse("every extent must be at least 1");
  // The bytes of a float64 grid have to be countable, with room for its padding.
  Index room = std::numeric_limits<Index>::max() / 16;
  for (const Index extent : extents) room /= extent;
  if (room < 1) throw refuse("more points than can be counted");
  return extents;
}

std::vector<double> parse_lengths(const std::string& text, std::size_t least) {
  const auto fail = [&](std::string_view token, std::string_view what) {
    return Error(fmt::format(
        "lengths '{}': '{}' {}: write the lengths along y and x, like 1x2.5, or along z, y and x, "
        "like 1x1x2.5",
        text, token, what));
  };
  return parse_factors<double>(text, least, "lengths", fail, [&](std::string_view token) {
    double length = 0;
    if (parse_number(token, length) != std::errc{}) throw fail(token, "is not a number");
    if (!(length > 0) || !std::isfinite(length)) throw fail(token, "is not positive and finite");
    return length;
  });
}

double parse_real(const std::string& text) {
  double value = 0;
  if (parse_number(text, value) != std::errc{}) throw Error(fmt::format("'{}' is not a number", text));
  if (!std::isfinite(value)) throw Error(fmt::format("'{}' is not finite", text));
  return value;
}

double parse_fraction(const std::string& text, const char* as) {
  const double value = parse_real(text);
  if (!(value > 0 && value < 1))
    throw Error(fmt::format("'{}' does not lie between 0 and 1, both excluded, {}", text, as));
  return value;
}

double parse_tolerance(const std::string& text) { return parse_fraction(text, "as relative residuals do"); }

template <class T>
T parse_whole(const std::string& text, T least) {
  std::make_unsigned_t<T> value = 0;
  const std::errc status = parse_number(text, value);
  if (status == std::errc::result_out_of_range || (status == std::errc{} && !std::in_range<T>(value)))
    throw Error(fmt::format("'{}' is too large", text));
  if (status != std::errc{} || static_cast<T>(value) < least)
    throw Error(fmt::format("'{}' is not a whole number from {} on", text, least));
  return static_cast<T>(value);
}

template int parse_whole(const std::string&, int);
template Index parse_whole(const std::string&, Index);
template std::uint64_t parse_whole(const std::string&, std::uint64_t);

std::vector<Index> parse_counts(const std::string& text) {
  std::vector<Index> counts;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    counts.push_back(parse_count(text.substr(start, end - start)));
    start = end + 1;
  }
  return counts;
}

}  // namespace asterism::tools
