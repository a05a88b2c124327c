/// \file
/// What a thread does with the rows of a block of one column on a GPU.
#pragma once

#include "wave_columns.hpp"

namespace asterism::poisson::cuda {

/// Threads of a thread block, each on a column of its own.
constexpr int column_threads = 128;

/// Waves are other kernels' (wave_columns.cu).
__device__ inline bool is_wave(const In<double>& mu, Index k) { return regime_of(mu, k) == Regime::waves; }

/// A row as all threads of a thread block read it from shared memory.
struct alignas(16) SharedRow {
  Row row;
  double weight;  ///< scale width
};

/// Fetches the rows of block b. All threads have done with those that were there before. @return their number
template <int size>
__device__ int fetch_rows(const In<double>& axis, Index b, double scale, SharedRow (&rows)[size]) {
  const Index first = b * size, left = axis.rows - first;
  const int count = static_cast<int>(left < size ? left : size);
  if (static_cast<int>(threadIdx.x) < count) {
    const Row row = row_at(axis, first + threadIdx.x);
    rows[threadIdx.x] = {row, scale * row.width};
  }
  __syncthreads();
  return count;
}

/// At most `size` rows of one column. `whole`: all of them, known at compile time, so that nothing branches.
template <int size, bool whole, class T>
struct Column {
  T f[size];
  int count;

  __device__ Column(const T* data, Index ld, int rows) : count(rows) {
#pragma unroll
    for (int i = 0; i < size; ++i)
      if (has(i)) f[i] = data[i * ld];
  }
  __device__ bool has(int i) const { return whole || i < count; }

  /// Calls body(i, width_i f_i) for its rows.
  template <class Body>
  __device__ void for_each_row(const SharedRow* rows, Body body) const {
#pragma unroll
    for (int i = 0; i < size; ++i)
      if (has(i)) body(i, rows[i].weight * static_cast<double>(f[i]));
  }
};

/// Calls body(its rows) with the Column at `data`.
template <int size, class T, class Body>
__device__ void with_column(const T* data, Index ld, int count, Body body) {
  if (count == size)
    body(Column<size, true, T>(data, ld, count));
  else
    body(Column<size, false, T>(data, ld, count));
}

/// Where an elimination (S3) has come to: y_j and the pivot of the row before.
struct Elimination {
  double y;
  Pivot pivot;

  __device__ void advance(const Row& row, double mu, double f) {
    pivot.advance(row, mu);
    y = pivot.eliminate(row, y, f);
  }
};

/// Solves a column's rows between `start` and the value `after` them. The m_j of (S3) wait in shared memory, m[j *
/// column_threads], so that more threads find room. @return the first row's unknown
template <int size, bool whole, class T>
__device__ double solve_rows(const Column<size, whole, T>& column, const SharedRow* rows, double mu, Elimination start,
                             double after, double* m, T* result, Index ld) {
  double y[size];
  column.for_each_row(rows, [&](int i, double f) {
    start.advance(rows[i].row, mu, f);
    m[i * column_threads] = start.pivot.m(rows[i].row);
    y[i] = start.y;
  });
  double next = after;
#pragma unroll
  for (int i = size - 1; i >= 0; --i)
    if (column.has(i)) {
      next = y[i] + m[i * column_threads] * next;
      result[i * ld] = static_cast<T>(next);
    }
  return next;
}

}  // namespace asterism::poisson::cuda
