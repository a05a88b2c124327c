#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "../../../algorithms/relaxation/solver.hpp"
#include "../../../runtime/hardware/pinned_buffer.hpp"
#include "../../cli/commands.hpp"
#include "../../relaxation/report.hpp"
#include "striped_grid.hpp"

namespace asterism::tools {
namespace {

struct RedBlackBenchOptions {
  CommonOptions common;
  std::vector<Index> sizes = {2048, 16384};
  std::optional<Index> sweeps_per_task;
  int repeats = 3;
};

double cells_of(Index n) { return static_cast<double>(n) * static_cast<double>(n); }

/// SOR's on GPUs.
template <class T>
const ColourCodelet<T>& sor_one_by_one() {
#ifdef ASTERISM_WITH_CUDA
  static const ColourCodelet<T> sor{
      typed_name<T>("bench_sor"), nullptr,
      one_by_one<relaxation::cuda::relax_colours<T>, T, relaxation::ColourArgs>};
  return sor;
#else
  return relaxation::codelets::relax_colours<T>;
#endif
}

/// What SOR reaches on one grid in one layout, in cells per second.
struct SorSpeed {
  Index n;
  Precision precision;
  relaxation::Arrangement layout;
  double kernel;       ///< a sweep each kernel, many kernels a task
  double one_sweep;    ///< a sweep each task
  double many_sweeps;  ///< many sweeps each task
  double solver;       ///< relaxation::Solver, which chooses for itself, among all workers

  [[nodiscard]] double gbytes(double speed) const {
    return speed * bytes_of_sweep(RelaxMethod::sor, 1, precision) / 1e9;
  }
};

template <class T>
double solver_speed(Runtime& runtime, Index n, relaxation::Arrangement layout, double guess) {
  relaxation::Settings settings{.omega = 1.9, .arrangement = layout};
  settings.sweeps = static_cast<Index>(std::clamp(0.5 * guess / cells_of(n), 10.0, 2000.0));
  relaxation::Solver<T> solver(runtime, {.shape = {n, n}}, settings);
  const PinnedBuffer f(runtime, static_cast<std::size_t>(n * n) * sizeof(T)),
      u(runtime, static_cast<std::size_t>(n * n) * sizeof(T));
  std::fill_n(f.as<T>(), n * n, T{1});
  const Report report = solver.solve(f.as<T>(), u.as<T>());
  return cells_of(n) * static_cast<double>(report.iterations) / report.seconds.at("sweeps");
}

template <class T>
SorSpeed sor_speed(Runtime& runtime, const Measured& workers, Index n, relaxation::Arrangement layout,
                   Index many, int repeats) {
  const auto speed_of = [&](const ColourCodelet<T>& codelet, Index sweeps, Index sweeps_of_kernel) {
    StripedGrid<T> grid(runtime, workers, n, layout, sweeps,
                        relaxation::reach(relaxation::Sweep::red_black, sweeps_of_kernel), true);
    const relaxation::ColourArgs args{.stripe = {},
                                      .along_y = 0.25,
                                      .along_x = 0.25,
                                      .omega = 1.9,
                                      .sweeps = sweeps,
                                      .sweep = relaxation::Sweep::red_black,
                                      .has_source = true};
    return cells_of(n) / grid.seconds_per_sweep(codelet, args, repeats);
  };
  const auto tasks_of = [&](Index sweeps) {
    return speed_of(relaxation::codelets::relax_colours<T>, sweeps, sweeps);
  };
  const double one_sweep = tasks_of(1);
  return {.n = n,
          .precision = precision_of<T>,
          .layout = layout,
          .kernel = workers.where == Where::cpu
                        ? one_sweep
                        : speed_of(sor_one_by_one<T>(), sweeps_one_by_one(workers, n), 1),
          .one_sweep = one_sweep,
          .many_sweeps = tasks_of(many),
          .solver = solver_speed<T>(runtime, n, layout, one_sweep)};
}

void print_head(Runtime& runtime, const RedBlackBenchOptions& o, const Measured& workers, Index many,
                const Figures& figures) {
  figures.print("\nRed-black SOR: GB/s by 3 n^2 s bytes a sweep, and that over the {}; best of {}\n",
                workers.ceiling_name, o.repeats);
  if (workers.where == Where::cuda)
    figures.print("  (1 sweep a kernel: many kernels a task; StarPU's work between tasks does not count)\n");
  figures.print("{}", note_on_stripes(workers));
  if (const int gpus = runtime.machine().count(WorkerKind::cuda); gpus > 1)
    figures.print("  (the solver may use all {} GPUs; its share, too, is that of the copy of one)\n", gpus);
  figures.print("{:>8}  {:<5} {:<10} {:>18} {:>18} {:>18} {:>18}\n", "n", "", "layout", "1 sweep a kernel",
                "1 sweep a task", fmt::format("{} sweeps a task", many), "solver");
}

void print_row(const SorSpeed& s, const Measured& workers, const Figures& figures) {
  const auto column = [&](double speed) {
    return fmt::format("{:.1f}  {:.3f}", s.gbytes(speed), 1e9 * s.gbytes(speed) / workers.ceiling);
  };
  figures.print("{:>8}  {:<5} {:<10} {:>18} {:>18} {:>18} {:>18}\n", s.n, to_string(s.precision),
                name(s.layout), column(s.kernel), column(s.one_sweep), column(s.many_sweeps),
                column(s.solver));
}

nlohmann::ordered_json as_json(const SorSpeed& s, const Measured& workers) {
  const auto figure = [&](double speed) {
    return nlohmann::ordered_json{{"gcells_per_second", speed / 1e9},
                                  {"gbytes_per_second", s.gbytes(speed)},
                                  {"share", 1e9 * s.gbytes(speed) / workers.ceiling}};
  };
  return {{"n", s.n},
          {"precision", to_string(s.precision)},
          {"layout", name(s.layout)},
          {"kernel", figure(s.kernel)},
          {"one_sweep", figure(s.one_sweep)},
          {"many_sweeps", figure(s.many_sweeps)},
          {"solver", figure(s.solver)}};
}

/// What small grids lose to the cost of tasks.
void add_losses(const std::vector<SorSpeed>& all, const RedBlackBenchOptions& o, Index many,
                Figures& figures) {
  figures.print("\n");
  const auto [least, most] = std::minmax_element(o.sizes.begin(), o.sizes.end());
  for (const SorSpeed& small : all)
    for (const SorSpeed& large : all) {
      if (small.n != *least || large.n != *most || *least == *most || small.precision != large.precision ||
          small.layout != large.layout)
        continue;
      const auto add = [&](const char* key, const std::string& what, double ratio) {
        figures.add(
            fmt::format("small_over_large_{}_{}{}", to_string(small.precision), name(small.layout), key),
            fmt::format("speed per cell, {} over {}, {}, {}, {}", *least, *most, to_string(small.precision),
                        name(small.layout), what),
            ratio, "");
      };
      add("", fmt::format("{} sweeps a task", many), small.many_sweeps / large.many_sweeps);
      add("_solver", "solver", small.solver / large.solver);
    }
}

int bench_relax(Runtime& runtime, const RedBlackBenchOptions& o) {
  Figures figures(runtime, o.common);
  const Measured workers = measure_ceiling(runtime, figures);
  const Index many = o.sweeps_per_task.value_or(workers.where == Where::cuda ? 64 : 4);
  print_head(runtime, o, workers, many, figures);
  std::vector<SorSpeed> all;
  auto measured = nlohmann::ordered_json::array();
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    if (precision != o.common.precision.value_or(precision)) continue;
    for (const Index n : o.sizes)
      for (const relaxation::Arrangement layout :
           {relaxation::Arrangement::natural, relaxation::Arrangement::separated}) {
        all.push_back(in_precision(precision, [&]<class T>() {
          return sor_speed<T>(runtime, workers, n, layout, many, o.repeats);
        }));
        print_row(all.back(), workers, figures);
        measured.push_back(as_json(all.back(), workers));
      }
  }
  figures.note("kind", workers.where == Where::cuda ? "cuda" : "cpu");
  figures.note("sweeps_per_task", many);
  figures.note("measured", measured);
  add_losses(all, o, many, figures);
  figures.finish();
  return 0;
}

}  // namespace

Command add_bench_relax(CLI::App& bench) {
  auto options = std::make_shared<RedBlackBenchOptions>();
  CLI::App* app = add_subcommand(bench, "relax", "red-black SOR in both layouts beside what memory allows");
  OptionGroup(*app, "Problem")
      .add("--sizes", options->sizes, parse_counts, "N,N,...", "grids n x n; default: 2048,16384");
  add_problem_options(*app, options->common);
  OptionGroup(*app, "Method")
      .add("--sweeps-per-task", options->sweeps_per_task, parse_count<>, "K",
           "of tasks of many sweeps; default: 64 on a GPU, 4 on cores");
  add_bench_options(*app, options->common, options->repeats, "runs, of which the fastest counts; default: 3");
  return {app, [options] {
            return with_runtime(options->common.runtime,
                                [&](Runtime& runtime) { return bench_relax(runtime, *options); });
          }};
}

}  // namespace asterism::tools
