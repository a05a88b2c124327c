/// \file
/// What is behind the pointers of the runtime layer. Private to runtime/.
#pragma once

#include <starpu.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <limits>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "../codelet.hpp"
#include "../kept/model_folder.hpp"
#include "../kept/own_folder.hpp"
#include "../runtime.hpp"
#include "../tile.hpp"
#include "handed_over.hpp"
#include "pulses.hpp"
#include "ranks.hpp"
#include "rest.hpp"
#include "task_record.hpp"

namespace asterism {

/// The reason of a failure that tells nothing more.
constexpr const char* no_standard_exception = "something was thrown that is no std::exception";

namespace detail {

struct TileState : std::enable_shared_from_this<TileState> {
  Runtime::State* runtime = nullptr;  // nullptr: it has ended, and the tile with it
  TileShape shape;
  starpu_data_handle_t handle = nullptr;
  int owner = 0;
  bool borrowed = false;
  std::uintptr_t kept = 0;          // its room on the GPU that keeps it, in memory node kept_node
  unsigned kept_node = 0;
  bool written = false;             // reading a tile that nobody wrote makes StarPU abort
  std::atomic<int> host_views = 0;  // HostViews that hold it now
  // What kept the last task that has ended from writing it; nullptr: nothing.
  std::atomic<const Failure*> lost = nullptr;
  const Failure* mended = nullptr;  // a loss after which a task that writes it was submitted
  std::shared_ptr<void> memory;     // borrowed memory that lives as long as this
  std::uint64_t written_in = 0;     // the Runtime's period in which a task that writes it was last submitted

  /// @throw Error: see Tile
  void begin(Runtime::State& its_runtime, const TileShape& its_shape, void* memory_of_caller, int its_owner);
  /// When nobody has the tile any more: ends it, now or, while an exception passes on one of several ranks, with the next
  /// wait() or the Runtime.
  void let_go() noexcept;
  /// Waits for the tile's tasks, brings borrowed memory up to date, and takes the tile out of the Runtime.
  void end() noexcept;
  /// The same for a tile that outlives its Runtime; views of it end too.
  void end_with_runtime() noexcept;

  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(shape.rows) * static_cast<std::size_t>(shape.cols) * shape.element_bytes;
  }
};

/// What keeps a tile from being used, and what to do about it; nullptr: nothing.
const char* flaw_of(const TileState* tile);

inline bool reads(Access access) { return access != Access::write && access != Access::scratch; }
inline bool writes(Access access) { return access != Access::read && access != Access::scratch; }

/// "axpy_f64 (slab 3)": of a task in messages
std::string full_name(const std::string& codelet, const std::string& label);

struct CodeletCore::State {
  std::string name;
  std::string symbol;  // names its performance model
  CpuCall call_cpu;
  std::vector<Kernel> cpu;
  CudaCall call_cuda;
  std::vector<Kernel> cuda;
  starpu_codelet codelet{};
  starpu_perfmodel model{};
};

}  // namespace detail

/// Time that tasks took, for the summary beside a trace.
struct TaskTimes {
  struct Sum {
    long count = 0;
    double seconds = 0;
  };
  std::map<std::string, Sum> by_codelet;
  std::map<int, Sum> by_worker;
};

/// Who can run tasks on this rank. It does not change while the Runtime lives.
struct Workplaces {
  struct Kind {
    unsigned workers = 0;
    std::size_t capacity = 0;  // bytes that the tiles of one task may take
  };
  Kind cpu, cuda;
};

/// What a worker counts. Only its thread writes to it, but for those who take the tasks.
struct alignas(64) TasksOfWorker {
  std::atomic<std::uint64_t> begun = 0, ended = 0;
  std::atomic<detail::TaskRecord*> ended_tasks = nullptr;  // a stack
};

struct Runtime::State {
  Options options;
  Workplaces workplaces;
  std::optional<ModelFolder> models;  // outlives StarPU
  std::optional<OwnFolder> spill;   // outlives StarPU
  std::optional<Rest> rest;         // of cores that have nothing to do
  int rank = 0, ranks = 1;
  std::int64_t next_tag = 0;  // MPI tag of the next tile: the same on every rank, as every rank makes the same tiles

  mutable std::mutex mutex;
  std::condition_variable changed;  // a task ended, the watchdog gave up, or a host view became ready
  std::condition_variable end;      // wakes the watchdog, which need not wake for every task

  // Tasks. Workers count only: they take no lock but for those who wait.
  std::mutex submission;                             // guards the list
  detail::TaskRecord *oldest = nullptr, *newest = nullptr;  // that were submitted; some of them have ended
  std::vector<TasksOfWorker> of_workers = std::vector<TasksOfWorker>(1);  // and last of those that are none
  alignas(64) std::atomic<std::uint64_t> submitted = 0;
  std::atomic<std::uint64_t> ended_before = 0;  // how many had ended some time ago, for those who submit
  alignas(64) std::atomic<std::size_t> beside_streams = 0;  // in flight, and not counted by wait_for_room
  std::atomic<std::uint64_t> views_ended = 0;
  HandedOver by_host, by_kernels;  // what is in tiles

  std::unordered_set<detail::TileState*> tiles;  // all that live
  std::vector<std::shared_ptr<detail::TileState>> left_behind;  // those of them that nobody has any more
  std::atomic<const Failure*> failure = nullptr;  // the first one since the last wait(): tasks do nothing
  std::list<Failure> failures;                    // all of them: tiles refer to those that they were lost by
  std::uint64_t period = 1;                       // between two calls of wait()

  // Stops: what keeps the tasks of all ranks from beginning, a failure or a cancellation. First all ranks hold the tasks
  // that would begin, then all know why: what a task should have written and did not is never read by another that runs.
  std::atomic<int> holds = 0;       // stops that all ranks do not know of yet
  std::optional<Failure> to_stop;   // that of this rank, until all know
  bool stop_said = false;           // whether the others were told to hold
  std::atomic<int> looks = 0;       // snapshots that are not ready

  std::atomic<int> waiting = 0;  // threads blocked in wait_until
  std::atomic<std::uint64_t> wake_below = 0;  // tasks in flight, from which on they want to be woken by one that ends
  std::atomic<int> meeting = 0;  // threads that wait for the other ranks, in a collective operation
  int unwinding = 0;  // threads that wait for a borrowed tile while an exception passes, with several ranks
  int exceptions_at_start = std::uncaught_exceptions();  // of the thread that made the Runtime
  std::string stall;
  std::atomic<bool> stalled = false;
  bool ending = false;
  std::optional<std::string> farewell;  // what this rank says that cannot go on
  std::optional<std::chrono::steady_clock::time_point> said;  // to the others, since when
  std::optional<ranks::Answer> answer;  // what is to be done about it
  std::thread watchdog;

  mutable std::mutex traffic_mutex;
  mutable std::map<std::pair<unsigned, unsigned>, std::int64_t> bytes_by_link;  // StarPU's counters, accumulated
  std::atomic<std::int64_t> bytes_from_ranks = 0;

  std::vector<std::unique_ptr<detail::CodeletCore::State>> retired;  // codelets that ended; StarPU still knows them

  TaskTimes times;  // only with a trace
  std::chrono::steady_clock::time_point started_at = std::chrono::steady_clock::now();

  [[nodiscard]] std::uint64_t in_flight() const {
    const std::uint64_t before = sum(&TasksOfWorker::ended);  // first, or it might become more than those submitted
    return submitted - before;
  }
  /// Tasks whose kernels were called and that have not ended: they have all their data.
  [[nodiscard]] std::uint64_t executing() const {
    const std::uint64_t before = sum(&TasksOfWorker::ended);
    return sum(&TasksOfWorker::begun) - before;
  }

  [[nodiscard]] TasksOfWorker& of_this_worker();
  [[nodiscard]] std::uint64_t sum(std::atomic<std::uint64_t> TasksOfWorker::*count) const;

  /// Blocks until `condition` holds. @throw Stall when the watchdog gives up. `lock` holds `mutex`.
  /// @param wake a task that ends makes it look again where fewer than so many are in flight
  template <class Condition>
  void wait_until(std::unique_lock<std::mutex>& lock, Condition condition,
                  std::uint64_t wake = std::numeric_limits<std::uint64_t>::max()) {
    ++waiting;
    wake_below = std::max<std::uint64_t>(wake_below, wake);
    changed.wait(lock, [&] { return stalled || condition(); });
    if (--waiting == 0) wake_below = 0;
    if (stalled) throw Stall(stall);
  }
  /// Ends what is kept of tasks that have ended, but for handles: what this returns, without the locks.
  [[nodiscard]] detail::TaskRecord* take_ended_tasks();
  /// The failure that all ranks throw; what tasks since the last wait() were to write is lost. Collective.
  const Failure* agree_on_failure(const Failure* known);
  void end_left_behind();
  [[nodiscard]] std::size_t left_behind_count() const {
    const std::lock_guard lock(mutex);
    return left_behind.size();
  }
  static void drop_tasks(detail::TaskRecord* tasks);

  /// Whether an exception passes on a rank of several, which the others may not have.
  [[nodiscard]] bool unwinds() const { return ranks > 1 && std::uncaught_exceptions() > exceptions_at_start; }
  /// A task of this rank has failed: no task begins any more until wait(), on any rank. Blocks until all know.
  const Failure& fail(const std::string& task, const std::string& reason);
  /// Lets no task begin on any rank, from some time on.
  void cancel();
  /// In a task that would begin: until all know why they are stopped.
  void wait_while_held();
  /// What there is to be told to other ranks, and what they tell, of stops. In the watchdog, which holds `mutex`.
  void carry_stops();
  /// The stop is known to all. `mutex` is held.
  void stop(const Failure& why);
  /// Nothing will make progress any more: wakes all who wait, with a Stall.
  void give_up(const std::string& reason);
  void task_ended(detail::TaskRecord& record);
  void watch();  // the watchdog's thread
  void carry_farewells();
  /// With several ranks, for one that cannot go on: returns where all cannot and say the same; otherwise one of them
  /// tells what it says, and all end, with its status.
  void leave(const std::string& text, int status);
  /// The same, when the answer is known.
  void follow(ranks::Answer decided, const std::string& text, int status) const;
  [[nodiscard]] std::string diagnose();
  [[nodiscard]] Machine machine() const;
  /// Bytes that the tiles of one task may take in memories of one kind (the smallest, where they differ).
  [[nodiscard]] static std::size_t capacity(MemoryKind kind);
  [[nodiscard]] Traffic traffic() const;
};

/// What those are thrown that waited for a task.
TaskFailure task_failure(const Failure& failure, ThrownBy ranks = ThrownBy::this_rank);

/// What all ranks throw where some of them have failed.
Error error_on_all_ranks(const Failure& failure);

/// While it lives this rank waits for the others, which the watchdogs do not take for work.
class Meeting {
 public:
  explicit Meeting(Runtime::State& state) : state_(state) { ++state_.meeting; }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  ~Meeting() { --state_.meeting; }

 private:
  Runtime::State& state_;
};

/// The names of StarPU's schedulers, less those that wait for more than tasks.
std::vector<std::string> schedulers();

/// The Runtime that lives in this process, or nullptr.
Runtime::State* current_runtime();

}  // namespace asterism
