// Conjugate gradients with one meeting an iteration, as one_reduction/pipelined.hpp has them: what the other blocks need for
// A m, and the sums, meet at once. That s, w and z are formed anew by the number of the iteration gives a sweep that is
// divided otherwise the same bits. Because of that a sweep leaves them to the next one.
//
// x, r and p of a block's rows lie in shared memory, s, w and z in registers; global memory has m for other blocks, in
// two places in turns: some still read the one while others write the other.

#include "../one_reduction/pipelined.hpp"
#include "sweep.cuh"

namespace asterism::sparse::cuda::persistent {
namespace {

/// Rows of a thread, at most: more doubles have no room in registers, and with more floats the products take longer than
/// the form with two meetings.
constexpr int most_rows = 4;

/// A vector that all blocks have written, before they met.
template <class T>
struct Shown {
  using Element = T;
  static constexpr bool is_set = true;
  const T* data;
  [[nodiscard]] __device__ T operator[](Index j) const { return data[j]; }
  [[nodiscard]] __device__ Shown from(Index j) const { return {data + j}; }
};

/// What a thread has of the vectors. Those in shared memory are the block's.
template <class T, int most>
struct Own {
  T s[most], w[most], z[most];
  T *x, *r, *p;
};

/// The meetings of all blocks, and what they are for: every block's part of a vector is there for all.
template <class T>
class Meetings {
 public:
  __device__ explicit Meetings(const Sweep<T>& sweep)
      : sums_(sweep.told), vectors_(sweep.pipelined + 3 * Index{sweep.rows}), rows_(sweep.rows) {}

  /// Where the vector of the next meeting is to be written.
  [[nodiscard]] __device__ T* next_vector() const { return vectors_ + ((number_ + 1) % 2) * rows_; }
  /// @param sums as GridSums has them
  template <int count>
  __device__ void meet(double (&sums)[count]) {
    ++number_;
    const int first_kind = number_ % 2 == 0 ? 0 : GridSums<threads>::kinds / 2;
    sums_.template meet<Shows::memory>(sums, first_kind, (number_ + 1) / 2);
  }
  /// One more, for a meeting that is not the next one after another with one more.
  [[nodiscard]] __device__ T* extra_vector() const { return vectors_ + 2 * rows_; }

 private:
  GridSums<threads> sums_;
  T* vectors_;
  Index rows_;
  std::uint32_t number_ = 0;
};

/// s = A p, w = A u and z = A q. @return (p, s)
template <class Rows, class T, int most>
__device__ double begin_anew(const Rows& matrix, const Sweep<T>& sweep, const OwnRows& rows,
                             Own<T, most>& own, Meetings<T>& meetings) {
  T *const p = meetings.next_vector(), *const u = meetings.extra_vector();
  rows.for_each<most>([&](int, int i) {
    p[rows.first + i] = own.p[i];
    u[rows.first + i] = preconditioned(sweep, rows.first + i, own.r[i]);
  });
  double nothing[1] = {0}, ps[1] = {0};
  meetings.meet(nothing);
  T* const q = meetings.next_vector();
  rows.for_each<most>([&](int k, int i) {
    own.s[k] = product_of_row<5>(matrix, rows.first + i, Shown<T>{p});
    own.w[k] = product_of_row<5>(matrix, rows.first + i, Shown<T>{u});
    q[rows.first + i] = preconditioned(sweep, rows.first + i, own.s[k]);
    ps[0] += static_cast<double>(own.p[i]) * static_cast<double>(own.s[k]);
  });
  meetings.meet(ps);
  rows.for_each<most>(
      [&](int k, int i) { own.z[k] = product_of_row<5>(matrix, rows.first + i, Shown<T>{q}); });
  return ps[0];
}

/// (P1), with m for the other blocks.
template <class T, int most>
__device__ void descend(const Sweep<T>& sweep, const OwnRows& rows, T alpha, Own<T, most>& own, T* m,
                        double (&sums)[5]) {
  rows.for_each<most>([&](int k, int i) {
    own.x[i] = multiply_add(alpha, own.p[i], own.x[i]);
    const T r = multiply_add(-alpha, own.s[k], own.r[i]), w = multiply_add(-alpha, own.z[k], own.w[k]);
    const T u = preconditioned(sweep, rows.first + i, r);
    const auto add = [](double& sum, T a, T b) { sum += static_cast<double>(a) * static_cast<double>(b); };
    m[rows.first + i] = preconditioned(sweep, rows.first + i, w);
    own.r[i] = r;
    own.w[k] = w;
    add(sums[0], r, r);
    add(sums[1], r, u);
    add(sums[2], w, u);
    add(sums[3], u, own.s[k]);
    add(sums[4], own.p[i], own.s[k]);
  });
}

/// (P3)
template <class Rows, class T, int most>
__device__ void turn(const Rows& matrix, const Sweep<T>& sweep, const OwnRows& rows, T beta, const T* m,
                     Own<T, most>& own) {
  rows.for_each<most>([&](int k, int i) {
    own.z[k] = multiply_add(beta, own.z[k], product_of_row<5>(matrix, rows.first + i, Shown<T>{m}));
    own.p[i] = multiply_add(beta, own.p[i], preconditioned(sweep, rows.first + i, own.r[i]));
    own.s[k] = multiply_add(beta, own.s[k], own.w[k]);
  });
}

template <class T, int most>
__device__ void bring(const Sweep<T>& sweep, const OwnRows& rows, Own<T, most>& own) {
  const T* const kept = sweep.pipelined + rows.first;
  rows.for_each<most>([&](int k, int i) {
    own.x[i] = sweep.x[rows.first + i];
    own.r[i] = sweep.r[rows.first + i];
    own.p[i] = sweep.p[rows.first + i];
    own.s[k] = kept[i];
    own.w[k] = kept[i + Index{sweep.rows}];
    own.z[k] = kept[i + 2 * Index{sweep.rows}];
  });
}

template <class T, int most>
__device__ void leave(const Sweep<T>& sweep, const OwnRows& rows, const Own<T, most>& own) {
  T* const kept = sweep.pipelined + rows.first;
  rows.for_each<most>([&](int k, int i) {
    sweep.x[rows.first + i] = own.x[i];
    sweep.r[rows.first + i] = own.r[i];
    sweep.p[rows.first + i] = own.p[i];
    kept[i] = own.s[k];
    kept[i + Index{sweep.rows}] = own.w[k];
    kept[i + 2 * Index{sweep.rows}] = own.z[k];
  });
}

/// Progress::pq is that of the iteration to come. @tparam most rows of a thread
template <class Rows, class T, int most>
__global__ void __launch_bounds__(threads, 1)
    pipelined_kernel(Rows matrix, const __grid_constant__ Sweep<T> sweep) {
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
  own.p = own.r + sweep.rows_of_block;
  bring(sweep, rows, own);

  Meetings<T> meetings(sweep);
  for (Index iteration = sweep.iteration; iteration < end && now.status == CgStatus::running; ++iteration) {
    if (iteration % pipelined_period == 0 || !is_usable(now.pq))
      now.pq = begin_anew(matrix, sweep, rows, own, meetings);
    if (!is_usable(now.pq)) {
      if (now.pq > 0) ++now.iterations;
      now.status = status_after(now.pq, now.rr, now.rz, now.limit);
      break;
    }
    const double alpha = now.rz / now.pq;
    double sums[5] = {0, 0, 0, 0, 0};
    T* const m = meetings.next_vector();
    descend(sweep, rows, static_cast<T>(alpha), own, m, sums);
    meetings.meet(sums);
    const auto [rr, rz, wu, us, ps] = sums;
    now.status = status_after(now.pq, rr, rz, now.limit);
    const double beta = rz / now.rz;
    now.pq = wu + beta * (2 * us + beta * ps);
    now.rr = rr;
    now.rz = rz;
    ++now.iterations;
    turn(matrix, sweep, rows, static_cast<T>(beta), m, own);
    if (tells && iteration < CgState::kept) {
      sweep.state->alpha[iteration] = alpha;
      sweep.state->beta[iteration] = beta;
    }
  }
  leave(sweep, rows, own);
  if (tells) now.leave(*sweep.state, end);
}

}  // namespace

template <class T>
bool sweep_pipelined(Stream stream, const Gpu& gpu, const BlockShape& shape,
                     const BlockPorts<AsPorts, T>& matrix, const Sweep<T>& sweep) {
  if (sweep.pipelined == nullptr) return false;
  bool done = false;
  with_device_rows<T>(shape, matrix, [&](const auto& rows) {
    using Rows = std::remove_cvref_t<decltype(rows)>;
    if constexpr (is_known<Rows, T> && !is_schur<Rows>)
      done = launch_fewest<most_rows>(sweep, [&](auto most) {
        return launch(stream, pipelined_kernel<Rows, T, most>, gpu, 3 * sweep.rows_of_block, rows, sweep);
      });
  });
  return done;
}

template bool sweep_pipelined(Stream, const Gpu&, const BlockShape&, const BlockPorts<AsPorts, float>&,
                              const Sweep<float>&);
template bool sweep_pipelined(Stream, const Gpu&, const BlockShape&, const BlockPorts<AsPorts, double>&,
                              const Sweep<double>&);

}  // namespace asterism::sparse::cuda::persistent
