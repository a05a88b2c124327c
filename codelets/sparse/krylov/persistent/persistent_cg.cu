// r, p and q of a block's rows lie in shared memory, x in registers; global memory has for the other blocks z = M^-1 r
// where r will be, and p of the iteration before: what they need of p they make of these, which saves a meeting. Between
// two iterations are two meetings, whose sums are (p, q), and (r, r) with (r, z). So what an iteration reads of memory is
// the matrix, and of the vectors what rows of other blocks have.

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
  const T* own;  ///< p of `count` rows from row `first`
  int first, count;
  T beta;
  bool ready;  ///< whether `before` is p itself
  [[nodiscard]] __device__ T operator[](Index j) const {
    const int i = static_cast<int>(j) - first;
    if (static_cast<unsigned>(i) < static_cast<unsigned>(count)) return own[i];
    return ready ? before[j] : multiply_add(beta, before[j], z[j]);
  }
  [[nodiscard]] __device__ Direction from(Index j) const {
    return {z + j, before + j, own, first - static_cast<int>(j), count, beta, ready};
  }
};

/// The registers of a thread, and the shared memory of its block.
template <class T, int most>
struct Own {
  static constexpr int vectors = 3;  ///< in shared memory
  T x[most];
  T *r, *p;
  T* q;  ///< z, from one meeting to the next
};

template <class Rows, class T, int most>
__device__ void multiply(const Rows& matrix, const OwnRows& rows, const Direction<T>& direction,
                         Own<T, most>& own, double& pq) {
  pq = 0;
  // Not unrolled: rows that wait for each other's loads would need more registers than there are.
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < rows.count; i += threads) {
    own.q[i] = product_of_row<5>(matrix, rows.first + i, direction);
    pq += static_cast<double>(own.p[i]) * static_cast<double>(own.q[i]);
  }
}

template <class T, int most>
__device__ void descend(const Sweep<T>& sweep, const OwnRows& rows, T alpha, Own<T, most>& own,
                        double (&sums)[2]) {
  sums[0] = sums[1] = 0;
  rows.for_each<most>([&](int k, int i) {
    own.x[k] = multiply_add(alpha, own.p[i], own.x[k]);
    const T r = multiply_add(-alpha, own.q[i], own.r[i]);
    const T z = preconditioned(sweep, rows.first + i, r);
    own.r[i] = r;
    own.q[i] = z;
    if (i < sweep.reach || i >= rows.count - sweep.reach) {  // for other blocks
      sweep.r[rows.first + i] = z;
      sweep.p[rows.first + i] = own.p[i];
    }
    sums[0] += static_cast<double>(r) * static_cast<double>(r);
    sums[1] += static_cast<double>(r) * static_cast<double>(z);
  });
}

template <class T, int most>
__device__ void turn(const OwnRows& rows, T beta, Own<T, most>& own) {
  rows.for_each<most>([&](int, int i) { own.p[i] = multiply_add(beta, own.p[i], own.q[i]); });
  __syncthreads();
}

template <class T, int most>
__device__ void bring(const Sweep<T>& sweep, const OwnRows& rows, Own<T, most>& own) {
  rows.for_each<most>([&](int k, int i) {
    own.x[k] = sweep.x[rows.first + i];
    own.r[i] = sweep.r[rows.first + i];
    own.p[i] = sweep.p[rows.first + i];
  });
  __syncthreads();
}

template <class T, int most>
__device__ void leave(const Sweep<T>& sweep, const OwnRows& rows, const Own<T, most>& own) {
  rows.for_each<most>([&](int k, int i) {
    sweep.x[rows.first + i] = own.x[k];
    sweep.r[rows.first + i] = own.r[i];
    sweep.p[rows.first + i] = own.p[i];
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
  own.r = reinterpret_cast<T*>(shared);
  own.p = own.r + sweep.rows_of_block;
  own.q = own.p + sweep.rows_of_block;
  bring(sweep, rows, own);

  GridSums<threads> grid(sweep.told);
  Direction<T> direction{sweep.r, sweep.p, own.p, rows.first, rows.count, 0, true};
  std::uint32_t meeting = 0;
  for (Index iteration = sweep.iteration; iteration < end && now.status == CgStatus::running; ++iteration) {
    ++meeting;
    double pq[1];
    multiply(matrix, rows, direction, own, pq[0]);
    grid.meet<Shows::nothing>(pq, 0, meeting);
    now.pq = pq[0];
    if (!is_usable(now.pq)) {
      if (now.pq > 0) ++now.iterations;
      now.status = status_after(now.pq, now.rr, now.rz, now.limit);
      break;
    }
    const double alpha = now.rz / now.pq;
    double sums[2];
    descend(sweep, rows, static_cast<T>(alpha), own, sums);
    grid.meet<Shows::memory>(sums, 1, meeting);
    now.status = status_after(now.pq, sums[0], sums[1], now.limit);
    const double beta = sums[1] / now.rz;
    now.rr = sums[0];
    now.rz = sums[1];
    ++now.iterations;
    turn(rows, static_cast<T>(beta), own);
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
  static_assert(least_rows * sizeof(float) >= GridSums<threads>::bytes(1) + line);
  const Sweep<T> sweep{
      args.first.iteration,
      args.count,
      static_cast<int>(shape.rows),
      static_cast<int>(rows_of_block),
      static_cast<int>(shape.reach > 0 ? std::min(shape.reach, rows_of_block) : rows_of_block),
      kind == PreconditionerKind::diagonal ? InverseDiagonal(ports.preconditioner.inverse_diagonal.data)
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
      done = launch_fewest<8>(sweep, [&](auto most) {
        return launch(stream, sweep_kernel<Rows, T, most>, gpu, Own<T, most>::vectors, rows, sweep);
      });
  });
  return done;
}

template bool sweep_at_once(Stream, const CgSweepArgs&, const CgSweepPorts<AsPorts, float, float>&);
template bool sweep_at_once(Stream, const CgSweepArgs&, const CgSweepPorts<AsPorts, double, float>&);
template bool sweep_at_once(Stream, const CgSweepArgs&, const CgSweepPorts<AsPorts, double, double>&);

}  // namespace asterism::sparse::cuda
