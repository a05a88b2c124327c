/// \file
/// Kernels on many tridiagonal systems at once, one per column, in segments of consecutive rows: the recurrences are in
/// recurrences.hpp, the tiles that they leave in interface_tiles.hpp.
#pragma once

#include <algorithm>

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

/// One step of the elimination for every column: what is shown by all segments from the first one (from the last, if it
/// goes backward) to this one, as a prefix or, on a periodic axis, as joined segments. Before the first, `before` is zeros,
/// but for waves how what lies before the axis reflects.
void eliminate(Direction direction, Told segment, Told before, Out<double> shown);
/// How they respond. Nothing that is shown is looked at.
void eliminate_response(Direction direction, Told segment, Told before, Out<double> response);

/// The values before the first row and after the last of every column of a periodic axis (1 x n each; beyond_rows x n
/// with waves), from the segments that were joined from the first one on and, backward, from the last one on.
void close(Told left, Told right, Out<double> before_start, Out<double> after_end);

/// The unknowns on both sides of where a forward and a backward elimination meet: the first one after it, the last one
/// before it (1 x n; beyond_rows x n with waves). @param before_start, after_end as `close` gives them, zeros on an axis
/// that is not periodic
void meet(In<double> mu, Told left, Told right, In<double> before_start, In<double> after_end, Out<double> first,
          Out<double> last);

/// One step of the back substitution for every column, in an elimination that goes forward: what lies before the segment,
/// and its own first unknown, from what lies `after` it, all 1 x n (beyond_rows x n). @param prefix before the segment
/// @param start before_start; after_end, if it goes backward
void substitute(Direction direction, Told segment, Told prefix, In<double> start, In<double> after, Out<double> first,
                Out<double> before);

/// Solves (S1) with f = scale * lines in place, for every column, between the known values `before` and
/// `after` (1 x n).
template <class T>
void solve(InOut<T> lines, In<double> axis, In<double> mu, double scale, In<double> before, In<double> after);

/// The same for a segment that is all of a periodic axis. @param response of it, as `respond` has it
/// @param work Ring::size(n, rows_with(mu)) elements
template <class T>
void solve_ring(InOut<T> lines, In<double> axis, In<double> mu, double scale, In<double> response,
                double* work);

}  // namespace cpu

namespace cuda {

/// Rows that a thread works on. Segments are cut into blocks of this many rows (the last may be shorter).
constexpr Index block_rows = 32;

/// How many blocks of `size` rows there are.
ASTERISM_HOST_DEVICE constexpr Index blocks_of(Index rows, Index size = block_rows) { return parts(rows, size); }

/// Columns that keep a GPU busy with a thread each (255 x 255 do on an H200).
constexpr Index many_columns = 60'000;

/// Whether a thread takes a whole column of such a segment (whole_columns.hpp), and not a block.
/// @param mu_rows rows of the tile of mu: waves are taken in blocks
constexpr bool takes_whole_columns(Index n, Index mu_rows) {
  return n >= many_columns && mu_rows == rows_without_waves.mu;
}

/// Rows of a block of a whole column.
constexpr Index column_block_rows = 16;

/// Numbers that a whole column is solved with: two for every block but the last.
constexpr Index whole_column_starts(Index rows) { return 2 * (blocks_of(rows, column_block_rows) - 1); }

/// Rows that groups of a segment's rows are multiples of.
constexpr Index group_rows(Index n, const InterfaceRows& tiles = rows_without_waves) {
  return takes_whole_columns(n, tiles.mu) ? column_block_rows : block_rows;
}

/// Elements of working memory for a segment of `rows` x `n`: the Boundary of every block, or what it emits and how it
/// scatters, and whether blocks are alike; of whole columns the state of their reduction, or where their elimination has
/// come to.
constexpr Index blocks_scratch(Index rows, Index n, const InterfaceRows& tiles = rows_without_waves) {
  if (takes_whole_columns(n, tiles.mu)) return std::max<Index>(state_rows, whole_column_starts(rows)) * n;
  return tiles.joined * blocks_of(rows) * n + blocks_of(rows);
}

/// The working memory of the blocks of a segment of `rows` x `n`: one after another, as tiles of joined segments. Where they
/// are like the one in the middle, as on an axis of equal spacings all are but those at its ends, they respond as it does,
/// and have no response of their own.
struct Blocks {
  double* data;
  Index rows, n;

  /// A whole one, unless it is the only one.
  [[nodiscard]] ASTERISM_HOST_DEVICE Index middle() const { return (blocks_of(rows) - 1) / 2; }
  /// One for every block: not zero where it is like the middle one. @param mu of the systems
  [[nodiscard]] double* alike(const In<double>& mu) const {
    return data + rows_with(mu).joined * blocks_of(rows) * n;
  }
};

/// As cpu::respond.
void respond(Stream stream, In<double> axis, In<double> mu, Out<double> response);

/// The boundaries of the blocks among a group of rows of the segment, from its row `first_row` on, a multiple
/// of group_rows, group after group. `lines` and `axis` have the group's rows: a multiple of group_rows unless they are the
/// segment's last.
template <class T>
void reduce_blocks(Stream stream, In<T> lines, Index first_row, In<double> axis, In<double> mu, double scale,
                   const Blocks& blocks);

/// What the whole segment shows (2 x n; 4 x n with waves) from its blocks, which stay as they are.
void join_blocks(Stream stream, In<double> mu, const Blocks& blocks, Out<double> shown);

/// As on the CPU.
void eliminate(Stream stream, Direction direction, Told segment, Told before, Out<double> shown);
void eliminate_response(Stream stream, Direction direction, Told segment, Told before, Out<double> response);
void close(Stream stream, Told left, Told right, Out<double> before_start, Out<double> after_end);
void meet(Stream stream, In<double> mu, Told left, Told right, In<double> before_start, In<double> after_end,
          Out<double> first, Out<double> last);
void substitute(Stream stream, Direction direction, Told segment, Told prefix, In<double> start, In<double> after,
                Out<double> first, Out<double> before);

/// As cpu::solve. `work`: blocks_scratch(rows, n) elements.
template <class T>
void solve(Stream stream, InOut<T> lines, In<double> axis, In<double> mu, double scale, In<double> before,
           In<double> after, double* work);

/// The same where columns are not short (short_columns.hpp): reads the lines twice and writes them once; the blocks' boundaries
/// add 5 to 9 bytes per element (the more, the fewer columns there are to many rows), 2 bytes where a thread takes a whole
/// column.
template <class T>
void solve_in_blocks(Stream stream, InOut<T> lines, In<double> axis, In<double> mu, double scale,
                     In<double> before, In<double> after, double* work);

/// As cpu::solve_ring. `work`: the ring's after blocks_scratch(rows, n).
template <class T>
void solve_ring(Stream stream, InOut<T> lines, In<double> axis, In<double> mu, double scale,
                In<double> response, double* work);
/// The same where columns are not short.
template <class T>
void solve_ring_in_blocks(Stream stream, InOut<T> lines, In<double> axis, In<double> mu, double scale,
                          In<double> response, double* work);

}  // namespace cuda
}  // namespace asterism::poisson
