/// \file
/// CUDA statuses as exceptions, streams beside a task's own, and GPUs that work on a task together, for `.cu` files only.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>
#include <vector>

#include "error.hpp"
#include "ports.hpp"

namespace asterism::cuda {

/// @throw Error when `status` is not success; `what` names the call or kernel. Inside a task this becomes the task's
/// failure.
inline void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // or the next launch's check would find it
  throw Error(std::string(what) + ": CUDA says " + cudaGetErrorName(status) + ": " + cudaGetErrorString(status),
              Blame::task);
}

/// Checks the launch that just happened. (A fault during the kernel's run shows at a later synchronisation.)
inline void check_launch(const char* kernel) { check(cudaGetLastError(), kernel); }

inline cudaStream_t native(Stream stream) { return static_cast<cudaStream_t>(stream.handle); }

/// What a worker has beside the stream of its tasks.
struct SideStream {
  cudaStream_t handle = nullptr;
  cudaEvent_t last = nullptr;  ///< of what was launched last
};

/// Those who work on a task together (Hints::together): a stream each, on one of the rank's GPUs, for the host code of the
/// task's kernel. Several may be on one GPU. While it lives, the GPU that launches go to is that of the last `on`.
///
///     cuda::Team team(stream, {0, 1});
///     for (std::size_t k = 0; k < 2; ++k) half<<<blocks, threads, 0, native(team.on(k))>>>(x[k], mine[k], yours[k]);
///     team.meet();
///     ...
class Team {
 public:
  /// Begins when all is done that was launched into the task's stream before.
  /// @param gpus of each member, as numbers among those of the rank @throw Error: not in a CUDA kernel's host code; there
  /// is no such GPU; they do not see each other's memory; CUDA refuses
  Team(Stream stream, const std::vector<int>& gpus);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  /// The task's stream goes on when all of them have done what was launched.
  ~Team();

  /// Launches are that member's from here on. @return its stream @throw Error: CUDA refuses
  Stream on(std::size_t member);
  /// What is launched after it, on any of them, begins when all have done what was launched before it.
  /// @throw Error: CUDA refuses
  void meet();

 private:
  struct Member {
    int device;
    SideStream stream;
  };
  friend class Teams;

  cudaStream_t task_;
  int device_ = 0;  // of the worker
  std::vector<Member> members_;
};

/// A stream beside the task's own, for the host code of a kernel that leaves much of a GPU idle, or ends with few of its
/// blocks: what is launched into it does not wait for what tasks before it launched there, and the task is done when that is.
/// Tiles are there, as StarPU waits for their transfers on the host; a scratch tile must not be that of another such task. How
/// many tasks a GPU has at a time: Preferences::tasks_on_gpu.
///
///     const cuda::Aside aside(stream);
///     walk<<<blocks, threads, 0, native(aside.stream())>>>(x);
class Aside {
 public:
  /// @throw Error: not in a CUDA kernel's host code; CUDA refuses
  explicit Aside(Stream task);
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  /// The task's stream goes on when all is done that was launched.
  ~Aside();

  [[nodiscard]] Stream stream() const { return {own_.handle}; }

 private:
  cudaStream_t task_;
  SideStream own_;
};

}  // namespace asterism::cuda
