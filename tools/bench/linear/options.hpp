/// \file
/// What `bench linear` is told.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "../../../algorithms/sparse/linear_solver.hpp"
#include "../../../algorithms/sparse/models/models.hpp"
#include "../../cli/options.hpp"

namespace asterism::tools {

struct NamedModel {
  std::string name;
  sparse::MatrixModel model;
};

struct LinearBenchOptions {
  CommonOptions common;
  std::vector<NamedModel> models;
  std::vector<sparse::PreconditionerChoice> preconditioners;
  std::optional<Precision> preconditioner_precision;          ///< none: that of the iteration
  std::vector<std::optional<sparse::Format>> formats = {{}};  ///< none: chosen
  sparse::Workers workers = sparse::Workers::fastest;
  double tolerance = 1e-6;
  Index max_iterations = 20000;
  Index iterations = 0;  ///< that are timed; 0: chosen
  int repeats = 3;
};

/// Adds them, with their defaults.
void add_linear_bench(CLI::App& app, LinearBenchOptions& options);

/// "auto", "csr", ...
const char* format_name(std::optional<sparse::Format> format);

}  // namespace asterism::tools
