#include "options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace asterism::tools {
namespace {

using poisson::Centering;
using poisson::Condition;
using poisson::Mode;

const Words<Method> methods{{"fft", Method::fft}, {"gemm", Method::gemm}};
const Words<Mode> modes{{"auto", Mode::automatic}, {"incore", Mode::incore}, {"streaming", Mode::streaming}};
const Words<Centering> centerings{{"node", Centering::node}, {"cell", Centering::cell}};
const Words<Condition> conditions{
    {"dirichlet", Condition::dirichlet}, {"neumann", Condition::neumann}, {"periodic", Condition::periodic}};
const Words<kernels::Model> models{{"sine", kernels::Model::sine}, {"random", kernels::Model::random}};

Condition parse_condition(const std::string& text) {
  for (const auto& [word, condition] : conditions)
    if (text == word || text == word.substr(0, 1)) return condition;
  throw Error(
      fmt::format("'{}' is unknown; choose dirichlet, neumann or periodic for both ends of an axis, or "
                  "LOWER,UPPER such as dirichlet,neumann",
                  text));
}

/// Shape and batch from the file, or from --grid and --batch.
void state_shape(const ProblemOptions& o, StatedProblem& p) {
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
void note_precision(const NpyReader& reader, StatedProblem& p) {
  p.rounding = std::max(p.rounding, roundoff(reader.header().precision));
}

/// Conditions and values at all ends.
void state_ends(const ProblemOptions& o, StatedProblem& p) {
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
void state_coordinates(const ProblemOptions& o, poisson::Problem& problem) {
  const NpyReader reader(o.coordinates, 1);
  const auto fail = [&](const std::string& what) {
    return Error(fmt::format("--coordinates {}: {}", o.coordinates.string(), what));
  };
  problem.coordinates = read_array(reader);
  const kernels::Axis axis = poisson::axis_of(problem, 0);
  try {
    static_cast<void>(kernels::axis_rows(axis, problem.coordinates));
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

const char* name(Method method) { return word_of(methods, method); }
const char* name(Mode mode) { return word_of(modes, mode); }
const char* name(Condition condition) { return word_of(conditions, condition); }
const char* name(Centering centering) { return word_of(centerings, centering); }
const char* name(kernels::Model model) { return word_of(models, model); }

const char* axis_name(const poisson::Problem& problem, std::size_t a) {
  return axis_name(problem.shape.size(), a);
}

Conditions parse_conditions(const std::string& text) {
  if (const auto commas = std::count(text.begin(), text.end(), ','); commas > 1)
    throw Error(
        fmt::format("'{}' has {} conditions; give one for both ends of an axis, or LOWER,UPPER such as "
                    "dirichlet,neumann; for single axes there are --bc-z, --bc-y and --bc-x",
                    text, commas + 1));
  const auto [lower, upper] = lower_and_upper(text);
  return {parse_condition(lower), parse_condition(upper)};
}

StatedProblem state_problem(const ProblemOptions& o) {
  StatedProblem p;
  p.reader = open_source(o.grid, o.model.has_value());
  if (p.reader) note_precision(*p.reader, p);
  p.model = o.model.value_or(kernels::Model::sine);
  state_shape(o, p);
  p.problem.centering = o.centering;
  state_ends(o, p);
  const bool is_sine = !p.reader && p.model == kernels::Model::sine;
  p.problem.lengths = lengths_along(o.grid, p.problem.shape.size(), is_sine ? 2.0 : 1.0);
  if (!o.coordinates.empty()) state_coordinates(o, p.problem);
  p.problem.lambda = o.lambda;
  p.model_is_exact = !p.reader && are_zero(p.problem.ends);
  count_unknowns(p.problem);
  return p;
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

void warn_of_unused(const CLI::App& app, const ProblemOptions& o, const StatedProblem& stated) {
  if (stated.reader)
    warn_without_effect(app, "--seed", "f comes from a file");
  else if (stated.model != kernels::Model::random)
    warn_without_effect(app, "--seed", "only --model random draws numbers");
  const auto axes = o.axis_conditions.end() - static_cast<std::ptrdiff_t>(stated.dimensions());
  if (std::all_of(axes, o.axis_conditions.end(), [](const auto& given) { return given.has_value(); }))
    warn_without_effect(app, "--bc", "every axis has an option of its own");
}

void add_poisson_options(CLI::App& app, ProblemOptions& options) {
  OptionGroup problem(app, "Problem");
  add_grid(
      app, options.grid,
      {.grid = "unknowns of a model along each axis: rows x columns, or planes x rows x columns; default: "
               "4095x4095",
       .lengths = "of the rectangle or box, along the same axes; default: 1 each, for the model sine 2"});
  problem.add("--bc", options.conditions, parse_conditions, "SPEC",
              "conditions at the ends of all axes: dirichlet, neumann, periodic (or d, n, p), or LOWER,UPPER "
              "such as dirichlet,neumann; default: dirichlet");
  const char* const ends[] = {"from plane to plane (3D)", "from row to row", "along the rows"};
  for (std::size_t axis = 0; axis < 3; ++axis)
    problem.add(fmt::format("--bc-{}", axis_name(3, axis)), options.axis_conditions[axis], parse_conditions,
                "SPEC", fmt::format("the same for the ends of {} alone, {}", axis_name(3, axis), ends[axis]));
  add_values(
      app, options.grid,
      {"what is given at the ends of z: u where Dirichlet; where Neumann the derivative of u along the "
       "axis, in its direction at both ends (not outwards). A number or a .npy file of the side's values "
       "(the grid's shape without this axis), for both ends or LOWER,UPPER; default: 0",
       "the same at the ends of y", "the same at the ends of x"});
  problem.choice("--centering", options.centering, centerings,
                 "node: unknowns at the nodes, and at Neumann ends, which are nodes; cell: in the middle of "
                 "cells, which end at the ends of the axes; default: node");
  problem.add("--lambda", options.lambda, parse_real, "L",
              "adds L u to the left-hand side (Helmholtz); default: 0");
  problem.name(
      "--coordinates", options.coordinates, "Z.npy",
      "increasing numbers, one axis, where nodes lie along the slowest axis if not equally spaced; "
      "node-centred: of all nodes, Dirichlet ends included, and both ends if periodic; cell-centred: "
      "of the faces between cells, both ends included");
  problem.add("--batch", options.batch, parse_count<>, "B",
              "B independent problems, which the first axis of the file counts (so it has 3 or 4), or that a "
              "model makes, from seeds one after the other");
}

void add_model_option(CLI::App& app, ProblemOptions& options) {
  OptionGroup(app, "Problem")
      .choice("--model", options.model, models,
              "a problem whose solution is known: sine (u a product of sines and cosines, a whole wave along "
              "every axis, 3/4 of one between unlike conditions) or random (u drawn from --seed, f its "
              "discrete Laplacian); default: sine");
}

void add_method_options(CLI::App& app, MethodOptions& options) {
  poisson::Settings& settings = options.settings;
  OptionGroup method(app, "Method");
  method.choice(
      "--method", options.method, methods,
      "fft: transforms by FFT, streams; gemm: in two dimensions, transforms as dense matrix products "
      "shared among all workers (the distributed fast Poisson solver, DFPS), may win where lines are "
      "short or their FFTs poor (see asterism bench methods); default: fft");
  method.choice("--mode", settings.mode, modes,
                "incore keeps the grid where it is worked on, streaming passes it through slab by slab, auto "
                "decides from the memories; default: auto");
  method.add("--slab", settings.slab_planes, parse_count<>, "PLANES",
             "planes (in 2D: rows) of a slab, the piece of the grid that a task works on; default: from the "
             "memories");
  method.flag(
      "--project-mean", [&settings] { settings.mean = poisson::Mean::project; },
      "where no end is Dirichlet and lambda is 0, subtract from f its mean, which has to vanish there; the "
      "solution's mean always does");
}

}  // namespace asterism::tools
