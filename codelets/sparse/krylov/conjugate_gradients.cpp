#include "conjugate_gradients.hpp"

#include <span>
#include <vector>

#include "../unit_sums.hpp"
#include "cg_steps.hpp"

namespace asterism::sparse::cpu {
namespace {

/// What (N1) is done with.
template <class T>
struct Direction {
  const T* p;
  T* q;
  double* pq;
};

/// (N1) of all directions, with a chunk of rows while it is in the cache.
template <class T>
void multiply_directions(const BlockShape& shape, Index unit, const BlockPorts<AsPorts, T>& block,
                         std::span<const Direction<T>> directions) {
  with_rows<T>(shape, block, [&](const auto& matrix) {
    for (Index u = 0; u < units_of(shape.rows, unit); ++u) {
      for (const Direction<T>& d : directions) d.pq[u] = 0;
      for_each_chunk(u, unit, shape.rows, [&](Index first, Index end) {
        for (const auto& [p, q, pq] : directions) {
          products(matrix, first, end, p, q + first);
          pq[u] += dot<T>(p + shape.own, q, first, end);
        }
      });
    }
  });
}

}  // namespace

template <class T>
void multiply(const CgArgs& args, MultiplyPorts<AsPorts, T> ports) {
  if (ports.state.data->status[side_of(args.iteration)] != CgStatus::running) return;
  unpack(ports.arrivals, ports.p.data);
  const Direction<T> only{ports.p.data, ports.q.data, ports.pq.data};
  multiply_directions<T>(args.shape, args.unit, ports.matrix, {&only, 1});
}

template <class T>
void multiply_all(const MultiplyAllArgs& args, MultiplyAllPorts<AsPorts, T> ports) {
  const Index packs = ports.arrivals.packs.size() / ports.p.size();
  std::vector<Direction<T>> going;
  for (Index c = 0; c < ports.p.size(); ++c) {
    if (ports.states[c].data->status[side_of(args.iterations[c])] != CgStatus::running) continue;
    going.push_back({ports.p[c].data, ports.q[c].data, ports.pq[c].data});
    unpack<T>(
        {{ports.arrivals.packs.views + c * packs, packs}, {ports.arrivals.places.views + c * packs, packs}},
        ports.p[c].data);
  }
  multiply_directions<T>(args.shape, args.unit, ports.matrix, going);
}

template <class T, class V>
void descend(const CgArgs& args, DescentPorts<AsPorts, T, V> ports) {
  CgState& state = *ports.state.data;
  if (state.status[side_of(args.iteration)] != CgStatus::running) return;
  state.pq = total(ports.pq);
  if (!is_usable(state.pq)) return;  // (N3) says so
  const double exact_alpha = alpha_of(state, args.iteration);
  const T alpha = static_cast<T>(exact_alpha);
  T* const r = ports.r.data;
  const V* const d = ports.inverse_diagonal.data;
  double* const rz = ports.rz.data;
  for (Index u = 0; u < ports.rr.cols; ++u) {
    double rr_sum = 0, rz_sum = 0;
    for_each_chunk(u, args.unit, args.shape.rows, [&](Index first, Index end) {
      for (Index i = first; i < end; ++i) r[i] -= alpha * ports.q.data[i];
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
  const T alpha = static_cast<T>(alpha_of(state, args.iteration)), beta = static_cast<T>(exact_beta);
  const bool moves = !first && is_usable(state.pq);
  const T* const z = ports.z ? ports.z.data + args.shape.own : ports.r.data;
  const V* const d = ports.inverse_diagonal.data;
  T *const x = ports.x.data, *const p = ports.p.data + args.shape.own;
  for (Index i = 0; i < args.shape.rows; ++i) {
    const T preconditioned = d != nullptr ? static_cast<T>(d[i]) * z[i] : z[i];
    if (moves) x[i] += alpha * p[i];
    p[i] = first ? preconditioned : preconditioned + beta * p[i];
  }
  pack(p, ports.departures);
}

namespace {

/// The steps of sweep_in_steps.
struct Steps {
  template <class T>
  static void multiply(const CgArgs& args, const MultiplyPorts<AsPorts, T>& ports) {
    cpu::multiply<T>(args, ports);
  }
  template <class T, class V>
  static void descend(const CgArgs& args, const DescentPorts<AsPorts, T, V>& ports) {
    cpu::descend<T, V>(args, ports);
  }
  template <class T, class V>
  static void turn(const CgArgs& args, const DirectionPorts<AsPorts, T, V>& ports) {
    cpu::turn<T, V>(args, ports);
  }
  template <class T, class V>
  static void polynomial_step(const PolynomialArgs& args, const PolynomialPorts<AsPorts, T, V>& ports) {
    cpu::polynomial_step<T, V>(args, ports);
  }
  template <class T, class V>
  static void triangular(const PreconditionerShape& m, const PreconditionerPorts<AsPorts, T, V>& ports,
                         In<T> r) {
    for (const Half half : {Half::forward, Half::backward})
      triangular_stages<T, V>({half == Half::forward ? m.left : m.right, half, m.stages, 0, m.stages.stages},
                              {.factor = half == Half::forward ? ports.left : ports.right,
                               .inverse_diagonal = ports.inverse_diagonal,
                               .stages = ports.stages,
                               .arrivals = {},
                               .r = r,
                               .z = ports.z,
                               .departures = {}});
  }
  template <class T>
  static void dot(const DotArgs& args, const DotPorts<AsPorts, T>& ports) {
    cpu::dot<T>(args, ports);
  }
  static bool is_over(const InOut<CgState>& state, Index iteration) {
    return state.data->status[side_of(iteration)] != CgStatus::running;
  }
};

}  // namespace

template <class T, class V>
void cg_sweep(const CgSweepArgs& args, CgSweepPorts<AsPorts, T, V> ports) {
  sweep_in_steps<T, V>(Steps{}, args, ports);
}

template void multiply(const CgArgs&, MultiplyPorts<AsPorts, float>);
template void multiply(const CgArgs&, MultiplyPorts<AsPorts, double>);
template void multiply_all(const MultiplyAllArgs&, MultiplyAllPorts<AsPorts, float>);
template void multiply_all(const MultiplyAllArgs&, MultiplyAllPorts<AsPorts, double>);
#define ASTERISM_INSTANTIATE(T, V)                                   \
  template void descend(const CgArgs&, DescentPorts<AsPorts, T, V>); \
  template void turn(const CgArgs&, DirectionPorts<AsPorts, T, V>);  \
  template void cg_sweep(const CgSweepArgs&, CgSweepPorts<AsPorts, T, V>)
ASTERISM_INSTANTIATE(float, float);
ASTERISM_INSTANTIATE(double, float);
ASTERISM_INSTANTIATE(double, double);
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::sparse::cpu
