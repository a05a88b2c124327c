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

/// Two buffers of main memory in halves, of which every core has its share: it has written it before it is measured, as
/// memory that nobody has written is read from a single page of zeros, and lies next to nobody.
class HostCopies {
 public:
  HostCopies(int cores, std::size_t bytes, void* from, void* to)
      : cores_(cores),
        half_(bytes / 2 / sizeof(double)),
        share_(half_ / static_cast<std::size_t>(cores)),
        from_(static_cast<double*>(from)),
        to_(static_cast<double*>(to)) {
    by_each([this](std::size_t first) {
      for (double* half : {from_, from_ + half_, to_, to_ + half_}) std::fill_n(half + first, share_, 1.0);
    });
  }

  /// @return bytes that are read and written, a second
  [[nodiscard]] double copy() const {
    return measure(4, [this](std::size_t first) {
      for (const std::size_t half : {first, half_ + first})
        std::memcpy(to_ + half, from_ + half, share_ * sizeof(double));
    });
  }
  /// STREAM's triad, a = b + s c, on float64.
  [[nodiscard]] double triad() const {
    return measure(3, [this](std::size_t first) {
      double* const a = to_ + first;
      const double *const b = from_ + first, *const c = from_ + half_ + first;
      for (std::size_t i = 0; i < share_; ++i) a[i] = b[i] + 3.0 * c[i];
    });
  }

 private:
  /// Calls body(its first element in each half) on every core.
  template <class Body>
  void by_each(const Body& body) const {
    std::vector<std::jthread> team;
    for (int t = 0; t < cores_; ++t)
      team.emplace_back([&body, first = static_cast<std::size_t>(t) * share_] { body(first); });
  }
  /// @param halves that are read or written
  template <class Body>
  [[nodiscard]] double measure(int halves, const Body& body) const {
    const double bytes = static_cast<double>(share_ * sizeof(double)) * cores_;
    return halves * bytes / shortest_seconds([&] { by_each(body); });
  }

  int cores_;
  std::size_t half_, share_;  // elements
  double *from_, *to_;
};

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
  StreamedDevice(int device, char* host, std::size_t bytes)
      : device_(device),
        host_(host),
        pieces_(std::max<std::size_t>(1, bytes / largest_piece)),
        piece_(bytes / pieces_) {
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
    for (std::size_t i = 0; i < pieces_; ++i) {
      up_->up(host_ + i * piece_);
      if (both_ways) down_->down(host_ + (i + pieces_ / 2) % pieces_ * piece_);  // not what goes up now
    }
    up_->wait();
    down_->wait();
  }

  [[nodiscard]] std::size_t streamed_bytes() const { return pieces_ * piece_; }

 private:
  static constexpr std::size_t largest_piece = std::size_t{64} << 20;

  int device_;
  char* host_;
  std::size_t pieces_, piece_;
  std::unique_ptr<DeviceCopies> up_, down_;
};

using Streamed = std::vector<std::unique_ptr<StreamedDevice>>;

/// Through all GPUs at once. Returns when all is copied.
void stream(const Streamed& devices, bool both_ways) {
  std::vector<std::future<void>> team;
  for (const auto& device : devices)
    team.push_back(std::async(std::launch::async, [&device, both_ways] { device->stream(both_ways); }));
  for (std::future<void>& member : team) member.get();
}

void measure_all_gpus(Bandwidth& result, const std::vector<int>& devices,
                      const std::vector<PinnedBuffer>& host) {
  Streamed streamed;
  double total = 0;
  for (std::size_t g = 0; g < devices.size(); ++g) {
    streamed.push_back(std::make_unique<StreamedDevice>(devices[g], host[g].as<char>(), host[g].bytes()));
    total += static_cast<double>(streamed.back()->streamed_bytes());
  }
  result.gpus = static_cast<int>(devices.size());
  result.all_to_device = total / shortest_seconds([&] { stream(streamed, false); });
  result.all_both_ways = total / shortest_seconds([&] { stream(streamed, true); });
}
#endif

}  // namespace

Bandwidth measure_bandwidth(Runtime& runtime, std::size_t bytes) {
  const Machine machine = runtime.machine();
  std::vector<PinnedBuffer> host;
  for (int i = 0; i < std::max(2, machine.count(WorkerKind::cuda)); ++i) host.emplace_back(runtime, bytes);
  Bandwidth result;
  if (const int cpus = machine.count(WorkerKind::cpu); cpus > 0) {
    const HostCopies copies(cpus, bytes, host[0].data(), host[1].data());
    result.host_copy = copies.copy();
    result.host_triad = copies.triad();
  }
#ifdef ASTERISM_WITH_CUDA
  if (const std::vector<int> gpus = devices(); !gpus.empty()) {
    measure_gpu(result, gpus[0], bytes, host[0].data(), host[1].data());
    measure_all_gpus(result, gpus, host);
  }
#endif
  return result;
}

double measure_two_passes(Runtime& /*runtime*/, [[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) {
#ifdef ASTERISM_WITH_CUDA
  const std::vector<int> gpus = devices();
  if (gpus.empty() || bytes < gpus.size()) return 0;
  const std::size_t part = bytes / gpus.size();
  Streamed streamed;
  for (std::size_t g = 0; g < gpus.size(); ++g)
    streamed.push_back(std::make_unique<StreamedDevice>(gpus[g], static_cast<char*>(data) + g * part, part));
  return shortest_seconds([&] { stream(streamed, false), stream(streamed, true); });
#else
  return 0;
#endif
}

}  // namespace asterism
