#include "pipelined.hpp"

#include <utility>

#include "../../unit_sums.hpp"
#include "step_loops.hpp"

namespace asterism::sparse::cpu {

double total_of(const Many<In<double>>& blocks, PipelinedSum sum) {
  return total(blocks, static_cast<Index>(sum), pipelined_sums);
}

namespace {

bool goes_on(Index iteration, const Many<In<double>>& sums, CgState& state) {
  double totals[pipelined_sums];
  for (int k = 0; k < pipelined_sums; ++k) totals[k] = total_of(sums, static_cast<PipelinedSum>(k));
  return decide_lengths(iteration, totals, state);
}

}  // namespace

template <class T, class V>
void advance_pipelined(const AdvanceArgs& args, PipelinedPorts<AsPorts, T, V> ports) {
  CgState& state = *ports.state.data;
  const Index iteration = args.step.iteration;
  const bool moves = iteration >= 0, makes_m = args.hat == Hat::by_step;
  if (moves && !goes_on(iteration, ports.sums, state)) return;
  const T alpha = static_cast<T>(state.lengths.alpha), beta = static_cast<T>(state.lengths.beta);
  const V* const d = ports.inverse_diagonal.data;
  const T* const n = ports.n.data;
  T* const m = ports.hat.data + args.step.shape.own;
  T *const x = ports.x.data, *const r = ports.r.data, *const u = ports.u.data, *const w = ports.w.data;
  T *const p = ports.p.data, *const s = ports.s.data, *const z = ports.z.data, *const q = ports.q.data;
  const Index units = ports.next.cols / pipelined_sums;
  for (Index unit = 0; unit < units; ++unit) {
    double sums[pipelined_sums] = {};
    for_each_chunk(unit, args.step.unit, args.step.shape.rows, [&](Index first, Index end) {
      const auto follow = [&](T step, const T* from, T* direction, T* to) {
        turn_and_go<T>(iteration, end - first, beta, step, from + first, direction + first, to + first);
      };
      if (moves) {
        follow(alpha, u, p, x);
        follow(-alpha, w, s, r);
        follow(-alpha, n, z, w);
        if (makes_m)
          scale<T, V>(r, d, u, first, end);
        else
          follow(-alpha, m, q, u);
        if (makes_m) scale<T, V>(w, d, m, first, end);
      }
      int k = 0;  // as PipelinedSum has them
      for (const auto& [a, b] : {std::pair(r, r), {r, u}, {w, u}, {u, s}, {p, s}})
        sums[k++] += dot<T>(a, b, first, end);
    });
    for (int k = 0; k < pipelined_sums; ++k) ports.next.data[k * units + unit] = sums[k];
  }
  if (moves && makes_m) pack(static_cast<const T*>(m), ports.departures);
}

#define ASTERISM_INSTANTIATE(T, V) \
  template void advance_pipelined(const AdvanceArgs&, PipelinedPorts<AsPorts, T, V>)
ASTERISM_INSTANTIATE(float, float);
ASTERISM_INSTANTIATE(double, float);
ASTERISM_INSTANTIATE(double, double);
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::sparse::cpu
