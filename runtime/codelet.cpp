#include "codelet.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

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
    case Access::scratch: return STARPU_SCRATCH;
  }
  return STARPU_RW;
}

bool reads(Access access) { return access == Access::read || access == Access::read_write; }
bool writes(Access access) { return access == Access::write || access == Access::read_write; }

/// "axpy_f64 (slab 3)"
std::string full_name(const std::string& codelet, const std::string& label) {
  return codelet + (label.empty() ? "" : " (" + label + ")");
}

/// What StarPU runs as a task, on either kind of worker: unpacks the buffers and calls the kernel. Nothing may be
/// thrown into StarPU; the first failure is kept, and the tasks after it do nothing, so that the graph drains. What they
/// should have written is noted as lost before they end, that is before anybody else sees it.
template <class Call>
void run(void* buffers[], void* argument, Call call) noexcept {
  auto& record = *static_cast<TaskRecord*>(argument);
  Runtime::State& runtime = *record.runtime;
  ++runtime.progress;
  if (runtime.failure != nullptr) return record.lose_tiles();
  record.runs = true;
  ++runtime.executing;  // until the task ends
  try {
    std::array<Matrix, STARPU_NMAXBUFS> ports{};
    for (std::size_t i = 0; i < record.tiles.size(); ++i) {
      const auto* m = static_cast<const starpu_matrix_interface*>(buffers[i]);
      ports[i] = {reinterpret_cast<void*>(m->ptr), m->ny, m->nx, m->ld};
    }
    call(record, starpu_task_get_implementation(starpu_task_get_current()), ports.data());
  } catch (const std::exception& error) {
    runtime.fail(record.name(), error.what());
    record.lose_tiles();
  } catch (...) {
    runtime.fail(record.name(), no_standard_exception);
    record.lose_tiles();
  }
}

void run_cpu(void* buffers[], void* argument) {
  run(buffers, argument, [](const TaskRecord& record, unsigned implementation, const Matrix* ports) {
    const CodeletCore::State& core = *record.codelet;
    core.call_cpu(core.cpu[implementation], record.args.get(), ports);
  });
}

#ifdef ASTERISM_WITH_CUDA
void run_cuda(void* buffers[], void* argument) {
  run(buffers, argument, [](const TaskRecord& record, unsigned implementation, const Matrix* ports) {
    const CodeletCore::State& core = *record.codelet;
    core.call_cuda(core.cuda[implementation], Stream{starpu_cuda_get_local_stream()}, record.args.get(), ports);
  });
}
#endif

/// Distinguishes the performance of tasks by the sizes of their tiles and by what the submitter says changes the cost.
std::uint32_t footprint(starpu_task* task) {
  const auto* record = static_cast<const TaskRecord*>(task->cl_arg);
  // The upper half of the product: all bits of the cost count in it.
  constexpr std::uint64_t golden_ratio = 0x9e3779b97f4a7c15;  // of 2^64, odd
  return starpu_task_data_footprint(task) ^ static_cast<std::uint32_t>(record->cost * golden_ratio >> 32);
}

void ended(void* argument) {
  auto& record = *static_cast<TaskRecord*>(argument);
  record.runtime->task_ended(record);
}

/// Bytes that a task takes in a memory: every tile once; in main memory borrowed tiles are there already.
std::size_t bytes_in(const std::vector<TileState*>& tiles, MemoryKind kind) {
  std::size_t bytes = 0;
  for (auto tile = tiles.begin(); tile != tiles.end(); ++tile)
    if (std::find(tiles.begin(), tile, *tile) == tile && !(kind == MemoryKind::main && (*tile)->borrowed))
      bytes += (*tile)->bytes();
  return bytes;
}

std::string describe(const std::vector<TileState*>& tiles) {
  std::string text;
  for (const TileState* tile : tiles)
    text += fmt::format("{}{} x {} of {} bytes", text.empty() ? "" : ", ", tile->shape.rows, tile->shape.cols,
                        tile->shape.element_bytes);
  return text;
}

/// Where the task can run: kernel, workers, and room for all its tiles at once. StarPU would retry for ever a task that
/// does not fit.
std::uint32_t possible_workers(const CodeletCore::State& core, const std::vector<TileState*>& tiles,
                               const Hints& hints) {
  struct Kind {
    Where where;
    const char* name;
    MemoryKind memory;
    const char* memory_name;
    std::uint32_t mask;
    bool has_kernel;
    unsigned workers;
  };
  const Kind kinds[] = {{Where::cpu, "CPU", MemoryKind::main, "main", STARPU_CPU, !core.cpu.empty(),
                         starpu_cpu_worker_get_count()},
                        {Where::cuda, "CUDA", MemoryKind::gpu, "GPU", STARPU_CUDA, !core.cuda.empty(),
                         starpu_cuda_worker_get_count()}};
  std::uint32_t where = 0;
  Blame blame = Blame::machine;
  std::string verdict = "can run nowhere:", reasons, cures;
  const auto rule_out = [&](const std::string& reason, const std::string& cure) {
    reasons += (reasons.empty() ? "" : "; ") + reason;
    if (cures.find(cure) == std::string::npos) cures += (cures.empty() ? "" : ", or ") + cure;
  };
  for (const Kind& kind : kinds) {
    const bool asked = hints.where == kind.where;
    if (hints.where != Where::anywhere && !asked) continue;
    if (asked) verdict = fmt::format("asks for {} workers, but", kind.name);
    if (kind.where == Where::cuda && !built_with_cuda) {
      rule_out("this build has no CUDA", asked ? "leave Hints::where alone" : "");
    } else if (!kind.has_kernel) {
      rule_out(fmt::format("the codelet has no {} kernel", kind.name),
               asked ? "give it one, or leave Hints::where alone" : "");
      if (asked) blame = Blame::input;
    } else if (kind.workers == 0) {
      rule_out(fmt::format("there is no {} worker", kind.name), fmt::format("allow {} workers", kind.name));
    } else {
      const std::size_t needed = bytes_in(tiles, kind.memory);
      const std::size_t capacity = tiles.front()->runtime->capacity(kind.memory);
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

/// That a tile of this rank has something to be read by a task.
void require_content(const CodeletCore::State& core, const TileState& tile, std::size_t port, const Hints& hints) {
  if (!tile.written)
    throw Error(fmt::format("task {} reads a {} x {} tile (port {}) before anything was written to it",
                            full_name(core.name, hints.label), tile.shape.rows, tile.shape.cols, port));
  // Until wait() has thrown a failure the tasks after it do nothing, and nobody is told elsewhere.
  if (const Failure* const lost = tile.lost; lost != nullptr && lost != tile.runtime->failure)
    throw Error(fmt::format("task {} reads a {} x {} tile (port {}) whose content is lost, because task {} failed: {}; "
                            "write the tile anew before it is read",
                            full_name(core.name, hints.label), tile.shape.rows, tile.shape.cols, port, lost->task,
                            lost->reason),
                Blame::task);
}

/// That what a task reads can be sent to the rank that runs it: MPI counts the bytes of a row, and rows, in an int.
void require_sendable(const CodeletCore::State& core, const std::vector<TileState*>& tiles, int executor) {
  constexpr auto most = static_cast<std::size_t>(std::numeric_limits<int>::max());
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const TileShape& shape = tiles[i]->shape;
    if (!reads(core.accesses[i]) || tiles[i]->owner == executor) continue;
    if (static_cast<std::size_t>(shape.rows) > most || static_cast<std::size_t>(shape.ld) > most / shape.element_bytes)
      throw Error(fmt::format("task {} on rank {} reads a tile of rank {} (port {}) with {} rows, {} bytes apart: "
                              "neither may pass {} between ranks; use smaller tiles",
                              core.name, executor, tiles[i]->owner, i, shape.rows,
                              static_cast<std::size_t>(shape.ld) * shape.element_bytes, most));
  }
}

/// StarPU's number of the worker that the submitter has chosen.
unsigned chosen_worker(const CodeletCore::State& core, const Hints& hints) {
  const std::string task = full_name(core.name, hints.label);
  if (hints.where == Where::anywhere)
    throw Error(fmt::format("task {} asks for worker {} of no kind: say CPU or CUDA", task, hints.worker));
  const bool cpu = hints.where == Where::cpu;
  const int worker = hints.worker < 0 ? -1 : starpu_worker_get_by_type(cpu ? STARPU_CPU_WORKER : STARPU_CUDA_WORKER,
                                                                       hints.worker);
  if (worker < 0)
    throw Error(fmt::format("task {} asks for {} worker {}: there are {}, counted from 0", task, cpu ? "CPU" : "CUDA",
                            hints.worker, cpu ? starpu_cpu_worker_get_count() : starpu_cuda_worker_get_count()),
                Blame::machine);
  return static_cast<unsigned>(worker);
}

}  // namespace

std::string TaskRecord::name() const { return full_name(codelet->name, label); }

void TaskRecord::lose_tiles() const {
  for (std::size_t i = 0; i < tiles.size(); ++i)
    if (writes(codelet->accesses[i])) tiles[i]->lost = runtime->failure.load();
}

CodeletCore::CodeletCore(std::string name, std::vector<Access> accesses, CpuCall call_cpu, std::vector<Kernel> cpu,
                         CudaCall call_cuda, std::vector<Kernel> cuda)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.name = std::move(name);
  s.accesses = std::move(accesses);
  s.call_cpu = call_cpu;
  s.cpu = std::move(cpu);
  s.call_cuda = call_cuda;
  s.cuda = std::move(cuda);
  if (s.accesses.empty() || s.accesses.size() > STARPU_NMAXBUFS)
    throw Error(fmt::format("codelet {} has {} ports: there may be 1 to {}", s.name, s.accesses.size(),
                            STARPU_NMAXBUFS));
  if (std::max(s.cpu.size(), s.cuda.size()) > STARPU_MAXIMPLEMENTATIONS)
    throw Error(fmt::format("codelet {} has more than {} implementations for one kind of worker", s.name,
                            STARPU_MAXIMPLEMENTATIONS));
  starpu_codelet_init(&s.codelet);
  for (std::size_t i = 0; i < s.cpu.size(); ++i) s.codelet.cpu_funcs[i] = run_cpu;
#ifdef ASTERISM_WITH_CUDA
  for (std::size_t i = 0; i < s.cuda.size(); ++i) {
    s.codelet.cuda_funcs[i] = run_cuda;
    s.codelet.cuda_flags[i] = STARPU_CUDA_ASYNC;
  }
#else
  s.cuda.clear();
#endif
  s.codelet.nbuffers = static_cast<int>(s.accesses.size());
  for (std::size_t i = 0; i < s.accesses.size(); ++i) s.codelet.modes[i] = starpu_mode(s.accesses[i]);
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

void CodeletCore::submit(std::shared_ptr<const void> args, const TileBase* const* tiles, const Hints& hints) const {
  State& core = *state_;
  std::vector<TileState*> states;
  for (std::size_t i = 0; i < core.accesses.size(); ++i) {
    states.push_back(tiles[i]->state());
    if (const char* const flaw = flaw_of(states.back()))
      throw Error(fmt::format("task {}: port {} is {}", full_name(core.name, hints.label), i, flaw));
  }
  Runtime::State& runtime = *states.front()->runtime;

  int executor = -1;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const TileState& tile = *states[i];
    if (reads(core.accesses[i]) && tile.owner == runtime.rank) require_content(core, tile, i, hints);
    if (!writes(core.accesses[i])) continue;
    if (executor >= 0 && executor != tile.owner)
      throw Error(fmt::format("task {} writes tiles of rank {} and of rank {}: it can run on one rank only", core.name,
                              executor, tile.owner));
    executor = tile.owner;
  }
  if (executor < 0)
    throw Error(fmt::format("task {} writes no tile: it would have no effect", core.name));
  if (runtime.ranks > 1) require_sendable(core, states, executor);
  const bool ours = executor == runtime.rank;
  const std::uint32_t where = ours ? possible_workers(core, states, hints) : 0;
  const bool pinned = ours && hints.worker != -1;
  const unsigned worker = pinned ? chosen_worker(core, hints) : 0;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (!writes(core.accesses[i])) continue;
    states[i]->written = true;
    states[i]->written_in = runtime.period;
    states[i]->lost = nullptr;  // unless the task does not come to write it
  }

  starpu_task* task = starpu_task_create();
  task->cl = &core.codelet;
  for (std::size_t i = 0; i < states.size(); ++i) STARPU_TASK_SET_HANDLE(task, states[i]->handle, i);
  task->where = static_cast<std::int32_t>(where);
  task->execute_on_a_specific_worker = pinned ? 1 : 0;
  task->workerid = worker;
  task->priority = hints.priority;
  task->flops = hints.flops;
  task->name = core.name.c_str();

  if (!ours) {
    std::int64_t received = 0;
    int status = 0;
    ranks::submit(task, received, status);  // sends what the executing rank needs of ours
    task->destroy = 0;
    starpu_task_destroy(task);
    return;
  }

  std::list<TaskRecord> finished;  // ends after this function's work, and not under the lock
  TaskRecord* record = nullptr;
  {
    std::unique_lock lock(runtime.mutex);
    runtime.wait_until(lock, [&] { return runtime.in_flight.size() < runtime.options.window; });
    record = &runtime.in_flight.emplace_back();
    record->self = std::prev(runtime.in_flight.end());
    record->codelet = &core;
    record->args = std::move(args);
    record->label = hints.label;
    record->cost = hints.cost;
    record->streams = hints.streams;
    if (hints.streams) ++runtime.streaming;
    for (TileState* tile : states) record->tiles.push_back(tile->shared_from_this());
    record->runtime = &runtime;
    record->task = task;
    finished.swap(runtime.finished);
  }
  task->cl_arg = record;
  task->callback_func = ended;
  task->callback_arg = record;
  int status = 0;
  if (runtime.ranks > 1) {
    std::int64_t received = 0;
    ranks::submit(task, received, status);
    runtime.bytes_from_ranks += received;
  } else {
    status = starpu_task_submit(task);
  }
  if (status != 0) {
    {
      const std::lock_guard lock(runtime.mutex);
      if (record->streams) --runtime.streaming;
      finished.splice(finished.end(), runtime.in_flight, record->self);
    }
    task->destroy = 0;
    starpu_task_destroy(task);
    throw Error(fmt::format("StarPU refuses task {}: {}", core.name, std::strerror(-status)), Blame::machine);
  }
}

}  // namespace asterism::detail
