// (N2) and (N3): steps that only go through vectors.

#include "../../common/chained_launch.cuh"
#include "../row_products.cuh"
#include "../unit_sums.cuh"
#include "step_order.cuh"

namespace asterism::sparse::cuda {

using asterism::cuda::launch_chained;
using asterism::cuda::wait_for_previous_kernel;

namespace {

// ---- (N2) ----------------------------------------------------------------------------------------------------------

template <class T, class V>
struct Descent {
  const T* q;
  const V* d;
  T* r;
  double *rr, *rz;
  CgState* state;
  Index rows, unit_rows, iteration;
  bool backward;
};

/// What a thread has of a unit's vectors, some packs of each at a time.
template <class T, class V, bool aligned>
struct DescentPacks {
  static constexpr int width = pack_width<T>, packs = 2, step = width * unit_threads;
  Pack<T, width> q[packs], r[packs];
  Pack<V, width> d[packs];

  __device__ void bring(const Descent<T, V>& at, const Unit& unit, int i) {
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      load<aligned>(q[k], at.q + unit.first, i + k * step, unit.rows, Again::no);
      load<aligned>(r[k], at.r + unit.first, i + k * step, unit.rows);
      if (at.d != nullptr) load<aligned>(d[k], at.d + unit.first, i + k * step, unit.rows);
    }
  }
  __device__ void take(const Descent<T, V>& at, const Unit& unit, int i, T alpha, double (&sums)[2]) {
#pragma unroll
    for (int k = 0; k < packs; ++k) {
#pragma unroll
      for (int e = 0; e < width; ++e) {
        r[k].v[e] = multiply_add(-alpha, q[k].v[e], r[k].v[e]);
        const double value = static_cast<double>(r[k].v[e]);  // 0 beyond the end
        sums[0] += value * value;
        if (at.d != nullptr) sums[1] += value * value * static_cast<double>(d[k].v[e]);
      }
      store<aligned>(r[k], at.r + unit.first, i + k * step, unit.rows);
    }
  }
};

template <class T, class V, bool aligned, int most>
__global__ void __launch_bounds__(unit_threads, 5)
    descend_kernel(Descent<T, V> at, const __grid_constant__ SumLists<most, 1> pq) {
  wait_for_previous_kernel();
  using Packs = DescentPacks<T, V, aligned>;
  const int side = side_of(at.iteration);
  const CgStatus status = at.state->status[side];
  const double rz = at.state->rz[side];
  const Unit unit = own_unit(at.unit_rows, at.rows, at.backward);
  int i = static_cast<int>(threadIdx.x) * Packs::width;
  Packs packs;
  packs.bring(at, unit, i);  // on their way while alpha is
  if (status != CgStatus::running) return;
  double total[1];
  pq.add_up(total);
  const bool usable = is_usable(total[0]);
  const double alpha = rz / total[0];
  if (unit.number == 0 && threadIdx.x == 0) {
    at.state->pq = total[0];
    if (usable && at.iteration < CgState::kept) at.state->alpha[at.iteration] = alpha;
  }
  if (!usable) return;
  double sums[2] = {};
  while (i < unit.rows) {
    packs.take(at, unit, i, static_cast<T>(alpha), sums);
    i += Packs::packs * Packs::step;
    if (i < unit.rows) packs.bring(at, unit, i);
  }
  sum_over_block<unit_threads>(sums);
  if (threadIdx.x == 0) {
    at.rr[unit.number] = sums[0];
    if (at.d != nullptr) at.rz[unit.number] = sums[1];
  }
}

// ---- (N3) ----------------------------------------------------------------------------------------------------------

template <class T, class V>
struct Turn {
  const T* z;
  const V* d;
  T *x, *p;
  CgState* state;
  double limit;
  Index rows, unit_rows, iteration;
  bool backward;
};

template <class T, class V, bool aligned>
struct TurnPacks {
  static constexpr int width = pack_width<T>, packs = 1, step = width * unit_threads;
  Pack<T, width> z[packs], x[packs], p[packs];
  Pack<V, width> d[packs];

  __device__ void bring(const Turn<T, V>& at, const Unit& unit, int i) {
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      load<aligned>(z[k], at.z + unit.first, i + k * step, unit.rows);
      if (at.d != nullptr) load<aligned>(d[k], at.d + unit.first, i + k * step, unit.rows);
      if (at.iteration < 0) continue;
      load<aligned>(p[k], at.p + unit.first, i + k * step, unit.rows);
      load<aligned>(x[k], at.x + unit.first, i + k * step, unit.rows, Again::no);
    }
  }
  /// @param moves whether x does
  __device__ void take(const Turn<T, V>& at, const Unit& unit, int i, bool moves, T alpha, T beta) {
#pragma unroll
    for (int k = 0; k < packs; ++k) {
#pragma unroll
      for (int e = 0; e < width; ++e) {
        if (at.d != nullptr) z[k].v[e] *= static_cast<T>(d[k].v[e]);
        if (moves) x[k].v[e] = multiply_add(alpha, p[k].v[e], x[k].v[e]);
        p[k].v[e] = at.iteration < 0 ? z[k].v[e] : multiply_add(beta, p[k].v[e], z[k].v[e]);
      }
      if (moves) store<aligned>(x[k], at.x + unit.first, i + k * step, unit.rows, Again::no);
      store<aligned>(p[k], at.p + unit.first, i + k * step, unit.rows);
    }
  }
};

/// Before the first iteration, by the threads of one block; but for what decide() sets.
__device__ void clear(CgState& state, double limit) {
  for (int k = static_cast<int>(threadIdx.x); k < CgState::kept; k += unit_threads)
    state.alpha[k] = state.beta[k] = 0;
  if (threadIdx.x > 0) return;
  for (int side = 0; side < 2; ++side) {
    state.rz[side] = 0;
    state.status[side] = CgStatus::running;
  }
  state.limit = limit;
  state.pq = 1;
  state.iterations = 0;
}

template <class T, class V, bool aligned, int most>
__global__ void __launch_bounds__(unit_threads, 5)
    turn_kernel(Turn<T, V> at, const __grid_constant__ SumLists<most, 2> lists) {
  wait_for_previous_kernel();
  using Packs = TurnPacks<T, V, aligned>;
  const int now = side_of(at.iteration), next = side_of(at.iteration + 1);
  const bool first = at.iteration < 0;
  const CgStatus status = first ? CgStatus::running : at.state->status[now];
  const double rz_before = first ? 1 : at.state->rz[now], pq = first ? 1 : at.state->pq;
  const Unit unit = own_unit(at.unit_rows, at.rows, at.backward);
  int i = static_cast<int>(threadIdx.x) * Packs::width;
  Packs packs;
  packs.bring(at, unit, i);  // on their way while beta is
  if (status != CgStatus::running) {
    if (unit.number == 0 && threadIdx.x == 0) {
      at.state->status[next] = status;
      at.state->rz[next] = rz_before;
    }
    return;
  }
  double totals[2];
  lists.add_up(totals);
  if (unit.number == 0) {
    if (first) clear(*at.state, at.limit);
    if (threadIdx.x == 0) decide(at.iteration, totals[0], totals[1], *at.state);
  }
  const T alpha = static_cast<T>(rz_before / pq), beta = static_cast<T>(totals[1] / rz_before);
  const bool moves = !first && is_usable(pq);
  while (i < unit.rows) {
    packs.take(at, unit, i, moves, alpha, beta);
    i += Packs::packs * Packs::step;
    if (i < unit.rows) packs.bring(at, unit, i);
  }
}

/// Calls body(std::integral_constant<int, most>) for a matrix of so many blocks.
template <class Body>
void with_most_blocks(Index blocks, Body body) {
  if (blocks == 1)
    body(std::integral_constant<int, 1>{});
  else
    body(std::integral_constant<int, most_blocks>{});
}

}  // namespace

template <class T, class V>
void descend(Stream stream, const CgArgs& args, DescentPorts<AsPorts, T, V> ports) {
  const Descent<T, V> at{ports.q.data,    ports.inverse_diagonal.data,
                         ports.r.data,    ports.rr.data,
                         ports.rz.data,   ports.state.data,
                         args.shape.rows, args.unit,
                         args.iteration,  goes_backward(args.iteration, Step::descend)};
  const bool aligned = is_aligned<T>(at.q) && is_aligned<T>(at.d) && is_aligned<T>(at.r);
  with_flag(aligned, [&](auto all_aligned) {
    with_most_blocks(ports.pq.size(), [&](auto most) {
      launch_chained<descend_kernel<T, V, all_aligned, most>>("descend", stream, unit_blocks(args),
                                                              unit_threads, at, SumLists<most, 1>(ports.pq));
    });
  });
}

template <class T, class V>
void turn(Stream stream, const CgArgs& args, DirectionPorts<AsPorts, T, V> ports) {
  T* const p = ports.p.data + args.shape.own;
  const Turn<T, V> at{ports.z ? ports.z.data + args.shape.own : ports.r.data,
                      ports.inverse_diagonal.data,
                      ports.x.data,
                      p,
                      ports.state.data,
                      args.limit,
                      args.shape.rows,
                      args.unit,
                      args.iteration,
                      goes_backward(args.iteration, Step::turn)};
  const bool aligned =
      is_aligned<T>(at.z) && is_aligned<T>(at.d) && is_aligned<T>(at.x) && is_aligned<T>(at.p);
  with_flag(aligned, [&](auto all_aligned) {
    with_most_blocks(ports.rr.size(), [&](auto most) {
      launch_chained<turn_kernel<T, V, all_aligned, most>>("turn", stream, unit_blocks(args), unit_threads,
                                                           at, SumLists<most, 2>(ports.rr, ports.rz));
    });
  });
  pack(stream, static_cast<const T*>(p), ports.departures);
}

#define ASTERISM_INSTANTIATE(T, V)                                           \
  template void descend(Stream, const CgArgs&, DescentPorts<AsPorts, T, V>); \
  template void turn(Stream, const CgArgs&, DirectionPorts<AsPorts, T, V>)
ASTERISM_INSTANTIATE(float, float);
ASTERISM_INSTANTIATE(double, float);
ASTERISM_INSTANTIATE(double, double);
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::sparse::cuda
