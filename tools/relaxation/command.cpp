#include <fmt/format.h>

#include <cmath>

#include "../../algorithms/relaxation/mlssor.hpp"
#include "../../algorithms/relaxation/solver.hpp"
#include "../../algorithms/wavefront/solver.hpp"
#include "../cli/commands.hpp"
#include "report.hpp"
#include "settings.hpp"
#include "solve.hpp"

namespace asterism::tools {
namespace {

/// Refuses a grid that has no place to be in, before anything is made for it: f, u, and what the workers make
/// of them, which are u twice and f.
/// @throw Error
void require_room(const Runtime& runtime, const StatedRelaxation& stated, std::size_t element_bytes) {
  const double rows = std::ceil(static_cast<double>(stated.shape.front()) / runtime.ranks());
  const double bytes = 5 * rows * static_cast<double>(stated.row_size() * static_cast<Index>(element_bytes));
  const auto room = static_cast<double>(physical_memory());
  if (bytes > room)
    throw Error(
        fmt::format("a grid of {} takes {}{} (f, u and the workers' copies of them), main memory has {}; use "
                    "more ranks or --precision f32",
                    poisson::to_string(stated.shape), human_bytes(bytes),
                    runtime.ranks() > 1 ? " a rank" : "", human_bytes(room)),
        Blame::machine);
}

/// What a solver in stripes chose.
template <class T>
RelaxChoice choice_of(const RelaxOptions& o, const relaxation::Solver<T>& solver) {
  const relaxation::Settings& settings = solver.settings();
  RelaxChoice choice{.omega = settings.omega,
                     .layout = {},
                     .stripes = static_cast<Index>(solver.stripes().size()),
                     .sweeps_per_task = settings.sweeps_per_task,
                     .check_every = settings.check_every};
  if (is_by_colours(o.method)) choice.layout = settings.arrangement;
  return choice;
}

template <class T>
RelaxChoice choice_of(const RelaxOptions&, const relaxation::mlssor::Solver<T>& solver) {
  const relaxation::mlssor::Settings& settings = solver.settings();
  return {.omega = settings.omega,
          .layout = {},
          .stripes = static_cast<Index>(solver.stripes().size()),
          .check_every = settings.check_every,
          .subdomain = settings.subdomain,
          .layers = settings.layers};
}

template <class T>
wavefront::TileChoice tiles_of(Runtime& runtime, const RelaxOptions& o, const StatedRelaxation& stated,
                               const wavefront::Settings& settings) {
  const bool on_gpu = runtime.machine().count(WorkerKind::cuda) > 0;
  if (o.tile) return {.layout = given_layout(o, stated, on_gpu), .origin = wavefront::LayoutOrigin::given};
  if (o.untuned) return {};
  const auto source =
      stated.has_source() || lifts_sides(o, stated) ? wavefront::Source::given : wavefront::Source::none;
  Progress progress(o.common.verbosity);
  const WhileWorking shown(progress, "choosing tiles; the first time on this GPU what they cost is measured");
  return wavefront::choose_tiles<T>(runtime, wavefront_problem(stated), settings, source);
}

template <class T>
void solve_in_wavefronts(Runtime& runtime, const RelaxOptions& o, const StatedRelaxation& stated,
                         Progress& progress, RelaxOutcome& outcome) {
  wavefront::Settings settings = wavefront_settings(o, stated);
  settings.observer = told_to(progress);
  wavefront::TileChoice tiles = tiles_of<T>(runtime, o, stated, settings);
  settings.layout = tiles.layout;
  wavefront::Solver<T> solver(runtime, wavefront_problem(stated), settings);
  tiles.layout = solver.settings().layout;  // as it was cut to the grid
  outcome.choice = {.omega = solver.settings().omega,
                    .layout = {},
                    .check_every = solver.settings().check_every,
                    .tiles = std::move(tiles)};
  solve_by<T>(runtime, o, stated, solver, progress, outcome);
}

template <class T>
void solve(Runtime& runtime, const RelaxOptions& o, const StatedRelaxation& stated, RelaxOutcome& outcome) {
  require_room(runtime, stated, sizeof(T));
  Progress progress(runtime.rank() == 0 ? o.common.verbosity : Verbosity::quiet);
  const auto observed = [&](auto settings) {
    settings.observer = told_to(progress);
    return settings;
  };
  const auto by = [&](auto solver) {  // not copied: it is made where it is used
    outcome.choice = choice_of(o, solver);
    solve_by<T>(runtime, o, stated, solver, progress, outcome);
  };
  if (o.method == RelaxMethod::mlssor)
    by(relaxation::mlssor::Solver<T>(runtime, plane_problem(stated), observed(layered_settings(o, stated))));
  else if (o.method == RelaxMethod::wavefront)
    solve_in_wavefronts<T>(runtime, o, stated, progress, outcome);
  else
    by(relaxation::Solver<T>(runtime, plane_problem(stated), observed(stripe_settings(o, stated))));
}

int run(const CLI::App& app, const RelaxOptions& o) {
  RelaxOutcome outcome;
  const StatedRelaxation stated = state_relaxation(o);
  outcome.run.precision = stated.precision;
  tell_replaced(o.common, {o.grid.input, o.initial});
  if (!uses_seed(stated)) warn_without_effect(app, "--seed", "it is of --model random");
  return with_runtime(o.common.runtime, [&](Runtime& runtime) {
    in_precision(stated.precision, [&]<class T>() { solve<T>(runtime, o, stated, outcome); });
    return tell(runtime, o.common, report_of(o, stated, outcome));
  });
}

}  // namespace

Command add_relax(CLI::App& program) {
  auto options = std::make_shared<RelaxOptions>();
  CLI::App* app = add_subcommand(program, "relax",
                                 "relax u_xx + u_yy = f, u given on the sides: Jacobi, SOR and their kin");
  add_relax_options(*app, *options);
  add_common_options(*app, options->common);
  add_footer(
      *app,
      "Examples:\n"
      "  asterism relax --grid 1023x1023\n"
      "  asterism relax F.npy -o U.npy --tolerance 1e-10\n"
      "  asterism relax --model laplace --method jacobi --sweeps 1000 --sweeps-per-task 8 --json\n"
      "  asterism relax F.npy --initial U0.npy -o U.npy --omega 1.9 --value-x 1.5,SIDE.npy\n"
      "  asterism relax --method mlssor --grid 2047x2047 --subdomain 32\n"
      "  asterism relax --method wavefront --grid 127x127x127\n"
      "  mpirun -np 4 asterism relax F.npy -o U.npy\n\n"
      "Exit status 1: the tolerance was not reached within --sweeps, or the residual grew or stood still.\n"
      "u is written all the same, unless it is not finite: --initial goes on from it.");
  return {app, [app, options] { return run(*app, *options); }};
}

}  // namespace asterism::tools
