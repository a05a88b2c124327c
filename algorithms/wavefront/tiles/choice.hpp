/// \file
/// The tile layout with which wavefront SOR runs on this machine, and what is kept of earlier choices: a file
/// beside that of the costs for each kind of machine and problem.
///
///     Settings settings{.sweeps = 1000};
///     settings.layout = choose_tiles<double>(runtime, problem, settings, Source::given).layout;
///     Solver<double> solver(runtime, problem, settings);
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "../solver.hpp"
#include "costs.hpp"
#include "search.hpp"

namespace asterism::wavefront {

/// How a layout came about.
enum class LayoutOrigin {
  given,     ///< by the caller
  untuned,   ///< from the grid alone, by the solver
  kept,      ///< by an earlier run
  searched,  ///< by the tile-size model now, with costs that were kept
  measured,  ///< by the tile-size model now, and so were its costs
};
const char* name(LayoutOrigin origin);

struct TileChoice {
  std::optional<WavefrontLayout> layout;  ///< none: left to the solver
  LayoutOrigin origin = LayoutOrigin::untuned;
  std::string why = {};             ///< it is untuned
  std::filesystem::path file = {};  ///< that it is kept in; empty: none
};

/// Whether there will be an f.
enum class Source { none, given };

/// The layout for a problem, to be put into Settings::layout: on a GPU the one that is kept, or else the model's,
/// which is then kept (its costs are measured for large problems only, in seconds; small ones do without a layout
/// until they have been); on CPUs the one that keep_cpu_tiles() or `asterism tune wavefront` has kept of a problem
/// like it, if any. Several ranks, which the solver refuses, have none. Files that are missing, damaged or cannot
/// be written are never an error, nor is a model that finds nothing. No task should run meanwhile.
/// @param settings their layout is not looked at
/// @throw Error: a problem or settings that the solver refuses on any machine
template <class T>
TileChoice choose_tiles(Runtime& runtime, const Problem& problem, const Settings& settings, Source source);

/// The model's layout of this GPU, which is kept. Takes less than ten seconds.
/// @param args all sweeps that the GPU makes at once, as sweeps_at_once() has them, with or without a source
/// @throw Error: no layout can run
template <class T>
tile_model::Choice search_and_keep(const tile_model::Probe<T>& probe, const KnownCosts& known,
                                   const WavefrontArgs& args);

/// Keeps args.layout, which was found to be the fastest on these CPUs. @return the file; empty: it could not
/// be kept
template <class T>
std::filesystem::path keep_cpu_tiles(const Machine& machine, const WavefrontArgs& args);

}  // namespace asterism::wavefront
