#include "../runtime/cuda.hpp"
#include "tridiagonal.hpp"

namespace asterism::kernels::cuda {

using asterism::cuda::check_launch;
using asterism::cuda::native;

namespace {

constexpr int threads = 128;  // of the kernels with one thread per column or per column and block
constexpr int half = static_cast<int>(block_rows) / 2;
static_assert(2 * half == block_rows);

// The interface system of a column is cut into groups of consecutive blocks, one per warp of a thread block,
// because one thread per column would leave most of the GPU idle.
constexpr int group_columns = 32;
constexpr int groups = 16;

__host__ __device__ constexpr Index tiles_of(Index n, Index columns) { return (n + columns - 1) / columns; }

/// The column and block of rows that a thread works on. The grid is one-dimensional: its other extents end at
/// 65,535.
struct Place {
  Index column, block;
};
__device__ Place place(Index n) {
  const Index tiles = tiles_of(n, threads);
  return {static_cast<Index>(blockIdx.x) % tiles * threads + threadIdx.x,
          static_cast<Index>(blockIdx.x) / tiles};
}

unsigned grid(Index n, Index blocks) { return static_cast<unsigned>(tiles_of(n, threads) * blocks); }

template <class T>
__global__ void __launch_bounds__(threads)
    reduce_blocks_kernel(In<T> lines, const double* excess, double scale, double* y_first, double* y_last) {
  const auto [k, b] = place(lines.cols);
  if (k >= lines.cols) return;
  const Index rows = lines.rows - b * block_rows;
  const T* const column = lines.row(b * block_rows) + k;
  const double e = excess[k];
  Pivot pivot;
  Boundary whole;
  if (rows >= block_rows) {
    T f[block_rows];
#pragma unroll
    for (int i = 0; i < block_rows; ++i) f[i] = column[i * lines.ld];
    Ends upper, lower;  // from the top and from the bottom towards the middle
#pragma unroll
    for (int i = 0; i < half; ++i) {
      pivot.advance(e);
      upper.advance(scale * static_cast<double>(f[i]), pivot);
      lower.advance(scale * static_cast<double>(f[block_rows - 1 - i]), pivot);
    }
    whole = join({upper.first, upper.last, -pivot.m, -pivot.product},
                 {lower.last, lower.first, -pivot.m, -pivot.product});
  } else {
    Ends ends;
    for (Index i = 0; i < rows; ++i) {
      pivot.advance(e);
      ends.advance(scale * static_cast<double>(column[i * lines.ld]), pivot);
    }
    whole = {ends.first, ends.last, -pivot.m, -pivot.product};
  }
  y_first[b * lines.cols + k] = whole.y_first;
  y_last[b * lines.cols + k] = whole.y_last;
}

/// The blocks of one column that belong to one group.
class Group {
 public:
  __device__ Group(Index rows, Index n, Index column, int group, const double* excess)
      : n_(n), column_(column), last_block_(blocks_of(rows) - 1) {
    if (column >= n) return;  // no blocks: the thread only keeps the others company at barriers
    const Index blocks = blocks_of(rows), each = (blocks + groups - 1) / groups;
    begin_ = min(group * each, blocks);
    end_ = min(begin_ + each, blocks);
    const Index last_rows = rows - last_block_ * block_rows;
    for (Index i = 1; i <= block_rows; ++i) {
      full_.advance(excess[column]);
      if (i == last_rows) last_ = full_;
    }
  }

  __device__ Index begin() const { return begin_; }
  __device__ Index end() const { return end_; }
  /// Where block b of the column lies in a plane of blocks x n.
  __device__ Index at(Index b) const { return b * n_ + column_; }

  __device__ Boundary boundary(Index b, double y_first, double y_last) const {
    const Pivot& pivot = b == last_block_ ? last_ : full_;
    return {y_first, y_last, -pivot.m, -pivot.product};
  }

  /// The boundary of the whole group.
  __device__ Boundary joined(const double* y_first, const double* y_last) const {
    Boundary whole;
#pragma unroll 4
    for (Index b = begin_; b < end_; ++b) whole = join(whole, boundary(b, y_first[at(b)], y_last[at(b)]));
    return whole;
  }

 private:
  Index n_, column_, last_block_, begin_ = 0, end_ = 0;
  Pivot full_, last_;  // after the rows of a full block, and of the last one
};

__device__ Index group_column() { return static_cast<Index>(blockIdx.x) * group_columns + threadIdx.x; }

__global__ void __launch_bounds__(group_columns* groups)
    join_blocks_kernel(Index rows, Index n, const double* excess, const double* y_first, const double* y_last,
                       Out<double> boundary) {
  __shared__ double shared[groups][boundary_rows][group_columns];
  const Index k = group_column();
  const int w = static_cast<int>(threadIdx.x);
  const Boundary own = Group(rows, n, k, static_cast<int>(threadIdx.y), excess).joined(y_first, y_last);
  double(&mine)[boundary_rows][group_columns] = shared[threadIdx.y];
  mine[y_first_row][w] = own.y_first;
  mine[y_last_row][w] = own.y_last;
  mine[p_row][w] = own.p;
  mine[q_row][w] = own.q;
  __syncthreads();
  if (threadIdx.y != 0 || k >= n) return;
  Boundary whole;
  for (const auto& group : shared)
    whole = join(whole, {group[y_first_row][w], group[y_last_row][w], group[p_row][w], group[q_row][w]});
  boundary.row(y_first_row)[k] = whole.y_first;
  boundary.row(y_last_row)[k] = whole.y_last;
  boundary.row(p_row)[k] = whole.p;
  boundary.row(q_row)[k] = whole.q;
}

/// Solves the interface system of the blocks of a segment. On entry the planes hold y_first and y_last of
/// every block, on exit the known values below and above it; `betas` is a plane of working memory.
__global__ void __launch_bounds__(group_columns* groups)
    interface_kernel(Index rows, Index n, const double* excess, const double* above, const double* below,
                     double* y_first_to_below, double* y_last_to_above, double* betas) {
  __shared__ double shared[groups][boundary_rows][group_columns];
  __shared__ double shared_betas[groups][group_columns];
  const Index k = group_column();
  const int w = static_cast<int>(threadIdx.x);
  const Group blocks(rows, n, k, static_cast<int>(threadIdx.y), excess);
  double(&mine)[boundary_rows][group_columns] = shared[threadIdx.y];
  {
    const Boundary own = blocks.joined(y_first_to_below, y_last_to_above);
    mine[y_first_row][w] = own.y_first;
    mine[y_last_row][w] = own.y_last;
    mine[p_row][w] = own.p;
    mine[q_row][w] = own.q;
  }
  __syncthreads();

  // Among the groups, in the same way as below among the blocks of one.
  if (threadIdx.y == 0 && k < n) {
    Prefix prefix{above[k], 0.0};
#pragma unroll 1
    for (int g = 0; g < groups; ++g) {
      auto& group = shared[g];
      const Boundary boundary{group[y_first_row][w], group[y_last_row][w], group[p_row][w], group[q_row][w]};
      group[y_last_row][w] = prefix.alpha;
      shared_betas[g][w] = prefix.beta;
      prefix = kernels::eliminate(prefix, boundary);
    }
    double next = below[k];
#pragma unroll 1
    for (int g = groups - 1; g >= 0; --g) {
      auto& group = shared[g];
      const Neighbours neighbours =
          kernels::substitute({group[y_last_row][w], shared_betas[g][w]},
                              {group[y_first_row][w], 0.0, group[p_row][w], group[q_row][w]}, next);
      group[y_first_row][w] = next;
      group[y_last_row][w] = neighbours.above;
      next = neighbours.first;
    }
  }
  __syncthreads();

  // Among the blocks of the group.
  Prefix prefix{mine[y_last_row][w], 0.0};
  for (Index b = blocks.begin(); b < blocks.end(); ++b) {
    const Index at = blocks.at(b);
    const Boundary boundary = blocks.boundary(b, y_first_to_below[at], y_last_to_above[at]);
    y_last_to_above[at] = prefix.alpha;
    betas[at] = prefix.beta;
    prefix = kernels::eliminate(prefix, boundary);
  }
  double next = mine[y_first_row][w];
  for (Index b = blocks.end() - 1; b >= blocks.begin(); --b) {
    const Index at = blocks.at(b);
    const Neighbours neighbours = kernels::substitute({y_last_to_above[at], betas[at]},
                                                      blocks.boundary(b, y_first_to_below[at], 0.0), next);
    y_first_to_below[at] = next;
    y_last_to_above[at] = neighbours.above;
    next = neighbours.first;
  }
}

/// `lines` and `solution` are the same memory; under two names the compiler does not keep the addresses of
/// all rows in registers from the loads to the stores.
template <class T>
__global__ void __launch_bounds__(threads)
    solve_blocks_kernel(In<T> lines, const double* excess, double scale, const double* above,
                        const double* below, Out<T> solution) {
  const auto [k, b] = place(lines.cols);
  if (k >= lines.cols) return;
  const Index rows = lines.rows - b * block_rows;
  const T* const column = lines.row(b * block_rows) + k;
  T* const result = solution.row(b * block_rows) + k;
  const double e = excess[k];
  Pivot pivot;
  double upper = above[b * lines.cols + k], lower = below[b * lines.cols + k];
  if (rows >= block_rows) {
    // Eliminated from both ends: half of the pivots to compute and to keep in registers.
    T f[block_rows];
    double v[block_rows], m[half];
#pragma unroll
    for (int i = 0; i < block_rows; ++i) f[i] = column[i * lines.ld];
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const int mirrored = static_cast<int>(block_rows) - 1 - i;
      pivot.advance(e);
      m[i] = pivot.m;
      v[i] = upper = pivot.eliminate(upper, scale * static_cast<double>(f[i]));
      v[mirrored] = lower = pivot.eliminate(lower, scale * static_cast<double>(f[mirrored]));
    }
    // The two rows in the middle: v_u = upper + m v_l, v_l = lower + m v_u.
    v[half - 1] = (upper + pivot.m * lower) / (pivot.complement * (1.0 + pivot.m));
    v[half] = lower + pivot.m * v[half - 1];
#pragma unroll
    for (int i = half - 2; i >= 0; --i) {
      const int mirrored = static_cast<int>(block_rows) - 1 - i;
      v[i] += m[i] * v[i + 1];
      v[mirrored] += m[i] * v[mirrored - 1];
    }
#pragma unroll
    for (int i = 0; i < block_rows; ++i) result[i * solution.ld] = static_cast<T>(v[i]);
  } else {
    // The few rows at the end of a segment: local memory will do.
    double y[block_rows], m[block_rows];
    for (int i = 0; i < rows; ++i) {
      pivot.advance(e);
      m[i] = pivot.m;
      y[i] = upper = pivot.eliminate(upper, scale * static_cast<double>(column[i * lines.ld]));
    }
    for (int i = static_cast<int>(rows) - 1; i >= 0; --i) {
      lower = y[i] + m[i] * lower;
      result[i * solution.ld] = static_cast<T>(lower);
    }
  }
}

/// The boundary and prefix of one column.
__device__ Boundary boundary_at(const In<double>& boundary, Index k) {
  return {boundary.row(y_first_row)[k], boundary.row(y_last_row)[k], boundary.row(p_row)[k],
          boundary.row(q_row)[k]};
}
__device__ Prefix prefix_at(const In<double>& prefix, Index k) {
  return prefix.data == nullptr ? Prefix{} : Prefix{prefix.row(alpha_row)[k], prefix.row(beta_row)[k]};
}

__global__ void __launch_bounds__(threads)
    eliminate_kernel(In<double> boundary, In<double> before, Out<double> after) {
  const Index k = static_cast<Index>(blockIdx.x) * threads + threadIdx.x;
  if (k >= boundary.cols) return;
  const Prefix next = kernels::eliminate(prefix_at(before, k), boundary_at(boundary, k));
  after.row(alpha_row)[k] = next.alpha;
  after.row(beta_row)[k] = next.beta;
}

__global__ void __launch_bounds__(threads)
    substitute_kernel(In<double> boundary, In<double> before, In<double> below, Out<double> first,
                      Out<double> above) {
  const Index k = static_cast<Index>(blockIdx.x) * threads + threadIdx.x;
  if (k >= boundary.cols) return;
  const Neighbours neighbours =
      kernels::substitute(prefix_at(before, k), boundary_at(boundary, k), below.data[k]);
  first.data[k] = neighbours.first;
  above.data[k] = neighbours.above;
}

}  // namespace

template <class T>
void reduce_blocks(Stream stream, In<T> lines, In<double> excess, double scale, double* y_first,
                   double* y_last) {
  reduce_blocks_kernel<<<grid(lines.cols, blocks_of(lines.rows)), threads, 0, native(stream)>>>(
      lines, excess.data, scale, y_first, y_last);
  check_launch("reduce_blocks");
}

void join_blocks(Stream stream, Index rows, In<double> excess, const double* y_first, const double* y_last,
                 Out<double> boundary) {
  const Index n = excess.cols;
  join_blocks_kernel<<<static_cast<unsigned>(tiles_of(n, group_columns)), dim3(group_columns, groups), 0,
                       native(stream)>>>(rows, n, excess.data, y_first, y_last, boundary);
  check_launch("join_blocks");
}

void eliminate(Stream stream, In<double> boundary, In<double> before, Out<double> after) {
  eliminate_kernel<<<grid(boundary.cols, 1), threads, 0, native(stream)>>>(boundary, before, after);
  check_launch("eliminate");
}

void substitute(Stream stream, In<double> boundary, In<double> before, In<double> below, Out<double> first,
                Out<double> above) {
  substitute_kernel<<<grid(boundary.cols, 1), threads, 0, native(stream)>>>(boundary, before, below, first,
                                                                            above);
  check_launch("substitute");
}

template <class T>
void solve(Stream stream, InOut<T> lines, In<double> excess, double scale, In<double> above, In<double> below,
           double* work) {
  const Index n = lines.cols, blocks = blocks_of(lines.rows);
  double* const y_first_to_below = work;
  double* const y_last_to_above = work + blocks * n;
  double* const betas = work + 2 * blocks * n;
  reduce_blocks<T>(stream, {lines.data, lines.rows, n, lines.ld}, excess, scale, y_first_to_below,
                   y_last_to_above);
  interface_kernel<<<static_cast<unsigned>(tiles_of(n, group_columns)), dim3(group_columns, groups), 0,
                     native(stream)>>>(lines.rows, n, excess.data, above.data, below.data, y_first_to_below,
                                       y_last_to_above, betas);
  check_launch("interface");
  solve_blocks_kernel<T><<<grid(n, blocks), threads, 0, native(stream)>>>(
      {lines.data, lines.rows, n, lines.ld}, excess.data, scale, y_last_to_above, y_first_to_below,
      {lines.data, lines.rows, n, lines.ld});
  check_launch("solve_blocks");
}

template void reduce_blocks(Stream, In<float>, In<double>, double, double*, double*);
template void reduce_blocks(Stream, In<double>, In<double>, double, double*, double*);
template void solve(Stream, InOut<float>, In<double>, double, In<double>, In<double>, double*);
template void solve(Stream, InOut<double>, In<double>, double, In<double>, In<double>, double*);

}  // namespace asterism::kernels::cuda
