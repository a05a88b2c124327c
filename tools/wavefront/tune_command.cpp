#include <fmt/format.h>
#include <fmt/ranges.h>

#include "../../algorithms/wavefront/solver.hpp"
#include "../cli/commands.hpp"
#include "tune.hpp"

namespace asterism::tools {
namespace {

wavefront::WavefrontArgs args_of(const TuneOptions& o) {
  wavefront::WavefrontArgs args =
      wavefront::sweeps_at_once({.shape = o.grid}, {.omega = {}, .sweeps = o.sweeps, .layout = {}});
  if (args.sweeps < o.sweeps)
    throw Error(
        fmt::format("--sweeps {}: a solver makes at most {} at once; tune for those", o.sweeps, args.sweeps));
  args.has_source = !o.laplace;
  return args;
}

template <class T>
int tune(Runtime& runtime, const TuneOptions& o) {
  if (runtime.ranks() > 1)
    throw Error(fmt::format("tune: there are {} ranks; a machine is tuned by one", runtime.ranks()));
  const wavefront::WavefrontArgs args = args_of(o);
  return runtime.machine().count(WorkerKind::cuda) > 0 ? tune_gpu<T>(runtime, o, args)
                                                       : tune_cpu<T>(runtime, o, args);
}

}  // namespace

std::string problem_text(const TuneOptions& o, Precision precision) {
  return fmt::format("{} unknowns, {} sweeps, {}{}", fmt::join(o.grid, " x "), o.sweeps, to_string(precision),
                     o.laplace ? ", no source" : "");
}

Section start_of_report(const TuneOptions& o, Precision precision, const char* where) {
  Section report;
  report.add("grid", o.grid);
  report.add("sweeps", o.sweeps);
  report.add("precision", to_string(precision));
  report.add("source", !o.laplace);
  report.add("where", where);
  return report;
}

Command add_tune(CLI::App& program) {
  CLI::App* tune_app = add_subcommands(program, "tune", "choose what makes a solver fast on this machine");
  auto options = std::make_shared<TuneOptions>();
  CLI::App* app =
      add_subcommand(*tune_app, "wavefront", "the tile layout of wavefront SOR: sizes, threads, blocks");
  add_footer(
      *app,
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
  OptionGroup problem(*app, "Problem");
  problem.add(
      "--grid", options->grid, [](const std::string& text) { return parse_grid(text, 1); },
      "[PLANESx][ROWSx]COLUMNS",
      "unknowns along the axes, slowest first: 100000, 4095x1023 or 255x511x127; default: 1023x1023");
  problem.add("--sweeps", options->sweeps, parse_count<>, "N",
              "sweeps of the whole run, or between two residuals: tiles may take many of them together; "
              "default: 1000");
  add_precision_option(*app, options->common, "of the arithmetic; default: f64");
  problem.flag("--laplace", options->laplace, "no right-hand side, f = 0: tiles can be larger");
  OptionGroup(*app, "Method")
      .flag("--anew", options->anew, "measure the GPU's costs again though they are kept");
  add_machine_options(*app, options->common);
  return {tune_app, [options] {
            return with_runtime_in_precision(
                options->common, [&]<class T>(Runtime& runtime) { return tune<T>(runtime, *options); });
          }};
}

}  // namespace asterism::tools
