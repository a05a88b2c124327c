/// \file
/// Costs of wavefront SOR on a GPU, to search and to keep.
#pragma once

#include "algorithms/wavefront/tiles/model.hpp"

namespace asterism::test {

/// What a GPU like those of today would have measured: latency for few warps, throughput for many.
inline wavefront::tile_model::Costs plausible_costs() {
  using namespace wavefront::tile_model;
  Costs costs;
  costs.kernel = 8e-6;
  costs.thread = {{32, 5e-9}, {64, 6e-9}, {128, 8e-9}, {256, 12e-9}};
  costs.block = {{4, 1e-6}, {8, 1.2e-6}, {32, 2e-6}};
  costs.border = 0.7;
  for (const int threads : {32, 64, 128, 256})
    for (const int b : {1, 2, 4}) {
      if (threads * b > 256) continue;
      TileCosts c{.threads = threads, .tiles_beside = b};
      c.coefficients[wavefronts] = 100e-9;
      c.coefficients[rounds] = 150e-9;
      c.coefficients[warps] = 5e-9 * b;
      c.coefficients[accesses] = 10e-9 * b;
      c.coefficients[rows] = 20e-9;
      c.coefficients[tile] = 1.5e-6;
      costs.tiles.push_back(c);
    }
  return costs;
}

}  // namespace asterism::test
