#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "../../algorithms/wavefront/solver.hpp"
#include "../../algorithms/wavefront/tile_choice.hpp"
#include "../bench/figures.hpp"
#include "../cli/report.hpp"
#include "tune.hpp"

namespace asterism::tools {
namespace {

/// A part of the problem that runs in a fraction of a second: fewer sweeps, and fewer slices along the
/// slowest axis.
wavefront::Problem shortened(const TuneOptions& o, Index& sweeps) {
  constexpr Index most_updates = 20'000'000, most_sweeps = 64, few_sweeps = 8, few_slices = 16;
  wavefront::Problem problem{.shape = o.grid};
  sweeps = std::min(o.sweeps, most_sweeps);
  // A slice costs as much as so many points more.
  constexpr Index slice_cost = 32;
  const Index points = std::accumulate(o.grid.begin() + 1, o.grid.end(), Index{1}, std::multiplies<>());
  const Index slice = o.grid.size() > 1 ? points + slice_cost : points;
  Index least_slices = 256;
  while (sweeps > few_sweeps && sweeps * slice * least_slices > most_updates) sweeps /= 2;
  while (least_slices > few_slices && sweeps * slice * least_slices > most_updates) least_slices /= 2;
  problem.shape[0] = std::min(o.grid[0], std::max(least_slices, most_updates / (sweeps * slice)));
  return problem;
}

struct CpuTile {
  Index sweeps, height;
  double seconds = std::numeric_limits<double>::infinity();
};

/// Heights in steps of 2, the largest first; as many sweeps as that, or a quarter. Not so small that there
/// would be more than a thousand tiles, whose own cost would be all that is measured.
std::vector<CpuTile> cpu_tiles(Index slices, Index sweeps) {
  constexpr Index most_tiles = 1000;
  Index highest = 1;
  while (highest < slices) highest *= 2;
  std::vector<CpuTile> tiles;
  for (Index power = highest; power >= 1; power /= 2)
    for (const Index part : {1, 4}) {
      const Index height = std::min(power, slices),
                  together = std::max(Index{1}, std::min(height / part, sweeps));
      if ((slices / height) * (sweeps / together) > most_tiles) continue;
      const bool known = std::any_of(tiles.begin(), tiles.end(), [&](const CpuTile& t) {
        return t.sweeps == together && t.height == height;
      });
      if (!known) tiles.push_back({together, height});
    }
  return tiles;
}

}  // namespace

template <class T>
int tune_cpu(Runtime& runtime, const TuneOptions& o, kernels::WavefrontArgs args) {
  Index sweeps = 0;
  const wavefront::Problem problem = shortened(o, sweeps);
  const auto unknowns = static_cast<double>(
      std::accumulate(problem.shape.begin(), problem.shape.end(), Index{1}, std::multiplies<>()));
  const double all_unknowns =
      static_cast<double>(std::accumulate(o.grid.begin(), o.grid.end(), Index{1}, std::multiplies<>()));
  std::vector<T> u(static_cast<std::size_t>(unknowns)), f;
  if (!o.laplace) f.assign(u.size(), T{0});

  // Round by round, so that what else the machine does meanwhile hits all alike; tiles that take longer than
  // so many times the fastest are not timed again.
  constexpr double any = std::numeric_limits<double>::infinity();
  constexpr std::array rounds{any, 2.0, 1.3, 1.3};
  double fastest = any;
  std::vector<CpuTile> tiles = cpu_tiles(problem.shape[0] + 2, sweeps);
  const double search_seconds = seconds_of([&] {
    for (const double hopeless : rounds)
      for (CpuTile& tile : tiles) {
        if (tile.seconds > hopeless * fastest) continue;
        kernels::WavefrontLayout layout;
        layout.tile.sweeps = tile.sweeps;
        layout.tile.points[3 - problem.shape.size()] = tile.height;
        wavefront::Solver<T> solver(runtime, problem, {.omega = 1.0, .sweeps = sweeps, .layout = layout});
        tile.seconds = std::min(tile.seconds,
                                solver.solve(f.empty() ? nullptr : f.data(), u.data()).seconds.at("sweeps"));
        fastest = std::min(fastest, tile.seconds);
      }
  });
  const CpuTile best = *std::min_element(
      tiles.begin(), tiles.end(), [](const CpuTile& a, const CpuTile& b) { return a.seconds < b.seconds; });
  args.layout.tile.sweeps = best.sweeps;
  args.layout.tile.points[3 - o.grid.size()] = best.height;
  const std::filesystem::path file = wavefront::keep_cpu_tiles<T>(runtime.machine(), args);
  const double updates = unknowns * static_cast<double>(sweeps);
  const double predicted = best.seconds / updates * all_unknowns * static_cast<double>(o.sweeps);
  const int workers = runtime.machine().count(WorkerKind::cpu);
  if (o.common.json) {
    nlohmann::ordered_json j = start_of_report(o, precision_of<T>, "cpu");
    j["workers"] = workers;
    j["layout"] = {{"sweeps", best.sweeps}, {"height", best.height}};
    j["predicted_seconds"] = predicted;
    j["measured_grid"] = problem.shape;
    j["measured_sweeps"] = sweeps;
    j["measured_seconds"] = best.seconds;
    j["search_seconds"] = search_seconds;
    auto measured = nlohmann::ordered_json::array();
    for (const CpuTile& tile : tiles)
      measured.push_back({{"sweeps", tile.sweeps}, {"height", tile.height}, {"seconds", tile.seconds}});
    j["tiles"] = measured;
    print_report(j);
    return 0;
  }
  fmt::print("wavefront SOR, {}, on {} CPU workers\n", problem_text(o, precision_of<T>), workers);
  fmt::print("layout       tiles of {} sweeps x {} slices along the slowest axis\n", best.sweeps,
             best.height);
  fmt::print("predicted    {:.4g} s, from the time for each point\n", predicted);
  fmt::print("measured     {:.4g} s on a part of the problem, {} unknowns, {} sweeps\n", best.seconds,
             fmt::join(problem.shape, " x "), sweeps);
  fmt::print("kept         {}\n",
             file.empty()
                 ? "no: no folder for that"
                 : fmt::format("in {}: `asterism relax --method wavefront` takes it", file.string()));
  fmt::print("search       {:.2f} s for these tiles, the fastest timed {} times\n", search_seconds,
             rounds.size());
  fmt::print("  {:>8} {:>8} {:>12} {:>14}\n", "sweeps", "slices", "seconds", "Gpoint/s");
  for (const CpuTile& tile : tiles)
    fmt::print("  {:>8} {:>8} {:>12.4g} {:>14.3f}\n", tile.sweeps, tile.height, tile.seconds,
               updates / tile.seconds / 1e9);
  return 0;
}

template int tune_cpu<float>(Runtime&, const TuneOptions&, kernels::WavefrontArgs);
template int tune_cpu<double>(Runtime&, const TuneOptions&, kernels::WavefrontArgs);

}  // namespace asterism::tools
