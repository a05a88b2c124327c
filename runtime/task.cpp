#include "task.hpp"

#include "detail/state.hpp"
#include "detail/task_record.hpp"

namespace asterism {
namespace detail {

std::string full_name(const std::string& codelet, const std::string& label) {
  return codelet + (label.empty() ? "" : " (" + label + ")");
}

KeptArgs::KeptArgs(const KernelArgs& args) : where_(here_), type_(args.type) {
  if (!is_here()) where_ = ::operator new(type_->bytes, std::align_val_t{type_->alignment});
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

namespace {

/// Memory of records that have ended.
struct Spare {
  std::vector<void*> records;
  Spare() = default;
  Spare(const Spare&) = delete;
  Spare& operator=(const Spare&) = delete;
  ~Spare() {
    for (void* record : records) ::operator delete(record, std::align_val_t{alignof(TaskRecord)});
    gone = true;
  }
  bool gone = false;
};
thread_local Spare spare;
constexpr std::size_t most_spare = 4096;

}  // namespace

void* TaskRecord::operator new(std::size_t bytes) {
  if (spare.gone || spare.records.empty()) return ::operator new(bytes, std::align_val_t{alignof(TaskRecord)});
  void* const memory = spare.records.back();
  spare.records.pop_back();
  return memory;
}

void TaskRecord::operator delete(void* memory) noexcept {
  if (spare.gone || spare.records.size() == most_spare)
    return ::operator delete(memory, std::align_val_t{alignof(TaskRecord)});
  spare.records.push_back(memory);
}

void TaskRecord::clear() noexcept {
  args.end();
  for (Buffer& buffer : buffers.all) buffer.tile.reset();
}

std::string TaskRecord::name() const { return full_name(codelet->name, label ? *label : std::string()); }

void TaskRecord::lose(const Failure& why) {
  failure = std::make_shared<const Failure>(why);
  for (const Buffer& buffer : buffers.all)
    // A task that never began has left what it was to change as it was: good, if its input was.
    if (writes(buffer.access) && (buffer.access == Access::write || !why.cancelled)) buffer.tile->lost = &why;
}

}  // namespace detail

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
  TasksOfWorker& mine = of_this_worker();
  record.next_ended = mine.ended_tasks;
  while (!mine.ended_tasks.compare_exchange_weak(record.next_ended, &record)) continue;
  ++mine.ended;  // from here on the record belongs to whoever submits or waits
  if (waiting > 0 && in_flight() < wake_below) {
    const std::lock_guard lock(mutex);
    changed.notify_all();
  }
}

TasksOfWorker& Runtime::State::of_this_worker() {
  const int id = starpu_worker_get_id();
  return of_workers[id < 0 ? of_workers.size() - 1 : static_cast<std::size_t>(id)];
}

std::uint64_t Runtime::State::sum(std::atomic<std::uint64_t> TasksOfWorker::*count) const {
  std::uint64_t all = 0;
  for (const TasksOfWorker& one : of_workers) all += one.*count;
  return all;
}

detail::TaskRecord* Runtime::State::take_ended_tasks() {
  detail::TaskRecord* all = nullptr;
  std::unique_lock lock(submission, std::defer_lock);
  for (TasksOfWorker& one : of_workers) {
    if (one.ended_tasks.load(std::memory_order_relaxed) == nullptr) continue;
    if (!lock) lock.lock();
    detail::TaskRecord* const first = one.ended_tasks.exchange(nullptr);
    if (first == nullptr) continue;  // another thread was quicker
    detail::TaskRecord* record = first;
    while (true) {
      (record->older != nullptr ? record->older->newer : oldest) = record->newer;
      (record->newer != nullptr ? record->newer->older : newest) = record->older;
      if (record->next_ended == nullptr) break;
      record = record->next_ended;
    }
    record->next_ended = std::exchange(all, first);
  }
  return all;
}

void Runtime::State::drop_tasks(detail::TaskRecord* tasks) {
  while (tasks != nullptr) {
    detail::TaskRecord* const record = std::exchange(tasks, tasks->next_ended);
    if (record->holders > 1) record->clear();
    record->drop();
  }
}

}  // namespace asterism
