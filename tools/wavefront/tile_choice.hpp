/// \file
/// The tile layout with which wavefront SOR runs on this machine, and what is kept of earlier choices: a file
/// beside that of the costs for each kind of machine and problem.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "tile_costs.hpp"

namespace asterism::tools {

/// How a layout came about.
enum class LayoutOrigin {
  given,     ///< by an option
  untuned,   ///< from the grid alone, by the solver
  kept,      ///< by an earlier run
  searched,  ///< by the tile-size model now, with costs that were kept
  measured,  ///< by the tile-size model now, and so were its costs
};
const char* name(LayoutOrigin origin);

struct TileChoice {
  std::optional<kernels::WavefrontLayout> layout;  ///< none: left to the solver
  LayoutOrigin origin = LayoutOrigin::untuned;
  std::string why = {};             ///< it is untuned
  std::filesystem::path file = {};  ///< that it is kept in; empty: none
};

/// The layout for a problem: on a GPU the one that is kept, or else the model's, which is then kept (its
/// costs are measured for large problems only; small ones do without a layout until they have been); on CPUs
/// the one that `asterism tune wavefront` has kept of a problem like it, if any. Files that are missing,
/// damaged or cannot be written are never an error, nor is a model that finds nothing.
/// @param args all sweeps that a GPU makes at once
template <class T>
TileChoice choose_tiles(Runtime& runtime, const kernels::WavefrontArgs& args);

/// The model's layout of this GPU, which is kept. @throw Error: no layout can run
template <class T>
tile_model::Choice search_and_keep(const tile_model::Probe<T>& probe, const KnownCosts& known,
                                   const kernels::WavefrontArgs& args);

/// Keeps args.layout, which was found to be the fastest on these CPUs. @return the file; empty: it could not
/// be kept
std::filesystem::path keep_cpu_tiles(const Machine& machine, Precision precision,
                                     const kernels::WavefrontArgs& args);

}  // namespace asterism::tools
