#include "schwarz.hpp"

#include <algorithm>

#include "../common/chained_launch.cuh"

namespace asterism::decomposition::cuda {

using asterism::cuda::check;
using asterism::cuda::launch_chained;
using asterism::cuda::native;
using asterism::cuda::wait_for_previous_kernel;

namespace {

constexpr int threads = 256, patch_lanes = 32;  // a warp for each patch

/// For a loop over so many elements, one for each thread or more.
unsigned blocks_for(Index elements) {
  return static_cast<unsigned>(std::clamp<Index>(parts(elements, threads), 1, 4096));
}

template <class Body>
__device__ void for_each(Index count, const Body& body) {
  for (Index i = blockIdx.x * Index{threads} + threadIdx.x; i < count; i += Index{threads} * gridDim.x)
    body(i);
}

template <class T>
__global__ void __launch_bounds__(threads) clear_kernel(T* z, Index rows) {
  wait_for_previous_kernel();
  for_each(rows, [&](Index i) { z[i] = 0; });
}

template <class T>
__global__ void __launch_bounds__(threads)
    add_pack_kernel(const T* pack, const std::int32_t* places, Index count, T* z) {
  wait_for_previous_kernel();
  for_each(count, [&](Index j) { z[places[j]] += pack[j]; });
}

/// A warp has a patch.
template <class T>
__global__ void __launch_bounds__(threads)
    patch_sums_kernel(const T* r, const std::int32_t* members, const std::int32_t* begins, Index patches,
                      double* sums) {
  wait_for_previous_kernel();
  const int lane = static_cast<int>(threadIdx.x) % patch_lanes;
  const Index patch = (blockIdx.x * Index{threads} + threadIdx.x) / patch_lanes;
  if (patch >= patches) return;
  double sum = 0;
  for (std::int32_t k = begins[patch] + lane; k < begins[patch + 1]; k += patch_lanes)
    sum += static_cast<double>(r[members[k]]);
  for (int half = patch_lanes / 2; half > 0; half /= 2) sum += __shfl_xor_sync(~0U, sum, half);
  if (lane == 0) sums[patch] = sum;
}

template <class T>
__global__ void __launch_bounds__(threads)
    spread_kernel(const double* values, const std::int32_t* patches, Index rows, T* y) {
  wait_for_previous_kernel();
  for_each(rows, [&](Index i) { y[i] = static_cast<T>(values[patches[i]]); });
}

template <class T>
__global__ void __launch_bounds__(threads) correct_kernel(const T* z, Index rows, T* x) {
  wait_for_previous_kernel();
  for_each(rows, [&](Index i) { x[i] += z[i]; });
}

}  // namespace

template <class T, class V>
void local_solve(Stream stream, const LocalSolveArgs& args, LocalSolvePorts<AsPorts, T, V> ports) {
  for (Index v = 0; v < args.vectors && args.takes; ++v)
    sparse::cuda::unpack(stream, of_vector(ports.arrivals, v), ports.y.row(v));
  T* const y = ports.y.data + args.first;
  solve_factored<T, V>(stream, ports.factors, args.vectors, {y, ports.y.ld}, ports.room, {y, ports.y.ld});
  for (Index v = 0; v < args.vectors && args.gives; ++v)
    sparse::cuda::pack(stream, static_cast<const T*>(ports.y.row(v)), of_vector(ports.departures, v));
}

template <class T>
void assemble(Stream stream, const AssembleArgs& args, AssemblePorts<AsPorts, T> ports) {
  T* const z = ports.z.data + args.own;
  if (args.anew)
    launch_chained<clear_kernel<T>>("assemble", stream, blocks_for(args.rows), threads, z, args.rows);
  for (Index k = 0; k < ports.arrivals.packs.size(); ++k) {
    const In<T>& pack = ports.arrivals.packs[k];
    launch_chained<add_pack_kernel<T>>("assemble", stream, blocks_for(pack.cols), threads, pack.data,
                                       ports.arrivals.places[k].data, pack.cols, z);
  }
}

template <class T>
void patch_sums(Stream stream, PatchSumPorts<AsPorts, T> ports) {
  sparse::cuda::unpack(stream, ports.arrivals, ports.work.data);
  const Index patches = ports.sums.cols;
  const auto blocks = static_cast<unsigned>(parts(patches * patch_lanes, threads));
  launch_chained<patch_sums_kernel<T>>("patch_sums", stream, blocks, threads,
                                       static_cast<const T*>(ports.work.data), ports.members.data,
                                       ports.begins.data, patches, ports.sums.data);
}

void coarse_solve(Stream stream, CoarseSolvePorts<AsPorts> ports) {
  double* next = ports.values.data;
  for (const In<double>& sums : ports.sums) {
    check(cudaMemcpyAsync(next, sums.data, sizeof(double) * static_cast<std::size_t>(sums.cols),
                          cudaMemcpyDeviceToDevice, native(stream)),
          "cudaMemcpyAsync");
    next += sums.cols;
  }
  solve_factored<double, double>(stream, ports.factors, 1, {ports.values.data, ports.values.ld}, ports.room,
                                 {ports.values.data, ports.values.ld});
}

template <class T>
void spread(Stream stream, const SpreadArgs& args, SpreadPorts<AsPorts, T> ports) {
  const Index rows = ports.patches.cols;
  launch_chained<spread_kernel<T>>("spread", stream, blocks_for(rows), threads,
                                   ports.values.data + args.first, ports.patches.data, rows, ports.y.data);
  sparse::cuda::pack(stream, static_cast<const T*>(ports.y.data), ports.departures);
}

template <class T>
void correct(Stream stream, const CorrectArgs& args, In<T> z, InOut<T> x) {
  launch_chained<correct_kernel<T>>("correct", stream, blocks_for(x.cols), threads, z.data + args.own, x.cols,
                                    x.data);
}

template void local_solve(Stream, const LocalSolveArgs&, LocalSolvePorts<AsPorts, float, float>);
template void local_solve(Stream, const LocalSolveArgs&, LocalSolvePorts<AsPorts, double, float>);
template void local_solve(Stream, const LocalSolveArgs&, LocalSolvePorts<AsPorts, double, double>);
#define ASTERISM_INSTANTIATE(T)                                                   \
  template void assemble(Stream, const AssembleArgs&, AssemblePorts<AsPorts, T>); \
  template void patch_sums(Stream, PatchSumPorts<AsPorts, T>);                    \
  template void spread(Stream, const SpreadArgs&, SpreadPorts<AsPorts, T>);       \
  template void correct(Stream, const CorrectArgs&, In<T>, InOut<T>)
ASTERISM_INSTANTIATE(float);
ASTERISM_INSTANTIATE(double);
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::decomposition::cuda
