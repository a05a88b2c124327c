/// \file
/// What persistent kernels of conjugate gradients have in common, for `.cu` files only: a block of threads has
/// consecutive rows, a thread every 1024th of these.
#pragma once

#include "../../grid_sums.cuh"
#include "../../row_products.cuh"
#include "../conjugate_gradients.hpp"

namespace asterism::sparse::cuda::persistent {

using asterism::cuda::check;
using asterism::cuda::native;

inline constexpr int threads = 1024;

/// Whether persistent kernels know rows of this kind.
template <class Rows, class T>
inline constexpr bool is_known = !std::is_same_v<Rows, CsrRows<T>> && !std::is_same_v<Rows, StencilRows<T>> &&
                                 !std::is_same_v<Rows, SchurRows<float>>;
template <class Rows>
inline constexpr bool is_schur = std::is_same_v<Rows, SchurRows<double>>;

/// D^-1 of either type.
struct InverseDiagonal {
  const float* floats = nullptr;
  const double* doubles = nullptr;

  InverseDiagonal() = default;
  explicit InverseDiagonal(const float* d) : floats(d) {}
  explicit InverseDiagonal(const double* d) : doubles(d) {}
  [[nodiscard]] __device__ bool is_there() const { return floats != nullptr || doubles != nullptr; }
  template <class T>
  [[nodiscard]] __device__ T at(Index i) const {
    return floats != nullptr ? static_cast<T>(__ldg(floats + i)) : static_cast<T>(__ldg(doubles + i));
  }
};

/// What a kernel is told.
template <class T>
struct Sweep {
  Index iteration, count;
  int rows, rows_of_block;
  int reach;  ///< rows of a block farther from its ends are its own affair
  int halo;   ///< that many rows beyond each end of a block have p in its shared memory, too
  InverseDiagonal d;
  T *x, *r, *p;
  T* pipelined;  ///< pipelined_vectors of them; see pipelined_cg.cu
  ToldSum* told;
  CgState* state;
};

/// D^-1 v for row i, or v.
template <class T>
__device__ T preconditioned(const Sweep<T>& sweep, Index i, T v) {
  return sweep.d.is_there() ? sweep.d.template at<T>(i) * v : v;
}

/// The rows of a block.
struct OwnRows {
  int first, count;
  template <class T>
  __device__ explicit OwnRows(const Sweep<T>& sweep)
      : first(static_cast<int>(blockIdx.x) * sweep.rows_of_block),
        count(min(sweep.rows_of_block, sweep.rows - first)) {}
  /// Calls body(k, i) for the rows of a thread, k-th of them row first + i.
  template <int most, class Body>
  __device__ void for_each(Body body) const {
#pragma unroll
    for (int k = 0; k < most; ++k) {
      const int i = static_cast<int>(threadIdx.x) + k * threads;
      if (i < count) body(k, i);
    }
  }
};

/// What all threads know of the iteration.
struct Progress {
  CgStatus status;
  double rz, rr, pq, limit;
  Index iterations;

  Progress() = default;
  __device__ Progress(const CgState& state, Index iteration)
      : status(state.status[side_of(iteration)]),
        rz(state.rz[side_of(iteration)]),
        rr(state.rr),
        pq(state.pq),
        limit(state.limit),
        iterations(state.iterations) {}
  __device__ void leave(CgState& state, Index next) const {
    state.status[side_of(next)] = status;
    state.rz[side_of(next)] = rz;
    state.rr = rr;
    state.pq = pq;
    state.iterations = iterations;
  }
};

/// What a GPU has for a sweep.
struct Gpu {
  int processors = 0, cooperates = 0, shared_bytes = 0;
};
inline Gpu this_gpu() {
  Gpu gpu;
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&gpu.processors, cudaDevAttrMultiProcessorCount, device),
        "cudaDeviceGetAttribute");
  check(cudaDeviceGetAttribute(&gpu.cooperates, cudaDevAttrCooperativeLaunch, device),
        "cudaDeviceGetAttribute");
  check(cudaDeviceGetAttribute(&gpu.shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
        "cudaDeviceGetAttribute");
  return gpu;
}

/// @return whether the kernel can run with so many blocks at once
template <class Kernel>
bool fits(Kernel kernel, const Gpu& gpu, int shared_bytes) {
  if (shared_bytes > gpu.shared_bytes) return false;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
        "cudaFuncSetAttribute");
  int blocks = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads,
                                                      static_cast<std::size_t>(shared_bytes)),
        "occupancy");
  return blocks >= 1;
}

/// @param elements that a block has in shared memory @return whether the kernel can run
template <class Kernel, class Rows, class T>
bool launch(Stream stream, Kernel kernel, const Gpu& gpu, int elements, const Rows& rows,
            const Sweep<T>& sweep) {
  const auto blocks = static_cast<unsigned>((sweep.rows + sweep.rows_of_block - 1) / sweep.rows_of_block);
  const int shared_bytes = elements * static_cast<int>(sizeof(T));
  if (!fits(kernel, gpu, shared_bytes)) return false;
  check(cudaMemsetAsync(sweep.told, 0, GridSums<threads>::bytes(blocks), native(stream)), "cudaMemsetAsync");
  void* arguments[] = {const_cast<Rows*>(&rows), const_cast<Sweep<T>*>(&sweep)};
  check(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kernel), dim3(blocks), dim3(threads),
                                    arguments, static_cast<std::size_t>(shared_bytes), native(stream)),
        "cg_sweep");
  return true;
}

/// The kernel for the fewest rows of a thread that are enough. @param launch_with launch_with(number) launches that for
/// `number` rows, with number a std::integral_constant; @return whether it could @tparam most of these
template <int most, class T, class LaunchWith>
bool launch_fewest(const Sweep<T>& sweep, LaunchWith launch_with) {
  const int needed = (sweep.rows_of_block + threads - 1) / threads;
  if (needed <= 1) return launch_with(std::integral_constant<int, 1>{});
  if (needed <= 2) return launch_with(std::integral_constant<int, 2>{});
  if (needed <= 4) return launch_with(std::integral_constant<int, 4>{});
  if constexpr (most >= 8)
    if (needed <= 8) return launch_with(std::integral_constant<int, 8>{});
  return false;
}

/// The pipelined form, where a thread has few rows. @return whether it is under way
template <class T>
bool sweep_pipelined(Stream stream, const Gpu& gpu, const BlockShape& shape,
                     const BlockPorts<AsPorts, T>& matrix, const Sweep<T>& sweep);

}  // namespace asterism::sparse::cuda::persistent
