/// \file
/// Small sparse matrices as dense ones, and random ones.
#pragma once

#include <Eigen/Dense>
#include <map>
#include <random>
#include <vector>

#include "../../algorithms/sparse/graph/pattern.hpp"
#include "matrix_market.hpp"

namespace asterism::test {

using Dense = Eigen::MatrixXd;
using DenseLevels = Eigen::MatrixXi;

inline Dense dense(const sparse::Csr<double>& a) {
  Dense result = Dense::Zero(a.rows(), a.cols);
  for (Index i = 0; i < a.rows(); ++i)
    for (Index n = a.row_begin[static_cast<std::size_t>(i)]; n < a.row_begin[static_cast<std::size_t>(i) + 1];
         ++n)
      result(i, a.columns[static_cast<std::size_t>(n)]) += a.values[static_cast<std::size_t>(n)];
  return result;
}

/// 1 where there is an entry.
inline DenseLevels dense(sparse::PatternView pattern) {
  DenseLevels result = DenseLevels::Zero(pattern.rows(), pattern.rows());
  for (Index i = 0; i < pattern.rows(); ++i)
    for (const Index j : pattern.row(i)) result(i, j) += 1;
  return result;
}

enum class Symmetry { symmetric, unsymmetric };

/// A random matrix with a diagonal that outweighs its row, and about so many other entries a row.
inline sparse::Csr<double> random_matrix(Index rows, double per_row, Symmetry symmetry, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> value(-1, 1), chance(0, 1);
  std::vector<std::map<Index, double>> matrix(static_cast<std::size_t>(rows));
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < rows; ++j) {
      if (i == j || (symmetry == Symmetry::symmetric && j > i)) continue;
      if (chance(random) * static_cast<double>(rows) > per_row) continue;
      matrix[static_cast<std::size_t>(i)][j] = value(random);
      if (symmetry == Symmetry::symmetric)
        matrix[static_cast<std::size_t>(j)][i] = matrix[static_cast<std::size_t>(i)][j];
    }
  for (Index i = 0; i < rows; ++i) {
    double sum = 1;
    for (const auto& [column, entry] : matrix[static_cast<std::size_t>(i)]) sum += std::abs(entry);
    matrix[static_cast<std::size_t>(i)][i] = sum;
  }
  return matrix_of(matrix);
}

}  // namespace asterism::test
