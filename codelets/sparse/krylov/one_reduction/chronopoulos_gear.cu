#include "chronopoulos_gear.hpp"

#include "pipelined.hpp"
#include "step_loops.cuh"

namespace asterism::sparse::cuda {

using asterism::cuda::check;
using asterism::cuda::native;

namespace {

/// By itself, as all units of (E2) go by what the state had before.
/// @param sums (r, r), (r, u), (w, u)
__global__ void __launch_bounds__(unit_threads)
    decide_kernel(CgState* state, Index iteration, const __grid_constant__ SumLists<most_blocks, 3> sums) {
  wait_for_previous_kernel();
  double totals[3];
  sums.add_up(totals);
  if (threadIdx.x == 0) decide_lengths(iteration, totals[0], totals[1], totals[2], *state);
}

template <class T, class V>
struct Advance {
  const T* w;
  const V* d;
  T *u, *x, *r, *p, *s;
  double *rr, *ru;
  const CgState* state;
  Index rows, unit_rows, iteration;
  bool makes_u;
};

/// (E2), once decided.
template <class T, class V>
__global__ void __launch_bounds__(unit_threads) advance_kernel(Advance<T, V> at) {
  wait_for_previous_kernel();
  if (!goes_on(*at.state, at.iteration)) return;
  const StepLengths<T> by(*at.state, at.iteration);
  const Unit unit = own_unit(at.unit_rows, at.rows, false);
  double sums[2] = {};
  for (int k = static_cast<int>(threadIdx.x); k < unit.rows; k += unit_threads) {
    const Index i = unit.first + k;
    by.turn_and_go(at.u[i], at.p[i], at.x[i], by.alpha);
    by.turn_and_go(at.w[i], at.s[i], at.r[i], -by.alpha);
    const T r = at.r[i];
    sums[0] += product(r, r);
    if (!at.makes_u) continue;
    const T u = scaled(r, at.d, i);
    at.u[i] = u;
    sums[1] += product(r, u);
  }
  sum_over_block<unit_threads>(sums);
  if (threadIdx.x > 0) return;
  at.rr[unit.number] = sums[0];
  if (at.ru != nullptr) at.ru[unit.number] = sums[1];
}

/// @param sums (r, r) and (r, u) are the first ones
template <int kinds>
__global__ void __launch_bounds__(unit_threads)
    show_next_kernel(CgState* shown, int side, const __grid_constant__ SumLists<most_blocks, kinds> sums) {
  double totals[kinds];
  sums.add_up(totals);
  if (threadIdx.x > 0 || shown->status[side] != CgStatus::running) return;
  shown->rr = totals[0];
  shown->status[side] = status_after(1, totals[0], totals[1], shown->limit);
}

}  // namespace

template <class T, class V>
void advance(Stream stream, const AdvanceArgs& args, AdvancePorts<AsPorts, T, V> ports) {
  const CgArgs& step = args.step;
  T* const u = ports.hat.data + step.shape.own;
  launch_chained<decide_kernel>("decide", stream, 1, unit_threads, ports.state.data, step.iteration,
                                SumLists<most_blocks, 3>(ports.rr, ports.ru, ports.wu));
  const Advance<T, V> at{ports.w.data,
                         ports.inverse_diagonal.data,
                         u,
                         ports.x.data,
                         ports.r.data,
                         ports.p.data,
                         ports.s.data,
                         ports.next_rr.data,
                         ports.next_ru.data,
                         ports.state.data,
                         step.shape.rows,
                         step.unit,
                         step.iteration,
                         args.hat == Hat::by_step};
  launch_chained<advance_kernel<T, V>>("advance", stream, unit_blocks(step), unit_threads, at);
  if (args.hat == Hat::by_step) pack(stream, static_cast<const T*>(u), ports.departures);
}

void show_next(Stream stream, const NextStateArgs& args, NextStatePorts<AsPorts> ports) {
  check(cudaMemcpyAsync(ports.shown.data, ports.state.data, sizeof(CgState), cudaMemcpyDeviceToDevice,
                        native(stream)),
        "cudaMemcpyAsync");
  const int side = side_of(args.iteration);
  if (args.is_pipelined)
    show_next_kernel<pipelined_sums><<<1, unit_threads, 0, native(stream)>>>(
        ports.shown.data, side, SumLists<most_blocks, pipelined_sums>(ports.rr));
  else
    show_next_kernel<2><<<1, unit_threads, 0, native(stream)>>>(ports.shown.data, side,
                                                                SumLists<most_blocks, 2>(ports.rr, ports.ru));
  check(cudaGetLastError(), "show_next");
}

#define ASTERISM_INSTANTIATE(T, V) \
  template void advance(Stream, const AdvanceArgs&, AdvancePorts<AsPorts, T, V>)
ASTERISM_INSTANTIATE(float, float);
ASTERISM_INSTANTIATE(double, float);
ASTERISM_INSTANTIATE(double, double);
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::sparse::cuda
