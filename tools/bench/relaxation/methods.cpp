#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "../../../algorithms/poisson/gemm_solver.hpp"
#include "../../../algorithms/poisson/solver.hpp"
#include "../../../codelets/transforms/fold.hpp"
#include "../../cli/commands.hpp"
#include "../../cli/report.hpp"
#include "../../poisson/slabs.hpp"
#include "../figures.hpp"

namespace asterism::tools {
namespace {

struct MethodsBenchOptions {
  CommonOptions common;
  // n + 1 a power of two, and a prime near it.
  std::vector<Index> columns = {63, 66, 127, 126, 255, 256, 511, 508, 1023, 1020, 2047, 2038, 4095, 4092};
  Index rows = 0;  // 0: as many as columns
  int repeats = 5;
};

/// One method's best solve.
struct Timed {
  double seconds = std::numeric_limits<double>::infinity();
  double residual = 0;  // scaled, in units of roundoff
};

/// Both methods on lines of n points.
struct Compared {
  Index columns, rows;
  Timed fft, gemm;

  [[nodiscard]] double ratio() const { return fft.seconds / gemm.seconds; }
  [[nodiscard]] bool has_good_fft() const { return !transforms::has_large_prime(columns + 1); }
};

/// "2^2 * 3 * 5"
std::string factorised(Index number) {
  std::vector<std::string> powers;
  for (Index factor = 2; number > 1; ++factor) {
    if (factor * factor > number) factor = number;
    int exponent = 0;
    for (; number % factor == 0; number /= factor) ++exponent;
    if (exponent > 0)
      powers.push_back(exponent > 1 ? fmt::format("{}^{}", factor, exponent) : fmt::format("{}", factor));
  }
  return fmt::format("{}", fmt::join(powers, " * "));
}

/// Solves the random model, f and u in the workers' memories.
template <class Solver, class T>
Timed best_solve(Runtime& runtime, const MethodsBenchOptions& o, const poisson::Problem& problem) {
  Solver solver(runtime, problem, {.mode = poisson::Mode::incore, .fetch_result = false});
  Slabs<T> slabs(runtime, solver);
  const typename Solver::Known known{grid::Model::random, o.common.seed};
  const auto rhs = [&](Index slab, Tile<T>& f) { solver.fill(slab, f, known); };
  Timed best;
  for (int i = 0; i < o.repeats; ++i) {
    slabs.each(rhs);
    runtime.wait();
    runtime.barrier();
    best.seconds = std::min(best.seconds, solver.solve(slabs.tiles()).seconds.at("solve"));
  }
  best.residual = solver.check(slabs.tiles(), rhs).scaled_residual / roundoff(precision_of<T>);
  return best;
}

template <class T>
Compared compare(Runtime& runtime, const MethodsBenchOptions& o, Index columns) {
  Compared c{.columns = columns, .rows = o.rows > 0 ? o.rows : columns, .fft = {}, .gemm = {}};
  const poisson::Problem problem{.shape = {c.rows, columns}};
  count_unknowns(problem);
  require_room<T>(runtime, problem);
  c.fft = best_solve<poisson::Solver<T>, T>(runtime, o, problem);
  c.gemm = best_solve<poisson::GemmSolver<T>, T>(runtime, o, problem);
  return c;
}

/// The longest lines of a kind for which gemm was faster; 0: never.
Index longest_win(const std::vector<Compared>& all, bool good_fft) {
  Index longest = 0;
  for (const Compared& c : all)
    if (c.has_good_fft() == good_fft && c.ratio() > 1) longest = std::max(longest, c.columns);
  return longest;
}

std::string verdict(const std::vector<Compared>& all) {
  const auto wins = [&](bool good_fft) -> std::string {
    const auto is_of_kind = [&](const Compared& c) { return c.has_good_fft() == good_fft; };
    if (std::none_of(all.begin(), all.end(), is_of_kind)) return "not measured";
    const Index longest = longest_win(all, good_fft);
    return longest > 0 ? fmt::format("still faster at n = {}", longest) : "never faster";
  };
  return fmt::format("gemm was {} where the FFT is good, {} where it is poor.", wins(true), wins(false));
}

nlohmann::ordered_json as_json(const Compared& c) {
  return {{"columns", c.columns},
          {"rows", c.rows},
          {"intervals", factorised(c.columns + 1)},
          {"good_fft", c.has_good_fft()},
          {"fft_seconds", c.fft.seconds},
          {"gemm_seconds", c.gemm.seconds},
          {"ratio", c.ratio()},
          {"fft_residual_eps", c.fft.residual},
          {"gemm_residual_eps", c.gemm.residual}};
}

void print_head(const Runtime& runtime, const MethodsBenchOptions& o, const Workers& workers,
                Precision precision, const Figures& figures) {
  figures.print("{} x n unknowns in {}, resident with {} CPU, {} CUDA workers{}; best of {}\n",
                o.rows > 0 ? fmt::format("{}", o.rows) : "n", to_string(precision), workers.cpus,
                workers.gpus, runtime.ranks() > 1 ? fmt::format(" on each of {} ranks", runtime.ranks()) : "",
                o.repeats);
  figures.print("{:>9}  {:<24} {:>12} {:>13} {:>11} {:>20}\n", "n", "n + 1", "fft, seconds", "gemm, seconds",
                "fft / gemm", "residuals, in eps");
}

void print_row(const Compared& c, const Figures& figures) {
  figures.print("{:>9}  {:<24} {:>12.3g} {:>13.3g} {:>11.2f} {:>20}\n", c.columns, factorised(c.columns + 1),
                c.fft.seconds, c.gemm.seconds, c.ratio(),
                fmt::format("{:.2f}, {:.2f}", shown(c.fft.residual), shown(c.gemm.residual)));
}

template <class T>
int bench_methods(Runtime& runtime, const MethodsBenchOptions& o) {
  Figures figures(runtime, o.common);
  const Machine machine = runtime.machine();
  const Workers workers{machine.count(WorkerKind::cpu), machine.count(WorkerKind::cuda), runtime.ranks()};
  print_head(runtime, o, workers, precision_of<T>, figures);
  std::vector<Compared> all;
  auto lengths = nlohmann::ordered_json::array();
  for (const Index columns : o.columns) {
    all.push_back(compare<T>(runtime, o, columns));
    print_row(all.back(), figures);
    lengths.push_back(as_json(all.back()));
  }
  figures.print("{}\n", verdict(all));

  figures.note("precision", to_string(precision_of<T>));
  figures.note("workers", as_json(workers));
  figures.note("lengths", lengths);
  const auto longest = [&](bool good_fft) {
    const Index columns = longest_win(all, good_fft);
    return columns > 0 ? nlohmann::ordered_json(columns) : nlohmann::ordered_json(nullptr);
  };
  figures.note("gemm_faster_up_to", {{"good_fft", longest(true)}, {"poor_fft", longest(false)}});
  figures.note("verdict", verdict(all));
  figures.finish();
  return 0;
}

}  // namespace

Command add_bench_methods(CLI::App& bench) {
  auto options = std::make_shared<MethodsBenchOptions>();
  CLI::App* app = add_subcommand(
      bench, "methods", "the 2D solvers by FFT and by matrix products beside each other, by line length");
  OptionGroup problem(*app, "Problem");
  problem.add(
      "--columns", options->columns, parse_counts, "N,N,...",
      "line lengths n; an FFT is good where n + 1 is a product of primes below 37; default: pairs of a "
      "good and a poor one, 63,66 to 4095,4092");
  problem.add("--rows", options->rows, parse_count<>, "M", "default: as many as columns");
  add_problem_options(*app, options->common);
  add_bench_options(*app, options->common, options->repeats,
                    "solves by each method, of which the fastest counts; default: 5");
  return {app, [options] {
            return with_runtime_in_precision(options->common, [&]<class T>(Runtime& runtime) {
              return bench_methods<T>(runtime, *options);
            });
          }};
}

}  // namespace asterism::tools
