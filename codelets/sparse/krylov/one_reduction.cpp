#include "one_reduction.hpp"

#include "../unit_sums.hpp"

namespace asterism::sparse::cpu {
namespace {

/// v = u + beta v, y += alpha v. @param iteration in the first v is not read
template <class T>
void turn_and_go(Index iteration, Index count, T beta, T alpha, const T* __restrict u, T* __restrict v,
                 T* __restrict y) {
  if (iteration == 0) {
    std::copy_n(u, count, v);
    beta = 0;
  }
  for (Index i = 0; i < count; ++i) {
    v[i] = u[i] + beta * v[i];
    y[i] += alpha * v[i];
  }
}

/// u = D^-1 r, or r; (r, u) of these rows.
template <class T, class V>
double precondition(const T* r, const V* d, T* u, Index first, Index end) {
  for (Index i = first; i < end; ++i) u[i] = d != nullptr ? static_cast<T>(d[i]) * r[i] : r[i];
  return d != nullptr ? dot<T>(r, u, first, end) : 0;
}

}  // namespace

template <class T, class V>
void advance(const AdvanceArgs& args, AdvancePorts<AsPorts, T, V> ports) {
  CgState& state = *ports.state.data;
  const Index iteration = args.step.iteration;
  const int now = side_of(iteration), next = side_of(iteration + 1);
  if (state.status[now] != CgStatus::running) {
    state.status[next] = state.status[now];
    state.rz[next] = state.rz[now];
    return;
  }
  const auto lengths = decide(iteration, total(ports.rr), total(ports.ru), total(ports.wu), state);
  if (!lengths) return;
  const T alpha = static_cast<T>(lengths->alpha), beta = static_cast<T>(lengths->beta);
  T* const u = ports.hat.data + args.step.shape.own;
  const T* const w = ports.w.data;
  T *const x = ports.x.data, *const r = ports.r.data, *const p = ports.p.data, *const s = ports.s.data;
  for (Index unit = 0; unit < ports.next_rr.cols; ++unit) {
    double rr = 0, ru = 0;
    for_each_chunk(unit, args.step.unit, args.step.shape.rows, [&](Index first, Index end) {
      turn_and_go<T>(iteration, end - first, beta, alpha, u + first, p + first, x + first);
      turn_and_go<T>(iteration, end - first, beta, -alpha, w + first, s + first, r + first);
      rr += dot<T>(r, r, first, end);
      if (args.hat == Hat::by_step) ru += precondition<T, V>(r, ports.inverse_diagonal.data, u, first, end);
    });
    ports.next_rr.data[unit] = rr;
    if (ports.next_ru) ports.next_ru.data[unit] = ru;
  }
  if (args.hat == Hat::by_step) pack(static_cast<const T*>(u), ports.departures);
}

void show_next(const Index& iteration, NextStatePorts<AsPorts> ports) {
  CgState& shown = *ports.shown.data;
  shown = *ports.state.data;
  CgStatus& status = shown.status[side_of(iteration)];
  if (status != CgStatus::running) return;
  shown.rr = total(ports.rr);
  status = status_after(1, shown.rr, total(ports.ru), shown.limit);
}

#define ASTERISM_INSTANTIATE(T, V) template void advance(const AdvanceArgs&, AdvancePorts<AsPorts, T, V>)
ASTERISM_INSTANTIATE(float, float);
ASTERISM_INSTANTIATE(double, float);
ASTERISM_INSTANTIATE(double, double);
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::sparse::cpu
