/// \file
/// Orders of elimination by nested dissection.
#pragma once

#include <cstdint>
#include <vector>

#include "../cut/subdomains.hpp"

namespace asterism::decomposition {

/// Orders of the nodes of some graphs, [George 1973]: those of a separator last, each half before it in the same way,
/// and the smallest parts by least degree. By several threads, whose number changes nothing: METIS has the state of
/// rand() in common, so that threads would change each other's orders.
/// @param graphs none of them nullptr @param threads 0: as many as there are cores
/// @return old_of_new of each
std::vector<std::vector<std::int32_t>> nested_dissections(const std::vector<const Adjacency*>& graphs,
                                                          int threads = 0);

}  // namespace asterism::decomposition
