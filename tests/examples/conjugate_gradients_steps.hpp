// What the tasks of conjugate_gradients.cpp do: a block of rows each, by a core, or by a block of threads of a GPU.
#pragma once
#include <asterism/runtime/codelet.hpp>
#include <cstdint>
using namespace asterism;

constexpr Index blocks = 8;

template <template <class> class As>
struct Csr {  // consecutive rows: three tiles
  As<In<std::int64_t>> starts;
  As<In<std::int32_t>> columns;
  As<In<double>> values;
};
template <template <class> class As>
struct ProductPorts {
  Csr<As> a;
  As<Many<In<double>>> p;  // all blocks, of `height` rows each but for the last
  As<Out<double>> q, pq;   // A p, and p * A p, of this block
};
struct State { double rr, alpha, beta; };  // of the iteration, on every rank
struct Block { Index number, height; };

constexpr unsigned threads = 512;  // of a GPU

template <class Term>  // of each row
ASTERISM_HOST_DEVICE double sum_over(Index rows, Term term) {
  double sum = 0;
#ifdef __CUDA_ARCH__
  __shared__ double sums[threads];
  for (Index i = threadIdx.x; i < rows; i += threads) sum += term(i);
  sums[threadIdx.x] = sum;
  for (unsigned half = threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  return sums[0];  // for thread 0
#else
  for (Index i = 0; i < rows; ++i) sum += term(i);
  return sum;
#endif
}
ASTERISM_HOST_DEVICE void keep(double sum, Out<double> result) {
#ifdef __CUDA_ARCH__
  if (threadIdx.x > 0) return;
#endif
  *result.data = sum;
}

ASTERISM_HOST_DEVICE void multiply(Block block, const Csr<AsPorts>& a, const In<double>* p, Out<double> q, Out<double> pq) {
  keep(sum_over(q.cols, [&](Index i) {
    double sum = 0;
    for (Index k = a.starts.data[i]; k < a.starts.data[i + 1]; ++k) {
      const Index j = a.columns.data[k];
      sum += a.values.data[k] * p[j / block.height].data[j % block.height];
    }
    q.data[i] = sum;
    return p[block.number].data[i] * sum;
  }), pq);
}
ASTERISM_HOST_DEVICE void begin(In<double> b, Out<double> x, Out<double> r, Out<double> p, Out<double> rr) {
  keep(sum_over(b.cols, [&](Index i) {
    x.data[i] = 0, r.data[i] = p.data[i] = b.data[i];
    return b.data[i] * b.data[i];
  }), rr);
}
ASTERISM_HOST_DEVICE void descend(In<State> s, In<double> p, In<double> q, InOut<double> x, InOut<double> r, Out<double> rr) {
  keep(sum_over(x.cols, [&](Index i) {
    x.data[i] += s.data->alpha * p.data[i], r.data[i] -= s.data->alpha * q.data[i];
    return r.data[i] * r.data[i];
  }), rr);
}
ASTERISM_HOST_DEVICE void turn(In<State> s, In<double> r, InOut<double> p) {
  sum_over(p.cols, [&](Index i) { return p.data[i] = r.data[i] + s.data->beta * p.data[i]; });
}

void multiply_on_core(Block block, ProductPorts<AsPorts> t) { multiply(block, t.a, t.p.views, t.q, t.pq); }
#ifdef __CUDACC__
template <auto step, class... Ports>
__global__ void by_threads(Ports... ports) { step(ports...); }
template <auto step>
struct OnGpu;
template <class... Ports, void (*step)(Ports...)>
struct OnGpu<step> {
  static void launch(Stream stream, Ports... ports) {
    by_threads<step><<<1, threads, 0, cudaStream_t(stream.handle)>>>(ports...);
  }
};
struct Views { In<double> p[blocks]; };  // Many's own are in main memory
__global__ void multiply_by_threads(Block block, Csr<AsPorts> a, Views views, Out<double> q, Out<double> pq) {
  multiply(block, a, views.p, q, pq);
}
void multiply_on_gpu(Stream stream, Block block, ProductPorts<AsPorts> t) {
  Views views;
  for (Index k = 0; k < blocks; ++k) views.p[k] = t.p[k];
  multiply_by_threads<<<1, threads, 0, cudaStream_t(stream.handle)>>>(block, t.a, views, t.q, t.pq);
}
#endif
