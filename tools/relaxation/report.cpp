#include "report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "../../algorithms/poisson/problem.hpp"

namespace asterism::tools {
namespace {

const char* solver_name(RelaxMethod method) {
  using enum RelaxMethod;
  switch (method) {
    case jacobi:
      return "Jacobi";
    case gauss_seidel:
      return "Gauss-Seidel, red-black";
    case sor:
      return "successive over-relaxation, red-black";
    case ssor:
      return "symmetric successive over-relaxation, red-black";
    case mlssor:
      return "multi-layer symmetric successive over-relaxation";
    case wavefront:
      return "successive over-relaxation, natural order in wavefronts";
  }
  return "";
}

std::string equation(std::size_t dimensions) {
  return dimensions == 1 ? "u_xx = f" : dimensions == 2 ? "u_xx + u_yy = f" : "u_xx + u_yy + u_zz = f";
}

double sweeping_seconds(const Report& report) { return report.seconds.at("sweeps"); }

double seconds_per_sweep(const Report& report) {
  return report.iterations > 0 ? sweeping_seconds(report) / static_cast<double>(report.iterations) : 0;
}

double gbytes_per_second(const RelaxRun& run) {
  const double seconds = seconds_per_sweep(run.outcome.report);
  return seconds > 0
             ? bytes_of_sweep(run.options.method, run.stated.unknowns(), run.precision) / seconds / 1e9
             : 0;
}

/// The sweeps before which each residual was taken.
Index sweeps_at(const RelaxOutcome& outcome, std::size_t check) {
  return std::min(static_cast<Index>(check) * outcome.choice.check_every, outcome.report.iterations);
}

bool is_on_gpu(const RelaxOutcome& outcome) { return outcome.workers.gpus > 0; }

/// The extents of a tile that are meant.
std::vector<Index> points_of(const wavefront::WavefrontTile& tile, std::size_t dimensions) {
  return {tile.points.end() - static_cast<std::ptrdiff_t>(dimensions), tile.points.end()};
}

/// What u is on the sides, along each axis: numbers, or files. The model laplace says that itself.
nlohmann::ordered_json values_as_json(const RelaxOptions& options, std::size_t axes) {
  const auto one = [](const GivenValue& value) -> nlohmann::ordered_json {
    if (value.file.empty()) return value.number;
    return value.file.string();
  };
  nlohmann::ordered_json values;
  for (std::size_t a = 0; a < axes; ++a) {
    const GivenValues given = options.values[a + 3 - axes].value_or(GivenValues{});
    values[axis_name(axes, a)] = {one(given.lower), one(given.upper)};
  }
  return values;
}

nlohmann::ordered_json tiles_as_json(const RelaxRun& run) {
  const wavefront::TileChoice& tiles = *run.outcome.choice.tiles;
  const wavefront::WavefrontLayout& layout = *tiles.layout;
  const std::vector<Index> points = points_of(layout.tile, run.stated.shape.size());
  nlohmann::ordered_json j{{"sweeps", layout.tile.sweeps}};
  if (is_on_gpu(run.outcome)) {
    j["points"] = points;
    j["threads"] = layout.threads;
    j["blocks"] = layout.blocks;
  } else {
    j["height"] = points.front();
  }
  j["origin"] = name(tiles.origin);
  j["file"] = tiles.file.string();
  return j;
}

std::string origin_text(const wavefront::TileChoice& tiles) {
  const std::string kept =
      tiles.file.empty() ? "not kept (no folder for that)" : "kept in " + tiles.file.string();
  switch (tiles.origin) {
    case wavefront::LayoutOrigin::given:
      return "as given";
    case wavefront::LayoutOrigin::untuned:
      return "untuned" + (tiles.why.empty() ? "" : ": " + tiles.why);
    case wavefront::LayoutOrigin::kept:
      return "tuned before, " + kept;
    case wavefront::LayoutOrigin::searched:
      return "tuned now, " + kept;
    case wavefront::LayoutOrigin::measured:
      return "this GPU measured and tuned now, " + kept;
  }
  return "";
}

void print_tiles(const RelaxRun& run) {
  const wavefront::TileChoice& tiles = *run.outcome.choice.tiles;
  const wavefront::WavefrontLayout& layout = *tiles.layout;
  const std::vector<Index> points = points_of(layout.tile, run.stated.shape.size());
  const std::string extents = is_on_gpu(run.outcome)
                                  ? fmt::format("{} points, {} blocks of {} threads",
                                                fmt::join(points, " x "), layout.blocks, layout.threads)
                                  : fmt::format("{} slice{}", points.front(), plural(points.front()));
  fmt::print("tiles      {} sweep{} x {}; {}\n", layout.tile.sweeps, plural(layout.tile.sweeps), extents,
             origin_text(tiles));
}

}  // namespace

bool has_result(const Report& report) { return report.reason != Reason::not_finite; }

double bytes_of_sweep(RelaxMethod method, Index unknowns, Precision precision) {
  return (method == RelaxMethod::jacobi ? 2.0 : 3.0) * static_cast<double>(unknowns) *
         static_cast<double>(bytes_of(precision));
}

void print_json(const RelaxRun& run) {
  const RelaxOutcome& outcome = run.outcome;
  const RelaxChoice& choice = outcome.choice;
  const Report& report = outcome.report;
  nlohmann::ordered_json j;
  j["solver"] = solver_name(run.options.method);
  j["method"] = name(run.options.method);
  j["dimensions"] = run.stated.shape.size();
  j["grid"] = run.stated.shape;
  j["lengths"] = run.stated.lengths;
  for (std::size_t a = 0; a < run.stated.shape.size(); ++a)
    j["conditions"][axis_name(run.stated.shape.size(), a)] = {"dirichlet", "dirichlet"};
  if (!run.stated.source) j["model"] = name(run.stated.model);
  if (!run.stated.source && run.stated.model == RelaxModel::random) j["seed"] = run.options.common.seed;
  j["precision"] = to_string(run.precision);
  j["unknowns"] = run.stated.unknowns();
  if (run.options.model != RelaxModel::laplace)
    j["values"] = values_as_json(run.options, run.stated.shape.size());
  if (choice.omega) j["omega"] = *choice.omega;
  if (choice.layout) j["layout"] = name(*choice.layout);
  const auto add = [&](const char* key, Index value) {
    if (value > 0) j[key] = value;
  };
  add("stripes", choice.stripes);
  add("sweeps_per_task", choice.sweeps_per_task);
  add("check_every", choice.check_every);
  add("subdomain", choice.subdomain);
  add("layers", choice.layers);
  if (choice.tiles) j["tiles"] = tiles_as_json(run);
  if (run.stated.tolerance > 0) j["tolerance"] = run.stated.tolerance;
  j["seconds"] = as_json(run.stopwatch);
  j["solver_seconds"] = report.seconds;
  j["sweeps"] = report.iterations;
  j["seconds_per_sweep"] = seconds_per_sweep(report);
  j["gbytes_per_second"] = gbytes_per_second(run);
  // NaN and infinity, which JSON has not, become null.
  j["scaled_residual"] = report.residual_history.empty() ? std::nan("") : report.residual_history.back();
  j["residual_history"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < report.residual_history.size(); ++i)
    j["residual_history"].push_back({sweeps_at(outcome, i), report.residual_history[i]});
  if (outcome.error) j["error"] = *outcome.error;
  j["workers"] = as_json(outcome.workers);
  j["bytes"] = as_json(report.traffic);
  if (!run.options.common.output.empty() && has_result(report))
    j["output"] = run.options.common.output.string();
  j["reason"] = to_string(report.reason);
  print_report(j);
}

void print_text(const RelaxRun& run) {
  const RelaxOutcome& outcome = run.outcome;
  const RelaxChoice& choice = outcome.choice;
  const Report& report = outcome.report;
  fmt::print("problem    {}, {}: {} unknowns ({:.4g} million) in {}\n", equation(run.stated.shape.size()),
             run.stated.source ? run.options.input : fmt::format("model {}", name(run.stated.model)),
             poisson::to_string(run.stated.shape), static_cast<double>(run.stated.unknowns()) / 1e6,
             to_string(run.precision));
  std::string how;
  if (choice.omega) how += fmt::format(", omega {:.6g}", *choice.omega);
  if (choice.layout) how += fmt::format(", {} layout", name(*choice.layout));
  if (choice.stripes > 0) how += fmt::format(", {} stripe{}", choice.stripes, plural(choice.stripes));
  if (choice.sweeps_per_task > 0)
    how += fmt::format(", {} sweep{} a task", choice.sweeps_per_task, plural(choice.sweeps_per_task));
  if (choice.subdomain > 0) how += fmt::format(", subdomains of {}", choice.subdomain);
  if (choice.layers > 0) how += fmt::format(", {} layer{}", choice.layers, plural(choice.layers));
  fmt::print("method     {}{}\n", solver_name(run.options.method), how);
  if (choice.tiles) print_tiles(run);
  print_workers_and_seconds(outcome.workers, run.stopwatch);
  fmt::print("sweeps     {}, {:.3g} s each, {:.1f} GB/s ({} n^2 s bytes a sweep)\n", report.iterations,
             seconds_per_sweep(report), gbytes_per_second(run),
             run.options.method == RelaxMethod::jacobi ? 2 : 3);
  if (const auto spread = report.seconds.find("spread"); spread != report.seconds.end() && choice.stripes > 1)
    fmt::print("balance    the last worker finished {:.3g} s after the first\n", spread->second);
  print_moved(report.traffic);
  if (!report.residual_history.empty())
    fmt::print("residual   {:.2e} scaled, {:.2e} before the first sweep\n",
               shown(report.residual_history.back()), shown(report.residual_history.front()));
  if (outcome.error)
    fmt::print("error      {:.2e} relative to the exact solution of the {} equation\n", shown(*outcome.error),
               run.stated.model == RelaxModel::sine ? "differential" : "difference");
  if (const std::string output = run.options.common.output.string(); !output.empty())
    fmt::print("written    {}\n", !has_result(report) ? "nothing, as u is not finite"
                                  : report.reason == Reason::solved
                                      ? output
                                      : output + ", as it is: --initial goes on from it");
  fmt::print("result     {}\n", to_string(report.reason));
}

}  // namespace asterism::tools
