#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "../../algorithms/relaxation/mlssor.hpp"
#include "../../algorithms/relaxation/solver.hpp"
#include "../cli/commands.hpp"
#include "figures.hpp"

namespace asterism::tools {
namespace {

struct MlssorBenchOptions {
  CommonOptions common;
  std::vector<Index> grid = {512, 512};
  double omega = 1.25;  // of the suite that the paper's red-black SOR is taken from
  std::optional<double> error;
  Index limit = 100000;  // relaxations of every node
  int repeats = 3;
};

/// A way to relax.
struct Way {
  std::string name;
  Index subdomain = 0;  ///< of MLSSOR; 0: red-black SOR
  Index layers = 1;
  bool alternate = true;
};

const std::vector<Way> subdomains{{"MLSSOR 2 x 4 x 4", 4, 2},
                                  {"MLSSOR 4 x 8 x 8", 8, 4},
                                  {"MLSSOR 8 x 16 x 16", 16, 8},
                                  {"MLSSOR 16 x 32 x 32", 32, 16}};

/// What is asked of a run.
struct Task {
  double omega;
  Index sweeps;
  double tolerance = 0;
  Index check_every = 0;
};

template <class T>
struct System {
  relaxation::Problem problem;
  std::vector<T> f;

  [[nodiscard]] std::vector<T> zeros() const { return std::vector<T>(f.size()); }
  [[nodiscard]] double best_omega() const {
    return relaxation::discretise_five_point(problem.shape[0], problem.shape[1], 1, 1).optimal_omega();
  }
};

/// Solves with u as the first guess.
template <class T>
using Relax = std::function<Report(std::vector<T>& u)>;

/// A solver, for any number of runs. @param system outlives it
template <class T>
Relax<T> relaxation_of(Runtime& runtime, const Way& way, const System<T>& system, const Task& task) {
  const auto by = [&](auto solver) -> Relax<T> {
    return [solver, f = system.f.data()](std::vector<T>& u) { return solver->solve(f, u.data()); };
  };
  if (way.subdomain == 0) {
    relaxation::Settings settings;
    settings.omega = task.omega;
    settings.sweeps = task.sweeps;
    settings.tolerance = task.tolerance;
    settings.check_every = task.check_every;
    if (task.check_every > 0) settings.sweeps_per_task = task.check_every;
    return by(std::make_shared<relaxation::Solver<T>>(runtime, system.problem, settings));
  }
  relaxation::mlssor::Settings settings;
  settings.subdomain = way.subdomain;
  settings.layers = way.layers;
  settings.alternate = way.alternate;
  settings.omega = task.omega;
  settings.sweeps = task.sweeps;
  settings.tolerance = task.tolerance;
  settings.check_every = task.check_every;
  return by(std::make_shared<relaxation::mlssor::Solver<T>>(runtime, system.problem, settings));
}

std::vector<double> random_numbers(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  std::vector<double> numbers(count);
  for (double& number : numbers) number = uniform(engine);
  return numbers;
}

// ---- Table II ---------------------------------------------------------------------------------------------

template <class T>
struct Input {
  std::string name;
  System<T> system;
  double omega, tolerance;
};

template <class T>
std::vector<Input<T>> inputs_of(const MlssorBenchOptions& o) {
  const auto count = static_cast<std::size_t>(o.grid[0] * o.grid[1]);
  const std::vector<double> noise = random_numbers(count, o.common.seed);
  const System<T> random{{.shape = o.grid}, {noise.begin(), noise.end()}};
  const System<T> uniform{{.shape = o.grid}, std::vector<T>(count, T{-1})};
  return {{"random f", random, o.omega, 1e-3},
          {"f = -1", uniform, o.omega, 1e-3},
          {"f = -1", uniform, uniform.best_omega(), 1e-6}};
}

/// Relaxations of every node until the tolerance is reached; none: more than the limit.
template <class T>
std::optional<Index> sweeps_needed(Runtime& runtime, const Way& way, const Input<T>& input, Index limit) {
  const Index check_every = std::max<Index>(way.layers, 4);
  std::vector<T> u = input.system.zeros();
  const Report report =
      relaxation_of(runtime, way, input.system, {input.omega, limit, input.tolerance, check_every})(u);
  const auto& history = report.residual_history;
  const auto reached =
      std::find_if(history.begin(), history.end(), [&](double r) { return r <= input.tolerance; });
  if (reached == history.end()) return {};
  // The last residual is that of the end, whenever that was.
  return std::min<Index>((reached - history.begin()) * check_every, report.iterations);
}

template <class T>
void table(Runtime& runtime, const MlssorBenchOptions& o, Figures& figures, bool shown) {
  const std::vector<Input<T>> inputs = inputs_of<T>(o);
  if (shown) {
    fmt::print(
        "relaxations of every node until the scaled residual is below the tolerance, {} x {} nodes in {};\n",
        o.grid[0], o.grid[1], to_string(precision_of<T>));
    fmt::print("in brackets: with forward sweeps only\n{:<22}", "");
    for (const Input<T>& input : inputs)
      fmt::print(" {:>30}",
                 fmt::format("{}, omega {:.4g}, {:.0e}", input.name, input.omega, input.tolerance));
    fmt::print("\n");
  }
  // SSOR in sequence is MLSSOR with a single subdomain, which a core has to do.
  std::vector<Way> ways{{"red-black SOR"}};
  if (runtime.machine().count(WorkerKind::cpu) > 0)
    ways.insert(ways.begin(), {"SSOR, 4 layers", 2 * std::max(o.grid[0], o.grid[1]), 4});
  ways.insert(ways.end(), subdomains.begin(), subdomains.end());

  auto rows = nlohmann::ordered_json::array();
  for (const Way& way : ways) {
    if (shown) fmt::print("{:<22}", way.name);
    nlohmann::ordered_json row{{"method", way.name}};
    for (const Input<T>& input : inputs) {
      const auto count = [&](bool alternate) {
        Way directed = way;
        directed.alternate = alternate;
        return sweeps_needed(runtime, directed, input, o.limit);
      };
      const auto text = [&](const std::optional<Index>& sweeps) {
        return sweeps ? fmt::format("{}", *sweeps) : fmt::format("> {}", o.limit);
      };
      const auto json = [](const std::optional<Index>& sweeps) {
        return sweeps ? nlohmann::ordered_json(*sweeps) : nlohmann::ordered_json(nullptr);
      };
      const std::optional<Index> needed = count(true);
      std::string cell = text(needed);
      row["sweeps"].push_back(json(needed));
      if (way.subdomain > 0) {
        const std::optional<Index> forward = count(false);
        cell += fmt::format(" ({})", text(forward));
        row["forward_only"].push_back(json(forward));
      }
      if (shown) fmt::print(" {:>30}", cell);
      std::fflush(stdout);
    }
    if (shown) fmt::print("\n");
    rows.push_back(row);
  }
  figures.note("convergence", rows);
}

// ---- Time to a given error --------------------------------------------------------------------------------

/// A system whose solution is known: all of its modes, the smooth ones foremost.
template <class T>
struct Known {
  System<T> system;
  std::vector<T> solution;
  double norm;

  explicit Known(const MlssorBenchOptions& o) : system{{.shape = o.grid}, {}} {
    const Index m = o.grid[0], n = o.grid[1];
    const std::vector<double> noise = random_numbers(static_cast<std::size_t>(m * n), o.common.seed);
    for (const double x : noise) solution.push_back(static_cast<T>(1 + x));
    const auto at = [&](Index i, Index j) {
      return i < 0 || i >= m || j < 0 || j >= n
                 ? 0.0
                 : static_cast<double>(solution[static_cast<std::size_t>(i * n + j)]);
    };
    const auto per_h2 = [](Index nodes) { return static_cast<double>((nodes + 1) * (nodes + 1)); };
    double sum = 0;
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j) {
        system.f.push_back(static_cast<T>(per_h2(m) * (at(i - 1, j) + at(i + 1, j) - 2 * at(i, j)) +
                                          per_h2(n) * (at(i, j - 1) + at(i, j + 1) - 2 * at(i, j))));
        sum += at(i, j) * at(i, j);
      }
    norm = std::sqrt(sum);
  }

  /// ||u - solution|| / ||solution||
  [[nodiscard]] double error(const std::vector<T>& u) const {
    double sum = 0;
    for (std::size_t i = 0; i < u.size(); ++i) {
      const double difference = static_cast<double>(u[i]) - static_cast<double>(solution[i]);
      sum += difference * difference;
    }
    return std::sqrt(sum) / norm;
  }
};

/// A run to a given error.
struct Reached {
  double omega = 0;
  Index sweeps = 0;
  double seconds = std::numeric_limits<double>::infinity();  ///< of the sweeps
  double with_load = 0;  ///< with what it takes to arrange the grid, and back
  double error = 0;
};

/// Sweeps until the error is small enough, within a twentieth; none where that would take longer than
/// `patience`, more than the limit by what the error has fallen so far, or for ever.
template <class T>
std::optional<Reached> approach(Runtime& runtime, const Way& way, const Known<T>& known, double omega,
                                double error, Index limit, double patience) {
  std::vector<T> u = known.system.zeros();
  const Index unit = 2 * way.layers;  // every run begins with a forward sweep
  Reached reached{.omega = omega, .seconds = 0};
  Index sweeps = 0;
  Relax<T> relax;
  while (reached.sweeps < limit && reached.seconds < patience) {
    // A power of two, as each number of sweeps takes a solver of its own.
    const auto twentieth = static_cast<std::uint64_t>(reached.sweeps / 20);
    const Index wanted = std::max<Index>(32, static_cast<Index>(std::bit_floor(twentieth)));
    if (const Index next = (wanted + unit - 1) / unit * unit; next != sweeps) {
      sweeps = next;
      relax = relaxation_of(runtime, way, known.system, {omega, sweeps});
    }
    const Report report = relax(u);
    reached.seconds += report.seconds.at("sweeps");
    reached.sweeps += sweeps;
    reached.error = known.error(u);
    if (report.reason != Reason::solved || !std::isfinite(reached.error)) return {};
    if (reached.error <= error) return reached;
    const bool settled = reached.sweeps >= limit / 16;
    const double share_of_way = std::log(reached.error) / std::log(error);  // from an error of 1
    if (settled && share_of_way * static_cast<double>(limit) < static_cast<double>(reached.sweeps)) return {};
  }
  return {};
}

/// With the best omega that a search finds: the gap to 2 that is best for SOR, times powers of 2, then of
/// sqrt(2) around the best one so far. Larger gaps come first: subdomains that do not see each other's new
/// values want less over-relaxation.
template <class T>
std::optional<Reached> fastest(Runtime& runtime, const Way& way, const Known<T>& known,
                               const MlssorBenchOptions& o, double error) {
  const double gap = 2 - known.system.best_omega();
  std::optional<Reached> best;
  int best_exponent = 0;
  const auto look = [&](int exponent) {  // of sqrt(2)
    const double omega = 2 - gap * std::pow(2.0, 0.5 * exponent);
    if (omega <= 0) return;
    const double patience = best ? 1.1 * best->seconds : std::numeric_limits<double>::infinity();
    const auto found = approach(runtime, way, known, omega, error, o.limit, patience);
    if (found && (!best || found->seconds < best->seconds)) best = found, best_exponent = exponent;
  };
  for (const int exponent : {0, 2, 4, 6, 8, -2, -4}) look(exponent);
  if (!best) return {};
  for (const int exponent : {best_exponent - 1, best_exponent + 1}) look(exponent);

  // Once more without interruption.
  Reached result = *best;
  result.seconds = result.with_load = std::numeric_limits<double>::infinity();
  const Relax<T> relax = relaxation_of(runtime, way, known.system, {result.omega, result.sweeps});
  for (int i = 0; i < o.repeats; ++i) {
    std::vector<T> u = known.system.zeros();
    const Report report = relax(u);
    const double sweeps = report.seconds.at("sweeps");
    result.seconds = std::min(result.seconds, sweeps);
    result.with_load =
        std::min(result.with_load, sweeps + report.seconds.at("load") + report.seconds.at("store"));
    result.error = known.error(u);
  }
  return result;
}

template <class T>
void race(Runtime& runtime, const MlssorBenchOptions& o, Figures& figures, bool shown) {
  const Known<T> known(o);
  const double error = o.error.value_or(precision_of<T> == Precision::f32 ? 1e-2 : 1e-6);
  if (shown) {
    fmt::print(
        "\ntime to a relative error of {:.1e}, each with its best omega (found by a search in steps of "
        "sqrt(2) "
        "of 2 - omega)\n",
        error);
    fmt::print("{:<26} {:>9} {:>9} {:>12} {:>12} {:>10} {:>10} {:>9}\n", "", "omega", "sweeps", "seconds",
               "with load", "Gnodes/s", "error", "speed-up");
  }
  std::vector<Way> ways{{"red-black SOR, separated"}};
  ways.insert(ways.end(), subdomains.begin(), subdomains.end());
  auto rows = nlohmann::ordered_json::array();
  std::optional<Reached> red_black;
  for (const Way& way : ways) {
    const std::optional<Reached> found = fastest(runtime, way, known, o, error);
    if (way.subdomain == 0) red_black = found;
    if (!found) {
      if (shown) fmt::print("{:<26} not within {} sweeps, whatever omega\n", way.name, o.limit);
      rows.push_back({{"method", way.name}, {"seconds", nullptr}});
      continue;
    }
    const double speed =
        static_cast<double>(o.grid[0] * o.grid[1]) * static_cast<double>(found->sweeps) / found->seconds;
    const double gain = red_black ? red_black->seconds / found->seconds : 0;
    if (shown)
      fmt::print("{:<26} {:>9.6f} {:>9} {:>12.4g} {:>12.4g} {:>10.3g} {:>10.2e} {:>9.3f}\n", way.name,
                 found->omega, found->sweeps, found->seconds, found->with_load, speed / 1e9, found->error,
                 gain);
    std::fflush(stdout);
    rows.push_back({{"method", way.name},
                    {"omega", found->omega},
                    {"sweeps", found->sweeps},
                    {"seconds", found->seconds},
                    {"seconds_with_load", found->with_load},
                    {"gnodes_per_second", speed / 1e9},
                    {"error", found->error},
                    {"speedup_over_red_black", red_black ? nlohmann::ordered_json(gain) : nullptr}});
  }
  figures.note("time_to_error", {{"error", error}, {"methods", rows}});
}

template <class T>
int bench_mlssor(Runtime& runtime, const MlssorBenchOptions& o) {
  if (runtime.ranks() > 1) throw Error("this benchmark runs on one rank; start it without mpirun");
  if (o.grid.size() != 2) throw Error("--grid: MLSSOR is for grids of two dimensions, rows x columns");
  Figures figures(runtime, o.common);
  const bool shown = !o.common.json;
  const Machine machine = runtime.machine();
  figures.note("grid", o.grid);
  figures.note("precision", to_string(precision_of<T>));
  figures.note("workers",
               {{"cpu", machine.count(WorkerKind::cpu)}, {"cuda", machine.count(WorkerKind::cuda)}});
  table<T>(runtime, o, figures, shown);
  race<T>(runtime, o, figures, shown);
  figures.finish();
  return 0;
}

}  // namespace

Command add_bench_mlssor(CLI::App& bench) {
  auto options = std::make_shared<MlssorBenchOptions>();
  CLI::App* app = bench.add_subcommand(
      "mlssor", "multi-layer SSOR beside SSOR and red-black SOR: sweeps, time to an error");
  const auto add = [&](const char* option, auto& target, auto parser, const char* type, const char* group,
                       const char* help) {
    add_parsed_option(*app, option, target, parser, help)->type_name(type)->group(group);
  };
  const auto positive = [](const std::string& text) {
    const double value = parse_real(text);
    if (!(value > 0)) throw Error(fmt::format("'{}': must be positive", text));
    return value;
  };
  add(
      "--grid", options->grid, [](const std::string& text) { return parse_grid(text); }, "MxN", "Problem",
      "default: 512x512");
  add_problem_options(*app, options->common);
  add("--omega", options->omega, positive, "W", "Method",
      "of the sweeps to 1e-3; default: 1.25; those to 1e-6 have SOR's best one");
  add("--error", options->error, positive, "E", "Method",
      "relative error that the time is measured to; default: 1e-6, 1e-2 in f32");
  add(
      "--sweeps", options->limit, [](const std::string& text) { return parse_whole<Index>(text, 1); }, "N",
      "Method", "at most so many relaxations of every node; default: 100000");
  add_bench_options(*app, options->common, options->repeats,
                    "runs with the best omega, of which the fastest "
                    "counts; default: 3");
  return {app, [options] {
            return with_runtime(options->common.runtime, [&](Runtime& runtime) {
              return options->common.precision.value_or(Precision::f64) == Precision::f32
                         ? bench_mlssor<float>(runtime, *options)
                         : bench_mlssor<double>(runtime, *options);
            });
          }};
}

}  // namespace asterism::tools
