#include "asides.hpp"

#include "cuda_worker.hpp"

namespace asterism::cuda {

Asides::~Asides() {
  for (const Aside::Own& own : all_) {
    cudaEventDestroy(own.event);
    cudaStreamDestroy(own.stream);
  }
}

Aside::Own Asides::next() {
  constexpr std::size_t most = 4;  // STARPU_MAX_PIPELINE of StarPU's driver
  if (all_.size() < most) {
    Aside::Own made{};
    check(cudaStreamCreateWithFlags(&made.stream, cudaStreamNonBlocking), "cudaStreamCreate");
    if (const cudaError_t status = cudaEventCreateWithFlags(&made.event, cudaEventDisableTiming);
        status != cudaSuccess) {
      cudaStreamDestroy(made.stream);
      check(status, "cudaEventCreate");
    }
    all_.push_back(made);
    return made;
  }
  return all_[turn_++ % most];
}

Aside::Aside(Stream task)
    : task_(native(task)), own_(worker_of_this_thread("a stream beside a task's").asides.next()) {}

Aside::~Aside() {
  cudaEventRecord(own_.event, own_.stream);
  cudaStreamWaitEvent(task_, own_.event, 0);
}

}  // namespace asterism::cuda
