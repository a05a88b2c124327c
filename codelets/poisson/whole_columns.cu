#include "whole_columns.hpp"

#include "../../runtime/cuda.hpp"
#include "block_rows.cuh"

namespace asterism::poisson::cuda {

using asterism::cuda::check_launch;
using asterism::cuda::native;

namespace {

constexpr int threads = column_threads;

__device__ Index own_column() { return Index{blockIdx.x} * threads + threadIdx.x; }

unsigned grid(Index n) { return static_cast<unsigned>((n + threads - 1) / threads); }

template <class T>
__global__ void __launch_bounds__(threads, 8)
    reduce_kernel(In<T> lines, In<double> axis, In<double> mu, double scale, InOut<double> state, Segment segment) {
  constexpr int size = reduced_rows;
  __shared__ SharedRow rows[size];
  const Index k = own_column();
  const bool is_mine = k < lines.cols;
  Reduction r;
  if (is_mine && segment == Segment::append)
    r = {state.row(y_first_row)[k], state.row(y_last_row)[k], state.row(reach_row)[k], state.row(complement_row)[k]};
  for (Index b = 0; b * size < lines.rows; ++b) {
    __syncthreads();
    const int count = fetch_rows(axis, b, scale, rows);
    if (!is_mine) continue;
    with_column<size>(lines.row(b * size) + k, lines.ld, count, [&](const auto& column) {
      column.for_each_row(rows, [&](int i, double f) { r.append(rows[i].row, mu.data[k], f); });
    });
  }
  if (!is_mine) return;
  state.row(y_first_row)[k] = r.y_first;
  state.row(y_last_row)[k] = r.y_last;
  state.row(reach_row)[k] = r.reach;
  state.row(complement_row)[k] = r.complement;
}

/// `lines` and `solution` are the same memory; under two names the compiler does not keep the addresses of all rows in
/// registers from the loads to the stores.
template <class T>
__global__ void __launch_bounds__(threads, 4)
    solve_kernel(In<T> lines, In<double> axis, In<double> mu, double scale, In<double> before, In<double> after,
                 Out<double> starts, Out<T> solution) {
  constexpr int size = block_rows;
  __shared__ SharedRow rows[size];
  __shared__ double m[size][threads];
  const Index k = own_column(), last = blocks_of(lines.rows) - 1;
  const bool is_mine = k < lines.cols;
  const double mode = is_mine ? mu.data[k] : 0.0;
  const T* const data = lines.data + k;
  Elimination elimination{is_mine ? before.data[k] : 0.0, {}};
  for (Index b = 0; b < last; ++b) {
    __syncthreads();
    fetch_rows(axis, b, scale, rows);
    if (!is_mine) continue;
    starts.row(2 * b)[k] = elimination.y;
    starts.row(2 * b + 1)[k] = elimination.pivot.complement;
    const Column<size, true, T> column(data + b * size * lines.ld, lines.ld, size);
    column.for_each_row(rows, [&](int i, double f) { elimination.advance(rows[i].row, mode, f); });
  }
  double next = is_mine ? after.data[k] : 0.0;
  for (Index b = last; b >= 0; --b) {
    __syncthreads();
    const int count = fetch_rows(axis, b, scale, rows);
    if (!is_mine) continue;
    if (b < last) elimination = {starts.row(2 * b)[k], {starts.row(2 * b + 1)[k]}};
    with_column<size>(data + b * size * lines.ld, lines.ld, count, [&](const auto& column) {
      next = solve_rows(column, rows, mode, elimination, next, &m[0][threadIdx.x],
                        solution.row(b * size) + k, solution.ld);
    });
  }
}

}  // namespace

template <class T>
void reduce_whole_columns(Stream stream, In<T> lines, In<double> axis, In<double> mu, double scale,
                          InOut<double> state, Segment segment) {
  reduce_kernel<T><<<grid(lines.cols), threads, 0, native(stream)>>>(lines, axis, mu, scale, state, segment);
  check_launch("reduce_whole_columns");
}

template <class T>
void solve_whole_columns(Stream stream, InOut<T> lines, In<double> axis, In<double> mu, double scale, In<double> before,
                         In<double> after, Out<double> starts) {
  const Index n = lines.cols;
  solve_kernel<T><<<grid(n), threads, 0, native(stream)>>>({lines.data, lines.rows, n, lines.ld}, axis, mu, scale, before,
                                                           after, starts, {lines.data, lines.rows, n, lines.ld});
  check_launch("solve_whole_columns");
}

template void reduce_whole_columns(Stream, In<float>, In<double>, In<double>, double, InOut<double>, Segment);
template void reduce_whole_columns(Stream, In<double>, In<double>, In<double>, double, InOut<double>, Segment);
template void solve_whole_columns(Stream, InOut<float>, In<double>, In<double>, double, In<double>, In<double>,
                                  Out<double>);
template void solve_whole_columns(Stream, InOut<double>, In<double>, In<double>, double, In<double>, In<double>,
                                  Out<double>);

}  // namespace asterism::poisson::cuda
