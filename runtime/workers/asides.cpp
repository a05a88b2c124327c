#include "asides.hpp"

#include "cuda_worker.hpp"

namespace asterism::cuda {

SideStream Asides::next() {
  constexpr std::size_t most = 4;  // STARPU_MAX_PIPELINE of StarPU's driver
  return all_.count() < most ? all_.add() : all_[turn_++ % most];
}

Aside::Aside(Stream task)
    : task_(native(task)), own_(worker_of_this_thread("a stream beside a task's").asides.next()) {}

Aside::~Aside() {
  cudaEventRecord(own_.last, own_.handle);
  cudaStreamWaitEvent(task_, own_.last, 0);
}

}  // namespace asterism::cuda
