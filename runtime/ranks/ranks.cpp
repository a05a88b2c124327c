#include "ranks.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <starpu.h>
#include <starpu_mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

#include "../run/ending.hpp"
#include "../run/environment.hpp"
#include "../runtime.hpp"
#include "communicator.hpp"

#ifdef ASTERISM_WITH_CUDA
#include <cuda_runtime_api.h>
#endif

namespace asterism {
namespace ranks {
namespace {

/// MPI can be started once per process, so it lives as long as the process.
struct Session {
  Session() {
    int provided = MPI_THREAD_SINGLE;
    MPI_Initialized(&already_);
    // The main thread waits in MPI while a worker computes on its core: Open MPI is not to spin there.
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    if (already_ == 0) MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (already_ == 0 && finalized == 0) MPI_Finalize();
  }

 private:
  int already_ = 0;
};

/// Where this rank is among all that are on its node.
struct Place {
  int rank = 0, ranks = 1;
};

/// What connect() has found.
struct Connection {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, ranks = 1;
  bool all = true;  // launched ranks are in it
  Place place;
};
Connection connection;
int last_rank = -1;  // in the last communicator

/// @param all whether all launched ranks are in it, and call this
Place place_on_node(MPI_Comm comm, bool all) {
  if (!all) {  // others are on the node, too
    const int neighbours =
        first_number({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE"}, 0);
    if (neighbours > 0)
      return {first_number({"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK"}, 0),
              neighbours};
  }
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  Place place;
  MPI_Comm_rank(node, &place.rank);
  MPI_Comm_size(node, &place.ranks);
  MPI_Comm_free(&node);
  return place;
}

/// What the program has chosen. @throw Error
MPI_Comm chosen_communicator(int handle) {
  int initialized = 0, between_groups = 0;
  MPI_Initialized(&initialized);
  if (initialized == 0)
    throw Error(
        "a communicator is given, but MPI was not initialised: call MPI_Init_thread, with MPI_THREAD_MULTIPLE, "
        "before the first Runtime");
  MPI_Comm const comm = MPI_Comm_f2c(handle);
  if (comm == MPI_COMM_NULL)
    throw Error(fmt::format(
        "communicator {} is none, or MPI_COMM_NULL: give MPI_Comm_c2f() of one that this rank is in",
        handle));
  MPI_Comm_test_inter(comm, &between_groups);
  if (between_groups != 0)
    throw Error("the communicator is one between two groups of ranks: give one of a single group");
  return comm;
}

/// How many cores this rank may think its own, and whether it must share them with the other ranks of its node, because
/// the launcher bound nobody to cores of their own.
struct Cores {
  int count;
  bool shared;
};
Cores cores_of_this_rank() {
  const int mine = cores_allowed(), all = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const int neighbours = connection.place.ranks;
  const bool shared = mine * neighbours > all;
  return {shared ? std::max(1, all / neighbours) : mine, shared};
}

#ifdef ASTERISM_WITH_CUDA
/// Lets StarPU see this rank's share of the node's GPUs only. Left to itself every rank takes them all.
void take_gpus(Environment& environment) {
  const Place place = connection.place;
  const int wanted = first_number({"STARPU_NCUDA"}, -1);
  if (place.ranks == 1 || wanted == 0) return;
  for (const char* chosen : {"STARPU_WORKERS_CUDAID", "CUDA_VISIBLE_DEVICES"})
    if (std::getenv(chosen) != nullptr) return;
  const int gpus = gpus_installed();
  if (gpus == 0) return;  // CPUs do
  const GpuShare share = share_of_gpus(place.rank, place.ranks, gpus, wanted);
  std::string numbers;
  for (int i = 0; i < share.count; ++i) numbers += fmt::format(" {}", (share.first + i) % gpus);
  environment.set("STARPU_WORKERS_CUDAID", numbers);
  environment.suggest("STARPU_NCUDA", std::to_string(share.count));  // more would go round the list again
  if (cudaDeviceProp device{};
      gpus < place.ranks && cudaGetDeviceProperties(&device, share.first) == cudaSuccess) {
    // StarPU takes nine tenths of a GPU's memory, and does not know of the other ranks that do the same.
    const auto sharers = static_cast<std::size_t>((place.ranks + gpus - 1) / gpus);
    environment.suggest("STARPU_LIMIT_CUDA_MEM",
                        std::to_string(device.totalGlobalMem / 10 * 9 / sharers >> 20));
  }
}
#endif

void broadcast_from(int root, std::string& text) {
  const int rank = connection.rank;
  int length = static_cast<int>(text.size());
  MPI_Bcast(&length, 1, MPI_INT, root, connection.comm);
  if (rank != root) text.resize(static_cast<std::size_t>(length));
  MPI_Bcast(text.data(), length, MPI_CHAR, root, connection.comm);
}

}  // namespace

int launched_ranks() {
  return std::max(
      1,
      first_number({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}, 1));
}

MPI_Comm communicator() { return connection.comm; }

void connect(const std::optional<int>& chosen, int& rank, int& ranks) {
  MPI_Comm const from = chosen ? chosen_communicator(*chosen) : MPI_COMM_WORLD;
  static const Session session;
  Connection& c = connection;
  MPI_Comm_dup(from, &c.comm);
  MPI_Comm_rank(c.comm, &c.rank);
  MPI_Comm_size(c.comm, &c.ranks);
  int all = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  c.all = c.ranks == all;
  c.place = place_on_node(c.comm, c.all);
  last_rank = rank = c.rank;
  ranks = c.ranks;
}

void disconnect() {
  if (connection.comm != MPI_COMM_NULL) MPI_Comm_free(&connection.comm);
  connection = {};
}

int known_rank() { return last_rank >= 0 ? last_rank : launched_rank(); }

GpuShare share_of_gpus(int l, int L, int G, int wanted) {
  const int first = l * G / L, end = (l + 1) * G / L;
  const int share = std::max(end - first, std::min(G, 1));
  return {first, wanted < 0 ? share : std::min(wanted, G)};
}

int start(starpu_conf& conf, Environment& environment) {
  if (connection.comm == MPI_COMM_NULL) return starpu_init(&conf);
#ifdef ASTERISM_WITH_CUDA
  take_gpus(environment);
#endif
  const Cores cores = cores_of_this_rank();
  if (conf.ncpus == -1) {
    // StarPU would take all cores that it sees but one, which it keeps for its MPI thread: none are left where each rank
    // has one core, and too many where the ranks share them. Few cores are better spent on computing.
    if (cores.count <= 2)
      conf.ncpus = cores.count;
    else if (cores.shared)
      conf.reserve_ncpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)) - cores.count;
  }
  environment.suggest("STARPU_MPI_NOBIND", "1");
  if (cores.shared)
    environment.suggest("STARPU_WORKERS_NOBIND", "1");  // all ranks would choose the same cores
  if (cores.shared || conf.ncpus >= cores.count)        // StarPU's thread for MPI has no core of its own
    starpu_idle_hook_register([](void*) -> unsigned { return sched_yield() != 0; }, nullptr);
  if (connection.ranks == 1) return starpu_init(&conf);
  return starpu_mpi_init_conf(nullptr, nullptr, 0, connection.comm, &conf);
}

void stop() {
  if (connection.ranks > 1)
    starpu_mpi_shutdown_comm(connection.comm);
  else
    starpu_shutdown();
}

bool can_trace() { return connection.all || connection.ranks == 1; }

void barrier() { MPI_Barrier(connection.comm); }

void wait_for_all() {
  starpu_mpi_wait_for_all(connection.comm);
  starpu_mpi_barrier(connection.comm);
}

std::optional<Failure> agree_on_failure(const std::optional<Failure>& mine) {
  const int rank = connection.rank, ranks = connection.ranks;
  int failing = mine ? rank : ranks;
  MPI_Allreduce(MPI_IN_PLACE, &failing, 1, MPI_INT, MPI_MIN, connection.comm);
  if (failing == ranks) return std::nullopt;
  Failure failure = rank == failing ? *mine : Failure{{}, {}, Blame::task};
  broadcast_from(failing, failure.task);
  broadcast_from(failing, failure.reason);
  int blame = static_cast<int>(failure.blame);
  MPI_Bcast(&blame, 1, MPI_INT, failing, connection.comm);
  failure.blame = static_cast<Blame>(blame);
  int alike = mine && mine->task == failure.task && mine->reason == failure.reason ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &alike, 1, MPI_INT, MPI_MIN, connection.comm);
  failure.rank = alike == 1 ? -1 : failing;
  return failure;
}

void broadcast(std::string& text) { broadcast_from(0, text); }

void broadcast(void* value, std::size_t bytes) {
  MPI_Bcast(value, static_cast<int>(bytes), MPI_BYTE, 0, connection.comm);
}

void gather(const void* mine, Index count, std::size_t element_bytes,
            const std::function<void*(Index)>& resize) {
  const int ranks = connection.ranks;
  std::vector<int> counts(static_cast<std::size_t>(ranks)), firsts(counts.size());
  const int ours = static_cast<int>(count);
  MPI_Allgather(&ours, 1, MPI_INT, counts.data(), 1, MPI_INT, connection.comm);
  std::exclusive_scan(counts.begin(), counts.end(), firsts.begin(), 0);
  MPI_Datatype element{};  // whole elements: MPI counts in int
  MPI_Type_contiguous(static_cast<int>(element_bytes), MPI_BYTE, &element);
  MPI_Type_commit(&element);
  MPI_Allgatherv(mine, ours, element, resize(firsts.back() + counts.back()), counts.data(), firsts.data(),
                 element, connection.comm);
  MPI_Type_free(&element);
}

void send_to_all(_starpu_data_state* handle) {
  starpu_mpi_get_data_on_all_nodes_detached(connection.comm, handle);
}

void register_tile(_starpu_data_state* handle, std::int64_t tag, int owner) {
  starpu_mpi_data_register_comm(handle, tag, owner, connection.comm);
}

bool was_sent(_starpu_data_state* handle, int to) { return starpu_mpi_cached_send(handle, to) != 0; }

void send_again(_starpu_data_state* handle) {
  starpu_mpi_cached_send_clear(handle);
  starpu_mpi_cached_receive_clear(handle);
}

int submit(starpu_task* task, int executor, std::int64_t& received) {
  const unsigned count = STARPU_TASK_GET_NBUFFERS(task);
  const int rank = connection.rank;
  const bool ours = rank == executor;
  int status = 0;
  const auto send = [&](starpu_data_handle_t handle, int to) {
    status = starpu_mpi_isend_detached_prio(handle, to, starpu_mpi_data_get_tag(handle), task->priority,
                                            connection.comm, nullptr, nullptr);
  };
  const auto receive = [&](starpu_data_handle_t handle, int from) {
    status = starpu_mpi_irecv_detached_prio(handle, from, starpu_mpi_data_get_tag(handle), task->priority,
                                            connection.comm, nullptr, nullptr);
    received += static_cast<std::int64_t>(starpu_data_get_size(handle));
  };
  for (unsigned i = 0; i < count && status == 0; ++i) {
    const starpu_data_handle_t handle = STARPU_TASK_GET_HANDLE(task, i);
    const int owner = starpu_mpi_data_get_rank(handle);
    if ((STARPU_TASK_GET_MODE(task, i) & STARPU_R) == 0 || owner == executor) continue;
    if (ours && starpu_mpi_cached_receive_set(handle) == 0) receive(handle, owner);
    if (owner == rank && starpu_mpi_cached_send_set(handle, executor) == 0) send(handle, executor);
  }
  if (ours && status == 0) status = starpu_task_submit(task);
  for (unsigned i = 0; i < count && status == 0; ++i) {
    const starpu_data_handle_t handle = STARPU_TASK_GET_HANDLE(task, i);
    const int owner = starpu_mpi_data_get_rank(handle);
    if ((STARPU_TASK_GET_MODE(task, i) & STARPU_W) == 0) continue;
    // What other ranks have of it is old now; who has written it, has it.
    starpu_mpi_cached_send_clear(handle);
    if (owner == executor || !ours) starpu_mpi_cached_receive_clear(handle);
    if (owner == executor) continue;
    if (ours) {
      send(handle, owner);
      starpu_mpi_cached_receive_set(handle);
    } else if (owner == rank) {
      receive(handle, executor);
      starpu_mpi_cached_send_set(handle, executor);
    }
  }
  return status;
}

}  // namespace ranks

int launched_rank() {
  return first_number({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID"}, 0);
}

void end_all_ranks(int status) {
  remove_own_folders();
  if (ranks::communicator() != MPI_COMM_NULL) MPI_Abort(ranks::communicator(), status);
  int initialized = 0;
  if (ranks::launched_ranks() > 1) MPI_Initialized(&initialized);
  if (initialized != 0) MPI_Abort(MPI_COMM_WORLD, status);
  std::_Exit(status);
}

}  // namespace asterism
