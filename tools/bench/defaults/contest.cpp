#include "contest.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>

namespace asterism::tools {

ContestMaker::ContestMaker(const Cores& cores, std::string solver, std::string problem, Prepare by_default,
                           const std::string& preferred_scheduler)
    : contest_{std::move(solver), std::move(problem)},
      by_default_{.preferred_scheduler = preferred_scheduler} {
  option("", by_default);
  std::set<int> fewer{1, cores.cpus / 2};
  fewer.erase(cores.cpus);
  if (cores.gpus == 0) fewer.erase(0);
  const auto elsewhere = [&](const std::string& words, const MachineChoice& machine) {
    contest_.entries.push_back({.words = words, .machine = machine, .prepare = by_default});
    contest_.entries.back().machine.preferred_scheduler = preferred_scheduler;
  };
  for (const int cpus : fewer) elsewhere(fmt::format("--cpus {}", cpus), {.cpus = cpus});
  for (const char* scheduler : {"prio", "lws", "dmdas"})
    if (scheduler != (preferred_scheduler.empty() ? cores.scheduler : preferred_scheduler))
      elsewhere(fmt::format("--scheduler {}", scheduler), {.scheduler = scheduler});
}

void ContestMaker::option(const std::string& words, const Prepare& prepare) {
  contest_.entries.push_back({.words = words, .machine = by_default_, .prepare = prepare});
}

}  // namespace asterism::tools
