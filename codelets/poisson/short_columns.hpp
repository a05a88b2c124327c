/// \file
/// The kernel of tridiagonal.hpp on a GPU where columns are short and not many: a block of threads takes a few whole columns, and
/// a thread some of their rows, which it loads once, keeps, and stores once.
///
/// The rows of threads are the leaves of a binary tree. From the leaves up two segments each are joined to one; from the root
/// down, between whose ends all lies, what meets in the middle of a segment tells its halves what lies around them.
#pragma once

#include "tridiagonal.hpp"

namespace asterism::poisson::cuda {

/// Rows of a thread, how many threads a column may have, and how many unknowns all columns.
constexpr Index short_block_rows = 8, most_short_blocks = 128, most_short_unknowns = Index{3} << 17;

/// Whether columns of so many rows are taken so. On an H200, Dirichlet ends, float64, all of a solve in blocks of rows and so:
/// 63 x 63 44.5 and 36 us, 500 x 500 70 and 59, 63 x 63 x 63 68 and 60, 767 x 767 87 and 85.5, 1023 x 1023 61 and 66,
/// 127 x 127 x 127 99 and 113: with more unknowns, it is threads that lack.
constexpr bool takes_short_columns(Index rows, Index n, Index mu_rows) {
  return rows <= short_block_rows * most_short_blocks && rows * n <= most_short_unknowns &&
         !takes_whole_columns(n, mu_rows) && mu_rows == rows_without_waves.mu;
}

/// As cpu::solve.
template <class T>
void solve_short_columns(Stream stream, InOut<T> lines, In<double> axis, In<double> mu, double scale,
                         In<double> before, In<double> after);

/// As cpu::solve_ring.
template <class T>
void solve_short_rings(Stream stream, InOut<T> lines, In<double> axis, In<double> mu, double scale);

}  // namespace asterism::poisson::cuda
