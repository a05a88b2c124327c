#include "contest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "../figures.hpp"

namespace asterism::tools {

double fastest_of_many(const std::function<void()>& run) {
  constexpr double patience = 1.0 / 3;
  run();
  double fastest = std::numeric_limits<double>::infinity(), all = 0;
  for (int runs = 0; runs < 3 || all < patience; ++runs) {
    const double seconds = seconds_of(run);
    fastest = std::min(fastest, seconds);
    all += seconds;
  }
  return fastest;
}

ContestMaker::ContestMaker(const Cores& cores, std::string solver, std::string problem, Solve by_default)
    : contest_{std::move(solver), std::move(problem)} {
  contest_.entries.push_back({.words = "", .fastest_solve = by_default});
  std::set<int> fewer{1, cores.cpus / 2};
  fewer.erase(cores.cpus);
  if (cores.gpus == 0) fewer.erase(0);
  for (const int cpus : fewer)
    contest_.entries.push_back(
        {.words = fmt::format("--cpus {}", cpus), .machine = {.cpus = cpus}, .fastest_solve = by_default});
  for (const char* scheduler : {"prio", "lws", "dmdas"})
    contest_.entries.push_back({.words = fmt::format("--scheduler {}", scheduler),
                                .machine = {.scheduler = scheduler},
                                .fastest_solve = by_default});
}

void ContestMaker::option(const std::string& words, const Solve& solve) {
  contest_.entries.push_back({.words = words, .fastest_solve = solve});
}

}  // namespace asterism::tools
