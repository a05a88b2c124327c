#include "pipelined.hpp"

#include "step_loops.cuh"

namespace asterism::sparse::cuda {
namespace {

using Sums = SumLists<most_blocks, pipelined_sums>;

/// (P2), by itself, as all units of the next step go by what the state had before.
__global__ void __launch_bounds__(unit_threads)
    decide_pipelined_kernel(CgState* state, Index iteration, const __grid_constant__ Sums sums) {
  wait_for_previous_kernel();
  double totals[pipelined_sums];
  sums.add_up(totals);
  if (threadIdx.x == 0) decide_lengths(iteration, totals, *state);
}

template <class T, class V>
struct Pipelined {
  const T* n;
  const V* d;
  T *m, *x, *r, *u, *w, *p, *s, *z, *q;
  double* sums;
  const CgState* state;
  Index rows, unit_rows, iteration;
  bool makes_m;

  /// (P3), (P1)
  __device__ void move(const StepLengths<T>& by, Index i) const {
    by.turn_and_go(u[i], p[i], x[i], by.alpha);
    by.turn_and_go(w[i], s[i], r[i], -by.alpha);
    by.turn_and_go(n[i], z[i], w[i], -by.alpha);
    if (makes_m) {
      u[i] = scaled(r[i], d, i);
      m[i] = scaled(w[i], d, i);
    } else {
      by.turn_and_go(m[i], q[i], u[i], -by.alpha);
    }
  }
};

template <class T, class V, bool moves>
__global__ void __launch_bounds__(unit_threads) pipelined_kernel(Pipelined<T, V> at) {
  wait_for_previous_kernel();
  if (moves && !goes_on(*at.state, at.iteration)) return;
  const StepLengths<T> by(*at.state, at.iteration);
  const Unit unit = own_unit(at.unit_rows, at.rows, false);
  double sums[pipelined_sums] = {};
  for (int k = static_cast<int>(threadIdx.x); k < unit.rows; k += unit_threads) {
    const Index i = unit.first + k;
    if constexpr (moves) at.move(by, i);
    const T r = at.r[i], u = at.u[i], s = at.s[i];
    sums[0] += product(r, r);  // as PipelinedSum has them
    sums[1] += product(r, u);
    sums[2] += product(at.w[i], u);
    sums[3] += product(u, s);
    sums[4] += product(at.p[i], s);
  }
  sum_over_block<unit_threads>(sums);
  if (threadIdx.x == 0)
    for (int k = 0; k < pipelined_sums; ++k) at.sums[k * Index{gridDim.x} + unit.number] = sums[k];
}

}  // namespace

template <class T, class V>
void advance_pipelined(Stream stream, const AdvanceArgs& args, PipelinedPorts<AsPorts, T, V> ports) {
  const CgArgs& step = args.step;
  const bool moves = step.iteration >= 0, makes_m = args.hat == Hat::by_step;
  T* const m = ports.hat.data + step.shape.own;
  const Pipelined<T, V> at{ports.n.data,
                           ports.inverse_diagonal.data,
                           m,
                           ports.x.data,
                           ports.r.data,
                           ports.u.data,
                           ports.w.data,
                           ports.p.data,
                           ports.s.data,
                           ports.z.data,
                           ports.q.data,
                           ports.next.data,
                           ports.state.data,
                           step.shape.rows,
                           step.unit,
                           step.iteration,
                           makes_m};
  if (moves)
    launch_chained<decide_pipelined_kernel>("decide", stream, 1, unit_threads, ports.state.data,
                                            step.iteration, Sums(ports.sums));
  with_flag(moves, [&](auto all) {
    launch_chained<pipelined_kernel<T, V, all>>("advance_pipelined", stream, unit_blocks(step), unit_threads,
                                                at);
  });
  if (moves && makes_m) pack(stream, static_cast<const T*>(m), ports.departures);
}

#define ASTERISM_INSTANTIATE(T, V) \
  template void advance_pipelined(Stream, const AdvanceArgs&, PipelinedPorts<AsPorts, T, V>)
ASTERISM_INSTANTIATE(float, float);
ASTERISM_INSTANTIATE(double, float);
ASTERISM_INSTANTIATE(double, double);
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::sparse::cuda
