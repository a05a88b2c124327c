#include "finite.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace asterism::tools {
namespace {

/// Whether any of `count` numbers is NaN or infinite: their exponents are all ones, so that adding one to the
/// exponent carries into the sign. Integer operations without a branch, which compilers turn into vectors.
template <class T>
bool any_not_finite(const T* data, Index count) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits exponent = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  constexpr Bits one = exponent & (~exponent + 1);
  constexpr Index block = 64;
  const auto carry = [](T value) { return (std::bit_cast<Bits>(value) & exponent) + one; };
  Bits carries = 0;
  Index i = 0;
  for (; i + block <= count; i += block)
    for (Index j = 0; j < block; ++j) carries |= carry(data[i + j]);
  for (; i < count; ++i) carries |= carry(data[i]);
  return carries > exponent;
}

}  // namespace

template <class T>
std::optional<Position> first_not_finite(const T* data, Index rows, Index cols, Index ld) {
  for (Index i = 0; i < rows; ++i) {
    const T* row = data + i * ld;
    if (!any_not_finite(row, cols)) continue;
    return Position{i, std::find_if(row, row + cols, [](T value) { return !std::isfinite(value); }) - row};
  }
  return std::nullopt;
}

template std::optional<Position> first_not_finite(const float*, Index, Index, Index);
template std::optional<Position> first_not_finite(const double*, Index, Index, Index);

}  // namespace asterism::tools
