/// \file
/// The blocks of subdomains on their way to factors: ordered, as columns in that order, and what their factors will take.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "../../../codelets/decomposition/factorise.hpp"
#include "../../../runtime/error.hpp"
#include "../../common/team.hpp"
#include "../../sparse/preconditioners/preconditioner.hpp"
#include "../cut/subdomains.hpp"
#include "elimination_order.hpp"
#include "elimination_tree.hpp"

namespace asterism::decomposition {

/// Of triangular factors with so many entries below the diagonal.
template <class V>
Index bytes_of(Index rows, Index fill) {
  constexpr Index entry = sizeof(V) + sizeof(std::int32_t);
  return 2 * (fill * entry + (rows + 1) * 4) + rows * (static_cast<Index>(sizeof(V)) + 8);
}
template <class V>
Index bytes_of(const Supernodes& s) {
  const std::size_t lists = s.rows.size() + s.places.size() + s.order.size() + s.jobs.size();
  return (s.entries() + panel_margin) * static_cast<Index>(sizeof(V)) +
         static_cast<Index>(s.nodes.size() * sizeof(Supernode) + 4 * lists) + 4 * s.columns();
}

/// How a block is eliminated.
struct BlockOrder {
  std::vector<std::int32_t> old_of_new;
  Index fill = 0;                                // as EliminationTree has it
  std::int32_t depth = 0;                        // of the tree
  std::shared_ptr<const Supernodes> supernodes;  // of a symmetric block
};

/// Nodes on the longest way to a root.
inline std::int32_t depth_of(const EliminationTree& tree) {
  std::vector<std::int32_t> depths(tree.parents.size(), 1);
  std::int32_t depth = 0;
  for (std::size_t k = 0; k < depths.size(); ++k) {
    depth = std::max(depth, depths[k]);
    if (const std::int32_t parent = tree.parents[k]; parent >= 0)
      depths[parent] = std::max(depths[parent], depths[k] + 1);
  }
  return depth;
}

/// Of blocks with these graphs. Many subdomains of a grid have the same one: it is ordered once.
inline std::vector<BlockOrder> order_blocks(const std::vector<Adjacency>& graphs,
                                            sparse::MatrixClass matrix_class) {
  std::vector<const Adjacency*> unlike;
  std::vector<std::size_t> number;  // among these
  for (const Adjacency& graph : graphs) {
    const auto same = std::ranges::find_if(unlike, [&](const Adjacency* known) { return *known == graph; });
    number.push_back(static_cast<std::size_t>(same - unlike.begin()));
    if (same == unlike.end()) unlike.push_back(&graph);
  }
  std::vector<EliminationOrder> orders = elimination_orders(unlike);
  std::vector<BlockOrder> of_unlike(unlike.size());
  one_by_one(unlike.size(), 0, [&](std::size_t k) {
    BlockOrder& its = of_unlike[k];
    its.fill = orders[k].tree.fill;
    its.depth = depth_of(orders[k].tree);
    if (matrix_class == sparse::MatrixClass::positive_definite) {
      SupernodalOrder found = supernodes_of(*unlike[k], orders[k].old_of_new, orders[k].tree);
      its.old_of_new = std::move(found.old_of_new);
      its.supernodes = std::make_shared<const Supernodes>(std::move(found.supernodes));
    } else {
      its.old_of_new = std::move(orders[k].old_of_new);
    }
    orders[k] = {};
  });
  std::vector<BlockOrder> all;
  for (const std::size_t k : number) all.push_back(of_unlike[k]);
  return all;
}

/// By what an entry of a weighted block is multiplied, W_p^-1 A W_p^-1.
inline double weight_of(const Subdomain& subdomain, std::int32_t i, std::int32_t j) {
  if (subdomain.counts.empty()) return 1;
  return std::sqrt(static_cast<double>(subdomain.counts[i]) * static_cast<double>(subdomain.counts[j]));
}

/// The rows and columns of a subdomain in the order of elimination; of a symmetric block the lower triangle.
template <class V, class T>
LocalBlock<V> block_of(const sparse::Csr<T>& whole, const Subdomain& subdomain, const BlockOrder& order,
                       sparse::MatrixClass matrix_class) {
  LocalBlock<V> block;
  block.size = static_cast<std::int32_t>(subdomain.rows.size());
  block.symmetric = matrix_class == sparse::MatrixClass::positive_definite;
  std::vector<std::int32_t> place(static_cast<std::size_t>(whole.total_rows), -1);
  for (std::int32_t i = 0; i < block.size; ++i) place[subdomain.rows[order.old_of_new[i]]] = i;
  const auto for_each = [&](const auto& body) {  // rows and columns in the order of elimination
    for (std::int32_t i = 0; i < block.size; ++i) {
      const Index row = subdomain.rows[order.old_of_new[i]];
      for (Index k = whole.row_begin[row]; k < whole.row_begin[row + 1]; ++k)
        if (const std::int32_t j = place[whole.columns[k]]; j >= 0 && (j <= i || !block.symmetric))
          body(i, j, whole.values[k]);
    }
  };
  block.begins.assign(static_cast<std::size_t>(block.size) + 1, 0);
  for_each([&](std::int32_t, std::int32_t j, T) { ++block.begins[static_cast<std::size_t>(j) + 1]; });
  std::partial_sum(block.begins.begin(), block.begins.end(), block.begins.begin());
  block.places.resize(static_cast<std::size_t>(block.begins.back()));
  block.values.resize(block.places.size());
  std::vector<std::int32_t> next(block.begins.begin(), block.begins.end() - 1);
  for_each([&](std::int32_t i, std::int32_t j, T value) {
    const auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(j)]++);
    block.places[at] = i;
    block.values[at] = static_cast<V>(static_cast<double>(value) *
                                      weight_of(subdomain, order.old_of_new[i], order.old_of_new[j]));
  });
  return block;
}

/// @throw Error: an entry of a block is beyond V
template <class V, class T>
void require_numbers(const sparse::Csr<T>& whole) {
  if constexpr (sizeof(V) < sizeof(T))
    for (Index i = 0; i < whole.rows(); ++i)
      for (Index k = whole.row_begin[i]; k < whole.row_begin[i + 1]; ++k)
        if (std::abs(whole.values[k]) > static_cast<T>(std::numeric_limits<V>::max()))
          throw Error(fmt::format(
              "the entry ({}, {}) is {:g} (rows and columns from 0): factors in f32 hold no number above {:.3g}; use "
              "factors in f64, or scale the matrix",
              i, whole.columns[k], whole.values[k], std::numeric_limits<V>::max()));
}

}  // namespace asterism::decomposition
