// r, p and q of a block's rows lie in shared memory, x in registers; of a Schur complement p and the matrix, and the
// others in registers. Global memory has for the other blocks z = M^-1 r where r will be, and p of the iteration before:
// what they need of p they make of these, which saves a meeting. Between two iterations are two meetings, whose sums are
// (p, q), and (r, r) with (r, z). Nothing is shown at the first one: what others read before it, they have. So what an
// iteration reads of memory is the matrix, and of the vectors what rows of other blocks have.

#include "persistent_cg.cuh"

#include <algorithm>
#include <optional>

#include "schur.cuh"

namespace asterism::sparse::cuda {

using namespace persistent;

namespace {

template <class Rows, class T, int most>
__device__ void descend(const Sweep<T>& sweep, const OwnRows& rows, T alpha, Own<Rows, T, most>& own,
                        double (&sums)[2]) {
  sums[0] = sums[1] = 0;
  rows.for_each<most>([&](int k, int i) {
    own.x[k] = multiply_add(alpha, own.p[i], own.x[k]);
    const T r = multiply_add(-alpha, own.q(k, i), own.r(k, i));
    const T z = preconditioned(sweep, rows.first + i, r);
    own.r(k, i) = r;
    own.q(k, i) = z;
    const int to_end = rows.count - 1 - i;  // for other blocks:
    if (i < sweep.reach || to_end < sweep.reach) sweep.r[rows.first + i] = z;
    if ((i >= sweep.halo && i < sweep.reach) || (to_end >= sweep.halo && to_end < sweep.reach))
      sweep.p[rows.first + i] = own.p[i];
    sums[0] += static_cast<double>(r) * static_cast<double>(r);
    sums[1] += static_cast<double>(r) * static_cast<double>(z);
  });
}

template <class Rows, class T, int most>
__device__ void turn(const Sweep<T>& sweep, const OwnRows& rows, T beta, Own<Rows, T, most>& own) {
  own.turn_halo(sweep, rows, beta);
  rows.for_each<most>([&](int k, int i) { own.p[i] = multiply_add(beta, own.p[i], own.q(k, i)); });
  __syncthreads();
}

template <class Rows, class T, int most>
__device__ void bring(const Rows& matrix, const Sweep<T>& sweep, const OwnRows& rows,
                      Own<Rows, T, most>& own) {
  own.bring_matrix(matrix, rows);
  own.bring_halo(sweep, rows);
  rows.for_each<most>([&](int k, int i) {
    own.x[k] = sweep.x[rows.first + i];
    own.r(k, i) = sweep.r[rows.first + i];
    own.p[i] = sweep.p[rows.first + i];
  });
  __syncthreads();
}

template <class Rows, class T, int most>
__device__ void leave(const Sweep<T>& sweep, const OwnRows& rows, Own<Rows, T, most>& own) {
  rows.for_each<most>([&](int k, int i) {
    sweep.x[rows.first + i] = own.x[k];
    sweep.r[rows.first + i] = own.r(k, i);
    sweep.p[rows.first + i] = own.p[i];
  });
}

/// @tparam most rows of a thread
template <class Rows, class T, int most>
__global__ void __launch_bounds__(threads, 1)
    sweep_kernel(Rows matrix, const __grid_constant__ Sweep<T> sweep) {
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ Progress now;  // thread 0 writes it, and the others have of it in registers what they need often
  const bool writes = threadIdx.x == 0, tells = writes && blockIdx.x == 0;
  if (writes) now = Progress(*sweep.state, sweep.iteration);
  __syncthreads();
  CgStatus status = now.status;
  double rz = now.rz;
  if (status != CgStatus::running) {
    if (tells) now.leave(*sweep.state, sweep.iteration + sweep.count);
    return;
  }
  const OwnRows rows(sweep);
  Own<Rows, T, most> own(matrix, sweep, reinterpret_cast<T*>(shared));
  bring(matrix, sweep, rows, own);

  GridSums<threads> grid(sweep.told);
  Direction<T> direction{sweep.r, sweep.p, own.p, rows.first, rows.count, 0, true};
  std::uint32_t meeting = 0;
  for (int made = 0; made < static_cast<int>(sweep.count) && status == CgStatus::running; ++made) {
    ++meeting;
    double pq[1] = {multiply(matrix, sweep, rows, direction, own)};
    grid.meet<Shows::nothing>(pq, 0, meeting);
    if (!is_usable(pq[0])) {
      status = status_after(pq[0], now.rr, rz, now.limit);
      if (writes && pq[0] > 0) ++now.iterations;
      if (writes) now.pq = pq[0];
      break;
    }
    const double alpha = rz / pq[0];
    double sums[2];
    descend(sweep, rows, static_cast<T>(alpha), own, sums);
    grid.meet<Shows::memory>(sums, 1, meeting);
    status = status_after(pq[0], sums[0], sums[1], now.limit);
    const double beta = sums[1] / rz;
    rz = sums[1];
    if (writes) {
      now.pq = pq[0];
      now.rr = sums[0];
      ++now.iterations;
    }
    turn(sweep, rows, static_cast<T>(beta), own);
    direction.beta = static_cast<T>(beta);
    direction.ready = false;
    if (const Index iteration = sweep.iteration + made; tells && iteration < CgState::kept) {
      sweep.state->alpha[iteration] = alpha;
      sweep.state->beta[iteration] = beta;
    }
  }
  leave(sweep, rows, own);
  if (!tells) return;
  now.status = status;
  now.rz = rz;
  now.leave(*sweep.state, sweep.iteration + sweep.count);
}

constexpr Index least_rows = 256;  ///< of a block

/// Of each of the blocks of threads that a GPU's processors take.
Index rows_of_blocks(const Gpu& gpu, Index rows) {
  const Index most = std::min<Index>(gpu.processors, GridSums<threads>::most_blocks);
  const Index blocks = std::min(most, rows / least_rows), even = parts(rows, blocks);
  return parts(even, slice_rows) * slice_rows;
}

/// Sweep::reach. @return none: rows of a block would need more than the next ones' have
std::optional<int> reach_of(const BlockShape& shape, Index rows_of_block) {
  if (shape.format == Format::schur && shape.reach > rows_of_block) return {};
  return static_cast<int>(shape.reach > 0 ? std::min(shape.reach, rows_of_block) : rows_of_block);
}

/// Sweep::halo: what there is room for beside so many elements.
template <class T>
int halo_of(const Gpu& gpu, int elements, int reach) {
  constexpr int most_static_bytes = 2048;
  const int room = (gpu.shared_bytes - most_static_bytes) / static_cast<int>(sizeof(T)) - elements;
  return std::clamp(room / 2, 0, reach);
}

}  // namespace

bool keeps_schur(const BlockShape& schur, int diagonals) {
  const Gpu gpu = this_gpu();
  if (gpu.cooperates == 0 || schur.rows < least_rows) return false;
  const Index rows_of_block = rows_of_blocks(gpu, schur.rows);
  const std::optional<int> reach = reach_of(schur, rows_of_block);
  if (!reach) return false;
  Sweep<double> sweep{};
  sweep.rows_of_block = static_cast<int>(rows_of_block);
  sweep.reach = *reach;
  SchurRows<double> matrix{};
  matrix.count = diagonals;
  return launch_fewest<8>(sweep, [&](auto most) {
    using Its = Own<SchurRows<double>, double, most>;
    const Index bytes = Its::shared_elements(matrix, sweep) * static_cast<Index>(sizeof(double));
    return bytes <= gpu.shared_bytes &&
           fits(sweep_kernel<SchurRows<double>, double, most>, gpu, static_cast<int>(bytes));
  });
}

template <class T, class V>
bool sweep_at_once(Stream stream, const CgSweepArgs& args, const CgSweepPorts<AsPorts, T, V>& ports) {
  constexpr Index most_rows_of_gpu = Index{1} << 24;
  const BlockShape& shape = args.first.shape;
  const PreconditionerKind kind = args.preconditioner.kind;
  if (kind != PreconditionerKind::none && kind != PreconditionerKind::diagonal) return false;
  if (shape.format == Format::csr || shape.cols != shape.rows || shape.rows > most_rows_of_gpu) return false;
  if (ports.matrix.values && ports.matrix.values.cols >= least_divided_entries) return false;
  if (shape.rows < least_rows) return false;  // q has no room for the meetings
  const Gpu gpu = this_gpu();
  if (gpu.cooperates == 0) return false;
  const Index rows_of_block = rows_of_blocks(gpu, shape.rows);
  const std::optional<int> reach = reach_of(shape, rows_of_block);
  if (!reach) return false;
  // q is not written otherwise.
  constexpr std::uintptr_t line = 128;
  const std::uintptr_t told = (reinterpret_cast<std::uintptr_t>(ports.q.data) + line - 1) / line * line;
  static_assert(least_rows * sizeof(float) >= GridSums<threads>::bytes(1) + line);
  const Sweep<T> sweep{args.first.iteration,
                       args.count,
                       static_cast<int>(shape.rows),
                       static_cast<int>(rows_of_block),
                       *reach,
                       0,
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
      done = launch_fewest<8>(sweep, [&](auto most) {
        using Its = Own<Rows, T, most>;
        Sweep<T> its = sweep;
        if constexpr (is_schur<Rows>) its.halo = halo_of<T>(gpu, Its::shared_elements(rows, sweep), *reach);
        return launch(stream, sweep_kernel<Rows, T, most>, gpu, Its::shared_elements(rows, its), rows, its);
      });
  });
  return done;
}

template bool sweep_at_once(Stream, const CgSweepArgs&, const CgSweepPorts<AsPorts, float, float>&);
template bool sweep_at_once(Stream, const CgSweepArgs&, const CgSweepPorts<AsPorts, double, float>&);
template bool sweep_at_once(Stream, const CgSweepArgs&, const CgSweepPorts<AsPorts, double, double>&);

}  // namespace asterism::sparse::cuda
