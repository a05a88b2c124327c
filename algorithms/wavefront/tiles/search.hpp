/// \file
/// The tile layout that takes least by the tile-size model (model.hpp), and layouts drawn at random.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model.hpp"

namespace asterism::wavefront::tile_model {

/// What the search has to know of a GPU and of the kernel there.
struct Gpu {
  std::string name;
  int multiprocessors = 0;                                           ///< P
  std::size_t most_shared_bytes = 0;                                 ///< that a block can have
  std::function<std::size_t(const WavefrontTile&)> shared_bytes;     ///< S_TB
  std::function<int(int threads, std::size_t bytes)> blocks_per_sm;  ///< B, by Table 1 or what replaces it
};

/// The tile sizes that are looked at: the product of these lists, as far as it meets the constraints of
/// section 4.1.
struct Space {
  std::vector<Index> sweeps;
  std::array<std::vector<Index>, 3> points;  ///< along z, y, x
  double least_reuse = 0;                    ///< D
};
/// Sizes in steps of about 2^(1/2), as far as they make sense for a problem.
Space space_of(const WavefrontArgs& args);

struct Choice {
  WavefrontLayout layout;
  double seconds = 0;  ///< predicted
  Index layouts = 0;   ///< that were considered
};
/// The layout that takes least by the model: of the space and, from the best one there on, by small steps of
/// each extent.
/// @throw Error when no layout can run.
Choice search(const Costs& costs, const Gpu& gpu, const WavefrontArgs& args, const Space& space);

/// Layouts drawn at random from what the search may choose: tile extents from the whole range of the space,
/// uniformly in their logarithms, thread organisations from those that were measured.
std::vector<WavefrontLayout> random_layouts(const Costs& costs, const Gpu& gpu, const WavefrontArgs& args,
                                            const Space& space, std::size_t count, std::uint64_t seed);

}  // namespace asterism::wavefront::tile_model
