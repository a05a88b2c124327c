#include "task.hpp"

#include "detail/state.hpp"
#include "detail/task_record.hpp"

namespace asterism {
namespace detail {

std::string full_name(const std::string& codelet, const std::string& label) {
  return codelet + (label.empty() ? "" : " (" + label + ")");
}

KeptArgs::KeptArgs(const KernelArgs& args)
    : type_(args.type),
      where_(is_here() ? here_ : ::operator new (type_->bytes, std::align_val_t{type_->alignment})) {
  type_->copy(where_, args.args);
}

bool KeptArgs::is_here() const {
  return type_->bytes <= sizeof here_ && type_->alignment <= alignof(std::max_align_t);
}

void KeptArgs::end() noexcept {
  if (where_ == nullptr) return;
  type_->end(where_);
  if (!is_here()) ::operator delete (where_, std::align_val_t{type_->alignment});
  where_ = nullptr;
}

std::string TaskRecord::name() const { return full_name(codelet->name, label); }

void TaskRecord::lose(const Failure& why) {
  failure = std::make_shared<const Failure>(why);
  for (const Buffer& buffer : buffers.all)
    // A task that never began has left what it was to change as it was: good, if its input was.
    if (writes(buffer.access) && (buffer.access == Access::write || !why.cancelled)) buffer.tile->lost = &why;
}

}  // namespace detail

Task::Task(detail::TaskRecord* record) noexcept : record_(record) { ++record_->holders; }
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
    Runtime::State& runtime = *record_->runtime;
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
  if (!record.streams) --beside_streams;
  record.ended = true;
  record.next_ended = ended_tasks;
  while (!ended_tasks.compare_exchange_weak(record.next_ended, &record)) continue;
  ++ended;  // from here on the record belongs to whoever submits or waits
  if (waiting > 0 && in_flight() < wake_below) {
    const std::lock_guard lock(mutex);
    changed.notify_all();
  }
}

detail::TaskRecord* Runtime::State::take_ended_tasks() {
  if (ended_tasks.load(std::memory_order_relaxed) == nullptr) return nullptr;
  detail::TaskRecord* const first = ended_tasks.exchange(nullptr);
  const std::lock_guard lock(submission);
  for (detail::TaskRecord* record = first; record != nullptr; record = record->next_ended) {
    (record->older != nullptr ? record->older->newer : oldest) = record->newer;
    (record->newer != nullptr ? record->newer->older : newest) = record->older;
  }
  return first;
}

void Runtime::State::drop_tasks(detail::TaskRecord* tasks) {
  while (tasks != nullptr) {
    detail::TaskRecord* const record = std::exchange(tasks, tasks->next_ended);
    record->args.end();
    record->buffers = {};
    record->drop();
  }
}

}  // namespace asterism
