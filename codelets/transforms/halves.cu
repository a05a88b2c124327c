#include "halves.hpp"

#include <cooperative_groups.h>

#include <algorithm>

#include "grid_lines.cuh"

namespace asterism::transforms::cuda {
namespace {

using asterism::cuda::check;

constexpr unsigned most_grid_rows = 65'535;
constexpr int threads = 256;
/// Blocks that have a line's outputs together, and the most of them in a thread's registers.
constexpr unsigned blocks_of_line = 8;
constexpr int most_of_thread = 32;
constexpr Index most_joined = Index{blocks_of_line} * threads * most_of_thread;

/// Points and outputs of dst1 are counted from 1.
__host__ __device__ constexpr Index first_number(Transform kind) { return kind == Transform::dst1 ? 1 : 0; }

/// e_j in front and s_{M-j} behind for dst1, s_j in front and e_{M-1-j} behind for dct1.
template <class T>
__global__ void split(Transform kind, Lines<const T> from, Lines<T> to) {
  const bool sine = kind == Transform::dst1;
  const Index first = first_number(kind), N = fft_length(kind, from.length), M = N / 2,
              j = first + Index{blockIdx.x} * threads + threadIdx.x;
  if (j > M) return;
  const Index at_j = j - first, at_mirror = N - j - first;
  for (Index line = blockIdx.y; line < from.count; line += gridDim.y) {
    const T* const x = from.data + line * from.distance;
    T* const y = to.data + line * to.distance;
    const T point = x[at_j * from.stride], mirror = x[at_mirror * from.stride];
    const T e = point - mirror, s = point + mirror;
    if (j < M || !sine) y[at_j * to.stride] = sine ? e : s;
    if (j < M || sine) y[at_mirror * to.stride] = sine ? s : e;
  }
}

/// The blocks of a cluster take the outputs of a line, `of_thread` each thread, and put them down when all have theirs.
template <int of_thread, class T>
__global__ void __launch_bounds__(threads) join(Transform kind, Lines<T> lines) {
#if __CUDA_ARCH__ >= 900
  const auto cluster = cooperative_groups::this_cluster();
  const Index line = Index{blockIdx.x} / blocks_of_line, first = first_number(kind),
              back = halves_of(kind, lines.length).front.length;
  T* const y = lines.data + line * lines.distance;
  const int thread = static_cast<int>(cluster.block_rank()) * threads + static_cast<int>(threadIdx.x);
  constexpr int step = static_cast<int>(blocks_of_line) * threads;
  T outputs[of_thread];
#pragma unroll
  for (int i = 0; i < of_thread; ++i) {
    const Index at = thread + i * step, k = at + first, l = k / 2;
    if (at >= lines.length) break;
    const T output = y[(k % 2 == 0 ? l - first : back + l) * lines.stride];
    outputs[i] = k % 4 == 3 ? -output : output;
  }
  cluster.sync();
#pragma unroll
  for (int i = 0; i < of_thread; ++i)
    if (const Index at = thread + i * step; at < lines.length) y[at * lines.stride] = outputs[i];
#endif
}

template <int of_thread, class T>
void launch_join(Stream stream, Transform kind, const Lines<T>& lines) {
  constexpr int step = static_cast<int>(blocks_of_line) * threads;
  if constexpr (of_thread > 2)
    if (lines.length <= Index{step} * of_thread / 2) return launch_join<of_thread / 2>(stream, kind, lines);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = blocks_of_line;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(lines.count) * blocks_of_line);
  config.blockDim = dim3(threads);
  config.stream = asterism::cuda::native(stream);
  config.attrs = &attribute;
  config.numAttrs = 1;
  check(cudaLaunchKernelEx(&config, join<of_thread, T>, kind, lines), "joining the halves of lines");
}

}  // namespace

bool has_halves(Transform kind, Index length, Index width) {
  if (!is_first_kind(kind) || width != 1 || length > most_joined) return false;
  const Index N = fft_length(kind, length);
  return N % 2 == 0 && N >= 4 && has_clusters();
}

template <class T>
void split_into_halves(Stream stream, Transform kind, const Lines<const T>& from, const Lines<T>& to) {
  const Index pairs = from.length / 2 + 1;
  const dim3 blocks(static_cast<unsigned>((pairs + threads - 1) / threads),
                    static_cast<unsigned>(std::min<Index>(from.count, most_grid_rows)));
  split<T><<<blocks, threads, 0, asterism::cuda::native(stream)>>>(kind, from, to);
  asterism::cuda::check_launch("splitting lines into halves");
}

template <class T>
void join_halves(Stream stream, Transform kind, const Lines<T>& lines) {
  launch_join<most_of_thread>(stream, kind, lines);
}

template void split_into_halves(Stream, Transform, const Lines<const double>&, const Lines<double>&);
template void join_halves(Stream, Transform, const Lines<double>&);
template void split_into_halves(Stream, Transform, const Lines<const float>&, const Lines<float>&);
template void join_halves(Stream, Transform, const Lines<float>&);

}  // namespace asterism::transforms::cuda
