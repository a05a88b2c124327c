#include "../codelet.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "../kept/program_name.hpp"
#include "task_checks.hpp"

#ifdef ASTERISM_WITH_CUDA
#include <starpu_cuda.h>

#include "../workers/cuda_worker.hpp"
#endif

namespace asterism::detail {
namespace {

/// StarPU looks up the memory node that a codelet wants each tile of a task on, whether or not it wants any, without
/// looking how many its own array has: it is given one of zeros that nobody means.
int* wanted_nodes() {
  static std::array<int, most_tiles> nodes{};
  return nodes.data();
}

/// What a task's kernel is given of its tiles.
ShortList<Matrix, 8> matrices_of(const TaskRecord& record, void* buffers[]) {
  ShortList<Matrix, 8> tiles;
  const auto add = [&](std::size_t buffer) {
    const auto* m = static_cast<const starpu_matrix_interface*>(buffers[buffer]);
    tiles.push_back({reinterpret_cast<void*>(m->ptr), m->ny, m->nx, m->ld});
  };
  if (!record.repeats_tiles)
    for (int i = 0; i < record.task->nbuffers; ++i) add(static_cast<std::size_t>(i));
  else
    for (const std::size_t buffer : record.buffers.of_port) add(buffer);
  return tiles;
}

/// Unpacks the buffers and calls the kernel. Nothing may be thrown into StarPU; the first failure is kept, and the tasks
/// after it do nothing, so that the graph drains. What they should have written is noted as lost before they end, that is
/// before anybody else sees it.
template <class Call>
void execute(void* buffers[], Runtime::State& runtime, TaskRecord& record, Call call) noexcept {
  if (runtime.holds > 0) runtime.wait_while_held();
  if (const Failure* const failure = runtime.failure; failure != nullptr) return record.lose(*failure);
  try {
    ShortList<Matrix, 8> tiles = matrices_of(record, buffers);
    call(record, starpu_task_get_implementation(record.task),
         PortReader{tiles.data(), record.has_counts ? record.counts.data() : nullptr});
    if (record.writes_out)
      for (const Buffer& buffer : record.buffers.all)
        if (buffer.access == Access::write) buffer.tile->lost = nullptr;
    runtime.by_kernels.give();
  } catch (const std::exception& error) {
    record.lose(runtime.fail(record.name(), error.what()));
  } catch (...) {
    record.lose(runtime.fail(record.name(), no_standard_exception));
  }
}

/// What StarPU runs as a task, on either kind of worker.
template <class Call>
void run(void* buffers[], void* argument, Call call) noexcept {
  Runtime::State& runtime = *current_runtime();
  auto& record = *static_cast<TaskRecord*>(argument);
  runtime.tasks.begin();
  record.given.take();
  runtime.by_host.take();
  runtime.by_kernels.take();
  execute(buffers, runtime, record, call);
  if (record.end == TaskEnd::with_kernel) runtime.task_ended(record);
}

void run_cpu(void* buffers[], void* argument) {
  run(buffers, argument, [](const TaskRecord& record, unsigned implementation, PortReader ports) {
    const CodeletCore::State& core = *record.codelet;
    core.call_cpu(core.cpu[implementation], record.args.get(), ports);
  });
}

#ifdef ASTERISM_WITH_CUDA
void run_cuda(void* buffers[], void* argument) {
  run(buffers, argument, [](TaskRecord& record, unsigned implementation, PortReader ports) {
    const CodeletCore::State& core = *record.codelet;
    const KernelOfTask kernel(record);
    core.call_cuda(core.cuda[implementation], Stream{starpu_cuda_get_local_stream()}, record.args.get(),
                   ports);
    kernel.launched();
  });
}
#endif

/// Distinguishes the performance of tasks by the sizes of their tiles and by what the submitter says changes the cost.
std::uint32_t footprint(starpu_task* task) {
  current_runtime()->costs.take();  // a worker may be the first to look: one that makes the task ready
  const auto cost = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(task->prologue_callback_arg));
  return starpu_task_data_footprint(task) ^ cost;
}

}  // namespace

std::string full_name(const std::string& codelet, const std::string& label) {
  return codelet + (label.empty() ? "" : " (" + label + ")");
}

CodeletCore::CodeletCore(std::string name, CpuCall call_cpu, std::vector<Kernel> cpu, CudaCall call_cuda,
                         std::vector<Kernel> cuda)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.name = std::move(name);
  s.symbol = program_name() + "-" + s.name;  // programs have other codelets of the same name
  s.call_cpu = call_cpu;
  s.cpu = std::move(cpu);
  s.call_cuda = call_cuda;
  s.cuda = std::move(cuda);
  s.model.type = STARPU_HISTORY_BASED;
  s.model.symbol = s.symbol.c_str();
  s.model.footprint = footprint;
#ifndef ASTERISM_WITH_CUDA
  s.cuda.clear();
#endif
  s.fill(s.codelet);
}

void CodeletCore::State::fill(starpu_codelet& its) const {
  starpu_codelet_init(&its);
  // Nothing is thrown before main(): what there is no place for is told when a task is submitted.
  constexpr std::size_t most = STARPU_MAXIMPLEMENTATIONS;
  for (std::size_t i = 0; i < std::min(cpu.size(), most); ++i) its.cpu_funcs[i] = run_cpu;
#ifdef ASTERISM_WITH_CUDA
  for (std::size_t i = 0; i < std::min(cuda.size(), most); ++i) {
    its.cuda_funcs[i] = run_cuda;
    its.cuda_flags[i] = STARPU_CUDA_ASYNC;
  }
#endif
  its.nbuffers = STARPU_VARIABLE_NBUFFERS;  // each task says how many, and how it uses them
  its.dyn_nodes = wanted_nodes();
  its.name = name.c_str();
  its.model = const_cast<starpu_perfmodel*>(&model);
}

starpu_codelet& CodeletCore::State::on(const std::vector<int>& nodes) {
  const std::lock_guard lock(mutex);
  const auto known = std::ranges::find(on_nodes, nodes, &CodeletOnNodes::nodes);
  if (known != on_nodes.end()) return known->codelet;
  CodeletOnNodes& its = on_nodes.emplace_back(CodeletOnNodes{nodes});
  fill(its.codelet);
  its.codelet.specific_nodes = 1;
  its.codelet.dyn_nodes = its.nodes.data();
  return its.codelet;
}

CodeletCore::~CodeletCore() {
  if (Runtime::State* const runtime = current_runtime()) {
    const std::lock_guard lock(runtime->mutex);
    runtime->retired.push_back(std::move(state_));
  }
}

const std::string& CodeletCore::name() const { return state_->name; }

}  // namespace asterism::detail
