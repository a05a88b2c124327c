#include "bandwidth.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "pinned_buffer.hpp"

#ifdef ASTERISM_WITH_CUDA
#include <starpu.h>

#include "../cuda.hpp"
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

/// STREAM's triad, a = b + s c, on float64: three arrays of `bytes` each, cut among the threads.
double measure_host_triad(int threads, std::size_t bytes, double* a, const double* b, const double* c) {
  const std::size_t share = bytes / sizeof(double) / static_cast<std::size_t>(threads);
  const double seconds = shortest_seconds([&] {
    std::vector<std::jthread> team;
    for (int t = 0; t < threads; ++t) {
      const std::size_t offset = static_cast<std::size_t>(t) * share;
      team.emplace_back([a = a + offset, b = b + offset, c = c + offset, share] {
        for (std::size_t i = 0; i < share; ++i) a[i] = b[i] + 3.0 * c[i];
      });
    }
  });
  return 3 * static_cast<double>(share * static_cast<std::size_t>(threads) * sizeof(double)) / seconds;
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

/// CUDA's numbers of the GPUs that the runtime uses: they need not begin with 0.
std::vector<int> devices() {
  std::vector<int> found;
  for (int w = 0; w < static_cast<int>(starpu_worker_get_count()); ++w)
    if (starpu_worker_get_type(w) == STARPU_CUDA_WORKER) found.push_back(starpu_worker_get_devid(w));
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());  // a GPU may have several workers
  return found;
}

void measure_gpu(Bandwidth& result, int device, std::size_t bytes, void* host_a, void* host_b) {
  check(cudaSetDevice(device), "cudaSetDevice");
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

/// A GPU that a part of main memory is streamed through, the two directions independent of each other.
class StreamedDevice {
 public:
  StreamedDevice(int device, const PinnedBuffer& host)
      : device_(device),
        host_(host.as<char>()),
        bytes_(host.bytes()),
        piece_(std::min(host.bytes(), largest_piece)) {
    check(cudaSetDevice(device), "cudaSetDevice");
    up_ = std::make_unique<DeviceCopies>(piece_);
    down_ = std::make_unique<DeviceCopies>(piece_);
  }
  StreamedDevice(const StreamedDevice&) = delete;
  StreamedDevice& operator=(const StreamedDevice&) = delete;
  ~StreamedDevice() { cudaSetDevice(device_); }  // the streams and the memory that end now are this device's

  /// From the calling thread; returns when all is copied.
  void stream(bool both_ways) {
    check(cudaSetDevice(device_), "cudaSetDevice");
    const std::size_t pieces = bytes_ / piece_;
    for (std::size_t i = 0; i < pieces; ++i) {
      up_->up(host_ + i * piece_);
      if (both_ways) down_->down(host_ + (i + pieces / 2) % pieces * piece_);  // not what goes up now
    }
    up_->wait();
    down_->wait();
  }

  [[nodiscard]] std::size_t streamed_bytes() const { return bytes_ / piece_ * piece_; }

 private:
  static constexpr std::size_t largest_piece = std::size_t{64} << 20;

  int device_;
  char* host_;
  std::size_t bytes_, piece_;
  std::unique_ptr<DeviceCopies> up_, down_;
};

void measure_all_gpus(Bandwidth& result, const std::vector<int>& devices,
                      const std::vector<PinnedBuffer>& host) {
  std::vector<std::unique_ptr<StreamedDevice>> streamed;
  double total = 0;
  for (std::size_t g = 0; g < devices.size(); ++g) {
    streamed.push_back(std::make_unique<StreamedDevice>(devices[g], host[g]));
    total += static_cast<double>(streamed.back()->streamed_bytes());
  }
  const auto measure = [&](bool both_ways) {
    return total / shortest_seconds([&] {
             std::vector<std::future<void>> team;
             for (const auto& device : streamed)
               team.push_back(
                   std::async(std::launch::async, [&device, both_ways] { device->stream(both_ways); }));
             for (std::future<void>& member : team) member.get();
           });
  };
  result.gpus = static_cast<int>(devices.size());
  result.all_to_device = measure(false);
  result.all_both_ways = measure(true);
}
#endif

}  // namespace

Bandwidth measure_bandwidth(Runtime& runtime, std::size_t bytes) {
  const Machine machine = runtime.machine();
  std::vector<PinnedBuffer> host;
  for (int i = 0; i < std::max(2, machine.count(WorkerKind::cuda)); ++i) host.emplace_back(runtime, bytes);
  Bandwidth result;
  if (const int cpus = machine.count(WorkerKind::cpu); cpus > 0) {
    result.host_copy = measure_host_copy(cpus, bytes, host[0].as<char>(), host[1].as<char>());
    const std::size_t half = bytes / 2 / sizeof(double);  // three arrays in the two buffers
    result.host_triad = measure_host_triad(cpus, half * sizeof(double), host[0].as<double>(),
                                           host[0].as<double>() + half, host[1].as<double>());
  }
#ifdef ASTERISM_WITH_CUDA
  if (const std::vector<int> gpus = devices(); !gpus.empty()) {
    measure_gpu(result, gpus[0], bytes, host[0].data(), host[1].data());
    measure_all_gpus(result, gpus, host);
  }
#endif
  return result;
}

}  // namespace asterism
