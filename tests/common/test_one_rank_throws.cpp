// Solvers on several ranks, of which one alone goes wrong: in the constructor, between, in solve. All ranks end, with its
// words. Children, as a hang would be the failure.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "../qap/random_instances.hpp"
#include "../support/child.hpp"
#include "../support/skip.hpp"
#include "algorithms/common/set.hpp"
#include "algorithms/decomposition/dbds.hpp"
#include "algorithms/decomposition/dcg.hpp"
#include "algorithms/decomposition/schwarz.hpp"
#include "algorithms/poisson/gemm_solver.hpp"
#include "algorithms/poisson/solver.hpp"
#include "algorithms/qap/search.hpp"
#include "algorithms/relaxation/mlssor.hpp"
#include "algorithms/relaxation/solver.hpp"
#include "algorithms/sparse/blocks/block_matrix.hpp"
#include "algorithms/sparse/conjugate_gradients.hpp"
#include "algorithms/sparse/models/models.hpp"
#include "algorithms/sparse/unsymmetric/bicgstab.hpp"
#include "algorithms/sparse/unsymmetric/gmres.hpp"
#include "runtime/codelet.hpp"
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

/// Ends a solve where it is to go wrong here.
Observer observer(const Runtime& runtime) {
  if (!now(runtime, "solve")) return {};
  return [](const IterationState&) { throw std::runtime_error("no more of this"); };
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
  settings.observer = observer(runtime);
  if (now(runtime, "constructor")) settings.omega = nan;
  Solver solver(runtime, problem, settings);
  std::vector<double> u(static_cast<std::size_t>(solver.row_count() * 63));
  between(runtime);
  static_cast<void>(solver.solve(nullptr, u.data()));
}

/// This rank's rows of a matrix.
sparse::Csr<double> my_rows(const Runtime& runtime) {
  const sparse::MatrixModel model = sparse::parse_matrix_model("poisson2d:40x40");
  const auto [first, end] = sparse::rows_of_rank(model.rows(), runtime.rank(), runtime.ranks());
  return sparse::model_rows(model, first, end);
}

std::shared_ptr<decomposition::Schwarz<double>> schwarz(Runtime& runtime, const sparse::Csr<double>& mine) {
  decomposition::SchwarzSettings settings;
  settings.subdomains.count = now(runtime, "constructor") ? 0 : 4;
  return std::make_shared<decomposition::Schwarz<double>>(runtime, mine, settings);
}

template <class Solver>
void solve_for_ones(Runtime& runtime, Solver& solver) {
  between(runtime);
  const std::vector<double> b(static_cast<std::size_t>(solver.row_count()), 1.);
  std::vector<double> x(b.size());
  static_cast<void>(solver.solve(b.data(), x.data()));
}

/// @param more what the solver is made of beside matrix and settings
template <class Solver, class... More>
void solve_sparse(Runtime& runtime, sparse::Csr<double> mine, const More&... more) {
  if (now(runtime, "constructor")) mine.columns.back() = 1600;
  sparse::LinearSettings settings;
  settings.observer = observer(runtime);
  Solver solver(runtime, mine, settings, more...);
  solve_for_ones(runtime, solver);
}

void same(In<double> p, Out<double> q) { std::copy_n(p.data, q.cols, q.data); }
const Codelet same_task{"test_same", same};

void solve_operator(Runtime& runtime) {
  sparse::LinearOperator<double> identity;
  identity.rows = 1600;
  identity.multiply = [&](const sparse::BlockVector<double>& p, const sparse::BlockVector<double>& q) {
    if (now(runtime, "solve")) throw std::runtime_error("no more of this");
    for (Index k = 0; k < q.count(); ++k) same_task(p[k], q[k], q.hints(k));
  };
  sparse::ConjugateGradients<double> solver(runtime, identity, {});
  solve_for_ones(runtime, solver);
}

void search_assignment(Runtime& runtime) {
  qap::SearchSettings settings;
  settings.generations = 3;
  if (now(runtime, "solve"))
    settings.on_improvement = [](const qap::Improvement&) -> qap::Proceed {
      throw std::runtime_error("no more of this");
    };
  static_cast<void>(
      qap::search(runtime, random_problem(12, Kind::symmetric, Diagonals::zero, 0, 9), settings));
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
    if (solver == "cg") solve_sparse<sparse::ConjugateGradients<double>>(runtime, my_rows(runtime));
    if (solver == "gmres") solve_sparse<sparse::Gmres<double>>(runtime, my_rows(runtime));
    if (solver == "bicgstab") solve_sparse<sparse::BiCgStab<double>>(runtime, my_rows(runtime));
    if (solver == "operator") solve_operator(runtime);
    if (solver == "schwarz") static_cast<void>(schwarz(runtime, my_rows(runtime)));
    if (solver == "dbds")
      solve_sparse<decomposition::Dbds<double>>(runtime, my_rows(runtime),
                                                schwarz(runtime, my_rows(runtime)));
    if (solver == "dcg")
      solve_sparse<decomposition::Dcg<double>>(runtime, my_rows(runtime),
                                               decomposition::SubdomainSettings{.count = 4});
    if (solver == "qap") search_assignment(runtime);
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
  std::vector<Expected> all{
      {"poisson", "constructor", 2, last + "lambda is nan"},
      {"poisson", "between", 4, " (rank 3): the disk is full", 4},
      {"poisson", "solve", 2, last + "task "},
      {"gemm", "constructor", 2, last + "lambda is nan"},
      {"gemm", "solve", 2, last + "task "},
      {"sor", "constructor", 2, last + "omega"},
      {"sor", "solve", 4, of_last + "no more of this"},
      {"mlssor", "constructor", 2, last + "omega"},
      {"mlssor", "solve", 4, of_last + "no more of this"},
      {"cg", "constructor", 2, of_last + "the matrix has an entry in column 1600"},
      {"cg", "solve", 4, of_last + "no more of this"},
      {"qap", "solve", 4, of_last + "no more of this"},
  };
  const std::vector<Expected> more{
      {"gmres", "solve", 4, of_last + "no more of this"},
      {"bicgstab", "solve", 4, of_last + "no more of this"},
      {"operator", "solve", 4, last + "no more of this"},
      {"schwarz", "constructor", 2, of_last + "0 subdomains of 1600 rows"},
      {"dbds", "solve", 4, of_last + "no more of this"},
      {"dcg", "solve", 4, of_last + "no more of this"},
  };
  if (!sanitized) all.insert(all.end(), more.begin(), more.end());  // each takes a second
  std::vector<Ending> endings;
  for (const Expected& e : all)
    endings.push_back({"one rank throws: a child",
                       e.ranks,
                       e.status,
                       e.message,
                       {"SOLVER=" + std::string(e.solver), "PLACE=" + std::string(e.place)}});
  check_endings(endings);
}
