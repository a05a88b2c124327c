/// \file
/// What `bench linear` prints: a line, or an object, for each run.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "../figures.hpp"
#include "run.hpp"

namespace asterism::tools {

/// What memory does at best, of the workers that get rows.
struct LinearCeiling {
  double bytes_per_second = 0;
  std::string name;  ///< "copy", "triad", ...
};

/// Another solver, for as many iterations.
struct BaselineRun {
  std::string name;
  std::string preconditioner;
  std::string detail;  ///< what it chose, if anything
  Index iterations = 0;
  double seconds_per_iteration = 0;
  double residual = 0;  ///< ||b - A x|| / ||b|| after them
  double model_bytes = 0;
  double of_ours = 0;  ///< its seconds over ours
};

void print_linear_head(const Figures& figures, const LinearCeiling& ceiling);
void print(const Figures& figures, const LinearRun& run, const LinearCeiling& ceiling);
void print(const Figures& figures, const BaselineRun& run, const LinearCeiling& ceiling);

nlohmann::ordered_json as_json(const LinearRun& run, const LinearCeiling& ceiling);
nlohmann::ordered_json as_json(const BaselineRun& run, const LinearCeiling& ceiling);

}  // namespace asterism::tools
