#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <limits>
#include <string>

#include "../../algorithms/relaxation/solver.hpp"
#include "../../codelets/grid/laplacian.hpp"
#include "../../codelets/relaxation/sweeps.hpp"
#include "../../runtime/pinned_buffer.hpp"
#include "../cli/commands.hpp"
#include "../relaxation/options.hpp"
#include "../relaxation/report.hpp"
#include "figures.hpp"

namespace asterism::tools {
namespace {

using relaxation::Arrangement;
using relaxation::Stripe;

struct RelaxBenchOptions {
  CommonOptions common;
  std::vector<Index> sizes;
  std::vector<Index> sweeps_per_task;
  Index blocked_size = 8352;
  int repeats = 3;
};

std::vector<Index> parse_counts(const std::string& text) {
  std::vector<Index> counts;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    counts.push_back(parse_whole<Index>(text.substr(start, end - start), 1));
    start = end + 1;
  }
  return counts;
}

/// The workers that are measured, and what their memory does at best: the first GPU, or where there is none
/// all cores.
struct Measured {
  Where where;
  Index count;
  double ceiling;  ///< bytes per second
  const char* ceiling_name;
};

Measured measure_ceiling(Runtime& runtime, Figures& figures) {
  if (runtime.ranks() > 1) throw Error("this benchmark runs on one rank; start it without mpirun");
  const Bandwidth raw = measure_ceilings(runtime);
  add_ceilings(figures, raw);
  const Machine machine = runtime.machine();
  if (machine.count(WorkerKind::cuda) > 0) return {Where::cuda, 1, raw.device_copy, "copy"};
  return {Where::cpu, machine.count(WorkerKind::cpu), raw.host_triad, "triad"};
}

/// A GPU has stripes where tasks make one sweep over at least so many nodes: the kernel of a stripe then
/// takes about as long as StarPU from the end of a task to the start of the next one (40 to 60 us), or
/// longer.
constexpr Index nodes_worth_stripes = Index{1} << 26;
/// The first stripe's next sweep waits for the first two stripes and is ready while the kernel of the third
/// runs, the third's for the last two; so that the GPU never waits for StarPU. Of two stripes each would wait
/// for both.
constexpr Index stripes_of_gpu = 3;

/// Stripes for tasks of so many sweeps: one for each core; see above on a GPU, one where tasks are long or
/// short.
Index stripes_for(const Measured& workers, Index n, Index sweeps) {
  if (workers.where == Where::cpu) return workers.count;
  return sweeps == 1 && n * n >= nodes_worth_stripes ? stripes_of_gpu : 1;
}

/// What tables say of that.
std::string note_on_stripes(const Measured& workers) {
  if (workers.where == Where::cpu) return "";
  return fmt::format(
      "  (tasks of one sweep on grids of {0} x {0} and more: {1} stripes on the GPU, so that StarPU's "
      "work between tasks is done while one of them is relaxed)\n",
      std::sqrt(nodes_worth_stripes), stripes_of_gpu);
}

template <class T, class Args>
using SweepCodelet = Codelet<Args, InOut<T>, InOut<T>, In<T>, In<T>, In<T>, Out<T>, Out<T>>;
template <class T>
using JacobiCodelet = SweepCodelet<T, relaxation::JacobiArgs>;
template <class T>
using ColourCodelet = SweepCodelet<T, relaxation::ColourArgs>;

/// A square grid of any numbers in stripes, one for each core or all on the first GPU; a task relaxes a
/// stripe as a whole.
template <class T>
class StripedGrid {
 public:
  /// @param halo what so many sweeps of a task consume
  StripedGrid(Runtime& runtime, const Measured& workers, Index n, Arrangement arrangement, Index sweeps,
              Index halo, bool has_source)
      : runtime_(&runtime), where_(workers.where), has_source_(has_source) {
    const Index count = std::clamp<Index>(n / std::max<Index>(1, halo), 1, stripes_for(workers, n, sweeps));
    for (Index s = 0; s < count; ++s) {
      const Index first = n * s / count;
      stripes_.emplace_back().stripe = {.rows = n * (s + 1) / count - first,
                                        .nodes = n,
                                        .halo = halo,
                                        .first_row = first,
                                        .first = s == 0,
                                        .last = s == count - 1,
                                        .arrangement = arrangement};
      make_tiles(s);
    }
    runtime.wait();
  }

  /// Seconds of a sweep: the best of several runs of tasks of `args.sweeps` sweeps.
  /// @param args all but its stripe
  template <class Codelet, class Args>
  double seconds_per_sweep(const Codelet& codelet, Args args, int repeats) {
    const auto run = [&](Index steps) {
      return seconds_of([&] {
        for (Index step = 0; step < steps; ++step) submit(codelet, args);
        runtime_->wait();
      });
    };
    constexpr double enough = 0.2;  // seconds: the clock and the start of the tasks do not count then
    run(1);                         // allocates, compiles, wakes the clocks
    const auto steps = static_cast<Index>(std::clamp(enough / run(2) * 2, 1.0, 2000.0));
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < repeats; ++i) best = std::min(best, run(steps));
    return best / static_cast<double>(steps * args.sweeps);
  }

 private:
  struct Piece {
    Stripe stripe;
    Tile<T> u, other, g;
    Tile<T> top[2], bottom[2];
    Tile<T> frame;  // stands for the neighbour's rows at an end of the grid
  };

  [[nodiscard]] Hints hints(Index s) const {
    return {.where = where_, .worker = where_ == Where::cuda ? 0 : static_cast<int>(s)};
  }

  void make_tiles(Index s) {
    Piece& piece = stripes_[static_cast<std::size_t>(s)];
    const Index rows = piece.stripe.tile_rows(), cols = piece.stripe.tile_cols(), halo = piece.stripe.halo;
    piece.u = random_tile(s, rows, cols, 1);
    piece.other = random_tile(s, rows, cols, 2);
    piece.g = has_source_ ? random_tile(s, rows, cols, 3) : random_tile(s, 1, 1, 3);
    piece.frame = random_tile(s, halo, cols, 4);
    for (Tile<T>(*edges)[2] : {&piece.top, &piece.bottom})
      for (Tile<T>& edge : *edges) edge = random_tile(s, halo, cols, 5);
  }

  /// The random model's right-hand side with spacings of 1: numbers between -8 and 8, made where they are
  /// needed.
  Tile<T> random_tile(Index s, Index rows, Index cols, std::uint64_t seed) {
    const auto axis = [](Index n) {
      using enum grid::Condition;
      return grid::Axis{n, static_cast<double>(n + 1), dirichlet, dirichlet, grid::Centering::node};
    };
    Tile<double> axis_rows(*runtime_, rows, grid::axis_columns);
    {
      const HostView<double> view(axis_rows, HostView<double>::Access::write);
      for (Index i = 0; i < rows; ++i) view(i, 0) = view(i, 1) = view(i, 2) = 1, view(i, 3) = 0;
    }
    Tile<T> tile(*runtime_, rows, cols);
    grid::ModelProblem problem{grid::Model::random, seed, axis(rows), {}};
    problem.a.x = axis(cols);
    grid::codelets::model_rhs<T>({problem, 0}, axis_rows, tile, hints(s));
    return tile;
  }

  template <class Codelet, class Args>
  void submit(const Codelet& codelet, Args args) {
    const std::size_t last = stripes_.size() - 1;
    for (std::size_t s = 0; s <= last; ++s) {
      Piece& piece = stripes_[s];
      args.stripe = piece.stripe;
      codelet(args, piece.u, piece.other, piece.g, s > 0 ? stripes_[s - 1].bottom[set_] : piece.frame,
              s < last ? stripes_[s + 1].top[set_] : piece.frame, piece.top[1 - set_], piece.bottom[1 - set_],
              hints(static_cast<Index>(s)));
      if (args.sweeps % 2 == 1) std::swap(piece.u, piece.other);
    }
    set_ = 1 - set_;
  }

  Runtime* runtime_;
  Where where_;
  bool has_source_;
  std::deque<Piece> stripes_;
  int set_ = 0;  // of top and bottom: which are of now
};

/// A task's sweeps, each in a kernel of its own: what StarPU does between tasks does not count.
template <auto kernel, class T, class Args>
void one_by_one(Stream stream, const Args& args, InOut<T> u, InOut<T> other, In<T> g, In<T> above,
                In<T> below, Out<T> top, Out<T> bottom) {
  Args one = args;
  one.sweeps = 1;
  for (Index sweep = 0; sweep < args.sweeps; ++sweep) {
    kernel(stream, one, u, other, g, above, below, top, bottom);
    std::swap(u, other);
  }
}

/// How many they are.
Index sweeps_one_by_one(const Measured& workers, Index n) {
  if (workers.where == Where::cpu) return 1;                    // there a task's own cost is small enough
  constexpr Index nodes_of_task = Index{1} << 32, most = 4096;  // some milliseconds
  return std::clamp<Index>(nodes_of_task / (n * n), 1, most);
}

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

relaxation::JacobiArgs laplace_args(Index sweeps) {
  return {.stripe = {}, .along_y = 0.25, .along_x = 0.25, .sweeps = sweeps, .has_source = false};
}

double cells(Index n) { return static_cast<double>(n) * static_cast<double>(n); }

/// Lines as they are measured, for people only.
template <class... Values>
void print_line(bool shown, fmt::format_string<Values...> format, Values&&... values) {
  if (!shown) return;
  fmt::print(format, std::forward<Values>(values)...);
  std::fflush(stdout);
}

template <class T>
int bench_jacobi(Runtime& runtime, const RelaxBenchOptions& o) {
  Figures figures(runtime, o.common);
  const Measured workers = measure_ceiling(runtime, figures);
  const bool table = !o.common.json;
  const auto precision = precision_of<T>;
  figures.note("precision", to_string(precision));
  figures.note("workers", workers.count);
  figures.note("kind", workers.where == Where::cuda ? "cuda" : "cpu");

  auto sweeps = nlohmann::ordered_json::array();
  print_line(table, "\nJacobi, no right-hand side, {}: sweeps by 2 n^2 s bytes each; best of {}\n",
             to_string(precision), o.repeats);
  print_line(table, "{:>8}  {:<10} {:>14} {:>10} {:>14}\n", "n", "kernel", "seconds/sweep", "GB/s",
             fmt::format("over {}", workers.ceiling_name));
  for (const Index n : o.sizes) {
    const Index each = sweeps_one_by_one(workers, n);
    StripedGrid<T> grid(runtime, workers, n, Arrangement::natural, each, relaxation::jacobi_reach(1), false);
    for (const Implementation<T>& kernel : implementations<T>(workers.where)) {
      const double seconds = grid.seconds_per_sweep(*kernel.codelet, laplace_args(each), o.repeats);
      const double speed = bytes_of_sweep(RelaxMethod::jacobi, n * n, precision) / seconds;
      print_line(table, "{:>8}  {:<10} {:>14.4g} {:>10.1f} {:>14.3f}\n", n, kernel.name, seconds, speed / 1e9,
                 speed / workers.ceiling);
      sweeps.push_back({{"n", n},
                        {"implementation", kernel.name},
                        {"seconds_per_sweep", seconds},
                        {"gbytes_per_second", speed / 1e9},
                        {"share", speed / workers.ceiling}});
    }
  }
  figures.note("sizes", sweeps);

  auto blocked = nlohmann::ordered_json::array();
  print_line(table, "\nTemporal blocking, {0} x {0}\n{1}{2:>16}  {3:>10} {4:>14}\n", o.blocked_size,
             note_on_stripes(workers), "sweeps per task", "Gcell/s", "over 1 sweep");
  double one_sweep = 0;
  for (const Index each : o.sweeps_per_task) {
    // A stripe is at least as high as its halo.
    if (each > o.blocked_size / stripes_for(workers, o.blocked_size, each)) continue;
    StripedGrid<T> grid(runtime, workers, o.blocked_size, Arrangement::natural, each, each, false);
    const double speed =
        cells(o.blocked_size) /
        grid.seconds_per_sweep(relaxation::codelets::jacobi<T>, laplace_args(each), o.repeats) / 1e9;
    if (one_sweep == 0) one_sweep = speed;
    print_line(table, "{:>16}  {:>10.2f} {:>14.2f}\n", each, speed, speed / one_sweep);
    blocked.push_back({{"n", o.blocked_size}, {"sweeps_per_task", each}, {"gcells_per_second", speed}});
  }
  figures.note("temporal_blocking", blocked);
  figures.finish();
  return 0;
}

/// What SOR reaches on one grid in one layout, in cells per second.
struct SorSpeed {
  Index n;
  Precision precision;
  Arrangement layout;
  double kernel;       ///< a sweep each kernel, many kernels a task
  double one_sweep;    ///< a sweep each task
  double many_sweeps;  ///< many sweeps each task
  double solver;       ///< relaxation::Solver, which chooses for itself, among all workers

  [[nodiscard]] double gbytes(double speed) const {
    return speed * bytes_of_sweep(RelaxMethod::sor, 1, precision) / 1e9;
  }
};

template <class T>
double solver_speed(Runtime& runtime, Index n, Arrangement layout, double guess) {
  relaxation::Settings settings{.omega = 1.9, .arrangement = layout};
  settings.sweeps = static_cast<Index>(std::clamp(0.5 * guess / cells(n), 10.0, 2000.0));
  relaxation::Solver<T> solver(runtime, {.shape = {n, n}}, settings);
  const PinnedBuffer f(runtime, static_cast<std::size_t>(n * n) * sizeof(T)),
      u(runtime, static_cast<std::size_t>(n * n) * sizeof(T));
  std::fill_n(f.as<T>(), n * n, T{1});
  const Report report = solver.solve(f.as<T>(), u.as<T>());
  return cells(n) * static_cast<double>(report.iterations) / report.seconds.at("sweeps");
}

template <class T>
SorSpeed sor_speed(Runtime& runtime, const Measured& workers, Index n, Arrangement layout, Index many,
                   int repeats) {
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
    return cells(n) / grid.seconds_per_sweep(codelet, args, repeats);
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

int bench_relax(Runtime& runtime, const RelaxBenchOptions& o) {
  Figures figures(runtime, o.common);
  const Measured workers = measure_ceiling(runtime, figures);
  const bool table = !o.common.json;
  const Index many = !o.sweeps_per_task.empty()     ? o.sweeps_per_task.front()
                     : workers.where == Where::cuda ? 64
                                                    : 4;
  print_line(table, "\nRed-black SOR: GB/s by 3 n^2 s bytes a sweep, and that over the {}; best of {}\n",
             workers.ceiling_name, o.repeats);
  if (workers.where == Where::cuda)
    print_line(table,
               "  (1 sweep a kernel: many kernels a task; StarPU's work between tasks does not count)\n");
  print_line(table, "{}", note_on_stripes(workers));
  if (const int gpus = runtime.machine().count(WorkerKind::cuda); gpus > 1)
    print_line(table, "  (the solver may use all {} GPUs; its share, too, is that of the copy of one)\n",
               gpus);
  print_line(table, "{:>8}  {:<5} {:<10} {:>18} {:>18} {:>18} {:>18}\n", "n", "", "layout",
             "1 sweep a kernel", "1 sweep a task", fmt::format("{} sweeps a task", many), "solver");
  std::vector<SorSpeed> all;
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    if (precision != o.common.precision.value_or(precision)) continue;
    for (const Index n : o.sizes)
      for (const Arrangement layout : {Arrangement::natural, Arrangement::separated}) {
        const SorSpeed& s = all.emplace_back(
            precision == Precision::f32 ? sor_speed<float>(runtime, workers, n, layout, many, o.repeats)
                                        : sor_speed<double>(runtime, workers, n, layout, many, o.repeats));
        const auto column = [&](double speed) {
          return fmt::format("{:.1f}  {:.3f}", s.gbytes(speed), 1e9 * s.gbytes(speed) / workers.ceiling);
        };
        print_line(table, "{:>8}  {:<5} {:<10} {:>18} {:>18} {:>18} {:>18}\n", n, to_string(precision),
                   name(layout), column(s.kernel), column(s.one_sweep), column(s.many_sweeps),
                   column(s.solver));
      }
  }
  auto measured = nlohmann::ordered_json::array();
  for (const SorSpeed& s : all) {
    const auto figure = [&](double speed) {
      return nlohmann::ordered_json{{"gcells_per_second", speed / 1e9},
                                    {"gbytes_per_second", s.gbytes(speed)},
                                    {"share", 1e9 * s.gbytes(speed) / workers.ceiling}};
    };
    measured.push_back({{"n", s.n},
                        {"precision", to_string(s.precision)},
                        {"layout", name(s.layout)},
                        {"kernel", figure(s.kernel)},
                        {"one_sweep", figure(s.one_sweep)},
                        {"many_sweeps", figure(s.many_sweeps)},
                        {"solver", figure(s.solver)}});
  }
  figures.note("kind", workers.where == Where::cuda ? "cuda" : "cpu");
  figures.note("sweeps_per_task", many);
  figures.note("measured", measured);

  // What small grids lose to the cost of tasks.
  print_line(table, "\n");
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
  figures.finish();
  return 0;
}

void add_sizes(CLI::App& app, RelaxBenchOptions& o, const char* help) {
  add_parsed_option(app, "--sizes", o.sizes, parse_counts, help)->type_name("N,N,...")->group("Problem");
  add_problem_options(app, o.common);
}

}  // namespace

Command add_bench_jacobi(CLI::App& bench) {
  auto options = std::make_shared<RelaxBenchOptions>();
  options->sizes = {256, 512, 1024, 2048, 4096, 8192, 16384};
  options->sweeps_per_task = {1, 2, 4, 8, 16, 32};
  CLI::App* app = bench.add_subcommand("jacobi", "the kernels of Jacobi's sweep beside what memory allows");
  add_sizes(*app, *options, "grids n x n; default: 256,512 to 16384");
  const auto add = [&](const char* option, auto& target, auto parser, const char* type, const char* help) {
    add_parsed_option(*app, option, target, parser, help)->type_name(type)->group("Method");
  };
  add("--sweeps-per-task", options->sweeps_per_task, parse_counts, "K,K,...",
      "of temporal blocking; default: 1,2,4,8,16,32");
  add(
      "--blocked-size", options->blocked_size,
      [](const std::string& text) { return parse_whole<Index>(text, 1); }, "N",
      "the grid of temporal blocking; default: 8352");
  add_bench_options(*app, options->common, options->repeats, "runs, of which the fastest counts; default: 3");
  return {app, [options] {
            return with_runtime(options->common.runtime, [&](Runtime& runtime) {
              return options->common.precision.value_or(Precision::f64) == Precision::f32
                         ? bench_jacobi<float>(runtime, *options)
                         : bench_jacobi<double>(runtime, *options);
            });
          }};
}

Command add_bench_relax(CLI::App& bench) {
  auto options = std::make_shared<RelaxBenchOptions>();
  options->sizes = {2048, 16384};
  CLI::App* app = bench.add_subcommand("relax", "red-black SOR in both layouts beside what memory allows");
  add_sizes(*app, *options, "grids n x n; default: 2048,16384");
  const auto parse_one = [](const std::string& text) {
    return std::vector<Index>{parse_whole<Index>(text, 1)};
  };
  add_parsed_option(*app, "--sweeps-per-task", options->sweeps_per_task, parse_one,
                    "of tasks of many sweeps; default: 64 on a GPU, 4 on cores")
      ->type_name("K")
      ->group("Method");
  add_bench_options(*app, options->common, options->repeats, "runs, of which the fastest counts; default: 3");
  return {app, [options] {
            return with_runtime(options->common.runtime,
                                [&](Runtime& runtime) { return bench_relax(runtime, *options); });
          }};
}

}  // namespace asterism::tools
