#include "codelet.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>

#include "detail/state.hpp"

#ifdef ASTERISM_WITH_CUDA
#include <starpu_cuda.h>
#endif

namespace asterism::detail {
namespace {

#ifdef ASTERISM_WITH_CUDA
constexpr bool built_with_cuda = true;
#else
constexpr bool built_with_cuda = false;
#endif

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

bool reads(Access access) { return access != Access::write && access != Access::scratch; }
bool writes(Access access) { return access != Access::read && access != Access::scratch; }

/// The most tiles of a task. StarPU looks up the memory node that a codelet wants each of them on, whether or not it wants
/// any, without looking how many its own array has: it is given one of zeros that nobody means.
constexpr std::size_t most_tiles = std::size_t{1} << 16;
int* wanted_nodes() {
  static std::array<int, most_tiles> nodes{};
  return nodes.data();
}

TileState& state(const TaskTiles::Entry& entry) { return *entry.tile->state(); }

/// "port 2", "port 2, tile 17"
std::string place(const TaskTiles::Entry& entry) {
  return fmt::format("port {}", entry.port) + (entry.place < 0 ? "" : fmt::format(", tile {}", entry.place));
}

/// "axpy_f64 (slab 3)"
std::string full_name(const std::string& codelet, const std::string& label) {
  return codelet + (label.empty() ? "" : " (" + label + ")");
}

/// What StarPU runs as a task, on either kind of worker: unpacks the buffers and calls the kernel. Nothing may be
/// thrown into StarPU; the first failure is kept, and the tasks after it do nothing, so that the graph drains. What they
/// should have written is noted as lost before they end, that is before anybody else sees it.
template <class Call>
void run(void* buffers[], void* argument, Call call) noexcept {
  Runtime::State& runtime = *current_runtime();
  ++runtime.progress;  // before anything of the task is read: see give_to_starpu
  auto& record = *static_cast<TaskRecord*>(argument);
  if (runtime.failure != nullptr) return record.lose_tiles();
  record.runs = true;
  ++runtime.executing;  // until the task ends
  try {
    std::vector<Matrix> tiles(record.tile_of_port.size());
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      const auto* m = static_cast<const starpu_matrix_interface*>(buffers[record.tile_of_port[i]]);
      tiles[i] = {reinterpret_cast<void*>(m->ptr), m->ny, m->nx, m->ld};
    }
    call(record, starpu_task_get_implementation(starpu_task_get_current()),
         PortReader{tiles.data(), record.counts.data()});
    ++runtime.progress;  // what the kernel wrote comes before those who read it and, like wait_for, this number
  } catch (const std::exception& error) {
    runtime.fail(record.name(), error.what());
    record.lose_tiles();
  } catch (...) {
    runtime.fail(record.name(), no_standard_exception);
    record.lose_tiles();
  }
}

void run_cpu(void* buffers[], void* argument) {
  run(buffers, argument, [](const TaskRecord& record, unsigned implementation, PortReader ports) {
    const CodeletCore::State& core = *record.codelet;
    core.call_cpu(core.cpu[implementation], record.args.get(), ports);
  });
}

#ifdef ASTERISM_WITH_CUDA
void run_cuda(void* buffers[], void* argument) {
  run(buffers, argument, [](const TaskRecord& record, unsigned implementation, PortReader ports) {
    const CodeletCore::State& core = *record.codelet;
    core.call_cuda(core.cuda[implementation], Stream{starpu_cuda_get_local_stream()}, record.args.get(), ports);
  });
}
#endif

/// Distinguishes the performance of tasks by the sizes of their tiles and by what the submitter says changes the cost.
std::uint32_t footprint(starpu_task* task) {
  static_cast<void>(current_runtime()->progress.load());  // before anything of the task is read: see give_to_starpu
  const auto* record = static_cast<const TaskRecord*>(task->cl_arg);
  // The upper half of the product: all bits of the cost count in it.
  constexpr std::uint64_t golden_ratio = 0x9e3779b97f4a7c15;  // of 2^64, odd
  return starpu_task_data_footprint(task) ^ static_cast<std::uint32_t>(record->cost * golden_ratio >> 32);
}

void ended(void* argument) {
  auto& record = *static_cast<TaskRecord*>(argument);
  record.runtime->task_ended(record);
}

/// A tile of a task, for all its ports together.
struct Buffer {
  TileState* tile;
  Access access;
};

/// A task's tiles, each once: whatever its ports do with it, a tile is locked once and comes once.
struct Buffers {
  std::vector<Buffer> all;           // in the order in which they first appear: it is part of the footprint
  std::vector<std::size_t> of_port;  // which of them, for each entry
};
Buffers buffers_of(const CodeletCore::State& core, const TaskTiles& tiles, const Hints& hints) {
  Buffers buffers;
  buffers.all.reserve(tiles.entries.size());
  buffers.of_port.reserve(tiles.entries.size());
  for (const TaskTiles::Entry& entry : tiles.entries) {
    TileState* const tile = &state(entry);
    const auto same =
        std::find_if(buffers.all.begin(), buffers.all.end(), [&](const Buffer& b) { return b.tile == tile; });
    buffers.of_port.push_back(static_cast<std::size_t>(same - buffers.all.begin()));
    if (same == buffers.all.end())
      buffers.all.push_back({tile, entry.access});
    else if ((same->access == Access::scratch) != (entry.access == Access::scratch))
      throw Error(fmt::format("task {}: {} is the tile of another port, and one of them is scratch: give each its own",
                              full_name(core.name, hints.label), place(entry)));
    else if (same->access != entry.access)
      same->access = Access::read_write;
  }
  return buffers;
}

/// Bytes that tiles take in a memory; in main memory borrowed ones are there already.
std::size_t bytes_in(const std::vector<Buffer>& buffers, MemoryKind kind) {
  std::size_t bytes = 0;
  for (const Buffer& buffer : buffers)
    if (kind != MemoryKind::main || !buffer.tile->borrowed) bytes += buffer.tile->bytes();
  return bytes;
}

/// "1 x 8 of 4 bytes, 20 times 1 x 8 of 8 bytes"
std::string describe(const std::vector<Buffer>& buffers) {
  const auto shape = [](const Buffer& buffer) {
    const TileShape& s = buffer.tile->shape;
    return fmt::format("{} x {} of {} bytes", s.rows, s.cols, s.element_bytes);
  };
  std::string text;
  for (auto first = buffers.begin(), next = first; first != buffers.end(); first = next) {
    next = std::find_if(first, buffers.end(), [&](const Buffer& other) { return shape(other) != shape(*first); });
    text += text.empty() ? "" : ", ";
    if (next - first > 1) text += fmt::format("{} times ", next - first);
    text += shape(*first);
  }
  return text;
}

/// Where the task can run: kernel, workers, and room for all its tiles at once. StarPU would retry for ever a task that
/// does not fit.
std::uint32_t possible_workers(const CodeletCore::State& core, const std::vector<Buffer>& tiles, const Hints& hints) {
  struct Kind {
    Where where;
    const char* name;
    MemoryKind memory;
    const char* memory_name;
    std::uint32_t mask;
    std::size_t kernels;
    unsigned workers;
  };
  const Kind kinds[] = {
      {Where::cpu, "CPU", MemoryKind::main, "main", STARPU_CPU, core.cpu.size(), starpu_cpu_worker_get_count()},
      {Where::cuda, "CUDA", MemoryKind::gpu, "GPU", STARPU_CUDA, core.cuda.size(), starpu_cuda_worker_get_count()}};
  std::uint32_t where = 0;
  Blame blame = Blame::machine;
  std::string verdict = "can run nowhere:", reasons, cures;
  const auto rule_out = [&](const std::string& reason, const std::string& cure) {
    reasons += (reasons.empty() ? "" : "; ") + reason;
    if (cures.find(cure) == std::string::npos) cures += (cures.empty() ? "" : ", or ") + cure;
  };
  for (const Kind& kind : kinds) {
    if (kind.kernels > STARPU_MAXIMPLEMENTATIONS)
      throw Error(fmt::format("codelet {} has {} {} kernels: StarPU takes {} at most", core.name, kind.kernels,
                              kind.name, STARPU_MAXIMPLEMENTATIONS));
    const bool asked = hints.where == kind.where;
    if (hints.where != Where::anywhere && !asked) continue;
    if (asked) verdict = fmt::format("asks for {} workers, but", kind.name);
    if (kind.where == Where::cuda && !built_with_cuda) {
      rule_out("this build has no CUDA", asked ? "leave Hints::where alone" : "");
    } else if (kind.kernels == 0) {
      rule_out(fmt::format("the codelet has no {} kernel", kind.name),
               asked ? "give it one, or leave Hints::where alone" : "");
      if (asked) blame = Blame::input;
    } else if (kind.workers == 0) {
      rule_out(fmt::format("there is no {} worker", kind.name), fmt::format("allow {} workers", kind.name));
    } else {
      const std::size_t needed = bytes_in(tiles, kind.memory);
      const std::size_t capacity = tiles.front().tile->runtime->capacity(kind.memory);
      if (needed <= capacity)
        where |= kind.mask;
      else
        rule_out(fmt::format("its tiles ({}) need {} at once, {} memory has {}", describe(tiles),
                             human_bytes(static_cast<double>(needed)), kind.memory_name,
                             human_bytes(static_cast<double>(capacity))),
                 "use smaller tiles, or allow more memory");
    }
  }
  if (where == 0)
    throw Error(fmt::format("task {} {} {}: {}", full_name(core.name, hints.label), verdict, reasons,
                            cures.empty() ? "give it a kernel that can run here" : cures),
                blame);
  return where;
}

/// That there is a tile for every port, of a Runtime that lives.
void require_usable(const CodeletCore::State& core, const TaskTiles& tiles, const Hints& hints) {
  if (tiles.entries.size() > most_tiles)
    throw Error(fmt::format("task {} has {} tiles: there may be {}; give them to several tasks",
                            full_name(core.name, hints.label), tiles.entries.size(), most_tiles));
  for (const TaskTiles::Entry& entry : tiles.entries) {
    const char* const flaw = entry.tile == nullptr ? "nullptr: leave it out of the list" : flaw_of(entry.tile->state());
    if (flaw != nullptr)
      throw Error(fmt::format("task {}: {} is {}", full_name(core.name, hints.label), place(entry), flaw));
  }
}

/// The rank that runs the task: the one that owns what it writes.
int executing_rank(const CodeletCore::State& core, const TaskTiles& tiles) {
  int executor = -1;
  for (const TaskTiles::Entry& entry : tiles.entries) {
    if (!writes(entry.access)) continue;
    const int owner = state(entry).owner;
    if (executor >= 0 && executor != owner)
      throw Error(fmt::format("task {} writes tiles of rank {} and of rank {}: it can run on one rank only", core.name,
                              executor, owner));
    executor = owner;
  }
  if (executor < 0) throw Error(fmt::format("task {} writes no tile: it would have no effect", core.name));
  return executor;
}

/// That those tiles of this rank which the task reads have something to be read.
void require_content(const CodeletCore::State& core, const TaskTiles& tiles, const Hints& hints) {
  for (const TaskTiles::Entry& entry : tiles.entries) {
    const TileState& tile = state(entry);
    if (!reads(entry.access) || tile.owner != tile.runtime->rank) continue;
    if (!tile.written)
      throw Error(fmt::format("task {} reads a {} x {} tile ({}) before anything was written to it",
                              full_name(core.name, hints.label), tile.shape.rows, tile.shape.cols, place(entry)));
    // Until wait() has thrown a failure the tasks after it do nothing, and nobody is told elsewhere.
    if (const Failure* const lost = tile.lost; lost != nullptr && lost != tile.runtime->failure)
      throw Error(fmt::format("task {} reads a {} x {} tile ({}) whose content is lost, because task {} failed: {}; "
                              "write the tile anew before it is read",
                              full_name(core.name, hints.label), tile.shape.rows, tile.shape.cols, place(entry),
                              lost->task, lost->reason),
                  Blame::task);
  }
}

/// That what a task reads can be sent to the rank that runs it: MPI counts the bytes of a row, and rows, in an int.
void require_sendable(const CodeletCore::State& core, const TaskTiles& tiles, int executor) {
  constexpr auto most = static_cast<std::size_t>(std::numeric_limits<int>::max());
  for (const TaskTiles::Entry& entry : tiles.entries) {
    const TileState& tile = state(entry);
    const TileShape& shape = tile.shape;
    if (!reads(entry.access) || tile.owner == executor) continue;
    if (static_cast<std::size_t>(shape.rows) > most || static_cast<std::size_t>(shape.ld) > most / shape.element_bytes)
      throw Error(
          fmt::format("task {} on rank {} reads a tile of rank {} ({}) with {} rows, {} bytes apart: "
                      "neither may pass {} between ranks; use smaller tiles",
                      core.name, executor, tile.owner, place(entry), shape.rows,
                      static_cast<std::size_t>(shape.ld) * shape.element_bytes, most));
  }
}

/// StarPU's number of the worker that the submitter has chosen.
unsigned chosen_worker(const CodeletCore::State& core, const Hints& hints) {
  const std::string task = full_name(core.name, hints.label);
  if (hints.where == Where::anywhere)
    throw Error(fmt::format("task {} asks for worker {} of no kind: say CPU or CUDA", task, hints.worker));
  const bool cpu = hints.where == Where::cpu;
  const int worker =
      hints.worker < 0 ? -1 : starpu_worker_get_by_type(cpu ? STARPU_CPU_WORKER : STARPU_CUDA_WORKER, hints.worker);
  if (worker < 0)
    throw Error(fmt::format("task {} asks for {} worker {}: there are {}, counted from 0", task, cpu ? "CPU" : "CUDA",
                            hints.worker, cpu ? starpu_cpu_worker_get_count() : starpu_cuda_worker_get_count()),
                Blame::machine);
  return static_cast<unsigned>(worker);
}

/// Where StarPU may run a task.
struct Workers {
  std::uint32_t where;
  std::optional<unsigned> chosen;
};
Workers workers_for(const CodeletCore::State& core, const std::vector<Buffer>& tiles, const Hints& hints) {
  Workers workers{possible_workers(core, tiles, hints), std::nullopt};
  if (hints.worker != -1) workers.chosen = chosen_worker(core, hints);
  return workers;
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

std::string TaskRecord::name() const { return full_name(codelet->name, label); }

void TaskRecord::lose_tiles() const {
  for (const Tile& tile : tiles)
    if (writes(tile.access)) tile.state->lost = runtime->failure.load();
}

CodeletCore::CodeletCore(std::string name, CpuCall call_cpu, std::vector<Kernel> cpu, CudaCall call_cuda,
                         std::vector<Kernel> cuda)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.name = std::move(name);
  s.call_cpu = call_cpu;
  s.cpu = std::move(cpu);
  s.call_cuda = call_cuda;
  s.cuda = std::move(cuda);
  starpu_codelet_init(&s.codelet);
  // Nothing is thrown before main(): what there is no place for is told when a task is submitted.
  constexpr std::size_t most = STARPU_MAXIMPLEMENTATIONS;
  for (std::size_t i = 0; i < std::min(s.cpu.size(), most); ++i) s.codelet.cpu_funcs[i] = run_cpu;
#ifdef ASTERISM_WITH_CUDA
  for (std::size_t i = 0; i < std::min(s.cuda.size(), most); ++i) {
    s.codelet.cuda_funcs[i] = run_cuda;
    s.codelet.cuda_flags[i] = STARPU_CUDA_ASYNC;
  }
#else
  s.cuda.clear();
#endif
  s.codelet.nbuffers = STARPU_VARIABLE_NBUFFERS;  // each task says how many, and how it uses them
  s.codelet.dyn_nodes = wanted_nodes();
  s.codelet.name = s.name.c_str();
  s.model.type = STARPU_HISTORY_BASED;
  s.model.symbol = s.name.c_str();
  s.model.footprint = footprint;
  s.codelet.model = &s.model;
}

CodeletCore::~CodeletCore() {
  if (Runtime::State* const runtime = current_runtime()) {
    const std::lock_guard lock(runtime->mutex);
    runtime->retired.push_back(std::move(state_));
  }
}

const std::string& CodeletCore::name() const { return state_->name; }

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
