#include "move_table.hpp"

#include <algorithm>
#include <utility>

namespace asterism::qap::cpu {
namespace {

/// As many as the machine has: of longer ones GCC makes one element after the other.
#if defined(__AVX512BW__)
constexpr std::size_t vector_bytes = 64;
#elif defined(__AVX2__)
constexpr std::size_t vector_bytes = 32;
#else
constexpr std::size_t vector_bytes = 16;
#endif

/// Elements side by side, which GCC and Clang compute with as with one. No function takes or returns them by value:
/// how that is done depends on the machine.
template <class E>
struct Side {
  using U = Unsigned<E>;
  // They may be looked at element by element.
  typedef U Vector __attribute__((vector_size(vector_bytes), may_alias));
  typedef E Signs __attribute__((vector_size(vector_bytes), may_alias));
  static constexpr Index lanes = vector_bytes / sizeof(E);

  static Vector* of(U* row) { return reinterpret_cast<Vector*>(row); }
};

}  // namespace

template <class E>
MoveTable<E>::MoveTable(const MatrixView<E>& matrices)
    : m_(matrices),
      p_(static_cast<std::size_t>(m_.n)),
      products_(m_.n, m_.ld),
      deltas_(m_.n, m_.ld),
      x_(m_.terms, m_.ld),
      h_(m_.terms, m_.ld),
      y_(m_.terms, m_.ld),
      diagonal_(1, m_.ld),
      parts_(6, m_.ld),
      least_(2, m_.ld) {}

template <class E>
void MoveTable<E>::begin(const std::int32_t* permutation) {
  std::copy_n(permutation, m_.n, p_.begin());
  const Index ld = m_.ld;
  products_.clear();
  for (int t = 0; t < m_.terms; ++t)
    for (Index k = 0; k < m_.n; ++k)
      for (Index r = 0; r < m_.n; ++r) {
        const U d = m_.d(t, k)[r];
        const U* const f = m_.f(t, p_[static_cast<std::size_t>(k)]);
        U* const w = products_[r];
        for (Index c = 0; c < ld; ++c) w[c] = static_cast<U>(w[c] + product(d, f[c]));
      }
  U* const diagonal = diagonal_[0];
  for (Index r = 0; r < m_.n; ++r) diagonal[r] = products_[r][p_[static_cast<std::size_t>(r)]];
  for (auto* rows : {&x_, &y_}) rows->clear();
  for (Index r = 0; r < m_.n; ++r) fill_row(r);
}

template <class E>
typename MoveTable<E>::U MoveTable<E>::pending_change(Index r, Index s) const {
  U change = 0;
  for (int t = 0; t < m_.terms; ++t) {
    const U *const x = x_[t], *const y = y_[t];
    change = static_cast<U>(change + delta_change(x[r], x[s], y[r], y[s]));
  }
  return change;
}

/// What (M4) wants of all moves of r, from wherever the permutation leads.
template <class E>
typename MoveTable<E>::RowParts MoveTable<E>::gather_parts(Index r) {
  const std::int32_t* const p = p_.data();
  const auto p_r = p[r];
  const int last = m_.terms - 1;
  const U *const w_r = products_[r], *const f_first = m_.f(0, p_r), *const f_last = m_.f(last, p_r);
  const RowParts row{parts_[0], parts_[1], parts_[2], parts_[3], parts_[4]};
  for (Index s = 0; s < m_.n; ++s) {
    const Index c = p[s];
    row.w_rs[s] = w_r[c];
    row.w_sr[s] = products_[s][p_r];
    row.g[s] = static_cast<U>(f_first[c] + f_last[c]);
  }
  const U *const d_first = m_.d(0, r), *const d_last = m_.d(last, r);
  for (Index s = 0; s < m_.ld; ++s) row.d[s] = static_cast<U>(d_first[s] + (last > 0 ? d_last[s] : U{0}));
  if (m_.has_diagonals)
    for (Index s = 0; s < m_.n; ++s) row.g_ss[s] = m_.diagonal_of_f()[p[s]];
  return row;
}

/// All moves of r by (M4), less what best() will add to them.
template <class E>
void MoveTable<E>::fill_row(Index r) {
  const Index n = m_.n, ld = m_.ld;
  const RowParts row = gather_parts(r);
  const U *const dd = m_.diagonal_of_d(), *const diagonal = diagonal_[0];
  const U g_rr = row.g_ss[r], w_rr = diagonal[r], d_rr = dd[r];
  U* const deltas = parts_[5];
  for (Index s = 0; s < ld; ++s)
    deltas[s] = delta_of(MoveParts<U>{row.w_rs[s], row.w_sr[s], w_rr, diagonal[s], row.d[s], row.g[s], d_rr,
                                      dd[s], g_rr, row.g_ss[s]});
  for (int t = 0; t < m_.terms; ++t) {
    const U *const x = x_[t], *const y = y_[t];
    for (Index s = 0; s < ld; ++s)
      deltas[s] = static_cast<U>(deltas[s] - delta_change(x[r], x[s], y[r], y[s]));
  }
  U* const own = deltas_[r];
  for (Index s = r + 1; s < n; ++s) own[s] = deltas[s];
  for (Index s = 0; s < r; ++s) deltas_[s][r] = deltas[s];
}

/// (M3)
template <class E>
void MoveTable<E>::update_products() {
  using Vector = typename Side<E>::Vector;
  const Index n = m_.n, vectors = m_.ld / Side<E>::lanes;
  for (int t = 0; t < m_.terms; ++t) {
    const U* const x = x_[t];
    const Vector* const h = Side<E>::of(h_[t]);
    for (Index r = 0; r < n; ++r) {
      Vector* const w = Side<E>::of(products_[r]);
      const Vector x_r = Vector{} + x[r];
      for (Index c = 0; c < vectors; ++c) w[c] -= x_r * h[c];
    }
    U* const diagonal = diagonal_[0];
    const U* const y = y_[t];
    for (Index r = 0; r < m_.ld; ++r) diagonal[r] = static_cast<U>(diagonal[r] - product(x[r], y[r]));
  }
}

template <class E>
void MoveTable<E>::swap(std::int32_t u, std::int32_t v) {
  const Index ld = m_.ld, n = m_.n;
  auto &p_u = p_[static_cast<std::size_t>(u)], &p_v = p_[static_cast<std::size_t>(v)];
  for (int t = 0; t < m_.terms; ++t) {
    const U *const d_u = m_.d(t, u), *const d_v = m_.d(t, v), *const f_u = m_.f(t, p_u),
                   *const f_v = m_.f(t, p_v);
    U *const x = x_[t], *const h = h_[t], *const y = y_[t];
    for (Index k = 0; k < ld; ++k) x[k] = static_cast<U>(d_u[k] - d_v[k]);
    for (Index c = 0; c < ld; ++c) h[c] = static_cast<U>(f_u[c] - f_v[c]);
    for (Index s = 0; s < n; ++s) y[s] = h[p_[static_cast<std::size_t>(s)]];
  }
  update_products();
  std::swap(p_u, p_v);
  U* const diagonal = diagonal_[0];
  diagonal[u] = products_[u][p_u];
  diagonal[v] = products_[v][p_v];
  fill_row(u);
  fill_row(v);
}

/// As many columns as a vector has lanes, from `first` on: brings their changes up to date, and finds the least of
/// each.
template <class E>
template <int terms>
void MoveTable<E>::update_columns(Index first) {
  using Vector = typename Side<E>::Vector;
  using Signs = typename Side<E>::Signs;
  const Index row = m_.ld / Side<E>::lanes, block = first / Side<E>::lanes,
              end = std::min(first + Side<E>::lanes, m_.n);
  Vector xs[terms], ys[terms];
  const U *x[terms], *y[terms];
  for (int t = 0; t < terms; ++t) {
    x[t] = x_[t];
    y[t] = y_[t];
    xs[t] = Side<E>::of(x_[t])[block];
    ys[t] = Side<E>::of(y_[t])[block];
  }
  Signs lane{};
  for (Index i = 0; i < Side<E>::lanes; ++i) lane[i] = static_cast<E>(first + i);
  const Signs none = Signs{} + no_delta<E>();
  // Of even rows and of odd ones by themselves, so that they need not wait for each other.
  Signs least[2] = {none, none}, least_row[2] = {none, none}, now;
  Vector* delta = Side<E>::of(deltas_[0]) + block;
  const auto update = [&](Index r) {  // (M2)
    Vector d = *delta;
    for (int t = 0; t < terms; ++t) d += ((Vector{} + x[t][r]) - xs[t]) * ((Vector{} + y[t][r]) - ys[t]);
    *delta = d;
    delta += row;
    now = reinterpret_cast<Signs>(d);
  };
  const auto consider = [&](Index r, int parity) {
    const auto less = now < least[parity];
    least[parity] = less ? now : least[parity];
    least_row[parity] = less ? Signs{} + static_cast<E>(r) : least_row[parity];
  };
  const Index above = std::min(first, m_.n) / 2 * 2;
  for (Index r = 0; r < above; r += 2)
    for (int parity = 0; parity < 2; ++parity) {
      update(r + parity);
      consider(r + parity, parity);
    }
  for (Index r = above; r < end; ++r) {
    update(r);
    now = lane > static_cast<E>(r) ? now : none;
    consider(r, static_cast<int>(r % 2));
  }
  const auto odd = (least[1] < least[0]) | ((least[1] == least[0]) & (least_row[1] < least_row[0]));
  least[0] = odd ? least[1] : least[0];
  least_row[0] = odd ? least_row[1] : least_row[0];
  least[0] = lane < static_cast<E>(m_.n) ? least[0] : none;
  Side<E>::of(least_[0])[block] = reinterpret_cast<Vector>(least[0]);
  Side<E>::of(least_[1])[block] = reinterpret_cast<Vector>(least_row[0]);
}

template <class E>
void MoveTable<E>::update_deltas() {
  for (Index first = 0; first < m_.ld; first += Side<E>::lanes)
    if (m_.terms == 1)
      update_columns<1>(first);
    else
      update_columns<2>(first);
  for (auto* rows : {&x_, &y_}) rows->clear();
}

template <class E>
Move<E> MoveTable<E>::least() const {
  const Index ld = m_.ld;
  const auto* const delta = reinterpret_cast<const E*>(least_[0]);
  const auto* const row = reinterpret_cast<const E*>(least_[1]);
  E least = no_delta<E>(), r = no_delta<E>();
  for (Index s = 0; s < ld; ++s) least = std::min(least, delta[s]);
  if (least == no_delta<E>()) return {};
  for (Index s = 0; s < ld; ++s) r = std::min(r, delta[s] == least ? row[s] : no_delta<E>());
  Index s = 0;
  while (delta[s] != least || row[s] != r) ++s;
  return {least, static_cast<std::int32_t>(r), static_cast<std::int32_t>(s)};
}

template <class E>
typename MoveTable<E>::Best MoveTable<E>::best(std::span<const Pair> tabu) {
  Best best;
  hidden_.resize(tabu.size());
  for (std::size_t i = 0; i < tabu.size(); ++i) {
    const auto [r, s] = tabu[i];
    U& entry = deltas_[r][s];
    const U change = pending_change(r, s);
    hidden_[i] = static_cast<U>(entry + change);
    entry = static_cast<U>(static_cast<U>(no_delta<E>()) - change);
  }
  update_deltas();
  best.free = least();
  for (std::size_t i = 0; i < tabu.size(); ++i) {
    const auto [r, s] = tabu[i];
    deltas_[r][s] = hidden_[i];
    if (const Move<E> move{static_cast<E>(hidden_[i]), r, s}; is_better(move, best.tabu)) best.tabu = move;
  }
  return best;
}

template class MoveTable<std::int16_t>;
template class MoveTable<std::int32_t>;
template class MoveTable<std::int64_t>;

}  // namespace asterism::qap::cpu
