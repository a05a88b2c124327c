/// \file
/// Sparse systems that all ranks solve together.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include "algorithms/sparse/blocks/block_matrix.hpp"
#include "algorithms/sparse/blocks/rank_shares.hpp"
#include "algorithms/sparse/conjugate_gradients.hpp"
#include "runtime/collectives.hpp"

namespace asterism::test {

/// Who has which rows.
enum class Rows {
  shared,
  unequal,  ///< every third rank has none, and others twice as many as their neighbours
  on_rank_0,
};

inline std::pair<Index, Index> rows_of(Rows rows, const Runtime& runtime, Index n) {
  if (rows == Rows::shared) return sparse::rows_of_rank(n, runtime.rank(), runtime.ranks());
  if (rows == Rows::on_rank_0) return {runtime.rank() == 0 ? 0 : n, n};
  std::vector<double> shares;
  for (int rank = 0; rank < runtime.ranks(); ++rank) shares.push_back((rank + 1) % 3);
  return sparse::rows_of_rank(n, runtime.rank(), shares);
}

template <class T>
struct LinearSolution {
  std::vector<T> x;  ///< all of it, on every rank
  sparse::LinearReport report;
  sparse::LinearFacts facts;
};

template <class T>
sparse::Csr<T> in_type(const sparse::Csr<double>& a) {
  return {a.first_row, a.total_rows, a.cols, a.row_begin, a.columns, {a.values.begin(), a.values.end()}};
}

/// A times ones.
inline std::vector<double> row_sums(const sparse::Csr<double>& a) {
  std::vector<double> sums(static_cast<std::size_t>(a.rows()));
  for (Index i = 0; i < a.rows(); ++i)
    for (Index k = a.row_begin[static_cast<std::size_t>(i)]; k < a.row_begin[static_cast<std::size_t>(i + 1)];
         ++k)
      sums[static_cast<std::size_t>(i)] += a.values[static_cast<std::size_t>(k)];
  return sums;
}

/// In (-1, 1), without any pattern.
inline std::vector<double> scattered(Index n) {
  std::vector<double> b;
  for (Index i = 0; i < n; ++i) b.push_back(std::sin(1.0 + 0.7 * static_cast<double>(i * i % 100'003)));
  return b;
}

template <class T = double>
sparse::Csr<T> rows_of_this_rank(const Runtime& runtime, const sparse::Csr<double>& whole, Rows rows = Rows::shared) {
  const auto [first, end] = rows_of(rows, runtime, whole.total_rows);
  return in_type<T>(sparse::rows_of(whole, Part{.first = first, .size = end - first}));
}

/// @param a, b the whole matrix and right-hand side, on every rank
template <template <class, class> class Solver, class T, class V = T>
LinearSolution<T> solve_by(Runtime& runtime, const sparse::Csr<double>& a, const std::vector<double>& b,
                           const sparse::LinearSettings& settings, Rows rows = Rows::shared) {
  const sparse::Csr<T> mine = rows_of_this_rank<T>(runtime, a, rows);
  Solver<T, V> solver(runtime, mine, settings);
  const auto first = b.begin() + mine.first_row;
  const std::vector<T> my_b(first, first + mine.rows());
  std::vector<T> x(my_b.size(), T{});
  LinearSolution<T> solution{{}, solver.solve(my_b.data(), x.data()), solver.facts()};
  solution.x = gather_lists(runtime, x);
  return solution;
}

/// By conjugate gradients.
template <class T, class V = T>
LinearSolution<T> solve(Runtime& runtime, const sparse::Csr<double>& a, const std::vector<double>& b,
                        const sparse::LinearSettings& settings, Rows rows = Rows::shared) {
  return solve_by<sparse::ConjugateGradients, T, V>(runtime, a, b, settings, rows);
}

}  // namespace asterism::test
