#include "stated_problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "../../algorithms/poisson/layout.hpp"

namespace asterism::tools {
namespace {

/// Shape and batch from the file, or from --grid and --batch.
void state_shape(const PoissonProblemOptions& o, StatedPoisson& p) {
  if (!p.reader) {
    p.problem.shape = o.grid.grid.value_or(std::vector<Index>{4095, 4095});
    p.problem.batch = o.batch.value_or(1);
    p.array = p.problem.shape;
    if (o.batch) p.array.insert(p.array.begin(), *o.batch);
    return;
  }
  const std::string file = p.reader->path().string();
  p.array = p.reader->header().shape;
  const std::size_t axes = p.array.size() - (o.batch ? 1 : 0);
  if (axes < 2 || axes > 3)
    throw Error(fmt::format("{}: an array of {} dimensions, its shape is {}; {}", file, p.array.size(),
                            shape_text(p.array),
                            o.batch ? "with --batch 3 or 4 are wanted, of which the first counts the problems"
                                    : "2 or 3 dimensions are wanted, one more with --batch"));
  p.problem.shape.assign(p.array.end() - static_cast<std::ptrdiff_t>(axes), p.array.end());
  if (o.batch) p.problem.batch = p.array.front();
  if (o.batch && *o.batch != p.problem.batch)
    throw Error(fmt::format("{}: its shape is {}, {} problems; --batch says {}", file, shape_text(p.array),
                            p.problem.batch, *o.batch));
  require_grid_of_file(o.grid, *p.reader, p.problem.shape);
  p.reader->set_leading(p.array.size() - axes + 1);
}

/// f or given values come from this file, too.
void note_precision(const NpyReader& reader, StatedPoisson& p) {
  p.rounding = std::max(p.rounding, roundoff(reader.header().precision));
}

/// Conditions and values at all ends.
void state_ends(const PoissonProblemOptions& o, StatedPoisson& p) {
  poisson::Problem& problem = p.problem;
  const std::size_t axes = problem.shape.size();
  problem.ends.resize(axes);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (o.axis_conditions[axis]) require_axis(std::string("--bc-") + axis_name(3, axis), axis, axes);
    if (axis + axes < 3) continue;
    poisson::Ends& ends = problem.ends[axis + axes - 3];
    const Conditions given = o.axis_conditions[axis].value_or(o.conditions);
    ends.lower.condition = given.lower;
    ends.upper.condition = given.upper;
  }
  each_given_axis(o.grid, axes, [&](std::size_t a, const GivenValues& values) {
    state_side(values.lower, problem.shape, a, problem.ends[a].lower);
    state_side(values.upper, problem.shape, a, problem.ends[a].upper);
    for (const GivenValue* given : {&values.lower, &values.upper})
      if (!given->file.empty()) note_precision(NpyReader(given->file, any_dimensions), p);
  });
}

/// Those of --coordinates, along the slowest axis.
void state_coordinates(const PoissonProblemOptions& o, poisson::Problem& problem) {
  const NpyReader reader(o.coordinates, 1);
  const auto fail = [&](const std::string& what) {
    return Error(fmt::format("--coordinates {}: {}", o.coordinates.string(), what));
  };
  problem.coordinates = read_array(reader);
  const grid::Axis axis = poisson::axis_of(problem, 0);
  try {
    static_cast<void>(grid::axis_rows(axis, problem.coordinates));
  } catch (const Error& error) {
    throw fail(error.what());
  }
  const double front = problem.coordinates.front(), back = problem.coordinates.back(), span = back - front;
  const double rounding = 4 * roundoff(reader.header().precision) * std::max(std::abs(front), std::abs(back));
  if (o.grid.lengths && std::abs(problem.lengths[0] - span) > rounding)
    throw fail(fmt::format(
        "they span {}; --lengths says {} for that axis; give {} there, or leave --lengths away if "
        "the others are 1",
        span, problem.lengths[0], span));
  problem.lengths[0] = span;
}

bool are_zero(const std::vector<poisson::Ends>& ends) {
  for (const poisson::Ends& axis : ends)
    for (const poisson::End* end : {&axis.lower, &axis.upper})
      if (end->value != 0 || !end->values.empty()) return false;
  return true;
}

}  // namespace

const char* axis_name(const poisson::Problem& problem, std::size_t a) {
  return axis_name(problem.shape.size(), a);
}

StatedPoisson state_poisson(const PoissonProblemOptions& o) {
  StatedPoisson p;
  p.reader = open_source(o.grid, o.model.has_value());
  if (p.reader) note_precision(*p.reader, p);
  p.model = o.model.value_or(grid::Model::sine);
  state_shape(o, p);
  p.problem.centering = o.centering;
  state_ends(o, p);
  const bool is_sine = !p.reader && p.model == grid::Model::sine;
  p.problem.lengths = lengths_along(o.grid, p.problem.shape.size(), is_sine ? 2.0 : 1.0);
  if (!o.coordinates.empty()) state_coordinates(o, p.problem);
  p.problem.lambda = o.lambda;
  p.model_is_exact = !p.reader && are_zero(p.problem.ends);
  count_unknowns(p.problem);
  return p;
}

void fit_machine_to_problem(Options& machine, PoissonMethod method, const StatedPoisson& stated) {
  if (method == PoissonMethod::fft) machine.preferences = poisson::preferences(stated.problem);
}

Index count_unknowns(const poisson::Problem& problem) {
  // The bytes of a float64 grid have to be countable, with room for its padding.
  Index count = 16;
  bool overflow = __builtin_mul_overflow(count, problem.batch, &count);
  for (const Index extent : problem.shape)
    overflow = overflow || __builtin_mul_overflow(count, extent, &count);
  if (overflow)
    throw Error(fmt::format("{} problems of {}: more points than can be counted", problem.batch,
                            poisson::to_string(problem.shape)));
  return count / 16;
}

void warn_of_unused(const CLI::App& app, const PoissonProblemOptions& o, const StatedPoisson& stated) {
  if (stated.reader)
    warn_without_effect(app, "--seed", "f comes from a file");
  else if (stated.model != grid::Model::random)
    warn_without_effect(app, "--seed", "only --model random draws numbers");
  const auto axes = o.axis_conditions.end() - static_cast<std::ptrdiff_t>(stated.dimensions());
  if (std::all_of(axes, o.axis_conditions.end(), [](const auto& given) { return given.has_value(); }))
    warn_without_effect(app, "--bc", "every axis has an option of its own");
}

}  // namespace asterism::tools
