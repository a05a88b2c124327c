/// \file
/// The options that state a problem on a grid, for all subcommands that solve one: where f comes from, the grid,
/// its lengths, and what is given on its sides.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "../cli/options.hpp"
#include "../files/given_values.hpp"
#include "../files/npy/npy.hpp"

namespace asterism::tools {

struct GridOptions {
  std::string input;  ///< the file of f; empty: a model
  std::optional<std::vector<Index>> grid;
  std::optional<std::vector<double>> lengths;
  std::array<std::optional<GivenValues>, 3> values;  ///< z, y, x
};

/// How a subcommand explains them.
struct GridHelp {
  std::size_t least_axes = 2;
  std::string grid, lengths;
};

// Each adds some of them to a subcommand; `options` has to outlive the parsing.
void add_input(CLI::App& app, GridOptions& options, const std::string& help);  ///< F.npy
void add_grid(CLI::App& app, GridOptions& options, const GridHelp& help);      ///< --grid, --lengths
/// --value-z, --value-y, --value-x
void add_values(CLI::App& app, GridOptions& options, const std::array<std::string, 3>& help);

/// The file of f, where there is one. @param model_is_given --model
/// @throw Error: both, or no such file
std::optional<NpyReader> open_source(const GridOptions& options, bool model_is_given);

/// --precision, or that of the file of f, or f64.
Precision precision_of_run(const CommonOptions& options, const std::optional<NpyReader>& source);

/// The lengths that are given, or `usual` along every axis. @throw Error: not as many as axes
std::vector<double> lengths_along(const GridOptions& options, std::size_t axes, double usual);

/// @param shape of the problem in the file @throw Error: --grid says something else
void require_grid_of_file(const GridOptions& options, const NpyReader& source,
                          const std::vector<Index>& shape);

/// Refuses an option for an axis that a problem of so many axes has not.
/// @param axis counted from z @throw Error
void require_axis(const std::string& option, std::size_t axis, std::size_t axes);

/// Calls body(a, values) for each axis of the grid whose ends are given values.
/// @throw Error: some are given for an axis that the grid has not
template <class Body>
void each_given_axis(const GridOptions& options, std::size_t axes, const Body& body) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (!options.values[axis]) continue;
    require_axis(std::string("--value-") + axis_name(3, axis), axis, axes);
    body(axis + axes - 3, *options.values[axis]);
  }
}

/// Puts what is given at an end of axis `a` into a solver's side, as a number or as an array.
/// @throw Error: see read_side
template <class Side>
void state_side(const GivenValue& given, const std::vector<Index>& shape, std::size_t a, Side& side) {
  side.value = given.number;
  side.values = read_side(given, shape, a);
}

}  // namespace asterism::tools
