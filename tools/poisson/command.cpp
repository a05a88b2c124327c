#include <fmt/format.h>

#include "../../algorithms/poisson/gemm_solver.hpp"
#include "../../algorithms/poisson/solver.hpp"
#include "../cli/commands.hpp"
#include "../cli/progress.hpp"
#include "../cli/solver_run.hpp"
#include "../files/npy.hpp"
#include "report.hpp"
#include "slabs.hpp"

namespace asterism::tools {
namespace {

struct PoissonOptions {
  CommonOptions common;
  std::string input;
  ProblemOptions problem;
  MethodOptions method;
  bool check = true;
};

template <template <class> class Solver, class T>
PoissonOutcome solve_by(Runtime& runtime, const PoissonOptions& o, const StatedProblem& stated,
                        Stopwatch& stopwatch) {
  require_room<T>(runtime, stated.problem);
  poisson::Settings settings = o.method.settings;
  settings.source_rounding = stated.rounding;
  Solver<T> solver(runtime, stated.problem, settings);
  warn_of_unused_mean(solver, settings);
  std::optional<NpyWriter> writer = open_output(runtime, o.common.output, stated.array, precision_of<T>);
  if (writer) writer->set_leading(stated.array.size() - stated.dimensions() + 1);
  stopwatch.lap("setup");

  Slabs<T> slabs(runtime, solver);
  stopwatch.lap("allocate");

  Progress progress(runtime.rank() == 0 ? o.common.verbosity : Verbosity::quiet);
  const auto show = [&](const char* what, Index slab) {
    progress.update(static_cast<double>(slab) / static_cast<double>(solver.slab_count()), what);
  };
  using Access = typename HostView<T>::Access;
  const typename Solver<T>::Known known{stated.model, o.common.seed};
  const auto read = [&](Index slab, const HostView<T>& f) {
    stated.reader->read_rows(solver.first_plane(slab), f.rows(), f.row(0), f.ld(), Values::finite);
  };
  const auto rhs = [&](Index slab, Tile<T>& f) {
    if (stated.reader)
      read(slab, HostView<T>(f, Access::write));
    else
      solver.fill(slab, f, known);
  };
  if (stated.reader)
    slabs.each_on_host(Access::write, [&](Index slab, const HostView<T>& f) {
      show("reading f", slab);
      read(slab, f);
    });
  else
    slabs.fill(rhs);
  stopwatch.lap("fill");

  show("solving", 0);
  PoissonOutcome outcome{.layout = solver.layout(),
                         .slabs = solver.slab_count(),
                         .report = solver.solve(slabs.tiles()),
                         .check = {},
                         .condition = solver.grid().condition(),
                         .workers = {}};
  if constexpr (requires { solver.block_count(); }) outcome.blocks = solver.block_count();
  stopwatch.lap("solve");

  if (o.check) {
    const auto shown_rhs = [&](Index slab, Tile<T>& f) {
      show("checking the residual", slab);
      rhs(slab, f);
    };
    outcome.error_lacks_mean = solver.grid().has_constants() && stated.model == grid::Model::random;
    outcome.check =
        solver.check(slabs.tiles(), shown_rhs, stated.model_is_exact ? std::optional(known) : std::nullopt);
    outcome.report.reason = outcome.check->reason;
    stopwatch.lap("check");
  }
  if (writer && outcome.has_result()) {
    slabs.each_on_host(Access::read, [&](Index slab, const HostView<T>& u) {
      show("writing u", slab);
      writer->write_rows(solver.first_plane(slab), u.rows(), u.row(0), u.ld());
    });
    commit_output(runtime, writer);
    stopwatch.lap("write");
  }
  outcome.report.traffic = traffic_of_all_ranks(runtime, outcome.report.traffic);
  outcome.workers = workers_of_all_ranks(runtime);
  return outcome;
}

template <class T>
PoissonOutcome solve(Runtime& runtime, const PoissonOptions& o, const StatedProblem& stated,
                     Stopwatch& stopwatch) {
  return o.method.method == Method::gemm ? solve_by<poisson::GemmSolver, T>(runtime, o, stated, stopwatch)
                                         : solve_by<poisson::Solver, T>(runtime, o, stated, stopwatch);
}

int run(const CLI::App& app, const PoissonOptions& o) {
  Stopwatch stopwatch;
  const StatedProblem stated = state_problem(o.problem, o.input);
  tell_replaced(o.common, {o.input});
  warn_of_unused(app, o.problem, stated);
  const Precision precision =
      o.common.precision.value_or(stated.reader ? stated.reader->header().precision : Precision::f64);
  return with_runtime(o.common.runtime, [&](Runtime& runtime) {
    const PoissonOutcome outcome = precision == Precision::f32 ? solve<float>(runtime, o, stated, stopwatch)
                                                               : solve<double>(runtime, o, stated, stopwatch);
    const PoissonRun all{o.common, stated, o.method.method, precision, outcome, stopwatch};
    if (runtime.rank() == 0 && o.common.json)
      print_json(all);
    else if (runtime.rank() == 0 && o.common.verbosity == Verbosity::normal)
      print_text(all, o.input);
    return outcome.report.reason == Reason::solved ? 0 : 1;
  });
}

}  // namespace

Command add_poisson(CLI::App& program) {
  auto options = std::make_shared<PoissonOptions>();
  CLI::App* app =
      program.add_subcommand("poisson", "solve u_xx + u_yy (+ u_zz) + lambda u = f on a rectangle or box");
  app->add_option("F.npy", options->input,
                  "f at the unknowns, as numpy.save writes it: rows x columns, or planes x rows x columns, x "
                  "along the "
                  "last axis; without a file: --model")
      ->type_name("");
  add_model_option(*app, options->problem);
  add_poisson_options(*app, options->problem);
  add_method_options(*app, options->method);
  app->add_flag_callback(
         "--no-check", [options] { options->check = false; },
         "do not compute the residual, which reads f once more")
      ->group("Method");
  add_common_options(*app, options->common);
  app->footer(
      "Examples:\n"
      "  asterism poisson --model sine --grid 4095x4095\n"
      "  asterism poisson F.npy -o U.npy\n"
      "  asterism poisson F.npy -o U.npy --bc neumann --bc-y periodic --centering cell --project-mean\n"
      "  asterism poisson F.npy -o U.npy --bc-x dirichlet,neumann --value-x 1.5,SIDE.npy --lambda -2\n"
      "  asterism poisson F.npy -o U.npy --gpu-memory 4G --mode streaming --json\n"
      "  asterism poisson F.npy -o U.npy --memory 8G --spill /scratch\n"
      "  asterism poisson --model random --grid 1020x1020 --method gemm\n"
      "  mpirun -np 4 asterism poisson --model random --grid 511x511x511\n\n"
      "Extents are transformed fastest where the number of intervals between the ends (nodes + 1 for\n"
      "Dirichlet, node-centred: 4095, 49151) or of cells is a product of small primes.");
  return {app, [app, options] { return run(*app, *options); }};
}

}  // namespace asterism::tools
