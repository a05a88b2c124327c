#include "clusters.cuh"

#include <algorithm>
#include <bit>

#include "../../common/cluster_launch.cuh"
#include "cluster_numbers.cuh"

namespace asterism::transforms::cuda {
namespace {

template <class T>
BlockOfAnyLength<T, ClusterNumbers<T>> block_of(const AnyLength<T>&);
template <class T>
BlockOfSymmetricLines<T, ClusterNumbers<T>> block_of(const SymmetricView<T>&);

/// Phase after phase, from `first` on.
template <class T, class View>
__global__ void __launch_bounds__(most_block_threads<T>)
    transform_lines_in_clusters(GridLines<T> grid, const __grid_constant__ View plan, int first) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(16) unsigned char memory[];
  const auto cluster = cooperative_groups::this_cluster();
  const int blocks = static_cast<int>(cluster.num_blocks()), threads = static_cast<int>(blockDim.x);
  const ClusterNumbers<T> numbers(reinterpret_cast<Complex<T>*>(memory));
  const decltype(block_of(plan)) block(
      grid.block(static_cast<int>(blockIdx.x) / blocks), plan, numbers,
      static_cast<int>(cluster.block_rank()) * threads + static_cast<int>(threadIdx.x), blocks * threads);
  const int phases = block.phases(plan);
  cluster.sync();  // all blocks are there
  for (int phase = first; phase < phases; ++phase) {
    block.run(phase);
    cluster.sync();
  }
#endif
}

}  // namespace

template <class T>
BlockShape cluster_shape(Transform kind, int numbers, Index width) {
  // Of more blocks' numbers too many are far: on an H200 lines of 60,000 numbers took a sixth longer than by cuFFT.
  constexpr int sector_bytes = 32, least_bytes_together = 16, most_numbers = 3 << 14;
  static_assert(most_numbers <= ClusterNumbers<T>::most_blocks * ClusterNumbers<T>::numbers_of_block);
  constexpr std::size_t block_bytes = ClusterNumbers<T>::numbers_of_block * sizeof(Complex<T>);
  const int together = lines_together(kind), pitch = numbers | 1;
  const auto lines_for = [=](int bytes) {
    return std::max<Index>(1, std::min<Index>(width, bytes / static_cast<Index>(sizeof(T))) / together);
  };
  if (numbers < 1 || most_shared_bytes() < block_bytes ||
      !asterism::cuda::runs_in_clusters<transform_lines_in_clusters<T, AnyLength<T>>>())
    return {};
  for (const int bytes : {sector_bytes, least_bytes_together})
    if (const Index lines = std::bit_ceil(static_cast<unsigned>(lines_for(bytes)));
        lines * pitch <= most_numbers)
      return {std::countr_zero(static_cast<unsigned>(lines * together)), most_block_threads<T> / 128 * 128,
              pitch, block_bytes};
  return {};
}

template <class T, class View>
void transform_in_clusters(Stream stream, Transform kind, const Lines<const T>& from, const Lines<T>& to,
                           const BlockShape& shape, const View& plan, bool padded) {
  const auto [grid, clusters] = deal_lines(from, to, shape);
  const int lines = (1 << shape.log_lines) / lines_together(kind),
            of_block = ClusterNumbers<T>::numbers_of_block;
  const auto size = static_cast<unsigned>(parts(lines * shape.pitch, of_block));
  asterism::cuda::launch_clusters<transform_lines_in_clusters<T, View>>(
      "transform of lines in clusters of blocks", stream, clusters, size,
      static_cast<unsigned>(shape.threads), shape.bytes, grid, plan, padded ? 0 : 1);
}

#define ASTERISM_IN_CLUSTERS(T)                                                                  \
  template BlockShape cluster_shape<T>(Transform, int, Index);                                   \
  template void transform_in_clusters(Stream, Transform, const Lines<const T>&, const Lines<T>&, \
                                      const BlockShape&, const AnyLength<T>&, bool);             \
  template void transform_in_clusters(Stream, Transform, const Lines<const T>&, const Lines<T>&, \
                                      const BlockShape&, const SymmetricView<T>&, bool);
ASTERISM_IN_CLUSTERS(double)
ASTERISM_IN_CLUSTERS(float)
#undef ASTERISM_IN_CLUSTERS

}  // namespace asterism::transforms::cuda
