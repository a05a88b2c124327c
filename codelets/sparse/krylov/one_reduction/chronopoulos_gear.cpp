#include "chronopoulos_gear.hpp"

#include "../../unit_sums.hpp"
#include "pipelined.hpp"
#include "step_loops.hpp"

namespace asterism::sparse::cpu {

template <class T, class V>
void advance(const AdvanceArgs& args, AdvancePorts<AsPorts, T, V> ports) {
  CgState& state = *ports.state.data;
  const Index iteration = args.step.iteration;
  if (!decide_lengths(iteration, total(ports.rr), total(ports.ru), total(ports.wu), state)) return;
  const T alpha = static_cast<T>(state.lengths.alpha), beta = static_cast<T>(state.lengths.beta);
  const V* const d = ports.inverse_diagonal.data;
  T* const u = ports.hat.data + args.step.shape.own;
  const T* const w = ports.w.data;
  T *const x = ports.x.data, *const r = ports.r.data, *const p = ports.p.data, *const s = ports.s.data;
  for (Index unit = 0; unit < ports.next_rr.cols; ++unit) {
    double rr = 0, ru = 0;
    for_each_chunk(unit, args.step.unit, args.step.shape.rows, [&](Index first, Index end) {
      turn_and_go<T>(iteration, end - first, beta, alpha, u + first, p + first, x + first);
      turn_and_go<T>(iteration, end - first, beta, -alpha, w + first, s + first, r + first);
      rr += dot<T>(r, r, first, end);
      if (args.hat == Hat::by_step) scale<T, V>(r, d, u, first, end);
      if (ports.next_ru) ru += dot<T>(r, u, first, end);
    });
    ports.next_rr.data[unit] = rr;
    if (ports.next_ru) ports.next_ru.data[unit] = ru;
  }
  if (args.hat == Hat::by_step) pack(static_cast<const T*>(u), ports.departures);
}

void show_next(const NextStateArgs& args, NextStatePorts<AsPorts> ports) {
  CgState& shown = *ports.shown.data;
  shown = *ports.state.data;
  CgStatus& status = shown.status[side_of(args.iteration)];
  if (status != CgStatus::running) return;
  shown.rr = args.is_pipelined ? total_of(ports.rr, PipelinedSum::rr) : total(ports.rr);
  const double ru = args.is_pipelined ? total_of(ports.ru, PipelinedSum::ru) : total(ports.ru);
  status = status_after(1, shown.rr, ru, shown.limit);
}

#define ASTERISM_INSTANTIATE(T, V) template void advance(const AdvanceArgs&, AdvancePorts<AsPorts, T, V>)
ASTERISM_INSTANTIATE(float, float);
ASTERISM_INSTANTIATE(double, float);
ASTERISM_INSTANTIATE(double, double);
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::sparse::cpu
