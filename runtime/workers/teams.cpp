#include "teams.hpp"

#include <fmt/format.h>
#include <starpu.h>
#include <starpu_cuda.h>

#include <algorithm>
#include <utility>

#include "../run/state.hpp"
#include "cuda_worker.hpp"

namespace asterism {
namespace cuda {
namespace {

/// The device of a rank's GPU. @throw Error
int device_of(int gpu) {
  const int worker = number_in_starpu(WorkerKind::cuda, gpu);
  if (worker < 0)
    throw Error(
        fmt::format("a team with GPU {}: there are {}, counted from 0", gpu, starpu_cuda_worker_get_count()));
  return starpu_worker_get_devid(worker);
}

/// Makes a device the current one of the thread while it lives.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    check(cudaGetDevice(&before_), "cudaGetDevice");
    check(cudaSetDevice(device), "cudaSetDevice");
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { cudaSetDevice(before_); }

 private:
  int before_ = 0;
};

/// Whether a device's kernels can use the memory of another.
bool can_see(int device, int other) {
  int can = device == other ? 1 : 0;
  if (can == 0) check(cudaDeviceCanAccessPeer(&can, device, other), "cudaDeviceCanAccessPeer");
  return can != 0;
}

}  // namespace

/// StarPU has allowed it where it copies from GPU to GPU, which it can be told not to.
void Teams::let_see(const std::vector<int>& devices) {
  for (const int device : devices)
    for (const int other : devices) {
      const std::pair pair{device, other};
      if (device == other || std::ranges::find(seen_, pair) != seen_.end()) continue;
      if (!can_see(device, other))
        throw Error(
            fmt::format("GPU {} cannot use the memory of GPU {}: they cannot work on a task together; see "
                        "Runtime::gpus_see_each_other",
                        device, other),
            Blame::machine);
      const OnDevice here(device);
      const cudaError_t status = cudaDeviceEnablePeerAccess(other, 0);
      if (status == cudaErrorPeerAccessAlreadyEnabled)
        cudaGetLastError();  // it would be the next launch's
      else
        check(status, "cudaDeviceEnablePeerAccess");
      seen_.push_back(pair);
    }
}

std::vector<Team::Member> Teams::members(const std::vector<int>& devices) {
  let_see(devices);
  std::vector<Team::Member> members;
  std::vector<bool> taken(all_.size(), false);
  for (const int device : devices) {
    std::size_t i = 0;
    while (i < all_.size() && (taken[i] || all_[i].device != device)) ++i;
    if (i == all_.size()) {
      const OnDevice here(device);
      all_.push_back({device, streams_.add()});
      taken.push_back(false);
    }
    taken[i] = true;
    members.push_back(all_[i]);
  }
  return members;
}

Team::Team(Stream stream, const std::vector<int>& gpus) : task_(native(stream)) {
  std::vector<int> devices;
  for (const int gpu : gpus) devices.push_back(device_of(gpu));
  members_ = worker_of_this_thread("a team").teams.members(devices);
  check(cudaGetDevice(&device_), "cudaGetDevice");
  // What was launched before has been launched on the task's own GPU.
  const auto own = std::ranges::find(members_, device_, &Member::device);
  if (own == members_.end())
    throw Error("a team has to have the GPU that the task runs on as a member, which has none of its own");
  check(cudaEventRecord(own->stream.last, task_), "cudaEventRecord");
  for (const Member& member : members_)
    check(cudaStreamWaitEvent(member.stream.handle, own->stream.last, 0), "cudaStreamWaitEvent");
}

Team::~Team() {
  for (const Member& member : members_) {
    cudaEventRecord(member.stream.last, member.stream.handle);
    cudaStreamWaitEvent(task_, member.stream.last, 0);
  }
  cudaSetDevice(device_);
}

Stream Team::on(std::size_t member) {
  check(cudaSetDevice(members_[member].device), "cudaSetDevice");
  return {members_[member].stream.handle};
}

void Team::meet() {
  for (const Member& member : members_)
    check(cudaEventRecord(member.stream.last, member.stream.handle), "cudaEventRecord");
  for (const Member& member : members_)
    for (const Member& other : members_)
      if (&other != &member) check(cudaStreamWaitEvent(member.stream.handle, other.stream.last, 0), "cudaStreamWaitEvent");
}

}  // namespace cuda

bool Runtime::gpus_see_each_other() const {
  const int gpus = static_cast<int>(starpu_cuda_worker_get_count());
  for (int a = 0; a < gpus; ++a)
    for (int b = 0; b < gpus; ++b)
      if (!cuda::can_see(cuda::device_of(a), cuda::device_of(b))) return false;
  return gpus > 0;
}

}  // namespace asterism
