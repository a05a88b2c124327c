/// \file
/// What a task launches, launched again as one CUDA graph. For `.cu` files only.
#pragma once

#include <cstddef>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <type_traits>

#include "cuda.hpp"

namespace asterism::cuda {

/// A CUDA graph that can be launched.
class Graph {
 public:
  /// Of what `launches` launches into a stream, which is not done now.
  /// @throw what `launches` throws; Error: CUDA refuses what a graph cannot have, as a wait for the stream
  template <class Launches>
  Graph(cudaStream_t stream, const Launches& launches) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    cudaGraph_t captured = nullptr;
    try {
      launches();
    } catch (...) {
      cudaStreamEndCapture(stream, &captured);
      cudaGraphDestroy(captured);
      cudaGetLastError();  // or the next launch's check would find it
      throw;
    }
    check(cudaStreamEndCapture(stream, &captured), "cudaStreamEndCapture");
    const cudaError_t status = cudaGraphInstantiate(&graph_, captured, 0);
    cudaGraphDestroy(captured);
    check(status, "cudaGraphInstantiate");
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() { cudaGraphExecDestroy(graph_); }

  void launch(cudaStream_t stream) const { check(cudaGraphLaunch(graph_, stream), "cudaGraphLaunch"); }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

/// The graphs of one kernel, those used last: of tasks that came twice with equal arguments and extents and the same memory,
/// on the same GPU.
template <class Args, class Ports>
class Replays {
 public:
  /// @return null where the task comes for the first time
  template <class Launches>
  std::shared_ptr<const Graph> find(Stream stream, const Args& args, const Ports& ports, const Launches& launches) {
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    const std::scoped_lock lock(mutex_);
    for (auto at = known_.begin(); at != known_.end(); ++at) {
      if (std::memcmp(&at->ports, &ports, sizeof(Ports)) != 0 || at->device != device || !(at->args == args)) continue;
      known_.splice(known_.begin(), known_, at);
      if (at->graph == nullptr) at->graph = std::make_shared<const Graph>(native(stream), launches);
      return at->graph;
    }
    if (known_.size() == most) known_.pop_back();
    known_.push_front({device, args, ports, nullptr});
    return nullptr;
  }

 private:
  static_assert(std::has_unique_object_representations_v<Ports>);
  static constexpr std::size_t most = 64;
  struct Known {
    int device;
    Args args;
    Ports ports;
    std::shared_ptr<const Graph> graph;
  };

  std::mutex mutex_;
  std::list<Known> known_;  ///< the last one used first
};

/// Launches what a task launches: `launches`, or where an equal task has come before, all of that as one graph. (On the
/// host of an H200 six launches take 28 us, one of a graph of them 2.)
/// @param args,ports the task's: all that decides what is launched
template <class Args, class Ports, class Launches>
void replay(Stream stream, const Args& args, const Ports& ports, const Launches& launches) {
  // One for each type of `launches`, so for each kernel; at the process's end CUDA may be gone before static objects are.
  static auto& replays = *new Replays<Args, Ports>;
  if (const std::shared_ptr<const Graph> graph = replays.find(stream, args, ports, launches))
    graph->launch(native(stream));
  else
    launches();
}

}  // namespace asterism::cuda
