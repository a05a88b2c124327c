#include "submitted_tasks.hpp"

#include <starpu.h>

#include <utility>

namespace asterism {

bool SubmittedTasks::fill(std::uint64_t window) {
  const std::uint64_t submitted = submitted_;
  if (submitted >= ended_before_ + window) ended_before_ = ended();
  return submitted >= ended_before_ + window;
}

void SubmittedTasks::add(detail::TaskRecord& record) {
  if (!record.streams) ++beside_streams_;
  const std::lock_guard lock(list_);
  record.older = newest_;
  (newest_ != nullptr ? newest_->newer : oldest_) = &record;
  newest_ = &record;
  submitted_.store(submitted_.load(std::memory_order_relaxed) + 1);  // in the lock alone
}

void SubmittedTasks::end(detail::TaskRecord& record) {
  if (!record.streams) --beside_streams_;
  TasksOfWorker& mine = of_this_worker();
  record.ended.store(true, std::memory_order_release);
  record.next_ended = mine.ended_tasks.load(std::memory_order_relaxed);
  while (!mine.ended_tasks.compare_exchange_weak(record.next_ended, &record, std::memory_order_acq_rel))
    continue;
  ++mine.ended;  // a full barrier, too: before it is seen whether somebody waits for this
}

detail::TaskRecord* SubmittedTasks::take_ended() {
  detail::TaskRecord* all = nullptr;
  std::unique_lock lock(list_, std::defer_lock);
  for (TasksOfWorker& one : of_workers_) {
    if (one.ended_tasks.load(std::memory_order_relaxed) == nullptr) continue;
    if (!lock) lock.lock();
    detail::TaskRecord* const first = one.ended_tasks.exchange(nullptr);
    if (first == nullptr) continue;  // another thread was quicker
    detail::TaskRecord* record = first;
    while (true) {
      (record->older != nullptr ? record->older->newer : oldest_) = record->newer;
      (record->newer != nullptr ? record->newer->older : newest_) = record->older;
      if (record->next_ended == nullptr) break;
      record = record->next_ended;
    }
    record->next_ended = std::exchange(all, first);
  }
  return all;
}

void SubmittedTasks::drop(detail::TaskRecord* tasks) {
  while (tasks != nullptr) {
    detail::TaskRecord* const record = std::exchange(tasks, tasks->next_ended);
    if (record->holders > 1) record->clear();
    record->drop();
  }
}

void SubmittedTasks::begin() {
  TasksOfWorker& mine = of_this_worker();
  if (&mine == &of_workers_.back())
    ++mine.begun;
  else  // no locked operation: only this thread writes to it
    mine.begun.store(mine.begun.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

TasksOfWorker& SubmittedTasks::of_this_worker() {
  const int id = starpu_worker_get_id();
  return of_workers_[id < 0 ? of_workers_.size() - 1 : static_cast<std::size_t>(id)];
}

std::uint64_t SubmittedTasks::sum(std::atomic<std::uint64_t> TasksOfWorker::*count) const {
  std::uint64_t all = 0;
  for (const TasksOfWorker& one : of_workers_) all += one.*count;
  return all;
}

}  // namespace asterism
