#include "elimination_order.hpp"

#include <fmt/format.h>
#include <metis.h>

#include <limits>
#include <numeric>
#include <optional>

#include "../../../runtime/error.hpp"
#include "../../common/team.hpp"

namespace asterism::decomposition {
namespace {

/// Entries of a column of L with which a natural order is good enough, and with which it is not worth counting on.
constexpr Index small_fill = 4, large_fill = 64;

/// One thread at a time: METIS draws from rand(), whose state threads would share.
std::vector<std::int32_t> nested_dissection(const Adjacency& graph) {
  idx_t n = graph.nodes();
  std::vector<std::int32_t> old_of_new(static_cast<std::size_t>(n)), new_of_old(old_of_new.size());
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = 1;
  Adjacency g = graph;  // METIS takes no constants
  if (METIS_NodeND(&n, g.begins.data(), g.neighbours.data(), nullptr, options, old_of_new.data(),
                   new_of_old.data()) != METIS_OK)
    throw Error(fmt::format("METIS cannot order a graph of {} nodes", graph.nodes()));
  return old_of_new;
}

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
  std::vector<std::vector<std::int32_t>> dissected;
  dissected.reserve(others.size());
  for (const Adjacency* graph : others) dissected.push_back(nested_dissection(*graph));
  one_by_one(others.size(), threads, [&](std::size_t k) {
    EliminationOrder order{std::move(dissected[k]), {}};
    order.tree = *elimination_tree(*others[k], order.old_of_new, std::numeric_limits<Index>::max());
    if (order.tree.fill < orders[number[k]].tree.fill) orders[number[k]] = std::move(order);
  });
  return orders;
}

}  // namespace asterism::decomposition
