#include "../../runtime/contents.hpp"
#include "../../runtime/cuda.hpp"
#include "block_rows.cuh"
#include "boundaries.cuh"
#include "short_columns.hpp"
#include "wave_columns.hpp"
#include "whole_columns.hpp"

namespace asterism::poisson::cuda {

using asterism::cuda::check_launch;
using asterism::cuda::native;

namespace {

constexpr int threads = column_threads;

// The interface system of a column is cut into groups of consecutive blocks, one per warp of a thread block,
// because one thread per column would leave most of the GPU idle.
constexpr int group_columns = 32;
constexpr Index most_groups = 16;
constexpr Index least_group = 8;  // blocks

/// Groups for a segment. Several read the blocks twice, which many columns need not.
Index groups_of(const Blocks& blocks) {
  constexpr Index columns_of_one = Index{1} << 18;
  if (blocks.n >= columns_of_one) return 1;
  const Index wanted = parts(blocks_of(blocks.rows), least_group);
  return wanted < most_groups ? wanted : most_groups;
}

/// The column and block of rows that a thread of thread block `of` works on. The grid is one-dimensional: its other extents
/// end at 65,535.
struct Place {
  Index column, block;
};
__device__ Place place(Index n, unsigned of) {
  const auto tiles = static_cast<unsigned>(parts(n, threads));
  return {Index{of % tiles} * threads + threadIdx.x, Index{of / tiles}};
}

/// The working memory of a segment of whole columns, while it is reduced.
InOut<double> state_of(const Blocks& blocks) { return {blocks.data, state_rows, blocks.n, blocks.n}; }

unsigned grid(Index n, Index blocks) { return static_cast<unsigned>(parts(n, threads) * blocks); }

/// The boundaries of the blocks of one column.
struct InBlocks {
  double* column;
  Index n;
  __device__ InBlocks(const Blocks& blocks, Index k) : column(blocks.data + k), n(blocks.n) {}
  __device__ double& operator()(Index p, Index b) const { return column[(b * joined_rows + p) * n]; }
};

/// The same, to be read: those of blocks that are like the middle one respond as it does.
struct InAlikeBlocks : InBlocks {
  const double* alike;
  Response of_middle{};

  /// @param k a column, or none: blocks.n
  __device__ InAlikeBlocks(const Blocks& blocks, const double* are_alike, Index k) : InBlocks(blocks, k), alike(are_alike) {
    if (k < n && alike[blocks.middle()] != 0.0) of_middle = load_response(*this, blocks.middle());
  }
  [[nodiscard]] __device__ Boundary load(Index b) const {
    return {(*this)(y_first_row, b), (*this)(y_last_row, b), alike[b] != 0.0 ? of_middle : load_response(*this, b)};
  }
};

/// The boundaries of the groups of one column, in the shared memory of the thread block.
struct InGroups {
  double* column;
  __device__ double& operator()(Index p, Index g) const {
    return column[(g * joined_rows + p) * group_columns];
  }
  [[nodiscard]] __device__ Boundary load(Index g) const { return load_boundary(*this, g); }
};
std::size_t shared_bytes(Index groups) {
  return static_cast<std::size_t>(groups * joined_rows * group_columns) * sizeof(double);
}

/// Whether all rows of block b of an axis are as `row`. All threads of the thread block call it.
__device__ bool are_rows_like(const Row& row, const In<double>& axis, Index b) {
  const auto i = static_cast<int>(threadIdx.x);
  bool is_alike = true;
  if (i < rows_in_block<block_rows>(axis.rows, b)) is_alike = row_at(axis, b * block_rows + i).is_like(row);
  return __syncthreads_and(is_alike ? 1 : 0) != 0;
}

/// @param middle block that others may be like; -1 where it is not among the rows
template <class T>
__global__ void __launch_bounds__(threads, 6)
    reduce_blocks_kernel(In<T> lines, Index first_block, In<double> axis, In<double> mu, double scale,
                         Blocks blocks, double* alike, Index middle) {
  using Column = Arrivals<block_rows, T>;
  __shared__ SharedRow rows[block_rows];
  __shared__ typename Column::Slots slots;
  const auto [k, b] = place(lines.cols, blockIdx.x);
  const int count = rows_in_block<block_rows>(lines.rows, b);
  const bool is_mine = k < lines.cols && !is_wave(mu, k);
  const Column column(slots);
  if (is_mine) column.begin(lines.row(b * block_rows) + k, lines.ld, count);
  const bool are_alike = fetch_rows(axis, b, scale, rows);
  const bool is_like_middle = are_alike && count == block_rows && middle >= 0 && are_rows_like(rows[0].row, axis, middle);
  if (k == 0) alike[first_block + b] = is_like_middle ? 1.0 : 0.0;
  if (!is_mine) return;
  const double mode = mu.data[k];
  const InBlocks at(blocks, k);
  if (is_like_middle && b != middle) {
    const SharedRow row = rows[0];
    Reduction reduction;
    column.for_each(count, [&](int, double f) { reduction.append(row.row, mode, row.weight * f); });
    return store_shown(at, first_block + b, reduction.y_first, reduction.y_last);
  }
  Boundary boundary;
  with_rows(are_alike, rows, [&](const auto& row) {
    column.for_each(count, [&](int i, double f) { boundary.append(row(i).row, mode, row(i).weight * f); });
  });
  store(at, first_block + b, boundary);
}

/// The blocks of one column that belong to one group; none for a thread without column, which only keeps the
/// others company at barriers.
struct Group {
  Index begin, end;
  __device__ Group(const Blocks& blocks, Index column) {
    const Index all = column < blocks.n ? blocks_of(blocks.rows) : 0, each = parts(all, blockDim.y);
    begin = min(threadIdx.y * each, all);
    end = min(begin + each, all);
  }
  template <class At>
  __device__ Boundary joined(const At& at) const {
    Boundary whole;
#pragma unroll 4
    for (Index b = begin; b < end; ++b) whole = join(whole, at.load(b));
    return whole;
  }
};

__device__ Index group_column() { return Index{blockIdx.x} * group_columns + threadIdx.x; }

__global__ void __launch_bounds__(group_columns* most_groups)
    join_blocks_kernel(Blocks blocks, const double* alike, Out<double> shown) {
  extern __shared__ double shared[];
  const Index k = group_column();
  const InGroups groups{shared + threadIdx.x};
  store(groups, threadIdx.y, Group(blocks, k).joined(InAlikeBlocks(blocks, alike, k)));
  __syncthreads();
  if (threadIdx.y != 0 || k >= blocks.n) return;
  Boundary whole;
#pragma unroll 1
  for (unsigned g = 0; g < blockDim.y; ++g) whole = join(whole, groups.load(g));
  shown.row(y_first_row)[k] = whole.y_first;
  shown.row(y_last_row)[k] = whole.y_last;
}

/// Solves the interface system of the segments begin ... end-1 between known values. Afterwards the values
/// around each lie where its boundary had y_first (the one after it) and y_last (the one before it); more of
/// it is lost.
template <class At>
__device__ void solve_interface(const At& at, Index begin, Index end, const Around& around) {
  constexpr Index share_row = joined_response_row,
                  beta_row_here = joined_response_row + 1;  // not wanted any more
  if (begin == end) return;
  Prefix prefix{around.before};
  Boundary boundary = at.load(begin);
#pragma unroll 1
  for (Index b = begin; b < end; ++b) {
    const Boundary coming =
        at.load(b + 1 < end ? b + 1 : b);  // before the stores: it does not wait for them
    const First first = first_after(prefix, boundary.y_first, boundary.response.first);
    const Prefix next = eliminate(prefix, boundary, first);
    at(y_first_row, b) = first.y;
    at(y_last_row, b) = prefix.alpha;
    at(share_row, b) = first.share;
    at(beta_row_here, b) = prefix.beta;
    prefix = next;
    boundary = coming;
  }
  struct Eliminated {
    Prefix before;
    First first;
  };
  const auto eliminated = [&](Index b) {
    return Eliminated{{at(y_last_row, b), at(beta_row_here, b)}, {at(y_first_row, b), at(share_row, b)}};
  };
  double after = around.after;
  Eliminated segment = eliminated(end - 1);
#pragma unroll 1
  for (Index b = end - 1; b >= begin; --b) {
    const Eliminated coming = eliminated(b > begin ? b - 1 : b);
    const Neighbours neighbours = poisson::substitute(segment.before, segment.first, after);
    at(y_first_row, b) = after;
    at(y_last_row, b) = neighbours.before;
    after = neighbours.first;
    segment = coming;
  }
}

/// Solves the interface system of the blocks of a segment: first among the groups, if there are several.
__global__ void __launch_bounds__(group_columns* most_groups)
    interface_kernel(In<double> mu, Blocks blocks, const double* alike, const double* before, const double* after) {
  extern __shared__ double shared[];
  const Index column = group_column(), k = column < blocks.n && is_wave(mu, column) ? blocks.n : column;
  const Group group(blocks, k);
  const InAlikeBlocks at(blocks, alike, k);  // before the middle one's response is overwritten
  Around around{};
  if (k < blocks.n) around = {before[k], after[k]};
  if (blockDim.y > 1) {
    const InGroups groups{shared + threadIdx.x};
    store(groups, threadIdx.y, group.joined(at));
    __syncthreads();
    if (threadIdx.y == 0) solve_interface(groups, 0, blockDim.y, around);
    __syncthreads();
    around = {groups(y_last_row, threadIdx.y), groups(y_first_row, threadIdx.y)};
  }
  solve_interface(at, group.begin, group.end, around);
}

template <class T>
__global__ void __launch_bounds__(threads, 5)
    solve_blocks_kernel(InOut<T> lines, In<double> axis, In<double> mu, double scale, Blocks around) {
  using Column = Arrivals<block_rows, T, double>;
  __shared__ SharedRow rows[block_rows];
  __shared__ typename Column::Slots slots;
  const auto [k, b] = place(lines.cols, gridDim.x - 1 - blockIdx.x);  // what reduce_blocks read last may be in the cache
  const int count = rows_in_block<block_rows>(lines.rows, b);
  const bool is_mine = k < lines.cols && !is_wave(mu, k);
  const Column column(slots);
  T* const data = lines.row(b * block_rows) + k;
  if (is_mine) column.begin(data, lines.ld, count);
  const bool are_alike = fetch_rows(axis, b, scale, rows);
  if (!is_mine) return;
  const InBlocks at(around, k);
  with_rows(are_alike, rows, [&](const auto& row) {
    solve_rows<block_rows>([&](const auto& body) { column.for_each(count, body); }, count, row, mu.data[k],
                           {at(y_last_row, b), {}}, at(y_first_row, b), &slots[0][threadIdx.x], data, lines.ld);
  });
}

__device__ Index own_column() { return Index{blockIdx.x} * threads + threadIdx.x; }

__global__ void __launch_bounds__(threads)
    respond_kernel(In<double> axis, In<double> mu, Out<double> response) {
  const Index k = own_column();
  if (k >= mu.cols || is_wave(mu, k)) return;
  Response r;
#pragma unroll 4
  for (Index i = 0; i < axis.rows; ++i) r.append(row_at(axis, i), mu.data[k]);
  put(response, k, r);
}

template <Half half>
__global__ void __launch_bounds__(threads)
    eliminate_kernel(Direction direction, Told segment, Told before, Out<double> after) {
  const Index k = own_column();
  if (k < after.cols) eliminate_column(HalfConstant<half>(), direction, segment, before, after, k);
}

__global__ void __launch_bounds__(threads)
    close_kernel(Told left, Told right, Out<double> before_start, Out<double> after_end) {
  const Index k = own_column();
  if (k < before_start.cols) close_column(left, right, before_start, after_end, k);
}

__global__ void __launch_bounds__(threads)
    meet_kernel(In<double> mu, Told left, Told right, In<double> before_start, In<double> after_end,
                Out<double> first, Out<double> last) {
  const Index k = own_column();
  if (k < mu.cols) meet_column(mu, left, right, before_start, after_end, first, last, k);
}

__global__ void __launch_bounds__(threads)
    substitute_kernel(Direction direction, Told segment, Told prefix, In<double> start, In<double> after,
                      Out<double> first, Out<double> before) {
  const Index k = own_column();
  if (k < first.cols) substitute_column(direction, segment, prefix, start, after, first, before, k);
}

}  // namespace

void respond(Stream stream, In<double> axis, In<double> mu, Out<double> response) {
  respond_kernel<<<grid(mu.cols, 1), threads, 0, native(stream)>>>(axis, mu, response);
  check_launch("respond");
  respond_waves(stream, axis, mu, response);
}

template <class T>
void reduce_blocks(Stream stream, In<T> lines, Index first_row, In<double> axis, In<double> mu, double scale,
                   const Blocks& blocks) {
  if (takes_whole_columns(lines.cols, mu.rows))
    return reduce_whole_columns<T>(stream, lines, axis, mu, scale, state_of(blocks),
                                   first_row == 0 ? Segment::start : Segment::append);
  reduce_blocks_kernel<T><<<grid(lines.cols, blocks_of(lines.rows)), threads, 0, native(stream)>>>(
      lines, first_row / block_rows, axis, mu, scale, blocks, blocks.alike(mu),
      lines.rows == blocks.rows ? blocks.middle() : -1);
  check_launch("reduce_blocks");
  reduce_wave_blocks(stream, lines, first_row, axis, mu, scale, blocks);
}

void join_blocks(Stream stream, In<double> mu, const Blocks& blocks, Out<double> shown) {
  if (takes_whole_columns(blocks.n, mu.rows)) {
    detail::copy_on_gpu(stream, blocks.data, blocks.n, shown.data, shown.ld, shown_rows, blocks.n, sizeof(double));
    return;
  }
  const Index groups = groups_of(blocks);
  join_blocks_kernel<<<static_cast<unsigned>(parts(blocks.n, group_columns)),
                       dim3(group_columns, static_cast<unsigned>(groups)), shared_bytes(groups),
                       native(stream)>>>(blocks, blocks.alike(mu), shown);
  check_launch("join_blocks");
  join_wave_blocks(stream, mu, blocks, shown);
}

void eliminate(Stream stream, Direction direction, Told segment, Told before, Out<double> shown) {
  eliminate_kernel<Half::shown>
      <<<grid(shown.cols, 1), threads, 0, native(stream)>>>(direction, segment, before, shown);
  check_launch("eliminate");
}

void eliminate_response(Stream stream, Direction direction, Told segment, Told before, Out<double> response) {
  eliminate_kernel<Half::response><<<grid(response.cols, 1), threads, 0, native(stream)>>>(
      direction, {{}, segment.response}, {{}, before.response}, response);
  check_launch("eliminate_response");
}

void close(Stream stream, Told left, Told right, Out<double> before_start, Out<double> after_end) {
  close_kernel<<<grid(before_start.cols, 1), threads, 0, native(stream)>>>(left, right, before_start, after_end);
  check_launch("close");
}

void meet(Stream stream, In<double> mu, Told left, Told right, In<double> before_start, In<double> after_end,
          Out<double> first, Out<double> last) {
  meet_kernel<<<grid(mu.cols, 1), threads, 0, native(stream)>>>(mu, left, right, before_start, after_end, first,
                                                                last);
  check_launch("meet");
}

void substitute(Stream stream, Direction direction, Told segment, Told prefix, In<double> start, In<double> after,
                Out<double> first, Out<double> before) {
  substitute_kernel<<<grid(first.cols, 1), threads, 0, native(stream)>>>(direction, segment, prefix, start, after,
                                                                         first, before);
  check_launch("substitute");
}

/// `blocks` as reduce_blocks left them; whole columns need none, but their memory.
template <class T>
void solve_reduced(Stream stream, InOut<T> lines, In<double> axis, In<double> mu, double scale, In<double> before,
                   In<double> after, const Blocks& blocks) {
  const Index n = lines.cols;
  if (takes_whole_columns(n, mu.rows))
    return solve_whole_columns<T>(stream, lines, axis, mu, scale, before, after,
                                  {blocks.data, whole_column_starts(lines.rows), n, n});
  const Index groups = groups_of(blocks);
  interface_kernel<<<static_cast<unsigned>(parts(n, group_columns)),
                     dim3(group_columns, static_cast<unsigned>(groups)), shared_bytes(groups),
                     native(stream)>>>(mu, blocks, blocks.alike(mu), before.data, after.data);
  check_launch("interface");
  solve_blocks_kernel<T><<<grid(n, blocks_of(lines.rows)), threads, 0, native(stream)>>>(
      lines, axis, mu, scale, blocks);
  check_launch("solve_blocks");
  solve_wave_blocks(stream, lines, axis, mu, scale, before, after, blocks);
}

template <class T>
void solve_in_blocks(Stream stream, InOut<T> lines, In<double> axis, In<double> mu, double scale, In<double> before,
                     In<double> after, double* work) {
  const Blocks blocks{work, lines.rows, lines.cols};
  if (!takes_whole_columns(lines.cols, mu.rows)) reduce_blocks<T>(stream, as_in(lines), 0, axis, mu, scale, blocks);
  solve_reduced(stream, lines, axis, mu, scale, before, after, blocks);
}

template <class T>
void solve_ring_in_blocks(Stream stream, InOut<T> lines, In<double> axis, In<double> mu, double scale, In<double> response,
                          double* work) {
  const InterfaceRows tiles = rows_with(mu);
  const Blocks blocks{work, lines.rows, lines.cols};
  const Ring ring(work + blocks_scratch(lines.rows, lines.cols, tiles), lines.cols, tiles);
  reduce_blocks<T>(stream, as_in(lines), 0, axis, mu, scale, blocks);
  join_blocks(stream, mu, blocks, ring.shown());
  close(stream, ring.told(response), {}, ring.before, ring.after);
  solve_reduced(stream, lines, axis, mu, scale, as_in(ring.before), as_in(ring.after), blocks);
}

template <class T>
void solve(Stream stream, InOut<T> lines, In<double> axis, In<double> mu, double scale, In<double> before,
           In<double> after, double* work) {
  if (takes_short_columns(lines.rows, lines.cols, mu.rows))
    solve_short_columns<T>(stream, lines, axis, mu, scale, before, after);
  else
    solve_in_blocks(stream, lines, axis, mu, scale, before, after, work);
}

template <class T>
void solve_ring(Stream stream, InOut<T> lines, In<double> axis, In<double> mu, double scale, In<double> response,
                double* work) {
  if (takes_short_columns(lines.rows, lines.cols, mu.rows))
    solve_short_rings<T>(stream, lines, axis, mu, scale);
  else
    solve_ring_in_blocks(stream, lines, axis, mu, scale, response, work);
}

template void reduce_blocks(Stream, In<float>, Index, In<double>, In<double>, double, const Blocks&);
template void reduce_blocks(Stream, In<double>, Index, In<double>, In<double>, double, const Blocks&);
template void solve(Stream, InOut<float>, In<double>, In<double>, double, In<double>, In<double>, double*);
template void solve(Stream, InOut<double>, In<double>, In<double>, double, In<double>, In<double>, double*);
template void solve_in_blocks(Stream, InOut<float>, In<double>, In<double>, double, In<double>, In<double>, double*);
template void solve_in_blocks(Stream, InOut<double>, In<double>, In<double>, double, In<double>, In<double>, double*);
template void solve_ring(Stream, InOut<float>, In<double>, In<double>, double, In<double>, double*);
template void solve_ring(Stream, InOut<double>, In<double>, In<double>, double, In<double>, double*);
template void solve_ring_in_blocks(Stream, InOut<float>, In<double>, In<double>, double, In<double>, double*);
template void solve_ring_in_blocks(Stream, InOut<double>, In<double>, In<double>, double, In<double>, double*);

}  // namespace asterism::poisson::cuda
