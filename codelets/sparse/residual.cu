// The residual and vectors on their way into it.

#include "conjugate_gradients.hpp"
#include "residual.hpp"
#include "row_products.cuh"

namespace asterism::sparse::cuda {

using asterism::cuda::check;
using asterism::cuda::check_launch;
using asterism::cuda::native;

namespace {

template <class T>
struct ResidualRow {
  static constexpr int at_once = 4;
  const T* b;
  T* r;
  double sum = 0;
  [[nodiscard]] __device__ T bring(int i) const { return __ldg(b + i); }
  __device__ void take(int i, T product, T b_i) {
    const T residual = b_i - product;
    r[i] = residual;
    sum += static_cast<double>(residual) * static_cast<double>(residual);
  }
};

template <class Rows, class T>
__global__ void __launch_bounds__(unit_threads, 4)
    residual_kernel(Rows rows, const T* v, const T* b, T* r, double* rr, Index count, Index unit_rows) {
  const Unit unit = own_unit(unit_rows, count, false);
  ResidualRow<T> row{b + unit.first, r + unit.first};
  take_products(rows, unit, Constant<T>{v}, row);
  double sums[1] = {row.sum};
  sum_over_block<unit_threads>(sums);
  if (threadIdx.x == 0) rr[unit.number] = sums[0];
}

void copy(Stream stream, void* to, const void* from, std::size_t bytes, const char* what) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, native(stream)), what);
}

}  // namespace

template <class T>
void place(Stream stream, const PlaceArgs& args, PlacePorts<AsPorts, T> ports) {
  copy(stream, ports.v.data + args.own, ports.from.data, static_cast<std::size_t>(ports.from.cols) * sizeof(T),
       "sparse_place");
  pack(stream, ports.from.data, ports.departures);
}

template <class T>
void residual(Stream stream, const ResidualArgs& args, ResidualPorts<AsPorts, T> ports) {
  unpack(stream, ports.arrivals, ports.v.data);
  with_device_rows<T>(args.shape, ports.matrix, [&](const auto& rows) {
    const auto blocks = static_cast<unsigned>(units_of(args.shape.rows, args.unit));
    residual_kernel<<<blocks, unit_threads, 0, native(stream)>>>(rows, static_cast<const T*>(ports.v.data), ports.b.data,
                                                                 ports.r.data, ports.rr.data, args.shape.rows, args.unit);
    check_launch("sparse_residual");
  });
}

void show(Stream stream, In<CgState> state, Out<CgState> shown) {
  copy(stream, shown.data, state.data, sizeof(CgState), "cg_show");
}

template void place(Stream, const PlaceArgs&, PlacePorts<AsPorts, float>);
template void place(Stream, const PlaceArgs&, PlacePorts<AsPorts, double>);
template void residual(Stream, const ResidualArgs&, ResidualPorts<AsPorts, float>);
template void residual(Stream, const ResidualArgs&, ResidualPorts<AsPorts, double>);

}  // namespace asterism::sparse::cuda
