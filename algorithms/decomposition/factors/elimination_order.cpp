#include "elimination_order.hpp"

#include <limits>
#include <numeric>

#include "../../common/team.hpp"
#include "../cut/metis.hpp"

namespace asterism::decomposition {
namespace {

/// Entries of a column of L with which a natural order is good enough, and with which it is not worth counting on.
constexpr Index small_fill = 4, large_fill = 64;

EliminationOrder natural_order(const Adjacency& graph) {
  const Index n = graph.nodes();
  EliminationOrder natural{std::vector<std::int32_t>(static_cast<std::size_t>(n)), {}};
  std::iota(natural.old_of_new.begin(), natural.old_of_new.end(), 0);
  if (auto tree = elimination_tree(graph, natural.old_of_new, large_fill * n))
    natural.tree = std::move(*tree);
  else
    natural.tree.fill = std::numeric_limits<Index>::max();
  return natural;
}

}  // namespace

std::vector<EliminationOrder> elimination_orders(const std::vector<const Adjacency*>& graphs, int threads) {
  std::vector<EliminationOrder> orders(graphs.size());
  one_by_one(graphs.size(), threads, [&](std::size_t k) { orders[k] = natural_order(*graphs[k]); });
  std::vector<const Adjacency*> others;
  std::vector<std::size_t> number;
  for (std::size_t k = 0; k < graphs.size(); ++k)
    if (orders[k].tree.fill > small_fill * graphs[k]->nodes()) {
      others.push_back(graphs[k]);
      number.push_back(k);
    }
  one_by_one_with_metis(others.size(), threads, [&](std::size_t k) {
    EliminationOrder order{nested_dissection(*others[k]), {}};
    order.tree = *elimination_tree(*others[k], order.old_of_new, std::numeric_limits<Index>::max());
    if (order.tree.fill < orders[number[k]].tree.fill) orders[number[k]] = std::move(order);
  });
  return orders;
}

}  // namespace asterism::decomposition
