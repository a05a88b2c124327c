/// \file
/// The costs of the tile-size model (model.hpp) from what was measured, by least squares.
#pragma once

#include <vector>

#include "model.hpp"

namespace asterism::wavefront::tile_model {

/// The coefficients of (T1) that are not negative and make the squares of relative errors least.
/// @param seconds without the barriers; positive
Terms fit(const std::vector<Terms>& counted, const std::vector<double>& seconds);

/// A run of the whole kernel.
struct Run {
  WavefrontArgs args;
  double seconds;
};
/// Sets phi, sigma_turn, sigma_col and sigma_str, in which (T4) is linear, and what sigma_blk lacks, to the
/// least squares of the relative errors of these runs; no cost is negative, and phi at most 1.
void calibrate(Costs& costs, int multiprocessors, const std::vector<Run>& runs);

}  // namespace asterism::wavefront::tile_model
