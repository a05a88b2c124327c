#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "../codelet.hpp"
#include "task_checks.hpp"

namespace asterism::detail {
namespace {

starpu_data_access_mode starpu_mode(Access access) {
  switch (access) {
    case Access::read:
      return STARPU_R;
    case Access::write:
      return STARPU_W;
    case Access::read_write:
      return STARPU_RW;
    case Access::commute:
      return static_cast<starpu_data_access_mode>(STARPU_RW | STARPU_COMMUTE);
    case Access::scratch:
      return STARPU_SCRATCH;
  }
  return STARPU_RW;
}

/// Notes in the tiles that a task writes them, unless it does not come to that.
void note_written(const Buffers& buffers) {
  for (const auto& [tile, access] : buffers.all) {
    if (!writes(access)) continue;
    tile->written.store(true, std::memory_order_relaxed);
    tile->is_at_home.store(false, std::memory_order_relaxed);
    tile->note_told();
    tile->written_in.store(tile->runtime->period, std::memory_order_relaxed);
    // What wait() has thrown; else the task will do nothing, or has not failed yet.
    if (const Failure* const lost = tile->lost; lost != nullptr && lost != tile->runtime->failure)
      tile->mended = lost;
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

bool is_read_at_home(const Buffer& buffer) {
  return buffer.tile->is_at_home && buffer.access == Access::read;
}

starpu_codelet& codelet_for(CodeletCore::State& core, const ShortList<Buffer, 3>& tiles, const Hints& hints) {
  if (!hints.together && std::none_of(tiles.begin(), tiles.end(), is_read_at_home)) return core.codelet;
  std::vector<int> nodes;
  for (const Buffer& buffer : tiles)
    if (hints.together)
      nodes.push_back(buffer.tile->home);
    else
      nodes.push_back(is_read_at_home(buffer) ? STARPU_SPECIFIC_NODE_CPU : STARPU_SPECIFIC_NODE_LOCAL);
  return core.on(nodes);
}

/// A task of StarPU's, with its tiles.
OwnTask task_on(CodeletCore::State& core, const ShortList<Buffer, 3>& tiles, const Hints& hints) {
  OwnTask task(starpu_task_create());
  task->cl = &codelet_for(core, tiles, hints);
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

/// With several ranks: gives a task to StarPU on the rank that runs it, with its messages. @return StarPU's status
int submit_on_rank(Runtime::State& runtime, starpu_task* task, int executor) {
  std::int64_t received = 0;
  const int status = ranks::submit(task, executor, received);
  runtime.bytes_from_ranks += received;
  return status;
}

void ended(void* argument) { current_runtime()->task_ended(*static_cast<TaskRecord*>(argument)); }

struct DropRecord {
  void operator()(TaskRecord* record) const { record->drop(); }
};
using OwnRecord = std::unique_ptr<TaskRecord, DropRecord>;

/// A cost for the codelet's footprint, which finds it in the task: StarPU may ask for it when the record has ended.
void* spread(std::uint64_t cost) {
  // The upper half of the product: all bits of the cost count in it.
  constexpr std::uint64_t golden_ratio = 0x9e3779b97f4a7c15;  // of 2^64, odd
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(cost * golden_ratio >> 32));
}

/// Waits until one more task may be in flight, and lets the record's task be that.
/// @return tasks that have ended, for the caller to drop: their arguments may own tiles, whose end waits
TaskRecord* enter(Runtime::State& runtime, TaskRecord& record) {
  const std::uint64_t window = runtime.options.window;
  constexpr std::uint64_t seldom = 32;  // workers write to what is looked at
  const bool look = window < seldom || runtime.tasks.submitted() % seldom == 0;
  if (runtime.tasks.fill(window) && starpu_is_paused() == 0) {  // nothing ends in a Pause
    // Several threads may pass at once: there may be as many more in flight.
    std::unique_lock lock(runtime.mutex);
    runtime.wait_until(
        lock, [&] { return runtime.tasks.in_flight() < window; }, window - window / 8);
  }
  TaskRecord* const ended = look ? runtime.tasks.take_ended() : nullptr;
  runtime.tasks.add(record);
  return ended;
}

/// Gives a task to StarPU, with the messages that it needs from other ranks. @return StarPU's status
int give_to_starpu(starpu_task* task, TaskRecord& record, Runtime::State& runtime) {
  record.given.give();
  runtime.costs.give();
  return runtime.ranks == 1 ? starpu_task_submit(task) : submit_on_rank(runtime, task, runtime.rank);
}

[[noreturn]] void refuse(const CodeletCore::State& core, int status) {
  throw Error(fmt::format("StarPU refuses task {}: {}", core.name, std::strerror(-status)), Blame::machine);
}

}  // namespace

Task CodeletCore::submit(const KernelArgs& args, const TaskTiles& tiles, const Hints& hints) const {
  State& core = *state_;
  require_usable(core, tiles, hints);
  const int executor = executing_rank(core, tiles, hints);
  Runtime::State& runtime = *detail::state(*tiles.entries.begin()).runtime;
  require_content(core, tiles, hints);
  if (runtime.ranks > 1) require_sendable(core, tiles, executor);
  if (executor != runtime.rank) {
    Buffers buffers;
    list_buffers(core, tiles, hints, buffers);
    note_written(buffers);
    if (const int status = submit_on_rank(runtime, task_on(core, buffers.all, hints).get(), executor);
        status != 0)
      refuse(core, status);
    for (const Buffer& buffer : buffers.all)
      if (writes(buffer.access) && buffer.tile->owner == runtime.rank) buffer.tile->await(buffer.access);
    return {};
  }

  OwnRecord record(new TaskRecord(args));
  Task handle(record.get());
  list_buffers(core, tiles, hints, record->buffers);
  const Workers workers = workers_for(core, record->buffers, hints);
  note_written(record->buffers);
  record->codelet = &core;
  if (!hints.label.empty()) record->label = std::make_unique<const std::string>(hints.label);
  record->streams = hints.streams;
  for (const Index count : tiles.counts) record->counts.push_back(count);
  record->has_counts = !tiles.counts.empty();
  record->repeats_tiles = !record->buffers.of_port.empty();
  for (const Buffer& buffer : record->buffers.all) record->writes_out |= buffer.access == Access::write;
  OwnTask task = task_on(core, record->buffers.all, hints);
  record->task = task.get();
  task->where = static_cast<std::int32_t>(workers.where);
  task->execute_on_a_specific_worker = workers.chosen ? 1 : 0;
  task->workerid = workers.chosen.value_or(0);
  task->cl_arg = record.get();
  task->prologue_callback_arg = spread(hints.cost);
  if ((workers.where & STARPU_CUDA) == 0 && runtime.options.trace.empty()) {
    record->end = TaskEnd::with_kernel;
  } else {
    task->callback_func = ended;
    task->callback_arg = record.get();
  }
  TaskRecord* const dropped = enter(runtime, *record);
  const int status = give_to_starpu(task.get(), *record, runtime);
  TaskRecord& submitted = *record.release();  // the Runtime's from now on
  if (status != 0) runtime.task_ended(submitted);
  SubmittedTasks::drop(dropped);
  if (status != 0) refuse(core, status);
  static_cast<void>(task.release());  // StarPU's from now on
  return handle;
}

}  // namespace asterism::detail
