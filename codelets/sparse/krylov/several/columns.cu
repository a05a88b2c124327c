#include "columns.hpp"

#include <algorithm>
#include <span>

#include "../../../common/chained_launch.cuh"
#include "../../row_products.cuh"
#include "../../unit_sums.cuh"
#include "../cg_steps.hpp"
#include "../step_order.cuh"

namespace asterism::sparse::cuda {

using asterism::cuda::launch_chained;
using asterism::cuda::wait_for_previous_kernel;

namespace {

/// Right-hand sides that a kernel multiplies at once: what more of them bring is less than what their registers cost.
constexpr int lanes = 4;

/// A number of each.
template <class T>
struct Several {
  T of[lanes];
  Several() = default;
  __device__ Several(T all) {
#pragma unroll
    for (int c = 0; c < lanes; ++c) of[c] = all;
  }
  __device__ Several& operator+=(const Several& other) {
#pragma unroll
    for (int c = 0; c < lanes; ++c) of[c] += other.of[c];
    return *this;
  }
};

template <class T>
__device__ Several<T> multiply_add(const Several<T>& a, const Several<T>& b, Several<T> c) {
#pragma unroll
  for (int k = 0; k < lanes; ++k) c.of[k] = cuda::multiply_add(a.of[k], b.of[k], c.of[k]);
  return c;
}

template <class T>
__device__ Several<T> of_other_lane(const Several<T>& own, int distance) {
  Several<T> other;
#pragma unroll
  for (int c = 0; c < lanes; ++c) other.of[c] = cuda::of_other_lane(own.of[c], distance);
  return other;
}

/// As Constant.
template <class T>
struct SeveralConstant {
  using Element = Several<T>;
  static constexpr bool is_set = true;
  const T* data[lanes];
  int count;
  [[nodiscard]] __device__ Element operator[](Index j) const {
    Element element;
#pragma unroll
    for (int c = 0; c < lanes; ++c) element.of[c] = c < count ? __ldg(data[c] + j) : T{};
    return element;
  }
  [[nodiscard]] __device__ SeveralConstant from(Index j) const {
    SeveralConstant further = *this;
#pragma unroll
    for (int c = 0; c < lanes; ++c) further.data[c] += j;
    return further;
  }
};

/// (N1) of some of them, where they are running.
template <class T>
struct Multiplications {
  const CgStatus* status[lanes];
  SeveralConstant<T> p;
  T* q[lanes];
  double* pq[lanes];
  Index own, rows, unit_rows;
  bool backward;
};

template <class T>
struct MultipliedRows {
  static constexpr int at_once = 1;
  SeveralConstant<T> p;
  T* q[lanes];
  bool running[lanes];
  double sums[lanes] = {};
  [[nodiscard]] __device__ Several<T> bring(int i) const { return p[i]; }
  __device__ void take(int i, const Several<T>& products, const Several<T>& p_i) {
#pragma unroll
    for (int c = 0; c < lanes; ++c) {
      if (!running[c]) continue;
      q[c][i] = products.of[c];
      sums[c] += static_cast<double>(p_i.of[c]) * static_cast<double>(products.of[c]);
    }
  }
};

template <class Rows, class T>
__global__ void __launch_bounds__(unit_threads, 2)
    multiply_columns_kernel(Rows rows, const __grid_constant__ Multiplications<T> m) {
  wait_for_previous_kernel();
  const Unit unit = own_unit(m.unit_rows, m.rows, m.backward);
  MultipliedRows<T> row{.p = m.p.from(m.own + unit.first), .q = {}, .running = {}};
  bool any = false;
#pragma unroll
  for (int c = 0; c < lanes; ++c) {
    row.running[c] = c < m.p.count && *m.status[c] == CgStatus::running;
    row.q[c] = m.q[c] + unit.first;
    any = any || row.running[c];
  }
  if (!any) return;
  take_products(rows, unit, m.p, row);
  sum_over_block<unit_threads>(row.sums);
  if (threadIdx.x > 0) return;
#pragma unroll
  for (int c = 0; c < lanes; ++c)
    if (row.running[c]) m.pq[c][unit.number] = row.sums[c];
}

/// A right-hand side, and an iteration that it makes.
struct Going {
  Index column, iteration;
};

template <class T, class V>
void multiply_some(Stream stream, const CgArgs& step, const CgColumnsPorts<AsPorts, T, V>& ports,
                   std::span<const Going> going) {
  Multiplications<T> m{.status = {},
                       .p = {},
                       .q = {},
                       .pq = {},
                       .own = step.shape.own,
                       .rows = step.shape.rows,
                       .unit_rows = step.unit,
                       .backward = goes_backward(going.front().iteration, Step::multiply)};
  for (const auto& [column, iteration] : going) {
    const int c = m.p.count++;
    m.status[c] = ports.iterates.state[column].data->status + side_of(iteration);
    m.p.data[c] = ports.iterates.p[column].data;
    m.q[c] = ports.iterates.q[column].data;
    m.pq[c] = ports.iterates.pq[column].data;
  }
  with_rows<T>(step.shape, ports.matrix, [&](const auto& rows) {
    using Rows = std::remove_cvref_t<decltype(rows)>;
    if constexpr (!std::is_same_v<Rows, StencilRows<T>> && !std::is_same_v<Rows, SchurRows<T>>)
      launch_chained<multiply_columns_kernel<Rows, T>>("multiply_columns", stream, unit_blocks(step),
                                                       unit_threads, rows, m);
  });
}

/// The ports of one of them, as those of a sweep.
template <class T, class V>
CgSweepPorts<AsPorts, T, V> ports_of(const CgColumnsPorts<AsPorts, T, V>& all, Index column) {
  CgSweepPorts<AsPorts, T, V> ports{};
  ports.x = all.iterates.x[column];
  ports.r = all.iterates.r[column];
  ports.p = all.iterates.p[column];
  ports.q = all.iterates.q[column];
  ports.pq = all.iterates.pq[column];
  ports.rr = all.iterates.rr[column];
  ports.rz = all.inverse_diagonal ? all.iterates.rz[column] : all.iterates.rr[column];
  ports.state = all.iterates.state[column];
  return ports;
}

}  // namespace

template <class T, class V>
void cg_columns(Stream stream, const CgColumnsArgs& args, CgColumnsPorts<AsPorts, T, V> ports) {
  CgArgs step{.shape = args.shape, .unit = args.unit};
  const Index most = std::ranges::max(args.counts);
  for (Index k = 0; k < most; ++k) {
    std::vector<Going> going;
    for (Index c = 0; c < ports.iterates.x.size(); ++c)
      if (args.counts[c] > k) going.push_back({c, args.iterations[c] + k});
    for (std::size_t first = 0; first < going.size(); first += lanes)
      multiply_some<T, V>(
          stream, step, ports,
          std::span(going).subspan(first, std::min<std::size_t>(lanes, going.size() - first)));
    for (const auto& [column, iteration] : going) {
      step.iteration = iteration;
      const auto its = ports_of(ports, column);
      const StepPorts<T, V> of_step{its, ports.inverse_diagonal};
      descend<T, V>(stream, step, of_step.descent());
      turn<T, V>(stream, step, of_step.direction({}));
    }
  }
}

template void cg_columns(Stream, const CgColumnsArgs&, CgColumnsPorts<AsPorts, float, float>);
template void cg_columns(Stream, const CgColumnsArgs&, CgColumnsPorts<AsPorts, double, float>);
template void cg_columns(Stream, const CgColumnsArgs&, CgColumnsPorts<AsPorts, double, double>);

}  // namespace asterism::sparse::cuda
