/// \file
/// The kernels of tridiagonal.hpp on a GPU where there are so many columns that a thread takes a whole one, one block of rows
/// after the other.
///
/// Nothing is joined then: a segment is reduced as on the CPU, and solved by (S3) from its first row to its last and back. On
/// the way back a block is eliminated once more, from where the elimination had come to before it: y and the pivot, two
/// numbers a block, are all that is kept.
#pragma once

#include "tridiagonal.hpp"

namespace asterism::poisson::cuda {

/// As cpu::reduce.
template <class T>
void reduce_whole_columns(Stream stream, In<T> lines, In<double> axis, In<double> mu, double scale,
                          InOut<double> state, Segment segment);

/// As cpu::solve. @param starts whole_column_starts(lines.rows) x n, overwritten
template <class T>
void solve_whole_columns(Stream stream, InOut<T> lines, In<double> axis, In<double> mu, double scale,
                         In<double> before, In<double> after, InOut<double> starts);

}  // namespace asterism::poisson::cuda
