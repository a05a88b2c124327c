/// \file
/// What kernels on a GPU say of themselves: see Stream::status. Private to runtime/.
#pragma once

#include <cuda_runtime.h>

#include <string>
#include <vector>

namespace asterism::detail {

struct TaskRecord;

/// Of one worker, used in its thread alone. A word is on the GPU, where the kernel writes it, and in main memory, to which a
/// copy that was queued behind the kernel has brought it by the time at which the task has ended.
class StatusWords {
 public:
  StatusWords() = default;
  StatusWords(const StatusWords&) = delete;
  StatusWords& operator=(const StatusWords&) = delete;
  ~StatusWords();

  /// A word of a task's kernel, 0 when the stream comes to it. @throw Error: too many are in use; CUDA refuses
  int* take(const TaskRecord& task, const char* what, cudaStream_t stream);
  /// Queues the copies of those that the task's kernel has taken. @throw Error: CUDA refuses
  void send(const TaskRecord& task, cudaStream_t stream) const;
  /// When the task has ended: gives its words back. @return "WHAT NUMBER" of the first that is not 0; else nothing
  std::string look(const TaskRecord& task);

 private:
  static constexpr int most = 256;  // the few tasks that a GPU has before it at a time take one or two each
  struct Taken {
    const TaskRecord* task;
    const char* what;
    int place;
  };
  void allocate();

  int *on_gpu_ = nullptr, *here_ = nullptr;
  std::vector<int> free_;
  std::vector<Taken> taken_;
};

}  // namespace asterism::detail
