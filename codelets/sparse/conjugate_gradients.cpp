#include "conjugate_gradients.hpp"

#include <cmath>

#include "unit_sums.hpp"

namespace asterism::sparse::cpu {

template <class T>
void multiply(const CgArgs& args, MultiplyPorts<AsPorts, T> ports) {
  if (ports.state.data->status[side_of(args.iteration)] != CgStatus::running) return;
  unpack(ports.arrivals, ports.p.data);
  const T* const p = ports.p.data + args.shape.own;
  with_rows<T>(args.shape, ports.matrix, [&](const auto& matrix) {
    sum_units(args.unit, args.shape.rows, ports.pq.data, [&](Index first, Index end) {
      products(matrix, first, end, ports.p.data, ports.q.data + first);
      return dot<T>(p, ports.q.data, first, end);
    });
  });
}

template <class T, class V>
void descend(const CgArgs& args, DescentPorts<AsPorts, T, V> ports) {
  CgState& state = *ports.state.data;
  if (state.status[side_of(args.iteration)] != CgStatus::running) return;
  state.pq = total(ports.pq);
  if (!(state.pq > 0) || !std::isfinite(state.pq)) return;  // (C3) says so
  const double exact_alpha = state.rz[side_of(args.iteration)] / state.pq;
  const T alpha = static_cast<T>(exact_alpha);
  const T* const p = ports.p.data + args.shape.own;
  T *const x = ports.x.data, *const r = ports.r.data;
  const V* const d = ports.inverse_diagonal.data;
  double* const rz = ports.rz.data;
  for (Index u = 0; u < ports.rr.cols; ++u) {
    double rr_sum = 0, rz_sum = 0;
    for_each_chunk(u, args.unit, args.shape.rows, [&](Index first, Index end) {
      for (Index i = first; i < end; ++i) {
        x[i] += alpha * p[i];
        r[i] -= alpha * ports.q.data[i];
      }
      rr_sum += dot<T>(r, r, first, end);
      if (d != nullptr)
        rz_sum += sums::cpu::sum_of(end - first, [&](Index j) {
          const double value = static_cast<double>(r[first + j]);
          return value * value * static_cast<double>(d[first + j]);
        });
    });
    ports.rr.data[u] = rr_sum;
    if (d != nullptr) rz[u] = rz_sum;
  }
  if (args.iteration < CgState::kept) state.alpha[args.iteration] = exact_alpha;
}

namespace {

/// What (C3) decides: how the iteration goes on after this one. @return beta
double decide(Index iteration, double rr, double rz, CgState& state) {
  const auto is_finite = [](double value) { return std::isfinite(value); };
  state.rr = rr;
  state.rz[side_of(iteration + 1)] = rz;
  state.status[side_of(iteration + 1)] = !is_finite(rr) || !is_finite(rz) || !is_finite(state.pq)
                                             ? CgStatus::not_finite
                                         : state.pq <= 0     ? CgStatus::negative_curvature
                                         : rr <= state.limit ? CgStatus::converged
                                         : rz <= 0           ? CgStatus::negative_product
                                                             : CgStatus::running;
  if (iteration < 0) return 0;
  if (state.pq > 0) ++state.iterations;
  const double beta = rz / state.rz[side_of(iteration)];
  if (iteration < CgState::kept) state.beta[iteration] = beta;
  return beta;
}

}  // namespace

template <class T, class V>
void turn(const CgArgs& args, DirectionPorts<AsPorts, T, V> ports) {
  CgState& state = *ports.state.data;
  const int now = side_of(args.iteration), next = side_of(args.iteration + 1);
  const bool first = args.iteration < 0;
  if (first) {
    state = {};
    state.limit = args.limit;
    state.pq = 1;
  } else if (state.status[now] != CgStatus::running) {
    state.status[next] = state.status[now];
    state.rz[next] = state.rz[now];
    return;
  }
  const double exact_beta = decide(args.iteration, total(ports.rr), total(ports.rz), state);
  const T beta = static_cast<T>(exact_beta);
  const T* const z = ports.z ? ports.z.data + args.shape.own : ports.r.data;
  const V* const d = ports.inverse_diagonal.data;
  T* const p = ports.p.data + args.shape.own;
  for (Index i = 0; i < args.shape.rows; ++i) {
    const T preconditioned = d != nullptr ? static_cast<T>(d[i]) * z[i] : z[i];
    p[i] = first ? preconditioned : preconditioned + beta * p[i];
  }
  pack(p, ports.departures);
}

namespace {

template <class T>
Many<In<T>> list_of(const In<T>& only) {
  return {&only, 1};
}
template <class T>
In<T> to_read(const InOut<T>& tile) {
  return {tile.data, tile.rows, tile.cols, tile.ld};
}

/// z = M^-1 r, but for a diagonal. @return where z is
template <class T, class V>
Optional<In<T>> precondition(const CgSweepArgs& args, const CgSweepPorts<AsPorts, T, V>& all) {
  const PreconditionerShape& m = args.preconditioner;
  const auto& ports = all.preconditioner;
  InOut<T> z = ports.z;
  if (m.kind == PreconditionerKind::polynomial) {
    InOut<T> next = ports.next;
    for (std::size_t k = 0; k < m.steps.size(); ++k) {
      polynomial_step<T, V>({m.left, args.first.unit, m.steps[k], k == 0},
                            {.matrix = ports.left,
                             .arrivals = {},
                             .inverse_diagonal = ports.inverse_diagonal,
                             .r = to_read(all.r),
                             .z = z,
                             .s = ports.s,
                             .next = next,
                             .rz = {},
                             .departures = {}});
      std::swap(z, next);
    }
  } else {
    for (const Half half : {Half::forward, Half::backward})
      triangular_stages<T, V>({half == Half::forward ? m.left : m.right, half, m.stages, 0, m.stages.stages},
                              {.factor = half == Half::forward ? ports.left : ports.right,
                               .inverse_diagonal = ports.inverse_diagonal,
                               .stages = ports.stages,
                               .arrivals = {},
                               .r = to_read(all.r),
                               .z = z,
                               .departures = {}});
  }
  return {to_read(z)};
}

}  // namespace

template <class T, class V>
void cg_sweep(const CgSweepArgs& args, CgSweepPorts<AsPorts, T, V> ports) {
  const In<double> pq = to_read(ports.pq), rr = to_read(ports.rr), rz = to_read(ports.rz);
  const PreconditionerKind kind = args.preconditioner.kind;
  const Optional<In<V>> diagonal =
      kind == PreconditionerKind::diagonal ? ports.preconditioner.inverse_diagonal : Optional<In<V>>{};
  CgArgs step = args.first;
  const Index end = step.iteration + args.count;
  for (; step.iteration < end; ++step.iteration) {
    multiply<T>(step, {ports.matrix, {}, to_read(ports.state), ports.p, ports.q, ports.pq});
    descend<T, V>(step, {.pq = list_of(pq),
                         .p = to_read(ports.p),
                         .q = to_read(ports.q),
                         .inverse_diagonal = diagonal,
                         .x = ports.x,
                         .r = ports.r,
                         .rr = ports.rr,
                         .rz = {ports.rz},
                         .state = ports.state});
    Optional<In<T>> z{};
    if (kind == PreconditionerKind::polynomial || kind == PreconditionerKind::triangular) {
      z = precondition(args, ports);
      dot<T>({step.unit, step.shape.own},
             {to_read(ports.r), z, {ports.rz.data, ports.rz.rows, ports.rz.cols, ports.rz.ld}});
    }
    turn<T, V>(step, {.rr = list_of(rr),
                      .rz = list_of(rz),
                      .r = to_read(ports.r),
                      .z = z,
                      .inverse_diagonal = diagonal,
                      .p = ports.p,
                      .state = ports.state,
                      .departures = {}});
  }
}

template void multiply(const CgArgs&, MultiplyPorts<AsPorts, float>);
template void multiply(const CgArgs&, MultiplyPorts<AsPorts, double>);
#define ASTERISM_INSTANTIATE(T, V)                                   \
  template void descend(const CgArgs&, DescentPorts<AsPorts, T, V>); \
  template void turn(const CgArgs&, DirectionPorts<AsPorts, T, V>);  \
  template void cg_sweep(const CgSweepArgs&, CgSweepPorts<AsPorts, T, V>)
ASTERISM_INSTANTIATE(float, float);
ASTERISM_INSTANTIATE(double, float);
ASTERISM_INSTANTIATE(double, double);
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::sparse::cpu
