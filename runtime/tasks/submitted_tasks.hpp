/// \file
/// The tasks of this rank that were submitted. Private to runtime/.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "task_record.hpp"

namespace asterism {

/// The tasks that a worker has ended, for those who submit. One thread at a time pushes, one at a time takes; neither waits
/// for the other. What each writes to has cache lines of its own.
class EndedTasks {
 public:
  EndedTasks() : taken_from_(new Block), pushed_to_(taken_from_) {}
  EndedTasks(const EndedTasks&) = delete;
  EndedTasks& operator=(const EndedTasks&) = delete;
  ~EndedTasks();

  /// How many were pushed.
  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// What this thread reads next, it reads after others could see the task here.
  void push(detail::TaskRecord& record);
  /// Those that were not taken yet, the newest first, before the list `others`: linked by next_ended.
  [[nodiscard]] detail::TaskRecord* take(detail::TaskRecord* others);

 private:
  struct Block {
    std::array<detail::TaskRecord*, 255> records;
    Block* next = nullptr;
  };

  Block* taken_from_;
  std::uint64_t taken_ = 0;
  alignas(64) Block* pushed_to_;
  std::atomic<std::uint64_t> count_ = 0;
};

/// What a worker counts. Only its thread writes to it, but for those who take the tasks.
struct alignas(64) TasksOfWorker {
  EndedTasks ended;
  std::atomic<std::uint64_t> begun = 0;
};

/// How many tasks there are, and what is kept of each. Workers count only: they take no lock.
class SubmittedTasks {
 public:
  /// Before any task is submitted.
  void count_workers(unsigned workers) { of_workers_ = std::vector<TasksOfWorker>(workers + 1); }

  /// Tasks that were submitted, begun and ended so far.
  [[nodiscard]] std::uint64_t submitted() const { return submitted_; }
  [[nodiscard]] std::uint64_t begun() const;
  [[nodiscard]] std::uint64_t ended() const;
  [[nodiscard]] std::uint64_t in_flight() const {
    const std::uint64_t before = ended();  // first, or it might become more than those submitted
    return submitted_ - before;
  }
  /// Tasks whose kernels were called and that have not ended: they have all their data.
  [[nodiscard]] std::uint64_t executing() const {
    const std::uint64_t before = ended();
    return begun() - before;
  }
  /// Those in flight that are not of a stream.
  [[nodiscard]] std::size_t beside_streams() const { return beside_streams_; }
  /// Whether, as far as the submitting threads have counted, `window` tasks are in flight.
  [[nodiscard]] bool fill(std::uint64_t window);

  /// A task is submitted: StarPU is given it next.
  void add(detail::TaskRecord& record);
  /// This worker begins a task.
  void begin();
  /// A task has ended: its record belongs to whoever submits or waits from here on. What this thread reads next, it reads
  /// after others could see that.
  void end(detail::TaskRecord& record);

  /// Takes what is kept of tasks that have ended, to be given to drop() without any lock.
  [[nodiscard]] detail::TaskRecord* take_ended();
  /// Ends it, but for handles.
  static void drop(detail::TaskRecord* tasks);

  /// Calls `look` with the oldest task that has not ended, if there is one.
  template <class Look>
  void look_at_oldest(Look look) const {
    const std::lock_guard lock(taking_);  // none of them ends meanwhile
    if (const detail::TaskRecord* const oldest = detail::TaskRecord::oldest_in_flight()) look(*oldest);
  }

 private:
  [[nodiscard]] TasksOfWorker& of_this_worker();

  // Workers read this all the time: nothing beside it may change.
  std::vector<TasksOfWorker> of_workers_ = std::vector<TasksOfWorker>(1);  // and last of those that are none
  alignas(64) mutable std::mutex taking_;
  std::mutex no_worker_;  // threads that are none, one at a time
  alignas(64) std::atomic<std::uint64_t> submitted_ = 0;
  std::atomic<std::uint64_t> ended_before_ =
      0;  // how many had ended some time ago: workers write to what is looked at
  alignas(64) std::atomic<std::size_t> beside_streams_ = 0;
};

}  // namespace asterism
