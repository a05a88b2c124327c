#include <Eigen/Core>
#include <algorithm>
#include <utility>

#include "nodes.hpp"

namespace asterism::decomposition::cpu {
namespace {

template <class V>
using Vector = Eigen::Map<Eigen::Matrix<V, Eigen::Dynamic, 1>>;
template <class V>
using Column = Eigen::Map<const Eigen::Matrix<V, Eigen::Dynamic, 1>>;
template <class V>
using Panel = Eigen::Map<const Eigen::Matrix<V, Eigen::Dynamic, Eigen::Dynamic>>;

/// Numbers that are worked on at once; those beyond the end of a column belong to the next one, or to the panels' end.
constexpr Index lanes = panel_margin;
template <class V>
using Lanes = Eigen::Array<V, lanes, 1>;
template <class V>
Eigen::Map<const Lanes<V>> lanes_at(const V* numbers) {
  return Eigen::Map<const Lanes<V>>(numbers);
}

/// Columns from which on Eigen's products of matrices take less than what follows: it takes them a while to begin.
constexpr std::int32_t few_columns = 48;

/// w -= L_2 y at the rows of a supernode
template <class V>
void subtract_below(const Supernode& s, const V* below, const V* y, const std::int32_t* rows, V* w, V* sums) {
  const Index m = s.below;
  if (s.width > few_columns) {
    Vector<V>(sums, m).noalias() = Panel<V>(below, m, s.width) * Column<V>(y, s.width);
    for (Index k = 0; k < m; ++k) w[rows[k]] -= sums[k];
    return;
  }
  for (Index k = 0; k < m; k += lanes) {
    Lanes<V> even = Lanes<V>::Zero(), odd = Lanes<V>::Zero();
    const V* column = below + k;
    Index j = 0;
    for (; j + 1 < s.width; j += 2, column += 2 * m) {
      even += lanes_at(column) * y[j];
      odd += lanes_at(column + m) * y[j + 1];
    }
    if (j < s.width) even += lanes_at(column) * y[j];
    even += odd;
    if (k + lanes <= m)
      for (Index i = 0; i < lanes; ++i) w[rows[k + i]] -= even[i];
    else
      for (Index i = 0; k + i < m; ++i) w[rows[k + i]] -= even[i];
  }
}

/// Some columns of y -= L_2^T x. @param x followed by zeros
template <int columns, class V>
void subtract_columns(Index m, const V* below, const V* x, V* y) {
  Lanes<V> sums[columns];
  for (Lanes<V>& sum : sums) sum.setZero();
  for (Index k = 0; k < m; k += lanes) {
    const Lanes<V> its = lanes_at(x + k);
    for (int j = 0; j < columns; ++j) sums[j] += lanes_at(below + j * m + k) * its;
  }
  for (int j = 0; j < columns; ++j) y[j] -= sums[j].sum();
}

/// y -= L_2^T x @param x followed by room for some more numbers
template <class V>
void subtract_from_above(const Supernode& s, const V* below, V* x, V* y) {
  const Index m = s.below;
  if (s.width > few_columns) {
    Vector<V>(y, s.width).noalias() -= Panel<V>(below, m, s.width).transpose() * Column<V>(x, m);
    return;
  }
  for (Index k = m; k < m + lanes; ++k) x[k] = 0;
  Index j = 0;
  for (; j + 4 <= s.width; j += 4) subtract_columns<4>(m, below + j * m, x, y + j);
  if (s.width % 4 == 1) subtract_columns<1>(m, below + j * m, x, y + j);
  if (s.width % 4 == 2) subtract_columns<2>(m, below + j * m, x, y + j);
  if (s.width % 4 == 3) subtract_columns<3>(m, below + j * m, x, y + j);
}

/// Asks for the panel of the supernode that comes next: processors foresee only what follows in a long one.
template <class V>
void bring(const Supernode& s, const V* panels) {
  constexpr Index line = 64 / sizeof(V), most = 64;
  const V* const panel = panels + s.panel;
  const Index end = std::min(s.entries(), most * line);
  for (Index i = 0; i < end; i += line) __builtin_prefetch(panel + i);
}

/// v = K v @param given room for v as it was
template <class V>
void multiply_by_inverse(const Supernode& s, const V* panel, V* v, V* given) {
  for (std::int32_t j = 0; j < s.width; ++j) given[j] = std::exchange(v[j], V{});
  const V* column = panel;
  for (std::int32_t j = 0; j < s.width; ++j) {
    const std::int32_t length = s.width - j;
    for (std::int32_t i = 0; i < length; ++i) v[j + i] += column[i] * given[j];
    column += length;
  }
}

/// v = K^T v
template <class V>
void multiply_by_transposed_inverse(const Supernode& s, const V* panel, V* v) {
  const V* column = panel;
  for (std::int32_t j = 0; j < s.width; ++j) {
    const std::int32_t length = s.width - j;
    v[j] = Column<V>(column, length).dot(Column<V>(v + j, length));
    column += length;
  }
}

}  // namespace

/// Here what a supernode adds to rows below goes to w at once, as supernodes are worked on one after the other.
template <class V>
void solve_supernodes(const SupernodePorts<AsPorts, V>& ports, Index columns, const Rows<V>& w, V* room) {
  const std::int32_t* const all_rows = ports.lists.data;
  for (Index k = 0; k < ports.nodes.cols; ++k) {
    const Supernode& s = ports.nodes.data[k];
    const V* const panel = ports.panels.data + s.panel;
    if (k + 1 < ports.nodes.cols) bring(ports.nodes.data[k + 1], ports.panels.data);
    for (Index c = 0; c < columns; ++c) {
      multiply_by_inverse(s, panel, w.row(c) + s.first, room);
      subtract_below(s, panel + s.triangle(), w.row(c) + s.first, all_rows + s.rows, w.row(c), room);
    }
  }
  for (Index k = ports.nodes.cols; k-- > 0;) {
    const Supernode& s = ports.nodes.data[k];
    const V* const panel = ports.panels.data + s.panel;
    if (k > 0) bring(ports.nodes.data[k - 1], ports.panels.data);
    const std::int32_t* const rows = all_rows + s.rows;
    for (Index c = 0; c < columns; ++c) {
      V* const x = w.row(c);
      for (std::int32_t i = 0; i < s.below; ++i) room[i] = x[rows[i]];
      subtract_from_above(s, panel + s.triangle(), room, x + s.first);
      multiply_by_transposed_inverse(s, panel, x + s.first);
    }
  }
}

template void solve_supernodes(const SupernodePorts<AsPorts, float>&, Index, const Rows<float>&, float*);
template void solve_supernodes(const SupernodePorts<AsPorts, double>&, Index, const Rows<double>&, double*);

}  // namespace asterism::decomposition::cpu
