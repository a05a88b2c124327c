#include <fmt/format.h>

#include "../cli/commands.hpp"
#include "analysis/report.hpp"
#include "report.hpp"
#include "solve.hpp"

namespace asterism::tools {
namespace {

void warn_of_unused(const CLI::App& app, const LinearOptions& o, const StatedLinear& stated) {
  if (!uses_seed(o, stated)) warn_without_effect(app, "--seed", "it is of --rhs random");
  if (o.method != LinearMethod::gmres && o.decomposition.accelerate != LinearMethod::gmres)
    warn_without_effect(app, "--restart", "it is of --solver gmres");
  if (o.task != LinearTask::analyse) return;
  if (o.method != LinearMethod::dbds) warn_without_effect(app, "--solver", "--analyse does not solve");
  for (const char* option : {"--tolerance", "--max-iterations", "--check-every", "--preconditioner",
                             "--preconditioner-precision", "--shift", "--format"})
    warn_without_effect(app, option, "--analyse does not solve");
}

int run(const CLI::App& app, const LinearOptions& o) {
  const StatedLinear stated = state_linear(o);
  warn_of_unused(app, o, stated);
  if (o.task == LinearTask::solve) tell_replaced(o.common, {o.matrix, o.right_hand_side}, "x");
  return with_runtime(o.common.runtime, [&](Runtime& runtime) {
    if (o.task == LinearTask::analyse) {
      analyse(runtime, o, stated);
      return 0;
    }
    const LinearOutcome outcome = solve_linear(runtime, o, stated);
    for (const std::string& message : warnings_of(outcome)) warn(message);
    return tell(runtime, o.common, report_of(o, stated, outcome));
  });
}

std::string footer() {
  return fmt::format(
      "Preconditioners:\n{}\n\nModels:\n{}\n\n"
      "Examples:\n"
      "  asterism linear --model poisson2d:1024x1024\n"
      "  asterism linear A.mtx -o X.npy --preconditioner mc-ilu0\n"
      "  asterism linear A.npz B.npy -o X.npy --tolerance 1e-10 --json\n"
      "  asterism linear A.mtx --analyse\n"
      "  asterism linear --model convection2d:500x500 --solver gmres --restart 50 --preconditioner ilu0\n"
      "  asterism linear --model ecology-like --preconditioner chebyshev:4 --preconditioner-precision f32\n"
      "  asterism linear A.mtx --solver dbds --cut graph --subdomains 64 --overlap 2 --accelerate cg --coarse 8\n"
      "  asterism linear --model poisson2d:64x64 --solver dbds --subdomains 64 --analyse\n"
      "  mpirun -np 4 asterism linear A.mtx B.mtx -o X.npy\n\n"
      "Which preconditioner? --analyse recommends one. diagonal costs next to nothing and is what auto takes\n"
      "where rows need more than two colours. With two, as of differences on grids, mc-ilu0 eliminates half of\n"
      "the rows and solves for the other half: about half of the iterations, on vectors of half the size. With\n"
      "more, it takes fewer iterations, each of about twice the work, and one step for each colour; ic0 fewer\n"
      "still, but row by row in A's order, which suits a core better than a GPU; chebyshev:K makes K products\n"
      "with A of each iteration, without any sum over all workers.\n\n"
      "ic0 and chebyshev are for symmetric positive definite matrices and --solver cg; the others have ilu0, and\n"
      "mc-ilu0, mc-ilu:P,Q, mc-sgs, mc-ssor, whose colours are those of A + A^T.\n\n"
      "Exit status 1: the tolerance was not reached, the matrix is not positive definite as --solver cg needs it,\n"
      "the solver or a factorisation broke down; the report says which, and where.",
      sparse::list_of_preconditioners(), sparse::list_of_matrix_models());
}

}  // namespace

Command add_linear(CLI::App& program) {
  auto options = std::make_shared<LinearOptions>();
  CLI::App* app = add_subcommand(program, "linear",
                                 "solve A x = b, A sparse: conjugate gradients, BiCGStab, GMRES, subdomains");
  add_linear_options(*app, *options);
  add_footer(*app, footer());
  return {app, [app, options] { return run(*app, *options); }};
}

}  // namespace asterism::tools
