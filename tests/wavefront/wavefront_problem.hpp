/// \file
/// Problems of wavefront SOR by their nodes, sweeps and tiles.
#pragma once

#include <cstddef>
#include <vector>

#include "codelets/wavefront/sweeps.hpp"

namespace asterism::test {

inline wavefront::WavefrontArgs problem(const std::vector<Index>& nodes, Index sweeps,
                                        const wavefront::WavefrontTile& tile = {}) {
  wavefront::WavefrontArgs args;
  args.dimensions = static_cast<int>(nodes.size());
  for (std::size_t k = 0; k < nodes.size(); ++k) args.nodes[3 - nodes.size() + k] = nodes[k];
  args.sweeps = sweeps;
  args.layout.tile = tile;
  return args;
}

}  // namespace asterism::test
