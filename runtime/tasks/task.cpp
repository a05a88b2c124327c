#include "../task.hpp"

#include "../run/state.hpp"
#include "codelet_state.hpp"
#include "task_record.hpp"

namespace asterism {

Task::Task(detail::TaskRecord* record) noexcept : record_(record) {}
Task::Task(const Task& other) noexcept : record_(other.record_) {
  if (record_ != nullptr) ++record_->holders;
}
Task::~Task() {
  if (record_ != nullptr) record_->drop();
}

bool Task::ended() const { return record_ == nullptr || record_->ended; }

void Task::wait() const {
  if (record_ == nullptr) return;
  if (!record_->ended) {
    Runtime::State& runtime = *current_runtime();
    std::unique_lock lock(runtime.mutex);
    runtime.wait_until(lock, [&] { return record_->ended.load(); });
  }
  if (record_->failure) throw task_failure(*record_->failure);
}

void Runtime::State::task_ended(detail::TaskRecord& record) {
  Rest::task_ended();
  if (starpu_profiling_task_info* info = record.task->profiling_info) {
    const std::lock_guard lock(mutex);
    const double seconds = starpu_timing_timespec_delay_us(&info->start_time, &info->end_time) * 1e-6;
    for (TaskTimes::Sum* sum : {&times.by_codelet[record.codelet->name], &times.by_worker[info->workerid]}) {
      ++sum->count;
      sum->seconds += seconds;
    }
  }
  tasks.end(record);
  if (waiting > 0 && tasks.in_flight() < wake_below) {
    const std::lock_guard lock(mutex);
    changed.notify_all();
  }
}

}  // namespace asterism
