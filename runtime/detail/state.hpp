/// \file
/// What is behind the pointers of the runtime layer. Private to runtime/.
#pragma once

#include <starpu.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
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
#include "pulses.hpp"
#include "ranks.hpp"
#include "rest.hpp"

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
  std::atomic<const Failure*> lost = nullptr;  // what kept its last task so far from writing it; nullptr: nothing
  std::uint64_t written_in = 0;     // the Runtime's period in which a task that writes it was last submitted

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

/// A submitted task, until the thread that submits or waits next has seen that it ended.
struct TaskRecord {
  const CodeletCore::State* codelet;
  std::shared_ptr<const void> args;
  std::string label;
  std::uint64_t cost;
  bool streams;
  bool runs = false;  // its kernel was called; on a GPU it may run on when the call is over
  struct Tile {
    std::shared_ptr<TileState> state;
    Access access;
  };
  std::vector<Tile> tiles;               // each once
  std::vector<std::size_t> tile_of_port;  // which of them, for each tile of the ports in their order
  std::vector<Index> counts;              // how many of these each Many and each Optional has
  Runtime::State* runtime;
  starpu_task* task = nullptr;
  std::list<TaskRecord>::iterator self{};

  [[nodiscard]] std::string name() const;
  /// Notes in the tiles that the task was to write that the Runtime's failure has kept it from that.
  void lose_tiles() const;
};

struct CodeletCore::State {
  std::string name;
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

struct Runtime::State {
  Options options;
  std::optional<ModelFolder> models;  // outlives StarPU
  std::optional<OwnFolder> spill;   // outlives StarPU
  std::optional<Rest> rest;         // of cores that have nothing to do
  int rank = 0, ranks = 1;
  std::int64_t next_tag = 0;  // MPI tag of the next tile: the same on every rank, as every rank makes the same tiles

  mutable std::mutex mutex;
  std::condition_variable changed;  // a task ended, the watchdog gave up, or a host view became ready
  std::condition_variable end;      // wakes the watchdog, which need not wake for every task
  std::list<detail::TaskRecord> in_flight;
  // Tasks that ended. Their arguments may own tiles, whose end waits: not in a worker's thread, but in the next one
  // that submits or waits.
  std::list<detail::TaskRecord> finished;
  std::unordered_set<detail::TileState*> tiles;  // all that live
  std::vector<std::shared_ptr<detail::TileState>> left_behind;  // those of them that nobody has any more
  std::size_t streaming = 0;  // those of them that Runtime::wait_for_room counts
  std::atomic<long> executing = 0;  // tasks whose kernels were called and that have not ended: they have all their data
  std::atomic<std::uint64_t> progress = 0;        // grows whenever a task is submitted, starts, runs or ends, or a view ends
  std::atomic<const Failure*> failure = nullptr;  // the first one since the last wait()
  std::list<Failure> failures;                    // all of them: tiles refer to those that they were lost by
  std::uint64_t period = 1;                       // between two calls of wait()

  int waiting = 0;  // threads blocked in wait_until
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

  /// Blocks until `condition` holds. @throw Stall when the watchdog gives up. `lock` holds `mutex`.
  template <class Condition>
  void wait_until(std::unique_lock<std::mutex>& lock, Condition condition) {
    ++waiting;
    changed.wait(lock, [&] { return stalled || condition(); });
    --waiting;
    if (stalled) throw Stall(stall);
  }

  /// Whether an exception passes on a rank of several, which the others may not have.
  [[nodiscard]] bool unwinds() const { return ranks > 1 && std::uncaught_exceptions() > exceptions_at_start; }
  void fail(const std::string& task, const std::string& reason);
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
  [[nodiscard]] std::string diagnose() const;
  [[nodiscard]] Machine machine() const;
  /// Bytes that the tiles of one task may take in memories of one kind (the smallest, where they differ).
  [[nodiscard]] std::size_t capacity(MemoryKind kind) const;
  [[nodiscard]] Traffic traffic() const;
};

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
