#include "slabs.hpp"

#include <algorithm>

#include "../transforms/bias.hpp"

namespace asterism::poisson::cpu {
namespace {

/// Planes to modes or back, few at a time, so that they stay in the cache between their axes, but so many that there are
/// lines for all lanes of a register.
template <class T>
void transform_planes(const SlabArgs& args, InOut<T> planes,
                      transforms::Transform (*direction)(const grid::Axis&)) {
  constexpr Index enough_lines = 16;
  const Index at_once = std::max<Index>(1, enough_lines / args.y.n);
  for (Index i = 0; i < planes.rows; i += at_once)
    for_each_transformed_axis(args, planes.row(i), std::min(at_once, planes.rows - i),
                              [&](const grid::Axis& axis, const transforms::Lines<T>& lines) {
                                transforms::cpu::transform(direction(axis), lines);
                              });
}

template <class T>
void to_modes(const SlabArgs& args, InOut<T> planes) {
  transform_planes(args, planes, grid::transform_to_modes);
}

template <class T>
void from_modes(const SlabArgs& args, InOut<T> planes) {
  transform_planes<T>(args, planes,
                      [](const grid::Axis& axis) { return inverse(grid::transform_to_modes(axis)); });
}

/// Rows of a tile.
template <class Port>
Port part(const Port& tile, Index first, Index count) {
  return {tile.data + first * tile.ld, count, tile.cols, tile.ld};
}

/// The state of the elimination of a slab, at the beginning of the working memory.
InOut<double> elimination_state(const SlabArgs& args, const Scratch<double>& work) {
  return {work.data, args.interface.state, args.columns(), args.columns()};
}

void show(const InOut<double>& state, Out<double> shown) {
  for (Index i = 0; i < shown.rows; ++i) std::copy_n(state.row(i), state.cols, shown.row(i));
}

/// Pass 2. @param solve_systems of the transformed planes
template <class T, class Solve>
void solve_planes(const SlabArgs& args, const InOut<T>& f, const In<double>& axis,
                  const In<double>& given_means, const Solve& solve_systems) {
  if (args.mean_system != nullptr) {
    grid::cpu::moments(args.mean_system->a(), as_in(f), axis, args.mean_system->moments());
    if (!args.mean_system->is_solvable()) return;
  }
  if (args.content == Content::grid) to_modes(args, f);
  solve_systems();
  if (args.sets_mean) {
    const In<double> means = args.mean_system != nullptr ? args.mean_system->solution() : given_means;
    for (Index i = 0; i < f.rows; ++i) f.row(i)[0] = static_cast<T>(means.row(i)[0]);
  }
  from_modes(args, f);
}

}  // namespace

template <class T>
void reduce_slab(const SlabArgs& args, ReducePorts<AsPorts, T> p) {
  const auto& [f, axis, mu, shown, work] = p;
  const InOut<double> state = elimination_state(args, work);
  T* const group = reinterpret_cast<T*>(state.row(state.rows));
  for_each_group(args, f.rows, [&](Index first, Index count) {
    const InOut<T> planes{group, count, f.cols, f.cols};
    for (Index i = 0; i < count; ++i) std::copy_n(f.row(first + i), f.cols, planes.row(i));
    to_modes(args, planes);
    reduce(as_in(planes), part(axis, first, count), mu, args.scale, state,
           first == 0 ? Segment::start : Segment::append);
  });
  show(state, shown);
}

template <class T>
void transform_slab(const SlabArgs& args, TransformPorts<AsPorts, T> p) {
  const auto& [f, axis, mu, shown, work] = p;
  const InOut<double> state = elimination_state(args, work);
  for_each_group(args, f.rows, [&](Index first, Index count) {
    const InOut<T> planes = part(f, first, count);
    to_modes(args, planes);
    reduce(as_in(planes), part(axis, first, count), mu, args.scale, state,
           first == 0 ? Segment::start : Segment::append);
  });
  show(state, shown);
}

template <class T>
void solve_slab(const SlabArgs& args, SolvePorts<AsPorts, T> p) {
  solve_planes(args, p.f, p.axis, p.means, [&] { solve(p.f, p.axis, p.mu, args.scale, p.before, p.after); });
}

template <class T>
void solve_ring_slab(const SlabArgs& args, SolveRingPorts<AsPorts, T> p) {
  solve_planes(args, p.f, p.axis, p.means,
               [&] { solve_ring(p.f, p.axis, p.mu, args.scale, p.response, p.work.data); });
}

template <class T>
Index slab_scratch(const SlabArgs& args, Index rows) {
  const Index group = std::min(rows, args.planes_at_once) * args.columns() * static_cast<Index>(sizeof(T));
  const Index ring = args.is_periodic ? Ring::size(args.columns(), args.interface) : 0;
  return std::max(args.interface.state * args.columns() + (group + 7) / 8, ring);
}

template <class T>
double plan_slabs(const SlabArgs& args) {
  double bias = 0;
  for_each_transformed_axis<T>(
      args, nullptr, 1, [&](const grid::Axis& axis, const transforms::Lines<T>& lines) {
        const transforms::Transform kind = grid::transform_to_modes(axis);
        transforms::cpu::plan_transform(kind, lines);
        transforms::cpu::plan_transform(inverse(kind), lines);
        bias += transforms::cpu::bias<T>(kind, axis.n, lines.care);
      });
  return bias;
}

#define ASTERISM_INSTANTIATE(T)                                               \
  template void reduce_slab(const SlabArgs&, ReducePorts<AsPorts, T>);        \
  template void transform_slab(const SlabArgs&, TransformPorts<AsPorts, T>);  \
  template void solve_slab(const SlabArgs&, SolvePorts<AsPorts, T>);          \
  template void solve_ring_slab(const SlabArgs&, SolveRingPorts<AsPorts, T>); \
  template Index slab_scratch<T>(const SlabArgs&, Index);                     \
  template double plan_slabs<T>(const SlabArgs&);
ASTERISM_INSTANTIATE(float)
ASTERISM_INSTANTIATE(double)
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::poisson::cpu
