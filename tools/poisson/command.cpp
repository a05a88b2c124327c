
#include "../../algorithms/poisson/gemm_solver.hpp"
#include "../../algorithms/poisson/solver.hpp"
#include "../cli/commands.hpp"
#include "report.hpp"
#include "solve.hpp"

namespace asterism::tools {
namespace {

template <template <class> class Solver, class T>
void solve_by(Runtime& runtime, const PoissonOptions& o, const StatedPoisson& stated,
              PoissonOutcome& outcome) {
  Stopwatch& stopwatch = outcome.run.stopwatch;
  require_room<T>(runtime, stated.problem);
  PoissonSolve<Solver, T> steps(runtime, o, stated);
  std::optional<NpyWriter> writer = open_output(runtime, o.common.output, stated.array, precision_of<T>);
  if (writer) writer->set_leading(stated.array.size() - stated.dimensions() + 1);
  stopwatch.lap("setup");
  steps.allocate(runtime);
  stopwatch.lap("allocate");
  steps.fill();
  stopwatch.lap("fill");
  steps.solve(outcome);
  stopwatch.lap("solve");
  if (o.check) {
    outcome.check = steps.check();
    outcome.run.report.reason = outcome.check->reason;
    stopwatch.lap("check");
  }
  if (writer && outcome.run.has_result()) {
    steps.write(*writer);
    commit_output(runtime, writer);
    stopwatch.lap("write");
  }
  outcome.run.sum_up(runtime, steps.slices());
}

int run(const CLI::App& app, PoissonOptions& o) {
  PoissonOutcome outcome;
  const StatedPoisson stated = state_poisson(o.problem);
  tell_replaced(o.common, {o.problem.grid.input});
  warn_of_unused(app, o.problem, stated);
  outcome.run.precision = precision_of_run(o.common, stated.reader);
  fit_machine_to_problem(o.common.runtime, o.method.method, stated);
  return with_runtime(o.common.runtime, [&](Runtime& runtime) {
    in_precision(outcome.run.precision, [&]<class T>() {
      o.method.method == PoissonMethod::gemm ? solve_by<poisson::GemmSolver, T>(runtime, o, stated, outcome)
                                             : solve_by<poisson::Solver, T>(runtime, o, stated, outcome);
    });
    return tell(runtime, o.common, report_of(o, stated, outcome));
  });
}

}  // namespace

Command add_poisson(CLI::App& program) {
  auto options = std::make_shared<PoissonOptions>();
  CLI::App* app =
      add_subcommand(program, "poisson", "solve u_xx + u_yy (+ u_zz) + lambda u = f on a rectangle or box");
  add_input(
      *app, options->problem.grid,
      "f at the unknowns, as numpy.save writes it: rows x columns, or planes x rows x columns, x along the "
      "last axis; without a file: --model");
  add_poisson_model(*app, options->problem);
  add_poisson_problem(*app, options->problem);
  add_poisson_method(*app, options->method);
  OptionGroup(*app, "Method")
      .flag(
          "--no-check", [options] { options->check = false; },
          "do not compute the residual, which reads f once more");
  add_common_options(*app, options->common);
  add_footer(
      *app,
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
