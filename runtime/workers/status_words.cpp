#include "status_words.hpp"

#include <fmt/format.h>

#include "../cuda.hpp"

namespace asterism::detail {

StatusWords::~StatusWords() {
  cudaFree(on_gpu_);
  cudaFreeHost(here_);
}

void StatusWords::allocate() {
  cuda::check(cudaMalloc(&on_gpu_, most * sizeof(int)), "memory for status words");
  cuda::check(cudaMallocHost(&here_, most * sizeof(int)), "memory for status words");
  for (int place = 0; place < most; ++place) free_.push_back(place);
}

int* StatusWords::take(const TaskRecord& task, const char* what, cudaStream_t stream) {
  if (here_ == nullptr) allocate();
  if (free_.empty())
    throw Error(fmt::format(
        "{} status words are in use, of kernels that have not ended: a kernel may take a few", most));
  const int place = free_.back();
  here_[place] = 0;  // should the kernel not come as far as its copy
  cuda::check(cudaMemsetAsync(on_gpu_ + place, 0, sizeof(int), stream), "a status word");
  free_.pop_back();
  taken_.push_back({&task, what, place});
  return on_gpu_ + place;
}

void StatusWords::send(const TaskRecord& task, cudaStream_t stream) const {
  for (const Taken& word : taken_)
    if (word.task == &task)
      cuda::check(cudaMemcpyAsync(here_ + word.place, on_gpu_ + word.place, sizeof(int),
                                  cudaMemcpyDeviceToHost, stream),
                  "copy of a status word");
}

std::string StatusWords::look(const TaskRecord& task) {
  std::string failure;
  std::erase_if(taken_, [&](const Taken& word) {
    if (word.task != &task) return false;
    if (failure.empty() && here_[word.place] != 0)
      failure = fmt::format("{} {}", word.what, here_[word.place]);
    free_.push_back(word.place);
    return true;
  });
  return failure;
}

}  // namespace asterism::detail
