/// \file
/// Symmetric Gauss-Seidel of a five-point matrix whose rows are in stages, for tests.
#pragma once

#include <numeric>

#include "kernel_codelets.hpp"

namespace asterism::sparse::test {

/// The matrix with its rows in the order of the stages, and its factors (Q3).
struct StagedFactors {
  Entries matrix, left, right;
  std::vector<double> inverse_diagonal;
  Stages stages;

  /// @param colours a node's stage is (x + y) mod colours; 0: x + y, the level of a factorisation in the natural order
  /// @param groups of neighbouring lines, each with all stages
  StagedFactors(Index nx, Index ny, Index colours, Index groups) {
    stages.stages = colours > 0 ? colours : nx + ny - 1;
    stages.groups = groups;
    const Entries natural = entries_of(stencil_of(nx, ny, 1));
    const Index n = nx * ny;
    const auto place_in_stages = [&](Index i) {
      const Index x = i % nx, y = i / nx;
      return y * groups / ny * stages.stages + (x + y) % stages.stages;
    };
    std::vector<Index> order(static_cast<std::size_t>(n)), place(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), Index{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](Index a, Index b) { return place_in_stages(a) < place_in_stages(b); });
    for (std::size_t k = 0; k < order.size(); ++k)
      place[static_cast<std::size_t>(order[k])] = static_cast<Index>(k);
    for (Index g = 0; g < groups; ++g)
      for (Index s = 0; s <= stages.stages; ++s) {
        const auto before = std::count_if(
            order.begin(), order.end(), [&](Index i) { return place_in_stages(i) < g * stages.stages + s; });
        stages.begins.push_back(static_cast<std::int32_t>(before));
        if (s > 0)
          stages.longest = std::max<Index>(stages.longest, stages.begins.back() - *(stages.begins.end() - 2));
      }
    matrix.resize(order.size());
    left.resize(order.size());
    right.resize(order.size());
    for (std::size_t k = 0; k < order.size(); ++k) {
      const auto& row = natural[static_cast<std::size_t>(order[k])];
      const double diagonal = row.at(order[k]);
      inverse_diagonal.push_back(1 / diagonal);
      for (const auto& [j, value] : row) {
        const Index column = place[static_cast<std::size_t>(j)];
        matrix[k][column] = value;
        const Index stage = place_in_stages(order[k]) % stages.stages,
                    other = place_in_stages(j) % stages.stages;
        if (other < stage) left[k][column] = value / diagonal;  // the diagonal is constant
        if (other > stage) right[k][column] = value / diagonal;
      }
    }
  }

  /// M^-1 r, row by row.
  [[nodiscard]] std::vector<Real> solve(const std::vector<Real>& r) const {
    std::vector<Real> z = r;
    for (Index s = 0; s < stages.stages; ++s)
      for_each_row(s, [&](std::size_t i) { z[i] = r[i] - product_of(left[i], z).first; });
    for (Index s = stages.stages; s-- > 0;)
      for_each_row(s, [&](std::size_t i) {
        z[i] = static_cast<Real>(inverse_diagonal[i]) * z[i] - product_of(right[i], z).first;
      });
    return z;
  }

 private:
  template <class Body>
  void for_each_row(Index stage, Body body) const {
    for (Index g = 0; g < stages.groups; ++g) {
      const auto begin = stages.begins.begin() + g * (stages.stages + 1) + stage;
      for (std::int32_t i = begin[0]; i < begin[1]; ++i) body(static_cast<std::size_t>(i));
    }
  }
};

template <class V>
struct FactorTiles {
  Block<V> left, right;
  Tile<V> inverse_diagonal;
  Tile<std::int32_t> stages;

  FactorTiles(Runtime& runtime, const StagedFactors& factors, Stored stored)
      : left(whole(runtime, factors.left, stored)),
        right(whole(runtime, factors.right, stored)),
        inverse_diagonal(tile_of(
            runtime, std::vector<V>(factors.inverse_diagonal.begin(), factors.inverse_diagonal.end()))),
        stages(tile_of(runtime, factors.stages.begins)) {}

 private:
  static Block<V> whole(Runtime& runtime, const Entries& entries, Stored stored) {
    return block_of<V>(runtime, entries, 0, static_cast<Index>(entries.size()), stored);
  }
};

}  // namespace asterism::sparse::test
