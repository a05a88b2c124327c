#include "preconditioner.hpp"

#include "../common/chained_launch.cuh"
#include "row_products.cuh"
#include "unit_sums.cuh"

namespace asterism::sparse::cuda {

using asterism::cuda::launch_chained;
using asterism::cuda::wait_for_previous_kernel;

namespace {

// ---- (Q2) ----------------------------------------------------------------------------------------------------------

template <class T, class V>
struct Polynomial {
  const T *r, *z_all;
  const V* d;   ///< nullptr: 1
  T *s, *next;  ///< s: nullptr where there is no gamma
  double* rz;   ///< nullptr: not wanted
  T gamma, delta;
  Index own, rows, unit_rows;
  bool first;
};

template <class T, class V>
struct PolynomialRow {
  static constexpr int at_once = 2;
  struct Brought {
    T r, z, d, s;
  };
  const Polynomial<T, V>& at;
  Index first;  ///< of the unit
  double sum = 0;

  [[nodiscard]] __device__ Brought bring(int i) const {
    const Index row = first + i;
    Brought brought{};
    brought.r = __ldg(at.r + row);
    if (at.d != nullptr) brought.d = static_cast<T>(__ldg(at.d + row));
    if (!at.first) {
      brought.z = __ldg(at.z_all + at.own + row);
      if (at.s != nullptr) brought.s = at.s[row];
    }
    return brought;
  }
  __device__ void take(int i, T product, const Brought& brought) {
    const Index row = first + i;
    const T residual = brought.r - product;
    T step = at.delta * (at.d != nullptr ? brought.d * residual : residual);
    if (at.s != nullptr) {
      step = multiply_add(at.gamma, brought.s, step);
      at.s[row] = step;
    }
    const T next = brought.z + step;
    at.next[row] = next;
    sum += static_cast<double>(brought.r) * static_cast<double>(next);
  }
};

/// Of z = 0.
struct NoRows {};
template <int batch = 1, class X>
__device__ typename X::Element product_of_row(NoRows, Index, const X&) {
  return 0;
}

template <class Rows, class T, class V>
__global__ void __launch_bounds__(unit_threads, 4)
    polynomial_kernel(Rows rows, const __grid_constant__ Polynomial<T, V> at) {
  wait_for_previous_kernel();
  const Unit unit = own_unit(at.unit_rows, at.rows, false);
  PolynomialRow<T, V> row{at, unit.first};
  take_products(rows, unit, Constant<T>{at.z_all}, row);
  if (at.rz == nullptr) return;
  double sums[1] = {row.sum};
  sum_over_block<unit_threads>(sums);
  if (threadIdx.x == 0) at.rz[unit.number] = sums[0];
}

// ---- Dot products --------------------------------------------------------------------------------------------------

template <class T, bool aligned>
__global__ void __launch_bounds__(unit_threads, 4)
    dot_kernel(const T* a, const T* b, Index rows, Index unit_rows, double* to) {
  wait_for_previous_kernel();
  constexpr int width = pack_width<T>, packs = 4, step = width * unit_threads;
  const Unit unit = own_unit(unit_rows, rows, false);
  double sums[1] = {};
  for (int i = static_cast<int>(threadIdx.x) * width; i < unit.rows; i += packs * step) {
    Pack<T, width> of_a[packs], of_b[packs];
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      load<aligned>(of_a[k], a + unit.first, i + k * step, unit.rows);
      load<aligned>(of_b[k], b + unit.first, i + k * step, unit.rows);
    }
#pragma unroll
    for (int k = 0; k < packs; ++k)
#pragma unroll
      for (int e = 0; e < width; ++e)
        sums[0] += static_cast<double>(of_a[k].v[e]) * static_cast<double>(of_b[k].v[e]);
  }
  sum_over_block<unit_threads>(sums);
  if (threadIdx.x == 0) to[unit.number] = sums[0];
}

}  // namespace

template <class T, class V>
void polynomial_step(Stream stream, const PolynomialArgs& args, PolynomialPorts<AsPorts, T, V> ports) {
  unpack(stream, ports.arrivals, ports.z.data);
  const Index own = args.shape.own, rows = args.shape.rows;
  T* const next = ports.next.data + own;
  const Polynomial<T, V> at{ports.r.data,
                            ports.z.data,
                            ports.inverse_diagonal.data,
                            ports.s.data,
                            next,
                            ports.rz.data,
                            static_cast<T>(args.first ? 0 : args.step.gamma),
                            static_cast<T>(args.step.delta),
                            own,
                            rows,
                            args.unit,
                            args.first};
  const auto launch = [&](const auto& matrix) {
    using Rows = std::remove_cvref_t<decltype(matrix)>;
    launch_chained<polynomial_kernel<Rows, T, V>>("polynomial_step", stream,
                                                  static_cast<unsigned>(units_of(rows, args.unit)),
                                                  unit_threads, matrix, at);
  };
  if (args.first)
    launch(NoRows{});
  else
    with_device_rows<V>(args.shape, ports.matrix, launch);
  pack(stream, static_cast<const T*>(next), ports.departures);
}

template <class T>
void dot(Stream stream, const DotArgs& args, DotPorts<AsPorts, T> ports) {
  const T *const a = ports.a.data, *const b = ports.b.data + args.b_own;
  const Index rows = ports.a.cols;
  with_flag(is_aligned<T>(a) && is_aligned<T>(b), [&](auto aligned) {
    launch_chained<dot_kernel<T, aligned>>("dot", stream, static_cast<unsigned>(units_of(rows, args.unit)),
                                           unit_threads, a, b, rows, args.unit, ports.sums.data);
  });
}

#define ASTERISM_INSTANTIATE(T, V) \
  template void polynomial_step(Stream, const PolynomialArgs&, PolynomialPorts<AsPorts, T, V>)
ASTERISM_INSTANTIATE(float, float);
ASTERISM_INSTANTIATE(double, float);
ASTERISM_INSTANTIATE(double, double);
#undef ASTERISM_INSTANTIATE
template void dot(Stream, const DotArgs&, DotPorts<AsPorts, float>);
template void dot(Stream, const DotArgs&, DotPorts<AsPorts, double>);

}  // namespace asterism::sparse::cuda
