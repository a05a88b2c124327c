/// \file
/// How dst1 and dct1 are done where N = n + 1 or n - 1 is odd and D Q, D a radix or a larger prime, without a common
/// divisor with Q: with little more than half of the numbers and the work of (T2) and (T4).
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
///
/// Where p is a prime above 17 instead of D, the rows a = 0 and a = g^m, 0 <= m < M = (p - 1)/2, are transformed along Q, g
/// and M as in (L4) of plan.hpp. With that, once for each kind of symmetry, along p,
///
///     E_{m,d} = z'_{a,d} + s z'_{a,-d},   O_{m,d} = z'_{a,d} - s z'_{a,-d},   a = g^m,
///     Ê_{q,d} = z'_{0,d} + sum_m E_{m,d} cos(2 pi g^{m-q} / p),   Ô_{q,d} = -i sum_m O_{m,d} sin(2 pi g^{m-q} / p),
///     Z_{c,d} = Ê_{q,d} + Ô_{q,d},   Z_{-c,d} = Ê_{q,d} - Ô_{q,d} = s Z_{c,-d},   c = g^-q,           (Y3)
///
/// E and Ê in the column of d, O and Ô in that of -d; in column 0, its own mirror, E alone for s = 1 and O alone for
/// s = -1. For a prime N = p there is no other column: then z_0 / 2 is put there, and Z_k / 2 found.
#pragma once

#include "plan.hpp"
#include "radices.hpp"

namespace asterism::transforms {

/// Where X_i is put: number `at` of a line's real numbers in shared memory, negative or not; in row 0, of which
/// both halves are stored, as z_{-j}'s part too, at `mirror`, with the sign s in front.
struct Target {
  std::uint32_t at : 15, negative : 1, mirror : 15, has_mirror : 1;
};
/// Which number Y_k is made of, and the signs of the two terms of (Y1) in their order there.
struct Source {
  std::uint16_t at : 14, negative_second : 1, negative_first : 1;
};
/// The places in row 0 of d and -d.
struct alignas(4) PlacePair {
  std::uint16_t plus, minus;
};

/// What a plan has besides its rows' FFTs, in the memory where it is wanted.
template <class T>
struct SymmetricTables {
  const Target* targets;    ///< of X_i for i = 0 ... N
  const Source* sources;    ///< of Y_k for k = 0 ... N
  const PlacePair* pairs;   ///< in the order of their places, for d and -d once
  const std::uint8_t* odd;  ///< for each place of a row, whether it is in a column with O of (Y3)
  const Complex<T>* twist;  ///< w^m of (L4) for each row; null: ones
};

template <class T>
struct SymmetricView {
  Transform kind;
  int N;            ///< the FFT's length
  int divisor;      ///< D, or p of (Y3)
  int row_numbers;  ///< of shared memory, that a row takes
  FftView<T> rows;  ///< Q numbers each
  SymmetricTables<T> tables;
  Divisor last_pass;  ///< the butterflies of (Y2)
};

/// A way to do N.
struct SymmetricWay {
  int divisor = 0;  ///< D or p; 0: it is none
  PlanSize size;

  [[nodiscard]] bool has_butterflies() const { return divisor <= largest_radix; }
};

/// With a D, where there is one, and with each p, as long as a Target has room for their places.
std::vector<SymmetricWay> symmetric_ways(Index N);

template <class T>
struct SymmetricPlan {
  SymmetricPlan(Transform kind, Index N, const SymmetricWay& way);

  int divisor;
  Index row_count;
  FftPlan<T> rows;
  std::vector<Target> targets;
  std::vector<Source> sources;
  std::vector<PlacePair> pairs;
  std::vector<std::uint8_t> odd;
  std::vector<Complex<T>> twist;
};

/// @param rows,tables of a plan, in the memory where they are wanted
template <class T>
SymmetricView<T> symmetric_view(Transform kind, Index N, const SymmetricPlan<T>& plan, const FftView<T>& rows,
                                const SymmetricTables<T>& tables) {
  return {kind,
          static_cast<int>(N),
          plan.divisor,
          rows.numbers / static_cast<int>(plan.row_count),
          rows,
          tables,
          Divisor(static_cast<unsigned>(rows.length / 2 + 1))};
}

}  // namespace asterism::transforms
