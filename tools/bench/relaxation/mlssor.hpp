/// \file
/// Multi-layer SSOR beside SSOR and red-black SOR: what is measured of all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "../../../algorithms/relaxation/problem.hpp"
#include "../../../runtime/report.hpp"
#include "../../cli/options.hpp"
#include "../figures.hpp"

namespace asterism::tools {

struct MlssorBenchOptions {
  CommonOptions common;
  std::vector<Index> grid = {512, 512};
  double omega = 1.25;  // of the suite that the paper's red-black SOR is taken from
  std::optional<double> error;
  Index limit = 100000;  // relaxations of every node
  int repeats = 3;
};

/// A way to relax.
struct Way {
  std::string name;
  Index subdomain = 0;  ///< of MLSSOR; 0: red-black SOR
  Index layers = 1;
  bool alternate = true;
};

/// MLSSOR with subdomains of several sizes.
std::vector<Way> ways_in_subdomains();

/// What is asked of a run.
struct Task {
  double omega;
  Index sweeps;
  double tolerance = 0;
  Index check_every = 0;
};

template <class T>
struct System {
  relaxation::Problem problem;
  std::vector<T> f;

  [[nodiscard]] std::vector<T> zeros() const { return std::vector<T>(f.size()); }
  [[nodiscard]] double best_omega() const {
    return relaxation::discretise_five_point(problem.shape[0], problem.shape[1], 1, 1).optimal_omega();
  }
};

/// Solves with u as the first guess.
template <class T>
using Relax = std::function<Report(std::vector<T>& u)>;

/// A solver, for any number of runs. @param system outlives it
template <class T>
Relax<T> relaxation_of(Runtime& runtime, const Way& way, const System<T>& system, const Task& task);

/// Between -1 and 1.
std::vector<double> random_numbers(std::size_t count, std::uint64_t seed);

/// Sweeps until a residual is reached: the table of the paper.
template <class T>
void count_sweeps(Runtime& runtime, const MlssorBenchOptions& options, Figures& figures);

/// Seconds until an error is reached, each way with its best omega.
template <class T>
void race(Runtime& runtime, const MlssorBenchOptions& options, Figures& figures);

}  // namespace asterism::tools
