// Runtimes of some of the ranks, in programs that use MPI themselves.

#include <doctest/doctest.h>
#include <mpi.h>

#include <cmath>
#include <string>
#include <vector>

#include "../../sparse/linear_solves.hpp"
#include "../../support/skip.hpp"
#include "algorithms/sparse/models/models.hpp"
#include "runtime/collectives.hpp"
#include "runtime/contents.hpp"
#include "runtime/per_rank.hpp"

using namespace asterism;
using namespace asterism::test;

namespace {

/// MPI as a program has it that starts and ends it by itself.
struct Mpi {
  Mpi() {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;
  ~Mpi() { MPI_Finalize(); }
  int rank = 0, ranks = 1;
};
const Mpi& mpi() {
  static const Mpi all;
  return all;
}

/// The ranks with the same `part`.
struct Split {
  explicit Split(int part) { MPI_Comm_split(MPI_COMM_WORLD, part, mpi().rank, &comm); }
  Split(const Split&) = delete;
  Split& operator=(const Split&) = delete;
  ~Split() { MPI_Comm_free(&comm); }
  [[nodiscard]] Options options() const { return {.communicator = MPI_Comm_c2f(comm)}; }
  MPI_Comm comm = MPI_COMM_NULL;
};

const Codelet add{"test_communicators_add", +[](In<double> x, InOut<double> y) { *y.data += *x.data; }};

/// The number of the rank and of its part, added up by tasks of all ranks of a Runtime, on every rank.
double sum_by_tasks(Runtime& runtime, int part) {
  const PerRank<double> mine(runtime, 1, 1);
  const Tile<double> total(runtime, 1, 1, runtime.ranks() - 1);
  set(total, 100 * part);
  for (int r = 0; r < runtime.ranks(); ++r) {
    set(mine[r], r + 1);
    add(mine[r], total, {.rank = r});
  }
  return gather(total).front();
}

/// The largest error of a system of the five-point formula, whose solution is 1 everywhere.
double error_of_solve(Runtime& runtime, Index nodes) {
  const sparse::Csr<double> a = sparse::model_matrix({sparse::ModelFamily::poisson2d, nodes, nodes});
  const LinearSolution<double> solution = solve<double>(runtime, a, row_sums(a), {});
  CHECK(solution.report.reason == Reason::solved);
  REQUIRE(solution.x.size() == static_cast<std::size_t>(a.total_rows));
  double error = 0;
  for (const double x : solution.x)
    if (const double here = std::abs(x - 1); here > error || std::isnan(here)) error = here;
  return error;
}

}  // namespace

TEST_CASE("communicators: each half of the ranks solves its own problem") {
  const int part = 2 * mpi().rank < mpi().ranks ? 0 : 1;
  const Split half(part);
  for (int times = 0; times <= part; ++times) {  // the second half makes one Runtime more
    Runtime runtime(half.options());
    int rank = 0, ranks = 1;
    MPI_Comm_rank(half.comm, &rank);
    MPI_Comm_size(half.comm, &ranks);
    CHECK(runtime.rank() == rank);
    CHECK(runtime.ranks() == ranks);
    CHECK(sum_by_tasks(runtime, part) == 100 * part + ranks * (ranks + 1) / 2);
    double one = 1;
    sum_over_ranks(runtime, &one, 1);
    CHECK(one == ranks);
    CHECK(error_of_solve(runtime, part == 0 ? 30 : 41) < 1e-6);
    // Messages of the program are its own, by whatever tag.
    const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    int came = -1;
    MPI_Sendrecv(&rank, 1, MPI_INT, next, 0, &came, 1, MPI_INT, before, 0, half.comm, MPI_STATUS_IGNORE);
    CHECK(came == before);
    runtime.wait();
  }
  Runtime all;
  CHECK(all.ranks() == mpi().ranks);
  CHECK(sum_by_tasks(all, 3) == 300 + mpi().ranks * (mpi().ranks + 1) / 2);
}

TEST_CASE("communicators: a failure is that of its half alone") {
  const int part = mpi().rank % 2;
  const Split half(part);
  Runtime runtime(half.options());
  const int last = runtime.ranks() - 1;
  const Codelet fail{"test_communicators_fail", +[](const int& p, Out<double>) {
                       if (p == 1) throw Error("an odd rank");
                     }};
  const Tile<double> x(runtime, 1, 1, last), y(runtime, 1, 1, 0);
  fail(part, x);
  copy(x, y);
  if (part == 0) {
    runtime.wait();
  } else {
    CHECK_THROWS_WITH_AS(
        runtime.wait(),
        ("task test_communicators_fail failed" + std::string(last > 0 ? " on rank 1" : "") + ": an odd rank")
            .c_str(),
        TaskFailure);
    CHECK_THROWS_WITH_AS(agree(runtime,
                               [&] {
                                 if (runtime.rank() == last) throw Error("no more");
                               }),
                         ((last > 0 ? "rank 1: " : "") + std::string("no more")).c_str(), Error);
  }
  CHECK(sum_by_tasks(runtime, part) == 100 * part + (last + 1) * (last + 2) / 2);
  runtime.wait();
}

TEST_CASE("communicators: one rank by itself, while others do something else") {
  mpi();
  if (mpi().rank == mpi().ranks - 1) {
    Runtime runtime({.communicator = MPI_Comm_c2f(MPI_COMM_SELF)});
    CHECK(runtime.ranks() == 1);
    CHECK(sum_by_tasks(runtime, 1) == 101);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("communicators: those that are none are refused, and traces of some ranks") {
  mpi();
  CHECK_THROWS_AS(Runtime({.communicator = MPI_Comm_c2f(MPI_COMM_NULL)}), Error);
  const Split most(mpi().rank == 0 ? 0 : 1);
  if (mpi().ranks == 4 && mpi().rank > 0) {
    Options options = most.options();
    options.trace = "trace";
    CHECK_THROWS_WITH_AS(
        Runtime{options},
        "a trace needs all ranks that were launched, or one: leave Options::trace empty, or Options::communicator",
        Error);
  }
  if (mpi().ranks == 1) return;
  MPI_Comm between = MPI_COMM_NULL;
  MPI_Intercomm_create(most.comm, 0, MPI_COMM_WORLD, mpi().rank == 0 ? 1 : 0, 7, &between);
  CHECK_THROWS_WITH_AS(Runtime({.communicator = MPI_Comm_c2f(between)}),
                       "the communicator is one between two groups of ranks: give one of a single group",
                       Error);
  MPI_Comm_free(&between);
}
