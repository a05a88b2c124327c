#include <fmt/format.h>

#include <string>
#include <vector>

#include "../../cli/commands.hpp"
#include "../../relaxation/report.hpp"
#include "striped_grid.hpp"

namespace asterism::tools {
namespace {

struct JacobiBenchOptions {
  CommonOptions common;
  std::vector<Index> sizes = {256, 512, 1024, 2048, 4096, 8192, 16384};
  std::vector<Index> sweeps_per_task = {1, 2, 4, 8, 16, 32};
  Index blocked_size = 8352;
  int repeats = 3;
};

template <class T>
struct Implementation {
  const char* name;
  const JacobiCodelet<T>* codelet;
};

/// The Jacobi codelet's, each alone, for sweeps one by one.
template <class T>
std::vector<Implementation<T>> implementations(Where where) {
  namespace k = relaxation;
  static const JacobiCodelet<T> cpu{typed_name<T>("bench_jacobi_cpu"), k::cpu::jacobi<T>};
  if (where == Where::cpu) return {{"cpu", &cpu}};
#ifdef ASTERISM_WITH_CUDA
  static const JacobiCodelet<T> global{typed_name<T>("bench_jacobi_global"), nullptr,
                                       one_by_one<k::cuda::jacobi_global<T>, T, k::JacobiArgs>};
  static const JacobiCodelet<T> shared{typed_name<T>("bench_jacobi_shared"), nullptr,
                                       one_by_one<k::cuda::jacobi_shared<T>, T, k::JacobiArgs>};
  static const JacobiCodelet<T> readonly{typed_name<T>("bench_jacobi_readonly"), nullptr,
                                         one_by_one<k::cuda::jacobi_readonly<T>, T, k::JacobiArgs>};
  static const JacobiCodelet<T> blocked{typed_name<T>("bench_jacobi_blocked"), nullptr,
                                        one_by_one<k::cuda::jacobi_blocked<T>, T, k::JacobiArgs>};
  return {{"global", &global}, {"shared", &shared}, {"readonly", &readonly}, {"blocked", &blocked}};
#else
  return {};
#endif
}

relaxation::JacobiArgs laplace_args(Index sweeps) {
  return {.stripe = {}, .along_y = 0.25, .along_x = 0.25, .sweeps = sweeps, .has_source = false};
}

/// Every kernel on every grid, a sweep at a time.
template <class T>
void measure_kernels(Runtime& runtime, const JacobiBenchOptions& o, const Measured& workers,
                     Figures& figures) {
  auto sweeps = nlohmann::ordered_json::array();
  figures.print("\nJacobi, no right-hand side, {}: sweeps by 2 n^2 s bytes each; best of {}\n",
                to_string(precision_of<T>), o.repeats);
  figures.print("{:>8}  {:<10} {:>14} {:>10} {:>14}\n", "n", "kernel", "seconds/sweep", "GB/s",
                fmt::format("over {}", workers.ceiling_name));
  for (const Index n : o.sizes) {
    const Index each = sweeps_one_by_one(workers, n);
    StripedGrid<T> grid(runtime, workers, n, relaxation::Arrangement::natural, each,
                        relaxation::jacobi_reach(1), false);
    for (const Implementation<T>& kernel : implementations<T>(workers.where)) {
      const double seconds = grid.seconds_per_sweep(*kernel.codelet, laplace_args(each), o.repeats);
      const double speed = bytes_of_sweep(RelaxMethod::jacobi, n * n, precision_of<T>) / seconds;
      figures.print("{:>8}  {:<10} {:>14.4g} {:>10.1f} {:>14.3f}\n", n, kernel.name, seconds, speed / 1e9,
                    speed / workers.ceiling);
      sweeps.push_back({{"n", n},
                        {"implementation", kernel.name},
                        {"seconds_per_sweep", seconds},
                        {"gbytes_per_second", speed / 1e9},
                        {"share", speed / workers.ceiling}});
    }
  }
  figures.note("sizes", sweeps);
}

/// Several sweeps a task on one grid.
template <class T>
void measure_blocking(Runtime& runtime, const JacobiBenchOptions& o, const Measured& workers,
                      Figures& figures) {
  const Index n = o.blocked_size;
  auto blocked = nlohmann::ordered_json::array();
  figures.print("\nTemporal blocking, {0} x {0}\n{1}{2:>16}  {3:>10} {4:>14}\n", n, note_on_stripes(workers),
                "sweeps per task", "Gcell/s", "over 1 sweep");
  double one_sweep = 0;
  for (const Index each : o.sweeps_per_task) {
    // A stripe is at least as high as its halo.
    if (each > n / stripes_for(workers, n, each)) continue;
    StripedGrid<T> grid(runtime, workers, n, relaxation::Arrangement::natural, each, each, false);
    const double seconds =
        grid.seconds_per_sweep(relaxation::codelets::jacobi<T>, laplace_args(each), o.repeats);
    const double speed = static_cast<double>(n) * static_cast<double>(n) / seconds / 1e9;
    if (one_sweep == 0) one_sweep = speed;
    figures.print("{:>16}  {:>10.2f} {:>14.2f}\n", each, speed, speed / one_sweep);
    blocked.push_back({{"n", n}, {"sweeps_per_task", each}, {"gcells_per_second", speed}});
  }
  figures.note("temporal_blocking", blocked);
}

template <class T>
int bench_jacobi(Runtime& runtime, const JacobiBenchOptions& o) {
  Figures figures(runtime, o.common);
  const Measured workers = measure_ceiling(runtime, figures);
  figures.note("precision", to_string(precision_of<T>));
  figures.note("workers", workers.count);
  figures.note("kind", workers.where == Where::cuda ? "cuda" : "cpu");
  measure_kernels<T>(runtime, o, workers, figures);
  measure_blocking<T>(runtime, o, workers, figures);
  figures.finish();
  return 0;
}

}  // namespace

Command add_bench_jacobi(CLI::App& bench) {
  auto options = std::make_shared<JacobiBenchOptions>();
  CLI::App* app = add_subcommand(bench, "jacobi", "the kernels of Jacobi's sweep beside what memory allows");
  OptionGroup(*app, "Problem")
      .add("--sizes", options->sizes, parse_counts, "N,N,...", "grids n x n; default: 256,512 to 16384");
  add_problem_options(*app, options->common);
  OptionGroup method(*app, "Method");
  method.add("--sweeps-per-task", options->sweeps_per_task, parse_counts, "K,K,...",
             "of temporal blocking; default: 1,2,4,8,16,32");
  method.add("--blocked-size", options->blocked_size, parse_count<>, "N",
             "the grid of temporal blocking; default: 8352");
  add_bench_options(*app, options->common, options->repeats, "runs, of which the fastest counts; default: 3");
  return {app, [options] {
            return with_runtime_in_precision(options->common, [&]<class T>(Runtime& runtime) {
              return bench_jacobi<T>(runtime, *options);
            });
          }};
}

}  // namespace asterism::tools
