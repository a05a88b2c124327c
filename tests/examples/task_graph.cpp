// pi is the integral of 4 / (1 + x^2) from 0 to 1: sixteen tasks sample it, fifteen add the samples up.
// What runs when, and where, follows from what the tasks read and write, and from the machine.
#include <asterism/runtime/codelet.hpp>
#include <asterism/runtime/run.hpp>
#include <asterism/runtime/snapshot.hpp>
#include <cmath>
#include <cstdio>
using namespace asterism;
struct Part { double begin, step; };
ASTERISM_HOST_DEVICE void sample(Part p, Out<double> y, Index j) {
  y.data[j] = 4 / (1 + std::pow(p.begin + (double(j) + 0.5) * p.step, 2));
}
ASTERISM_HOST_DEVICE void add(In<double> x, InOut<double> y, Index j) { y.data[j] += x.data[j]; }

void cpu_sample(const Part& p, Out<double> y) { for (Index j{}; j < y.cols; ++j) sample(p, y, j); }
void cpu_sum(In<double> x, InOut<double> y) { for (Index j{}; j < y.cols; ++j) add(x, y, j); }
#ifdef __CUDACC__  // the same on a GPU, a thread for each element
__device__ Index thread() { return Index{blockIdx.x} * 256 + threadIdx.x; }
__global__ void samples(Part p, Out<double> y) { if (thread() < y.cols) sample(p, y, thread()); }
__global__ void sums(In<double> x, InOut<double> y) { if (thread() < y.cols) add(x, y, thread()); }
#define LAUNCH(kernel) kernel<<<unsigned(y.cols / 256 + 1), 256, 0, cudaStream_t(stream.handle)>>>
void cuda_sample(Stream stream, const Part& p, Out<double> y) { LAUNCH(samples)(p, y); }
void cuda_sum(Stream stream, In<double> x, InOut<double> y) { LAUNCH(sums)(x, y); }
#endif
const Codelet sample_all{"sample", cpu_sample, ASTERISM_CUDA_KERNEL(cuda_sample)};
const Codelet add_all{"add", cpu_sum, ASTERISM_CUDA_KERNEL(cuda_sum)};

int main() {
  return run({}, [](Runtime& runtime) {  // all cores and GPUs that are there
    constexpr Index parts = 16, points = 1 << 20;
    const auto owner = [&](Index k, Index) { return int(k * runtime.ranks() / parts); };
    const Tiles<double> y(runtime, parts, points, 1, points, owner);  // a row each; memory appears where it is needed
    for (Index k = 0; k < parts; ++k) sample_all({double(k) / parts, 1. / (parts * points)}, y[k]);
    for (Index d = 1; d < parts; d *= 2)
      for (Index k = 0; k < parts; k += 2 * d) add_all(y[k + d], y[k]);
    const Snapshot<double> sum(y[0]);  // on every rank; throws what went wrong in a task
    double pi = 0;
    for (Index j = 0; j < points; ++j) pi += sum(0, j) / (parts * points);
    if (runtime.rank() == 0) std::printf("pi is %.12f\n", pi);
    return std::abs(pi - M_PI) < 1e-12 ? 0 : 1;
  });
}
