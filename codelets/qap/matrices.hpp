/// \file
/// The matrices of a quadratic assignment problem as its kernels have them, and the arithmetic of their elements.
///
/// All differences of costs are formed modulo 2^b, b the bits of an element: sums and products on the way may be beyond
/// that, the differences themselves never are, as whoever chooses the elements makes sure.
#pragma once

#include <cstdint>
#include <type_traits>

#include "../../runtime/ports.hpp"

namespace asterism::qap {

/// What an element of type E is computed with: without a sign, so that it may overflow.
template <class E>
using Unsigned = std::make_unsigned_t<E>;

/// a b modulo 2^b; the product of two numbers of 16 bits would be one of type int, which may not overflow.
template <class U>
ASTERISM_HOST_DEVICE U product(U a, U b) {
  using Wide = std::conditional_t<(sizeof(U) < sizeof(unsigned)), unsigned, U>;
  return static_cast<U>(static_cast<Wide>(a) * static_cast<Wide>(b));
}

/// Where E's type stands for "no move": more than every difference of costs.
template <class E>
ASTERISM_HOST_DEVICE constexpr E no_delta() {
  return static_cast<E>(static_cast<Unsigned<E>>(-1) >> 1);
}

/// Elements in a row: the first multiple of 64 bytes from n on.
template <class E>
constexpr Index padded(Index n) {
  constexpr Index lanes = 64 / sizeof(E);
  return parts(n, lanes) * lanes;
}

/// The matrices, one below the other in a tile, zeros on their diagonals: d_0 to d_(T-1), f_0 to f_(T-1), of n rows
/// each, then a row with the diagonal of d and one with that of f. T, `terms`, is 1 where d and f are symmetric; or
/// else 2, with d_1 and f_1 the transposes of d_0 and f_0.
template <class E>
struct MatrixView {
  using U = Unsigned<E>;

  const U* data;
  Index n, ld;
  int terms;
  bool has_diagonals;  ///< whether those rows have anything but zeros

  ASTERISM_HOST_DEVICE const U* d(int term, Index i) const { return data + (term * n + i) * ld; }
  ASTERISM_HOST_DEVICE const U* f(int term, Index i) const { return data + ((terms + term) * n + i) * ld; }
  ASTERISM_HOST_DEVICE const U* diagonal_of_d() const { return data + 2 * terms * n * ld; }
  ASTERISM_HOST_DEVICE const U* diagonal_of_f() const { return diagonal_of_d() + ld; }

  /// Rows of the tile.
  static constexpr Index rows(Index n, int terms) { return 2 * terms * n + 2; }
};

}  // namespace asterism::qap
