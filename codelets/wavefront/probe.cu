#include "probe.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tile.cuh"

namespace asterism::wavefront::cuda {

using asterism::cuda::check;

namespace {

__global__ void empty_kernel() {}

__global__ void __launch_bounds__(most_threads, 1) thread_barriers_kernel(int times) {
#pragma unroll 1
  for (int k = 0; k < times; ++k) __syncthreads();
}

__global__ void __launch_bounds__(most_threads, 1) block_barriers_kernel(unsigned* count, int times) {
  for (int k = 1; k <= times; ++k) meet(count, static_cast<unsigned>(k));
}

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "cudaEventCreate"); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { cudaEventDestroy(event_); }
  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  [[nodiscard]] double seconds_since(const Event& start) const {
    check(cudaEventSynchronize(event_), "a probe of the wavefront kernel");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start.event_, event_), "cudaEventElapsedTime");
    return milliseconds * 1e-3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class OwnStream {
 public:
  OwnStream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  ~OwnStream() { cudaStreamDestroy(stream_); }
  [[nodiscard]] cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// Zeros on the device.
class Zeros {
 public:
  Zeros() = default;
  Zeros(const Zeros&) = delete;
  Zeros& operator=(const Zeros&) = delete;
  ~Zeros() { cudaFree(data_); }

  /// At least so many bytes.
  void* at_least(std::size_t bytes) {
    if (bytes > bytes_) {
      check(cudaFree(data_), "cudaFree");
      data_ = nullptr;
      bytes_ = 0;
      check(cudaMalloc(&data_, bytes), "memory for probes of the wavefront kernel");
      bytes_ = bytes;
      check(cudaMemset(data_, 0, bytes), "cudaMemset");
      check(cudaDeviceSynchronize(), "cudaMemset");  // the probe's stream does not wait for it
    }
    return data_;
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Seconds of what `launch` puts into a stream, on the device.
template <class Launch>
double seconds_of(const OwnStream& stream, const Launch& launch) {
  Event start, end;
  start.record(stream.get());
  launch();
  end.record(stream.get());
  return end.seconds_since(start);
}

/// The shortest of a few.
template <class Launch>
double least_seconds_of(const OwnStream& stream, int repeats, const Launch& launch) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repeats; ++i) least = std::min(least, seconds_of(stream, launch));
  return least;
}

void launch_cooperatively(const void* kernel, int blocks, int threads, void** parameters, std::size_t shared,
                          const OwnStream& stream) {
  check(cudaLaunchCooperativeKernel(kernel, dim3(static_cast<unsigned>(blocks)),
                                    dim3(static_cast<unsigned>(threads)), parameters, shared, stream.get()),
        "a probe of the wavefront kernel");
}

}  // namespace

std::string device_name() {
  int device = 0;
  cudaDeviceProp properties;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties.name;
}

double seconds_of_empty_kernel(int blocks, int threads) {
  const OwnStream stream;
  return least_seconds_of(stream, 20, [&] {
    launch_cooperatively(reinterpret_cast<const void*>(empty_kernel), blocks, threads, nullptr, 0, stream);
  });
}

double seconds_of_thread_barrier(int threads) {
  const OwnStream stream;
  const auto barriers = [&](int times) {
    return least_seconds_of(stream, 5, [&] {
      thread_barriers_kernel<<<1, threads, 0, stream.get()>>>(times);
      asterism::cuda::check_launch("barriers of threads");
    });
  };
  constexpr int few = 1000, many = 11000;
  return std::max(0.0, (barriers(many) - barriers(few)) / (many - few));
}

double seconds_of_block_barrier(int blocks, int threads) {
  const OwnStream stream;
  Zeros memory;
  unsigned* count = static_cast<unsigned*>(memory.at_least(sizeof(unsigned)));
  const auto barriers = [&](int times) {
    return least_seconds_of(stream, 5, [&] {
      check(cudaMemsetAsync(count, 0, sizeof(unsigned), stream.get()), "wavefront's barrier");
      void* parameters[] = {&count, &times};
      launch_cooperatively(reinterpret_cast<const void*>(block_barriers_kernel), blocks, threads, parameters,
                           0, stream);
    });
  };
  constexpr int few = 20, many = 220;
  return std::max(0.0, (barriers(many) - barriers(few)) / (many - few));
}

template <class T>
struct WavefrontProbe<T>::State {
  int dimensions;
  bool has_source;
  OwnStream stream;
  Zeros u, g, meeting;

  /// A grid for `args`, all zeros.
  T* grid(const WavefrontArgs& args, Zeros& zeros) {
    return static_cast<T*>(
        zeros.at_least(static_cast<std::size_t>(wavefront_rows(args) * wavefront_cols(args)) * sizeof(T)));
  }
  T* source(const WavefrontArgs& args) { return has_source ? grid(args, g) : nullptr; }
  Scratch<unsigned> blocks_meet_by() {
    return {static_cast<unsigned*>(meeting.at_least(wavefront_scratch * sizeof(unsigned))), 1,
            wavefront_scratch, wavefront_scratch};
  }
};

template <class T>
WavefrontProbe<T>::WavefrontProbe(int dimensions, bool has_source)
    : state_(std::make_unique<State>(dimensions, has_source)) {}
template <class T>
WavefrontProbe<T>::~WavefrontProbe() = default;

template <class T>
double WavefrontProbe<T>::seconds_of_wavefront(const WavefrontLayout& layout) {
  State& state = *state_;
  const int dimensions = state.dimensions;
  const std::size_t shared = wavefront_shared_bytes<T>(dimensions, layout.tile, state.has_source);
  if (shared > most_shared_bytes()) return std::numeric_limits<double>::infinity();

  // A grid with room for two wavefronts of full tiles, about as many along each axis, in the first sweeps.
  constexpr double most_nodes = 1 << 27;
  WavefrontArgs args;
  args.dimensions = dimensions;
  args.omega = 1;
  args.along = {0.25, 0.25, 0.25};
  args.has_source = state.has_source;
  args.layout = layout;
  args.sweeps = layout.tile.sweeps;
  const double points = static_cast<double>(points_of_tile(dimensions, layout.tile) / layout.tile.sweeps);
  const double wanted = std::min(2.0 * layout.blocks, std::max(1.0, most_nodes / points));
  const auto along = static_cast<Index>(std::ceil(std::pow(wanted, 1.0 / dimensions)));
  for (int axis = 3 - dimensions; axis < 3; ++axis) {
    const auto k = static_cast<std::size_t>(axis);
    const Index m = layout.tile.points[k], first = (args.sweeps - 1 + m - 1) / m;
    args.nodes[k] = (first + along) * m;
  }

  if (wavefront_blocks_per_sm<T>(dimensions, layout.threads, shared) * multiprocessors() < layout.blocks)
    return std::numeric_limits<double>::infinity();

  return with_dimensions(dimensions, [&](auto dims) {
    const Index ld = wavefront_cols(args);
    T* const g = state.source(args);
    Sweeps<dims(), T> sweeps{WavefrontPlan<dims()>(args),
                             wavefront_weights<T>(args),
                             {state.grid(args, state.u), swept_grid(args, ld)},
                             {g, swept_grid(args, g == nullptr ? 0 : ld)},
                             state.has_source,
                             state.blocks_meet_by().data};
    sweeps.probed = sweeps.plan.full_tiles(0);
    const auto wavefronts_take = [&](int wavefronts, int repeats) {
      sweeps.probed_wavefronts = wavefronts;
      return least_seconds_of(state.stream, repeats, [&] {
        launch_wavefront<dims(), T>(Stream{state.stream.get()}, sweeps, layout, shared);
      });
    };
    // The kernel's start is the same for one wavefront and for many.
    const double one = wavefronts_take(1, 2);
    const int more = std::clamp(static_cast<int>(200e-6 / one), 1, 20);
    return (wavefronts_take(1 + more, 2) - one) / more;
  });
}

template <class T>
double WavefrontProbe<T>::seconds_of_run(const WavefrontArgs& args, int repeats) {
  State& state = *state_;
  const std::size_t shared = wavefront_shared_bytes<T>(args.dimensions, args.layout.tile, args.has_source);
  if (shared > most_shared_bytes() ||
      wavefront_blocks_per_sm<T>(args.dimensions, args.layout.threads, shared) * multiprocessors() <
          args.layout.blocks)
    return std::numeric_limits<double>::infinity();
  const Index rows = wavefront_rows(args), cols = wavefront_cols(args);
  const InOut<T> u{state.grid(args, state.u), rows, cols, cols};
  const In<T> g = args.has_source ? In<T>{state.source(args), rows, cols, cols} : In<T>{nullptr, 1, 1, 1};
  const auto run = [&] {
    return seconds_of(state.stream,
                      [&] { wavefront<T>(Stream{state.stream.get()}, args, u, g, state.blocks_meet_by()); });
  };
  constexpr double long_enough = 0.05;
  const double first = run();
  if (first > long_enough) return first;
  std::vector<double> seconds;
  for (int i = 0; i < std::max(1, repeats); ++i) seconds.push_back(run());
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

template class WavefrontProbe<float>;
template class WavefrontProbe<double>;

}  // namespace asterism::wavefront::cuda
