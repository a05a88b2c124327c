// (F1): a warp has a row of a triangle, and waits for what others find for its entries. Rows come by levels, so that none
// waits for a later one: all go on as long as all warps run.

#include <algorithm>

#include "../common/occupancy.cuh"
#include "factors.hpp"

namespace asterism::decomposition::cuda {

using asterism::cuda::blocks_at_once;
using asterism::cuda::check;
using asterism::cuda::check_launch;
using asterism::cuda::native;

namespace {

constexpr int warp_lanes = 32, triangle_threads = 256;

enum class Half { lower, upper };

/// What a number that has not come is, of which all bits are set.
__device__ bool has_come(double v) { return __double_as_longlong(v) != -1; }
__device__ bool has_come(float v) { return __float_as_int(v) != -1; }

template <class V>
__device__ V awaited(const V* at) {
  const volatile V* const v = at;
  V value = *v;
  while (!has_come(value)) value = *v;
  return value;
}

template <class T, class V>
struct TriangleSolve {
  const std::int32_t *begins, *places, *order;
  const V *values, *inverse_pivots;
  const std::int32_t *row_of, *column_of;
  Rows<const T> b;
  Rows<T> x;
  Rows<V> work;  ///< L^-1 R b and, behind it, U^-1 D^-1 of that
  Index rows, columns;
};

template <Half half, class T, class V>
__global__ void __launch_bounds__(triangle_threads)
    triangle_kernel(const __grid_constant__ TriangleSolve<T, V> at) {
  const Index thread = blockIdx.x * Index{triangle_threads} + threadIdx.x,
              warps = Index{triangle_threads} / warp_lanes * gridDim.x;
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  for (Index k = thread / warp_lanes; k < at.rows * at.columns; k += warps) {
    const Index turn = k / at.columns,
                c = k - turn * at.columns;  // a row is read once for all right-hand sides
    const std::int32_t i = at.order[turn];
    V* const lower = at.work.row(c);
    V* const found = half == Half::lower ? lower : lower + at.rows;
    V sum = 0;
    const std::int32_t begin = at.begins[i], count = at.begins[i + 1] - begin;
    for (std::int32_t j = lane; j < count; j += warp_lanes) {
      const std::int32_t e =
          begin +
          (half == Half::lower ? j : count - 1 - j);  // as numbers come: the latest is waited for last
      sum += at.values[e] * awaited(found + at.places[e]);
    }
    for (int distance = warp_lanes / 2; distance > 0; distance /= 2)
      sum += __shfl_xor_sync(~0U, sum, distance);
    if (lane > 0) continue;
    const V own =
        half == Half::lower ? static_cast<V>(at.b.row(c)[at.row_of[i]]) : at.inverse_pivots[i] * lower[i];
    V value = own - sum;
    if (!has_come(value)) value = static_cast<V>(NAN);  // another one
    *static_cast<volatile V*>(found + i) = value;
    if (half == Half::upper) at.x.row(c)[at.column_of[i]] = static_cast<T>(value);
  }
}

template <Half half, class T, class V>
void solve_triangle(Stream stream, const TrianglePorts<AsPorts, V>& triangle, TriangleSolve<T, V> at) {
  // All at once, as they wait for each other.
  static const Index most_blocks = blocks_at_once(triangle_kernel<half, T, V>, triangle_threads);
  at.begins = triangle.begins.data;
  at.places = triangle.places.data;
  at.values = triangle.values.data;
  at.order = triangle.order.data;
  constexpr Index rows_of_block = triangle_threads / warp_lanes;
  const Index blocks = std::min(most_blocks, parts(at.rows * at.columns, rows_of_block));
  triangle_kernel<half, T, V><<<static_cast<unsigned>(blocks), triangle_threads, 0, native(stream)>>>(at);
  check_launch("solve_triangle");
}

}  // namespace

template <class T, class V>
void solve_factored(Stream stream, const FactorPorts<AsPorts, V>& factors, Index columns,
                    const Rows<const T>& b, const SolveRoom<AsPorts, V>& room, const Rows<T>& x) {
  if (factors.supernodes.nodes)
    return solve_supernodes<T, V>(stream, factors.supernodes, factors.rows, columns, b, room.work,
                                  room.counters, x);
  const Index n = factors.rows.cols;
  check(cudaMemset2DAsync(room.work.data, sizeof(V) * static_cast<std::size_t>(room.work.ld), 0xff,
                          sizeof(V) * static_cast<std::size_t>(2 * n), static_cast<std::size_t>(columns),
                          native(stream)),
        "cudaMemset2DAsync");
  TriangleSolve<T, V> at{};
  at.inverse_pivots = factors.inverse_pivots.data;
  at.row_of = factors.rows.data;
  at.column_of = factors.columns.data;
  at.b = b;
  at.x = x;
  at.work = {room.work.data, room.work.ld};
  at.rows = n;
  at.columns = columns;
  solve_triangle<Half::lower>(stream, factors.lower, at);
  solve_triangle<Half::upper>(stream, factors.upper, at);
}

#define ASTERISM_INSTANTIATE(T, V)                                                                  \
  template void solve_factored(Stream, const FactorPorts<AsPorts, V>&, Index, const Rows<const T>&, \
                               const SolveRoom<AsPorts, V>&, const Rows<T>&)
ASTERISM_INSTANTIATE(float, float);
ASTERISM_INSTANTIATE(double, float);
ASTERISM_INSTANTIATE(double, double);
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::decomposition::cuda
