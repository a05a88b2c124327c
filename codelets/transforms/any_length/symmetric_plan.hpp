/// \file
/// How dst1 and dct1 are done where N = n + 1 or n - 1 is D Q, D an odd radix without a common divisor with Q,
/// and Q odd: with little more than half of the numbers and the work of (T2) and (T4).
///
/// Let X be the line continued to the period 2N, odd for dst1 and even for dct1. Along the directions 2 and N of
/// its DFT, see (L1) of plan.hpp, with j and k modulo N and s = -1 for dst1, 1 for dct1,
///
///     z_j = X_{2j} + i X_{2j+N},   Z = DFT_N(z),   z_{-j} = s z_j,   Z_{-k} = s Z_k,
///     Y_k = (-1)^k Re Z_k - Im Z_k (dst1),   Re Z_k + (-1)^k Im Z_k (dct1).                        (Y1)
///
/// Along the directions D and Q, j = (a, b), k = (c, d): the rows a = 0 ... D/2 are transformed along Q, to z'_{a,d};
/// the others are z'_{-a,-d} = s z'_{a,d}, and
///
///     Z_{c,d} = sum_{a=0}^{D/2} z'_{a,d} exp(-2 pi i a c / D) + s sum_{a=1}^{D/2} z'_{a,-d} exp(2 pi i a c / D),
///     0 <= d <= Q/2,                                                                               (Y2)
///
/// is a butterfly of D numbers in registers, the last pass. Its numbers c > D/2 lie where z'_{D-c,-d} was.
#pragma once

#include "plan.hpp"

namespace asterism::transforms::cuda {

/// Where X_i is put: number `at` of a line's real numbers in shared memory, negative or not; in row 0, of which
/// both halves are stored, as z_{-j}'s part too, at `mirror`, with the sign s in front.
struct Target {
  std::uint32_t at : 15, negative : 1, mirror : 15, has_mirror : 1;
};
/// Which number Y_k is made of, and the signs of the two terms of (Y1) in their order there.
struct Source {
  std::uint16_t at : 14, negative_second : 1, negative_first : 1;
};
/// The places in row 0 of d and -d for a butterfly of (Y2).
struct alignas(4) PlacePair {
  std::uint16_t plus, minus;
};
constexpr int most_symmetric_numbers = 1 << 14;

template <class T>
struct SymmetricView {
  Transform kind;
  int length, N;           ///< of the line, of the FFT
  int radix;               ///< D
  int row_numbers;         ///< of shared memory, that a row takes
  FftView<T> rows;         ///< Q numbers each
  const Target* targets;   ///< of X_i for i = 0 ... N
  const Source* sources;   ///< of Y_k for k = 0 ... N
  const PlacePair* pairs;  ///< of the last pass, in the order of their places, for d and -d once
  Divisor last_pass;       ///< its butterflies
};

/// The D for N, or 0 where there is none.
int symmetric_radix(Index N);

/// Numbers of shared memory that a line takes; 0 where there is no D, or places are too many for a Target.
int symmetric_numbers(Index N);

template <class T>
struct SymmetricPlan {
  SymmetricPlan(Transform kind, Index N);

  int radix;
  FftPlan<T> rows;
  std::vector<Target> targets;
  std::vector<Source> sources;
  std::vector<PlacePair> pairs;
};

/// @param rows,targets,sources,pairs with their tables in the memory where they are wanted
template <class T>
SymmetricView<T> symmetric_view(Transform kind, Index n, const FftView<T>& rows, const Target* targets,
                                const Source* sources, const PlacePair* pairs) {
  const Index N = fft_length(kind, n);
  const int radix = static_cast<int>(N) / rows.length;
  return {kind,
          static_cast<int>(n),
          static_cast<int>(N),
          radix,
          rows.numbers / (radix / 2 + 1),
          rows,
          targets,
          sources,
          pairs,
          Divisor(static_cast<unsigned>(rows.length / 2 + 1))};
}

}  // namespace asterism::transforms::cuda
