#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "../../algorithms/wavefront/solver.hpp"
#include "../../algorithms/wavefront/tile_choice.hpp"
#include "../bench/figures.hpp"
#include "../cli/commands.hpp"
#include "../cli/solver_run.hpp"

namespace asterism::tools {
namespace {

struct TuneOptions {
  CommonOptions common;
  std::vector<Index> grid = {1023, 1023};
  Index sweeps = 1000;
  bool laplace = false, anew = false;
};

/// "1023", "4095x1023" or "255x511x127".
std::vector<Index> parse_any_grid(const std::string& text) {
  if (text.find_first_not_of("0123456789") != std::string::npos || text.empty()) return parse_grid(text);
  const std::vector<Index> grid{parse_whole<Index>(text, 1)};
  constexpr Index most = Index{1} << 29;  // as the solver
  if (grid[0] > most) throw Error(fmt::format("grid is {}: no extent may be above {}", grid[0], most));
  return grid;
}

wavefront::WavefrontArgs args_of(const TuneOptions& o) {
  wavefront::WavefrontArgs args =
      wavefront::sweeps_at_once({.shape = o.grid}, {.omega = {}, .sweeps = o.sweeps, .layout = {}});
  if (args.sweeps < o.sweeps)
    throw Error(
        fmt::format("--sweeps {}: a solver makes at most {} at once; tune for those", o.sweeps, args.sweeps));
  args.has_source = !o.laplace;
  return args;
}

std::string problem_of(const TuneOptions& o, Precision precision) {
  return fmt::format("{} unknowns, {} sweeps, {}{}", fmt::join(o.grid, " x "), o.sweeps, to_string(precision),
                     o.laplace ? ", no source" : "");
}

/// The extents of a tile that are meant.
std::vector<Index> points_of(const wavefront::WavefrontArgs& args) {
  const auto& points = args.layout.tile.points;
  return {points.end() - args.dimensions, points.end()};
}

nlohmann::ordered_json start_of_report(const TuneOptions& o, Precision precision, const char* where) {
  return {{"grid", o.grid},
          {"sweeps", o.sweeps},
          {"precision", to_string(precision)},
          {"source", !o.laplace},
          {"where", where}};
}

// --- On a GPU -------------------------------------------------------------------------------------------

void print_costs(const wavefront::KnownCosts& known, int multiprocessors) {
  const wavefront::tile_model::Costs& costs = known.costs;
  if (known.seconds > 0)
    fmt::print("costs        measured in {:.1f} s, {}\n", known.seconds,
               known.file.empty() ? "not kept (no folder for that)" : "kept in " + known.file.string());
  else
    fmt::print("costs        from {}; --anew measures them again\n", known.file.string());
  fmt::print("  {:<34} {:>10.3f} us\n", "kernel", costs.kernel * 1e6);
  for (const auto& [threads, seconds] : costs.thread)
    fmt::print("  {:<34} {:>10.4f} us\n", fmt::format("barrier of {} threads", threads), seconds * 1e6);
  for (const auto& [blocks, seconds] : costs.block)
    fmt::print("  {:<34} {:>10.3f} us\n", fmt::format("barrier of {} blocks", blocks), seconds * 1e6);
  fmt::print("  {:<34} {:>10.2f}\n", "a border tile, in full tiles", costs.border);
  fmt::print("  {:<34} {:>10.4f} us\n", "a column of a border tile", costs.turn * 1e6);
  fmt::print("  {:<34} {:>10.4f} us\n", "a column of a tile, by a thread", costs.column * 1e6);
  fmt::print("  {:<34} {:>10.4f} us\n", "32 strands of tiles", costs.strands * 1e6);
  fmt::print("  threads  tiles on each of {} SMs  error of the fit  ns for each\n", multiprocessors);
  for (const wavefront::tile_model::TileCosts& c : costs.tiles) {
    std::string terms;
    for (std::size_t k = 0; k < wavefront::tile_model::terms; ++k)
      if (c.coefficients[k] > 0)
        terms += fmt::format("{}{} {:.3g}", terms.empty() ? "" : ", ",
                             name(static_cast<wavefront::tile_model::Term>(k)), c.coefficients[k] * 1e9);
    fmt::print("  {:>7}  {:>22}  {:>14.1f} %  {}\n", c.threads, c.tiles_beside, 100 * c.error, terms);
  }
}

template <class T>
int tune_gpu(Runtime& runtime, const TuneOptions& o, wavefront::WavefrontArgs args) {
  const double bytes = static_cast<double>(wavefront::wavefront_rows(args)) *
                       static_cast<double>(wavefront::wavefront_cols(args)) * sizeof(T) *
                       (args.has_source ? 2 : 1);
  const auto capacity = static_cast<double>(runtime.machine().capacity(MemoryKind::gpu));
  if (bytes > capacity)
    throw Error(fmt::format("{} unknowns take {}, and the GPU has {}: wavefronts run where all of them are; "
                            "tune a smaller grid, or CPUs (--gpus 0)",
                            fmt::join(o.grid, " x "), human_bytes(bytes), human_bytes(capacity)),
                Blame::machine);
  const wavefront::tile_model::Probe<T> probe(runtime, args.dimensions, args.has_source);
  const wavefront::KnownCosts known =
      wavefront::costs_of(probe, o.anew ? wavefront::Remembering::anew : wavefront::Remembering::as_kept);
  wavefront::tile_model::Choice choice;
  const double search_seconds = seconds_of([&] { choice = wavefront::search_and_keep(probe, known, args); });
  const double measured = probe.run(args, {choice.layout}, 5).at(0);
  args.layout = choice.layout;
  if (runtime.rank() > 0) return 0;

  const int each = choice.layout.blocks / probe.gpu().multiprocessors;
  const double error = choice.seconds / measured - 1;
  if (o.common.json) {
    nlohmann::ordered_json j = start_of_report(o, precision_of<T>, "cuda");
    j["gpu"] = probe.gpu().name;
    j["layout"] = {{"sweeps", choice.layout.tile.sweeps},
                   {"points", points_of(args)},
                   {"threads", choice.layout.threads},
                   {"blocks", choice.layout.blocks},
                   {"blocks_per_sm", each}};
    j["predicted_seconds"] = choice.seconds;
    j["measured_seconds"] = measured;
    j["error"] = error;
    j["search_seconds"] = search_seconds;
    j["layouts"] = choice.layouts;
    j["costs_seconds"] = known.seconds;
    j["costs_file"] = known.file.string();
    j["costs"] = nlohmann::ordered_json::parse(wavefront::costs_as_json(known.costs));
    print_report(j);
    return 0;
  }
  fmt::print("wavefront SOR, {}, on {}\n", problem_of(o, precision_of<T>), probe.gpu().name);
  fmt::print("layout       tiles of {} sweeps x {} points; {} blocks of {} threads, {} on each of {} SMs\n",
             choice.layout.tile.sweeps, fmt::join(points_of(args), " x "), choice.layout.blocks,
             choice.layout.threads, each, probe.gpu().multiprocessors);
  fmt::print("predicted    {:.4g} s\nmeasured     {:.4g} s: {:+.1f} % from there to the prediction\n",
             choice.seconds, measured, 100 * error);
  fmt::print("search       {:.2f} s for {} layouts\n", search_seconds, choice.layouts);
  print_costs(known, probe.gpu().multiprocessors);
  return 0;
}

// --- On CPUs --------------------------------------------------------------------------------------------

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

template <class T>
int tune_cpu(Runtime& runtime, const TuneOptions& o, wavefront::WavefrontArgs args) {
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
        wavefront::WavefrontLayout layout;
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
  fmt::print("wavefront SOR, {}, on {} CPU workers\n", problem_of(o, precision_of<T>), workers);
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

template <class T>
int tune(Runtime& runtime, const TuneOptions& o) {
  const wavefront::WavefrontArgs args = args_of(o);
  return runtime.machine().count(WorkerKind::cuda) > 0 ? tune_gpu<T>(runtime, o, args)
                                                       : tune_cpu<T>(runtime, o, args);
}

int run(const TuneOptions& o) {
  return with_runtime(o.common.runtime, [&](Runtime& runtime) {
    if (runtime.ranks() > 1)
      throw Error(fmt::format("tune: there are {} ranks; a machine is tuned by one", runtime.ranks()));
    return o.common.precision.value_or(Precision::f64) == Precision::f32 ? tune<float>(runtime, o)
                                                                         : tune<double>(runtime, o);
  });
}

}  // namespace

Command add_tune(CLI::App& program) {
  CLI::App* tune_app = program.add_subcommand("tune", "choose what makes a solver fast on this machine");
  tune_app->require_subcommand(1);
  auto options = std::make_shared<TuneOptions>();
  CLI::App* app =
      tune_app->add_subcommand("wavefront", "the tile layout of wavefront SOR: sizes, threads, blocks");
  app->footer(
      "On a GPU the time of every layout is predicted by a model: micro-benchmarks and runs of single\n"
      "tiles give its costs once for a GPU, a precision and a number of dimensions (seconds; kept in\n"
      "$XDG_CACHE_HOME/asterism or ~/.cache/asterism), then the search takes less than ten seconds. The\n"
      "layout found is run once and reported beside its prediction.\n"
      "On CPUs (--gpus 0) the height of blocks along the slowest axis and the sweeps of a tile are chosen\n"
      "by timing a few on a part of the problem.\n"
      "Layouts are kept beside the costs: asterism relax --method wavefront takes them, on CPUs for grids\n"
      "of about that size too; on a GPU it also searches by itself.\n"
      "\n"
      "  asterism tune wavefront --grid 1023x1023 --sweeps 500\n"
      "  asterism tune wavefront --grid 100000 --sweeps 20000 --precision f32 --laplace --json");
  add_parsed_option(
      *app, "--grid", options->grid, parse_any_grid,
      "unknowns along the axes, slowest first: 100000, 4095x1023 or 255x511x127; default: 1023x1023")
      ->type_name("[PLANESx][ROWSx]COLUMNS")
      ->group("Problem");
  add_parsed_option(
      *app, "--sweeps", options->sweeps, [](const std::string& text) { return parse_whole<Index>(text, 1); },
      "sweeps of the whole run, or between two residuals: tiles may take many of them together; default: "
      "1000")
      ->type_name("N")
      ->group("Problem");
  add_choice_option<std::optional<Precision>, Precision>(*app, "--precision", options->common.precision,
                                                         {{"f32", Precision::f32}, {"f64", Precision::f64}},
                                                         "of the arithmetic; default: f64")
      ->group("Problem");
  app->add_flag("--laplace", options->laplace, "no right-hand side, f = 0: tiles can be larger")
      ->group("Problem");
  app->add_flag("--anew", options->anew, "measure the GPU's costs again though they are kept")
      ->group("Method");
  add_machine_options(*app, options->common);
  return {tune_app, [options] { return run(*options); }};
}

}  // namespace asterism::tools
