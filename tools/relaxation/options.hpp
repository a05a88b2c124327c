/// \file
/// The options of `asterism relax`.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "../../algorithms/relaxation/solver.hpp"
#include "../grid/options.hpp"

namespace asterism::tools {

enum class RelaxMethod { jacobi, gauss_seidel, sor, ssor, mlssor, wavefront };

enum class RelaxModel {
  laplace,  ///< [Czapinski 2014] (3.2): f = 0, sin^2(pi y) on the side x = 0, zero on the others
  sine,     ///< grid::Model's
  random,
};

struct RelaxOptions {
  CommonOptions common;
  GridOptions grid;
  std::optional<RelaxModel> model;
  std::filesystem::path initial;  ///< empty: zero
  RelaxMethod method = RelaxMethod::sor;

  // As they were given: which of them a method takes, and what it chooses without, is the method's to say.
  std::optional<double> omega, tolerance;
  std::optional<Index> sweeps, check_every, sweeps_per_task, stripes, subdomain, layers;
  std::optional<relaxation::Arrangement> layout;
  std::optional<std::vector<Index>> tile;  ///< sweeps, then points
  std::optional<int> threads;
  bool blocking = false, no_alternation = false, untuned = false;
};

/// The scaled residual at which a solve ends when neither --tolerance nor --sweeps is given.
double default_tolerance(Precision precision);

void add_relax_options(CLI::App& app, RelaxOptions& options);

// Values of options as they are written.
const char* name(RelaxMethod method);
const char* name(RelaxModel model);
const char* name(relaxation::Arrangement layout);

/// Whether the method relaxes red nodes and black ones in turn, in stripes.
bool is_by_colours(RelaxMethod method);

}  // namespace asterism::tools
