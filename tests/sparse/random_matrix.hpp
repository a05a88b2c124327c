/// \file
/// Small random matrices.
#pragma once

#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "matrix_market.hpp"

namespace asterism::test {

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
