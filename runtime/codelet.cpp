#include "codelet.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "detail/task_checks.hpp"

#ifdef ASTERISM_WITH_CUDA
#include <starpu_cuda.h>
#endif

namespace asterism::detail {
namespace {

/// StarPU looks up the memory node that a codelet wants each tile of a task on, whether or not it wants any, without
/// looking how many its own array has: it is given one of zeros that nobody means.
int* wanted_nodes() {
  static std::array<int, most_tiles> nodes{};
  return nodes.data();
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

}  // namespace

std::string full_name(const std::string& codelet, const std::string& label) {
  return codelet + (label.empty() ? "" : " (" + label + ")");
}

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

}  // namespace asterism::detail
