#include <fmt/format.h>

#include <algorithm>

#include "mlssor.hpp"

namespace asterism::tools {
namespace {

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
  return report.residual_iterations[static_cast<std::size_t>(reached - history.begin())];
}

/// SSOR in sequence, where there is a core for it, red-black SOR, and MLSSOR.
std::vector<Way> all_ways(Runtime& runtime, const MlssorBenchOptions& o) {
  std::vector<Way> ways{{"red-black SOR"}};
  // MLSSOR with a single subdomain, which a core has to do.
  if (runtime.machine().count(WorkerKind::cpu) > 0)
    ways.insert(ways.begin(), {"SSOR, 4 layers", 2 * std::max(o.grid[0], o.grid[1]), 4});
  for (const Way& way : ways_in_subdomains()) ways.push_back(way);
  return ways;
}

template <class T>
void print_head(const MlssorBenchOptions& o, const std::vector<Input<T>>& inputs, const Figures& figures) {
  figures.print(
      "relaxations of every node until the scaled residual is below the tolerance, {} x {} nodes in {};\n",
      o.grid[0], o.grid[1], to_string(precision_of<T>));
  figures.print("in brackets: with forward sweeps only\n{:<22}", "");
  for (const Input<T>& input : inputs)
    figures.print(" {:>30}",
                  fmt::format("{}, omega {:.4g}, {:.0e}", input.name, input.omega, input.tolerance));
  figures.print("\n");
}

std::string as_text(const std::optional<Index>& sweeps, Index limit) {
  return sweeps ? fmt::format("{}", *sweeps) : fmt::format("> {}", limit);
}

nlohmann::ordered_json as_json(const std::optional<Index>& sweeps) {
  return sweeps ? nlohmann::ordered_json(*sweeps) : nlohmann::ordered_json(nullptr);
}

}  // namespace

template <class T>
void count_sweeps(Runtime& runtime, const MlssorBenchOptions& o, Figures& figures) {
  const std::vector<Input<T>> inputs = inputs_of<T>(o);
  print_head(o, inputs, figures);
  auto rows = nlohmann::ordered_json::array();
  for (const Way& way : all_ways(runtime, o)) {
    figures.print("{:<22}", way.name);
    nlohmann::ordered_json row{{"method", way.name}};
    for (const Input<T>& input : inputs) {
      const std::optional<Index> needed = sweeps_needed(runtime, way, input, o.limit);
      std::string cell = as_text(needed, o.limit);
      row["sweeps"].push_back(as_json(needed));
      if (way.subdomain > 0) {
        Way forward = way;
        forward.alternate = false;
        const std::optional<Index> alone = sweeps_needed(runtime, forward, input, o.limit);
        cell += fmt::format(" ({})", as_text(alone, o.limit));
        row["forward_only"].push_back(as_json(alone));
      }
      figures.print(" {:>30}", cell);
    }
    figures.print("\n");
    rows.push_back(row);
  }
  figures.note("convergence", rows);
}

template void count_sweeps<float>(Runtime&, const MlssorBenchOptions&, Figures&);
template void count_sweeps<double>(Runtime&, const MlssorBenchOptions&, Figures&);

}  // namespace asterism::tools
