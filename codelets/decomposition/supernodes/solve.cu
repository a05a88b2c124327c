// (F2) in one kernel. Its blocks take jobs in an order in which none waits for a later one, forward and then backward, and
// wait for what theirs need: so all go on, however many blocks run at a time.

#include <algorithm>

#include "../../common/occupancy.cuh"
#include "steps.hpp"

namespace asterism::decomposition::cuda {

using asterism::cuda::blocks_at_once;
using asterism::cuda::check;
using asterism::cuda::check_launch;
using asterism::cuda::native;

namespace {

constexpr int warp_lanes = 32, solve_threads = warp_lanes * small_of_job;

/// A block of threads, or one of its warps. @tparam size threads of the team
template <int size, class V>
struct GpuTeam {
  int rank;
  V* parts;  ///< of sums, one for each thread

  __device__ void meet() const {
    if constexpr (size == warp_lanes)
      __syncwarp();
    else
      __syncthreads();
  }
  template <class Body>
  __device__ void each(Index count, const Body& body) const {
    for (Index i = rank; i < count; i += size) body(i);
  }
  /// put(i, the sum of term(i, j) for j < end(i)): neighbouring threads have neighbouring rows.
  template <class End, class Term, class Put>
  __device__ void row_sums(Index rows, const End& end, const Term& term, const Put& put) const {
    const int stride = row_stride(size, rows), shares = size / stride;
    const int share = rank / stride, row = rank - share * stride;
    if (shares == 1) {
      for (Index i = rank; i < rows; i += size) put(i, share_of_row(i, 0, 1, end(i), term));
      return;
    }
    if (share < shares && row < rows) parts[rank] = share_of_row(row, share, shares, end(row), term);
    meet();
    if (share > 0 || row >= rows) return;
    V sum = parts[row];
    for (int k = 1; k < shares; ++k) sum += parts[row + k * stride];
    put(row, sum);
  }
  /// put(j, the sum of term(k, j) for begin(j) <= k < end): neighbouring threads have neighbouring k.
  template <class Begin, class Term, class Put>
  __device__ void column_sums(Index columns, const Begin& begin, Index end, const Term& term,
                              const Put& put) const {
    const int lanes = lanes_of_column(size, columns), at_once = size / lanes;
    const int lane = rank % lanes;
    for (Index first = 0; first < columns; first += at_once) {
      const Index j = first + rank / lanes;
      V sum = 0;
      if (j < columns) {
#pragma unroll 8
        for (Index k = begin(j) + lane; k < end; k += lanes) sum += term(k, j);
      }
      for (int half = lanes / 2; half > 0; half /= 2) sum += __shfl_xor_sync(~0U, sum, half);
      if (lane == 0 && j < columns) put(j, sum);
    }
  }

 private:
  template <class Term>
  static __device__ V share_of_row(Index i, Index first, Index step, Index end, const Term& term) {
    V sum = 0;
#pragma unroll 8
    for (Index j = first; j < end; j += step) sum += term(i, j);
    return sum;
  }
};

/// Room in shared memory: of a block for a supernode, or of each warp for one.
template <class V>
struct BlockRoom {
  static constexpr int most_below = 2048;
  V v1[most_width], y[most_width], v2[most_below], parts[solve_threads];
};
template <class V>
struct WarpRoom {
  V v1[most_small_width], y[most_small_width], v2[most_small_rows], parts[warp_lanes];
};
template <class V>
union Room {
  BlockRoom<V> block;
  WarpRoom<V> warps[small_of_job];
};

/// Who has come how far.
struct Progress {
  int*
      arrived;  ///< of each supernode: children that have given their u; one more: it has gone forward, and is a root
  int* solved;  ///< of each supernode: whether it has x
};

template <class T, class V>
struct SolveOnGpu {
  SupernodalSolve<V> solve;
  const std::int32_t *jobs, *at;  ///< at: of each column of L, where it is in b and x
  Index job_count;
  Progress progress;
  const T* b;
  T* x;
};

/// Several right-hand sides. Those of a job are worked on one after the other: what of the factors is in the cache
/// serves all.
template <class T, class V>
struct SolveSeveralOnGpu {
  SolveOnGpu<T, V> first;
  int* taken;  ///< jobs of all of them
  Index columns, work_ld, counters_ld, b_ld, x_ld;

  [[nodiscard]] __device__ SolveOnGpu<T, V> column(Index c) const {
    SolveOnGpu<T, V> its = first;
    its.solve.x += c * work_ld;
    its.solve.updates += c * work_ld;
    its.progress.arrived += c * counters_ld;
    its.progress.solved += c * counters_ld;
    its.b += c * b_ld;
    its.x += c * x_ld;
    return its;
  }
};

__device__ void wait_until(const int* counter, int count) {
  while (*static_cast<const volatile int*>(counter) < count) {
  }
  __threadfence();
}

/// What s waits for, by one thread of a team; the others meet it then.
__device__ void wait_for_others(const Progress& progress, const Supernode& s, std::int32_t number,
                                bool forward) {
  if (forward)
    wait_until(progress.arrived + number, s.child_count);
  else if (s.parent >= 0)
    wait_until(progress.solved + s.parent, 1);
  else
    wait_until(progress.arrived + number, s.child_count + 1);
}
/// By one thread, when the team has met.
__device__ void tell_others(const Progress& progress, const Supernode& s, std::int32_t number, bool forward) {
  __threadfence();
  if (forward)
    atomicAdd(progress.arrived + (s.parent >= 0 ? s.parent : number), 1);
  else
    atomicExch(progress.solved + number, 1);
}

template <class Team, class T, class V>
__device__ void work_on(const Team& team, const SolveOnGpu<T, V>& at, std::int32_t number,
                        const TeamRoom<V>& room, bool forward) {
  const Supernode s = at.solve.nodes[number];
  if (team.rank == 0) wait_for_others(at.progress, s, number, forward);
  team.meet();
  if (forward)
    forward_step(team, at.solve, s, room, [&](Index i) { return static_cast<V>(at.b[at.at[i]]); });
  else
    backward_step(team, at.solve, s, room, [&](Index i, V value) { at.x[at.at[i]] = static_cast<T>(value); });
  team.meet();
  if (team.rank == 0) tell_others(at.progress, s, number, forward);
}

template <class T, class V>
__global__ void __launch_bounds__(solve_threads, 2)
    solve_kernel(const __grid_constant__ SolveSeveralOnGpu<T, V> all) {
  __shared__ Room<V> room;
  __shared__ int taken;
  for (;;) {
    __syncthreads();  // nobody needs the room, or reads `taken`, any more
    if (threadIdx.x == 0) taken = atomicAdd(all.taken, 1);
    __syncthreads();
    const Index turn = taken / all.columns, job_count = all.first.job_count;
    if (turn >= 2 * job_count) return;
    const SolveOnGpu<T, V> at = all.column(taken - turn * all.columns);
    const bool forward = turn < job_count;
    const Index job = forward ? turn : 2 * job_count - 1 - turn;
    const std::int32_t begin = at.jobs[job], count = at.jobs[job + 1] - begin;
    const std::int32_t* const numbers = at.solve.order + begin;
    if (count == 1 && !is_small(at.solve.nodes[numbers[0]])) {
      BlockRoom<V>& its = room.block;
      const GpuTeam<solve_threads, V> team{static_cast<int>(threadIdx.x), its.parts};
      work_on(team, at, numbers[0], TeamRoom<V>{its.v1, its.y, its.v2, BlockRoom<V>::most_below}, forward);
    } else if (const int warp = static_cast<int>(threadIdx.x) / warp_lanes; warp < count) {
      WarpRoom<V>& its = room.warps[warp];
      const GpuTeam<warp_lanes, V> team{static_cast<int>(threadIdx.x) % warp_lanes, its.parts};
      work_on(team, at, numbers[warp], TeamRoom<V>{its.v1, its.y, its.v2, most_small_rows}, forward);
    }
  }
}

}  // namespace

template <class T, class V>
void solve_supernodes(Stream stream, const SupernodePorts<AsPorts, V>& ports, In<std::int32_t> rows,
                      Index columns, const Rows<const T>& b, Scratch<V> work,
                      Optional<Scratch<std::int32_t>> counters, const Rows<T>& x) {
  static const Index most_blocks = blocks_at_once(solve_kernel<T, V>, solve_threads);
  const Index n = rows.cols, nodes = ports.nodes.cols;
  const SupernodeLists lists(ports, work.cols - n - core_room(n));
  check(cudaMemset2DAsync(counters.data, sizeof(std::int32_t) * static_cast<std::size_t>(counters.ld), 0,
                          sizeof(std::int32_t) * static_cast<std::size_t>(supernodal_counters(nodes)),
                          static_cast<std::size_t>(columns), native(stream)),
        "cudaMemset2DAsync");
  const SolveOnGpu<T, V> first{.solve = {ports.nodes.data, ports.panels.data, lists.rows, lists.places,
                                         lists.order, work.data, work.data + n},
                               .jobs = lists.jobs,
                               .at = rows.data,
                               .job_count = lists.job_count,
                               .progress = {counters.data, counters.data + nodes},
                               .b = b.data,
                               .x = x.data};
  const Index blocks = std::min(most_blocks, columns * lists.job_count);
  solve_kernel<T, V><<<static_cast<unsigned>(blocks), solve_threads, 0, native(stream)>>>(
      {first, counters.data + 2 * nodes, columns, work.ld, counters.ld, b.ld, x.ld});
  check_launch("solve_supernodes");
}

#define ASTERISM_INSTANTIATE(T, V)                                                                   \
  template void solve_supernodes(Stream, const SupernodePorts<AsPorts, V>&, In<std::int32_t>, Index, \
                                 const Rows<const T>&, Scratch<V>, Optional<Scratch<std::int32_t>>,  \
                                 const Rows<T>&)
ASTERISM_INSTANTIATE(float, float);
ASTERISM_INSTANTIATE(double, float);
ASTERISM_INSTANTIATE(double, double);
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::decomposition::cuda
