#include "ranks.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <starpu.h>
#include <starpu_mpi.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "../hardware/cores.hpp"
#include "../run/ending.hpp"
#include "../run/environment.hpp"
#include "../runtime.hpp"
#include "communicator.hpp"
#include "launch.hpp"

#ifdef ASTERISM_WITH_CUDA
#include <cuda_runtime_api.h>

#include "mailboxes.hpp"
#endif

namespace asterism {
namespace ranks {
namespace {

bool mpi_has_ended() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  return finalized != 0;
}

/// Whether somebody, this program perhaps, has started MPI and nobody has ended it.
bool mpi_runs() {
  int initialized = 0;
  MPI_Initialized(&initialized);
  return initialized != 0 && !mpi_has_ended();
}

int size_of_running_mpi() {
  int ranks = 1;
  if (mpi_runs()) MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

/// MPI can be started once per process, so it lives as long as the process. What the program has started is the
/// program's to end.
struct Session {
  Session() {
    int provided = MPI_THREAD_SINGLE;
    // The main thread waits in MPI while a worker computes on its core: Open MPI is not to spin there.
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    if (!already) MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() {
    if (!already && mpi_runs()) MPI_Finalize();
  }

  const bool already = mpi_runs();
};

const char* name_of_thread_level(int level) {
  switch (level) {
    case MPI_THREAD_SINGLE:
      return "MPI_THREAD_SINGLE";
    case MPI_THREAD_FUNNELED:
      return "MPI_THREAD_FUNNELED";
    default:
      return "MPI_THREAD_SERIALIZED";
  }
}

/// Threads of StarPU and of the watchdog, and those of the program, send and receive at the same time.
std::optional<Failure> refuse_thread_level(const Session& session) {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  if (level == MPI_THREAD_MULTIPLE) return std::nullopt;
  const std::string name = mpi_library();
  // An MPI_Init that is in a program already need not be changed.
  const char* const open_mpi_can =
      name.starts_with("Open MPI") ? " (Open MPI does with OMPI_MPI_THREAD_LEVEL=3)" : "";
  if (session.already)
    return Failure{
        "start",
        fmt::format("this program has started MPI with {}, and several threads need it at once: start it by "
                    "MPI_Init_thread with MPI_THREAD_MULTIPLE{}, or leave that to the Runtime",
                    name_of_thread_level(level), open_mpi_can),
        Blame::input};
  return Failure{
      "start",
      fmt::format("MPI ({}) allows {} only, and several threads need it at once: take one that allows "
                  "MPI_THREAD_MULTIPLE",
                  name, name_of_thread_level(level)),
      Blame::machine};
}

/// Each of them would solve the whole problem, and write the same files.
std::optional<Failure> refuse_strangers() {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const std::optional<Launch>& by = launch();
  if (ranks > 1 || !by) return std::nullopt;
  if (by->processes ? *by->processes == 1 : by->process == 0) return std::nullopt;
  const std::string how_many =
      by->processes ? fmt::format("{} processes", *by->processes) : "several processes";
  return Failure{
      "start",
      fmt::format(
          "{} has started {} ({}), but MPI ({}) knows of one: they would not work together; start them by that "
          "MPI's mpirun, or by srun --mpi=pmix where it can; ASTERISM_INDEPENDENT=1 lets each run by itself",
          by->launcher, how_many, by->variable, mpi_library()),
      Blame::input};
}

/// Where this rank is among all that are on its node.
struct Place {
  int rank = 0, ranks = 1;
};

/// What connect() has found.
struct Connection {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm node = MPI_COMM_NULL;  // those of it that are on this node, where several ranks were launched
  int rank = 0, ranks = 1;
  bool all = true;  // launched ranks are in it
  Place place;
};
Connection connection;
int last_rank = -1;  // in the last communicator

/// Divides the cores of this node among its ranks. Collective.
void divide_cores() {
  struct Told {
    CoreSet allowed;
    std::uint64_t device = 0, inode = 0;  // of the group that has the quota: the same in all its containers
  };
  const CoresFound& found = cores_found();
  const Place& place = connection.place;
  MPI_Comm const node = connection.node;
  Told mine;
  for (const Core& core : found.allowed)
    if (core.number < CPU_SETSIZE) mine.allowed.set(static_cast<std::size_t>(core.number));
  if (struct stat group{}; found.quota && stat(found.quota->folder.c_str(), &group) == 0) {
    mine.device = group.st_dev;
    mine.inode = group.st_ino;
  }
  Place here;
  MPI_Comm_rank(node, &here.rank);
  MPI_Comm_size(node, &here.ranks);
  std::vector<Told> all(static_cast<std::size_t>(here.ranks));
  MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, node);
  if (here.ranks < place.ranks) {
    // Ranks of other communicators, which do not tell: they are like this one, unless that has cores of its own.
    const bool has_own = static_cast<int>(mine.allowed.count()) * place.ranks <= found.visible;
    all.assign(has_own ? 1 : static_cast<std::size_t>(place.ranks), mine);
    here = has_own ? Place{} : place;
  }
  std::vector<CoreSet> allowed;
  CoreSet together;
  int quota_sharers = 0;
  for (const Told& rank : all) {
    allowed.push_back(rank.allowed);
    together |= rank.allowed;
    quota_sharers += rank.device == mine.device && rank.inode == mine.inode ? 1 : 0;
  }
  share_cores({share_of_cores(allowed, static_cast<std::size_t>(here.rank)), here.ranks,
               static_cast<int>(together.count()), quota_sharers});
}

/// Finds it, and divides the node's cores among its ranks. Collective.
void find_place_on_node() {
  Connection& c = connection;
  MPI_Comm_split_type(c.comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &c.node);
  MPI_Comm_rank(c.node, &c.place.rank);
  MPI_Comm_size(c.node, &c.place.ranks);
  const int neighbours =
      first_number({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE"}, 0);
  if (!c.all && neighbours > c.place.ranks)  // others are on the node, too
    c.place = {
        first_number({"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK"}, 0),
        neighbours};
  divide_cores();
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

#ifdef ASTERISM_WITH_CUDA
/// Lets StarPU see this rank's share of the node's GPUs only. Left to itself every rank takes them all.
void take_gpus(Environment& environment) {
  const int gpus = gpus_installed(), ranks = connection.place.ranks;
  const std::optional<GpuShare> ours = our_gpus(first_number({"STARPU_NCUDA"}, -1));
  if (!ours) return;
  std::string numbers;
  for (int i = 0; i < ours->count; ++i) numbers += fmt::format(" {}", (ours->first + i) % gpus);
  environment.set("STARPU_WORKERS_CUDAID", numbers);
  environment.suggest("STARPU_NCUDA", std::to_string(ours->count));  // more would go round the list again
  if (cudaDeviceProp device{};
      gpus < ranks && cudaGetDeviceProperties(&device, ours->first) == cudaSuccess) {
    // StarPU takes nine tenths of a GPU's memory, and does not know of the other ranks that do the same.
    const auto sharers = static_cast<std::size_t>((ranks + gpus - 1) / gpus);
    environment.suggest("STARPU_LIMIT_CUDA_MEM",
                        std::to_string(device.totalGlobalMem / 10 * 9 / sharers >> 20));
  }
}

std::optional<Mailboxes> mailboxes;
#endif

/// @return StarPU's status
int send(starpu_data_handle_t tile, int to, int priority) {
#ifdef ASTERISM_WITH_CUDA
  if (mailboxes->carry(tile, to)) return mailboxes->send(tile, to, priority);
#endif
  return starpu_mpi_isend_detached_prio(tile, to, starpu_mpi_data_get_tag(tile), priority, connection.comm,
                                        nullptr, nullptr);
}

/// @param reader what is about to read it on this rank, or nullptr @param received grows by its bytes
/// @return StarPU's status
int receive(starpu_data_handle_t tile, int from, int priority, [[maybe_unused]] const starpu_task* reader,
            std::int64_t& received) {
  received += static_cast<std::int64_t>(starpu_data_get_size(tile));
#ifdef ASTERISM_WITH_CUDA
  if (mailboxes->carry(tile, from)) return mailboxes->receive(tile, from, priority, reader);
#endif
  return starpu_mpi_irecv_detached_prio(tile, from, starpu_mpi_data_get_tag(tile), priority, connection.comm,
                                        nullptr, nullptr);
}

void broadcast_from(int root, std::string& text) {
  const int rank = connection.rank;
  int length = static_cast<int>(text.size());
  MPI_Bcast(&length, 1, MPI_INT, root, connection.comm);
  if (rank != root) text.resize(static_cast<std::size_t>(length));
  MPI_Bcast(text.data(), length, MPI_CHAR, root, connection.comm);
}

}  // namespace

std::string mpi_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);  // allowed before MPI_Init
  const std::string version(text.data(), static_cast<std::size_t>(length));
  return version.substr(0, version.find_first_of(",\n"));
}

bool may_have_others() {
  if (independent()) return false;
  if (const std::optional<Launch>& by = launch(); by && by->may_have_others()) return true;
  return size_of_running_mpi() > 1;  // started by the program, under a launcher that is not known here
}

MPI_Comm communicator() { return connection.comm; }

std::optional<Failure> connect(const std::optional<int>& chosen, int& rank, int& ranks) {
  if (mpi_has_ended())
    throw Error(
        "MPI has been ended in this process, and cannot start again: call MPI_Finalize after the last Runtime",
        Blame::input, ThrownBy::all_ranks);
  MPI_Comm const from = chosen ? chosen_communicator(*chosen) : MPI_COMM_WORLD;
  static const Session session;
  Connection& c = connection;
  MPI_Comm_dup(from, &c.comm);
  MPI_Comm_rank(c.comm, &c.rank);
  MPI_Comm_size(c.comm, &c.ranks);
  int all = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  c.all = c.ranks == all;
  if (all > 1) find_place_on_node();
  rank = c.rank;
  ranks = c.ranks;
  // A launcher of which MPI knows nothing has numbers, too: one of its processes speaks for all.
  last_rank = chosen ? rank : launched_rank();
  const std::optional<Failure> level = refuse_thread_level(session);
  return level ? level : refuse_strangers();
}

void disconnect() {
  for (MPI_Comm* comm : {&connection.node, &connection.comm})
    if (*comm != MPI_COMM_NULL) MPI_Comm_free(comm);
  connection = {};
}

int known_rank() { return last_rank >= 0 ? last_rank : launched_rank(); }

void let_first_rank_speak() {
  constexpr std::chrono::seconds long_enough{2};
  if (size_of_running_mpi() == 1) std::this_thread::sleep_for(long_enough);
}

GpuShare share_of_gpus(int l, int L, int G, int wanted) {
  const int first = l * G / L, end = (l + 1) * G / L;
  const int share = std::max(end - first, std::min(G, 1));
  return {first, wanted < 0 ? share : std::min(wanted, G)};
}

std::optional<GpuShare> our_gpus(int wanted) {
  const Place& place = connection.place;
  const int gpus = gpus_installed();
  if (place.ranks == 1 || gpus == 0 || wanted == 0) return {};
  for (const char* chosen : {"STARPU_WORKERS_CUDAID", "CUDA_VISIBLE_DEVICES"})
    if (std::getenv(chosen) != nullptr) return {};
  return share_of_gpus(place.rank, place.ranks, gpus, wanted);
}

int start(starpu_conf& conf, Environment& environment) {
  if (connection.comm == MPI_COMM_NULL) return starpu_init(&conf);
#ifdef ASTERISM_WITH_CUDA
  take_gpus(environment);
#endif
  environment.suggest("STARPU_MPI_NOBIND", "1");
  if (connection.ranks == 1) return starpu_init(&conf);
  return starpu_mpi_init_conf(nullptr, nullptr, 0, connection.comm, &conf);
}

void connect_gpus() {
#ifdef ASTERISM_WITH_CUDA
  mailboxes.emplace(connection.comm, connection.node);
#endif
}

void stop() {
#ifdef ASTERISM_WITH_CUDA
  mailboxes.reset();
#endif
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

void forget_tile([[maybe_unused]] _starpu_data_state* handle) {
#ifdef ASTERISM_WITH_CUDA
  if (mailboxes) mailboxes->forget(handle);
#endif
}

bool was_sent(_starpu_data_state* handle, int to) { return starpu_mpi_cached_send(handle, to) != 0; }

void send_again(_starpu_data_state* handle) {
  starpu_mpi_cached_send_clear(handle);
  starpu_mpi_cached_receive_clear(handle);
}

int submit(starpu_task* task, int executor, std::int64_t& received) {
  const unsigned count = STARPU_TASK_GET_NBUFFERS(task);
  const int rank = connection.rank;
  const int priority = task->priority;
  const bool ours = rank == executor;
  int status = 0;
  std::vector<starpu_data_handle_t> written;
  for (unsigned i = 0; i < count && status == 0; ++i) {
    const starpu_data_handle_t handle = STARPU_TASK_GET_HANDLE(task, i);
    const int owner = starpu_mpi_data_get_rank(handle);
    if ((STARPU_TASK_GET_MODE(task, i) & STARPU_W) != 0) written.push_back(handle);
    if ((STARPU_TASK_GET_MODE(task, i) & STARPU_R) == 0 || owner == executor) continue;
    if (ours && starpu_mpi_cached_receive_set(handle) == 0)
      status = receive(handle, owner, priority, task, received);
    if (owner == rank && starpu_mpi_cached_send_set(handle, executor) == 0)
      status = send(handle, executor, priority);
  }
#ifdef ASTERISM_WITH_CUDA
  if (ours)
    for (const starpu_data_handle_t handle : written) mailboxes->note_writer(handle, *task);
#endif
  if (ours && status == 0) status = starpu_task_submit(task);  // and it may be no more
  for (const starpu_data_handle_t handle : written) {
    if (status != 0) break;
    const int owner = starpu_mpi_data_get_rank(handle);
    // What other ranks have of it is old now; who has written it, has it.
    starpu_mpi_cached_send_clear(handle);
    if (owner == executor || !ours) starpu_mpi_cached_receive_clear(handle);
    if (owner == executor) continue;
    if (ours) {
      status = send(handle, owner, priority);
      starpu_mpi_cached_receive_set(handle);
    } else if (owner == rank) {
      status = receive(handle, executor, priority, nullptr, received);
      starpu_mpi_cached_send_set(handle, executor);
    }
  }
  return status;
}

}  // namespace ranks

int launched_rank() {
  if (const std::optional<ranks::Launch>& by = ranks::launch()) return by->process;
  int rank = 0;
  if (!ranks::independent() && ranks::mpi_runs()) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

void end_all_ranks(int status) {
  remove_own_folders();
  if (ranks::communicator() != MPI_COMM_NULL) MPI_Abort(ranks::communicator(), status);
  if (ranks::may_have_others() && ranks::mpi_runs()) MPI_Abort(MPI_COMM_WORLD, status);
  std::_Exit(status);
}

}  // namespace asterism
