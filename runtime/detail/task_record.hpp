/// \file
/// What is kept of a task that was submitted. Private to runtime/.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "../codelet.hpp"
#include "../short_list.hpp"
#include "ranks.hpp"

struct starpu_task;

namespace asterism::detail {

/// A tile of a task, for all its ports together.
struct Buffer {
  std::shared_ptr<TileState> tile;
  Access access = Access::read;
};

/// A task's tiles, each once: whatever its ports do with it, a tile is locked once and comes once.
struct Buffers {
  ShortList<Buffer, 4> all;           // in the order in which they first appear: it is part of the footprint
  ShortList<std::size_t, 4> of_port;  // which of them, for each entry
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

  const ArgsType* type_;
  alignas(std::max_align_t) std::byte here_[64];
  void* where_;
};

/// Made by whoever submits, read by the worker, ended by whoever submits or waits next: arguments may own tiles, whose end
/// waits. Handles (Task) may keep it beyond that.
struct TaskRecord {
  explicit TaskRecord(const KernelArgs& kernel_args) : args(kernel_args) {}

  const CodeletCore::State* codelet = nullptr;
  KeptArgs args;
  std::string label;
  std::uint64_t cost = 0;
  bool streams = true;
  Buffers buffers;
  ShortList<Index, 4> counts;  // how many tiles each Many and each Optional has
  Runtime::State* runtime = nullptr;
  starpu_task* task = nullptr;

  std::shared_ptr<const Failure> failure;  // why the task failed, or was skipped; set before it ends
  std::atomic<bool> ended = false;
  std::atomic<int> holders = 1;      // the Runtime, until it has seen that the task ended, and handles
  TaskRecord* next_ended = nullptr;  // in Runtime::State::ended_tasks
  TaskRecord *older = nullptr, *newer = nullptr;  // in Runtime::State::submitted

  [[nodiscard]] std::string name() const;
  /// The task did not do what it should have: notes that in the tiles that it was to write.
  void lose(const Failure& why);
  void drop() noexcept {
    if (--holders == 0) delete this;
  }
};

}  // namespace asterism::detail
