/// \file
/// METIS: cuts graphs and orders their nodes, several of them at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "adjacency.hpp"

namespace asterism::decomposition {

/// The part of each node, of so many, about equal in size, with few edges between them. No part is empty.
/// @throw Error: METIS fails
std::vector<std::int32_t> cut_graph(const Adjacency& graph, std::int32_t parts);

/// The nodes in the order of nested dissection. @throw Error: METIS fails
std::vector<std::int32_t> nested_dissection(const Adjacency& graph);

/// Calls body(k) for all k < count, each of which may call one of these, by up to so many threads (0: all cores). The
/// number of threads changes no result. @throw as one_by_one()
void one_by_one_with_metis(std::size_t count, int threads, const std::function<void(std::size_t)>& body);

}  // namespace asterism::decomposition
