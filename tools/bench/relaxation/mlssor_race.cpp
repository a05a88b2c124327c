#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "mlssor.hpp"

namespace asterism::tools {
namespace {

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

}  // namespace

template <class T>
void race(Runtime& runtime, const MlssorBenchOptions& o, Figures& figures) {
  const Known<T> known(o);
  const double error = o.error.value_or(precision_of<T> == Precision::f32 ? 1e-2 : 1e-6);
  figures.print(
      "\ntime to a relative error of {:.1e}, each with its best omega (found by a search in steps of sqrt(2) "
      "of 2 - omega)\n",
      error);
  figures.print("{:<26} {:>9} {:>9} {:>12} {:>12} {:>10} {:>10} {:>9}\n", "", "omega", "sweeps", "seconds",
                "with load", "Gnodes/s", "error", "speed-up");
  std::vector<Way> ways{{"red-black SOR, separated"}};
  for (const Way& way : ways_in_subdomains()) ways.push_back(way);
  auto rows = nlohmann::ordered_json::array();
  std::optional<Reached> red_black;
  for (const Way& way : ways) {
    const std::optional<Reached> found = fastest(runtime, way, known, o, error);
    if (way.subdomain == 0) red_black = found;
    if (!found) {
      figures.print("{:<26} not within {} sweeps, whatever omega\n", way.name, o.limit);
      rows.push_back({{"method", way.name}, {"seconds", nullptr}});
      continue;
    }
    const double speed =
        static_cast<double>(o.grid[0] * o.grid[1]) * static_cast<double>(found->sweeps) / found->seconds;
    const double gain = red_black ? red_black->seconds / found->seconds : 0;
    figures.print("{:<26} {:>9.6f} {:>9} {:>12.4g} {:>12.4g} {:>10.3g} {:>10.2e} {:>9.3f}\n", way.name,
                  found->omega, found->sweeps, found->seconds, found->with_load, speed / 1e9, found->error,
                  gain);
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

template void race<float>(Runtime&, const MlssorBenchOptions&, Figures&);
template void race<double>(Runtime&, const MlssorBenchOptions&, Figures&);

}  // namespace asterism::tools
