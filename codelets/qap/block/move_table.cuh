/// \file
/// The changes by all moves of a permutation, in a block of threads, for `.cu` files only. See ../move_table.hpp, whose
/// tables these are.
#pragma once

#include "candidates.cuh"
#include "layout.cuh"

namespace asterism::qap::cuda {

/// The tables of a walk. All threads of its block call the members, none of which waits for the others: between two of
/// them there is a barrier.
template <class E, int terms, Tables where>
class BlockTable {
 public:
  using U = Unsigned<E>;

  /// @param tables_of_walk where the tables lie, if that is not shared memory
  __device__ BlockTable(const MatrixView<E>& m, const Layout<E, terms>& layout, unsigned char* shared,
                        unsigned char* tables_of_walk)
      : m_(m),
        t_(Arrays<E, terms>::template of<where>(layout, shared, tables_of_walk)),
        n_(layout.n),
        units_(layout.units),
        ld_(layout.ld),
        p_(t_.p) {}

  /// Fills the tables for a permutation: O(n^3). Has its own barriers, but for one at its end.
  __device__ void begin(const std::int32_t* permutation) {
    const int cols = units_ * Unit<E>::elements;
    for (int k = thread(); k < n_; k += threads) {
      p_[k] = permutation[k];
      t_.inverse[permutation[k]] = k;
      t_.rows[k] = {};
    }
    for (int i = thread(); i < terms * cols; i += threads) t_.x[i] = t_.y[i] = t_.h[i] = 0;
    for (int i = thread(); i < cols; i += threads) t_.z[i] = 0;
    __syncthreads();
    for (int r = thread() / warp * at_once; r < n_; r += warps * at_once) fill_products(r);
    __syncthreads();
    for (int r = thread(); r < n_; r += threads) t_.diagonal[r] = product_at(r, p_[r]);
    __syncthreads();
    for (int r = thread() / warp; r < n_; r += warps)
      for (int s = thread() % warp; s < cols; s += warp)
        entry(r, s) = r == s || s >= n_ ? static_cast<U>(no_delta<E>()) : delta_by_products(r, s);
  }

  /// What a swap of u and v changes, and the permutation.
  __device__ void swap(std::int32_t u, std::int32_t v) {
    const int p_u = p_[u], p_v = p_[v], stride = units_ * Unit<E>::elements;
    std::int32_t* const next = p_ == t_.p ? t_.p + n_ : t_.p;
    for (int k = thread(); k < n_; k += threads) {
      const int p_k = p_[k];
      RowFactors<E, terms> row{};
      for (int t = 0; t < terms; ++t) {
        const U *const f_u = m_.f(t, p_u), *const f_v = m_.f(t, p_v);
        row.x[t] = static_cast<U>(m_.d(t, u)[k] - m_.d(t, v)[k]);
        row.y[t] = static_cast<U>(f_u[p_k] - f_v[p_k]);
        row.z = static_cast<U>(row.z + product(row.x[t], row.y[t]));
        t_.x[t * stride + k] = row.x[t];
        t_.y[t * stride + k] = row.y[t];
        t_.h[t * stride + k] = static_cast<U>(f_u[k] - f_v[k]);
      }
      t_.rows[k] = row;
      t_.z[k] = row.z;
      t_.diagonal[k] = static_cast<U>(t_.diagonal[k] - row.z);  // (M3), as h[p(k)] is y_k
      next[k] = k == u ? p_v : k == v ? p_u : p_k;
    }
    if (thread() == 0) {
      t_.inverse[p_v] = u;
      t_.inverse[p_u] = v;
    }
    p_ = next;
    u_ = u;
    v_ = v;
  }

  /// The moves of u and v by (M4), less what update() will add to them.
  __device__ void fill_swapped() {
    for (int i = thread(); i < 2 * n_; i += threads) {
      const int k = i < n_ ? i : i - n_, other = i < n_ ? u_ : v_;
      if (k == other)
        t_.diagonal[k] = product_at(k, p_[k]);  // of which the others read nothing
      else if (other == u_ || k != u_)
        set(k, other, static_cast<U>(delta_by_products(k, other) - pending_change(k, other)));
    }
  }

  /// (M3) and (M2) for all that the last swap has left over: in 16 bits at n = 100, 0.9 instructions of a warp and 16
  /// bytes of shared memory for a move, so the instructions limit it on Hopper.
  /// @return the best move of those that the caller's warp has brought up to date, for all of its threads
  __device__ Candidate<E> update() {
    Candidate<E> best = Candidate<E>::none();
    int log_lanes = 3;  // so many that they have a row, and the warp has several of them
    while (log_lanes < 5 && 1 << log_lanes < units_) ++log_lanes;
    const int lanes = 1 << log_lanes, rows = warp >> log_lanes, lane = thread() % lanes,
              first = thread() / warp * rows + thread() % warp / lanes;
    for (int unit = lane; unit - lane < units_; unit += lanes) {
      Columns columns;
      if (unit < units_) {
        read(columns, unit);
        update_columns(columns, unit, first, warps * rows);
      }
      best.take(best_of_columns(columns, unit * Unit<E>::elements));
    }
    return best;
  }

  /// What update() will add to a change.
  [[nodiscard]] __device__ U pending_change(int r, int s) const {
    const RowFactors<E, terms> a = t_.rows[r], b = t_.rows[s];
    U change = 0;
    for (int t = 0; t < terms; ++t)
      change = static_cast<U>(change + delta_change(a.x[t], b.x[t], a.y[t], b.y[t]));
    return change;
  }
  [[nodiscard]] __device__ E delta(int r, int s) const { return static_cast<E>(entry(r, s)); }
  /// The change by a move, which is kept twice.
  __device__ void set(int r, int s, U delta) {
    entry(r, s) = delta;
    entry(s, r) = delta;
  }

  /// After a swap a thread may read what is there for k = threadIdx.x, threadIdx.x + threads, ... without a barrier.
  [[nodiscard]] __device__ const std::int32_t* permutation() const { return p_; }
  [[nodiscard]] __device__ const std::int32_t* inverse() const { return t_.inverse; }
  [[nodiscard]] __device__ const Arrays<E, terms>& arrays() const { return t_; }

 private:
  static constexpr int at_once = 4;  // rows

  /// Those of a thread, in registers while it goes from row to row.
  struct Columns {
    Factor<E> minus_x[terms][Unit<E>::words], minus_y[terms][Unit<E>::words], minus_h[terms][Unit<E>::words],
        z[Unit<E>::words];
    Least<E> least[Unit<E>::words];
  };

  static __device__ int thread() { return static_cast<int>(threadIdx.x); }

  [[nodiscard]] __device__ U& entry(int r, int s) const {
    return reinterpret_cast<U*>(t_.delta + r * ld_)[s];
  }

  /// w[r][c], with what update() will add to it.
  [[nodiscard]] __device__ U product_at(int r, int c) const {
    U w = reinterpret_cast<const U*>(t_.w + r * ld_)[c];
    for (int t = 0; t < terms; ++t)
      w = static_cast<U>(w - product(t_.rows[r].x[t], t_.h[t * units_ * Unit<E>::elements + c]));
    return w;
  }

  [[nodiscard]] __device__ U diagonal_at(int r) const {
    return r == u_ || r == v_ ? product_at(r, p_[r]) : t_.diagonal[r];
  }

  [[nodiscard]] __device__ U delta_by_products(int r, int s) const {
    const int p_r = p_[r], p_s = p_[s];
    constexpr int last = terms - 1;
    const U d = last == 0 ? m_.d(0, r)[s] : static_cast<U>(m_.d(0, r)[s] + m_.d(1, r)[s]);
    MoveParts<U> parts{product_at(r, p_s),
                       product_at(s, p_r),
                       diagonal_at(r),
                       diagonal_at(s),
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

  /// w, a few rows from r on, by the warp.
  __device__ void fill_products(int r) {
    for (int unit = thread() % warp; unit < units_; unit += warp) {
      Sum<E> sums[at_once][Unit<E>::words];
      for (int t = 0; t < terms; ++t)
        for (int k = 0; k < n_; ++k) {
          const Unit<E> f = reinterpret_cast<const Unit<E>*>(m_.f(t, p_[k]))[unit];
          const U* const d = m_.d(t, k) + r;  // zeros follow the last one
          for (int j = 0; j < Unit<E>::words; ++j) {
            const Factor<E> factor = Factor<E>::of(f.word[j]);
            for (int i = 0; i < at_once; ++i) sums[i][j].add(d[i], factor);
          }
        }
      for (int i = 0; i < at_once && r + i < n_; ++i) {
        Unit<E> w;
        for (int j = 0; j < Unit<E>::words; ++j) w.word[j] = sums[i][j].word();
        t_.w[(r + i) * ld_ + unit] = w;
      }
    }
  }

  __device__ void read(Columns& columns, int unit) const {
    const auto of = [unit](const U* row) { return reinterpret_cast<const Unit<E>*>(row)[unit]; };
    const Unit<E> z = of(t_.z);
    for (int j = 0; j < Unit<E>::words; ++j) columns.z[j] = Factor<E>::of(z.word[j]);
    for (int t = 0; t < terms; ++t) {
      const int row = t * units_ * Unit<E>::elements;
      const Unit<E> x = of(t_.x + row), y = of(t_.y + row), h = of(t_.h + row);
      for (int j = 0; j < Unit<E>::words; ++j) {
        columns.minus_x[t][j] = Factor<E>::minus(x.word[j]);
        columns.minus_y[t][j] = Factor<E>::minus(y.word[j]);
        columns.minus_h[t][j] = Factor<E>::minus(h.word[j]);
      }
    }
  }

  /// (x_r - x_s)(y_r - y_s) of (M2) is multiplied out: the terms of the columns alone are in registers, those of the
  /// row alone are the same for all columns.
  __device__ void update_columns(Columns& columns, int unit, int first, int step) {
    const int rows_apart = step * ld_;
    Unit<E>*w = t_.w + first * ld_ + unit, *delta = t_.delta + first * ld_ + unit;
#pragma unroll 2
    for (int r = first; r < n_; r += step, w += rows_apart, delta += rows_apart) {
      const RowFactors<E, terms> row = t_.rows[r];
      Unit<E> products = *w, deltas = *delta;
      for (int j = 0; j < Unit<E>::words; ++j) {
        Sum<E> product(products.word[j]), change(deltas.word[j]);
        change.add_both(row.z, columns.z[j]);
        for (int t = 0; t < terms; ++t) {
          product.add(row.x[t], columns.minus_h[t][j]);
          change.add(row.x[t], columns.minus_y[t][j]);
          change.add(row.y[t], columns.minus_x[t][j]);
        }
        columns.least[j].take(change, r);
        products.word[j] = product.word();
        deltas.word[j] = change.word();
      }
      *w = products;
      *delta = deltas;
    }
  }

  /// Of those of a warp, each of which begins with column `first`. There is no move in the diagonal, nor beyond n.
  __device__ Candidate<E> best_of_columns(const Columns& columns, int first) const {
    Candidate<E> best = Candidate<E>::none();
    for (int j = 0; j < Unit<E>::words; ++j)
      for (int i = 0; i < Unit<E>::in_word; ++i) {
        const int s = first + j * Unit<E>::in_word + i;
        if (s < n_) best.take(Candidate<E>::of(columns.least[j].element(i), columns.least[j].row(i), s));
      }
    return best_of_warp(best);
  }

  const MatrixView<E>& m_;
  const Arrays<E, terms> t_;
  const int n_, units_, ld_;
  std::int32_t* p_;               // the one of the two in t_ that holds now
  std::int32_t u_ = -1, v_ = -1;  // swapped last
};

}  // namespace asterism::qap::cuda
