/// \file
/// The changes by all moves of a permutation, in a block of threads, for `.cu` files only. See move_table.hpp, whose
/// steps these are.
#pragma once

#include "../../runtime/cuda.hpp"
#include "moves.hpp"
#include "walk.hpp"

namespace asterism::qap::cuda {

constexpr int threads = 256, warp = 32, warps = threads / warp;

/// A move as threads compare it.
template <class E>
struct Candidate {
  E delta;
  std::int32_t order;  ///< r and s, so that of equal changes the least one is taken: see is_better()

  static __device__ Candidate none() { return {no_delta<E>(), 0x7fffffff}; }
  __device__ void take(const Candidate& other) {
    if (other.delta < delta || (other.delta == delta && other.order < order)) *this = other;
  }
  __device__ static std::int32_t order_of(Index r, Index s) { return static_cast<std::int32_t>(r << 15 | s); }
  [[nodiscard]] __device__ std::int32_t r() const { return order >> 15; }
  [[nodiscard]] __device__ std::int32_t s() const { return order & 0x7fff; }
};

/// The best candidate of a warp, for its lane 0.
template <class E>
__device__ Candidate<E> best_of_warp(Candidate<E> mine) {
  using Wide = std::conditional_t<sizeof(E) == 8, long long, int>;  // what shuffles take
  for (int step = warp / 2; step > 0; step /= 2)
    mine.take({static_cast<E>(__shfl_down_sync(0xffffffffU, static_cast<Wide>(mine.delta), step)),
               __shfl_down_sync(0xffffffffU, mine.order, step)});
  return mine;
}

/// Elements of a row of the tables: a column is read by a warp, too, so rows begin in different banks.
template <class E>
__host__ __device__ Index table_ld(Index n) {
  constexpr Index per_bank = sizeof(E) < 4 ? 4 / sizeof(E) : 1;
  const Index words = (n + per_bank - 1) / per_bank;
  return (words | 1) * per_bank;
}

/// Where the arrays of a walk lie: those that every iteration uses in shared memory.
template <class E>
struct Arrays {
  using U = Unsigned<E>;
  U *w, *delta;  // see move_table.hpp
  Index ld;
  U *x, *h, *y;          // a row of n for each term
  U *diagonal, *hidden;  // w[r][p(r)]; changes by tabu moves
  std::int32_t *p, *inverse;
  Pair* forbidden;

  /// Bytes of all but the tables.
  static __host__ __device__ Index small_bytes(Index n, int terms, Index capacity) {
    return (3 * terms * n + n + capacity) * static_cast<Index>(sizeof(U)) +
           8 * ((capacity + n) + 1);  // and so that what is larger is aligned
  }
  static __host__ __device__ Index table_bytes(Index n) {
    return (2 * n * table_ld<E>(n) * static_cast<Index>(sizeof(U)) + 15) / 16 * 16;
  }
  __device__ Arrays(unsigned char* small, unsigned char* tables, Index n, int terms, Index capacity) {
    w = reinterpret_cast<U*>(tables);
    ld = table_ld<E>(n);
    delta = w + n * ld;
    forbidden = reinterpret_cast<Pair*>(small);
    p = reinterpret_cast<std::int32_t*>(forbidden + capacity);
    inverse = p + n;
    x = reinterpret_cast<U*>(inverse + n);
    h = x + terms * n;
    y = h + terms * n;
    diagonal = y + terms * n;
    hidden = diagonal + n;
  }
};

/// What a block has in shared memory beside its arrays.
template <class E>
struct BlockShared {
  int* count;                ///< of tabu moves
  Candidate<E>*free, *tabu;  ///< one for each warp
};

/// The changes by all moves of a walk's permutation: the members are called by all threads of its block, and return
/// when all have done what they say.
template <class E>
class BlockTable {
 public:
  using U = Unsigned<E>;

  __device__ BlockTable(const MatrixView<E>& m, const Arrays<E>& arrays, const BlockShared<E>& shared)
      : m_(m), t_(arrays), count_(shared.count), free_(shared.free), tabu_(shared.tabu) {}

  /// Fills the tables: O(n^3).
  __device__ void begin(const std::int32_t* permutation) {
    const Index n = m_.n;
    for (Index k = threadIdx.x; k < n; k += threads) {
      t_.p[k] = permutation[k];
      t_.inverse[permutation[k]] = static_cast<std::int32_t>(k);
    }
    for (Index i = threadIdx.x; i < m_.terms * n; i += threads) t_.x[i] = t_.y[i] = 0;
    __syncthreads();
    for (Index i = threadIdx.x; i < n * n; i += threads)
      t_.w[i / n * t_.ld + i % n] = first_product(i / n, i % n);
    __syncthreads();
    for (Index r = threadIdx.x; r < n; r += threads) t_.diagonal[r] = t_.w[r * t_.ld + t_.p[r]];
    __syncthreads();
    for (Index r = threadIdx.x / warp; r < n; r += warps)
      for (Index s = r + 1 + threadIdx.x % warp; s < n; s += warp)
        t_.delta[r * t_.ld + s] = delta_by_products(r, s);
    __syncthreads();
  }

  /// Finds the best moves that are not tabu and that are, for the first of either in the block's shared memory.
  /// @param length of the list
  __device__ void find_best(const TabuList& list, std::int32_t length, std::int64_t now) {
    hide_forbidden(list, length, now);
    Candidate<E> mine = update_deltas();
    mine = best_of_warp(mine);
    if (threadIdx.x % warp == 0) free_[threadIdx.x / warp] = mine;
    __syncthreads();
    show_forbidden();
    if (threadIdx.x < warp) {
      const Candidate<E> best = best_of_warp(threadIdx.x < warps ? free_[threadIdx.x] : Candidate<E>::none());
      const Candidate<E> best_tabu =
          best_of_warp(threadIdx.x < warps ? tabu_[threadIdx.x] : Candidate<E>::none());
      if (threadIdx.x == 0) {
        free_[0] = best;
        tabu_[0] = best_tabu;
      }
    }
    __syncthreads();
  }

  /// (M3), and the moves of u and v by (M4), less what find_best() will add to them.
  __device__ void swap(std::int32_t u, std::int32_t v) {
    const Index n = m_.n;
    const std::int32_t p_u = t_.p[u], p_v = t_.p[v];
    for (Index k = threadIdx.x; k < n; k += threads)
      for (int t = 0; t < m_.terms; ++t) {
        const U *const f_u = m_.f(t, p_u), *const f_v = m_.f(t, p_v);
        t_.x[t * n + k] = static_cast<U>(m_.d(t, u)[k] - m_.d(t, v)[k]);
        t_.h[t * n + k] = static_cast<U>(f_u[k] - f_v[k]);
        t_.y[t * n + k] = static_cast<U>(f_u[t_.p[k]] - f_v[t_.p[k]]);
      }
    __syncthreads();
    update_products();
    if (threadIdx.x == 0) {
      t_.p[u] = p_v;
      t_.p[v] = p_u;
      t_.inverse[p_v] = u;
      t_.inverse[p_u] = v;
    }
    __syncthreads();
    if (threadIdx.x < 2) {
      const std::int32_t k = threadIdx.x == 0 ? u : v;
      t_.diagonal[k] = t_.w[k * t_.ld + t_.p[k]];
    }
    __syncthreads();
    for (Index i = threadIdx.x; i < 2 * n; i += threads) {
      const Index k = i < n ? u : v, other = i < n ? i : i - n;
      if (k == other || (k == v && other == u)) continue;
      const Index r = k < other ? k : other, s = k < other ? other : k;
      t_.delta[r * t_.ld + s] = static_cast<U>(delta_by_products(r, s) - pending_change(r, s));
    }
    __syncthreads();
  }

  /// (M2) for all moves, without looking for the best.
  __device__ void bring_up_to_date() {
    update_deltas();
    __syncthreads();
    for (Index i = threadIdx.x; i < m_.terms * m_.n; i += threads) t_.x[i] = t_.y[i] = 0;
    __syncthreads();
  }
  [[nodiscard]] __device__ E delta(Index r, Index s) const { return static_cast<E>(t_.delta[r * t_.ld + s]); }
  [[nodiscard]] __device__ const std::int32_t* permutation() const { return t_.p; }

 private:
  __device__ U first_product(Index r, Index c) const {
    U sum = 0;
    for (int t = 0; t < m_.terms; ++t)
      for (Index k = 0; k < m_.n; ++k)
        sum = static_cast<U>(sum + product(m_.d(t, k)[r], m_.f(t, t_.p[k])[c]));
    return sum;
  }

  __device__ U delta_by_products(Index r, Index s) const {
    const std::int32_t p_r = t_.p[r], p_s = t_.p[s];
    const int last = m_.terms - 1;
    const U d = last == 0 ? m_.d(0, r)[s] : static_cast<U>(m_.d(0, r)[s] + m_.d(1, r)[s]);
    MoveParts<U> parts{t_.w[r * t_.ld + p_s],
                       t_.w[s * t_.ld + p_r],
                       t_.diagonal[r],
                       t_.diagonal[s],
                       d,
                       static_cast<U>(m_.f(0, p_r)[p_s] + m_.f(last, p_r)[p_s]),
                       0,
                       0,
                       0,
                       0};
    if (m_.has_diagonals) {
      parts.d_rr = m_.diagonal_of_d()[r];
      parts.d_ss = m_.diagonal_of_d()[s];
      parts.g_rr = m_.diagonal_of_f()[p_r];
      parts.g_ss = m_.diagonal_of_f()[p_s];
    }
    return delta_of(parts);
  }

  __device__ U pending_change(Index r, Index s) const {
    U change = 0;
    for (int t = 0; t < m_.terms; ++t) {
      const U *const x = t_.x + t * m_.n, *const y = t_.y + t * m_.n;
      change = static_cast<U>(change + delta_change(x[r], x[s], y[r], y[s]));
    }
    return change;
  }

  __device__ void update_products() {
    const Index n = m_.n;
    for (int t = 0; t < m_.terms; ++t) {
      const U *const x = t_.x + t * n, *const h = t_.h + t * n, *const y = t_.y + t * n;
      for (Index r = threadIdx.x / warp; r < n; r += warps)
        for (Index c = threadIdx.x % warp; c < n; c += warp) {
          U& w = t_.w[r * t_.ld + c];
          w = static_cast<U>(w - product(x[r], h[c]));
        }
      for (Index k = threadIdx.x; k < n; k += threads)
        t_.diagonal[k] = static_cast<U>(t_.diagonal[k] - product(x[k], y[k]));
    }
  }

  __device__ void hide_forbidden(const TabuList& list, std::int32_t length, std::int64_t now) {
    if (threadIdx.x == 0) *count_ = 0;
    __syncthreads();
    const int sides = list.rule == TabuRule::pair ? 1 : 2;
    for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < sides * length; i += threads) {
      const Pair pair = list.forbidden(i / sides, i % sides, now, t_.p, t_.inverse);
      if (pair.r < 0) continue;
      const int place = atomicAdd(count_, 1);
      const U change = pending_change(pair.r, pair.s);
      U& entry = t_.delta[pair.r * t_.ld + pair.s];
      t_.forbidden[place] = pair;
      t_.hidden[place] = static_cast<U>(entry + change);
      entry = static_cast<U>(static_cast<U>(no_delta<E>()) - change);
    }
    __syncthreads();
  }

  /// (M2). @return the best of the moves that this thread has brought up to date
  __device__ Candidate<E> update_deltas() {
    Candidate<E> mine = Candidate<E>::none();
    for (Index r = threadIdx.x / warp; r < m_.n; r += warps)
      for (Index s = r + 1 + threadIdx.x % warp; s < m_.n; s += warp) {
        U& delta = t_.delta[r * t_.ld + s];
        delta = static_cast<U>(delta + pending_change(r, s));
        if (delta != static_cast<U>(no_delta<E>()))
          mine.take({static_cast<E>(delta), Candidate<E>::order_of(r, s)});
      }
    return mine;
  }

  __device__ void show_forbidden() {
    Candidate<E> mine = Candidate<E>::none();
    for (int i = static_cast<int>(threadIdx.x); i < *count_; i += threads) {
      const Pair pair = t_.forbidden[i];
      t_.delta[pair.r * t_.ld + pair.s] = t_.hidden[i];
      mine.take({static_cast<E>(t_.hidden[i]), Candidate<E>::order_of(pair.r, pair.s)});
    }
    mine = best_of_warp(mine);
    if (threadIdx.x % warp == 0) tabu_[threadIdx.x / warp] = mine;
    __syncthreads();
  }

  const MatrixView<E>& m_;
  const Arrays<E> t_;
  int* const count_;
  Candidate<E>*const free_, *const tabu_;  // one for each warp
};

/// Where the tables of walks lie, and what a launch is told of it.
template <class E>
struct TableLayout {
  bool fit;     ///< in shared memory
  Index bytes;  ///< of shared memory

  /// @throw Error from CUDA
  TableLayout(Index n, int terms, Index capacity) {
    static const Index most_shared = [] {
      int device = 0, most = 0;
      asterism::cuda::check(cudaGetDevice(&device), "qap");
      asterism::cuda::check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
                            "qap");
      return Index{most} - 2048;  // for what kernels themselves have there
    }();
    const Index small = Arrays<E>::small_bytes(n, terms, capacity), tables = Arrays<E>::table_bytes(n);
    fit = small + tables <= most_shared;
    bytes = small + (fit ? tables : 0);
  }
};

/// The arrays of the block's walk. @param room its row, behind the stamps
template <class E>
__device__ Arrays<E> arrays_of_block(unsigned char* shared, unsigned char* room, bool fit, Index n, int terms,
                                     Index capacity) {
  return Arrays<E>(fit ? shared + Arrays<E>::table_bytes(n) : shared, fit ? shared : room, n, terms,
                   capacity);
}

}  // namespace asterism::qap::cuda
