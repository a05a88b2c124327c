#include "tile_choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <functional>
#include <system_error>
#include <utility>
#include <vector>

#include "../../runtime/kept/kept_files.hpp"

namespace asterism::tools {
namespace {

using kernels::WavefrontArgs;
using kernels::WavefrontLayout;

constexpr int version = 1;  // of the files, and of what their numbers mean

std::vector<Index> grid_of(const WavefrontArgs& args) {
  return {args.nodes.end() - args.dimensions, args.nodes.end()};
}

std::string how_to_tune(const WavefrontArgs& args) {
  return fmt::format("`asterism tune wavefront --grid {}` finds the fastest ones",
                     fmt::join(grid_of(args), "x"));
}

/// A layout, and the problem that it was chosen for.
struct KeptLayout {
  std::vector<Index> grid;
  Index sweeps;
  WavefrontLayout layout;
};

// --- The file ---------------------------------------------------------------------------------------------

/// Layouts of one machine, number of dimensions, precision, with or without a source.
class KeptLayouts {
 public:
  /// @param basis what they were chosen by: layouts with another basis are taken for none
  KeptLayouts(const std::string& machine, Precision precision, const WavefrontArgs& args, std::string basis)
      : file_(costs_file(machine, args.dimensions, precision, args.has_source)),
        dimensions_(static_cast<std::size_t>(args.dimensions)),
        basis_(std::move(basis)) {
    if (!file_.empty()) file_.replace_extension(".layouts.json");
    try {
      load();
    } catch (const std::exception&) {  // cut short, edited
      layouts_.clear();
    }
  }

  [[nodiscard]] const std::filesystem::path& file() const { return file_; }

  /// That of a grid whose extents differ least, none by more than a factor of sqrt(2), and of as many sweeps
  /// as can be.
  [[nodiscard]] const KeptLayout* nearest(const std::vector<Index>& grid, Index sweeps) const {
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

  [[nodiscard]] const KeptLayout* exact(const std::vector<Index>& grid, Index sweeps) const {
    const KeptLayout* const found = nearest(grid, sweeps);
    return found != nullptr && found->grid == grid && found->sweeps == sweeps ? found : nullptr;
  }

  /// In the place of one of the same problem. @return whether the file could be written
  bool keep(const KeptLayout& layout) {
    constexpr std::size_t most = 256;
    std::erase_if(layouts_, [&](const KeptLayout& other) {
      return other.grid == layout.grid && other.sweeps == layout.sweeps;
    });
    if (layouts_.size() >= most) layouts_.erase(layouts_.begin());  // the oldest
    layouts_.push_back(layout);
    return save();
  }

 private:
  void load() {
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

  [[nodiscard]] bool save() const {
    if (file_.empty()) return false;
    auto list = nlohmann::ordered_json::array();
    for (const KeptLayout& kept : layouts_)
      list.push_back({{"grid", kept.grid},
                      {"sweeps", kept.sweeps},
                      {"tile", {{"sweeps", kept.layout.tile.sweeps}, {"points", kept.layout.tile.points}}},
                      {"threads", kept.layout.threads},
                      {"blocks", kept.layout.blocks}});
    const nlohmann::ordered_json j{{"version", version}, {"basis", basis_}, {"layouts", list}};
    return keep_in(file_, j);
  }

  std::filesystem::path file_;
  std::size_t dimensions_;
  std::string basis_;
  std::vector<KeptLayout> layouts_;  // the oldest first
};

// --- On a GPU ---------------------------------------------------------------------------------------------

/// Other costs, other layouts.
std::string basis_of(const tile_model::Costs& costs) {
  return fmt::format("costs {:016x}", std::hash<std::string>{}(costs_as_json(costs).dump()));
}

/// Whether a layout that was read from a file is one for this GPU.
bool can_run(const tile_model::Gpu& gpu, int dimensions, const WavefrontLayout& layout) {
  return kernels::cuda::is_possible(dimensions, layout.tile) && layout.blocks >= 1 &&
         layout.blocks <=
             gpu.multiprocessors * gpu.blocks_per_sm(layout.threads, gpu.shared_bytes(layout.tile));
}

template <class T>
KeptLayouts layouts_of(const tile_model::Probe<T>& probe, const KnownCosts& known,
                       const WavefrontArgs& args) {
  return {probe.gpu().name, precision_of<T>, args, basis_of(known.costs)};
}

/// Measuring a GPU's costs takes seconds: not for what is done in a fraction of one.
bool worth_measuring(const WavefrontArgs& args) {
  double points = static_cast<double>(args.sweeps);
  for (const Index n : grid_of(args)) points *= static_cast<double>(n);
  return points >= 0x1p32;
}

template <class T>
TileChoice choose_on_gpu(Runtime& runtime, const WavefrontArgs& args) {
  const tile_model::Probe<T> probe(runtime, args.dimensions, args.has_source);
  KnownCosts known{.costs = {},
                   .file = costs_file(probe.gpu().name, args.dimensions, precision_of<T>, args.has_source)};
  if (const auto kept = load_costs(known.file))
    known.costs = *kept;
  else if (worth_measuring(args))
    known = costs_of(probe, Remembering::anew);
  else
    return {.layout = {}, .why = how_to_tune(args)};
  const KeptLayouts layouts = layouts_of(probe, known, args);
  TileChoice choice{.layout = {}, .origin = LayoutOrigin::kept, .file = layouts.file()};
  if (const KeptLayout* const kept = layouts.exact(grid_of(args), args.sweeps);
      kept != nullptr && can_run(probe.gpu(), args.dimensions, kept->layout)) {
    choice.layout = kept->layout;
    return choice;
  }
  choice.layout = search_and_keep(probe, known, args).layout;
  choice.origin = known.seconds > 0 ? LayoutOrigin::measured : LayoutOrigin::searched;
  if (layouts_of(probe, known, args).exact(grid_of(args), args.sweeps) == nullptr) choice.file.clear();
  return choice;
}

// --- On CPUs ----------------------------------------------------------------------------------------------

/// "Intel(R) Xeon(R) Processor, 2 workers"
std::string cpus_of(const Machine& machine) {
  std::ifstream info("/proc/cpuinfo");
  std::string model = machine.host;
  for (std::string line; std::getline(info, line);)
    if (const auto colon = line.find(": "); line.starts_with("model name") && colon != std::string::npos) {
      model = line.substr(colon + 2);
      break;
    }
  return fmt::format("{}, {} workers", model, machine.count(WorkerKind::cpu));
}

KeptLayouts cpu_layouts(const Machine& machine, Precision precision, const WavefrontArgs& args) {
  return {cpus_of(machine), precision, args, "timed"};
}

TileChoice choose_on_cpus(const Machine& machine, Precision precision, const WavefrontArgs& args) {
  const KeptLayouts layouts = cpu_layouts(machine, precision, args);
  const auto slowest = static_cast<std::size_t>(3 - args.dimensions);
  if (const KeptLayout* const kept = layouts.nearest(grid_of(args), args.sweeps))
    if (const kernels::WavefrontTile& tile = kept->layout.tile;
        tile.sweeps >= 1 && tile.points[slowest] >= tile.sweeps)
      return {.layout = kept->layout, .origin = LayoutOrigin::kept, .file = layouts.file()};
  return {.layout = {}, .why = how_to_tune(args)};
}

}  // namespace

const char* name(LayoutOrigin origin) {
  switch (origin) {
    case LayoutOrigin::given:
      return "given";
    case LayoutOrigin::untuned:
      return "untuned";
    case LayoutOrigin::kept:
      return "kept";
    case LayoutOrigin::searched:
      return "searched";
    case LayoutOrigin::measured:
      return "measured";
  }
  return "";
}

template <class T>
TileChoice choose_tiles(Runtime& runtime, const WavefrontArgs& args) {
  const Machine machine = runtime.machine();
  if (machine.ranks > 1) return {};  // which the solver refuses
  if (machine.count(WorkerKind::cuda) == 0) return choose_on_cpus(machine, precision_of<T>, args);
  try {
    return choose_on_gpu<T>(runtime, args);
  } catch (const Error& error) {
    return {.layout = {}, .why = error.what()};
  }
}

template <class T>
tile_model::Choice search_and_keep(const tile_model::Probe<T>& probe, const KnownCosts& known,
                                   const WavefrontArgs& args) {
  // Of very many sweeps, and of very long axes, a part stands for all: inter-tile wavefronts are alike then,
  // and counting all of them would take minutes.
  constexpr std::array<Index, 3> longest{1 << 20, 1 << 14, 1 << 10};
  constexpr Index enough_sweeps = 4096, times_longest = 4;
  WavefrontArgs part = args;
  double of_all = 1;
  for (Index& n : part.nodes) {
    const Index whole = std::exchange(n, std::min(n, longest[static_cast<std::size_t>(args.dimensions - 1)]));
    of_all *= static_cast<double>(n) / static_cast<double>(whole);
  }
  part.sweeps = std::min(
      args.sweeps,
      std::max(enough_sweeps, times_longest * *std::max_element(part.nodes.begin(), part.nodes.end())));
  of_all *= static_cast<double>(part.sweeps) / static_cast<double>(args.sweeps);
  tile_model::Choice choice = tile_model::search(known.costs, probe.gpu(), part, tile_model::space_of(part));
  choice.seconds /= of_all;
  layouts_of(probe, known, args).keep({grid_of(args), args.sweeps, choice.layout});
  return choice;
}

std::filesystem::path keep_cpu_tiles(const Machine& machine, Precision precision, const WavefrontArgs& args) {
  KeptLayouts layouts = cpu_layouts(machine, precision, args);
  return layouts.keep({grid_of(args), args.sweeps, args.layout}) ? layouts.file() : std::filesystem::path();
}

template TileChoice choose_tiles<float>(Runtime&, const WavefrontArgs&);
template TileChoice choose_tiles<double>(Runtime&, const WavefrontArgs&);
template tile_model::Choice search_and_keep(const tile_model::Probe<float>&, const KnownCosts&,
                                            const WavefrontArgs&);
template tile_model::Choice search_and_keep(const tile_model::Probe<double>&, const KnownCosts&,
                                            const WavefrontArgs&);

}  // namespace asterism::tools
