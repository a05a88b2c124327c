#include "stated_problem.hpp"

#include <fmt/format.h>

#include "../../algorithms/poisson/problem/problem.hpp"

namespace asterism::tools {
namespace {

using enum RelaxMethod;

bool is_in_stripes(RelaxMethod method) { return method != mlssor && method != wavefront; }

std::string grid_text(const std::vector<Index>& shape) { return poisson::to_string(shape); }

/// Refuses options that the method does not know.
void require_known_to_method(const RelaxOptions& o) {
  const auto require = [&](bool is_given, const char* option, bool is_known, const char* methods_that_know) {
    if (is_given && !is_known)
      throw Error(fmt::format("{}: --method {} knows no such thing; it is for {}", option, name(o.method),
                              methods_that_know));
  };
  const bool stripes = is_in_stripes(o.method), colours = is_by_colours(o.method);
  require(o.omega.has_value(), "--omega", o.method != jacobi && o.method != gauss_seidel,
          "sor, ssor, mlssor and wavefront (gauss-seidel is sor with omega = 1)");
  require(o.layout.has_value(), "--layout", colours, "gauss-seidel, sor and ssor");
  const char* const in_stripes = "jacobi, gauss-seidel, sor and ssor";
  require(o.stripes.has_value(), "--stripes", o.method != wavefront, "all methods but wavefront");
  require(o.sweeps_per_task.has_value(), "--sweeps-per-task", stripes, in_stripes);
  require(o.blocking, "--blocking", stripes, in_stripes);
  require(o.subdomain.has_value(), "--subdomain", o.method == mlssor, "mlssor");
  require(o.layers.has_value(), "--layers", o.method == mlssor, "mlssor");
  require(o.no_alternation, "--no-alternation", o.method == mlssor, "mlssor");
  require(o.tile.has_value(), "--tile", o.method == wavefront, "wavefront");
  require(o.threads.has_value(), "--threads", o.method == wavefront, "wavefront");
  require(o.untuned, "--untuned", o.method == wavefront, "wavefront");
  if (o.untuned && o.tile)
    throw Error("--untuned and --tile: the tiles are chosen by either, leave one away");
  if (o.threads && !o.tile) throw Error("--threads: they are those of a tile; give --tile, too");
}

void state_shape(const RelaxOptions& o, StatedRelaxation& p) {
  p.shape = o.grid.grid.value_or(std::vector<Index>{511, 511});
  if (p.source) {
    p.shape = p.source->header().shape;
    require_grid_of_file(o.grid, *p.source, p.shape);
  }
  const std::size_t axes = p.shape.size();
  if (axes > 3)
    throw Error(
        fmt::format("{}: an array of {} dimensions; at most 3 are wanted", p.source->path().string(), axes));
  if (axes != 2 && o.method != wavefront)
    throw Error(
        fmt::format("--method {} works in two dimensions, the grid is {}; --method wavefront works in one to "
                    "three",
                    name(o.method), grid_text(p.shape)));
  if (axes != 2 && !p.source && p.model == RelaxModel::laplace)
    throw Error(fmt::format("--model laplace has two dimensions, the grid is {}; choose sine or random",
                            grid_text(p.shape)));
}

/// Given values on all sides: the options', or those of the model laplace.
void state_sides(const RelaxOptions& o, StatedRelaxation& p) {
  p.sides.resize(p.shape.size());
  bool any = false;
  each_given_axis(o.grid, p.shape.size(), [&](std::size_t a, const GivenValues& values) {
    any = true;
    state_side(values.lower, p.shape, a, p.sides[a].lower);
    state_side(values.upper, p.shape, a, p.sides[a].upper);
  });
  p.model_is_exact = !p.source && p.model != RelaxModel::laplace && !any;
  if (p.source || p.model != RelaxModel::laplace) return;
  if (any)
    throw Error("--model laplace says itself what u is on the sides; leave --value-x and --value-y away");
  for (Index i = 0; i < p.shape[0]; ++i) {
    const double s = grid::sin_pi(static_cast<double>(i + 1) / static_cast<double>(p.shape[0] + 1));
    p.sides[1].lower.values.push_back(s * s);
  }
}

void state_initial(const RelaxOptions& o, StatedRelaxation& p) {
  if (o.initial.empty()) return;
  p.initial.emplace(o.initial, any_dimensions);
  if (p.initial->header().shape != p.shape)
    throw Error(fmt::format("{}: its shape is {}; the grid's, {}, is wanted", o.initial.string(),
                            shape_text(p.initial->header().shape), shape_text(p.shape)));
}

}  // namespace

Index StatedRelaxation::unknowns() const {
  Index count = 1;
  for (const Index extent : shape) count *= extent;
  return count;
}

bool uses_seed(const StatedRelaxation& stated) {
  return !stated.source && stated.model == RelaxModel::random;
}

StatedRelaxation state_relaxation(const RelaxOptions& o) {
  require_known_to_method(o);
  StatedRelaxation p;
  p.source = open_source(o.grid, o.model.has_value());
  p.precision = precision_of_run(o.common, p.source);
  p.model = o.model.value_or(RelaxModel::sine);
  state_shape(o, p);
  p.lengths = lengths_along(o.grid, p.shape.size(), 1.0);
  state_sides(o, p);
  state_initial(o, p);
  p.tolerance = o.tolerance.value_or(o.sweeps ? 0 : default_tolerance(p.precision));
  return p;
}

}  // namespace asterism::tools
