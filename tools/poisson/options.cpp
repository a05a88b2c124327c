#include "options.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace asterism::tools {
namespace {

using poisson::Centering;
using poisson::Condition;
using poisson::Mode;

const Words<PoissonMethod> poisson_methods{{"fft", PoissonMethod::fft}, {"gemm", PoissonMethod::gemm}};
const Words<Mode> modes{{"auto", Mode::automatic}, {"incore", Mode::incore}, {"streaming", Mode::streaming}};
const Words<Centering> centerings{{"node", Centering::node}, {"cell", Centering::cell}};
const Words<Condition> conditions{
    {"dirichlet", Condition::dirichlet}, {"neumann", Condition::neumann}, {"periodic", Condition::periodic}};
const Words<grid::Model> models{{"sine", grid::Model::sine}, {"random", grid::Model::random}};

Condition parse_condition(const std::string& text) {
  for (const auto& [word, condition] : conditions)
    if (text == word || text == word.substr(0, 1)) return condition;
  throw Error(
      fmt::format("'{}' is unknown; choose dirichlet, neumann or periodic for both ends of an axis, or "
                  "LOWER,UPPER such as dirichlet,neumann",
                  text));
}

}  // namespace

const char* name(PoissonMethod method) { return word_of(poisson_methods, method); }
const char* name(Mode mode) { return word_of(modes, mode); }
const char* name(Condition condition) { return word_of(conditions, condition); }
const char* name(Centering centering) { return word_of(centerings, centering); }
const char* name(grid::Model model) { return word_of(models, model); }

Conditions parse_conditions(const std::string& text) {
  if (const auto commas = std::count(text.begin(), text.end(), ','); commas > 1)
    throw Error(
        fmt::format("'{}' has {} conditions; give one for both ends of an axis, or LOWER,UPPER such as "
                    "dirichlet,neumann; for single axes there are --bc-z, --bc-y and --bc-x",
                    text, commas + 1));
  const auto [lower, upper] = lower_and_upper(text);
  return {parse_condition(lower), parse_condition(upper)};
}

void add_poisson_problem(CLI::App& app, PoissonProblemOptions& options) {
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

void add_poisson_model(CLI::App& app, PoissonProblemOptions& options) {
  OptionGroup(app, "Problem")
      .choice("--model", options.model, models,
              "a problem whose solution is known: sine (u a product of sines and cosines, a whole wave along "
              "every axis, 3/4 of one between unlike conditions) or random (u drawn from --seed, f its "
              "discrete Laplacian); default: sine");
}

void add_poisson_method(CLI::App& app, PoissonMethodOptions& options) {
  poisson::Settings& settings = options.settings;
  OptionGroup method(app, "Method");
  method.choice(
      "--method", options.method, poisson_methods,
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
