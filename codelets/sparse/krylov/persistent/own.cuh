/// \file
/// What a block of threads of persistent_cg.cu has for itself, and its part of q = A p. For `.cu` files only.
#pragma once

#include "sweep.cuh"

namespace asterism::sparse::cuda::persistent {

/// p of the iteration at hand.
template <class T>
struct Direction {
  using Element = T;
  static constexpr bool is_set = true;
  const T *z, *before;
  const T* own;  ///< p of `count` rows from row `first`
  int first, count;
  T beta;
  bool ready;  ///< whether `before` is p itself
  [[nodiscard]] __device__ T operator[](Index j) const {
    const int i = static_cast<int>(j) - first;
    if (static_cast<unsigned>(i) < static_cast<unsigned>(count)) return own[i];
    return ready ? before[j] : multiply_add(beta, before[j], z[j]);
  }
  [[nodiscard]] __device__ Direction from(Index j) const {
    return {z + j, before + j, own, first - static_cast<int>(j), count, beta, ready};
  }
};

/// The registers of a thread, and the shared memory of its block. q is z from one meeting to the next.
template <class Rows, class T, int most>
struct Own {
  T x[most];
  T *p, *rs, *qs;

  static int shared_elements(const Rows&, const Sweep<T>& sweep) { return 3 * sweep.rows_of_block; }
  __device__ Own(const Rows&, const Sweep<T>& sweep, T* shared)
      : p(shared), rs(p + sweep.rows_of_block), qs(rs + sweep.rows_of_block) {}
  // Of a thread's k-th row, i-th of the block:
  [[nodiscard]] __device__ T& r(int, int i) { return rs[i]; }
  [[nodiscard]] __device__ T& q(int, int i) { return qs[i]; }
  __device__ void bring_matrix(const Rows&, const OwnRows&) {}
  __device__ void bring_halo(const Sweep<T>&, const OwnRows&) {}
  __device__ void turn_halo(const Sweep<T>&, const OwnRows&, T) {}
};

/// q of the thread's rows. @return its part of (p, q)
template <class Rows, class T, int most>
__device__ double multiply(const Rows& matrix, const Sweep<T>&, const OwnRows& rows,
                           const Direction<T>& direction, Own<Rows, T, most>& own) {
  double pq = 0;
  // Not unrolled: rows that wait for each other's loads would need more registers than there are.
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < rows.count; i += threads) {
    const T q = product_of_row<5>(matrix, rows.first + i, direction);
    own.q(0, i) = q;
    pq += static_cast<double>(own.p[i]) * static_cast<double>(q);
  }
  return pq;
}

}  // namespace asterism::sparse::cuda::persistent
