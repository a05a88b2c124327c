#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "codelet.hpp"
#include "detail/task_checks.hpp"

namespace asterism::detail {
namespace {

starpu_data_access_mode starpu_mode(Access access) {
  switch (access) {
    case Access::read: return STARPU_R;
    case Access::write: return STARPU_W;
    case Access::read_write: return STARPU_RW;
    case Access::commute: return static_cast<starpu_data_access_mode>(STARPU_RW | STARPU_COMMUTE);
    case Access::scratch: return STARPU_SCRATCH;
  }
  return STARPU_RW;
}

/// Notes in the tiles that a task writes them, unless it does not come to that.
void note_written(const std::vector<Buffer>& tiles) {
  for (const auto& [tile, access] : tiles) {
    if (!writes(access)) continue;
    tile->written = true;
    tile->written_in = tile->runtime->period;
    tile->lost = nullptr;
  }
}

/// An array that StarPU frees.
template <class T>
T* array_for_starpu(std::size_t count) {
  void* const array = std::malloc(count * sizeof(T));
  if (array == nullptr) throw std::bad_alloc();
  return static_cast<T*>(array);
}

/// Ends a task that was not submitted.
struct DestroyTask {
  void operator()(starpu_task* task) const {
    task->destroy = 0;
    starpu_task_destroy(task);
  }
};
using OwnTask = std::unique_ptr<starpu_task, DestroyTask>;

/// A task of StarPU's, with its tiles.
OwnTask task_on(CodeletCore::State& core, const std::vector<Buffer>& tiles, const Hints& hints) {
  OwnTask task(starpu_task_create());
  task->cl = &core.codelet;
  task->name = core.name.c_str();
  task->priority = hints.priority;
  task->flops = hints.flops;
  const std::size_t count = tiles.size();
  task->nbuffers = static_cast<int>(count);
  if (count > STARPU_NMAXBUFS) {
    task->dyn_handles = array_for_starpu<starpu_data_handle_t>(count);
    task->dyn_modes = array_for_starpu<starpu_data_access_mode>(count);
  }
  starpu_data_handle_t* const handles = STARPU_TASK_GET_HANDLES(task);
  starpu_data_access_mode* const modes = task->dyn_modes != nullptr ? task->dyn_modes : task->modes;
  for (std::size_t i = 0; i < count; ++i) {
    handles[i] = tiles[i].tile->handle;
    modes[i] = starpu_mode(tiles[i].access);
  }
  return task;
}

/// Sends what another rank's task reads of this rank's tiles.
void send_to_executor(starpu_task* task) {
  std::int64_t received = 0;
  int status = 0;
  ranks::submit(task, received, status);
}

void ended(void* argument) {
  auto& record = *static_cast<TaskRecord*>(argument);
  record.runtime->task_ended(record);
}

/// What is kept of a task while it is in flight: a list of one.
std::list<TaskRecord> record_of(const CodeletCore::State& core, std::shared_ptr<const void> args, Buffers buffers,
                                std::vector<Index> counts, const Hints& hints) {
  std::list<TaskRecord> records(1);
  TaskRecord& record = records.front();
  record.self = records.begin();
  record.runtime = buffers.all.front().tile->runtime;
  record.codelet = &core;
  record.args = std::move(args);
  record.label = hints.label;
  record.cost = hints.cost;
  record.streams = hints.streams;
  record.counts = std::move(counts);
  record.tile_of_port = std::move(buffers.of_port);
  record.tiles.reserve(buffers.all.size());
  for (const auto& [tile, access] : buffers.all) record.tiles.push_back({tile->shared_from_this(), access});
  return records;
}

/// Waits until one more task may be in flight, and lets the record's task be that.
/// @return tasks that have ended, for the caller to drop: their arguments may own tiles, whose end takes the lock and waits
std::list<TaskRecord> enter(Runtime::State& runtime, std::list<TaskRecord> record) {
  std::unique_lock lock(runtime.mutex);
  runtime.wait_until(lock, [&] { return runtime.in_flight.size() < runtime.options.window; });
  if (record.front().streams) ++runtime.streaming;
  runtime.in_flight.splice(runtime.in_flight.end(), record);
  return std::exchange(runtime.finished, {});
}

/// Gives a task to StarPU, with the messages that it needs from other ranks. @return StarPU's status
int give_to_starpu(starpu_task* task, Runtime::State& runtime) {
  // What was written into the task comes before what a worker does with it, which begins by reading this number. StarPU
  // orders the two as well, but not for those who cannot look into it, like the thread sanitizer.
  ++runtime.progress;
  if (runtime.ranks == 1) return starpu_task_submit(task);
  std::int64_t received = 0;
  int status = 0;
  ranks::submit(task, received, status);
  runtime.bytes_from_ranks += received;
  return status;
}

/// Ends the record of a task that StarPU refuses.
void take_back(TaskRecord& record) {
  Runtime::State& runtime = *record.runtime;
  std::list<TaskRecord> taken;  // ends without the lock, which the end of a tile in its arguments takes
  const std::lock_guard lock(runtime.mutex);
  if (record.streams) --runtime.streaming;
  taken.splice(taken.end(), runtime.in_flight, record.self);
}

}  // namespace

void CodeletCore::submit(std::shared_ptr<const void> args, TaskTiles tiles, const Hints& hints) const {
  State& core = *state_;
  require_usable(core, tiles, hints);
  const int executor = executing_rank(core, tiles);
  Runtime::State& runtime = *detail::state(tiles.entries.front()).runtime;
  require_content(core, tiles, hints);
  if (runtime.ranks > 1) require_sendable(core, tiles, executor);
  Buffers buffers = buffers_of(core, tiles, hints);
  const bool ours = executor == runtime.rank;
  const Workers workers = ours ? workers_for(core, buffers.all, hints) : Workers{};
  note_written(buffers.all);

  OwnTask task = task_on(core, buffers.all, hints);
  if (!ours) return send_to_executor(task.get());
  std::list<TaskRecord> records = record_of(core, std::move(args), std::move(buffers), std::move(tiles.counts), hints);
  TaskRecord& record = records.front();
  record.task = task.get();
  task->where = static_cast<std::int32_t>(workers.where);
  task->execute_on_a_specific_worker = workers.chosen ? 1 : 0;
  task->workerid = workers.chosen.value_or(0);
  task->cl_arg = &record;
  task->callback_func = ended;
  task->callback_arg = &record;
  const std::list<TaskRecord> finished = enter(runtime, std::move(records));
  if (const int status = give_to_starpu(task.get(), runtime); status != 0) {
    take_back(record);
    throw Error(fmt::format("StarPU refuses task {}: {}", core.name, std::strerror(-status)), Blame::machine);
  }
  static_cast<void>(task.release());  // StarPU's from now on
}

}  // namespace asterism::detail
