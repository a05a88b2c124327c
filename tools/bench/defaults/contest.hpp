/// \file
/// A solver's choices against those of somebody who tries all its options.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "../../../runtime/runtime.hpp"

namespace asterism::tools {

/// Solves once, by a solver that has made its plans. Ends before its Runtime.
using Solve = std::function<void()>;
/// Makes a solver. @throw Error: it cannot be done so
using Prepare = std::function<Solve(Runtime&)>;

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
  Prepare prepare = {};
};

struct Contest {
  std::string solver, problem;
  Preferences preferences = {};     ///< of the solver's program
  std::vector<Entry> entries = {};  ///< the default first
};

/// What there is to choose from on a machine.
struct Cores {
  int cpus = 1, gpus = 0;
  std::string scheduler = {};  ///< the default
};

// Each solver's, on problems from small to large.
std::vector<Contest> poisson_contests(const Cores& cores);
std::vector<Contest> relaxation_contests(const Cores& cores);
std::vector<Contest> wavefront_contests(const Cores& cores);
std::vector<Contest> linear_contests(const Cores& cores);
std::vector<Contest> qap_contests(const Cores& cores);

/// A contest with the solver's own options, given as words and what solves with them, each alone, and the default with
/// other cores and schedulers.
class ContestMaker {
 public:
  ContestMaker(const Cores& cores, std::string solver, std::string problem, Prepare by_default,
               const Preferences& preferences = {});
  /// One of the options, with the default machine.
  void option(const std::string& words, const Prepare& prepare);
  [[nodiscard]] Contest contest() const { return contest_; }

 private:
  Contest contest_;
};

}  // namespace asterism::tools
