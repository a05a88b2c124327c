#include "residual.hpp"

#include "../../common/chained_launch.cuh"
#include "../row_products.cuh"
#include "../unit_sums.cuh"

namespace asterism::sparse::cuda {

using asterism::cuda::check;
using asterism::cuda::launch_chained;
using asterism::cuda::native;
using asterism::cuda::wait_for_previous_kernel;

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
    residual_kernel(Rows matrix, const T* v, const T* b, T* r, double* rr, Index rows, Index unit_rows) {
  wait_for_previous_kernel();
  const Unit unit = own_unit(unit_rows, rows, false);
  ResidualRow<T> row{b + unit.first, r + unit.first};
  take_products(matrix, unit, Constant<T>{v}, row);
  double sums[1] = {row.sum};
  sum_over_block<unit_threads>(sums);
  if (threadIdx.x == 0) rr[unit.number] = sums[0];
}

template <class T>
void copy(Stream stream, const T* from, Index count, T* to) {
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(count) * sizeof(T), cudaMemcpyDeviceToDevice,
                        native(stream)),
        "cudaMemcpyAsync");
}

}  // namespace

template <class T>
void place(Stream stream, const PlaceArgs& args, PlacePorts<AsPorts, T> ports) {
  copy(stream, ports.from.data, ports.from.cols, ports.v.data + args.own);
  pack(stream, ports.from.data, ports.departures);
}

template <class T>
void take(Stream stream, const PlaceArgs& args, TakePorts<AsPorts, T> ports) {
  copy(stream, ports.v.data + args.own, ports.own.cols, ports.own.data);
}

template <class T>
void send(Stream stream, const PlaceArgs& args, SendPorts<AsPorts, T> ports) {
  pack(stream, ports.v.data + args.own, ports.departures);
}

template <class T>
void residual(Stream stream, const ResidualArgs& args, ResidualPorts<AsPorts, T> ports) {
  unpack(stream, ports.arrivals, ports.v.data);
  const T *const v = ports.v.data, *const b = ports.b.data;
  with_device_rows<T>(args.shape, ports.matrix, [&](const auto& matrix) {
    using Rows = std::remove_cvref_t<decltype(matrix)>;
    launch_chained<residual_kernel<Rows, T>>(
        "residual", stream, static_cast<unsigned>(units_of(args.shape.rows, args.unit)), unit_threads, matrix,
        v, b, ports.r.data, ports.rr.data, args.shape.rows, args.unit);
  });
}

template void place(Stream, const PlaceArgs&, PlacePorts<AsPorts, float>);
template void place(Stream, const PlaceArgs&, PlacePorts<AsPorts, double>);
template void take(Stream, const PlaceArgs&, TakePorts<AsPorts, float>);
template void take(Stream, const PlaceArgs&, TakePorts<AsPorts, double>);
template void send(Stream, const PlaceArgs&, SendPorts<AsPorts, float>);
template void send(Stream, const PlaceArgs&, SendPorts<AsPorts, double>);
template void residual(Stream, const ResidualArgs&, ResidualPorts<AsPorts, float>);
template void residual(Stream, const ResidualArgs&, ResidualPorts<AsPorts, double>);

}  // namespace asterism::sparse::cuda
