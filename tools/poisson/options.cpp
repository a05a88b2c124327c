#include "options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

namespace asterism::tools {
namespace {

using poisson::Centering;
using poisson::Condition;
using poisson::Mode;

const Dimensions any_dimensions{1, std::numeric_limits<std::size_t>::max()};

Condition parse_condition(const std::string& text) {
  for (const Condition condition : {Condition::dirichlet, Condition::neumann, Condition::periodic})
    if (const std::string_view word = name(condition); text == word || text == word.substr(0, 1))
      return condition;
  throw Error(
      fmt::format("'{}' is unknown; choose dirichlet, neumann or periodic for both ends of an axis, or "
                  "LOWER,UPPER such as dirichlet,neumann",
                  text));
}

/// The first axis of options for z, y and x.
std::size_t first_axis(const poisson::Problem& problem) { return 3 - problem.shape.size(); }

/// Shape and batch from the file, or from --grid and --batch.
void state_shape(const ProblemOptions& o, StatedProblem& p) {
  if (!p.reader) {
    p.problem.shape = o.grid.value_or(std::vector<Index>{4095, 4095});
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
  if (o.grid && *o.grid != p.problem.shape)
    throw Error(fmt::format("{} holds {} values, --grid says {}; leave --grid away", file,
                            poisson::to_string(p.problem.shape), poisson::to_string(*o.grid)));
  p.reader->set_leading(p.array.size() - axes + 1);
}

/// f or given values come from this file, too.
void note_precision(const NpyReader& reader, StatedProblem& p) {
  p.rounding = std::max(p.rounding, roundoff(reader.header().precision));
}

/// Conditions and values at all ends.
void state_ends(const ProblemOptions& o, StatedProblem& p) {
  poisson::Problem& problem = p.problem;
  if (first_axis(problem) == 1)
    for (const auto& [given, option] :
         {std::pair{o.axis_conditions[0].has_value(), "--bc-z"}, {o.values[0].has_value(), "--value-z"}})
      if (given)
        throw Error(fmt::format("{}: the problem has two dimensions; its axes are y (from row to row) and x",
                                option));
  problem.ends.resize(problem.shape.size());
  for (std::size_t a = 0; a < problem.shape.size(); ++a) {
    poisson::Ends& ends = problem.ends[a];
    const std::size_t option = a + first_axis(problem);
    const Conditions conditions = o.axis_conditions[option].value_or(o.conditions);
    ends.lower.condition = conditions.lower;
    ends.upper.condition = conditions.upper;
    if (!o.values[option]) continue;
    for (const auto& [given, end] :
         {std::pair{&o.values[option]->lower, &ends.lower}, {&o.values[option]->upper, &ends.upper}}) {
      end->value = given->number;
      end->values = read_side(*given, problem.shape, a);
      if (!given->file.empty()) note_precision(NpyReader(given->file, any_dimensions), p);
    }
  }
}

/// Those of --coordinates, along the slowest axis.
void state_coordinates(const ProblemOptions& o, poisson::Problem& problem) {
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
  if (o.lengths && std::abs(problem.lengths[0] - span) > rounding)
    throw fail(fmt::format(
        "they span {}; --lengths says {} for that axis; give {} there, or leave --lengths away if "
        "the others are 1",
        span, problem.lengths[0], span));
  problem.lengths[0] = span;
}

void state_lengths(const ProblemOptions& o, bool sine, poisson::Problem& problem) {
  const std::size_t axes = problem.shape.size();
  if (o.lengths && o.lengths->size() != axes)
    throw Error(fmt::format("--lengths gives {} lengths, the problem has {} axes", o.lengths->size(), axes));
  problem.lengths = o.lengths.value_or(std::vector<double>(axes, sine ? 2.0 : 1.0));
  if (!o.coordinates.empty()) state_coordinates(o, problem);
}

bool are_zero(const std::vector<poisson::Ends>& ends) {
  for (const poisson::Ends& axis : ends)
    for (const poisson::End* end : {&axis.lower, &axis.upper})
      if (end->value != 0 || !end->values.empty()) return false;
  return true;
}

}  // namespace

const char* name(Method method) { return method == Method::gemm ? "gemm" : "fft"; }

const char* name(Mode mode) {
  return mode == Mode::streaming ? "streaming" : mode == Mode::incore ? "incore" : "auto";
}

const char* name(Condition condition) {
  return condition == Condition::dirichlet ? "dirichlet"
         : condition == Condition::neumann ? "neumann"
                                           : "periodic";
}

const char* name(grid::Model model) { return model == grid::Model::sine ? "sine" : "random"; }

const char* name(Centering centering) { return centering == Centering::node ? "node" : "cell"; }

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

StatedProblem state_problem(const ProblemOptions& o, const std::string& input) {
  StatedProblem p;
  if (!input.empty()) {
    if (o.model) throw Error(fmt::format("{} and --model: f comes from either, leave one away", input));
    p.reader.emplace(input, any_dimensions);
    note_precision(*p.reader, p);
  }
  p.model = o.model.value_or(grid::Model::sine);
  state_shape(o, p);
  p.problem.centering = o.centering;
  state_ends(o, p);
  state_lengths(o, !p.reader && p.model == grid::Model::sine, p.problem);
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
  else if (stated.model != grid::Model::random)
    warn_without_effect(app, "--seed", "only --model random draws numbers");
  const auto axes = o.axis_conditions.end() - static_cast<std::ptrdiff_t>(stated.dimensions());
  if (std::all_of(axes, o.axis_conditions.end(), [](const auto& given) { return given.has_value(); }))
    warn_without_effect(app, "--bc", "every axis has an option of its own");
}

void add_poisson_options(CLI::App& app, ProblemOptions& options) {
  const auto add = [&](const std::string& option, auto& target, auto parser, const char* type,
                       const std::string& help) {
    add_parsed_option(app, option, target, parser, help)->type_name(type)->group("Problem");
  };
  add(
      "--grid", options.grid, [](const std::string& text) { return parse_grid(text); }, "[Lx]MxN",
      "unknowns of a model along each axis: rows x columns, or planes x rows x columns; default: 4095x4095");
  add(
      "--lengths", options.lengths, [](const std::string& text) { return parse_lengths(text); }, "[LZx]LYxLX",
      "of the rectangle or box, along the same axes; default: 1 each, for the model sine 2");
  add("--bc", options.conditions, parse_conditions, "SPEC",
      "conditions at the ends of all axes: dirichlet, neumann, periodic (or d, n, p), or LOWER,UPPER such as "
      "dirichlet,neumann; default: dirichlet");
  const char* const ends[] = {"from plane to plane (3D)", "from row to row", "along the rows"};
  for (std::size_t axis = 0; axis < 3; ++axis)
    add(fmt::format("--bc-{}", axis_name(3, axis)), options.axis_conditions[axis], parse_conditions, "SPEC",
        fmt::format("the same for the ends of {} alone, {}", axis_name(3, axis), ends[axis]));
  for (std::size_t axis = 0; axis < 3; ++axis)
    add(fmt::format("--value-{}", axis_name(3, axis)), options.values[axis], parse_values, "VALUES",
        axis == 0 ? "what is given at the ends of z: u where Dirichlet; where Neumann the derivative of u "
                    "along the "
                    "axis, in its direction at both ends (not outwards). A number or a .npy file of the "
                    "side's values "
                    "(the grid's shape without this axis), for both ends or LOWER,UPPER; default: 0"
                  : fmt::format("the same at the ends of {}", axis_name(3, axis)));
  add_choice_option<Centering, Centering>(
      app, "--centering", options.centering, {{"node", Centering::node}, {"cell", Centering::cell}},
      "node: unknowns at the nodes, and at Neumann ends, which are nodes; cell: in "
      "the middle of cells, which end at the ends of the axes; default: node")
      ->group("Problem");
  add("--lambda", options.lambda, parse_real, "L", "adds L u to the left-hand side (Helmholtz); default: 0");
  app.add_option(
         "--coordinates", options.coordinates,
         "increasing numbers, one axis, where nodes lie along the slowest axis if not equally spaced; "
         "node-centred: of all nodes, Dirichlet ends included, and both ends if periodic; cell-centred: of "
         "the "
         "faces between cells, both ends included")
      ->type_name("Z.npy")
      ->group("Problem");
  add(
      "--batch", options.batch, [](const std::string& text) { return parse_whole<Index>(text, 1); }, "B",
      "B independent problems, which the first axis of the file counts (so it has 3 or 4), or that a model "
      "makes, "
      "from seeds one after the other");
}

void add_model_option(CLI::App& app, ProblemOptions& options) {
  using grid::Model;
  add_choice_option<std::optional<Model>, Model>(app, "--model", options.model,
                                                 {{"sine", Model::sine}, {"random", Model::random}},
                                                 "a problem whose solution is known: sine (u a product of "
                                                 "sines and cosines, a whole wave along every axis, 3/4 of "
                                                 "one between unlike conditions) or random (u drawn from "
                                                 "--seed, f its discrete Laplacian); default: sine")
      ->group("Problem");
}

void add_method_options(CLI::App& app, MethodOptions& options) {
  poisson::Settings& settings = options.settings;
  add_choice_option<Method, Method>(
      app, "--method", options.method, {{"fft", Method::fft}, {"gemm", Method::gemm}},
      "fft: transforms by FFT, streams; gemm: in two dimensions, transforms as dense matrix products shared "
      "among all workers (the distributed fast Poisson solver, DFPS), may win where lines are short or their "
      "FFTs poor (see asterism bench methods); default: fft")
      ->group("Method");
  add_choice_option<Mode, Mode>(
      app, "--mode", settings.mode,
      {{"auto", Mode::automatic}, {"incore", Mode::incore}, {"streaming", Mode::streaming}},
      "incore keeps the grid where it is worked on, streaming passes it through slab by slab, auto decides "
      "from the "
      "memories; default: auto")
      ->group("Method");
  add_parsed_option(
      app, "--slab", settings.slab_planes,
      [](const std::string& text) { return parse_whole<Index>(text, 1); },
      "planes (in 2D: rows) of a slab, the piece of the grid that a task works on; default: from the "
      "memories")
      ->type_name("PLANES")
      ->group("Method");
  app.add_flag_callback(
         "--project-mean", [&settings] { settings.mean = poisson::Mean::project; },
         "where no end is Dirichlet and lambda is 0, subtract from f its mean, which has to vanish there; "
         "the "
         "solution's mean always does")
      ->group("Method");
}

}  // namespace asterism::tools
