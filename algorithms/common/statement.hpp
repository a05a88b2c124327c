/// \file
/// What a solver was given, in a form that ranks can compare.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace asterism {

/// Lines "name: value" for Runtime::require_alike.
class Statement {
 public:
  template <class Value>
  Statement& add(const char* name, const Value& value) {
    text_ += fmt::format("{}: {}\n", name, written(value));
    return *this;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  template <class Value>
  static std::string written(const Value& value) {
    if constexpr (std::is_enum_v<Value>)
      return fmt::format("{}", static_cast<int>(value));
    else
      return fmt::format("{}", value);
  }
  template <class Value>
  static std::string written(const std::optional<Value>& value) {
    return value ? written(*value) : "chosen";
  }
  /// Of many numbers only how many, and a number that two lists hardly ever have in common (FNV-1a).
  template <class Value>
  static std::string written(const std::vector<Value>& values) {
    if (values.size() <= 4) return fmt::format("{}", fmt::join(values, " x "));
    std::uint64_t hash = 14695981039346656037U;
    for (const Value& value : values) hash = (hash ^ std::bit_cast<std::uint64_t>(value)) * 1099511628211U;
    return fmt::format("{} numbers, digest {:016x}", values.size(), hash);
  }

  std::string text_;
};

}  // namespace asterism
