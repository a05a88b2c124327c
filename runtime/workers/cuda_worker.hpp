/// \file
/// What a CUDA worker keeps for its kernels, beside their stream. Private to runtime/.
#pragma once

#include "asides.hpp"
#include "library_handles.hpp"
#include "status_words.hpp"
#include "teams.hpp"

namespace asterism {

struct CudaWorker {
  detail::LibraryHandles handles;
  detail::StatusWords words;
  cuda::Teams teams;
  cuda::Asides asides;
};

/// That in whose thread this is called. @param wanted what is asked for, in the message @throw Error: in no CUDA worker's
CudaWorker& worker_of_this_thread(const char* wanted);

namespace detail {

/// While it lives, a task's kernel runs in this thread: Stream::status is of that task.
class KernelOfTask {
 public:
  explicit KernelOfTask(TaskRecord& task);
  KernelOfTask(const KernelOfTask&) = delete;
  KernelOfTask& operator=(const KernelOfTask&) = delete;
  ~KernelOfTask();
  /// The kernel has launched all that it launches: queues what brings its status home. @throw Error: CUDA refuses
  void launched() const;
};

}  // namespace detail
}  // namespace asterism
