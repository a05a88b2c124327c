/// \file
/// The two kinds of numbers that programs compute with and files hold.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>

namespace asterism::tools {

enum class Precision { f32, f64 };

template <class T>
constexpr Precision precision_of = std::is_same_v<T, float> ? Precision::f32 : Precision::f64;

constexpr std::size_t bytes_of(Precision precision) { return precision == Precision::f32 ? 4 : 8; }

/// The largest relative error of rounding a number.
constexpr double roundoff(Precision precision) { return precision == Precision::f32 ? 0x1p-24 : 0x1p-53; }

/// "f32" or "f64".
inline std::string to_string(Precision precision) { return precision == Precision::f32 ? "f32" : "f64"; }

/// What body.operator()<T>() returns, for T float or double.
template <class Body>
auto in_precision(Precision precision, const Body& body) {
  return precision == Precision::f32 ? body.template operator()<float>() : body.template operator()<double>();
}

}  // namespace asterism::tools
