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
  [[nodiscard]] bool is_here() const;

  void* where_;
  const ArgsType* type_;
  alignas(std::max_align_t) std::byte here_[48];
};

/// When a task counts as one that has ended.
enum class TaskEnd : std::uint8_t {
  with_kernel,    ///< when its kernel has returned: StarPU's callbacks take two of its locks
  with_callback,  ///< when StarPU says so: kernels on GPUs go on after they have returned
};

/// Made by whoever submits, read by the worker, ended by whoever submits or waits next: arguments may own tiles, whose end
/// waits. Handles (Task) may keep it beyond that.
struct alignas(64) TaskRecord {
  explicit TaskRecord(const KernelArgs& kernel_args) : args(kernel_args) {}
  TaskRecord(const TaskRecord&) = delete;
  TaskRecord& operator=(const TaskRecord&) = delete;
  // A thread that submits soon needs the memory again.
  static void* operator new(std::size_t bytes);
  static void operator delete(void* memory) noexcept;

  // What a worker looks at comes first: every further cache line that it needs from another core takes longer than all
  // that it does with it.
  const CodeletCore::State* codelet = nullptr;
  Runtime::State* runtime = nullptr;
  starpu_task* task = nullptr;
  TaskRecord* next_ended = nullptr;  // in TasksOfWorker::ended_tasks
  std::atomic<int> holders =
      2;  // the Runtime, until it has seen that the task ended, and handles: one at first
  std::atomic<bool> ended = false;
  TaskEnd end = TaskEnd::with_callback;
  bool streams = true;
  bool writes_out = false;                         // whether it has a port of Access::write
  HandedOver given;                                // to StarPU
  bool repeats_tiles = false, has_counts = false;  // whether buffers.of_port, and counts, have anything
  KeptArgs args;                                   // where they are is in the first line, too

  Buffers buffers;
  ShortList<Index, 2> counts;                     // how many tiles each Many and each Optional has
  std::unique_ptr<const std::string> label;       // seldom there
  std::shared_ptr<const Failure> failure;         // why the task failed, or was skipped; set before it ends
  TaskRecord *older = nullptr, *newer = nullptr;  // in Runtime::State, from oldest to newest

  [[nodiscard]] std::string name() const;
  /// The task did not do what it should have: notes that in the tiles that it was to write.
  void lose(const Failure& why);
  void drop() noexcept {
    // The last one needs no locked operation.
    if (holders.load(std::memory_order_acquire) == 1 || --holders == 0) delete this;
  }
  /// Ends what it holds for the kernel, when the task has ended.
  void clear() noexcept;
};
static_assert(offsetof(TaskRecord, args) + 2 * sizeof(void*) <= alignof(TaskRecord));

}  // namespace asterism::detail
