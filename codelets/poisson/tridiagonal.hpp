/// \file
/// Kernels on many tridiagonal systems at once, one per column, in segments of consecutive rows: the recurrences are in
/// recurrences.hpp, the tiles that they leave in interface_tiles.hpp.
#pragma once

#include "interface_tiles.hpp"

namespace asterism::poisson {

/// Whether `reduce` starts a segment or appends rows to one that is there already.
enum class Segment { start, append };

namespace cpu {

/// The Response (6 x n; 7 x n with waves) of the segment with the rows `axis`.
void respond(In<double> axis, In<double> mu, Out<double> response);

/// What the segment shows of the systems (S1) with f = scale * lines, one per column. `state`: state_rows x
/// n (wave_state_rows), whose first shown_rows (wave_shown_rows) are the result; read for Segment::append only.
template <class T>
void reduce(In<T> lines, In<double> axis, In<double> mu, double scale, InOut<double> state, Segment segment);

/// One step of the forward elimination for every column. `shown` may have more rows (a state). The prefixes
/// have prefix_rows (beyond_rows), or joined_rows (wave_joined_rows) on a periodic axis; before the first segment
/// `prefix_before` is zeros or has no data, but for waves it is what lies before the axis.
void eliminate(In<double> shown, In<double> response, In<double> prefix_before, Out<double> prefix_after);

/// The values before the first row and after the last of every column of a periodic axis (1 x n each; beyond_rows x n
/// with waves), from all segments joined.
void close(In<double> joined, Out<double> before_start, Out<double> after_end);

/// One step of the back substitution for every column. All but the tiles above are 1 x n (beyond_rows x n): `before_start` as `close`
/// gives it, zeros on an axis that is not periodic; `after` the `first` of the next segment, after the last one zeros, or
/// after_end on a periodic axis.
void substitute(In<double> shown, In<double> response, In<double> prefix_before, In<double> before_start,
                In<double> after, Out<double> first, Out<double> before);

/// Solves (S1) with f = scale * lines in place, for every column, between the known values `before` and
/// `after` (1 x n).
template <class T>
void solve(InOut<T> lines, In<double> axis, In<double> mu, double scale, In<double> before, In<double> after);

}  // namespace cpu

namespace cuda {

/// Rows that one thread keeps in registers. Segments are cut into blocks of this many rows (the last may be
/// shorter).
constexpr Index block_rows = 32;

ASTERISM_HOST_DEVICE constexpr Index blocks_of(Index rows) { return (rows + block_rows - 1) / block_rows; }

/// Elements of working memory for a segment of `rows` x `n`: the Boundary of every block, or what it emits and how it
/// scatters.
constexpr Index blocks_scratch(Index rows, Index n, const InterfaceRows& tiles = rows_without_waves) {
  return tiles.joined * blocks_of(rows) * n;
}

/// The working memory of the blocks of a segment of `rows` x `n`: planes of blocks x n, plane p with row p of every
/// block's Boundary, as in a tile of joined segments.
struct Blocks {
  double* data;
  Index rows, n;
  [[nodiscard]] ASTERISM_HOST_DEVICE double* plane(Index p) const { return data + p * blocks_of(rows) * n; }
};

/// As cpu::respond.
void respond(Stream stream, In<double> axis, In<double> mu, Out<double> response);

/// The boundaries of the blocks among a group of rows of the segment, from its row `first_row` on, a multiple
/// of block_rows. `lines` and `axis` have the group's rows: a multiple of block_rows unless they are the
/// segment's last.
template <class T>
void reduce_blocks(Stream stream, In<T> lines, Index first_row, In<double> axis, In<double> mu, double scale,
                   const Blocks& blocks);

/// What the whole segment shows (2 x n; 4 x n with waves) from its blocks, which stay as they are.
void join_blocks(Stream stream, In<double> mu, const Blocks& blocks, Out<double> shown);

/// As on the CPU.
void eliminate(Stream stream, In<double> shown, In<double> response, In<double> prefix_before,
               Out<double> prefix_after);
void close(Stream stream, In<double> joined, Out<double> before_start, Out<double> after_end);
void substitute(Stream stream, In<double> shown, In<double> response, In<double> prefix_before,
                In<double> before_start, In<double> after, Out<double> first, Out<double> before);

/// As cpu::solve: reads the lines twice and writes them once; the blocks' boundaries add 5 to 9 bytes per
/// element (the more, the fewer columns there are to many rows). `work`: blocks_scratch(rows, n) elements.
template <class T>
void solve(Stream stream, InOut<T> lines, In<double> axis, In<double> mu, double scale, In<double> before,
           In<double> after, double* work);

}  // namespace cuda
}  // namespace asterism::poisson
