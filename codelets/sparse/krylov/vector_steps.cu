// (N2) and (N3): steps that only go through vectors.

#include "../../common/chained_launch.cuh"
#include "../row_products.cuh"
#include "../unit_sums.cuh"
#include "several/meetings.cuh"
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

/// @tparam Sums SumLists or AwaitedSums, of one kind
template <class T, class V, bool aligned, class Sums>
__global__ void __launch_bounds__(unit_threads, 5)
    descend_kernel(Descent<T, V> at, const __grid_constant__ Sums pq,
                   const __grid_constant__ Meeting meeting) {
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
  if (threadIdx.x > 0) return;
  at.rr[unit.number] = sums[0];
  if (at.d != nullptr) at.rz[unit.number] = sums[1];
  if (meeting.blocks == 0) return;
  fence_all_gpus();  // who hears of it may read r
  meeting.tell_all(ToldKind::rr, unit.number, sums[0]);
  if (at.d != nullptr) meeting.tell_all(ToldKind::rz, unit.number, sums[1]);
}

// ---- (N3) ----------------------------------------------------------------------------------------------------------

template <class T, class V>
struct Turn {
  const T* z;
  const V* d;
  T *x, *p;
  T* all_p;  // from the first element of others on
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

/// Where there are no other GPUs.
struct NoOthers {};

/// What decide() takes, for all threads of a block. @param pq that (N2) has had
template <int most>
__device__ void add_up(const SumLists<most, 2>& lists, const CgState&, int, double, double (&totals)[2]) {
  lists.add_up(totals);
}
/// Where (N2) could not be done nobody tells anything, and all is as it was.
__device__ void add_up(const AwaitedSums<2>& awaited, const CgState& state, int now, double pq,
                       double (&totals)[2]) {
  if (is_usable(pq)) return awaited.add_up(totals);
  totals[0] = state.rr;
  totals[1] = state.rz[now];
}

/// @tparam Sums SumLists or AwaitedSums, of two kinds @tparam Others OthersElements or NoOthers
template <class T, class V, bool aligned, class Sums, class Others>
__global__ void __launch_bounds__(unit_threads, 5)
    turn_kernel(Turn<T, V> at, const __grid_constant__ Sums lists, const __grid_constant__ Others others) {
  wait_for_previous_kernel();
  using Packs = TurnPacks<T, V, aligned>;
  const int now = side_of(at.iteration), next = side_of(at.iteration + 1);
  const bool first = at.iteration < 0;
  const CgStatus status = first ? CgStatus::running : at.state->status[now];
  const double rz_before = first ? 1 : at.state->rz[now], pq = first ? 1 : at.state->pq;
  unsigned first_block = 0;
  if constexpr (!std::is_same_v<Others, NoOthers>) {
    first_block = others.blocks();
    if (blockIdx.x < first_block) {
      if (status != CgStatus::running) return;
      double totals[2];
      add_up(lists, *at.state, now, pq, totals);
      fence_all_gpus();  // after what was heard, before what is read
      return others.turn(static_cast<T>(totals[1] / rz_before), at.all_p);
    }
  }
  const Unit unit = own_unit(at.unit_rows, at.rows, at.backward, first_block);
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
  add_up(lists, *at.state, now, pq, totals);
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

/// Launches a step's kernel with these sums. @tparam Sums of the kernel
template <class T, class V, class Sums>
void descend_with(Stream stream, const CgArgs& args, const DescentPorts<AsPorts, T, V>& ports, const Sums& pq,
                  const Meeting& meeting) {
  const Descent<T, V> at{ports.q.data,    ports.inverse_diagonal.data,
                         ports.r.data,    ports.rr.data,
                         ports.rz.data,   ports.state.data,
                         args.shape.rows, args.unit,
                         args.iteration,  goes_backward(args.iteration, Step::descend)};
  const bool aligned = is_aligned<T>(at.q) && is_aligned<T>(at.d) && is_aligned<T>(at.r);
  with_flag(aligned, [&](auto all_aligned) {
    launch_chained<descend_kernel<T, V, all_aligned, Sums>>("descend", stream, unit_blocks(args),
                                                            unit_threads, at, pq, meeting);
  });
}

template <class T, class V, class Sums, class Others>
void turn_with(Stream stream, const CgArgs& args, const DirectionPorts<AsPorts, T, V>& ports,
               const Sums& lists, const Others& others, unsigned blocks) {
  T* const p = ports.p.data + args.shape.own;
  const Turn<T, V> at{ports.z ? ports.z.data + args.shape.own : ports.r.data,
                      ports.inverse_diagonal.data,
                      ports.x.data,
                      p,
                      ports.p.data,
                      ports.state.data,
                      args.limit,
                      args.shape.rows,
                      args.unit,
                      args.iteration,
                      goes_backward(args.iteration, Step::turn)};
  const bool aligned =
      is_aligned<T>(at.z) && is_aligned<T>(at.d) && is_aligned<T>(at.x) && is_aligned<T>(at.p);
  with_flag(aligned, [&](auto all_aligned) {
    launch_chained<turn_kernel<T, V, all_aligned, Sums, Others>>("turn", stream, blocks, unit_threads, at,
                                                                 lists, others);
  });
}

}  // namespace

template <class T, class V>
void descend(Stream stream, const CgArgs& args, DescentPorts<AsPorts, T, V> ports) {
  with_most_blocks(ports.pq.size(), [&](auto most) {
    descend_with<T, V>(stream, args, ports, SumLists<most, 1>(ports.pq), Meeting{});
  });
}

template <class T, class V>
void descend(Stream stream, const CgArgs& args, const DescentPorts<AsPorts, T, V>& ports,
             const Meeting& meeting) {
  descend_with<T, V>(stream, args, ports, AwaitedSums<1>(meeting, ToldKind::pq), meeting);
}

template <class T, class V>
void turn(Stream stream, const CgArgs& args, DirectionPorts<AsPorts, T, V> ports) {
  with_most_blocks(ports.rr.size(), [&](auto most) {
    turn_with<T, V>(stream, args, ports, SumLists<most, 2>(ports.rr, ports.rz), NoOthers{},
                    unit_blocks(args));
  });
  pack(stream, static_cast<const T*>(ports.p.data + args.shape.own), ports.departures);
}

template <class T, class V>
void turn(Stream stream, const CgArgs& args, const DirectionPorts<AsPorts, T, V>& ports,
          const Meeting& meeting, const OthersElements<T, V>& others) {
  const ToldKind rz = ports.inverse_diagonal ? ToldKind::rz : ToldKind::rr;
  turn_with<T, V>(stream, args, ports, AwaitedSums<2>(meeting, ToldKind::rr, rz), others,
                  others.blocks() + unit_blocks(args));
}

#define ASTERISM_INSTANTIATE(T, V)                                                                  \
  template void descend(Stream, const CgArgs&, DescentPorts<AsPorts, T, V>);                        \
  template void turn(Stream, const CgArgs&, DirectionPorts<AsPorts, T, V>);                         \
  template void descend(Stream, const CgArgs&, const DescentPorts<AsPorts, T, V>&, const Meeting&); \
  template void turn(Stream, const CgArgs&, const DirectionPorts<AsPorts, T, V>&, const Meeting&,   \
                     const OthersElements<T, V>&)
ASTERISM_INSTANTIATE(float, float);
ASTERISM_INSTANTIATE(double, float);
ASTERISM_INSTANTIATE(double, double);
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::sparse::cuda
