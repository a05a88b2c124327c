/// \file
/// Numbers side by side in a vector register of a core: the arithmetic of one line's numbers for as many lines at once.
#pragma once

#include <cstring>
#include <type_traits>
#include <utility>

#include "../fold.hpp"

namespace asterism::transforms {

/// Of the cores that the code is compiled for.
#if defined(__AVX512F__)
constexpr int register_bytes = 64;
#elif defined(__AVX__)
constexpr int register_bytes = 32;
#else
constexpr int register_bytes = 16;
#endif

/// A number in each lane of a register.
/// @tparam S float or double
template <class S>
struct Lanes {
  static constexpr int count = register_bytes / sizeof(S);
  using Vector [[gnu::vector_size(register_bytes)]] = S;

  Vector of;

  Lanes() = default;
  explicit Lanes(Vector numbers) : of(numbers) {}
  /// The same one in all lanes.
  template <class Number, class = std::enable_if_t<std::is_arithmetic_v<Number>>>
  Lanes(Number number) : of(static_cast<S>(number) - Vector{}) {}

  friend Lanes operator+(Lanes a, Lanes b) { return Lanes(a.of + b.of); }
  friend Lanes operator-(Lanes a, Lanes b) { return Lanes(a.of - b.of); }
  friend Lanes operator*(Lanes a, Lanes b) { return Lanes(a.of * b.of); }
  friend Lanes operator/(Lanes a, int divisor) { return Lanes(a.of / static_cast<S>(divisor)); }
  friend Lanes operator-(Lanes a) { return Lanes(-a.of); }
  /// With one rounding on cores that have such an instruction.
  friend Lanes fma(Lanes a, Lanes b, Lanes c) { return Lanes(a.of * b.of + c.of); }
};

/// `count` neighbours, converted.
template <class S, class T>
Lanes<S> load_lanes(const T* from) {
  using Neighbours [[gnu::vector_size(Lanes<S>::count * sizeof(T))]] = T;
  Neighbours numbers;
  std::memcpy(&numbers, from, sizeof numbers);
  return Lanes<S>(__builtin_convertvector(numbers, typename Lanes<S>::Vector));
}
template <class S, class T>
void store_lanes(Lanes<S> numbers, T* to) {
  using Neighbours [[gnu::vector_size(Lanes<S>::count * sizeof(T))]] = T;
  const auto converted = __builtin_convertvector(numbers.of, Neighbours);
  std::memcpy(to, &converted, sizeof converted);
}

/// Lane k of a register i to lane i of register k, for as many registers as each has lanes.
template <class S>
void transpose(Lanes<S>* registers) {
  constexpr int count = Lanes<S>::count;
  const auto swap = [&]<int distance, int... k>(std::integral_constant<int, distance>, std::integer_sequence<int, k...>) {
    for (int i = 0; i < count; ++i) {
      if ((i & distance) != 0) continue;
      const auto a = registers[i].of, b = registers[i + distance].of;
      registers[i].of = __builtin_shufflevector(a, b, ((k & distance) != 0 ? k - distance + count : k)...);
      registers[i + distance].of = __builtin_shufflevector(a, b, ((k & distance) != 0 ? k + count : k + distance)...);
    }
  };
  constexpr std::make_integer_sequence<int, count> all{};
  if constexpr (count > 8) swap(std::integral_constant<int, 8>{}, all);
  if constexpr (count > 4) swap(std::integral_constant<int, 4>{}, all);
  if constexpr (count > 2) swap(std::integral_constant<int, 2>{}, all);
  swap(std::integral_constant<int, 1>{}, all);
}

/// Rounded alike by all compilers: some fuse a product with a sum, as fma has it, only where both are in one expression.
template <class S, class W>
Complex<Lanes<S>> operator*(Complex<Lanes<S>> a, Complex<W> b) {
  return {fma(a.re, b.re, -(a.im * b.im)), fma(a.re, b.im, a.im * b.re)};
}

template <class S, class W, class = std::enable_if_t<std::is_arithmetic_v<W>>>
Complex<Lanes<S>> operator*(Complex<W> a, Complex<Lanes<S>> b) {
  return b * a;
}

template <class S>
struct ScalarOf<Lanes<S>> {
  using type = S;
};

/// Without a branch: no core foresees the signs of a table.
template <class S>
Lanes<S> signed_as(bool negative, Lanes<S> x) {
  return x * (negative ? S{-1} : S{1});
}

}  // namespace asterism::transforms
