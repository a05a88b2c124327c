#include "options.hpp"

#include <fmt/format.h>

#include <sstream>

namespace asterism::tools {
namespace {

using enum RelaxMethod;

const Words<RelaxMethod> relax_methods{{"jacobi", jacobi}, {"gauss-seidel", gauss_seidel},
                                       {"sor", sor},       {"ssor", ssor},
                                       {"mlssor", mlssor}, {"wavefront", wavefront}};
const Words<RelaxModel> relax_models{
    {"laplace", RelaxModel::laplace}, {"sine", RelaxModel::sine}, {"random", RelaxModel::random}};
const Words<relaxation::Arrangement> layouts{{"natural", relaxation::Arrangement::natural},
                                             {"separated", relaxation::Arrangement::separated}};

double parse_scaled_tolerance(const std::string& text) {
  return parse_fraction(text, "as scaled residuals do; to sweep without a tolerance give --sweeps alone");
}

double parse_omega(const std::string& text) {
  const double omega = parse_real(text);
  if (!(omega > 0 && omega < 2))
    throw Error(
        fmt::format("omega is {}: it must lie between 0 and 2, both excluded, or no sweep converges", omega));
  return omega;
}

/// "16x128" or "4x8x8x32": sweeps, then points along the axes.
std::vector<Index> parse_tile(const std::string& text) {
  std::vector<Index> extents;
  std::istringstream parts(text + "x");
  for (std::string part; std::getline(parts, part, 'x');) extents.push_back(parse_whole<Index>(part, 1));
  if (extents.size() < 2 || extents.size() > 4)
    throw Error(
        fmt::format("'{}' has {} extent{}: write sweeps x points along the axes, like 16x128 or 4x8x8x32",
                    text, extents.size(), extents.size() == 1 ? "" : "s"));
  return extents;
}

int parse_threads(const std::string& text) {
  const int threads = parse_whole<int>(text, 1);
  if (threads % 32 != 0 || threads > 1024)
    throw Error(fmt::format("'{}' is not a multiple of 32 up to 1024", text));
  return threads;
}

void add_problem(CLI::App& app, RelaxOptions& o) {
  OptionGroup problem(app, "Problem");
  problem.choice("--model", o.model, relax_models,
                 "laplace (2D: f = 0; u is sin^2(pi y) on the side x = 0, y over its length, and zero on the "
                 "others), or problems whose solution is known: sine (u a whole sine wave along every axis), "
                 "random (u drawn from --seed, f its discrete Laplacian); default: sine");
  add_grid(
      app, o.grid,
      {.least_axes = 1,
       .grid = "unknowns of a model along each axis: rows x columns; wavefront also takes planes x rows x "
               "columns, or one extent alone; default: 511x511",
       .lengths = "of the rectangle or box, along the same axes; default: 1 each"});
  add_values(app, o.grid,
             {"u on the sides at both ends of z (3D): a number or a .npy file of the side's values "
              "(the grid's shape without this axis), for both ends or LOWER,UPPER; default: 0",
              "the same at the ends of y: before the first row, after the last",
              "the same at the ends of x: before the first column, after the last"});
  problem.name("--initial", o.initial, "U0.npy", "the first guess, of f's shape; default: zero");
}

void add_sweeping(OptionGroup& method, RelaxOptions& o) {
  method.add(
      "--omega", o.omega, parse_omega, "W",
      "relaxation factor, between 0 and 2; default: the best one, 2 / (1 + sin(pi h)) for sor on a square");
  method.add("--sweeps", o.sweeps, parse_count<>, "N",
             "at most so many sweeps; without --tolerance exactly so many, whatever the residual is then");
  method.add(
      "--tolerance", o.tolerance, parse_scaled_tolerance, "T",
      fmt::format("end at the scaled residual ||f - A u|| / (||A|| ||u|| + ||f||) <= T; default, where "
                  "--sweeps is not given either: {:g} in f64, {:g} in f32",
                  default_tolerance(Precision::f64), default_tolerance(Precision::f32)));
  method.add("--check-every", o.check_every, parse_count<>, "N",
             "sweeps between two residuals; default: chosen");
}

void add_stripes(OptionGroup& method, RelaxOptions& o) {
  method.add(
      "--sweeps-per-task", o.sweeps_per_task, parse_count<>, "K",
      "sweeps that a task makes before stripes exchange their borders (temporal blocking); default: chosen");
  method.choice(
      "--layout", o.layout, layouts,
      "of gauss-seidel, sor, ssor: nodes as they lie in the grid, or the red and the black ones of a "
      "row apart; default: separated");
  method.flag(
      "--blocking", o.blocking,
      "exchange borders after the sweeps of a stripe instead of during them; default: so between GPUs of one "
      "node, and between cores of one rank");
  method.add(
      "--stripes", o.stripes, parse_count<>, "N",
      "pieces of the grid, rows each; default: one for each worker, more where --memory or --gpu-memory "
      "ask for it");
}

void add_subdomains(OptionGroup& method, RelaxOptions& o) {
  method.add("--subdomain", o.subdomain, parse_count<>, "N",
             "of mlssor: extent of a subdomain; default: chosen");
  method.add("--layers", o.layers, parse_count<>, "K",
             "of mlssor: forward sweeps, and backward ones, made at a time; default: chosen");
  method.flag("--no-alternation", o.no_alternation, "of mlssor: all sweeps forward (to compare)");
}

void add_tiles(OptionGroup& method, RelaxOptions& o) {
  method.add(
      "--tile", o.tile, parse_tile, "SxM[xM[xM]]",
      "of wavefront: sweeps of a tile, and on a GPU its points along every axis, on CPUs, which cut only "
      "the slowest axis, its slices, at least as many as sweeps; default: on a GPU by the tile-size model, "
      "whose costs are measured the first time (seconds), on CPUs as `asterism tune wavefront` has found "
      "for such a grid");
  method.add("--threads", o.threads, parse_threads, "N",
             "of wavefront with --tile: threads of a GPU's block; default: 256");
  method.flag("--untuned", o.untuned,
              "of wavefront: tiles by a rule of thumb, without model or measurements");
}

void add_method(CLI::App& app, RelaxOptions& o) {
  OptionGroup method(app, "Method");
  method.choice(
      "--method", o.method, relax_methods,
      "jacobi; gauss-seidel, sor (successive over-relaxation) and ssor (symmetric), by red and black "
      "nodes in turn; mlssor: symmetric in natural order, several layers at a time in drifting "
      "subdomains; wavefront: sor in natural order, exactly as a sequential loop, in skewed tiles, 1D "
      "to 3D; default: sor");
  add_sweeping(method, o);
  add_stripes(method, o);
  add_subdomains(method, o);
  add_tiles(method, o);
}

}  // namespace

const char* name(RelaxMethod method) { return word_of(relax_methods, method); }
const char* name(RelaxModel model) { return word_of(relax_models, model); }
const char* name(relaxation::Arrangement layout) { return word_of(layouts, layout); }

bool is_by_colours(RelaxMethod method) { return method == gauss_seidel || method == sor || method == ssor; }

double default_tolerance(Precision precision) { return precision == Precision::f32 ? 1e-6 : 1e-14; }

void add_relax_options(CLI::App& app, RelaxOptions& options) {
  add_input(
      app, options.grid,
      "f at the unknowns, as numpy.save writes it: rows x columns, x along the last axis; without a file: "
      "--model");
  add_problem(app, options);
  add_method(app, options);
}

}  // namespace asterism::tools
