/// \file
/// What is behind the pointers of the runtime layer. Private to runtime/.
#pragma once

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

#include "../kept/model_folder.hpp"
#include "../kept/own_folder.hpp"
#include "../ranks/pulses.hpp"
#include "../ranks/ranks.hpp"
#include "../runtime.hpp"
#include "../tasks/codelet_state.hpp"
#include "../tasks/handed_over.hpp"
#include "../tasks/submitted_tasks.hpp"
#include "../tiles/tile_state.hpp"
#include "rest.hpp"

namespace asterism {

/// The reason of a failure that tells nothing more.
constexpr const char* no_standard_exception = "something was thrown that is no std::exception";

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

struct CudaWorker;

struct Runtime::State {
  Options options;
  std::string scheduler_reason;  // why options.scheduler is what it is
  Workplaces workplaces;
  std::optional<ModelFolder> models;  // outlives StarPU
  std::optional<OwnFolder> spill;     // outlives StarPU
  std::optional<Rest> rest;           // of cores that have nothing to do
  int rank = 0, ranks = 1;
  std::int64_t next_tag =
      0;  // MPI tag of the next tile: the same on every rank, as every rank makes the same tiles

  mutable std::mutex mutex;
  std::condition_variable changed;  // a task ended, the watchdog gave up, or a host view became ready
  std::condition_variable end;      // wakes the watchdog, which need not wake for every task

  SubmittedTasks tasks;
  std::atomic<std::uint64_t> views_ended = 0;
  HandedOver by_host, by_kernels;  // what is in tiles
  HandedOver costs;                // of tasks, to those who look for their models

  std::unordered_set<detail::TileState*> tiles;                 // all that live
  std::vector<std::shared_ptr<detail::TileState>> left_behind;  // those of them that nobody has any more
  std::atomic<const Failure*> failure = nullptr;  // the first one since the last wait(): tasks do nothing
  std::list<Failure> failures;                    // all of them: tiles refer to those that they were lost by
  std::atomic<std::uint64_t> period = 1;          // between two calls of wait()

  // Stops: what keeps the tasks of all ranks from beginning, a failure or a cancellation. First all ranks hold the tasks
  // that would begin, then all know why: what a task should have written and did not is never read by another that runs.
  std::atomic<int> holds = 0;      // stops that all ranks do not know of yet
  std::optional<Failure> to_stop;  // that of this rank, until all know
  bool stop_said = false;          // whether the others were told to hold
  std::atomic<int> awaited = 0;    // snapshots that are not ready, tiles that come from tasks of other ranks

  std::atomic<int> waiting = 0;  // threads blocked in wait_until
  std::atomic<std::uint64_t> wake_below =
      0;                         // tasks in flight, from which on they want to be woken by one that ends
  std::atomic<int> meeting = 0;  // threads that wait for the other ranks, in a collective operation
  int unwinding = 0;  // threads that wait for a borrowed tile while an exception passes, with several ranks
  int exceptions_at_start = std::uncaught_exceptions();  // of the thread that made the Runtime
  std::string stall;
  std::atomic<bool> stalled = false;
  bool ending = false;
  std::optional<std::string> farewell;                        // what this rank says that cannot go on
  std::optional<std::chrono::steady_clock::time_point> said;  // to the others, since when
  std::optional<ranks::Answer> answer;                        // what is to be done about it
  std::thread watchdog;

  mutable std::mutex traffic_mutex;
  mutable std::map<std::pair<unsigned, unsigned>, std::int64_t>
      bytes_by_link;  // StarPU's counters, accumulated
  std::atomic<std::int64_t> bytes_from_ranks = 0;

  std::vector<std::unique_ptr<detail::CodeletCore::State>>
      retired;  // codelets that ended; StarPU still knows them

#ifdef ASTERISM_WITH_CUDA
  std::vector<std::shared_ptr<CudaWorker>> cuda_workers =
      std::vector<std::shared_ptr<CudaWorker>>(STARPU_NMAXWORKERS);  // by worker, once a kernel has asked for it
  void end_cuda_workers();
#endif

  TaskTimes times;  // only with a trace
  std::chrono::steady_clock::time_point started_at = std::chrono::steady_clock::now();

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
  /// The failure that all ranks throw; what tasks since the last wait() were to write is lost. Collective.
  const Failure* agree_on_failure(const Failure* known);
  void end_left_behind();
  [[nodiscard]] std::size_t left_behind_count() const {
    const std::lock_guard lock(mutex);
    return left_behind.size();
  }

  /// Whether an exception passes on a rank of several, which the others may not have.
  [[nodiscard]] bool unwinds() const { return ranks > 1 && exception_passes(); }
  [[nodiscard]] bool exception_passes() const { return std::uncaught_exceptions() > exceptions_at_start; }
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

/// StarPU's number of a worker of this rank, from its number among those of the kind; -1: there is none.
int number_in_starpu(WorkerKind kind, int number);

}  // namespace asterism
