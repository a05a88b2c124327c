#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

#include "../../cli/commands.hpp"
#include "../../cli/report.hpp"
#include "../../qap/instance_file.hpp"
#include "../../qap/interruption.hpp"
#include "../../qap/options.hpp"
#include "../figures.hpp"

namespace asterism::tools {
namespace {

struct QapBenchOptions {
  CommonOptions common;
  std::vector<std::filesystem::path> instances;
  std::filesystem::path best_known;
  qap::SearchSettings settings{.seconds = 60};
  int repeats = 5;
};

/// Names and costs in the lines of a table: the first column and the last.
std::vector<std::pair<std::string, qap::Cost>> read_best_known(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw Error(fmt::format("{}: cannot be opened", path.string()));
  std::vector<std::pair<std::string, qap::Cost>> table;
  std::string line;
  std::getline(file, line);  // the columns' names
  for (int number = 2; std::getline(file, line); ++number) {
    std::istringstream words(line);
    std::string name, word, last;
    words >> name;
    while (words >> word) last = word;
    if (name.empty()) continue;
    try {
      table.emplace_back(name, parse_cost(last));
    } catch (const Error& error) {
      throw Error(fmt::format("{}: line {}: {}", path.string(), number, error.what()));
    }
  }
  return table;
}

/// Of an instance, all seeds together.
struct Row {
  std::string name;
  Index n = 0;
  std::optional<qap::Cost> best_known;
  std::vector<qap::SearchReport> runs;

  [[nodiscard]] bool was_stopped() const {
    return !runs.empty() && runs.back().ending == qap::Ending::stopped;
  }
  [[nodiscard]] Index reached() const {
    return std::ranges::count_if(runs,
                                 [&](const auto& run) { return best_known && run.cost <= *best_known; });
  }
  [[nodiscard]] qap::Cost worst() const { return std::ranges::max(runs, {}, &qap::SearchReport::cost).cost; }
  /// Relative percentage deviation, (5.3), of the mean.
  [[nodiscard]] std::optional<double> mean_deviation() const {
    if (!best_known || *best_known == 0) return {};
    double sum = 0;
    for (const auto& run : runs) sum += static_cast<double>(run.cost - *best_known);
    return 100 * sum / static_cast<double>(runs.size()) / static_cast<double>(*best_known);
  }
  [[nodiscard]] double median_seconds() const {
    std::vector<double> seconds;
    for (const auto& run : runs) seconds.push_back(run.seconds_to_best);
    std::ranges::sort(seconds);
    return seconds[seconds.size() / 2];
  }
  [[nodiscard]] double most_seconds() const {
    return std::ranges::max(runs, {}, &qap::SearchReport::seconds_to_best).seconds_to_best;
  }
  [[nodiscard]] double moves_per_second() const {
    double moves = 0, seconds = 0;
    for (const auto& run : runs) {
      moves += run.moves;
      seconds += run.seconds;
    }
    return moves / seconds;
  }
};

Row bench_instance(Runtime& runtime, const QapBenchOptions& o, const std::filesystem::path& path,
                   const std::vector<std::pair<std::string, qap::Cost>>& best_known) {
  const qap::Problem problem = read_instance(path);
  Row row{.name = path.stem().string(), .n = problem.n, .best_known = {}, .runs = {}};
  for (const auto& [name, cost] : best_known)
    if (name == row.name) row.best_known = cost;
  for (int seed = 1; seed <= o.repeats; ++seed) {
    qap::SearchSettings settings = o.settings;
    settings.seed = static_cast<std::uint64_t>(seed);
    settings.interrupted = &Interruption::wanted;
    if (!settings.target) settings.target = row.best_known;
    row.runs.push_back(search(runtime, problem, settings));
    if (row.was_stopped()) break;
  }
  return row;
}

nlohmann::ordered_json as_json(const Row& row) {
  nlohmann::ordered_json j{{"instance", row.name}, {"n", row.n}};
  if (row.best_known) j["best_known"] = *row.best_known;
  if (const auto deviation = row.mean_deviation()) j["mean_deviation_percent"] = *deviation;
  j["reached"] = row.reached();
  j["median_seconds_to_best"] = row.median_seconds();
  j["most_seconds_to_best"] = row.most_seconds();
  j["moves_per_second"] = row.moves_per_second();
  auto runs = nlohmann::ordered_json::array();
  for (const auto& run : row.runs)
    runs.push_back({{"cost", run.cost}, {"seconds_to_best", run.seconds_to_best}, {"seconds", run.seconds}});
  j["runs"] = runs;
  return j;
}

int bench(Runtime& runtime, const QapBenchOptions& o) {
  if (o.instances.empty()) throw Error("instances are missing: `asterism bench qap INSTANCE.dat...`");
  const auto best_known =
      o.best_known.empty() ? std::vector<std::pair<std::string, qap::Cost>>{} : read_best_known(o.best_known);
  Figures figures(runtime, o.common);
  const Machine machine = runtime.machine();
  figures.print(
      "{}, {} seeds, {:g} s each at most, on {} cores and {} GPUs. Seconds: to the best cost of a run.\n\n",
      name(o.settings.method), o.repeats, o.settings.seconds.value_or(0), machine.count(WorkerKind::cpu),
      machine.count(WorkerKind::cuda));
  figures.print("{:<12} {:>4} {:>12} {:>12} {:>8} {:>8} {:>9} {:>9} {:>10}\n", "instance", "n", "best known",
                "worst", "RPD [%]", "reached", "median s", "most s", "moves/s");
  auto rows = nlohmann::ordered_json::array();
  for (const std::filesystem::path& path : o.instances) {
    const Row row = bench_instance(runtime, o, path, best_known);
    const auto deviation = row.mean_deviation();
    figures.print("{:<12} {:>4} {:>12} {:>12} {:>8} {:>8} {:>9.3f} {:>9.3f} {:>10.3g}\n", row.name, row.n,
                  row.best_known ? std::to_string(*row.best_known) : "-", row.worst(),
                  deviation ? fmt::format("{:.3f}", *deviation) : "-",
                  fmt::format("{}/{}", row.reached(), row.runs.size()), row.median_seconds(),
                  row.most_seconds(), row.moves_per_second());
    rows.push_back(as_json(row));
    if (row.was_stopped()) break;
  }
  figures.note("workers", as_json(Workers{machine.count(WorkerKind::cpu), machine.count(WorkerKind::cuda),
                                          runtime.ranks()}));
  figures.note("search", name(o.settings.method));
  figures.note("instances", rows);
  figures.finish();
  return 0;
}

}  // namespace

Command add_bench_qap(CLI::App& bench_app) {
  auto options = std::make_shared<QapBenchOptions>();
  CLI::App* app = add_subcommand(
      bench_app, "qap", "quadratic assignment: best costs, and when they are found, with several seeds");
  add_file(*app, "INSTANCE.dat...", options->instances, "instances, as in QAPLIB");
  OptionGroup end(*app, "End");
  end.name(
      "--best-known", options->best_known, "TABLE.tsv",
      "a line of names of columns, then lines that begin with an instance's name and end with its best known cost, "
      "at which its runs end");
  end.add("--time", options->settings.seconds, parse_seconds, "SECONDS", "of a run, at most; default: 60");
  end.add("--target", options->settings.target, parse_cost, "COST", "at which all runs end, instead");
  end.add("--generations", options->settings.generations, parse_count<>, "G",
          "of a run, at most; default: any number");
  add_search_options(*app, options->settings);
  add_bench_options(*app, options->common, options->repeats, "seeds, from 1 on; default: 5");
  return {app, [options] {
            fit_machine_to_search(options->common.runtime, options->settings);
            const Interruption interruption;  // ends a run and with it the benchmark: what is known is told
            return with_runtime(options->common.runtime,
                                [&](Runtime& runtime) { return bench(runtime, *options); });
          }};
}

}  // namespace asterism::tools
