#include "side_streams.hpp"

namespace asterism::cuda {

SideStreams::~SideStreams() {
  for (const SideStream& stream : all_) {
    cudaEventDestroy(stream.last);
    cudaStreamDestroy(stream.handle);
  }
}

SideStream SideStreams::add() {
  SideStream made;
  check(cudaStreamCreateWithFlags(&made.handle, cudaStreamNonBlocking), "cudaStreamCreate");
  if (const cudaError_t status = cudaEventCreateWithFlags(&made.last, cudaEventDisableTiming);
      status != cudaSuccess) {
    cudaStreamDestroy(made.handle);
    check(status, "cudaEventCreate");
  }
  all_.push_back(made);
  return made;
}

}  // namespace asterism::cuda
