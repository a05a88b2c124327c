/// \file
/// A few nodes that cut a graph in two halves.
#pragma once

#include <cstdint>
#include <vector>

#include "../cut/subdomains.hpp"

namespace asterism::decomposition {

/// Where a node is.
enum class Side : std::uint8_t { left, right, separator };

/// The side of each node, where no edge goes from left to right: by levels of coarser graphs, as [Karypis, Kumar 1998]
/// have them, with nodes that move in and out of the separator as [Fiduccia, Mattheyses 1982] do. Neither half has more
/// than three fifths of the nodes, as far as there is such a separator. The same for equal graphs; any number of
/// threads may call it at a time.
std::vector<Side> vertex_separator(const Adjacency& graph);

}  // namespace asterism::decomposition
