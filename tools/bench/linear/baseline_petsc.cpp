// baseline_petsc MODEL [iterations] [repeats]
//
// Conjugate gradients as PETSc has them, on a model matrix (`asterism linear --help` has the names), without a task:
// what `asterism bench linear` is measured against, in a program of its own, since PETSc's workers are ranks:
//
//     mpirun -n 2 baseline_petsc poisson2d:1024x1024
//
// From x = 0, b = 1, float64; of none, jacobi, icc and ilu each the best time of the repeats, a line of JSON: first so
// many iterations (100), then those to a relative residual of 1e-6. Of several ranks each factorises its own rows
// (block Jacobi), as PETSc's factorisations are sequential. PETSc's own options can be given, too.

#include <petscksp.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "../../../algorithms/sparse/models/models.hpp"
#include "../../../runtime/error.hpp"

using asterism::Index;

namespace {

constexpr double tolerance = 1e-6;
constexpr Index most_iterations = 20000;

void require(PetscErrorCode code) {
  if (code != 0) MPI_Abort(PETSC_COMM_WORLD, 4);  // PETSc has said why
}

/// A x = b in PETSc's hands; the rows in as many equal parts as there are ranks.
struct System {
  std::vector<PetscInt> begins, columns;
  Mat a = nullptr;
  Vec b = nullptr, x = nullptr;
  Index rows = 0;
};

void make(const asterism::sparse::MatrixModel& model, System& system) {
  PetscMPIInt rank = 0, ranks = 1;
  MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
  MPI_Comm_size(PETSC_COMM_WORLD, &ranks);
  system.rows = model.rows();
  const auto mine =
      asterism::sparse::model_rows(model, system.rows * rank / ranks, system.rows * (rank + 1) / ranks);
  if (mine.entries() > std::numeric_limits<PetscInt>::max() ||
      system.rows > std::numeric_limits<PetscInt>::max())
    throw asterism::Error("the matrix is too large for this PETSc's indices; choose a smaller model");
  system.begins.assign(mine.row_begin.begin(), mine.row_begin.end());
  system.columns.assign(mine.columns.begin(), mine.columns.end());
  const auto local = static_cast<PetscInt>(mine.rows()), all = static_cast<PetscInt>(system.rows);
  // Copies everything.
  require(MatCreate(PETSC_COMM_WORLD, &system.a));
  require(MatSetSizes(system.a, local, local, all, all));
  require(MatSetType(system.a, MATAIJ));
  require(MatSetFromOptions(system.a));
  require(MatSeqAIJSetPreallocationCSR(system.a, system.begins.data(), system.columns.data(),
                                       mine.values.data()));
  require(MatMPIAIJSetPreallocationCSR(system.a, system.begins.data(), system.columns.data(),
                                       mine.values.data()));
  require(MatSetOption(system.a, MAT_SPD, PETSC_TRUE));
  require(MatCreateVecs(system.a, &system.x, &system.b));
  require(VecSet(system.b, 1));
}

/// A preconditioner by the name of its PCType; a factorisation of each rank's rows where there are several.
void choose(KSP solver, const std::string& name) {
  PetscMPIInt ranks = 1;
  MPI_Comm_size(PETSC_COMM_WORLD, &ranks);
  PC preconditioner = nullptr;
  require(KSPGetPC(solver, &preconditioner));
  const bool in_parts = ranks > 1 && (name == PCICC || name == PCILU);
  require(PCSetType(preconditioner, in_parts ? PCBJACOBI : name.c_str()));
  if (!in_parts) return;
  require(KSPSetUp(solver));
  KSP* part = nullptr;
  require(PCBJacobiGetSubKSP(preconditioner, nullptr, nullptr, &part));
  require(KSPGetPC(*part, &preconditioner));
  require(PCSetType(preconditioner, name.c_str()));
}

struct Times {
  double setup = 0, solve = std::numeric_limits<double>::infinity();
  Index iterations = 0;
  double residual = 0;  // ||b - A x|| / ||b||
};

KSP solver_of(const System& system, const std::string& name, Times& times) {
  KSP solver = nullptr;
  MPI_Barrier(PETSC_COMM_WORLD);
  const double start = MPI_Wtime();
  require(KSPCreate(PETSC_COMM_WORLD, &solver));
  require(KSPSetType(solver, KSPCG));
  require(KSPSetOperators(solver, system.a, system.a));
  require(KSPSetNormType(solver, KSP_NORM_UNPRECONDITIONED));
  choose(solver, name);
  require(KSPSetFromOptions(solver));
  require(KSPSetUp(solver));
  require(KSPSetUpOnBlocks(solver));
  MPI_Barrier(PETSC_COMM_WORLD);
  times.setup = MPI_Wtime() - start;
  return solver;
}

/// The best of the repeats. @param rtol 0: all of the iterations
Times run(const System& system, const std::string& name, double rtol, Index iterations, int repeats) {
  Times times;
  KSP solver = solver_of(system, name, times);
  require(KSPSetTolerances(solver, rtol, 0, PETSC_DEFAULT, static_cast<PetscInt>(iterations)));
  if (rtol == 0) require(KSPSetConvergenceTest(solver, KSPConvergedSkip, nullptr, nullptr));
  for (int repeat = 0; repeat <= repeats; ++repeat) {  // the first to warm up
    MPI_Barrier(PETSC_COMM_WORLD);
    const double start = MPI_Wtime();
    require(KSPSolve(solver, system.b, system.x));
    MPI_Barrier(PETSC_COMM_WORLD);
    if (repeat > 0) times.solve = std::min(times.solve, MPI_Wtime() - start);
  }
  PetscInt made = 0;
  require(KSPGetIterationNumber(solver, &made));
  times.iterations = made;
  Vec r = nullptr;
  require(VecDuplicate(system.b, &r));
  require(MatMult(system.a, system.x, r));
  require(VecAYPX(r, -1, system.b));
  PetscReal norm = 0;
  require(VecNorm(r, NORM_2, &norm));
  times.residual = norm / std::sqrt(static_cast<double>(system.rows));
  require(VecDestroy(&r));
  require(KSPDestroy(&solver));
  return times;
}

void compare(const std::string& model, Index iterations, int repeats) {
  System system;
  make(asterism::sparse::parse_matrix_model(model), system);
  PetscMPIInt ranks = 1;
  MPI_Comm_size(PETSC_COMM_WORLD, &ranks);
  for (const char* name : {PCNONE, PCJACOBI, PCICC, PCILU}) {
    const Times timed = run(system, name, 0, iterations, repeats),
                solved = run(system, name, tolerance, most_iterations, repeats);
    require(PetscPrintf(PETSC_COMM_WORLD,
                        "{\"model\":\"%s\",\"ranks\":%d,\"preconditioner\":\"%s\",\"timed_iterations\":%lld,"
                        "\"microseconds_per_iteration\":%.2f,\"timed_residual\":%.6e,\"setup_seconds\":%.6f,"
                        "\"iterations\":%lld,\"residual\":%.3e,\"solve_seconds\":%.6f,\"repeats\":%d}\n",
                        model.c_str(), ranks, name, static_cast<long long>(timed.iterations),
                        timed.solve * 1e6 / static_cast<double>(timed.iterations), timed.residual,
                        timed.setup, static_cast<long long>(solved.iterations), solved.residual, solved.solve,
                        repeats));
  }
  require(VecDestroy(&system.x));
  require(VecDestroy(&system.b));
  require(MatDestroy(&system.a));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: [mpirun -n RANKS] baseline_petsc MODEL [iterations] [repeats]\n");
    return 2;
  }
  require(PetscInitialize(&argc, &argv, nullptr, nullptr));
  int status = 0;
  try {
    const auto number = [&](int at, long long without) {
      return std::max(1LL, argc > at ? std::atoll(argv[at]) : without);
    };
    compare(argv[1], number(2, 100), static_cast<int>(number(3, 3)));
  } catch (const asterism::Error& error) {
    PetscPrintf(PETSC_COMM_WORLD, "baseline_petsc: %s\n", error.what());
    status = 2;
  }
  PetscFinalize();
  return status;
}
