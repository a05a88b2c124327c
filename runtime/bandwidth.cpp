#include "bandwidth.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "pinned_buffer.hpp"

#ifdef ASTERISM_WITH_CUDA
#include "cuda.hpp"
#endif

namespace asterism {
namespace {

constexpr int repetitions = 5;

/// The shortest time of several runs, in seconds, after one that is not counted.
template <class Body>
double shortest_seconds(Body body) {
  double best = 1e300;
  for (int i = 0; i <= repetitions; ++i) {
    const auto start = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    if (i > 0) best = std::min(best, elapsed.count());
  }
  return best;
}

double measure_host_copy(int threads, std::size_t bytes, char* from, char* to) {
  const std::size_t share = bytes / static_cast<std::size_t>(threads);
  const double seconds = shortest_seconds([&] {
    std::vector<std::jthread> team;
    for (int t = 0; t < threads; ++t) {
      const std::size_t offset = static_cast<std::size_t>(t) * share;
      team.emplace_back([=] { std::memcpy(to + offset, from + offset, share); });
    }
  });
  return 2 * static_cast<double>(bytes) / seconds;
}

#ifdef ASTERISM_WITH_CUDA
using cuda::check;

/// Device memory and a stream of its own, for one direction of copies.
class DeviceCopies {
 public:
  explicit DeviceCopies(std::size_t bytes) : bytes_(bytes) {
    check(cudaMalloc(&data_, bytes), "cudaMalloc");
    check(cudaStreamCreate(&stream_), "cudaStreamCreate");
  }
  DeviceCopies(const DeviceCopies&) = delete;
  DeviceCopies& operator=(const DeviceCopies&) = delete;
  ~DeviceCopies() {
    cudaStreamDestroy(stream_);
    cudaFree(data_);
  }

  void up(const void* host) { copy(data_, host, cudaMemcpyHostToDevice); }
  void down(void* host) { copy(host, data_, cudaMemcpyDeviceToHost); }
  void from(const DeviceCopies& other) { copy(data_, other.data_, cudaMemcpyDeviceToDevice); }
  void wait() { check(cudaStreamSynchronize(stream_), "copy"); }

 private:
  void copy(void* to, const void* from, cudaMemcpyKind kind) {
    check(cudaMemcpyAsync(to, from, bytes_, kind, stream_), "copy");
  }

  std::size_t bytes_;
  void* data_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

void measure_gpu(Bandwidth& result, std::size_t bytes, void* host_a, void* host_b) {
  check(cudaSetDevice(0), "cudaSetDevice");
  DeviceCopies a(bytes), b(bytes);
  const auto total = static_cast<double>(bytes);
  result.to_device = total / shortest_seconds([&] { a.up(host_a), a.wait(); });
  result.from_device = total / shortest_seconds([&] { a.down(host_a), a.wait(); });
  result.both_ways = total / shortest_seconds([&] { a.up(host_a), b.down(host_b), a.wait(), b.wait(); });
  constexpr int copies = 20;  // one copy of device memory is over too soon for the host's clock
  result.device_copy = 2 * copies * total / shortest_seconds([&] {
                         for (int i = 0; i < copies; ++i) b.from(a);
                         b.wait();
                       });
}
#endif

}  // namespace

Bandwidth measure_bandwidth(Runtime& runtime, std::size_t bytes) {
  const Machine machine = runtime.machine();
  const PinnedBuffer a(runtime, bytes), b(runtime, bytes);
  Bandwidth result;
  if (const int cpus = machine.count(WorkerKind::cpu); cpus > 0)
    result.host_copy = measure_host_copy(cpus, bytes, a.as<char>(), b.as<char>());
#ifdef ASTERISM_WITH_CUDA
  if (machine.count(WorkerKind::cuda) > 0) measure_gpu(result, bytes, a.data(), b.data());
#endif
  return result;
}

}  // namespace asterism
