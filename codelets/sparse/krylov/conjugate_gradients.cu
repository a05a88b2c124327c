// (N1), and sweeps.

#include "../../common/chained_launch.cuh"
#include "../row_products.cuh"
#include "../triangular.cuh"
#include "../unit_sums.cuh"
#include "cg_steps.hpp"
#include "persistent/persistent_cg.cuh"
#include "several/meetings.cuh"
#include "step_order.cuh"

namespace asterism::sparse::cuda {

using asterism::cuda::launch_chained;
using asterism::cuda::wait_for_previous_kernel;

namespace {

// ---- (N1) ----------------------------------------------------------------------------------------------------------

template <class T>
struct MultipliedRow {
  static constexpr int at_once = 4;
  const T* p;
  T* q;
  double sum = 0;
  [[nodiscard]] __device__ T bring(int i) const { return __ldg(p + i); }
  __device__ void take(int i, T product, T p_i) {
    q[i] = product;
    sum += static_cast<double>(p_i) * static_cast<double>(product);
  }
};

template <class T>
struct Multiplication {
  const CgStatus* status;
  const T* p;
  T* q;
  double* pq;
  Index own, rows, unit_rows;
  bool backward;
};

template <class Rows, class T>
__global__ void __launch_bounds__(unit_threads, 4)
    multiply_kernel(Rows rows, Multiplication<T> m, const __grid_constant__ Meeting meeting) {
  wait_for_previous_kernel();
  if (*m.status != CgStatus::running) return;
  const Unit unit = own_unit(m.unit_rows, m.rows, m.backward);
  MultipliedRow<T> row{m.p + m.own + unit.first, m.q + unit.first};
  take_products(rows, unit, Constant<T>{m.p}, row);
  double sums[1] = {row.sum};
  sum_over_block<unit_threads>(sums);
  if (threadIdx.x > 0) return;
  m.pq[unit.number] = sums[0];
  meeting.tell_all(ToldKind::pq, unit.number, sums[0]);
}

/// The steps of sweep_in_steps.
struct Steps {
  Stream stream;

  template <class T>
  void multiply(const CgArgs& args, const MultiplyPorts<AsPorts, T>& ports) const {
    cuda::multiply<T>(stream, args, ports);
  }
  template <class T, class V>
  void descend(const CgArgs& args, const DescentPorts<AsPorts, T, V>& ports) const {
    cuda::descend<T, V>(stream, args, ports);
  }
  template <class T, class V>
  void turn(const CgArgs& args, const DirectionPorts<AsPorts, T, V>& ports) const {
    cuda::turn<T, V>(stream, args, ports);
  }
  template <class T, class V>
  void polynomial_step(const PolynomialArgs& args, const PolynomialPorts<AsPorts, T, V>& ports) const {
    cuda::polynomial_step<T, V>(stream, args, ports);
  }
  template <class T, class V>
  void triangular(const PreconditionerShape& m, const PreconditionerPorts<AsPorts, T, V>& ports,
                  In<T> r) const {
    apply_triangular<T, V>(stream, m, ports, r);
  }
  template <class T>
  void dot(const DotArgs& args, const DotPorts<AsPorts, T>& ports) const {
    cuda::dot<T>(stream, args, ports);
  }
};

}  // namespace

template <class T>
void multiply(Stream stream, const CgArgs& args, MultiplyPorts<AsPorts, T> ports) {
  multiply<T>(stream, args, ports, Meeting{});
}

template <class T>
void multiply(Stream stream, const CgArgs& args, const MultiplyPorts<AsPorts, T>& ports,
              const Meeting& meeting) {
  unpack(stream, ports.arrivals, ports.p.data);
  const Multiplication<T> m{ports.state.data->status + side_of(args.iteration),
                            ports.p.data,
                            ports.q.data,
                            ports.pq.data,
                            args.shape.own,
                            args.shape.rows,
                            args.unit,
                            goes_backward(args.iteration, Step::multiply)};
  const auto launch = [&]<class Rows>(const Rows& rows) {
    launch_chained<multiply_kernel<Rows, T>>("multiply", stream, unit_blocks(args), unit_threads, rows, m,
                                             meeting);
  };
  with_device_rows<T>(args.shape, ports.matrix, [&](const auto& rows) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(rows)>, DiagonalRows<T>>) {
      if (rows.count > 5) return launch(ManyDiagonalRows<T>{rows});
    }
    launch(rows);
  });
}

template <class T, class V>
void cg_sweep(Stream stream, const CgSweepArgs& args, CgSweepPorts<AsPorts, T, V> ports) {
  if (!sweep_at_once<T, V>(stream, args, ports)) sweep_in_steps<T, V>(Steps{stream}, args, ports);
}

void show(Stream stream, In<CgState> state, Out<CgState> shown) {
  asterism::cuda::check(cudaMemcpyAsync(shown.data, state.data, sizeof(CgState), cudaMemcpyDeviceToDevice,
                                        asterism::cuda::native(stream)),
                        "cudaMemcpyAsync");
}

template void multiply(Stream, const CgArgs&, MultiplyPorts<AsPorts, float>);
template void multiply(Stream, const CgArgs&, MultiplyPorts<AsPorts, double>);
template void multiply(Stream, const CgArgs&, const MultiplyPorts<AsPorts, float>&, const Meeting&);
template void multiply(Stream, const CgArgs&, const MultiplyPorts<AsPorts, double>&, const Meeting&);
template void cg_sweep(Stream, const CgSweepArgs&, CgSweepPorts<AsPorts, float, float>);
template void cg_sweep(Stream, const CgSweepArgs&, CgSweepPorts<AsPorts, double, float>);
template void cg_sweep(Stream, const CgSweepArgs&, CgSweepPorts<AsPorts, double, double>);

}  // namespace asterism::sparse::cuda
