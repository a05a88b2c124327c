#include "elimination_order.hpp"

#include <fmt/format.h>
#include <metis.h>

#include <limits>
#include <numeric>

#include "../../../runtime/error.hpp"
#include "elimination_tree.hpp"

namespace asterism::decomposition {
namespace {

/// Entries of a column of L with which a natural order is good enough, and with which it is not worth counting on.
constexpr Index small_fill = 4, large_fill = 64;

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

}  // namespace

EliminationOrder elimination_order(const Adjacency& graph) {
  const auto n = static_cast<std::size_t>(graph.nodes());
  EliminationOrder natural{std::vector<std::int32_t>(n), 0};
  std::iota(natural.old_of_new.begin(), natural.old_of_new.end(), 0);
  const auto tree = elimination_tree(graph, natural.old_of_new, large_fill * static_cast<Index>(n));
  natural.fill = tree ? tree->fill : std::numeric_limits<Index>::max();
  if (natural.fill <= small_fill * static_cast<Index>(n)) return natural;
  EliminationOrder dissected{nested_dissection(graph), 0};
  dissected.fill = elimination_tree(graph, dissected.old_of_new, std::numeric_limits<Index>::max())->fill;
  return dissected.fill < natural.fill ? dissected : natural;
}

}  // namespace asterism::decomposition
