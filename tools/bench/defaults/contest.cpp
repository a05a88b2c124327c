#include "contest.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>

namespace asterism::tools {

ContestMaker::ContestMaker(const Cores& cores, std::string solver, std::string problem, Prepare by_default,
                           const Preferences& preferences)
    : contest_{std::move(solver), std::move(problem), preferences} {
  option("", by_default);
  std::set<int> fewer{1, cores.cpus / 2};
  fewer.erase(cores.cpus);
  if (cores.gpus == 0) fewer.erase(0);
  for (const int cpus : fewer)
    contest_.entries.push_back(
        {.words = fmt::format("--cpus {}", cpus), .machine = {.cpus = cpus}, .prepare = by_default});
  for (const char* scheduler : {"prio", "lws", "dmdas"})
    if (scheduler != (preferences.scheduler.empty() ? cores.scheduler : preferences.scheduler))
      contest_.entries.push_back({.words = fmt::format("--scheduler {}", scheduler),
                                  .machine = {.scheduler = scheduler},
                                  .prepare = by_default});
}

void ContestMaker::option(const std::string& words, const Prepare& prepare) {
  contest_.entries.push_back({.words = words, .prepare = prepare});
}

}  // namespace asterism::tools
