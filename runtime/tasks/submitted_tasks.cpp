#include "submitted_tasks.hpp"

#include <starpu.h>

#include <utility>

namespace asterism {

EndedTasks::~EndedTasks() {
  while (taken_from_ != nullptr) delete std::exchange(taken_from_, taken_from_->next);
}

void EndedTasks::push(detail::TaskRecord& record) {
  const std::uint64_t before = count_.load(std::memory_order_relaxed);
  const std::size_t place = before % pushed_to_->records.size();
  if (place == 0 && before > 0) pushed_to_ = pushed_to_->next = new Block;
  pushed_to_->records[place] = &record;
  count_.store(before + 1);  // a full barrier, too
}

detail::TaskRecord* EndedTasks::take(detail::TaskRecord* others) {
  for (const std::uint64_t end = count_.load(std::memory_order_acquire); taken_ < end; ++taken_) {
    const std::size_t place = taken_ % taken_from_->records.size();
    if (place == 0 && taken_ > 0) delete std::exchange(taken_from_, taken_from_->next);
    detail::TaskRecord* const record = taken_from_->records[place];
    record->leave_flight();
    record->next_ended = std::exchange(others, record);
  }
  return others;
}

bool SubmittedTasks::fill(std::uint64_t window) {
  const std::uint64_t submitted = submitted_;
  if (submitted >= ended_before_ + window) ended_before_ = ended();
  return submitted >= ended_before_ + window;
}

void SubmittedTasks::add(detail::TaskRecord& record) {
  if (!record.streams) ++beside_streams_;
  record.enter_flight(++submitted_);
}

void SubmittedTasks::end(detail::TaskRecord& record) {
  if (!record.streams) --beside_streams_;
  TasksOfWorker& mine = of_this_worker();
  record.ended.store(true, std::memory_order_release);
  std::unique_lock lock(no_worker_, std::defer_lock);
  if (&mine == &of_workers_.back()) lock.lock();
  mine.ended.push(record);
}

detail::TaskRecord* SubmittedTasks::take_ended() {
  const std::lock_guard lock(taking_);
  detail::TaskRecord* all = nullptr;
  for (TasksOfWorker& one : of_workers_) all = one.ended.take(all);
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

std::uint64_t SubmittedTasks::begun() const {
  std::uint64_t all = 0;
  for (const TasksOfWorker& one : of_workers_) all += one.begun;
  return all;
}

std::uint64_t SubmittedTasks::ended() const {
  std::uint64_t all = 0;
  for (const TasksOfWorker& one : of_workers_) all += one.ended.count();
  return all;
}

}  // namespace asterism
