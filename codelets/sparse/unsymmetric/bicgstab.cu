#include "bicgstab.hpp"

#include "unit_steps.cuh"

namespace asterism::sparse::cuda {

using asterism::cuda::launch_chained;
using asterism::cuda::wait_for_previous_kernel;

namespace {

template <class T>
__global__ void __launch_bounds__(unit_threads)
    shadow_kernel(const T* r, T* shadow, double* rho, ShadowArgs args, Index rows) {
  wait_for_previous_kernel();
  const Unit unit = own_unit(args.unit, rows, false);
  double sums[1] = {};
  for_each_element(unit, [&](Index i) {
    shadow[i] = static_cast<T>(shadow_weight(args.attempt, args.first_row + i)) * r[i];
    sums[0] += static_cast<double>(shadow[i]) * static_cast<double>(r[i]);
  });
  sum_over_block<unit_threads>(sums);
  if (threadIdx.x == 0) rho[unit.number] = sums[0];
}

// ---- (V1), (V3) ----------------------------------------------------------------------------------------------------

template <class T>
struct BicgRow {
  static constexpr int at_once = 2;
  const T* a;
  T* q;
  double qa = 0, qq = 0;
  [[nodiscard]] __device__ T bring(int i) const { return __ldg(a + i); }
  __device__ void take(int i, T product, T a_i) {
    q[i] = product;
    qa += static_cast<double>(product) * static_cast<double>(a_i);
    qq += static_cast<double>(product) * static_cast<double>(product);
  }
};

template <class T>
struct BicgProduct {
  const BicgState* state;
  const T *v, *a;
  T* q;
  double *qa, *qq;
  Index rows, unit_rows;
  int side;
};

template <class Rows, class T>
__global__ void __launch_bounds__(unit_threads, 4) product_kernel(Rows rows, BicgProduct<T> at) {
  wait_for_previous_kernel();
  if (at.state->status[at.side] != BicgStatus::running) return;
  const Unit unit = own_unit(at.unit_rows, at.rows, false);
  BicgRow<T> row{at.a + unit.first, at.q + unit.first};
  take_products(rows, unit, Constant<T>{at.v}, row);
  double sums[2] = {row.qa, row.qq};
  sum_over_block<unit_threads>(sums);
  if (threadIdx.x > 0) return;
  at.qa[unit.number] = sums[0];
  at.qq[unit.number] = sums[1];
}

// ---- (V2) ----------------------------------------------------------------------------------------------------------

template <class T, class V>
struct HalfStep {
  const T *q, *direction;
  HatElements<T, V> hat;
  T *x, *r;
  double* rr;
  BicgState* state;
  Index rows, unit_rows;
  int side;
};

template <class T, class V>
__global__ void __launch_bounds__(unit_threads)
    half_step_kernel(HalfStep<T, V> at, const __grid_constant__ SumLists<most_blocks, 2> lists) {
  wait_for_previous_kernel();
  if (at.state->status[at.side] != BicgStatus::running) return;
  double totals[2];
  lists.add_up(totals);
  const Unit unit = own_unit(at.unit_rows, at.rows, false);
  const double alpha = alpha_of(at.state->rho[at.side], totals[0], totals[1], *at.state);
  if (unit.number == 0 && threadIdx.x == 0) at.state->alpha = alpha;
  if (!is_there(alpha)) return;
  const T factor = static_cast<T>(alpha);
  double sums[1] = {};
  for_each_element(unit, [&](Index i) {
    at.x[i] = multiply_add(factor, at.direction[i], at.x[i]);
    const T r = multiply_add(-factor, at.q[i], at.r[i]);
    at.r[i] = r;
    at.hat.leave(i, r);
    sums[0] += static_cast<double>(r) * static_cast<double>(r);
  });
  sum_over_block<unit_threads>(sums);
  if (threadIdx.x == 0) at.rr[unit.number] = sums[0];
}

// ---- (V4) ----------------------------------------------------------------------------------------------------------

template <class T>
struct FullStep {
  const T *t, *direction, *shadow;
  T *x, *r;
  double *rr, *rho;
  BicgState* state;
  Index rows, unit_rows;
  int side;
};

template <class T>
__global__ void __launch_bounds__(unit_threads)
    full_step_kernel(FullStep<T> at, const __grid_constant__ SumLists<most_blocks, 3> lists) {
  wait_for_previous_kernel();
  if (at.state->status[at.side] != BicgStatus::running || !is_there(at.state->alpha)) return;
  double totals[3];
  lists.add_up(totals);
  const Unit unit = own_unit(at.unit_rows, at.rows, false);
  const double omega = omega_of(totals[0], totals[1], totals[2], *at.state);
  if (unit.number == 0 && threadIdx.x == 0) at.state->omega = omega;
  const T factor = is_there(omega) ? static_cast<T>(omega) : T{};
  double sums[2] = {};
  for_each_element(unit, [&](Index i) {
    at.x[i] = multiply_add(factor, at.direction[i], at.x[i]);
    const T r = multiply_add(-factor, at.t[i], at.r[i]);
    at.r[i] = r;
    sums[0] += static_cast<double>(r) * static_cast<double>(r);
    sums[1] += static_cast<double>(at.shadow[i]) * static_cast<double>(r);
  });
  sum_over_block<unit_threads>(sums);
  if (threadIdx.x > 0) return;
  at.rr[unit.number] = sums[0];
  at.rho[unit.number] = sums[1];
}

// ---- (V5) ----------------------------------------------------------------------------------------------------------

template <class T, class V>
struct BicgTurn {
  const T *r, *q;
  T* p;
  HatElements<T, V> hat;
  BicgState* state;
  BicgArgs args;
};

template <class T, class V>
__global__ void __launch_bounds__(unit_threads)
    turn_kernel(const __grid_constant__ BicgTurn<T, V> at,
                const __grid_constant__ SumLists<most_blocks, 2> lists) {
  wait_for_previous_kernel();
  const BicgArgs& args = at.args;
  const int now = side_of(args.iteration), next = side_of(args.iteration + 1);
  const bool first = args.iteration < 0;
  const Unit unit = own_unit(args.unit, args.shape.rows, false);
  const bool decides = unit.number == 0 && threadIdx.x == 0;
  if (!first && at.state->status[now] != BicgStatus::running) {
    if (decides) at.state->status[next] = at.state->status[now];
    return;
  }
  double totals[2];
  lists.add_up(totals);
  // Of the state before it is decided on: the first time it has nothing, and others must not read what is being set.
  const double omega = first ? 1 : at.state->omega;
  const double beta = first ? 0 : beta_of(totals[1], at.state->rho[now], at.state->alpha, omega);
  if (decides) decide(args, totals[0], totals[1], *at.state);
  const T factor = static_cast<T>(beta), stabilised = static_cast<T>(omega);
  for_each_element(unit, [&](Index i) {
    const T p = first ? at.r[i] : multiply_add(factor, multiply_add(-stabilised, at.q[i], at.p[i]), at.r[i]);
    at.p[i] = p;
    at.hat.leave(i, p);
  });
}

}  // namespace

template <class T>
void shadow(Stream stream, const ShadowArgs& args, ShadowPorts<AsPorts, T> ports) {
  launch_chained<shadow_kernel<T>>("shadow", stream, blocks_of_units(ports.r.cols, args.unit), unit_threads,
                                   ports.r.data, ports.shadow.data, ports.rho.data, args, ports.r.cols);
}

template <class T>
void bicg_product(Stream stream, const BicgArgs& args, BicgProductPorts<AsPorts, T> ports) {
  unpack(stream, ports.arrivals, ports.v.data);
  const BicgProduct<T> at{ports.state.data, ports.v.data,  ports.a.data,
                          ports.q.data,     ports.qa.data, ports.qq.data,
                          args.shape.rows,  args.unit,     side_of(args.iteration)};
  with_device_rows<T>(args.shape, ports.matrix, [&](const auto& rows) {
    using Rows = std::remove_cvref_t<decltype(rows)>;
    launch_chained<product_kernel<Rows, T>>(
        "bicg_product", stream, blocks_of_units(args.shape.rows, args.unit), unit_threads, rows, at);
  });
}

template <class T, class V>
void half_step(Stream stream, const BicgArgs& args, HalfStepPorts<AsPorts, T, V> ports) {
  T* const own = ports.hat.data + args.shape.own;
  const HatElements<T, V> hat(args.hat, ports.inverse_diagonal, own);
  const HalfStep<T, V> at{ports.q.data,
                          own,
                          hat,
                          ports.x.data,
                          ports.r.data,
                          ports.rr.data,
                          ports.state.data,
                          args.shape.rows,
                          args.unit,
                          side_of(args.iteration)};
  launch_chained<half_step_kernel<T, V>>("half_step", stream, blocks_of_units(args.shape.rows, args.unit),
                                         unit_threads, at, SumLists<most_blocks, 2>(ports.qa, ports.qq));
  pack(stream, static_cast<const T*>(own), ports.departures);
}

template <class T>
void full_step(Stream stream, const BicgArgs& args, FullStepPorts<AsPorts, T> ports) {
  const FullStep<T> at{ports.t.data,           ports.hat.data + args.shape.own,
                       ports.shadow.data,      ports.x.data,
                       ports.r.data,           ports.rr.data,
                       ports.rho.data,         ports.state.data,
                       args.shape.rows,        args.unit,
                       side_of(args.iteration)};
  launch_chained<full_step_kernel<T>>("full_step", stream, blocks_of_units(args.shape.rows, args.unit),
                                      unit_threads, at,
                                      SumLists<most_blocks, 3>(ports.ta, ports.tt, ports.ss));
}

template <class T, class V>
void bicg_turn(Stream stream, const BicgArgs& args, BicgTurnPorts<AsPorts, T, V> ports) {
  T* const own = ports.hat.data + args.shape.own;
  const BicgTurn<T, V> at{ports.r.data,     ports.q.data,
                          ports.p.data,     HatElements<T, V>(args.hat, ports.inverse_diagonal, own),
                          ports.state.data, args};
  launch_chained<turn_kernel<T, V>>("bicg_turn", stream, blocks_of_units(args.shape.rows, args.unit),
                                    unit_threads, at, SumLists<most_blocks, 2>(ports.rr, ports.rho));
  pack(stream, static_cast<const T*>(own), ports.departures);
}

void show(Stream stream, In<BicgState> state, Out<BicgState> shown) {
  asterism::cuda::check(cudaMemcpyAsync(shown.data, state.data, sizeof(BicgState), cudaMemcpyDeviceToDevice,
                                        asterism::cuda::native(stream)),
                        "cudaMemcpyAsync");
}

#define ASTERISM_INSTANTIATE(T)                                                      \
  template void shadow(Stream, const ShadowArgs&, ShadowPorts<AsPorts, T>);          \
  template void bicg_product(Stream, const BicgArgs&, BicgProductPorts<AsPorts, T>); \
  template void full_step(Stream, const BicgArgs&, FullStepPorts<AsPorts, T>)
ASTERISM_INSTANTIATE(float);
ASTERISM_INSTANTIATE(double);
#undef ASTERISM_INSTANTIATE
#define ASTERISM_INSTANTIATE(T, V)                                                \
  template void half_step(Stream, const BicgArgs&, HalfStepPorts<AsPorts, T, V>); \
  template void bicg_turn(Stream, const BicgArgs&, BicgTurnPorts<AsPorts, T, V>)
ASTERISM_INSTANTIATE(float, float);
ASTERISM_INSTANTIATE(double, float);
ASTERISM_INSTANTIATE(double, double);
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::sparse::cuda
