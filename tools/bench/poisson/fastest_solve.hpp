/// \file
/// The fastest of some Poisson solves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "../../../algorithms/poisson/slabbed_problem.hpp"
#include "../../../runtime/collectives.hpp"
#include "../../../runtime/hardware/bandwidth.hpp"
#include "../../cli/solver_run.hpp"
#include "../../poisson/slabs.hpp"
#include "../figures.hpp"

namespace asterism::tools {

/// How a problem is solved again and again.
struct Repetition {
  poisson::Settings settings;
  bool resident;  ///< f and u stay in the workers' memory
  int repeats;    ///< 0: as many as take enough_seconds, but from fewest_repeats to most_repeats
  std::uint64_t seed;
};
constexpr double enough_seconds = 0.2;
constexpr int fewest_repeats = 3, most_repeats = 200;

/// The fastest solve.
struct Fastest {
  poisson::Layout layout = {};
  Index slabs = 0;
  int repeats = 0;
  double allocate = 0;  ///< seconds, of the grid in main memory
  double seconds = std::numeric_limits<double>::infinity();
  Traffic traffic = {};
  double scaled_residual = 0;
  double pipeline = 0;  ///< seconds of raw copies as of a solver that streams (measure_two_passes), through this rank's slabs
};

/// Of solves with the same random f. Called by all ranks.
template <template <class> class Solver, class T>
Fastest fastest_solve(Runtime& runtime, const Repetition& repetition, const StatedPoisson& stated) {
  poisson::Settings settings = repetition.settings;
  settings.fetch_result = !repetition.resident;
  Solver<T> solver(runtime, stated.problem, settings);
  warn_of_unused_mean(solver, settings);
  Fastest fastest{.layout = solver.layout(), .slabs = solver.slab_count()};
  std::optional<Slabs<T>> slabs;
  fastest.allocate = seconds_of([&] { slabs.emplace(runtime, solver); });
  const typename Solver<T>::Known known{grid::Model::random, repetition.seed};
  const auto rhs = [&](Index slab, Tile<T>& f) { solver.fill(slab, f, known); };
  const bool by_time = repetition.repeats == 0;
  fastest.repeats = by_time ? fewest_repeats : repetition.repeats;
  for (int i = 0; i < fastest.repeats; ++i) {
    if (repetition.resident)
      slabs->each(rhs);
    else
      slabs->fill(rhs);
    runtime.wait();
    runtime.barrier();
    const Report report = solver.solve(slabs->tiles());
    if (report.seconds.at("solve") < fastest.seconds)
      fastest.traffic = report.traffic, fastest.seconds = report.seconds.at("solve");
    if (by_time && i + 1 == fewest_repeats) {
      double mean = fastest.seconds / runtime.ranks();
      sum_over_ranks(runtime, &mean, 1);  // ranks repeat equally often
      fastest.repeats = static_cast<int>(std::clamp(enough_seconds / mean, double{fewest_repeats}, double{most_repeats}));
    }
  }
  fastest.scaled_residual =
      solver.check(slabs->tiles(), rhs, stated.model_is_exact ? std::optional(known) : std::nullopt)
          .scaled_residual;
  fastest.traffic = traffic_of_all_ranks(runtime, fastest.traffic);
  runtime.wait();
  if (const PinnedBuffer& memory = slabs->memory(); !repetition.resident && memory.bytes() > 0)
    fastest.pipeline = measure_two_passes(runtime, memory.data(), memory.bytes());
  return fastest;
}

}  // namespace asterism::tools
