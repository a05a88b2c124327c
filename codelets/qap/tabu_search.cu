#include <algorithm>

#include "../../runtime/cuda.hpp"
#include "moves.hpp"
#include "tabu_search.hpp"

namespace asterism::qap::cuda {

using asterism::cuda::check;
using asterism::cuda::check_launch;
using asterism::cuda::native;

namespace {

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
  U *x, *h, *y;         // a row of n for each term
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

/// A walk while it goes on: the members are called by all threads of its block.
template <class E>
class Walker {
 public:
  using U = Unsigned<E>;

  __device__ Walker(const TabuArguments& a, const MatrixView<E>& m, const Arrays<E>& arrays, const TabuList& list,
                    int* forbidden_count, Candidate<E>* free, Candidate<E>* tabu)
      : a_(a), m_(m), t_(arrays), list_(list), count_(forbidden_count), free_(free), tabu_(tabu) {}

  __device__ void begin(const WalkView& walk) {
    const Index n = a_.n;
    for (Index k = threadIdx.x; k < n; k += threads) {
      t_.p[k] = walk.permutation()[k];
      t_.inverse[walk.permutation()[k]] = static_cast<std::int32_t>(k);
    }
    for (Index i = threadIdx.x; i < a_.terms * n; i += threads) t_.x[i] = t_.y[i] = 0;
    for (Index i = threadIdx.x; i < n * n; i += threads) list_.stamps[i] = {};
    __syncthreads();
    for (Index i = threadIdx.x; i < n * n; i += threads) t_.w[i / n * t_.ld + i % n] = first_product(i / n, i % n);
    if (threadIdx.x == 0) {
      const WalkHead& head = walk.head();
      for (Index i = head.iterations < head.most_tenure ? 0 : head.iterations - head.most_tenure; i < head.iterations;
           ++i) {
        const auto place = static_cast<std::int32_t>(i % head.most_tenure);
        list_.add(TabuEntry(list_.entries[place]), place);
      }
    }
    __syncthreads();
    for (Index r = threadIdx.x; r < n; r += threads) t_.diagonal[r] = t_.w[r * t_.ld + t_.p[r]];
    __syncthreads();
    for (Index r = threadIdx.x / warp; r < n; r += warps)
      for (Index s = r + 1 + threadIdx.x % warp; s < n; s += warp) t_.delta[r * t_.ld + s] = delta_by_products(r, s);
    __syncthreads();
  }

  /// Finds the best moves, for free_[0] and tabu_[0]. @param length of the list
  __device__ void find_best(std::int32_t length, std::int64_t now) {
    hide_forbidden(length, now);
    Candidate<E> mine = update_deltas();
    mine = best_of_warp(mine);
    if (threadIdx.x % warp == 0) free_[threadIdx.x / warp] = mine;
    __syncthreads();
    show_forbidden();
    if (threadIdx.x < warp) {
      const Candidate<E> best = best_of_warp(threadIdx.x < warps ? free_[threadIdx.x] : Candidate<E>::none());
      const Candidate<E> best_tabu = best_of_warp(threadIdx.x < warps ? tabu_[threadIdx.x] : Candidate<E>::none());
      if (threadIdx.x == 0) {
        free_[0] = best;
        tabu_[0] = best_tabu;
      }
    }
    __syncthreads();
  }

  /// (M3), and the moves of u and v by (M4), less what find_best() will add to them.
  __device__ void swap(std::int32_t u, std::int32_t v) {
    const Index n = a_.n;
    const std::int32_t p_u = t_.p[u], p_v = t_.p[v];
    for (Index k = threadIdx.x; k < n; k += threads)
      for (int t = 0; t < a_.terms; ++t) {
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

  __device__ const Arrays<E>& arrays() const { return t_; }

 private:
  __device__ U first_product(Index r, Index c) const {
    U sum = 0;
    for (int t = 0; t < a_.terms; ++t)
      for (Index k = 0; k < a_.n; ++k) sum = static_cast<U>(sum + product(m_.d(t, k)[r], m_.f(t, t_.p[k])[c]));
    return sum;
  }

  __device__ U delta_by_products(Index r, Index s) const {
    const std::int32_t p_r = t_.p[r], p_s = t_.p[s];
    const int last = a_.terms - 1;
    const U d = last == 0 ? m_.d(0, r)[s] : static_cast<U>(m_.d(0, r)[s] + m_.d(1, r)[s]);
    MoveParts<U> parts{t_.w[r * t_.ld + p_s], t_.w[s * t_.ld + p_r], t_.diagonal[r], t_.diagonal[s],
                       d, static_cast<U>(m_.f(0, p_r)[p_s] + m_.f(last, p_r)[p_s]), 0, 0, 0, 0};
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
    for (int t = 0; t < a_.terms; ++t) {
      const U *const x = t_.x + t * a_.n, *const y = t_.y + t * a_.n;
      change = static_cast<U>(change + delta_change(x[r], x[s], y[r], y[s]));
    }
    return change;
  }

  __device__ void update_products() {
    const Index n = a_.n;
    for (int t = 0; t < a_.terms; ++t) {
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

  __device__ void hide_forbidden(std::int32_t length, std::int64_t now) {
    if (threadIdx.x == 0) *count_ = 0;
    __syncthreads();
    const int sides = a_.rule == TabuRule::pair ? 1 : 2;
    for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < sides * length; i += threads) {
      const Pair pair = list_.forbidden(i / sides, i % sides, now, t_.p, t_.inverse);
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
    for (Index r = threadIdx.x / warp; r < a_.n; r += warps)
      for (Index s = r + 1 + threadIdx.x % warp; s < a_.n; s += warp) {
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

  const TabuArguments& a_;
  const MatrixView<E>& m_;
  const Arrays<E> t_;
  const TabuList list_;
  int* const count_;
  Candidate<E>*const free_, *const tabu_;  // one for each warp
};

template <class E>
__global__ void __launch_bounds__(threads)
    tabu_kernel(TabuArguments a, MatrixView<E> m, InOut<unsigned char> walks, Scratch<unsigned char> room,
                bool tables_are_shared) {
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ int count;
  __shared__ Candidate<E> free[warps], tabu[warps];
  const WalkView walk(walks.row(blockIdx.x), a.n, a.capacity);
  unsigned char* const stamps = room.row(blockIdx.x);
  const Index table_bytes = Arrays<E>::table_bytes(a.n);
  unsigned char* const tables = tables_are_shared ? shared : stamps + a.n * a.n * static_cast<Index>(sizeof(Stamp));
  const Arrays<E> arrays(tables_are_shared ? shared + table_bytes : shared, tables, a.n, a.terms, a.capacity);
  const TabuList list{a.rule, a.n, walk.list(), reinterpret_cast<Stamp*>(stamps)};
  Walker<E> walker(a, m, arrays, list, &count, free, tabu);
  walker.begin(walk);
  // Every thread keeps the head for itself; they all make the same of it.
  WalkHead head = walk.head();
  const auto longest = static_cast<std::int32_t>(head.most_tenure);
  std::int32_t length = head.iterations < longest ? static_cast<std::int32_t>(head.iterations) : longest,
               next = longest > 0 ? static_cast<std::int32_t>(head.iterations % longest) : 0;
  for (head.made = 0; head.made < head.planned && head.best_cost > a.target; ++head.made) {
    walker.find_best(length, head.iterations);
    const Candidate<E> best = free[0], best_tabu = tabu[0];
    Candidate<E> move = best;
    if (head.cost + a.unit * static_cast<std::int64_t>(best_tabu.delta) < head.best_cost) move.take(best_tabu);
    const std::int32_t r = move.r(), s = move.s();
    if (longest > 0) {
      if (threadIdx.x == 0)
        list.add(entry_of(head, head.iterations, r, s, arrays.p[r], arrays.p[s]), next);
      next = next + 1 == longest ? 0 : next + 1;
      if (length < longest) ++length;
    }
    __syncthreads();  // the entry has been made of the permutation before the swap
    walker.swap(r, s);
    head.cost += a.unit * static_cast<std::int64_t>(move.delta);
    ++head.iterations;
    if (head.cost < head.best_cost) {
      head.best_cost = head.cost;
      head.best_iteration = head.iterations;
      for (Index k = threadIdx.x; k < a.n; k += threads) walk.best()[k] = arrays.p[k];
    }
  }
  __syncthreads();
  for (Index k = threadIdx.x; k < a.n; k += threads) walk.permutation()[k] = arrays.p[k];
  if (threadIdx.x == 0) walk.head() = head;
}

}  // namespace

template <class E>
void tabu_search(Stream stream, const TabuArguments& a, In<E> matrices, InOut<unsigned char> walks,
                 Scratch<unsigned char> room) {
  static const Index most_shared = [] {
    int device = 0, bytes = 0;
    check(cudaGetDevice(&device), "tabu_search");
    check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "tabu_search");
    return Index{bytes} - 2048;  // for what the kernel itself has there
  }();
  const Index small = Arrays<E>::small_bytes(a.n, a.terms, a.capacity), tables = Arrays<E>::table_bytes(a.n);
  const bool fit = small + tables <= most_shared;
  const Index bytes = small + (fit ? tables : 0);
  check(cudaFuncSetAttribute(tabu_kernel<E>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        "tabu_search");
  const MatrixView<E> view{reinterpret_cast<const Unsigned<E>*>(matrices.data), a.n, matrices.ld, a.terms,
                           a.has_diagonals};
  tabu_kernel<E><<<static_cast<unsigned>(walks.rows), threads, static_cast<std::size_t>(bytes), native(stream)>>>(
      a, view, walks, room, fit);
  check_launch("tabu_search");
}

template void tabu_search(Stream, const TabuArguments&, In<std::int16_t>, InOut<unsigned char>, Scratch<unsigned char>);
template void tabu_search(Stream, const TabuArguments&, In<std::int32_t>, InOut<unsigned char>, Scratch<unsigned char>);
template void tabu_search(Stream, const TabuArguments&, In<std::int64_t>, InOut<unsigned char>, Scratch<unsigned char>);

}  // namespace asterism::qap::cuda
