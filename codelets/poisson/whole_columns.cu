#include "whole_columns.hpp"

#include "../../runtime/cuda.hpp"
#include "block_rows.cuh"

namespace asterism::poisson::cuda {

using asterism::cuda::check_launch;
using asterism::cuda::native;

namespace {

constexpr int threads = column_threads, size = column_block_rows;

__device__ Index own_column() { return Index{blockIdx.x} * threads + threadIdx.x; }

unsigned grid(Index n) { return static_cast<unsigned>(parts(n, threads)); }

template <class T>
__global__ void __launch_bounds__(threads, 8)
    reduce_kernel(In<T> lines, In<double> axis, In<double> mu, double scale, InOut<double> state, Segment segment) {
  using Column = Arrivals<size, T>;
  __shared__ SharedRow rows[size];
  __shared__ typename Column::Slots slots;
  const Index k = own_column();
  const bool is_mine = k < lines.cols;
  const T* data = lines.data + k;
  const Column column(slots);
  Reduction r;
  if (is_mine) {
    column.begin(data, lines.ld, rows_in_block<size>(lines.rows, 0));
    if (segment == Segment::append)
      r = {state.row(y_first_row)[k], state.row(y_last_row)[k], state.row(reach_row)[k], state.row(complement_row)[k]};
  }
  const double mode = is_mine ? mu.data[k] : 0.0;
  for (Index b = 0; b * size < lines.rows; ++b) {
    const bool are_alike = fetch_rows(axis, b, scale, rows);
    if (!is_mine) continue;
    data += size * lines.ld;
    with_rows(are_alike, rows, [&](const auto& row) {
      column.for_each(rows_in_block<size>(lines.rows, b), data, lines.ld, rows_in_block<size>(lines.rows, b + 1),
                      [&](int i, double f) { r.append(row(i).row, mode, row(i).weight * f); });
    });
  }
  if (!is_mine) return;
  state.row(y_first_row)[k] = r.y_first;
  state.row(y_last_row)[k] = r.y_last;
  state.row(reach_row)[k] = r.reach;
  state.row(complement_row)[k] = r.complement;
}

template <class T>
__global__ void __launch_bounds__(threads, 6)
    solve_kernel(InOut<T> lines, In<double> axis, In<double> mu, double scale, In<double> before, In<double> after,
                 InOut<double> starts) {
  using Column = Arrivals<size, T>;
  __shared__ SharedRow rows[size];
  __shared__ typename Column::Slots slots;
  __shared__ double m[size][threads];
  const Index k = own_column(), last = blocks_of(lines.rows, size) - 1;
  const bool is_mine = k < lines.cols;
  const double mode = is_mine ? mu.data[k] : 0.0;
  const auto block = [&](Index b) { return lines.row(b * size) + k; };
  const auto rows_of = [&](Index b) { return rows_in_block<size>(lines.rows, b); };
  const Column column(slots);
  if (is_mine) column.begin(block(0), lines.ld, rows_of(0));
  Elimination elimination{is_mine ? before.data[k] : 0.0, {}};
  for (Index b = 0; b < last; ++b) {
    const bool are_alike = fetch_rows(axis, b, scale, rows);
    if (!is_mine) continue;
    starts.row(2 * b)[k] = elimination.y;
    starts.row(2 * b + 1)[k] = elimination.pivot.complement;
    with_rows(are_alike, rows, [&](const auto& row) {
      column.for_each(size, block(b + 1), lines.ld, rows_of(b + 1),
                      [&](int i, double f) { elimination.advance(row(i).row, mode, row(i).weight * f); });
    });
  }
  double next = is_mine ? after.data[k] : 0.0;
  for (Index b = last; b >= 0; --b) {
    const bool are_alike = fetch_rows(axis, b, scale, rows);
    if (!is_mine) continue;
    Elimination coming{};
    if (b > 0) coming = {starts.row(2 * b - 2)[k], {starts.row(2 * b - 1)[k]}};
    const auto arriving = [&](const auto& body) {
      column.for_each(rows_of(b), b > 0 ? block(b - 1) : nullptr, lines.ld, b > 0 ? size : 0, body);
    };
    with_rows(are_alike, rows, [&](const auto& row) {
      next = solve_rows<size>(arriving, rows_of(b), row, mode, elimination, next, &m[0][threadIdx.x], block(b), lines.ld);
    });
    elimination = coming;
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
                         In<double> after, InOut<double> starts) {
  solve_kernel<T><<<grid(lines.cols), threads, 0, native(stream)>>>(lines, axis, mu, scale, before, after, starts);
  check_launch("solve_whole_columns");
}

template void reduce_whole_columns(Stream, In<float>, In<double>, In<double>, double, InOut<double>, Segment);
template void reduce_whole_columns(Stream, In<double>, In<double>, In<double>, double, InOut<double>, Segment);
template void solve_whole_columns(Stream, InOut<float>, In<double>, In<double>, double, In<double>, In<double>,
                                  InOut<double>);
template void solve_whole_columns(Stream, InOut<double>, In<double>, In<double>, double, In<double>, In<double>,
                                  InOut<double>);

}  // namespace asterism::poisson::cuda
