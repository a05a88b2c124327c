#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <numbers>
#include <vector>

#include "../../../algorithms/poisson/solver.hpp"
#include "../../../algorithms/relaxation/solver.hpp"
#include "../../../algorithms/wavefront/solver.hpp"
#include "contest.hpp"

namespace asterism::tools {
namespace {

using Shape = std::vector<Index>;

std::size_t count_nodes(const Shape& shape) {
  std::size_t nodes = 1;
  for (const Index n : shape) nodes *= static_cast<std::size_t>(n);
  return nodes;
}

/// f and u stay with the workers. Each solve is given the last one's u: the lowest mode keeps its size with these lengths.
Solve poisson_solve(Runtime& runtime, const Shape& shape, Index slabs) {
  const auto axes = static_cast<double>(shape.size());
  const poisson::Problem problem{
      .shape = shape, .lengths = std::vector<double>(shape.size(), std::numbers::pi * std::sqrt(axes))};
  const Index planes = slabs == 0 ? 0 : parts(shape.front(), slabs);
  const auto f = std::make_shared<std::vector<double>>(count_nodes(shape), 1);
  const auto solver = std::make_shared<poisson::Solver<double>>(
      runtime, problem, poisson::Settings{.slab_planes = planes, .fetch_result = false});
  const auto tiles = std::make_shared<Tiles<double>>(solver->borrow(f->data()));
  return [f, solver, tiles] { solver->solve(*tiles); };  // the tiles end first
}

Solve relaxation_solve(Runtime& runtime, const Shape& shape, const relaxation::Settings& settings) {
  const auto solver = std::make_shared<relaxation::Solver<double>>(
      runtime, relaxation::Problem{.shape = shape, .y_lower = {.value = 1}}, settings);
  const auto u = std::make_shared<std::vector<double>>(count_nodes(shape));
  return [solver, u] { solver->solve(nullptr, u->data()); };
}

Solve wavefront_solve(Runtime& runtime, const Shape& shape, const wavefront::Settings& settings) {
  const auto solver = std::make_shared<wavefront::Solver<double>>(
      runtime, wavefront::Problem{.shape = shape, .sides = {{1, 0}, {0, 0}}}, settings);
  const auto u = std::make_shared<std::vector<double>>(count_nodes(shape));
  return [solver, u] { solver->solve(nullptr, u->data()); };
}

}  // namespace

std::vector<Contest> poisson_contests(const Cores& cores) {
  std::vector<Contest> contests;
  for (const Shape& shape :
       {Shape{63, 63}, {255, 255}, {1023, 1023}, {2047, 2047}, {31, 31, 31}, {127, 127, 127}}) {
    ContestMaker maker(cores, "poisson", poisson::to_string(shape),
                       [=](Runtime& runtime) { return poisson_solve(runtime, shape, 0); },
                       poisson::preferences({.shape = shape}));
    for (const Index slabs : {1, 2, 3, 4, 6, 8, 12, 16, 32})
      maker.option(fmt::format("--slab {}", parts(shape.front(), slabs)),
                   [=](Runtime& runtime) { return poisson_solve(runtime, shape, slabs); });
    contests.push_back(maker.contest());
  }
  return contests;
}

std::vector<Contest> relaxation_contests(const Cores& cores) {
  std::vector<Contest> contests;
  for (const Shape& shape : {Shape{127, 127}, {511, 511}, {2047, 2047}}) {
    const relaxation::Settings plain{.sweeps = shape.front() > 1000 ? 32 : 128};
    ContestMaker maker(cores, "relax", fmt::format("{}, {} sweeps", poisson::to_string(shape), plain.sweeps),
                       [=](Runtime& runtime) { return relaxation_solve(runtime, shape, plain); });
    const auto option = [&](const std::string& words, const auto& change) {
      relaxation::Settings changed = plain;
      change(changed);
      maker.option(words, [=](Runtime& runtime) { return relaxation_solve(runtime, shape, changed); });
    };
    for (const Index stripes : {1, 2, 4, 8, 16})
      option(fmt::format("--stripes {}", stripes), [&](auto& s) { s.stripes = stripes; });
    for (const Index sweeps : {1, 2, 4, 8, 16, 32})
      option(fmt::format("--sweeps-per-task {}", sweeps), [&](auto& s) { s.sweeps_per_task = sweeps; });
    for (const Index sweeps : {4, 16})
      option(fmt::format("--stripes {} --sweeps-per-task {}", cores.cpus, sweeps),
             [&](auto& s) { s.stripes = cores.cpus, s.sweeps_per_task = sweeps; });
    option("--layout natural", [](auto& s) { s.arrangement = relaxation::Arrangement::natural; });
    option("Exchange::overlapped", [](auto& s) { s.exchange = relaxation::Exchange::overlapped; });
    option("--blocking", [](auto& s) { s.exchange = relaxation::Exchange::blocking; });
    contests.push_back(maker.contest());
  }
  return contests;
}

std::vector<Contest> wavefront_contests(const Cores& cores) {
  std::vector<Contest> contests;
  for (const Shape& shape : {Shape{127, 127}, {1023, 1023}}) {
    const wavefront::Settings plain{.omega = {}, .sweeps = 64, .layout = {}};
    ContestMaker maker(cores, "wavefront", fmt::format("{}, 64 sweeps", poisson::to_string(shape)),
                       [=](Runtime& runtime) { return wavefront_solve(runtime, shape, plain); });
    if (cores.gpus == 0)  // the tiles of a GPU are another matter: `asterism tune` tries them
      for (const Index sweeps : {1, 2, 4, 8, 16, 32, 64})
        for (const Index slices : {16, 32, 64, 128, 256, 512}) {
          if (slices < sweeps || slices > shape.front()) continue;
          wavefront::Settings tiled = plain;
          tiled.layout.emplace().tile = {.sweeps = sweeps, .points = {1, slices, 1}};
          maker.option(fmt::format("--tile {}x{}", sweeps, slices),
                       [=](Runtime& runtime) { return wavefront_solve(runtime, shape, tiled); });
        }
    contests.push_back(maker.contest());
  }
  return contests;
}

}  // namespace asterism::tools
