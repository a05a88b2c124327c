#include "choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <utility>
#include <vector>

#include "../kept/kept_layouts.hpp"

namespace asterism::wavefront {
namespace {

std::vector<Index> grid_of(const WavefrontArgs& args) {
  return {args.nodes.end() - args.dimensions, args.nodes.end()};
}

std::string how_to_tune(const WavefrontArgs& args) {
  return fmt::format("`asterism tune wavefront --grid {}` finds the fastest ones",
                     fmt::join(grid_of(args), "x"));
}

// --- On a GPU ---------------------------------------------------------------------------------------------

/// Other costs, other layouts.
std::string basis_of(const tile_model::Costs& costs) {
  return fmt::format("costs {:016x}", std::hash<std::string>{}(costs_as_json(costs)));
}

/// Whether a layout that was read from a file is one for this GPU.
bool can_run(const tile_model::Gpu& gpu, int dimensions, const WavefrontLayout& layout) {
  return cuda::is_possible(dimensions, layout.tile) && layout.blocks >= 1 &&
         layout.blocks <=
             gpu.multiprocessors * gpu.blocks_per_sm(layout.threads, gpu.shared_bytes(layout.tile));
}

template <class T>
KeptLayouts layouts_of(const tile_model::Probe<T>& probe, const KnownCosts& known,
                       const WavefrontArgs& args) {
  return {costs_file<T>(probe.gpu().name, args.dimensions, args.has_source), args.dimensions,
          basis_of(known.costs)};
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
  KnownCosts known{.costs = {}, .file = costs_file<T>(probe.gpu().name, args.dimensions, args.has_source)};
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

template <class T>
KeptLayouts cpu_layouts(const Machine& machine, const WavefrontArgs& args) {
  return {costs_file<T>(cpus_of(machine), args.dimensions, args.has_source), args.dimensions, "timed"};
}

template <class T>
TileChoice choose_on_cpus(const Machine& machine, const WavefrontArgs& args) {
  const KeptLayouts layouts = cpu_layouts<T>(machine, args);
  const auto slowest = static_cast<std::size_t>(3 - args.dimensions);
  if (const KeptLayout* const kept = layouts.nearest(grid_of(args), args.sweeps))
    if (const WavefrontTile& tile = kept->layout.tile;
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
TileChoice choose_tiles(Runtime& runtime, const Problem& problem, const Settings& settings, Source source) {
  WavefrontArgs args = sweeps_at_once(problem, settings);
  args.has_source = source == Source::given;
  const Machine machine = runtime.machine();
  if (machine.ranks > 1) return {};  // which the solver refuses
  if (machine.count(WorkerKind::cuda) == 0) return choose_on_cpus<T>(machine, args);
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

template <class T>
std::filesystem::path keep_cpu_tiles(const Machine& machine, const WavefrontArgs& args) {
  KeptLayouts layouts = cpu_layouts<T>(machine, args);
  return layouts.keep({grid_of(args), args.sweeps, args.layout}) ? layouts.file() : std::filesystem::path();
}

template TileChoice choose_tiles<float>(Runtime&, const Problem&, const Settings&, Source);
template TileChoice choose_tiles<double>(Runtime&, const Problem&, const Settings&, Source);
template tile_model::Choice search_and_keep(const tile_model::Probe<float>&, const KnownCosts&,
                                            const WavefrontArgs&);
template tile_model::Choice search_and_keep(const tile_model::Probe<double>&, const KnownCosts&,
                                            const WavefrontArgs&);
template std::filesystem::path keep_cpu_tiles<float>(const Machine&, const WavefrontArgs&);
template std::filesystem::path keep_cpu_tiles<double>(const Machine&, const WavefrontArgs&);

}  // namespace asterism::wavefront
