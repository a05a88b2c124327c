// Solvers on several ranks, of which one alone goes wrong: in the constructor, between, in solve. All ranks end, with its
// words. Children, as a hang would be the failure.

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "../support/child.hpp"
#include "../support/skip.hpp"
#include "algorithms/common/set.hpp"
#include "algorithms/poisson/gemm_solver.hpp"
#include "algorithms/poisson/solver.hpp"
#include "algorithms/relaxation/mlssor.hpp"
#include "algorithms/relaxation/solver.hpp"
#include "algorithms/sparse/blocks/block_matrix.hpp"
#include "algorithms/sparse/conjugate_gradients.hpp"
#include "algorithms/sparse/models/models.hpp"
#include "runtime/run.hpp"

using namespace asterism;
using namespace asterism::test;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::string variable(const char* name) { return std::getenv(name) != nullptr ? std::getenv(name) : ""; }

/// Whether something is to go wrong here.
bool now(const Runtime& runtime, const std::string& place) {
  return variable("PLACE") == place && runtime.rank() == runtime.ranks() - 1;
}

void between(const Runtime& runtime) {
  if (now(runtime, "between")) throw std::runtime_error("the disk is full");
}

template <class Solver>
void solve_poisson(Runtime& runtime) {
  poisson::Problem problem{.shape = {127, 63}};
  if (now(runtime, "constructor")) problem.lambda = nan;
  Solver solver(runtime, problem);
  std::vector<double> planes(static_cast<std::size_t>(solver.plane_count() * 63), 1.);
  Tiles<double> f = solver.borrow(planes.data()), never = solver.own();
  between(runtime);
  for (const Tile<double>& tile : never)
    if (tile.owner() != runtime.ranks() - 1) set(runtime, tile, [](Index, Index) { return 1; });
  static_cast<void>(solver.solve(f));
  static_cast<void>(solver.solve(variable("PLACE") == "solve" ? never : f));
}

template <class Solver, class Settings>
void relax(Runtime& runtime, Settings settings) {
  relaxation::Problem problem{.shape = {127, 63}};
  settings.sweeps = 50;
  if (now(runtime, "constructor")) settings.omega = nan;
  if (now(runtime, "solve"))
    settings.observer = [](const IterationState&) { throw std::runtime_error("no more of this"); };
  Solver solver(runtime, problem, settings);
  std::vector<double> u(static_cast<std::size_t>(solver.row_count() * 63));
  between(runtime);
  static_cast<void>(solver.solve(nullptr, u.data()));
}

void conjugate_gradients(Runtime& runtime) {
  const sparse::MatrixModel model = sparse::parse_matrix_model("poisson2d:40x40");
  const auto [first, end] = sparse::rows_of_rank(model.rows(), runtime.rank(), runtime.ranks());
  sparse::Csr<double> mine = sparse::model_rows(model, first, end);
  sparse::LinearSettings settings;
  if (now(runtime, "constructor")) mine.columns.back() = 1600;
  if (now(runtime, "solve"))
    settings.observer = [](const IterationState&) { throw std::runtime_error("no more of this"); };
  sparse::ConjugateGradients<double> solver(runtime, mine, settings);
  between(runtime);
  const std::vector<double> b(static_cast<std::size_t>(end - first), 1.);
  std::vector<double> x(b.size());
  static_cast<void>(solver.solve(b.data(), x.data()));
}

}  // namespace

TEST_CASE("one rank throws: a child" * doctest::skip()) {
  std::exit(run({.gpus = 0}, [](Runtime& runtime) {
    const std::string solver = variable("SOLVER");
    if (solver == "poisson") solve_poisson<poisson::Solver<double>>(runtime);
    if (solver == "gemm") solve_poisson<poisson::GemmSolver<double>>(runtime);
    if (solver == "sor") relax<relaxation::Solver<double>>(runtime, relaxation::Settings{});
    if (solver == "mlssor")
      relax<relaxation::mlssor::Solver<double>>(runtime, relaxation::mlssor::Settings{});
    if (solver == "cg") conjugate_gradients(runtime);
  }));
}

TEST_CASE("one rank throws: in a solver's constructor, between and in solve") {
  const std::string last = " (rank 1): ", of_last = ": rank 1: ";
  struct Expected {
    const char *solver, *place;
    int status;
    std::string message;
    int ranks = 2;
  };
  std::vector<Ending> endings;
  for (const Expected& e : {
           Expected{"poisson", "constructor", 2, last + "lambda is nan"},
           Expected{"poisson", "between", 4, " (rank 3): the disk is full", 4},
           Expected{"poisson", "solve", 2, last + "task "},
           Expected{"gemm", "constructor", 2, last + "lambda is nan"},
           Expected{"gemm", "solve", 2, last + "task "},
           Expected{"sor", "constructor", 2, last + "omega"},
           Expected{"sor", "solve", 4, of_last + "no more of this"},
           Expected{"mlssor", "constructor", 2, last + "omega"},
           Expected{"mlssor", "solve", 4, of_last + "no more of this"},
           Expected{"cg", "constructor", 2, of_last + "the matrix has an entry in column 1600"},
           Expected{"cg", "solve", 4, of_last + "no more of this"},
       })
    endings.push_back({"one rank throws: a child",
                       e.ranks,
                       e.status,
                       e.message,
                       {"SOLVER=" + std::string(e.solver), "PLACE=" + std::string(e.place)}});
  check_endings(endings);
}
