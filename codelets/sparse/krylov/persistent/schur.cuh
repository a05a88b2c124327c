/// \file
/// The same of a Schur complement that is not formed, (B2), for `.cu` files only: a block has its rows of G, so that an
/// iteration reads of memory C, D, and what rows of other blocks have. Of the t_j that two blocks need both form all.
#pragma once

#include "own.cuh"

namespace asterism::sparse::cuda::persistent {

/// p, t and G lie in shared memory, all else in registers.
template <class T, int most>
struct Own<SchurRows<T>, T, most> {
  T x[most], rs[most], qs[most];
  T *p, *t, *g;
  int rows_of_block;
  int end_threads;                  ///< that work on t where rows of other blocks take part
  int ahead[most_schur_diagonals];  ///< of a row's diagonals the places in t, counted from the row

  static int shared_elements(const SchurRows<T>& matrix, const Sweep<T>& sweep) {
    return (2 + matrix.count) * sweep.rows_of_block + sweep.reach + 2 * sweep.halo;
  }
  __device__ Own(const SchurRows<T>& matrix, const Sweep<T>& sweep, T* shared)
      : p(shared + sweep.halo),
        t(p + sweep.rows_of_block + sweep.halo),
        g(t + sweep.rows_of_block + sweep.reach),
        rows_of_block(sweep.rows_of_block) {
    const int inner = sweep.rows_of_block - sweep.reach;
    // An end takes about as long as two others.
    const int share = threads * 4 * sweep.reach / (4 * sweep.reach + inner) / warp_lanes * warp_lanes;
    end_threads = inner == 0 ? threads : min(max(share, warp_lanes), threads - warp_lanes);
#pragma unroll
    for (int d = 0; d < most_schur_diagonals; ++d)
      ahead[d] = d < matrix.count ? __ldg(matrix.offsets + d) - __ldg(matrix.offsets) : 0;
  }
  [[nodiscard]] __device__ T& r(int k, int) { return rs[k]; }
  [[nodiscard]] __device__ T& q(int k, int) { return qs[k]; }
  __device__ void bring_matrix(const SchurRows<T>& matrix, const OwnRows& rows) {
    for (int d = 0; d < matrix.count; ++d)
      for (int i = static_cast<int>(threadIdx.x); i < rows.count; i += threads)
        g[d * rows_of_block + i] = __ldcs(matrix.g + d * matrix.rows + rows.first + i);
  }
  /// Calls body(i, row) for the calling thread's rows of the halo, and those that follow every 1024 further on.
  template <class Body>
  __device__ void for_halo(const Sweep<T>& sweep, const OwnRows& rows, Body body) const {
    for (int n = static_cast<int>(threadIdx.x); n < 2 * sweep.halo; n += threads) {
      const int i = n < sweep.halo ? n - sweep.halo : n - sweep.halo + rows.count, row = rows.first + i;
      if (static_cast<unsigned>(row) < static_cast<unsigned>(sweep.rows)) body(i, row);
    }
  }
  __device__ void bring_halo(const Sweep<T>& sweep, const OwnRows& rows) {
    for_halo(sweep, rows, [&](int i, int row) { p[i] = sweep.p[row]; });
  }
  __device__ void turn_halo(const Sweep<T>& sweep, const OwnRows& rows, T beta) {
    for_halo(sweep, rows, [&](int i, int row) { p[i] = multiply_add(beta, p[i], sweep.r[row]); });
  }
};

/// t at place n, where rows of other blocks take part.
template <class T, int most>
__device__ T term_at_end(const SchurRows<T>& matrix, int halo, const OwnRows& rows,
                         const Direction<T>& direction, const Own<SchurRows<T>, T, most>& own, int n) {
  T g[most_schur_diagonals], p[most_schur_diagonals];
#pragma unroll
  for (int d = 0; d < most_schur_diagonals; ++d) {
    const int i = n - own.ahead[d], row = rows.first + i;
    const bool there = d < matrix.count && static_cast<unsigned>(row) < static_cast<unsigned>(matrix.rows);
    g[d] = p[d] = 0;
    if (there) {
      const bool is_own = static_cast<unsigned>(i) < static_cast<unsigned>(rows.count);
      g[d] = is_own ? own.g[d * own.rows_of_block + i] : __ldg(matrix.g + d * matrix.rows + row);
      const bool is_near = i >= -halo && i < rows.count + halo;
      p[d] = is_near ? own.p[i] : direction[row];
    }
  }
  T t = 0;
#pragma unroll
  for (int d = 0; d < most_schur_diagonals; ++d) t = multiply_add(g[d], p[d], t);
  return t;
}

/// (B2). As the ends wait for memory, some threads have these, and the others what is between them.
template <class T, int most>
__device__ double multiply(const SchurRows<T>& matrix, const Sweep<T>& sweep, const OwnRows& rows,
                           const Direction<T>& direction, Own<SchurRows<T>, T, most>& own) {
  const int thread = static_cast<int>(threadIdx.x), reach = sweep.reach;
  rows.for_each<most>([&](int k, int i) { own.q(k, i) = __ldg(matrix.c + rows.first + i); });
  if (thread < own.end_threads) {
    const int upper = max(reach, rows.count), ends = rows.count + 2 * reach - upper;
#pragma unroll 1
    for (int end = thread; end < ends; end += own.end_threads) {
      const int n = end < reach ? end : end - reach + upper;
      own.t[n] = term_at_end(matrix, sweep.halo, rows, direction, own, n);
    }
  } else {
#pragma unroll 2
    for (int n = reach + thread - own.end_threads; n < rows.count; n += threads - own.end_threads) {
      T t = 0;
#pragma unroll
      for (int d = 0; d < most_schur_diagonals; ++d)
        if (d < matrix.count) {
          const int i = n - own.ahead[d];
          t = multiply_add(own.g[d * own.rows_of_block + i], own.p[i], t);
        }
      own.t[n] = t;
    }
  }
  __syncthreads();
  double pq = 0;
  rows.for_each<most>([&](int k, int i) {
    T q = own.q(k, i) * own.p[i];
#pragma unroll
    for (int d = 0; d < most_schur_diagonals; ++d)
      if (d < matrix.count) q = multiply_add(-own.g[d * own.rows_of_block + i], own.t[i + own.ahead[d]], q);
    own.q(k, i) = q;
    pq += static_cast<double>(own.p[i]) * static_cast<double>(q);
  });
  return pq;
}

}  // namespace asterism::sparse::cuda::persistent
