// What the stream of a kernel has beside it.

#include <starpu.h>
#include <starpu_cuda.h>

#include "../cuda.hpp"
#include "../run/state.hpp"
#include "../tasks/task_record.hpp"
#include "cuda_worker.hpp"

namespace asterism {
namespace {

thread_local detail::TaskRecord* in_kernel = nullptr;
thread_local bool has_status = false;  // whether that kernel has taken a word

/// StarPU calls it in the worker's thread when a kernel has ended, before any task may begin that waits for it.
void look_at_status(void* argument) noexcept {
  auto& record = *static_cast<detail::TaskRecord*>(argument);
  const std::string failure = worker_of_this_thread("a status word").words.look(record);
  if (!failure.empty() && record.failure == nullptr)
    record.lose(current_runtime()->fail(record.name(), failure));
}

}  // namespace

CudaWorker& worker_of_this_thread(const char* wanted) {
  Runtime::State* const runtime = current_runtime();
  const int worker = runtime == nullptr ? -1 : starpu_worker_get_id();
  if (worker < 0 || starpu_worker_get_type(worker) != STARPU_CUDA_WORKER)
    throw Error(std::string(wanted) +
                " is a CUDA worker's: ask for it in the host code of a CUDA kernel, or in what "
                "Runtime::on_worker runs there");
  std::shared_ptr<CudaWorker>& kept = runtime->cuda_workers[static_cast<std::size_t>(worker)];
  if (kept == nullptr) kept = std::make_shared<CudaWorker>();
  return *kept;
}

cublasContext* Stream::cublas() const {
  return worker_of_this_thread("a handle of cuBLAS").handles.cublas(cuda::native(*this));
}

cusolverDnContext* Stream::cusolver() const {
  return worker_of_this_thread("a handle of cuSOLVER").handles.cusolver(cuda::native(*this));
}

int* Stream::status(const char* what) const {
  if (in_kernel == nullptr)
    throw Error("a status word is of a task's kernel: ask for it in the host code of a CUDA kernel");
  int* const word = worker_of_this_thread("a status word").words.take(*in_kernel, what, cuda::native(*this));
  has_status = true;
  in_kernel->task->epilogue_callback_func = look_at_status;
  in_kernel->task->epilogue_callback_arg = in_kernel;
  return word;
}

Stream Stream::of_worker() {
  worker_of_this_thread("a stream");
  return {starpu_cuda_get_local_stream()};
}

void Runtime::State::end_cuda_workers() {
  if (std::all_of(cuda_workers.begin(), cuda_workers.end(),
                  [](const auto& worker) { return worker == nullptr; }))
    return;
  const auto end_mine = [](void* workers) {
    (*static_cast<decltype(cuda_workers)*>(workers))[static_cast<std::size_t>(starpu_worker_get_id())]
        .reset();
  };
  starpu_execute_on_each_worker_ex(end_mine, &cuda_workers, STARPU_CUDA, "end_cuda_workers");
}

namespace detail {

KernelOfTask::KernelOfTask(TaskRecord& task) {
  in_kernel = &task;
  has_status = false;
}

KernelOfTask::~KernelOfTask() { in_kernel = nullptr; }

void KernelOfTask::launched() const {
  if (has_status)
    worker_of_this_thread("a status word").words.send(*in_kernel, starpu_cuda_get_local_stream());
}

}  // namespace detail
}  // namespace asterism
