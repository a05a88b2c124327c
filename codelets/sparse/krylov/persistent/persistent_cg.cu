// x and r of a block's rows lie in shared memory, p and q in registers; global memory has for the other blocks z = M^-1 r
// where r will be, and p of the iteration before: what they need of p they make of these, which saves a meeting. Between
// two iterations are two meetings, whose sums are (p, q), and (r, r) with (r, z).

#include "persistent_cg.cuh"

#include <algorithm>

#include "sweep.cuh"

namespace asterism::sparse::cuda {

using namespace persistent;

namespace {

/// p of the iteration at hand.
template <class T>
struct Direction {
  using Element = T;
  static constexpr bool is_set = true;
  const T *z, *before;
  T beta;
  bool ready;  ///< whether `before` is p itself
  [[nodiscard]] __device__ T operator[](Index j) const {
    return ready ? before[j] : multiply_add(beta, before[j], z[j]);
  }
  [[nodiscard]] __device__ Direction from(Index j) const { return {z + j, before + j, beta, ready}; }
};

/// The registers and the shared memory of a thread.
template <class T, int most>
struct Own {
  T p[most], q[most];
  T *x, *r;  ///< shared, of the block
};

template <class Rows, class T, int most>
__device__ void multiply(const Rows& matrix, const OwnRows& rows, const Direction<T>& direction,
                         Own<T, most>& own, double& pq) {
  pq = 0;
  rows.for_each<most>([&](int k, int i) {
    own.q[k] = product_of_row<5>(matrix, rows.first + i, direction);
    pq += static_cast<double>(own.p[k]) * static_cast<double>(own.q[k]);
  });
}

template <class T, int most>
__device__ void descend(const Sweep<T>& sweep, const OwnRows& rows, T alpha, Own<T, most>& own,
                        double (&sums)[2]) {
  sums[0] = sums[1] = 0;
  rows.for_each<most>([&](int k, int i) {
    own.x[i] = multiply_add(alpha, own.p[k], own.x[i]);
    const T r = multiply_add(-alpha, own.q[k], own.r[i]);
    const T z = preconditioned(sweep, rows.first + i, r);
    own.r[i] = r;
    sweep.r[rows.first + i] = z;
    sweep.p[rows.first + i] = own.p[k];
    sums[0] += static_cast<double>(r) * static_cast<double>(r);
    sums[1] += static_cast<double>(r) * static_cast<double>(z);
  });
}

template <class T, int most>
__device__ void turn(const Sweep<T>& sweep, const OwnRows& rows, T beta, Own<T, most>& own) {
  rows.for_each<most>([&](int k, int i) {
    own.p[k] = multiply_add(beta, own.p[k], preconditioned(sweep, rows.first + i, own.r[i]));
  });
}

template <class T, int most>
__device__ void bring(const Sweep<T>& sweep, const OwnRows& rows, Own<T, most>& own) {
  rows.for_each<most>([&](int k, int i) {
    own.x[i] = sweep.x[rows.first + i];
    own.r[i] = sweep.r[rows.first + i];
    own.p[k] = sweep.p[rows.first + i];
  });
}

template <class T, int most>
__device__ void leave(const Sweep<T>& sweep, const OwnRows& rows, const Own<T, most>& own) {
  rows.for_each<most>([&](int k, int i) {
    sweep.x[rows.first + i] = own.x[i];
    sweep.r[rows.first + i] = own.r[i];
    sweep.p[rows.first + i] = own.p[k];
  });
}

/// @tparam most rows of a thread
template <class Rows, class T, int most>
__global__ void __launch_bounds__(threads, 1)
    sweep_kernel(Rows matrix, const __grid_constant__ Sweep<T> sweep) {
  extern __shared__ __align__(16) unsigned char shared[];
  Progress now(*sweep.state, sweep.iteration);
  const Index end = sweep.iteration + sweep.count;
  const bool tells = blockIdx.x == 0 && threadIdx.x == 0;
  if (now.status != CgStatus::running) {
    if (tells) now.leave(*sweep.state, end);
    return;
  }
  const OwnRows rows(sweep);
  Own<T, most> own;
  own.x = reinterpret_cast<T*>(shared);
  own.r = own.x + sweep.rows_of_block;
  bring(sweep, rows, own);

  GridSums<threads> grid(sweep.told);
  Direction<T> direction{sweep.r, sweep.p, 0, true};
  std::uint32_t meeting = 0;
  for (Index iteration = sweep.iteration; iteration < end && now.status == CgStatus::running; ++iteration) {
    ++meeting;
    double pq[1];
    multiply(matrix, rows, direction, own, pq[0]);
    grid.meet(pq, 0, meeting);
    now.pq = pq[0];
    if (!is_usable(now.pq)) {
      if (now.pq > 0) ++now.iterations;
      now.status = status_after(now.pq, now.rr, now.rz, now.limit);
      break;
    }
    const double alpha = now.rz / now.pq;
    double sums[2];
    descend(sweep, rows, static_cast<T>(alpha), own, sums);
    grid.meet(sums, 1, meeting);
    now.status = status_after(now.pq, sums[0], sums[1], now.limit);
    const double beta = sums[1] / now.rz;
    now.rr = sums[0];
    now.rz = sums[1];
    ++now.iterations;
    turn(sweep, rows, static_cast<T>(beta), own);
    direction.beta = static_cast<T>(beta);
    direction.ready = false;
    if (tells && iteration < CgState::kept) {
      sweep.state->alpha[iteration] = alpha;
      sweep.state->beta[iteration] = beta;
    }
  }
  leave(sweep, rows, own);
  if (tells) now.leave(*sweep.state, end);
}

}  // namespace

template <class T, class V>
bool sweep_at_once(Stream stream, const CgSweepArgs& args, const CgSweepPorts<AsPorts, T, V>& ports) {
  constexpr Index least_rows = 256, most_rows_of_gpu = Index{1} << 24;  // of a block
  const BlockShape& shape = args.first.shape;
  const PreconditionerKind kind = args.preconditioner.kind;
  if (kind != PreconditionerKind::none && kind != PreconditionerKind::diagonal) return false;
  if (shape.format == Format::csr || shape.cols != shape.rows || shape.rows > most_rows_of_gpu) return false;
  if (ports.matrix.values && ports.matrix.values.cols >= least_divided_entries) return false;
  if (shape.rows < least_rows) return false;  // q has no room for the meetings
  const Gpu gpu = this_gpu();
  if (gpu.cooperates == 0) return false;
  const Index most_blocks_at_once = std::min<Index>(gpu.processors, GridSums<threads>::most_blocks);
  const Index wanted = std::min(most_blocks_at_once, shape.rows / least_rows);
  const Index rows_of_block = ((shape.rows + wanted - 1) / wanted + slice_rows - 1) / slice_rows * slice_rows;
  // q is not written otherwise.
  constexpr std::uintptr_t line = 128;
  const std::uintptr_t told = (reinterpret_cast<std::uintptr_t>(ports.q.data) + line - 1) / line * line;
  static_assert(least_rows * sizeof(float) >= GridSums<threads>::kinds * sizeof(ToldSum) + line);
  const Sweep<T> sweep{args.first.iteration,
                       args.count,
                       static_cast<int>(shape.rows),
                       static_cast<int>(rows_of_block),
                       kind == PreconditionerKind::diagonal
                           ? InverseDiagonal(ports.preconditioner.inverse_diagonal.data)
                           : InverseDiagonal(),
                       ports.x.data,
                       ports.r.data,
                       ports.p.data,
                       ports.pipelined.data,
                       reinterpret_cast<ToldSum*>(told),
                       ports.state.data};
  if (sweep_pipelined(stream, gpu, shape, ports.matrix, sweep)) return true;
  bool done = false;
  with_device_rows<T>(shape, ports.matrix, [&](const auto& rows) {
    using Rows = std::remove_cvref_t<decltype(rows)>;
    if constexpr (is_known<Rows, T>)
      done = launch_fewest<8>(
          sweep, [&](auto most) { return launch(stream, sweep_kernel<Rows, T, most>, gpu, 2, rows, sweep); });
  });
  return done;
}

template bool sweep_at_once(Stream, const CgSweepArgs&, const CgSweepPorts<AsPorts, float, float>&);
template bool sweep_at_once(Stream, const CgSweepArgs&, const CgSweepPorts<AsPorts, double, float>&);
template bool sweep_at_once(Stream, const CgSweepArgs&, const CgSweepPorts<AsPorts, double, double>&);

}  // namespace asterism::sparse::cuda
