/// \file
/// A solver's choices against those of somebody who tries all its options.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "../../../runtime/runtime.hpp"

namespace asterism::tools {

/// What is chosen of the machine; what is left alone is the default.
struct MachineChoice {
  int cpus = -1;
  std::string scheduler = {};
  bool operator==(const MachineChoice&) const = default;
};

/// A way to solve a problem.
struct Entry {
  std::string words;  ///< the options that ask for it; empty: the default
  MachineChoice machine = {};
  /// Seconds of the fastest of several solves. @throw Error: it cannot be done so
  std::function<double(Runtime&)> fastest_solve = {};
};

struct Contest {
  std::string solver, problem;
  std::vector<Entry> entries = {};  ///< the default first
};

/// What there is to choose from on a machine.
struct Cores {
  int cpus = 1, gpus = 0;
};

// Each solver's, on problems from small to large.
std::vector<Contest> poisson_contests(const Cores& cores);
std::vector<Contest> relaxation_contests(const Cores& cores);
std::vector<Contest> wavefront_contests(const Cores& cores);
std::vector<Contest> linear_contests(const Cores& cores);
std::vector<Contest> qap_contests(const Cores& cores);

/// Seconds of the fastest of as many runs as fit in a third of a second, but three at least, after one that warms up.
double fastest_of_many(const std::function<void()>& run);

/// A contest with the solver's own options, given as words and what solves with them, each alone, and the default with
/// other cores and schedulers.
class ContestMaker {
 public:
  using Solve = std::function<double(Runtime&)>;
  ContestMaker(const Cores& cores, std::string solver, std::string problem, Solve by_default);
  /// One of the options, with the default machine.
  void option(const std::string& words, const Solve& solve);
  [[nodiscard]] Contest contest() const { return contest_; }

 private:
  Contest contest_;
};

}  // namespace asterism::tools
