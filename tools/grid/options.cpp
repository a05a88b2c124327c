#include "options.hpp"

#include <fmt/format.h>

#include "../../algorithms/poisson/problem/problem.hpp"

namespace asterism::tools {

void add_input(CLI::App& app, GridOptions& options, const std::string& help) {
  add_file(app, "F.npy", options.input, help);
}

void add_grid(CLI::App& app, GridOptions& options, const GridHelp& help) {
  OptionGroup problem(app, "Problem");
  const std::size_t least = help.least_axes;
  problem.add(
      "--grid", options.grid, [least](const std::string& text) { return parse_grid(text, least); }, "[Lx]MxN",
      help.grid);
  problem.add(
      "--lengths", options.lengths, [least](const std::string& text) { return parse_lengths(text, least); },
      "[LZx]LYxLX", help.lengths);
}

void add_values(CLI::App& app, GridOptions& options, const std::array<std::string, 3>& help) {
  OptionGroup problem(app, "Problem");
  for (std::size_t axis = 0; axis < 3; ++axis)
    problem.add(std::string("--value-") + axis_name(3, axis), options.values[axis], parse_values, "VALUES",
                help[axis]);
}

std::optional<NpyReader> open_source(const GridOptions& options, bool model_is_given) {
  if (options.input.empty()) return std::nullopt;
  if (model_is_given)
    throw Error(fmt::format("{} and --model: f comes from either, leave one away", options.input));
  return NpyReader(options.input, any_dimensions);
}

Precision precision_of_run(const CommonOptions& options, const std::optional<NpyReader>& source) {
  return options.precision.value_or(source ? source->header().precision : Precision::f64);
}

std::vector<double> lengths_along(const GridOptions& options, std::size_t axes, double usual) {
  if (options.lengths && options.lengths->size() != axes)
    throw Error(
        fmt::format("--lengths gives {} lengths, the problem has {} axes", options.lengths->size(), axes));
  return options.lengths.value_or(std::vector<double>(axes, usual));
}

void require_grid_of_file(const GridOptions& options, const NpyReader& source,
                          const std::vector<Index>& shape) {
  if (options.grid && *options.grid != shape)
    throw Error(fmt::format("{} holds {} values, --grid says {}; leave --grid away", source.path().string(),
                            poisson::to_string(shape), poisson::to_string(*options.grid)));
}

void require_axis(const std::string& option, std::size_t axis, std::size_t axes) {
  if (axis + axes >= 3) return;
  throw Error(fmt::format(
      "{}: the problem has {}", option,
      axes == 1 ? "one dimension; its axis is x" : "two dimensions; its axes are y (from row to row) and x"));
}

}  // namespace asterism::tools
