/// \file
/// Triangular factors of a sparse matrix, and solving with them:
///
///     (F1)  R A C = L D U, L unit lower, U unit upper triangular; R, C permutations.
///           A x = b: w = R b; w = L^-1 w; w = D^-1 w; w = U^-1 w; x = C w.
///
/// L is stored by columns, for GPUs by rows, and U by rows, without their diagonals. Of a symmetric positive definite
/// matrix there are supernodes instead, (F2). Work and bytes are those of the factors, read once by each half of a
/// solution.
#pragma once

#include <cstdint>

#include "../../runtime/codelet.hpp"
#include "supernodes/nodes.hpp"

namespace asterism::decomposition {

/// A triangle without its diagonal, column by column (L on cores) or row by row. Each tile has one row; none: no entries,
/// on cores.
template <template <class> class As, class V>
struct TrianglePorts {
  As<Optional<In<std::int32_t>>> begins;  ///< one more than there are columns
  As<Optional<In<std::int32_t>>>
      places;  ///< of the entries: their rows (of U, and of L by rows, their columns)
  As<Optional<In<V>>> values;
  As<Optional<In<std::int32_t>>> order;  ///< for GPUs: rows, each after all those that it has entries at
};

/// (F1), or (F2) where there are supernodes. @param rows row_of[i], of b, is row i of R b @param columns likewise of x
template <template <class> class As, class V>
struct FactorPorts {
  TrianglePorts<As, V> lower, upper;
  As<Optional<In<V>>> inverse_pivots;
  SupernodePorts<As, V> supernodes;
  As<In<std::int32_t>> rows, columns;
};

/// What a solution needs beside: for each right-hand side a row. @param work of supernodal_work() numbers, or, without
/// supernodes, one for each row of the matrix, on GPUs two
template <template <class> class As, class V>
struct SolveRoom {
  As<Scratch<V>> work;
  As<Optional<Scratch<std::int32_t>>> counters;  ///< of supernodal_counters(); for supernodes on a GPU
};

/// w = L^-1 w, column by column.
template <class V>
void solve_lower(const TrianglePorts<AsPorts, V>& lower, V* w) {
  for (Index j = 0; j + 1 < lower.begins.cols; ++j) {
    const V value = w[j];
    for (std::int32_t k = lower.begins.data[j]; k < lower.begins.data[j + 1]; ++k)
      w[lower.places.data[k]] -= lower.values.data[k] * value;
  }
}

/// w = U^-1 w, row by row from the last.
template <class V>
void solve_upper(const TrianglePorts<AsPorts, V>& upper, V* w) {
  for (Index i = upper.begins.cols - 1; i-- > 0;) {
    V sum = w[i];
    for (std::int32_t k = upper.begins.data[i]; k < upper.begins.data[i + 1]; ++k)
      sum -= upper.values.data[k] * w[upper.places.data[k]];
    w[i] = sum;
  }
}

/// (F1), (F2) of several right-hand sides, the rows of b and x, each with the same bits as alone.
/// @param work of SolveRoom @param b, x may be the same
template <class T, class V>
void solve_factored(const FactorPorts<AsPorts, V>& factors, Index columns, const Rows<const T>& b,
                    const Scratch<V>& work, const Rows<T>& x) {
  const Index n = factors.rows.cols;
  for (Index c = 0; c < columns; ++c)
    for (Index i = 0; i < n; ++i) work.row(c)[i] = static_cast<V>(b.row(c)[factors.rows.data[i]]);
  if (factors.supernodes.nodes) {
    cpu::solve_supernodes(factors.supernodes, columns, {work.data, work.ld}, work.data + n);
  } else {
    for (Index c = 0; c < columns; ++c) {
      V* const w = work.row(c);
      solve_lower(factors.lower, w);
      for (Index i = 0; i < n; ++i) w[i] *= factors.inverse_pivots.data[i];
      solve_upper(factors.upper, w);
    }
  }
  for (Index c = 0; c < columns; ++c)
    for (Index i = 0; i < n; ++i) x.row(c)[factors.columns.data[i]] = static_cast<T>(work.row(c)[i]);
}

namespace cuda {
/// The same on a GPU.
template <class T, class V>
void solve_factored(Stream stream, const FactorPorts<AsPorts, V>& factors, Index columns,
                    const Rows<const T>& b, const SolveRoom<AsPorts, V>& room, const Rows<T>& x);
}  // namespace cuda

}  // namespace asterism::decomposition
