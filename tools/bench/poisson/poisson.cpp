#include <fmt/format.h>

#include "../../../algorithms/poisson/gemm_solver.hpp"
#include "../../../algorithms/poisson/solver.hpp"
#include "../../cli/commands.hpp"
#include "../../poisson/report.hpp"
#include "fastest_solve.hpp"
#include "lengths_table.hpp"

namespace asterism::tools {
namespace {

struct PoissonBenchOptions {
  CommonOptions common;
  PoissonProblemOptions problem;
  PoissonMethodOptions method;
  bool resident = false, lengths_table = false;
  int repeats = 0;
};

/// Bytes that crossed links, in grids.
void add_traffic(Figures& figures, const Traffic& traffic, double grid_bytes) {
  const auto add = [&](const char* key, const char* what, std::int64_t bytes) {
    figures.add(key, what, static_cast<double>(bytes) / grid_bytes, "");
  };
  if (traffic.to_device + traffic.from_device > 0) {
    add("bytes_to_device", "moved to GPUs, in grids", traffic.to_device);
    add("bytes_from_device", "moved back, in grids", traffic.from_device);
  }
  if (traffic.to_disk + traffic.from_disk > 0) {
    add("bytes_to_disk", "moved to disk, in grids", traffic.to_disk);
    add("bytes_from_disk", "moved back from disk, in grids", traffic.from_disk);
  }
  if (traffic.between_ranks > 0)
    add("bytes_between_ranks", "moved between ranks, in grids", traffic.between_ranks);
}

/// What a solve that streams through GPUs could do at best.
/// @param bytes of the grid, those of this rank
void add_link_bounds(Figures& figures, const Bandwidth& raw, double bytes, const Fastest& fastest) {
  const double solve = fastest.seconds;
  const double bound = 2 * bytes / raw.to_device;
  figures.add(
      "bound_seconds",
      raw.gpus > 1 ? "bound 2 N / link (to the first GPU alone)" : "bound 2 N / link (to the GPU alone)",
      bound, "s");
  figures.add("times_bound", "solve time over that bound", solve / bound, "");
  if (fastest.pipeline == 0) return;
  figures.add("pipeline_seconds", "raw CUDA pipeline, the same memory: N up, then N up and down at once",
              fastest.pipeline, "s");
  figures.add("pipeline_share", "that pipeline's time over the solve's", fastest.pipeline / solve, "");
}

/// Beside what link or memory allow.
void add_figures(Figures& figures, const PoissonBenchOptions& o, const poisson::Problem& problem,
                 Precision precision, const Fastest& fastest, const Bandwidth& raw, int ranks) {
  const double cells = static_cast<double>(count_unknowns(problem));
  const double grid_bytes = cells * static_cast<double>(bytes_of(precision));
  figures.add("allocate_seconds", "allocation of the grid in main memory", fastest.allocate, "s");
  figures.add("solve_seconds",
              fmt::format("solve {}{}, {}, {}, {}, {} slabs, best of {}",
                          problem.batch > 1 ? fmt::format("{} problems of ", problem.batch) : "",
                          poisson::to_string(problem.shape), to_string(precision), name(o.method.method),
                          name(fastest.layout.mode), fastest.slabs, fastest.repeats),
              fastest.seconds, "s");
  figures.add("gcells_per_second", "speed", cells / fastest.seconds / 1e9, "Gcell/s");
  add_traffic(figures, fastest.traffic, grid_bytes);
  const bool on_gpu = fastest.layout.where == Where::cuda;
  if (on_gpu && !o.resident)
    add_link_bounds(figures, raw, grid_bytes / ranks, fastest);
  else
    figures.add("bytes_per_cell", "bytes per cell that plain copying moves in that time",
                (on_gpu ? raw.device_copy : raw.host_copy) * fastest.seconds / cells, "");
  figures.add("scaled_residual_eps", "scaled residual", fastest.scaled_residual / roundoff(precision), "eps");
}

template <class T>
int bench_poisson(Runtime& runtime, const PoissonBenchOptions& o, const StatedPoisson& stated) {
  require_room<T>(runtime, stated.problem);
  const Bandwidth raw = measure_ceilings(runtime);
  const Repetition repetition{o.method.settings, o.resident, o.repeats, o.common.seed};
  const Fastest fastest = o.method.method == PoissonMethod::gemm
                              ? fastest_solve<poisson::GemmSolver, T>(runtime, repetition, stated)
                              : fastest_solve<poisson::Solver, T>(runtime, repetition, stated);
  Figures figures(runtime, o.common);
  figures.note(problem_section(o.problem, stated, precision_of<T>, o.common.seed).json());
  figures.note("method", name(o.method.method));
  figures.note("mode", name(fastest.layout.mode));
  figures.note("slabs", fastest.slabs);
  figures.note("slab_planes", fastest.layout.slab_planes);
  add_ceilings(figures, raw);
  add_figures(figures, o, stated.problem, precision_of<T>, fastest, raw, runtime.ranks());
  figures.finish();
  return 0;
}

int bench_lengths(const PoissonBenchOptions& o) {
  if (o.problem.grid.grid) throw Error("--lengths-table has grids of its own: leave out --grid");
  if (o.method.method == PoissonMethod::gemm)
    throw Error("--lengths-table is about the lengths of FFTs: leave out --method gemm");
  return with_runtime(o.common.runtime, [&](Runtime& runtime) {
    Figures figures(runtime, o.common);
    add_ceilings(figures, measure_ceilings(runtime));
    print_lengths_table(runtime, o.problem, {o.method.settings, true, o.repeats, o.common.seed},
                        o.common.precision, figures);
    figures.finish();
    return 0;
  });
}

int run(const CLI::App& app, PoissonBenchOptions& o) {
  if (o.lengths_table) return bench_lengths(o);
  const StatedPoisson stated = state_poisson(o.problem);
  warn_of_unused(app, o.problem, stated);
  fit_machine_to_problem(o.common.runtime, o.method.method, stated);
  return with_runtime_in_precision(
      o.common, [&]<class T>(Runtime& runtime) { return bench_poisson<T>(runtime, o, stated); });
}

}  // namespace

Command add_bench_poisson(CLI::App& bench) {
  auto options = std::make_shared<PoissonBenchOptions>();
  options->problem.model = grid::Model::random;
  CLI::App* app = add_subcommand(bench, "poisson", "a fast Poisson solver beside what link or memory allow");
  add_poisson_problem(*app, options->problem);
  add_problem_options(*app, options->common);
  add_poisson_method(*app, options->method);
  OptionGroup method(*app, "Method");
  method.flag("--resident", options->resident,
              "f and u stay in the workers' memory: time per solve without transfers");
  method.flag(
      "--lengths-table", options->lengths_table,
      "instead of one grid: a table of grids with FFTs of good and poor lengths, in two and three "
      "dimensions, resident, in both precisions; on cores alone only those of at most 5000 x 5000 cells");
  add_bench_options(*app, options->common, options->repeats,
                    fmt::format("solves, of which the fastest counts; default: as many as take {} s, {} to {}",
                                enough_seconds, fewest_repeats, most_repeats));
  return {app, [app, options] { return run(*app, *options); }};
}

}  // namespace asterism::tools
