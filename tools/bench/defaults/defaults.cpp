#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "../../cli/commands.hpp"
#include "../../cli/report.hpp"
#include "../../qap/options.hpp"
#include "../figures.hpp"
#include "contest.hpp"

namespace asterism::tools {
namespace {

using Contests = std::vector<Contest> (*)(const Cores&);
const Words<Contests> all_solvers{{"poisson", poisson_contests},
                                  {"relax", relaxation_contests},
                                  {"wavefront", wavefront_contests},
                                  {"linear", linear_contests},
                                  {"qap", qap_contests}};

/// "poisson,linear"
std::vector<Contests> parse_solvers(const std::string& text) {
  std::vector<Contests> solvers;
  std::istringstream names(text);
  for (std::string name; std::getline(names, name, ',');) {
    const auto found = std::ranges::find(all_solvers, name, [](const auto& known) { return known.first; });
    if (found == all_solvers.end())
      throw Error(
          fmt::format("there is no solver '{}'; choose of poisson, relax, wavefront, linear, qap", name));
    solvers.push_back(found->second);
  }
  return solvers;
}

struct DefaultsOptions {
  CommonOptions common;
  std::vector<Contests> solvers;
  int rounds = 3;
  double patience = 0.25;  ///< seconds for each way of a problem
};

struct Result {
  const Entry* entry = nullptr;
  double seconds = std::numeric_limits<double>::infinity();
};

constexpr double wanted_ratio = 0.95;

/// In turns, so that what else the machine does meets all of them, each with what it left in the caches just before.
void race(Runtime& runtime, const std::vector<Result*>& results, double patience) {
  std::vector<std::pair<Result*, Solve>> racers;
  for (Result* const result : results) try {
      racers.emplace_back(result, result->entry->prepare(runtime));
    } catch (const Error&) {  // an option that this problem cannot have
    }
  double all = 0;
  for (int turn = 0; turn == 0 || all < patience * static_cast<double>(racers.size()); ++turn) {
    if (racers.empty()) return;
    for (const auto& [result, solve] : racers) {
      solve();
      const double seconds = seconds_of(solve);
      result->seconds = std::min(result->seconds, seconds);
      all += seconds;
    }
  }
}

/// Together those that want the same machine.
void measure(const Contest& contest, const DefaultsOptions& o, std::vector<Result*> results) {
  while (!results.empty()) {
    const MachineChoice choice = results.front()->entry->machine;
    const auto others = std::stable_partition(results.begin(), results.end(),
                                              [&](const Result* r) { return r->entry->machine == choice; });
    Options options = o.common.runtime;
    if (choice.cpus >= 0) options.cpus = choice.cpus;
    if (!choice.scheduler.empty()) options.scheduler = choice.scheduler;
    options.preferences = contest.preferences;
    with_runtime(options, [&](Runtime& runtime) {
      race(runtime, {results.begin(), others}, o.patience);
      return 0;
    });
    results.erase(results.begin(), others);
  }
}

/// The one that a search finds to be the fastest: those that were so run beside the default again, as on a machine that
/// does other things too one look tells little.
const Entry& fastest(const Contest& contest, const DefaultsOptions& o) {
  std::vector<Result> results;
  for (const Entry& entry : contest.entries) results.push_back({.entry = &entry});
  std::vector<Result*> searched;
  for (Result& result : results) searched.push_back(&result);
  measure(contest, o, searched);
  std::ranges::sort(searched, {}, &Result::seconds);
  searched.resize(std::min<std::size_t>(3, searched.size()));
  if (std::ranges::find(searched, &results.front()) == searched.end()) searched.push_back(&results.front());
  measure(contest, o, searched);
  return *std::ranges::min_element(results, {}, &Result::seconds)->entry;
}

/// The default and the best of all entries, each with the least of its times. Of many the luckiest has won the search, and
/// would win it against its equals: so what counts is measured anew, of both as often.
std::pair<Result, Result> decide(const Contest& contest, const DefaultsOptions& o) {
  Result by_default{.entry = &contest.entries.front()}, other{.entry = &fastest(contest, o)};
  std::vector<Result*> measured{&by_default};
  if (other.entry != by_default.entry) measured.push_back(&other);
  for (int round = 0; round < o.rounds; ++round) {
    measure(contest, o, measured);
    std::ranges::reverse(measured);
  }
  return {by_default, other.seconds < by_default.seconds ? other : by_default};
}

int bench_defaults(const DefaultsOptions& o) {
  Cores cores;
  with_runtime(o.common.runtime, [&](Runtime& runtime) {
    require_one_rank(runtime);
    const Machine machine = runtime.machine();
    cores = {machine.count(WorkerKind::cpu), machine.count(WorkerKind::cuda), machine.scheduler};
    return 0;
  });
  const bool text = !o.common.json;
  if (text)
    fmt::print(
        "{} cores, {} GPUs, scheduler {}; ratio: the best time over the default's, {} or more is wanted\n\n"
        "{:<10} {:<30} {:>12} {:>12} {:>7}  best by\n",
        cores.cpus, cores.gpus, cores.scheduler, wanted_ratio, "solver", "problem", "default [us]",
        "best [us]", "ratio");
  auto rows = nlohmann::ordered_json::array();
  for (const Contests contests : o.solvers)
    for (const Contest& contest : contests(cores)) {
      const auto [by_default, best] = decide(contest, o);
      const double ratio = best.seconds / by_default.seconds;
      if (text)
        fmt::print("{:<10} {:<30} {:>12.1f} {:>12.1f} {:>7.3f}  {}{}\n", contest.solver, contest.problem,
                   by_default.seconds * 1e6, best.seconds * 1e6, ratio,
                   best.entry->words.empty() ? "the default" : best.entry->words,
                   ratio < wanted_ratio ? "  <--" : "");
      std::fflush(stdout);
      rows.push_back({{"solver", contest.solver},
                      {"problem", contest.problem},
                      {"default_seconds", by_default.seconds},
                      {"best_seconds", best.seconds},
                      {"ratio", ratio},
                      {"best_options", best.entry->words}});
    }
  if (!text)
    print_report(
        {{"cpus", cores.cpus}, {"gpus", cores.gpus}, {"scheduler", cores.scheduler}, {"problems", rows}});
  return 0;
}

}  // namespace

Command add_bench_defaults(CLI::App& bench) {
  auto options = std::make_shared<DefaultsOptions>();
  for (const auto& [name, contests] : all_solvers) options->solvers.push_back(contests);
  CLI::App* app = add_subcommand(
      bench, "defaults", "every solver as it comes, beside the best that a search over its options finds");
  OptionGroup problem(*app, "Problem");
  problem.add("--solvers", options->solvers, parse_solvers, "NAME,NAME,...",
              "of poisson, relax, wavefront, linear, qap; default: all of them");
  OptionGroup method(*app, "Method");
  method.add("--rounds", options->rounds, parse_count<int>, "N",
             "times that the default and the best are measured again, which is what counts; default: 3");
  method.add("--seconds", options->patience, parse_seconds, "S", "for each way of a problem; default: 0.25");
  add_machine_options(*app, options->common);
  return {app, [options] { return bench_defaults(*options); }};
}

}  // namespace asterism::tools
