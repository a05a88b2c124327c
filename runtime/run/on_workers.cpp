// What runs in the threads of workers beside tasks.

#include <fmt/format.h>

#include <mutex>

#include "state.hpp"

#ifdef ASTERISM_WITH_CUDA
#include <starpu_cuda.h>

#include "../cuda.hpp"
#endif

namespace asterism {
namespace {

/// A body that workers run, and what it throws there.
class Call {
 public:
  explicit Call(const std::function<void()>& body) : body_(body) {}

  static void run(void* argument) noexcept {
    auto& call = *static_cast<Call*>(argument);
    call.attempt(call.body_);
    call.attempt(finish_stream);  // also after a body that threw
  }
  void rethrow() const {
    if (failure_) throw TaskFailure("on a worker", *failure_);
  }

 private:
  /// StarPU insists on it that nothing is left in a GPU's stream.
  static void finish_stream() {
#ifdef ASTERISM_WITH_CUDA
    if (starpu_worker_get_type(starpu_worker_get_id()) == STARPU_CUDA_WORKER)
      cuda::check(cudaStreamSynchronize(starpu_cuda_get_local_stream()), "what a worker ran beside tasks");
#endif
  }
  template <class Step>
  void attempt(const Step& step) {
    try {
      step();
    } catch (const std::exception& error) {
      fail(error.what());
    } catch (...) {
      fail(no_standard_exception);
    }
  }
  /// The first reason stays: what comes after it may only follow from it.
  void fail(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = reason;
  }

  const std::function<void()>& body_;
  std::mutex mutex_;
  std::optional<std::string> failure_;
};

}  // namespace

void Runtime::on_each_worker(WorkerKind kind, const std::function<void()>& body) {
  Call call(body);
  starpu_execute_on_each_worker_ex(Call::run, &call, kind == WorkerKind::cpu ? STARPU_CPU : STARPU_CUDA,
                                   "on_each_worker");
  call.rethrow();
}

int number_in_starpu(WorkerKind kind, int number) {
  const bool cpu = kind == WorkerKind::cpu;
  return number < 0 ? -1 : starpu_worker_get_by_type(cpu ? STARPU_CPU_WORKER : STARPU_CUDA_WORKER, number);
}

void Runtime::on_worker(WorkerKind kind, int number, const std::function<void()>& body) {
  const int worker = number_in_starpu(kind, number);
  if (worker < 0)
    throw Error(fmt::format("there is no {} worker {}", kind == WorkerKind::cpu ? "CPU" : "CUDA", number),
                Blame::machine);
  Call call(body);
  auto id = static_cast<unsigned>(worker);
  starpu_execute_on_specific_workers(Call::run, &call, 1, &id, "on_worker");
  call.rethrow();
}

}  // namespace asterism
