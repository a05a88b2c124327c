/// \file
/// What is kept of a task that was submitted. Private to runtime/.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../arguments/short_list.hpp"
#include "../codelet.hpp"
#include "../ranks/ranks.hpp"
#include "handed_over.hpp"

struct starpu_task;

namespace asterism::detail {

/// A tile of a task, for all its ports together.
struct Buffer {
  std::shared_ptr<TileState> tile;
  Access access = Access::read;
};

/// A task's tiles, each once: whatever its ports do with it, a tile is locked once and comes once.
struct Buffers {
  ShortList<Buffer, 3> all;          // in the order in which they first appear: it is part of the footprint
  std::vector<std::size_t> of_port;  // which of them, for each entry; empty: each has its own
};

/// A copy of a kernel's arguments.
class KeptArgs {
 public:
  explicit KeptArgs(const KernelArgs& args);
  KeptArgs(const KeptArgs&) = delete;
  KeptArgs& operator=(const KeptArgs&) = delete;
  ~KeptArgs() { end(); }
  [[nodiscard]] const void* get() const { return where_; }
  /// Ends the copy.
  void end() noexcept;

 private:
  [[nodiscard]] static bool is_here(const ArgsType& type);

  void* where_;
  alignas(std::max_align_t) std::byte here_[48];
  const ArgsType* type_;  // nullptr: it has ended
};

/// When a task counts as one that has ended.
enum class TaskEnd : std::uint8_t {
  with_kernel,    ///< when its kernel has returned: StarPU's callbacks take two of its locks
  with_callback,  ///< when StarPU says so: kernels on GPUs go on after they have returned
};

/// Made by whoever submits, read by the worker, ended by whoever submits or waits next: arguments may own tiles, whose end
/// waits. Handles (Task) may keep it beyond that.
///
/// Every cache line that has to come from another core takes longer than all that is done with it. So the first one is
/// all that a worker needs, unless there are arguments or counts, and all that it writes to; who ends the record does not
/// look at it any more.
struct TaskRecord {
  explicit TaskRecord(const KernelArgs& kernel_args) : args(kernel_args) {}
  TaskRecord(const TaskRecord&) = delete;
  TaskRecord& operator=(const TaskRecord&) = delete;
  // A thread that submits soon needs the memory again. It begins with a cache line.
  static void* operator new(std::size_t bytes);
  static void operator delete(void* memory) noexcept;

  const CodeletCore::State* codelet = nullptr;
  starpu_task* task = nullptr;
  HandedOver given;  // to StarPU
  std::atomic<bool> ended = false;
  TaskEnd end = TaskEnd::with_callback;
  bool streams = true;
  bool writes_out = false;                         // whether it has a port of Access::write
  bool repeats_tiles = false, has_counts = false;  // whether buffers.of_port, and counts, have anything
  KeptArgs args;

  Buffers buffers;
  ShortList<Index, 2> counts;                // how many tiles each Many and each Optional has
  std::unique_ptr<const std::string> label;  // seldom there
  std::shared_ptr<const Failure> failure;    // why the task failed, or was skipped; set before it ends
  TaskRecord* next_ended = nullptr;          // in the list that SubmittedTasks::take_ended() makes
  std::atomic<int> holders =
      2;  // the Runtime, until it has seen that the task ended, and handles: one at first

  [[nodiscard]] std::string name() const;
  /// From here to leave_flight() others may look at it: it does not change, but for what its worker writes.
  /// @param number in the order of submission, counted from 1
  void enter_flight(std::uint64_t number) noexcept;
  void leave_flight() noexcept;
  /// Of those in flight that have not ended the one that was submitted first, or nullptr. None may leave meanwhile.
  [[nodiscard]] static const TaskRecord* oldest_in_flight();
  /// The task did not do what it should have: notes that in the tiles that it was to write.
  void lose(const Failure& why);
  void drop() noexcept {
    // The last one needs no locked operation.
    if (holders.load(std::memory_order_acquire) == 1 || --holders == 0) delete this;
  }
  /// Ends what it holds for the kernel, when the task has ended.
  void clear() noexcept;
};
static_assert(offsetof(TaskRecord, args) + sizeof(void*) <= 64);

}  // namespace asterism::detail
