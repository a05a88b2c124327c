/// \file
/// The tile layout of a solver: as it was given, cut to grid and machine, or by a rule of thumb.
#pragma once

#include <array>
#include <optional>

#include "../../codelets/wavefront/sweeps.hpp"
#include "../../runtime/hardware/machine.hpp"
#include "../../runtime/runtime.hpp"

namespace asterism::wavefront {

/// Extents along the slowest axis: of a tile's points on CPUs, which are the slices of a block.
[[nodiscard]] inline Index& height_of(WavefrontLayout& layout, int dimensions) {
  return layout.tile.points[static_cast<std::size_t>(3 - dimensions)];
}

/// On CPUs: tiles of so many sweeps and slices along the slowest axis.
/// @param element bytes of a number
/// @throw Error: no sweep, or more sweeps than slices; a grid that main memory has no room for
WavefrontLayout layout_on_cpus(const Machine& machine, const WavefrontArgs& grid, std::size_t element,
                               const std::optional<WavefrontLayout>& given);

/// On a GPU: tiles, threads and blocks.
struct GpuLayout {
  WavefrontLayout layout;
  std::array<int, 2> most_blocks = {};  ///< that the GPU can have at once: without a source, with one
};
/// @throw Error: what a GPU cannot run
template <class T>
GpuLayout layout_on_gpu(Runtime& runtime, const WavefrontArgs& grid,
                        const std::optional<WavefrontLayout>& given);

}  // namespace asterism::wavefront
