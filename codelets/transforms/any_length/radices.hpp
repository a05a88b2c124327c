/// \file
/// Which radices an FFT in shared memory is made of.
#pragma once

#include <limits>
#include <vector>

#include "../../../runtime/ports.hpp"

namespace asterism::transforms {

constexpr int largest_radix = 17;

/// Directions of an FFT, outermost first: their lengths have no common divisors; the product of a
/// direction's radices is its length.
struct Direction {
  Index length;
  std::vector<int> radices;
  Index inverse = 1;  ///< of the product of the other directions' lengths, modulo this one
};

/// The b with a b = 1 modulo n, for a without a common divisor with n.
Index inverse_modulo(Index a, Index n);

/// The powers 0 ... p - 2 of the least generator of the numbers modulo a prime p.
std::vector<Index> powers_of_generator(Index p);

/// Whether all prime factors of N are radices.
bool has_radices(Index N);

/// The directions of an FFT of such a length.
std::vector<Direction> directions(Index N);

/// The prime factors of N above the largest radix, in ascending order.
std::vector<Index> large_primes(Index N);

/// The length of the DFTs by which n numbers are convolved cyclically: n, or, where that has a prime factor above the
/// largest radix, the cheapest from 2 n - 1 on, of those up to `most` if there are any.
Index smooth_convolution_length(Index n, Index most = std::numeric_limits<Index>::max());

}  // namespace asterism::transforms
