/// \file
/// What a thread does with the rows of a block of one column on a GPU.
#pragma once

#include <cuda_pipeline_primitives.h>

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

/// How many of `rows` are in block b: fewer than `size` in the last one, none beyond it.
template <int size>
__device__ int rows_in_block(Index rows, Index b) {
  const Index left = rows - b * size;
  return static_cast<int>(left < size ? left : size);
}

/// Fetches the rows of block b, once all threads of the thread block, which all call it, have done with those before.
/// @return whether they are alike, as those of an axis of equal spacings are but for its ends
template <int size>
__device__ bool fetch_rows(const In<double>& axis, Index b, double scale, SharedRow (&rows)[size]) {
  const auto row = [&](Index i) { return row_at(axis, b * size + i); };
  const auto i = static_cast<int>(threadIdx.x);
  __syncthreads();
  bool is_alike = true;
  if (i < rows_in_block<size>(axis.rows, b)) {
    const Row own = row(i);
    rows[i] = {own, scale * own.width};
    is_alike = own.is_like(row(0));
  }
  return __syncthreads_and(is_alike ? 1 : 0) != 0;
}

/// Calls body(row), where row(i) is row i. Rows that are alike are one, in registers.
template <int size, class Body>
__device__ void with_rows(bool are_alike, const SharedRow (&rows)[size], const Body& body) {
  if (are_alike)
    body([first = rows[0]](int) { return first; });
  else
    body([&rows](int i) { return rows[i]; });
}

/// Elements of one column that are on their way to the thread that works on it, in `size` slots of its own in shared memory.
/// They arrive group by group, and others set out for the slots that become free. (Of loads into registers hardly any are
/// under way at a time: the compiler puts them next to where they are used.)
template <int size, class T, class Slot = T>
class Arrivals {
 public:
  /// Where each element was, another number may be kept.
  using Slots = Slot[size][column_threads];

  __device__ explicit Arrivals(Slots& slots) : mine_(&slots[0][threadIdx.x]) {}

  /// The first `count` elements set out, ld apart.
  __device__ void begin(const T* data, Index ld, int count) const {
#pragma unroll
    for (int g = 0; g < groups; ++g) set_out(g, data, ld, count);
  }

  /// Calls body(i, element i) for the `count` elements that set out last, while the `next_count` from `next` on do.
  template <class Body>
  __device__ void for_each(int count, const T* next, Index ld, int next_count, const Body& body) const {
#pragma unroll
    for (int g = 0; g < groups; ++g) {
      __pipeline_wait_prior(groups - 1);
      if ((g + 1) * group <= count) {
#pragma unroll
        for (int i = g * group; i < (g + 1) * group; ++i) body(i, element(i));
      } else {
#pragma unroll
        for (int i = g * group; i < (g + 1) * group; ++i)
          if (i < count) body(i, element(i));
      }
      set_out(g, next, ld, next_count);
    }
  }
  /// The last ones.
  template <class Body>
  __device__ void for_each(int count, const Body& body) const {
    for_each(count, nullptr, 0, 0, body);
  }

 private:
  static constexpr int group = 8, groups = size / group;
  static_assert(size % group == 0 && sizeof(T) <= sizeof(Slot));

  Slot* mine_;

  [[nodiscard]] __device__ Slot* place(int i) const { return mine_ + i * column_threads; }
  [[nodiscard]] __device__ double element(int i) const {
    T value;
    memcpy(&value, place(i), sizeof(T));  // not as a T: what is kept there next is none
    return static_cast<double>(value);
  }
  __device__ void set_out(int g, const T* data, Index ld, int count) const {
    const T* from = data + g * group * ld;
    const bool is_whole = (g + 1) * group <= count;
#pragma unroll
    for (int i = g * group; i < (g + 1) * group; ++i, from += ld)
      if (is_whole || i < count) copy_async(place(i), from);
    __pipeline_commit();
  }

  /// As __pipeline_memcpy_async, for whose copies the compiler works out the same addresses again and again.
  __device__ static void copy_async(Slot* to, const T* from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))),
                 "l"(from), "n"(sizeof(T))
                 : "memory");
#else
    __pipeline_memcpy_async(to, from, sizeof(T));
#endif
  }
};

/// Where an elimination (S3) has come to: y_j and the pivot of the row before.
struct Elimination {
  double y;
  Pivot pivot;

  __device__ void advance(const Row& row, double mu, double f) {
    pivot.advance(row, mu);
    y = pivot.eliminate(row, y, f);
  }
};

/// Solves the `count` rows of a block of a column, whose elements are `arriving`, between `start` and the value `after` them.
/// The m_j of (S3) wait in shared memory, m[j * column_threads], which may be where the elements arrive, so that more threads
/// find room. @param arriving called as arriving(body), which calls body(i, element i) @param row as with_rows has it
/// @return the first row's unknown
template <int size, class Arriving, class RowAt, class T>
__device__ double solve_rows(const Arriving& arriving, int count, const RowAt& row, double mu, Elimination start,
                             double after, double* m, T* result, Index ld) {
  double y[size];
  arriving([&](int i, double f) {
    const SharedRow own = row(i);
    start.advance(own.row, mu, own.weight * f);
    m[i * column_threads] = start.pivot.m(own.row);
    y[i] = start.y;
  });
  double next = after;
#pragma unroll
  for (int i = size - 1; i >= 0; --i)
    if (i < count) {
      next = y[i] + m[i * column_threads] * next;
      result[i * ld] = static_cast<T>(next);
    }
  return next;
}

}  // namespace asterism::poisson::cuda
