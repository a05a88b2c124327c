#include "bicgstab.hpp"

#include "../unit_sums.hpp"

namespace asterism::sparse::cpu {

template <class T>
void shadow(const ShadowArgs& args, ShadowPorts<AsPorts, T> ports) {
  const T* const r = ports.r.data;
  T* const to = ports.shadow.data;
  sum_units(args.unit, ports.r.cols, ports.rho.data, [&](Index first, Index end) {
    for (Index i = first; i < end; ++i)
      to[i] = static_cast<T>(shadow_weight(args.attempt, args.first_row + i)) * r[i];
    return dot<T>(to, r, first, end);
  });
}

template <class T>
void bicg_product(const BicgArgs& args, BicgProductPorts<AsPorts, T> ports) {
  if (ports.state.data->status[side_of(args.iteration)] != BicgStatus::running) return;
  unpack(ports.arrivals, ports.v.data);
  T* const q = ports.q.data;
  with_rows<T>(args.shape, ports.matrix, [&](const auto& matrix) {
    for (Index u = 0; u < ports.qa.cols; ++u) {
      double qa = 0, qq = 0;
      for_each_chunk(u, args.unit, args.shape.rows, [&](Index first, Index end) {
        products(matrix, first, end, ports.v.data, q + first);
        qa += dot<T>(q, ports.a.data, first, end);
        qq += dot<T>(q, q, first, end);
      });
      ports.qa.data[u] = qa;
      ports.qq.data[u] = qq;
    }
  });
}

template <class T, class V>
void half_step(const BicgArgs& args, HalfStepPorts<AsPorts, T, V> ports) {
  BicgState& state = *ports.state.data;
  const int side = side_of(args.iteration);
  if (state.status[side] != BicgStatus::running) return;
  state.alpha = alpha_of(state.rho[side], total(ports.qa), total(ports.qq), state);
  if (!is_there(state.alpha)) return;  // (V5) says so
  const T alpha = static_cast<T>(state.alpha);
  T *const x = ports.x.data, *const r = ports.r.data, *const hat = ports.hat.data + args.shape.own;
  sum_units(args.unit, args.shape.rows, ports.rr.data, [&](Index first, Index end) {
    for (Index i = first; i < end; ++i) {
      x[i] += alpha * hat[i];
      r[i] -= alpha * ports.q.data[i];
    }
    return dot<T>(r, r, first, end);
  });
  leave_hat<T, V>(args.hat, r, args.shape.rows, ports.inverse_diagonal, hat, ports.departures);
}

template <class T>
void full_step(const BicgArgs& args, FullStepPorts<AsPorts, T> ports) {
  BicgState& state = *ports.state.data;
  if (state.status[side_of(args.iteration)] != BicgStatus::running || !is_there(state.alpha)) return;
  state.omega = omega_of(total(ports.ta), total(ports.tt), total(ports.ss), state);
  const T omega = is_there(state.omega) ? static_cast<T>(state.omega) : T{};
  const T* const hat = ports.hat.data + args.shape.own;
  T *const x = ports.x.data, *const r = ports.r.data;
  for (Index u = 0; u < ports.rr.cols; ++u) {
    double rr = 0, rho = 0;
    for_each_chunk(u, args.unit, args.shape.rows, [&](Index first, Index end) {
      for (Index i = first; i < end; ++i) {
        x[i] += omega * hat[i];
        r[i] -= omega * ports.t.data[i];
      }
      rr += dot<T>(r, r, first, end);
      rho += dot<T>(ports.shadow.data, r, first, end);
    });
    ports.rr.data[u] = rr;
    ports.rho.data[u] = rho;
  }
}

template <class T, class V>
void bicg_turn(const BicgArgs& args, BicgTurnPorts<AsPorts, T, V> ports) {
  BicgState& state = *ports.state.data;
  const int now = side_of(args.iteration), next = side_of(args.iteration + 1);
  const bool first = args.iteration < 0;
  if (!first && state.status[now] != BicgStatus::running) {
    state.status[next] = state.status[now];
    return;
  }
  const double rho = total(ports.rho);
  const T beta = static_cast<T>(first ? 0 : beta_of(rho, state.rho[now], state.alpha, state.omega));
  decide(args, total(ports.rr), rho, state);
  const T omega = static_cast<T>(state.omega);
  T* const p = ports.p.data;
  for (Index i = 0; i < args.shape.rows; ++i)
    p[i] = first ? ports.r.data[i] : ports.r.data[i] + beta * (p[i] - omega * ports.q.data[i]);
  leave_hat<T, V>(args.hat, p, args.shape.rows, ports.inverse_diagonal, ports.hat.data + args.shape.own,
                  ports.departures);
}

#define ASTERISM_INSTANTIATE(T)                                              \
  template void shadow(const ShadowArgs&, ShadowPorts<AsPorts, T>);          \
  template void bicg_product(const BicgArgs&, BicgProductPorts<AsPorts, T>); \
  template void full_step(const BicgArgs&, FullStepPorts<AsPorts, T>)
ASTERISM_INSTANTIATE(float);
ASTERISM_INSTANTIATE(double);
#undef ASTERISM_INSTANTIATE
#define ASTERISM_INSTANTIATE(T, V)                                        \
  template void half_step(const BicgArgs&, HalfStepPorts<AsPorts, T, V>); \
  template void bicg_turn(const BicgArgs&, BicgTurnPorts<AsPorts, T, V>)
ASTERISM_INSTANTIATE(float, float);
ASTERISM_INSTANTIATE(double, float);
ASTERISM_INSTANTIATE(double, double);
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::sparse::cpu
