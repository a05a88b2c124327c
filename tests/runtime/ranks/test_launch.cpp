// Who has started a process, and what MPI it finds: launchers that MPI does not know, programs that start MPI.

#include <doctest/doctest.h>
#include <mpi.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "../../support/child.hpp"
#include "runtime/collectives.hpp"
#include "runtime/ranks/ranks.hpp"
#include "runtime/run.hpp"

using namespace asterism;
using namespace asterism::test;

/// MPI's own way of putting something before its functions: here an MPI that allows fewer threads than it is asked for.
int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  if (std::getenv("TEST_THREAD_LEVEL") != nullptr) required = MPI_THREAD_SERIALIZED;
  return PMPI_Init_thread(argc, argv, required, provided);
}

namespace {

bool mpi_is_ended() {
  int ended = 0;
  MPI_Finalized(&ended);
  return ended != 0;
}

bool mpi_is_started() {
  int started = 0;
  MPI_Initialized(&started);
  return started != 0;
}

/// Tells how many ranks there are, on the first of them. @return the exit status
int count_ranks() {
  return run({}, [](Runtime& runtime) {
    int one = 1;
    sum_over_ranks(runtime, &one, 1);
    if (runtime.rank() == 0) MESSAGE("ranks: " << runtime.ranks() << ", counted: " << one);
  });
}

std::string counted(int ranks) {
  return "ranks: " + std::to_string(ranks) + ", counted: " + std::to_string(ranks) + "\n";
}

}  // namespace

TEST_CASE("launch: a child" * doctest::skip()) {
  const int status = count_ranks();
  if (status == 0) MESSAGE(std::string(mpi_is_started() ? "MPI was started" : "MPI was not started"));
  std::exit(status);
}

TEST_CASE("launch: processes of a launcher that MPI does not know are no N runs beside each other") {
  const std::string mpi = ranks::mpi_library();
  struct Case {
    Words variables;
    std::string says;  // nothing: another process of these tells
  };
  const auto started = [&](const std::string& who) {
    return "asterism: " + who + ", but MPI (" + mpi +
           ") knows of one: they would not work together; start them by that MPI's mpirun, or by srun --mpi=pmix "
           "where it can; ASTERISM_INDEPENDENT=1 lets each run by itself\n";
  };
  const std::vector<Case> cases{
      {{"PMI_SIZE=4", "PMI_RANK=0"}, started("mpiexec of MPICH or Intel MPI has started 4 processes (PMI_SIZE)")},
      {{"PMI_SIZE=4", "PMI_RANK=3"}, ""},
      {{"SLURM_STEP_NUM_TASKS=3", "SLURM_PROCID=0", "SLURM_STEP_ID=0"},
       started("srun has started 3 processes (SLURM_STEP_NUM_TASKS)")},
      {{"SLURM_STEP_NUM_TASKS=3", "SLURM_PROCID=2", "SLURM_STEP_ID=0"}, ""},
      // Hydra starts its daemons by srun: its own variables count.
      {{"SLURM_STEP_NUM_TASKS=1", "SLURM_PROCID=0", "SLURM_STEP_ID=0", "PMI_SIZE=2", "PMI_RANK=0"},
       started("mpiexec of MPICH or Intel MPI has started 2 processes (PMI_SIZE)")},
      {{"MV2_COMM_WORLD_SIZE=2", "MV2_COMM_WORLD_RANK=0"},
       started("mpirun of MVAPICH2 has started 2 processes (MV2_COMM_WORLD_SIZE)")},
      {{"OMPI_COMM_WORLD_SIZE=5", "OMPI_COMM_WORLD_RANK=0"},
       started("mpirun of Open MPI has started 5 processes (OMPI_COMM_WORLD_SIZE)")},
  };
  for (const Case& c : cases) {
    CAPTURE(c.variables.back());
    const Child child = run_in_child("launch: a child", c.variables);
    CHECK(child.status == static_cast<int>(Blame::input));
    const std::size_t first = child.text.find("asterism: ");
    const std::size_t end = child.text.find('\n', first) + 1;
    CHECK((first == std::string::npos ? "" : child.text.substr(first, end - first)) == c.says);
  }
}

TEST_CASE("launch: one process is one, whatever the batch system has told its script, and needs no MPI") {
  const std::vector<Words> alone{
      {"SLURM_NTASKS=4", "SLURM_NPROCS=4", "SLURM_PROCID=0", "SLURM_JOB_ID=7"},  // in the script of a job
      {"SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID=0", "SLURM_STEP_ID=4294967290"},  // in the shell of salloc
      {"SLURM_STEP_NUM_TASKS=1", "SLURM_PROCID=0", "SLURM_STEP_ID=0"},
      {"PMI_SIZE=1", "PMI_RANK=0"},
      {"PMIX_RANK=0", "PMIX_NAMESPACE=1"},  // left by a program that uses MPI and started this one
      {"PMI_SIZE=4", "PMI_RANK=1", "ASTERISM_INDEPENDENT=1"}};
  for (const Words& variables : alone) {
    CAPTURE(variables.back());
    const Child child = run_in_child("launch: a child", variables);
    CHECK_MESSAGE(child.status == 0, child.text);
    CHECK_MESSAGE(child.text.find(counted(1)) != std::string::npos, child.text);
    CHECK_MESSAGE(child.text.find("MPI was not started") != std::string::npos, child.text);
  }
}

namespace {

/// A test case on two ranks that are told so by no other variables than PMIx's, or by none at all.
Child run_without(const std::string& test_case, const Words& unset, const Words& variables = {}) {
  Words words{"STARPU_NCPU=1", "STARPU_WORKERS_NOBIND=1", "OMPI_MCA_hwloc_base_binding_policy=none"};
  const char* const mpiexec = std::getenv("ASTERISM_MPIEXEC");
  words = words + variables + Words{mpiexec != nullptr ? mpiexec : "mpirun", "-np", "2", "env"};
  for (const std::string& name : unset) words = words + Words{"-u", name};
  return run_in_child(test_case, words);
}

const Words open_mpis{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"};

}  // namespace

TEST_CASE("launch: a launcher with PMIx, and no other variable") {
  const Child child = run_without("launch: a child", open_mpis);
  CHECK_MESSAGE(child.status == 0, child.text);
  CHECK_MESSAGE(child.text.find(counted(2)) != std::string::npos, child.text);
}

TEST_CASE("launch: mpirun, and runs that are to be independent") {
  const Child child = run_without("launch: a child", {}, {"ASTERISM_INDEPENDENT=1"});
  CHECK_MESSAGE(child.status == 0, child.text);
  const std::size_t first = child.text.find(counted(1));
  REQUIRE_MESSAGE(first != std::string::npos, child.text);
  CHECK_MESSAGE(child.text.find(counted(1), first + 1) != std::string::npos, child.text);
}

TEST_CASE("launch: a child with an MPI of few threads" * doctest::skip()) { std::exit(count_ranks()); }

TEST_CASE("launch: a child that starts MPI" * doctest::skip()) {
  MPI_Init(nullptr, nullptr);
  const int status = count_ranks();
  REQUIRE_FALSE(mpi_is_ended());
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);  // goes on with its own work
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) MESSAGE("the program ends MPI");
  MPI_Finalize();
  std::exit(status);
}

TEST_CASE("launch: a child that starts MPI for all its threads" * doctest::skip()) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  int status = count_ranks();
  if (status == 0) status = count_ranks();  // a second Runtime
  REQUIRE_FALSE(mpi_is_ended());
  MPI_Finalize();
  std::exit(status);
}

TEST_CASE("launch: a child that has ended MPI" * doctest::skip()) {
  MPI_Init(nullptr, nullptr);
  MPI_Finalize();
  std::exit(count_ranks());
}

TEST_CASE("launch: MPI for fewer threads than need it says so, and what to do") {
  const std::string hint =
      ranks::mpi_library().starts_with("Open MPI") ? " (Open MPI does with OMPI_MPI_THREAD_LEVEL=3)" : "";
  const std::string own = ": this program has started MPI with MPI_THREAD_SINGLE, and several threads need it at once: "
                          "start it by MPI_Init_thread with MPI_THREAD_MULTIPLE" +
                          hint + ", or leave that to the Runtime\n";
  const std::string given = ": MPI (" + ranks::mpi_library() +
                            ") allows MPI_THREAD_SERIALIZED only, and several threads need it at once: take one that "
                            "allows MPI_THREAD_MULTIPLE\n";
  check_endings({{"launch: a child that starts MPI", 2, static_cast<int>(Blame::input), own},
                 {"launch: a child with an MPI of few threads", 2, static_cast<int>(Blame::machine), given,
                  {"TEST_THREAD_LEVEL=1"}},
                 {"launch: a child that has ended MPI", 2, static_cast<int>(Blame::input),
                  ": MPI has been ended in this process, and cannot start again: call MPI_Finalize after the last "
                  "Runtime\n"}});
}

TEST_CASE("launch: an MPI that the program has started is used, and left to it") {
  const Child told = run_without("launch: a child that starts MPI", {}, {"OMPI_MPI_THREAD_LEVEL=3"});
  CHECK_MESSAGE(told.status == 0, told.text);
  CHECK_MESSAGE(told.text.find(counted(2)) != std::string::npos, told.text);
  CHECK_MESSAGE(told.text.find("the program ends MPI") != std::string::npos, told.text);
  // However it was launched: MPI knows.
  const Child child = run_without("launch: a child that starts MPI for all its threads", open_mpis);
  CHECK_MESSAGE(child.status == 0, child.text);
  const std::size_t first = child.text.find(counted(2));
  REQUIRE_MESSAGE(first != std::string::npos, child.text);
  CHECK_MESSAGE(child.text.find(counted(2), first + 1) != std::string::npos, child.text);
  // Below MPI_THREAD_MULTIPLE runs of one rank each work, beside what the program does with MPI.
  const Child independent = run_without("launch: a child that starts MPI", {}, {"ASTERISM_INDEPENDENT=1"});
  CHECK_MESSAGE(independent.status == 0, independent.text);
  CHECK_MESSAGE(independent.text.find(counted(1)) != std::string::npos, independent.text);
  CHECK_MESSAGE(independent.text.find("the program ends MPI") != std::string::npos, independent.text);
}
