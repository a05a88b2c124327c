/// \file
/// Many constant-coefficient tridiagonal systems at once, one per column, solved in segments of consecutive
/// rows.
///
/// Column k of a grid of m rows holds the system, with v_0 = v_{m+1} = 0,
///
///     v_{j-1} - d_k v_j + v_{j+1} = f_j,   j = 1 ... m,   d_k = 2 + excess_k,   excess_k >= 0. (S1)
///
/// A segment of s rows is a system T of its own once its neighbours `above` and `below` are known:
///
///     v = y - above T^-1 e_1 - below T^-1 e_s,   y = T^-1 f.
///
/// Only its first and last unknown matter to other segments. With p = (T^-1)[1,1] = (T^-1)[s,s] and
/// q = (T^-1)[1,s] = (T^-1)[s,1] (T is symmetric and Toeplitz)
///
///     first = y_first - p above - q below,   last = y_last - q above - p below, (S2)
///
/// so four numbers (y_first, y_last, p, q) say everything that the rest of the column needs to know
/// (Boundary), and the systems can be solved in any partition into segments: reduce every segment to its
/// Boundary, solve the interface system among the boundaries (eliminate, substitute), then solve every
/// segment with its neighbours known. The same formulas serve slabs of a grid and blocks of rows inside one
/// CUDA kernel.
///
/// All recurrences run in float64 whatever the type of the grid: in float32 d_k = 2 + excess_k would round to
/// 2 for the smooth modes of a long line, and their solutions would be wrong by a factor.
#pragma once

#include "../runtime/ports.hpp"

namespace asterism::kernels {

/// The elimination of T, row by row from either end (T is the same from both): the unknown of row j is
///
///     v_j = y_j + m_j v_{j+1},   y_j = m_j (y_{j-1} - f_j),   m_j = 1 / (d - m_{j-1}),   m_0 = 0, (S3)
///
/// where y_0 is the known value before the first row. The pivots are kept as 1 - m_j too, which does not
/// cancel when d is close to 2.
struct Pivot {
  double m = 0.0;           ///< m_j
  double complement = 1.0;  ///< 1 - m_j
  double product = 1.0;     ///< m_1 ... m_j

  ASTERISM_HOST_DEVICE void advance(double excess) {
    const double t = excess + complement;
    m = 1.0 / (1.0 + t);
    complement = t * m;
    product *= m;
  }

  /// y_j from y_{j-1}.
  ASTERISM_HOST_DEVICE double eliminate(double before, double f) const { return m * (before - f); }
};

/// What a segment shows of itself to its neighbours in one column: the terms of (S2). The default is a
/// segment without rows: it passes on what lies on its other side.
struct Boundary {
  double y_first = 0.0, y_last = 0.0, p = 0.0, q = -1.0;
};

/// The first and last unknown of the rows taken in so far, with zeros around them. Every row is looked at
/// once, in order; all terms of `first` carry the weights of a row of T^-1, which have one sign, so nothing
/// cancels that the system itself does not cancel.
struct Ends {
  double first = 0.0, last = 0.0;

  /// Takes in the next row; `pivot` has been advanced to it.
  ASTERISM_HOST_DEVICE void advance(double f, const Pivot& pivot) {
    first += pivot.product * (last - f);
    last = pivot.eliminate(last, f);
  }
};

/// The Boundary of two adjacent segments taken as one.
ASTERISM_HOST_DEVICE inline Boundary join(const Boundary& upper, const Boundary& lower) {
  const double r = 1.0 / (1.0 - upper.p * lower.p);
  return {upper.y_first - upper.q * r * (lower.y_first - lower.p * upper.y_last),
          lower.y_last - lower.q * r * (upper.y_last - upper.p * lower.y_first),
          upper.p + upper.q * upper.q * lower.p * r, -upper.q * lower.q * r};
}

/// The interface system, eliminated from the first segment down to segment c: last_c = alpha - beta
/// first_{c+1}. Before the first segment: alpha is the known value above it (zero at a Dirichlet side), beta
/// is zero.
struct Prefix {
  double alpha = 0.0, beta = 0.0;
};

/// One step of the forward elimination of the interface system: from segment c-1 to c.
ASTERISM_HOST_DEVICE inline Prefix eliminate(const Prefix& before, const Boundary& b) {
  const double r = 1.0 / (1.0 - b.p * before.beta);
  return {b.y_last - b.q * (before.alpha - before.beta * r * (b.y_first - b.p * before.alpha)),
          b.p + b.q * b.q * before.beta * r};
}

/// The values beside a segment that its own solve needs, or passes on.
struct Neighbours {
  double above;  ///< the last unknown of the segment above
  double first;  ///< this segment's first unknown: the value below the segment above
};

/// One step of the back substitution: what lies above segment c, and its own first unknown, from the value
/// below it.
ASTERISM_HOST_DEVICE inline Neighbours substitute(const Prefix& before, const Boundary& b, double below) {
  const double r = 1.0 / (1.0 - b.p * before.beta);  // does not wait for `below`
  const double first = r * (b.y_first - b.p * before.alpha - b.q * below);
  return {before.alpha - before.beta * first, first};
}

/// The rows of a tile of boundaries (4 x n), of prefixes (2 x n).
enum BoundaryRow : Index { y_first_row, y_last_row, p_row, q_row, boundary_rows };
enum PrefixRow : Index { alpha_row, beta_row, prefix_rows };

/// Whether `reduce` starts a segment or appends rows below a segment whose boundary is there already.
enum class Segment { start, append };

namespace cpu {

/// Boundaries of the systems T v = scale * lines (S1), one per column; `excess`: 1 x n; `boundary`: 4 x n,
/// read for Segment::append only.
template <class T>
void reduce(In<T> lines, In<double> excess, double scale, InOut<double> boundary, Segment segment);

/// One step of `eliminate` for every column. `before`, `after`: 2 x n (its data nullptr: zeros above).
void eliminate(In<double> boundary, In<double> before, Out<double> after);

/// One step of `substitute` for every column. `below`, `first`, `above`: 1 x n.
void substitute(In<double> boundary, In<double> before, In<double> below, Out<double> first,
                Out<double> above);

/// Solves T v = scale * lines - above e_1 - below e_s (S1) in place, for every column. `above`, `below`: 1 x
/// n.
template <class T>
void solve(InOut<T> lines, In<double> excess, double scale, In<double> above, In<double> below);

}  // namespace cpu

namespace cuda {

/// Rows that one thread keeps in registers. Segments are cut into blocks of this many rows (the last may be
/// shorter). Even: a thread eliminates its block from both ends towards the middle, so that each pivot serves
/// two rows.
constexpr Index block_rows = 32;

ASTERISM_HOST_DEVICE constexpr Index blocks_of(Index rows) { return (rows + block_rows - 1) / block_rows; }

/// Elements of working memory for a segment of `rows` x `n`: three planes of blocks x n.
constexpr Index blocks_scratch(Index rows, Index n) { return 3 * blocks_of(rows) * n; }

/// First and last unknown of every block's own solve (zero neighbours), for the rows of `lines`; block b of
/// column k goes to y_first[b * n + k] and y_last[b * n + k].
template <class T>
void reduce_blocks(Stream stream, In<T> lines, In<double> excess, double scale, double* y_first,
                   double* y_last);

/// The boundary (4 x n) of a whole segment of `rows` rows from those of its blocks.
void join_blocks(Stream stream, Index rows, In<double> excess, const double* y_first, const double* y_last,
                 Out<double> boundary);

/// As cpu::eliminate.
void eliminate(Stream stream, In<double> boundary, In<double> before, Out<double> after);

/// As cpu::substitute.
void substitute(Stream stream, In<double> boundary, In<double> before, In<double> below, Out<double> first,
                Out<double> above);

/// As cpu::solve: reads the lines twice and writes them once. `work`: blocks_scratch(rows, n) elements.
template <class T>
void solve(Stream stream, InOut<T> lines, In<double> excess, double scale, In<double> above, In<double> below,
           double* work);

}  // namespace cuda
}  // namespace asterism::kernels
