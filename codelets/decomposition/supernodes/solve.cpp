#include <Eigen/Core>

#include "nodes.hpp"

namespace asterism::decomposition::cpu {
namespace {

template <class V>
using Vector = Eigen::Map<Eigen::Matrix<V, Eigen::Dynamic, 1>>;
template <class V>
using Panel = Eigen::Map<const Eigen::Matrix<V, Eigen::Dynamic, Eigen::Dynamic>>;

/// v = K v: a column's entry of v is not needed any more once its column is done, from the last.
template <class V>
void multiply_by_inverse(const Supernode& s, const V* panel, V* v) {
  const V* column = panel + s.triangle();
  for (std::int32_t j = s.width; j-- > 0;) {
    column -= s.width - j;
    const V value = v[j];
    v[j] = column[0] * value;
    for (std::int32_t i = 1; i < s.width - j; ++i) v[j + i] += column[i] * value;
  }
}

/// v = K^T v
template <class V>
void multiply_by_transposed_inverse(const Supernode& s, const V* panel, V* v) {
  const V* column = panel;
  for (std::int32_t j = 0; j < s.width; ++j) {
    const std::int32_t length = s.width - j;
    v[j] =
        Eigen::Map<const Eigen::Matrix<V, Eigen::Dynamic, 1>>(column, length).dot(Vector<V>(v + j, length));
    column += length;
  }
}

}  // namespace

/// Here what a supernode adds to rows below goes to w at once, as supernodes are worked on one after the other.
template <class V>
void solve_supernodes(const SupernodePorts<AsPorts, V>& ports, V* w, V* sums) {
  const std::int32_t* const all_rows = ports.lists.data;
  for (Index k = 0; k < ports.nodes.cols; ++k) {
    const Supernode& s = ports.nodes.data[k];
    const V* const panel = ports.panels.data + s.panel;
    multiply_by_inverse(s, panel, w + s.first);
    if (s.below == 0) continue;
    Vector<V>(sums, s.below).noalias() =
        Panel<V>(panel + s.triangle(), s.below, s.width) * Vector<V>(w + s.first, s.width);
    const std::int32_t* const rows = all_rows + s.rows;
    for (std::int32_t i = 0; i < s.below; ++i) w[rows[i]] -= sums[i];
  }
  for (Index k = ports.nodes.cols; k-- > 0;) {
    const Supernode& s = ports.nodes.data[k];
    const V* const panel = ports.panels.data + s.panel;
    const std::int32_t* const rows = all_rows + s.rows;
    for (std::int32_t i = 0; i < s.below; ++i) sums[i] = w[rows[i]];
    if (s.below > 0)
      Vector<V>(w + s.first, s.width).noalias() -=
          Panel<V>(panel + s.triangle(), s.below, s.width).transpose() * Vector<V>(sums, s.below);
    multiply_by_transposed_inverse(s, panel, w + s.first);
  }
}

template void solve_supernodes(const SupernodePorts<AsPorts, float>&, float*, float*);
template void solve_supernodes(const SupernodePorts<AsPorts, double>&, double*, double*);

}  // namespace asterism::decomposition::cpu
