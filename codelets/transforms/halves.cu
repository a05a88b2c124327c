#include "halves.hpp"

#include <cooperative_groups.h>

#include <algorithm>

#include "../common/cluster_launch.cuh"

namespace asterism::transforms::cuda {
namespace {

constexpr unsigned most_grid_rows = 65'535;
constexpr int threads = 256;
/// Blocks that have a line's outputs together, and the most of them in a thread's registers.
constexpr unsigned blocks_of_line = 8;
constexpr int most_of_thread = 32;
constexpr Index most_joined = Index{blocks_of_line} * threads * most_of_thread;

template <class T>
__global__ void split(Transform kind, Lines<const T> from, Lines<T> to) {
  const Index j = first_number(kind) + Index{blockIdx.x} * threads + threadIdx.x;
  if (2 * j > fft_length(kind, from.length)) return;
  for (Index line = blockIdx.y; line < from.count; line += gridDim.y)
    split_pair(kind, from.length, j, from.data + line * from.distance, from.stride,
               to.data + line * to.distance, to.stride);
}

/// The blocks of a cluster take the outputs of a line, `of_thread` each thread, and put them down when all have theirs.
template <int of_thread, class T>
__global__ void __launch_bounds__(threads) join(Transform kind, Lines<T> lines) {
#if __CUDA_ARCH__ >= 900
  const auto cluster = cooperative_groups::this_cluster();
  const Index line = Index{blockIdx.x} / blocks_of_line;
  T* const y = lines.data + line * lines.distance;
  const int thread = static_cast<int>(cluster.block_rank()) * threads + static_cast<int>(threadIdx.x);
  constexpr int step = static_cast<int>(blocks_of_line) * threads;
  T outputs[of_thread];
#pragma unroll
  for (int i = 0; i < of_thread; ++i) {
    const Index at = thread + i * step;
    if (at >= lines.length) break;
    const auto [from, negative] = halves_output(kind, lines.length, at);
    outputs[i] = signed_as(negative, y[from * lines.stride]);
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
  asterism::cuda::launch_clusters<join<of_thread, T>>("joining the halves of lines", stream, lines.count,
                                                      blocks_of_line, threads, 0, kind, lines);
}

}  // namespace

bool has_halves(Transform kind, Index length, Index width) {
  if (!is_first_kind(kind) || width != 1 || length > most_joined) return false;
  const Index N = fft_length(kind, length);
  return N % 2 == 0 && N >= 4 && asterism::cuda::runs_in_clusters<join<most_of_thread, double>>();
}

template <class T>
void split_into_halves(Stream stream, Transform kind, const Lines<const T>& from, const Lines<T>& to) {
  const Index pairs = from.length / 2 + 1;
  const dim3 blocks(static_cast<unsigned>(parts(pairs, threads)),
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
