#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <limits>
#include <numeric>

#include "../../algorithms/wavefront/solver.hpp"
#include "../../algorithms/wavefront/tiles/choice.hpp"
#include "../bench/figures.hpp"
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

/// Of all extents.
double product(const std::vector<Index>& extents) {
  return static_cast<double>(std::accumulate(extents.begin(), extents.end(), Index{1}, std::multiplies<>()));
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

/// What was measured.
struct CpuSearch {
  wavefront::Problem problem;  ///< a part of the one that is meant
  Index sweeps = 0;
  std::vector<CpuTile> tiles = {};
  double seconds = 0;  ///< of the search

  [[nodiscard]] const CpuTile& best() const {
    return *std::min_element(tiles.begin(), tiles.end(),
                             [](const CpuTile& a, const CpuTile& b) { return a.seconds < b.seconds; });
  }
  [[nodiscard]] double updates() const { return product(problem.shape) * static_cast<double>(sweeps); }
};

/// How many times the fastest a tile may have taken to be timed again, round by round: so what else the machine does
/// meanwhile hits all alike.
constexpr std::array rounds{std::numeric_limits<double>::infinity(), 2.0, 1.3, 1.3};

template <class T>
CpuSearch search_cpu_tiles(Runtime& runtime, const TuneOptions& o) {
  CpuSearch search;
  search.problem = shortened(o, search.sweeps);
  search.tiles = cpu_tiles(search.problem.shape[0] + 2, search.sweeps);
  std::vector<T> u(static_cast<std::size_t>(product(search.problem.shape))), f;
  if (!o.laplace) f.assign(u.size(), T{0});
  const auto seconds_with = [&](const CpuTile& tile) {
    wavefront::WavefrontLayout layout;
    layout.tile.sweeps = tile.sweeps;
    layout.tile.points[3 - search.problem.shape.size()] = tile.height;
    wavefront::Solver<T> solver(runtime, search.problem,
                                {.omega = 1.0, .sweeps = search.sweeps, .layout = layout});
    return solver.solve(f.empty() ? nullptr : f.data(), u.data()).seconds.at("sweeps");
  };
  double fastest = std::numeric_limits<double>::infinity();
  search.seconds = seconds_of([&] {
    for (const double hopeless : rounds)
      for (CpuTile& tile : search.tiles) {
        if (tile.seconds > hopeless * fastest) continue;
        tile.seconds = std::min(tile.seconds, seconds_with(tile));
        fastest = std::min(fastest, tile.seconds);
      }
  });
  return search;
}

/// @param file that the tiles are kept in; empty: none
Section report_of(const TuneOptions& o, Precision precision, const CpuSearch& search, int workers,
                  const std::filesystem::path& file) {
  const CpuTile& best = search.best();
  Section report = start_of_report(o, precision, "cpu");
  report.add("workers", workers);
  report.line("layout");
  report.add("layout", {{"sweeps", best.sweeps}, {"height", best.height}},
             fmt::format("tiles of {} sweeps x {} slices along the slowest axis", best.sweeps, best.height));
  report.line("predicted");
  report.say("predicted_seconds",
             best.seconds / search.updates() * product(o.grid) * static_cast<double>(o.sweeps),
             "{:.4g} s, from the time for each point");
  report.line("measured");
  report.add("measured_grid", search.problem.shape);
  report.add("measured_sweeps", search.sweeps);
  report.say("measured_seconds", best.seconds, "{:.4g} s on a part of the problem");
  report.remark(
      fmt::format(", {} unknowns, {} sweeps", fmt::join(search.problem.shape, " x "), search.sweeps));
  report.line("kept", file.empty() ? "no: no folder for that"
                                   : fmt::format("in {}: `asterism relax --method wavefront` takes it",
                                                 file.string()));
  report.line("search");
  report.say("search_seconds", search.seconds, "{:.2f} s for these tiles");
  report.remark(fmt::format(", the fastest timed {} times", rounds.size()));
  auto measured = nlohmann::ordered_json::array();
  for (const CpuTile& tile : search.tiles)
    measured.push_back({{"sweeps", tile.sweeps}, {"height", tile.height}, {"seconds", tile.seconds}});
  report.add("tiles", measured);
  return report;
}

void print_tiles(const CpuSearch& search) {
  fmt::print("  {:>8} {:>8} {:>12} {:>14}\n", "sweeps", "slices", "seconds", "Gpoint/s");
  for (const CpuTile& tile : search.tiles)
    fmt::print("  {:>8} {:>8} {:>12.4g} {:>14.3f}\n", tile.sweeps, tile.height, tile.seconds,
               search.updates() / tile.seconds / 1e9);
}

}  // namespace

template <class T>
int tune_cpu(Runtime& runtime, const TuneOptions& o, wavefront::WavefrontArgs args) {
  const CpuSearch search = search_cpu_tiles<T>(runtime, o);
  const CpuTile& best = search.best();
  args.layout.tile.sweeps = best.sweeps;
  args.layout.tile.points[3 - o.grid.size()] = best.height;
  const std::filesystem::path file = wavefront::keep_cpu_tiles<T>(runtime.machine(), args);
  const int workers = runtime.machine().count(WorkerKind::cpu);
  const Section report = report_of(o, precision_of<T>, search, workers, file);
  if (o.common.json) {
    print_report(report.json());
    return 0;
  }
  fmt::print("wavefront SOR, {}, on {} CPU workers\n{}", problem_text(o, precision_of<T>), workers,
             report.text(tune_label_width));
  print_tiles(search);
  return 0;
}

template int tune_cpu<float>(Runtime&, const TuneOptions&, wavefront::WavefrontArgs);
template int tune_cpu<double>(Runtime&, const TuneOptions&, wavefront::WavefrontArgs);

}  // namespace asterism::tools
