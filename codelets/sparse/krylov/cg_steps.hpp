/// \file
/// Iterations of conjugate gradients on a matrix that is a single block, step by step.
#pragma once

#include <utility>

#include "conjugate_gradients.hpp"

namespace asterism::sparse {

template <class T>
Many<In<T>> list_of(const In<T>& only) {
  return {&only, 1};
}
template <class T>
In<T> to_read(const InOut<T>& tile) {
  return {tile.data, tile.rows, tile.cols, tile.ld};
}

/// z = M^-1 r, but for a diagonal. @return where z is
template <class T, class V, class Steps>
Optional<In<T>> precondition(const Steps& steps, const CgSweepArgs& args,
                             const CgSweepPorts<AsPorts, T, V>& all) {
  const PreconditionerShape& m = args.preconditioner;
  const auto& ports = all.preconditioner;
  InOut<T> z = ports.z;
  if (m.kind == PreconditionerKind::polynomial) {
    InOut<T> next = ports.next;
    for (std::size_t k = 0; k < m.steps.size(); ++k) {
      steps.template polynomial_step<T, V>({m.left, args.first.unit, m.steps[k], k == 0},
                                           {.matrix = ports.left,
                                            .arrivals = {},
                                            .inverse_diagonal = ports.inverse_diagonal,
                                            .r = to_read(all.r),
                                            .z = z,
                                            .s = ports.s,
                                            .next = next,
                                            .rz = {},
                                            .departures = {}});
      std::swap(z, next);
    }
  } else {
    steps.template triangular<T, V>(m, ports, to_read(all.r));
  }
  return {to_read(z)};
}

/// What (N2) and (N3) work with.
template <class T, class V>
struct StepPorts {
  const CgSweepPorts<AsPorts, T, V>& all;
  Optional<In<V>> diagonal;  ///< M^-1, where it is one
  In<double> pq = to_read(all.pq), rr = to_read(all.rr), rz = to_read(all.rz);

  [[nodiscard]] DescentPorts<AsPorts, T, V> descent() const {
    return {.pq = list_of(pq),
            .q = to_read(all.q),
            .inverse_diagonal = diagonal,
            .r = all.r,
            .rr = all.rr,
            .rz = {all.rz},
            .state = all.state};
  }
  [[nodiscard]] DirectionPorts<AsPorts, T, V> direction(const Optional<In<T>>& z) const {
    return {.rr = list_of(rr),
            .rz = list_of(rz),
            .r = to_read(all.r),
            .z = z,
            .inverse_diagonal = diagonal,
            .x = all.x,
            .p = all.p,
            .state = all.state,
            .departures = {}};
  }
};

/// Whether iterations do nothing any more, where a sweep can know that: cores do, while what submits a GPU's kernels is
/// ahead of them.
template <class Steps>
bool is_over(const Steps& steps, const InOut<CgState>& state, Index iteration) {
  if constexpr (requires { steps.is_over(state, iteration); })
    return steps.is_over(state, iteration);
  else
    return false;
}

/// cg_sweep. @param steps has multiply, descend, turn, polynomial_step and dot as kernels are, but for the stream, and
/// triangular(shape, ports, r), both halves of (Q3); maybe is_over
template <class T, class V, class Steps>
void sweep_in_steps(const Steps& steps, const CgSweepArgs& args, const CgSweepPorts<AsPorts, T, V>& ports) {
  const PreconditionerKind kind = args.preconditioner.kind;
  const StepPorts<T, V> of_step{ports, kind == PreconditionerKind::diagonal
                                           ? ports.preconditioner.inverse_diagonal
                                           : Optional<In<V>>{}};
  CgArgs step = args.first;
  const Index end = step.iteration + args.count;
  for (; step.iteration < end; ++step.iteration) {
    steps.template multiply<T>(step, {ports.matrix, {}, to_read(ports.state), ports.p, ports.q, ports.pq});
    steps.template descend<T, V>(step, of_step.descent());
    Optional<In<T>> z{};
    const bool has_z = kind == PreconditionerKind::polynomial || kind == PreconditionerKind::triangular;
    if (has_z && !is_over(steps, ports.state, step.iteration)) {
      z = precondition<T, V>(steps, args, ports);
      steps.template dot<T>(
          {step.unit, step.shape.own},
          {to_read(ports.r), z, {ports.rz.data, ports.rz.rows, ports.rz.cols, ports.rz.ld}});
    }
    steps.template turn<T, V>(step, of_step.direction(z));
  }
}

}  // namespace asterism::sparse
