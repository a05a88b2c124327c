#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "../../algorithms/wavefront/tiles/costs.hpp"
#include "../../algorithms/wavefront/tiles/search.hpp"
#include "../cli/commands.hpp"
#include "../wavefront/tile_points.hpp"
#include "figures.hpp"

namespace asterism::tools {
namespace {

struct TileModelBenchOptions {
  CommonOptions common;
  int layouts = 100, repeats = 3;
  bool anew = false, samples = false;
};

struct SizedProblem {
  std::vector<Index> grid;
  Index sweeps;
};

/// As the paper: 1D, 2D and 3D, four sizes each. Large enough to occupy a GPU, small enough to run in
/// milliseconds.
const std::vector<SizedProblem> problems{
    {{16384}, 16384},      {{32768}, 16384},      {{65536}, 32768},      {{131072}, 32768},
    {{1024, 1024}, 128},   {{2048, 2048}, 128},   {{4096, 4096}, 128},   {{4096, 4096}, 256},
    {{128, 128, 128}, 64}, {{192, 192, 192}, 64}, {{256, 256, 256}, 64}, {{320, 320, 320}, 64},
};

wavefront::WavefrontArgs args_of(const SizedProblem& problem) {
  wavefront::WavefrontArgs args;
  args.dimensions = static_cast<int>(problem.grid.size());
  std::copy(problem.grid.begin(), problem.grid.end(), args.nodes.end() - args.dimensions);
  args.along.fill(0.5 / args.dimensions);
  args.sweeps = problem.sweeps;
  return args;
}

/// A layout's time by the model and by the kernel.
struct Sample {
  wavefront::WavefrontLayout layout;
  double predicted, measured;
  [[nodiscard]] double error() const { return std::abs(predicted - measured) / measured; }
};

struct Judged {
  SizedProblem problem;
  std::vector<Sample> samples;
  Sample chosen;
  double search_seconds;
  Index layouts;

  [[nodiscard]] std::vector<double> errors() const {
    std::vector<double> errors;
    for (const Sample& s : samples) errors.push_back(s.error());
    std::sort(errors.begin(), errors.end());
    return errors;
  }
  [[nodiscard]] double median_error() const {
    const auto e = errors();
    return e.empty() ? std::numeric_limits<double>::infinity() : e[e.size() / 2];
  }
  [[nodiscard]] double largest_error() const { return samples.empty() ? median_error() : errors().back(); }
  [[nodiscard]] double best_seconds() const {
    double best = std::numeric_limits<double>::infinity();
    for (const Sample& s : samples) best = std::min(best, s.measured);
    return best;
  }
  /// How much longer the chosen layout takes than the best of the samples; negative: less long.
  [[nodiscard]] double gap() const {
    return samples.empty() ? std::numeric_limits<double>::infinity() : chosen.measured / best_seconds() - 1;
  }
};

template <class T>
Judged judge(const wavefront::tile_model::Probe<T>& probe, const wavefront::tile_model::Costs& costs,
             const SizedProblem& problem, const TileModelBenchOptions& o) {
  wavefront::WavefrontArgs args = args_of(problem);
  const wavefront::tile_model::Space space = wavefront::tile_model::space_of(args);
  Judged judged{.problem = problem, .samples = {}, .chosen = {}, .search_seconds = 0, .layouts = 0};
  wavefront::tile_model::Choice choice;
  judged.search_seconds =
      seconds_of([&] { choice = wavefront::tile_model::search(costs, probe.gpu(), args, space); });
  judged.layouts = choice.layouts;
  auto layouts = wavefront::tile_model::random_layouts(costs, probe.gpu(), args, space,
                                                       static_cast<std::size_t>(o.layouts), o.common.seed);
  layouts.push_back(choice.layout);
  const std::vector<double> seconds = probe.run(args, layouts, o.repeats);
  for (std::size_t k = 0; k < layouts.size(); ++k) {
    args.layout = layouts[k];
    if (std::isfinite(seconds[k]))
      judged.samples.push_back(
          {layouts[k], wavefront::tile_model::predicted_seconds(costs, probe.gpu().multiprocessors, args),
           seconds[k]});
  }
  judged.chosen = {choice.layout, choice.seconds, seconds.back()};
  if (std::isfinite(seconds.back())) judged.samples.pop_back();
  return judged;
}

std::string text_of(const SizedProblem& p) {
  return fmt::format("{} x {}", p.sweeps, fmt::join(p.grid, " x "));
}

std::string text_of(const wavefront::WavefrontLayout& layout, std::size_t dimensions) {
  return fmt::format("{} x {}; {} x {}", layout.tile.sweeps,
                     fmt::join(points_of(layout.tile, dimensions), " x "), layout.blocks, layout.threads);
}

nlohmann::ordered_json as_json(const Sample& s, std::size_t dimensions) {
  return {{"sweeps", s.layout.tile.sweeps},   {"points", points_of(s.layout.tile, dimensions)},
          {"threads", s.layout.threads},      {"blocks", s.layout.blocks},
          {"predicted_seconds", s.predicted}, {"measured_seconds", s.measured}};
}

nlohmann::ordered_json as_json(const Judged& j, bool samples) {
  const std::size_t dimensions = j.problem.grid.size();
  nlohmann::ordered_json result{{"grid", j.problem.grid},
                                {"sweeps", j.problem.sweeps},
                                {"layouts", j.samples.size()},
                                {"median_error", j.median_error()},
                                {"largest_error", j.largest_error()},
                                {"best_seconds", j.best_seconds()},
                                {"chosen", as_json(j.chosen, dimensions)},
                                {"gap", j.gap()},
                                {"search_seconds", j.search_seconds},
                                {"search_layouts", j.layouts}};
  if (samples) {
    auto list = nlohmann::ordered_json::array();
    for (const Sample& s : j.samples) list.push_back(as_json(s, dimensions));
    result["samples"] = list;
  }
  return result;
}

void print_head(const TileModelBenchOptions& o, const std::string& gpu, Precision precision,
                const Figures& figures) {
  figures.print(
      "wavefront SOR in {} on {}, {} random layouts for each problem; tiles: sweeps x points; blocks x threads\n"
      "{:<22} {:>7} {:>7} {:>10} {:>10} {:>7} {:>7}  {}\n",
      to_string(precision), gpu, o.layouts, "sweeps x grid", "median", "largest", "best, ms", "chosen, ms",
      "gap", "search", "chosen layout");
}

void print_row(const Judged& j, const Figures& figures) {
  figures.print("{:<22} {:>5.1f} % {:>5.0f} % {:>10.3f} {:>10.3f} {:>5.1f} % {:>5.2f} s  {}\n",
                text_of(j.problem), 100 * j.median_error(), 100 * j.largest_error(), 1e3 * j.best_seconds(),
                1e3 * j.chosen.measured, 100 * j.gap(), j.search_seconds,
                text_of(j.chosen.layout, j.problem.grid.size()));
}

nlohmann::ordered_json as_json(const wavefront::KnownCosts& known, int dimensions, bool samples) {
  nlohmann::ordered_json j{
      {"dimensions", dimensions}, {"seconds", known.seconds}, {"file", known.file.string()}};
  if (samples) j["costs"] = nlohmann::ordered_json::parse(wavefront::costs_as_json(known.costs));
  return j;
}

void add_worst(const std::vector<Judged>& all, Figures& figures) {
  const auto worst = [&](auto figure) {
    double most = -std::numeric_limits<double>::infinity();
    for (const Judged& j : all) most = std::max(most, figure(j));
    return most;
  };
  figures.add("worst_median_error", "median relative error of the predicted time, worst problem",
              100 * worst([](const Judged& j) { return j.median_error(); }), "%");
  figures.add("worst_gap", "chosen layout over the best sampled, worst problem",
              100 * worst([](const Judged& j) { return j.gap(); }), "%");
  figures.add("longest_search_seconds", "search, longest",
              worst([](const Judged& j) { return j.search_seconds; }), "s");
}

template <class T>
int bench_tile_model(Runtime& runtime, const TileModelBenchOptions& o) {
  if (runtime.ranks() > 1)
    throw Error(fmt::format("bench tile-model: there are {} ranks; it takes one", runtime.ranks()));
  Figures figures(runtime, o.common);
  std::vector<Judged> all;
  nlohmann::ordered_json costs;
  std::optional<wavefront::tile_model::Probe<T>> probe;
  wavefront::KnownCosts known;
  for (const SizedProblem& problem : problems) {
    const int dimensions = static_cast<int>(problem.grid.size());
    if (!probe || probe->dimensions() != dimensions) {
      probe.emplace(runtime, dimensions, false);
      known = wavefront::costs_of(*probe,
                                  o.anew ? wavefront::Remembering::anew : wavefront::Remembering::as_kept);
      costs.push_back(as_json(known, dimensions, o.samples));
      if (dimensions == 1) print_head(o, probe->gpu().name, precision_of<T>, figures);
    }
    all.push_back(judge(*probe, known.costs, problem, o));
    print_row(all.back(), figures);
  }
  figures.note("precision", to_string(precision_of<T>));
  figures.note("gpu", probe->gpu().name);
  figures.note("costs", costs);
  auto list = nlohmann::ordered_json::array();
  for (const Judged& j : all) list.push_back(as_json(j, o.samples));
  figures.note("problems", list);
  add_worst(all, figures);
  figures.finish();
  return 0;
}

}  // namespace

Command add_bench_tile_model(CLI::App& bench) {
  auto options = std::make_shared<TileModelBenchOptions>();
  CLI::App* app = add_subcommand(bench, "tile-model",
                                 "what `tune wavefront` predicts, against runs of random tile layouts");
  OptionGroup method(*app, "Method");
  method.add("--layouts", options->layouts, parse_count<int>, "N",
             "random tile layouts of each of the 12 problems; default: 100");
  method.flag("--anew", options->anew, "measure the GPU's costs again though they are kept");
  OptionGroup(*app, "Output")
      .flag("--samples", options->samples, "with --json: all layouts with their times, and the costs");
  add_problem_options(*app, options->common);
  add_bench_options(*app, options->common, options->repeats,
                    "runs of each layout, of which the median counts; default: 3");
  return {app, [options] {
            return with_runtime_in_precision(options->common, [&]<class T>(Runtime& runtime) {
              return bench_tile_model<T>(runtime, *options);
            });
          }};
}

}  // namespace asterism::tools
