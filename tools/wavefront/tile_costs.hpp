/// \file
/// What was measured of this machine for wavefront SOR, kept from one run of the program to the next.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "../../algorithms/wavefront/tile_probe.hpp"
#include "../files/npy.hpp"

namespace asterism::tools {

/// $XDG_CACHE_HOME/asterism, or ~/.cache/asterism; empty where there is neither.
std::filesystem::path cache_folder();

/// The file for the kernel of one precision, number of dimensions, with or without a source, on a GPU:
/// wavefront-NVIDIA_H200-2d-f64-source.json. Empty where there is no folder.
std::filesystem::path costs_file(const std::string& gpu, int dimensions, Precision precision,
                                 bool has_source);

nlohmann::ordered_json costs_as_json(const tile_model::Costs& costs);

/// Nothing when there is no such file, or one of another version, or one that is no costs.
std::optional<tile_model::Costs> load_costs(const std::filesystem::path& file);
/// @return whether the file could be written. What cannot be kept is measured again.
bool save_costs(const std::filesystem::path& file, const tile_model::Costs& costs);
/// The same of anything: the file has all of it, or what it had before.
bool keep_in(const std::filesystem::path& file, const nlohmann::ordered_json& j);

struct KnownCosts {
  tile_model::Costs costs;
  double seconds = 0;               ///< that measuring took; 0: they come from the file
  std::filesystem::path file = {};  ///< empty: not kept
};

/// The costs of this machine's GPU: from the file, or measured and kept there.
enum class Remembering { as_kept, anew };
template <class T>
KnownCosts costs_of(const tile_model::Probe<T>& probe, Remembering remembering = Remembering::as_kept);

}  // namespace asterism::tools
