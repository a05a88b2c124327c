/// \file
/// The costs of the tile-size model (model.hpp), kept on disk from one run of a program to the next: a file
/// for each kind of GPU and of kernel.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "probe.hpp"

namespace asterism::wavefront {

/// The file for the kernel of one precision, number of dimensions, with or without a source, on a GPU:
/// wavefront-NVIDIA_H200-2d-f64-source.json, in $XDG_CACHE_HOME/asterism or ~/.cache/asterism. Empty where there
/// is no folder.
template <class T>
std::filesystem::path costs_file(const std::string& gpu, int dimensions, bool has_source);

/// The text of a JSON object, on one line; costs are in seconds.
std::string costs_as_json(const tile_model::Costs& costs);

/// Nothing when there is no such file, or one of another version, or one that is no costs.
std::optional<tile_model::Costs> load_costs(const std::filesystem::path& file);
/// The file has all of the costs, or what it had before. @return whether it could be written. What cannot be
/// kept is measured again.
bool save_costs(const std::filesystem::path& file, const tile_model::Costs& costs);

struct KnownCosts {
  tile_model::Costs costs;
  double seconds = 0;               ///< that measuring took; 0: they come from the file
  std::filesystem::path file = {};  ///< empty: not kept
};

/// Whether costs that are kept will do, or are to be measured again.
enum class Remembering { as_kept, anew };

/// The costs of this machine's GPU: from the file, or measured and kept there.
/// @throw Error: no run of the kernel succeeds
template <class T>
KnownCosts costs_of(const tile_model::Probe<T>& probe, Remembering remembering = Remembering::as_kept);

}  // namespace asterism::wavefront
