#include "kept_layouts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "../../../runtime/kept/kept_files.hpp"

namespace asterism::wavefront {
namespace {

constexpr int version = 1;  // of the files, and of what their numbers mean

}  // namespace

KeptLayouts::KeptLayouts(std::filesystem::path costs, int dimensions, std::string basis)
    : file_(std::move(costs)), dimensions_(static_cast<std::size_t>(dimensions)), basis_(std::move(basis)) {
  if (!file_.empty()) file_.replace_extension(".layouts.json");
  try {
    load();
  } catch (const std::exception&) {  // cut short, edited
    layouts_.clear();
  }
}

const KeptLayout* KeptLayouts::nearest(const std::vector<Index>& grid, Index sweeps) const {
  constexpr double near = 0.5;
  const auto octaves = [](Index a, Index b) {
    return std::abs(std::log2(static_cast<double>(a) / static_cast<double>(b)));
  };
  const KeptLayout* best = nullptr;
  double least = 0;
  for (const KeptLayout& kept : layouts_) {
    double distance = octaves(kept.sweeps, sweeps);
    bool is_near = true;
    for (std::size_t axis = 0; axis < grid.size(); ++axis) {
      const double apart = octaves(kept.grid[axis], grid[axis]);
      is_near = is_near && apart <= near;
      distance += apart;
    }
    if (!is_near || (best != nullptr && distance >= least)) continue;
    best = &kept;
    least = distance;
  }
  return best;
}

const KeptLayout* KeptLayouts::exact(const std::vector<Index>& grid, Index sweeps) const {
  const KeptLayout* const found = nearest(grid, sweeps);
  return found != nullptr && found->grid == grid && found->sweeps == sweeps ? found : nullptr;
}

bool KeptLayouts::keep(const KeptLayout& layout) {
  constexpr std::size_t most = 256;
  std::erase_if(layouts_, [&](const KeptLayout& other) {
    return other.grid == layout.grid && other.sweeps == layout.sweeps;
  });
  if (layouts_.size() >= most) layouts_.erase(layouts_.begin());  // the oldest
  layouts_.push_back(layout);
  return save();
}

void KeptLayouts::load() {
  const std::optional<std::string> text = read_kept(file_);
  if (!text) return;
  const auto j = nlohmann::json::parse(*text);
  if (j.at("version") != version || j.at("basis") != basis_) return;
  for (const auto& entry : j.at("layouts")) {
    KeptLayout kept;
    kept.grid = entry.at("grid").get<std::vector<Index>>();
    kept.sweeps = entry.at("sweeps").get<Index>();
    kept.layout.tile.sweeps = entry.at("tile").at("sweeps").get<Index>();
    kept.layout.tile.points = entry.at("tile").at("points").get<std::array<Index, 3>>();
    kept.layout.threads = entry.at("threads").get<int>();
    kept.layout.blocks = entry.at("blocks").get<int>();
    const bool sound = kept.grid.size() == dimensions_ && kept.sweeps > 0 &&
                       std::all_of(kept.grid.begin(), kept.grid.end(), [](Index n) { return n > 0; });
    if (sound) layouts_.push_back(kept);
  }
}

bool KeptLayouts::save() const {
  auto list = nlohmann::ordered_json::array();
  for (const KeptLayout& kept : layouts_)
    list.push_back({{"grid", kept.grid},
                    {"sweeps", kept.sweeps},
                    {"tile", {{"sweeps", kept.layout.tile.sweeps}, {"points", kept.layout.tile.points}}},
                    {"threads", kept.layout.threads},
                    {"blocks", kept.layout.blocks}});
  const nlohmann::ordered_json j{{"version", version}, {"basis", basis_}, {"layouts", list}};
  return can_write(file_.parent_path()) && asterism::keep(file_, j.dump(1) + '\n');
}

}  // namespace asterism::wavefront
