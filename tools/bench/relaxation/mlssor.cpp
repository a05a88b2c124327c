#include "mlssor.hpp"

#include <fmt/format.h>

#include "../../cli/commands.hpp"

namespace asterism::tools {
namespace {

template <class T>
int bench_mlssor(Runtime& runtime, const MlssorBenchOptions& o) {
  require_one_rank(runtime);
  if (o.grid.size() != 2) throw Error("--grid: MLSSOR is for grids of two dimensions, rows x columns");
  Figures figures(runtime, o.common);
  const Machine machine = runtime.machine();
  figures.note("grid", o.grid);
  figures.note("precision", to_string(precision_of<T>));
  figures.note("workers",
               {{"cpu", machine.count(WorkerKind::cpu)}, {"cuda", machine.count(WorkerKind::cuda)}});
  count_sweeps<T>(runtime, o, figures);
  race<T>(runtime, o, figures);
  figures.finish();
  return 0;
}

}  // namespace

Command add_bench_mlssor(CLI::App& bench) {
  auto options = std::make_shared<MlssorBenchOptions>();
  CLI::App* app = add_subcommand(bench, "mlssor",
                                 "multi-layer SSOR beside SSOR and red-black SOR: sweeps, time to an error");
  const auto positive = [](const std::string& text) {
    const double value = parse_real(text);
    if (!(value > 0)) throw Error(fmt::format("'{}': must be positive", text));
    return value;
  };
  OptionGroup(*app, "Problem")
      .add(
          "--grid", options->grid, [](const std::string& text) { return parse_grid(text); }, "MxN",
          "default: 512x512");
  add_problem_options(*app, options->common);
  OptionGroup method(*app, "Method");
  method.add("--omega", options->omega, positive, "W",
             "of the sweeps to 1e-3; default: 1.25; those to 1e-6 have SOR's best one");
  method.add("--error", options->error, positive, "E",
             "relative error that the time is measured to; default: 1e-6, 1e-2 in f32");
  method.add("--sweeps", options->limit, parse_count<>, "N",
             "at most so many relaxations of every node; default: 100000");
  add_bench_options(*app, options->common, options->repeats,
                    "runs with the best omega, of which the fastest "
                    "counts; default: 3");
  return {app, [options] {
            return with_runtime_in_precision(options->common, [&]<class T>(Runtime& runtime) {
              return bench_mlssor<T>(runtime, *options);
            });
          }};
}

}  // namespace asterism::tools
