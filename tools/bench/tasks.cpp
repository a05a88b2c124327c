#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "../../runtime/codelet.hpp"
#include "../../runtime/tasks/bare_tasks.hpp"
#include "../../runtime/tile.hpp"
#include "../cli/commands.hpp"
#include "figures.hpp"

namespace asterism::tools {
namespace {

struct TasksOptions {
  CommonOptions common;
  Index tasks = 10000, tiles = 100;
  int repeats = 10;
};

void nothing(InOut<double>) {}
const Codelet empty_task{"empty_task", nothing};

/// The same as run_bare_tasks, by a codelet.
TaskTimesOfRound run_tasks(Runtime& runtime, const TasksOptions& o) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  std::vector<double> values(static_cast<std::size_t>(o.tiles));
  const Tiles<double> tiles(runtime, o.tiles, 1, 1, 1, {},
                            [&](Index i, Index) { return &values[std::size_t(i)]; });
  TaskTimesOfRound times{};
  const Clock::time_point begin = Clock::now();
  for (Index i = 0; i < o.tasks; ++i) empty_task(tiles[i % o.tiles]);
  times.submitted = since(begin);
  runtime.wait();
  times.completed = since(begin);
  return times;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Both kinds of tasks in turns on so many cores.
void compare(const TasksOptions& o, int cpus, Figures& figures, Runtime& runtime) {
  std::vector<double> ours[2], bare[2], ratios;
  for (int round = -1; round < o.repeats; ++round) {  // the first one makes the models
    const TaskTimesOfRound b = run_bare_tasks(runtime, o.tasks, o.tiles), t = run_tasks(runtime, o);
    if (round < 0) continue;
    bare[0].push_back(b.submitted), bare[1].push_back(b.completed);
    ours[0].push_back(t.submitted), ours[1].push_back(t.completed);
    ratios.push_back(t.completed / b.completed);
  }
  const auto rate = [&](const std::vector<double>& seconds) {
    return static_cast<double>(o.tasks) / median(seconds);
  };
  const std::string where = fmt::format("{} core{}", cpus, cpus == 1 ? "" : "s");
  const auto add = [&](const char* key, const char* what, double value, const char* unit) {
    figures.add(fmt::format("{}_{}", key, cpus), fmt::format("{}: {}", where, what), value, unit);
  };
  add("submitted", "codelets, submitted", rate(ours[0]), "tasks/s");
  add("completed", "codelets, submitted and completed", rate(ours[1]), "tasks/s");
  add("bare_submitted", "StarPU's own, submitted", rate(bare[0]), "tasks/s");
  add("bare_completed", "StarPU's own, submitted and completed", rate(bare[1]), "tasks/s");
  add("cost", "cost of a codelet's task over StarPU's, median of rounds", median(ratios), "times");
}

int bench_tasks(const TasksOptions& o) {
  std::optional<Figures> figures;
  std::vector<int> all{1, 2};
  if (o.common.runtime.cpus > 0) all = {o.common.runtime.cpus};
  for (const int cpus : all) {
    Options options = o.common.runtime;
    options.cpus = cpus;
    options.gpus = 0;
    options.window = static_cast<std::size_t>(o.tasks) + 1;
    const int status = with_runtime(options, [&](Runtime& runtime) {
      require_one_rank(runtime);
      if (!figures) figures.emplace(runtime, o.common);
      compare(o, cpus, *figures, runtime);
      return 0;
    });
    if (status != 0) return status;
  }
  figures->finish();
  return 0;
}

}  // namespace

Command add_bench_tasks(CLI::App& bench) {
  auto options = std::make_shared<TasksOptions>();
  CLI::App* app = bench.add_subcommand("tasks", "what a task costs beside StarPU's own, on 1 and on 2 cores");
  OptionGroup problem(*app, "Problem");
  problem.add("--tasks", options->tasks, parse_count<>, "N",
              "tasks of a round, each on one tile; default: 10000");
  problem.add("--tiles", options->tiles, parse_count<>, "N", "tiles that they have in turns; default: 100");
  add_bench_options(*app, options->common, options->repeats, "rounds of each kind, in turns; default: 10");
  return {app, [=] { return bench_tasks(*options); }};
}

}  // namespace asterism::tools
