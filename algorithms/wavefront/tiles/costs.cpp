#include "costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "../../../runtime/kept/kept_files.hpp"

namespace asterism::wavefront {
namespace {

constexpr int version = 2;  // of the file, and of what its numbers mean

/// A cost: finite, not negative.
double cost(const nlohmann::json& value) {
  const auto seconds = value.get<double>();
  if (!std::isfinite(seconds) || seconds < 0) throw std::invalid_argument("not a cost");
  return seconds;
}

nlohmann::ordered_json pairs(const char* argument, const std::map<int, double>& measured) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& [number, seconds] : measured) list.push_back({{argument, number}, {"seconds", seconds}});
  return list;
}

std::map<int, double> pairs_of(const nlohmann::json& list, const char* argument) {
  std::map<int, double> measured;
  for (const auto& entry : list) measured[entry.at(argument).get<int>()] = cost(entry.at("seconds"));
  return measured;
}

nlohmann::ordered_json json_of(const tile_model::Costs& costs) {
  nlohmann::ordered_json j{{"version", version},
                           {"sigma_kernel", costs.kernel},
                           {"sigma_thread", pairs("threads", costs.thread)},
                           {"sigma_block", pairs("blocks", costs.block)},
                           {"border", costs.border},
                           {"sigma_turn", costs.turn},
                           {"sigma_column", costs.column},
                           {"sigma_strands", costs.strands}};
  auto tiles = nlohmann::ordered_json::array();
  for (const tile_model::TileCosts& c : costs.tiles) {
    nlohmann::ordered_json coefficients;
    for (std::size_t k = 0; k < tile_model::terms; ++k)
      coefficients[tile_model::name(static_cast<tile_model::Term>(k))] = c.coefficients[k];
    tiles.push_back({{"threads", c.threads},
                     {"tiles_beside", c.tiles_beside},
                     {"error", c.error},
                     {"coefficients", coefficients}});
  }
  j["tiles"] = tiles;
  return j;
}

}  // namespace

template <class T>
std::filesystem::path costs_file(const std::string& gpu, int dimensions, bool has_source) {
  const std::filesystem::path folder = cache_folder();
  if (folder.empty()) return folder;
  std::string name = gpu;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return folder / fmt::format("wavefront-{}-{}d-{}{}.json", name, dimensions,
                              std::is_same_v<T, float> ? "f32" : "f64", has_source ? "-source" : "");
}

std::string costs_as_json(const tile_model::Costs& costs) { return json_of(costs).dump(); }

std::optional<tile_model::Costs> load_costs(const std::filesystem::path& file) {
  const std::optional<std::string> text = read_kept(file);
  if (!text) return std::nullopt;
  try {
    const auto j = nlohmann::json::parse(*text);
    if (j.at("version") != version) return std::nullopt;
    tile_model::Costs costs;
    costs.kernel = cost(j.at("sigma_kernel"));
    costs.thread = pairs_of(j.at("sigma_thread"), "threads");
    costs.block = pairs_of(j.at("sigma_block"), "blocks");
    costs.border = cost(j.at("border"));
    costs.turn = cost(j.at("sigma_turn"));
    costs.column = cost(j.at("sigma_column"));
    costs.strands = cost(j.at("sigma_strands"));
    for (const auto& entry : j.at("tiles")) {
      tile_model::TileCosts c;
      c.threads = entry.at("threads").get<int>();
      c.tiles_beside = entry.at("tiles_beside").get<int>();
      c.error = cost(entry.at("error"));
      for (std::size_t k = 0; k < tile_model::terms; ++k)
        c.coefficients[k] =
            cost(entry.at("coefficients").at(tile_model::name(static_cast<tile_model::Term>(k))));
      if (c.threads < 32 || c.threads > 1024 || c.threads % 32 != 0 || c.tiles_beside < 1)
        return std::nullopt;
      const auto place = [](const tile_model::TileCosts& t) { return std::pair(t.threads, t.tiles_beside); };
      if (!costs.tiles.empty() && place(c) <= place(costs.tiles.back())) return std::nullopt;
      costs.tiles.push_back(c);
    }
    if (costs.tiles.empty()) return std::nullopt;
    return costs;
  } catch (const std::exception&) {  // cut short, or edited
    return std::nullopt;
  }
}

bool save_costs(const std::filesystem::path& file, const tile_model::Costs& costs) {
  return can_write(file.parent_path()) && keep(file, json_of(costs).dump(1) + '\n');
}

template <class T>
KnownCosts costs_of(const tile_model::Probe<T>& probe, Remembering remembering) {
  KnownCosts known{.costs = {},
                   .file = costs_file<T>(probe.gpu().name, probe.dimensions(), probe.has_source())};
  if (remembering == Remembering::as_kept)
    if (auto kept = load_costs(known.file)) {
      known.costs = *kept;
      return known;
    }
  const auto start = std::chrono::steady_clock::now();
  known.costs = probe.measure();
  known.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!save_costs(known.file, known.costs)) known.file.clear();
  return known;
}

template std::filesystem::path costs_file<float>(const std::string&, int, bool);
template std::filesystem::path costs_file<double>(const std::string&, int, bool);
template KnownCosts costs_of(const tile_model::Probe<float>&, Remembering);
template KnownCosts costs_of(const tile_model::Probe<double>&, Remembering);

}  // namespace asterism::wavefront
