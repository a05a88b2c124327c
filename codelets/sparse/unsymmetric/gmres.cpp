#include "gmres.hpp"

#include <vector>

#include "../unit_sums.hpp"

namespace asterism::sparse::cpu {
namespace {

/// to[i] = the total of the i-th of the lists that blocks have room for.
void add_up_lists(const Many<In<double>>& blocks, const GmresArgs& args, Index count, double* to) {
  for (Index i = 0; i < count; ++i) to[i] = total(blocks, i, args.m + 2);
}

/// w -= sum_i factors[i] v_i for the elements [first, end).
template <class T>
void subtract(const double* factors, const Many<In<T>>& basis, Index first, Index end, T* w) {
  for (Index k = 0; k < basis.size(); ++k) {
    const T factor = static_cast<T>(factors[k]);
    const T* const v = basis[k].data;
    for (Index i = first; i < end; ++i) w[i] -= factor * v[i];
  }
}

/// Calls body(first, end) for the chunks of a block, which leaves w, and then forms (w, v_i) over units, the first of
/// them in the first list.
/// @param squares whether a list of (w, w) comes last
enum class Squares { none, last };
template <class T, class Body>
void with_products(const GmresArgs& args, const Many<In<T>>& basis, const T* w, const InOut<double>& sums,
                   Squares squares, Body body) {
  const Index lists = basis.size() + (squares == Squares::last ? 1 : 0), units = sums.cols / (args.m + 2);
  std::vector<double> of_unit;
  for (Index u = 0; u < units; ++u) {
    of_unit.assign(static_cast<std::size_t>(lists), 0);
    for_each_chunk(u, args.unit, args.shape.rows, [&](Index first, Index end) {
      body(first, end);
      for (Index k = 0; k < lists; ++k)
        of_unit[k] += dot<T>(w, k < basis.size() ? basis[k].data : w, first, end);
    });
    for (Index k = 0; k < lists; ++k) sums.data[k * units + u] = of_unit[k];
  }
}

bool is_running(const GmresArgs& args, const GmresState& state) {
  return state.status[side_of(args.step)] == GmresStatus::running;
}

}  // namespace

template <class T, class V>
void begin_basis(const GmresArgs& args, BasisPorts<AsPorts, T, V> ports) {
  const double scale = decide(args, total(ports.rr), *ports.state.data);
  if (scale == 0) return;
  LeastSquares{ports.problem.data, args.m}.begin(1 / scale);
  T* const v = ports.first.data;
  for (Index i = 0; i < args.shape.rows; ++i) v[i] = static_cast<T>(scale) * ports.r.data[i];
  leave_hat<T, V>(args.hat, v, args.shape.rows, ports.inverse_diagonal, ports.hat.data + args.shape.own,
                  ports.departures);
}

template <class T>
void arnoldi_product(const GmresArgs& args, ArnoldiProductPorts<AsPorts, T> ports) {
  if (!is_running(args, *ports.state.data)) return;
  unpack(ports.arrivals, ports.hat.data);
  T* const w = ports.w.data;
  with_rows<T>(args.shape, ports.matrix, [&](const auto& matrix) {
    with_products<T>(args, ports.basis, w, ports.sums, Squares::none, [&](Index first, Index end) {
      products(matrix, first, end, ports.hat.data, w + first);
    });
  });
}

template <class T>
void project(const GmresArgs& args, ProjectionPorts<AsPorts, T> ports) {
  if (!is_running(args, *ports.state.data)) return;
  double* const h = LeastSquares{ports.problem.data, args.m}.h();
  add_up_lists(ports.all_sums, args, ports.basis.size(), h);
  T* const w = ports.w.data;
  with_products<T>(args, ports.basis, w, ports.sums, Squares::last,
                   [&](Index first, Index end) { subtract<T>(h, ports.basis, first, end, w); });
}

template <class T, class V>
void extend_basis(const GmresArgs& args, ExtensionPorts<AsPorts, T, V> ports) {
  GmresState& state = *ports.state.data;
  if (!is_running(args, state)) {
    state.status[side_of(args.step + 1)] = state.status[side_of(args.step)];
    return;
  }
  const LeastSquares problem{ports.problem.data, args.m};
  add_up_lists(ports.all_sums, args, ports.basis.size() + 1, problem.g());
  const T scale = static_cast<T>(scale_of(args, problem.h(), problem.g()));
  take_column(args, problem, state);
  T* const next = ports.next.data;
  for_each_chunk(args.unit, args.shape.rows, [&](Index first, Index end) {
    std::copy(ports.w.data + first, ports.w.data + end, next + first);
    subtract<T>(problem.g(), ports.basis, first, end, next);
    for (Index i = first; i < end; ++i) next[i] *= scale;
  });
  leave_hat<T, V>(args.hat, next, args.shape.rows, ports.inverse_diagonal, ports.hat.data + args.shape.own,
                  ports.departures);
}

template <class T, class V>
void combine(const GmresArgs& args, CombinationPorts<AsPorts, T, V> ports) {
  const Index columns = ports.state.data->columns;
  const LeastSquares problem{ports.problem.data, args.m};
  problem.solve(columns);
  T* const w = ports.w.data;
  for_each_chunk(args.unit, args.shape.rows, [&](Index first, Index end) {
    std::fill(w + first, w + end, T{});
    for (Index k = 0; k < columns; ++k) {
      const T factor = static_cast<T>(problem.solution()[k]);
      for (Index i = first; i < end; ++i) w[i] += factor * ports.basis[k].data[i];
    }
  });
  leave_hat<T, V>(args.hat, w, args.shape.rows, ports.inverse_diagonal, ports.hat.data + args.shape.own, {});
}

template <class T>
void correct(const GmresArgs& args, CorrectionPorts<AsPorts, T> ports) {
  const T* const hat = ports.hat.data + args.shape.own;
  for (Index i = 0; i < args.shape.rows; ++i) ports.x.data[i] += hat[i];
}

#define ASTERISM_INSTANTIATE(T)                                                     \
  template void arnoldi_product(const GmresArgs&, ArnoldiProductPorts<AsPorts, T>); \
  template void project(const GmresArgs&, ProjectionPorts<AsPorts, T>);             \
  template void correct(const GmresArgs&, CorrectionPorts<AsPorts, T>)
ASTERISM_INSTANTIATE(float);
ASTERISM_INSTANTIATE(double);
#undef ASTERISM_INSTANTIATE
#define ASTERISM_INSTANTIATE(T, V)                                             \
  template void begin_basis(const GmresArgs&, BasisPorts<AsPorts, T, V>);      \
  template void extend_basis(const GmresArgs&, ExtensionPorts<AsPorts, T, V>); \
  template void combine(const GmresArgs&, CombinationPorts<AsPorts, T, V>)
ASTERISM_INSTANTIATE(float, float);
ASTERISM_INSTANTIATE(double, float);
ASTERISM_INSTANTIATE(double, double);
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::sparse::cpu
