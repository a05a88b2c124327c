/// \file
/// Which radices an FFT in shared memory is made of.
#pragma once

#include <vector>

#include "../../../runtime/ports.hpp"

namespace asterism::transforms::cuda {

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

/// Whether all prime factors of N are radices.
bool has_radices(Index N);

/// The directions of an FFT of such a length.
std::vector<Direction> directions(Index N);

/// The prime factors of N above the largest radix, in ascending order.
std::vector<Index> large_primes(Index N);

/// The length of the convolution (L2) of plan.hpp for a prime p.
Index rader_length(Index p);

}  // namespace asterism::transforms::cuda
