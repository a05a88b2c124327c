#include "report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "../grid/report.hpp"
#include "../wavefront/tile_points.hpp"

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

int grids_of_sweep(RelaxMethod method) { return method == RelaxMethod::jacobi ? 2 : 3; }

double seconds_per_sweep(const Report& report) {
  return report.iterations > 0 ? report.seconds.at("sweeps") / static_cast<double>(report.iterations) : 0;
}

bool is_on_gpu(const RelaxOutcome& outcome) { return outcome.run.workers.gpus > 0; }

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

void say_tiles(Section& choices, const RelaxOutcome& outcome, std::size_t dimensions) {
  const wavefront::TileChoice& tiles = *outcome.choice.tiles;
  const wavefront::WavefrontLayout& layout = *tiles.layout;
  const std::vector<Index> points = points_of(layout.tile, dimensions);
  nlohmann::ordered_json j{{"sweeps", layout.tile.sweeps}};
  std::string extents;
  if (is_on_gpu(outcome)) {
    j["points"] = points;
    j["threads"] = layout.threads;
    j["blocks"] = layout.blocks;
    extents = fmt::format("{} points, {} blocks of {} threads", fmt::join(points, " x "), layout.blocks,
                          layout.threads);
  } else {
    j["height"] = points.front();
    extents = counted(points.front(), "slice");
  }
  j["origin"] = name(tiles.origin);
  j["file"] = tiles.file.string();
  choices.line("tiles");
  choices.add("tiles", j,
              fmt::format("{} x {}; {}", counted(layout.tile.sweeps, "sweep"), extents, origin_text(tiles)));
}

/// What the method was told, or chose.
Section choices_section(const StatedRelaxation& stated, const RelaxOutcome& outcome) {
  const RelaxChoice& choice = outcome.choice;
  Section choices;
  if (choice.omega) choices.say("omega", *choice.omega, ", omega {:.6g}");
  if (choice.layout) choices.say("layout", name(*choice.layout), ", {} layout");
  if (choice.stripes > 0) choices.add("stripes", choice.stripes, ", " + counted(choice.stripes, "stripe"));
  if (choice.sweeps_per_task > 0)
    choices.add("sweeps_per_task", choice.sweeps_per_task,
                fmt::format(", {} a task", counted(choice.sweeps_per_task, "sweep")));
  if (choice.check_every > 0) choices.add("check_every", choice.check_every);
  if (choice.subdomain > 0) choices.say("subdomain", choice.subdomain, ", subdomains of {}");
  if (choice.layers > 0) choices.add("layers", choice.layers, ", " + counted(choice.layers, "layer"));
  if (choice.tiles) say_tiles(choices, outcome, stated.shape.size());
  if (stated.tolerance > 0) choices.add("tolerance", stated.tolerance);
  return choices;
}

Section speed_section(const RelaxOptions& options, const StatedRelaxation& stated,
                      const RelaxOutcome& outcome) {
  const Report& report = outcome.run.report;
  const double each = seconds_per_sweep(report);
  const double speed =
      each > 0 ? bytes_of_sweep(options.method, stated.unknowns(), stated.precision) / each : 0;
  Section section;
  say_iterations(section, "sweep", report.iterations, each);
  section.say("gbytes_per_second", speed / 1e9, ", {:.1f} GB/s");
  section.remark(fmt::format(" ({} n^2 s bytes a sweep)", grids_of_sweep(options.method)));
  const auto spread = report.seconds.find("spread");
  if (spread != report.seconds.end() && outcome.choice.stripes > 1)
    section.line("balance", fmt::format("the last worker finished {:.3g} s after the first", spread->second));
  return section;
}

Section accuracy_section(const StatedRelaxation& stated, const RelaxOutcome& outcome) {
  const std::vector<double>& residuals = outcome.run.report.residual_history;
  const std::vector<Index>& iterations = outcome.run.report.residual_iterations;
  Section section;
  if (residuals.empty())
    say_residual(section, std::nan(""), std::nullopt);
  else
    say_residual(section, residuals.back(),
                 fmt::format("{:.2e} before the first sweep", shown(residuals.front())));
  std::vector<std::pair<Index, double>> history;
  for (std::size_t i = 0; i < residuals.size(); ++i) history.emplace_back(iterations[i], residuals[i]);
  say_residual_history(section, history);
  if (outcome.error)
    say_error(section, *outcome.error,
              stated.model == RelaxModel::sine ? Exact::differential_equation : Exact::difference_equation);
  return section;
}

Section problem_section(const RelaxOptions& options, const StatedRelaxation& stated) {
  const std::size_t axes = stated.shape.size();
  GridStatement statement{.equation = equation_text(axes),
                          .shape = stated.shape,
                          .lengths = stated.lengths,
                          .conditions = {axes, {"dirichlet", "dirichlet"}},
                          .input = options.grid.input,
                          .model = name(stated.model),
                          .seed = {},
                          .precision = stated.precision,
                          .values = {}};
  if (uses_seed(stated)) statement.seed = options.common.seed;
  if (options.model != RelaxModel::laplace) statement.values = values_along(options.grid, axes);
  return problem_section(statement);
}

}  // namespace

double bytes_of_sweep(RelaxMethod method, Index unknowns, Precision precision) {
  return grids_of_sweep(method) * static_cast<double>(unknowns) * static_cast<double>(bytes_of(precision));
}

SolverReport report_of(const RelaxOptions& options, const StatedRelaxation& stated,
                       const RelaxOutcome& outcome) {
  return {.solver = solver_name(options.method),
          .method = name(options.method),
          .run = outcome.run,
          .problem = problem_section(options, stated),
          .choices = choices_section(stated, outcome),
          .speed = speed_section(options, stated, outcome),
          .accuracy = accuracy_section(stated, outcome),
          .output = options.common.output,
          .unfinished = ", as it is: --initial goes on from it"};
}

}  // namespace asterism::tools
