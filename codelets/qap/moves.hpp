/// \file
/// The cost of a permutation p of a quadratic assignment problem, and by how much moves, which swap two positions,
/// change it.
///
/// The matrices of the formulas (M2) to (M4) are those of MatrixView; below, g_t[r][s] = f_t[p(r)][p(s)].
#pragma once

#include "matrices.hpp"

namespace asterism::qap {

///     (M0)  C(p) = sum over i, j: d[i][j] f[p(i)][p(j)]
///
/// @param d,f n x n, row-major @param p n numbers from 0 to n - 1 @return modulo 2^64
template <class Position>
ASTERISM_HOST_DEVICE std::int64_t cost_from_scratch(Index n, const std::int64_t* d, const std::int64_t* f,
                                                    const Position* p) {
  std::uint64_t cost = 0;
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j)
      cost += static_cast<std::uint64_t>(d[i * n + j]) * static_cast<std::uint64_t>(f[p[i] * n + p[j]]);
  return static_cast<std::int64_t>(cost);
}

/// By how much C changes when p(r) and p(s) are swapped, n products (Burkard, Rendl 1984), for any matrices:
///
///     (M1)  Delta(r, s) = (d_rr - d_ss)(g_ss - g_rr) + (d_rs - d_sr)(g_sr - g_rs)
///                       + sum over k other than r, s: (d_kr - d_ks)(g_ks - g_kr) + (d_rk - d_sk)(g_sk - g_rk)
///
/// @param d,f n x n, row-major @param p n numbers from 0 to n - 1 @return modulo 2^64
template <class Position>
ASTERISM_HOST_DEVICE std::int64_t swap_delta(Index n, const std::int64_t* d, const std::int64_t* f,
                                             const Position* p, Index r, Index s) {
  using U = std::uint64_t;
  const auto at = [n](const std::int64_t* a, Index i, Index j) { return static_cast<U>(a[i * n + j]); };
  const auto g = [&](Index i, Index j) { return at(f, p[i], p[j]); };
  U delta =
      (at(d, r, r) - at(d, s, s)) * (g(s, s) - g(r, r)) + (at(d, r, s) - at(d, s, r)) * (g(s, r) - g(r, s));
  for (Index k = 0; k < n; ++k)
    if (k != r && k != s)
      delta += (at(d, k, r) - at(d, k, s)) * (g(k, s) - g(k, r)) +
               (at(d, r, k) - at(d, s, k)) * (g(s, k) - g(r, k));
  return static_cast<std::int64_t>(delta);
}

/// What a term adds to the change by the move of r and s when u and v, neither of them r or s, are swapped (Taillard
/// 1991):
///
///     (M2)  Delta'(r, s) = Delta(r, s) + sum over t: (x_r - x_s)(y_r - y_s),
///           x_k = d_t[u][k] - d_t[v][k],  y_k = g_t[u][k] - g_t[v][k], with p as it was before the swap
template <class U>
ASTERISM_HOST_DEVICE U delta_change(U x_r, U x_s, U y_r, U y_s) {
  return product(static_cast<U>(x_r - x_s), static_cast<U>(y_r - y_s));
}

/// Every change follows from a table of products w[r][c] = sum over t, k: d_t[k][r] f_t[p(k)][c], columns by
/// facilities, which a swap of u and v changes by a matrix of rank T. So the moves that touch the last swap take
/// O(1), too:
///
///     (M3)  w'[r][c] = w[r][c] - sum over t: x_r h_c,  h_c = f_t[p(u)][c] - f_t[p(v)][c]
///     (M4)  Delta(r, s) = w[r][p(s)] + w[s][p(r)] - w[r][p(r)] - w[s][p(s)] + D_rs G_rs + (d_rr - d_ss)(g_ss - g_rr),
///           D_rs = sum over t: d_t[r][s],  G_rs = sum over t: g_t[r][s] + g_t[s][r]
template <class U>
struct MoveParts {
  U w_rs, w_sr, w_rr, w_ss;  ///< w[r][p(s)], w[s][p(r)], w[r][p(r)], w[s][p(s)]
  U d, g;                    ///< D_rs, G_rs
  U d_rr, d_ss, g_rr, g_ss;  ///< from the rows of diagonals
};
template <class U>
ASTERISM_HOST_DEVICE U delta_of(const MoveParts<U>& m) {
  return static_cast<U>(m.w_rs + m.w_sr - m.w_rr - m.w_ss + product(m.d, m.g) +
                        product(static_cast<U>(m.d_rr - m.d_ss), static_cast<U>(m.g_ss - m.g_rr)));
}

/// A move, r < s, and what it changes; of moves that change as much the one with the least r is better, then that
/// with the least s.
template <class E>
struct Move {
  E delta = no_delta<E>();
  std::int32_t r = 0, s = 0;
};
template <class E>
ASTERISM_HOST_DEVICE bool is_better(const Move<E>& a, const Move<E>& b) {
  if (a.delta != b.delta) return a.delta < b.delta;
  return a.r != b.r ? a.r < b.r : a.s < b.s;
}

}  // namespace asterism::qap
