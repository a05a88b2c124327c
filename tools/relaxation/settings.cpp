#include "settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace asterism::tools {
namespace {

/// Settings that all solvers have.
template <class Settings>
Settings common_settings(const RelaxOptions& o, const StatedRelaxation& stated) {
  Settings settings;
  settings.omega = o.omega;
  settings.sweeps = o.sweeps.value_or(0);
  settings.tolerance = stated.tolerance;
  settings.check_every = o.check_every.value_or(0);
  return settings;
}

}  // namespace

relaxation::Settings stripe_settings(const RelaxOptions& o, const StatedRelaxation& stated) {
  using relaxation::Method;
  auto settings = common_settings<relaxation::Settings>(o, stated);
  settings.method = o.method == RelaxMethod::jacobi         ? Method::jacobi
                    : o.method == RelaxMethod::gauss_seidel ? Method::gauss_seidel
                    : o.method == RelaxMethod::ssor         ? Method::ssor
                                                            : Method::sor;
  settings.sweeps_per_task = o.sweeps_per_task.value_or(0);
  settings.stripes = o.stripes.value_or(0);
  settings.arrangement = o.layout.value_or(settings.arrangement);
  if (o.blocking) settings.exchange = relaxation::Exchange::blocking;
  return settings;
}

relaxation::Problem plane_problem(const StatedRelaxation& stated) {
  return {.shape = stated.shape,
          .lengths = stated.lengths,
          .y_lower = stated.sides[0].lower,
          .y_upper = stated.sides[0].upper,
          .x_lower = stated.sides[1].lower,
          .x_upper = stated.sides[1].upper};
}

relaxation::mlssor::Settings layered_settings(const RelaxOptions& o, const StatedRelaxation& stated) {
  auto settings = common_settings<relaxation::mlssor::Settings>(o, stated);
  settings.subdomain = o.subdomain.value_or(settings.subdomain);
  settings.layers = o.layers.value_or(0);
  settings.alternate = !o.no_alternation;
  settings.stripes = o.stripes.value_or(0);
  return settings;
}

wavefront::Problem wavefront_problem(const StatedRelaxation& stated) {
  wavefront::Problem problem{.shape = stated.shape, .lengths = stated.lengths};
  const auto number = [](const relaxation::Side& side) { return side.values.empty() ? side.value : 0; };
  for (const Sides& sides : stated.sides) problem.sides.push_back({number(sides.lower), number(sides.upper)});
  return problem;
}

wavefront::Settings wavefront_settings(const RelaxOptions& o, const StatedRelaxation& stated) {
  return common_settings<wavefront::Settings>(o, stated);
}

wavefront::WavefrontLayout given_layout(const RelaxOptions& o, const StatedRelaxation& stated, bool on_gpu) {
  const std::size_t axes = stated.shape.size(), wanted = on_gpu ? axes + 1 : 2;
  if (o.tile->size() != wanted)
    throw Error(fmt::format("--tile {}: {} extents; {} are wanted, {}", fmt::join(*o.tile, "x"),
                            o.tile->size(), wanted,
                            on_gpu ? "sweeps x points along every axis (on a GPU)"
                                   : "sweeps x slices along the slowest axis (on CPUs)"));
  if (o.threads && !on_gpu)
    throw Error("--threads: they are those of a GPU's blocks, and there is no GPU worker");
  wavefront::WavefrontLayout layout;
  layout.tile.sweeps = o.tile->front();
  std::copy(o.tile->begin() + 1, o.tile->end(), layout.tile.points.end() - static_cast<std::ptrdiff_t>(axes));
  layout.threads = o.threads.value_or(0);
  return layout;
}

template <class T>
void lift_sides(const StatedRelaxation& stated, T* f) {
  Index outer = 1;
  for (std::size_t a = 0; a < stated.shape.size(); ++a) {
    const Index n = stated.shape[a], inner = stated.unknowns() / outer / n;
    const double h = stated.lengths[a] / static_cast<double>(n + 1);
    for (const auto& [side, node] :
         {std::pair{&stated.sides[a].lower, Index{0}}, {&stated.sides[a].upper, n - 1}})
      for (std::size_t k = 0; k < side->values.size(); ++k) {
        const auto i = static_cast<Index>(k) / inner, j = static_cast<Index>(k) % inner;
        T& value = f[(i * n + node) * inner + j];
        value = static_cast<T>(static_cast<double>(value) - side->values[k] / (h * h));
      }
    outer *= n;
  }
}

bool lifts_sides(const RelaxOptions& o, const StatedRelaxation& stated) {
  return o.method == RelaxMethod::wavefront &&
         std::any_of(stated.sides.begin(), stated.sides.end(), [](const Sides& sides) {
           return !sides.lower.values.empty() || !sides.upper.values.empty();
         });
}

template void lift_sides(const StatedRelaxation&, float*);
template void lift_sides(const StatedRelaxation&, double*);

}  // namespace asterism::tools
