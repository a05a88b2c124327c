#include <algorithm>

#include "slabs.hpp"
#include "../../runtime/cuda.hpp"
#include "../transforms/transform.hpp"

namespace asterism::poisson::cuda {
namespace {

using asterism::cuda::check;
using asterism::cuda::check_launch;
using asterism::cuda::native;

/// Parts of the working memory of a slab kernel, each aligned for cuFFT. All in doubles.
template <class T>
struct Workspace {
  double *blocks, *group, *transform;

  static constexpr Index alignment = 256 / sizeof(double);
  static constexpr Index aligned(Index doubles) { return (doubles + alignment - 1) / alignment * alignment; }
  static constexpr Index doubles(Index elements) {
    return (elements * static_cast<Index>(sizeof(T)) + 7) / static_cast<Index>(sizeof(double));
  }
  static Index group_size(const SlabArgs& args) { return aligned(doubles(args.planes_at_once * args.columns())); }

  static Index transform_size(const SlabArgs& args) {
    Index elements = 0;
    for_each_transformed_axis<T>(
        args, nullptr, args.planes_at_once, [&](const grid::Axis& axis, const transforms::Lines<T>& lines) {
          const transforms::Transform kind = grid::transform_to_modes(axis);
          elements = std::max({elements, transforms::cuda::transform_scratch(kind, lines),
                               transforms::cuda::transform_scratch(inverse(kind), lines)});
        });
    return aligned(doubles(elements));
  }

  /// Of the tridiagonal kernels.
  static Index blocks_size(const SlabArgs& args, Index rows) {
    const Index ring = args.is_periodic ? Ring::size(args.columns(), args.interface) : 0;
    return aligned(blocks_scratch(rows, args.columns(), args.interface) + ring);
  }

  static Index size(const SlabArgs& args, Index rows) {
    return blocks_size(args, rows) + group_size(args) + transform_size(args);
  }

  Workspace(const SlabArgs& args, Index rows, const Scratch<double>& work)
      : blocks(work.data),
        group(blocks + blocks_size(args, rows)),
        transform(group + group_size(args)) {}
};

// A pass over a slab begins where the one before ended: that is still in the GPU's second-level cache (on an H200 4095^2 in
// float64 and float32 take 0.94 and 0.92 of the time, 8191^2 0.99 and 0.98). The elimination goes up and the substitution
// down, so the transform before goes down and the one after goes up.

/// As transform, from the first group of lines to the last, or from the last to the first.
template <class T>
void transform_up(Stream stream, transforms::Transform kind, const transforms::Lines<const T>& from,
                  const transforms::Lines<T>& to, const Workspace<T>& w) {
  transforms::cuda::transform<T>(stream, kind, from, to, reinterpret_cast<T*>(w.transform));
}
template <class T>
void transform_down(Stream stream, transforms::Transform kind, const transforms::Lines<const T>& from,
                    const transforms::Lines<T>& to, const Workspace<T>& w) {
  transform_up<T>(stream, kind, backwards(from), backwards(to), w);
}

/// At most planes_at_once planes, from one place to another or in place.
template <class T>
void to_modes(Stream stream, const SlabArgs& args, const T* from, T* to, Index planes, const Workspace<T>& w) {
  if (is_transformed(args.x)) {
    const auto transform = is_transformed(args.y) ? transform_up<T> : transform_down<T>;
    transform(stream, grid::transform_to_modes(args.x), lines_along_x(from, planes, args), lines_along_x(to, planes, args), w);
    from = to;
  }
  if (is_transformed(args.y)) {
    transform_down<T>(stream, grid::transform_to_modes(args.y), lines_along_y(from, planes, args),
                      lines_along_y(to, planes, args), w);
    from = to;
  }
  if (from != to)
    check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(planes * args.columns()) * sizeof(T),
                          cudaMemcpyDeviceToDevice, native(stream)),
          "copy of planes");
}

template <class T>
void from_modes(Stream stream, const SlabArgs& args, T* data, Index planes, const Workspace<T>& w) {
  const T* const from = data;
  if (is_transformed(args.y))
    transform_up<T>(stream, inverse(grid::transform_to_modes(args.y)), lines_along_y(from, planes, args),
                    lines_along_y(data, planes, args), w);
  if (is_transformed(args.x)) {
    const auto transform = is_transformed(args.y) ? transform_down<T> : transform_up<T>;
    transform(stream, inverse(grid::transform_to_modes(args.x)), lines_along_x(from, planes, args),
              lines_along_x(data, planes, args), w);
  }
}

/// How planes are transformed in place: all together, as kernels of 60 us each take 1.2 times as long, but where there is
/// working memory for planes_at_once only.
template <class T>
SlabArgs in_place(const SlabArgs& args, Index rows) {
  SlabArgs all = args;
  if (Workspace<T>::transform_size(args) == 0) all.planes_at_once = std::max<Index>(rows, 1);
  return all;
}

In<double> part(const In<double>& tile, Index first, Index count) {
  return {tile.row(first), count, tile.cols, tile.ld};
}

/// The mean of every plane into its mode 0.
template <class T>
__global__ void set_means_kernel(In<double> means, InOut<T> modes) {
  const Index i = Index{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < modes.rows) modes.row(i)[0] = static_cast<T>(means.row(i)[0]);
}

template <class T>
void to_modes_in_place(Stream stream, const SlabArgs& args, const InOut<T>& f, const Workspace<T>& w) {
  for_each_group(in_place<T>(args, f.rows), f.rows,
                 [&](Index first, Index count) { to_modes<T>(stream, args, f.row(first), f.row(first), count, w); });
}

/// Pass 2. @param solve_systems of the transformed planes
template <class T, class Solve>
void solve_planes(Stream stream, const SlabArgs& args, const InOut<T>& f, const In<double>& means, const Workspace<T>& w,
                  const Solve& solve_systems) {
  if (args.content == Content::grid) to_modes_in_place(stream, args, f, w);
  solve_systems();
  if (args.sets_mean) {
    constexpr unsigned threads = 128;
    set_means_kernel<<<static_cast<unsigned>((f.rows + threads - 1) / threads), threads, 0, native(stream)>>>(means, f);
    check_launch("set_means");
  }
  for_each_group(in_place<T>(args, f.rows), f.rows,
                 [&](Index first, Index count) { from_modes<T>(stream, args, f.row(first), count, w); });
}

}  // namespace

template <class T>
void reduce_slab(Stream stream, const SlabArgs& args, ReducePorts<AsPorts, T> p) {
  const auto& [f, axis, mu, shown, work] = p;
  const Workspace<T> w(args, f.rows, work);
  const Blocks blocks{w.blocks, f.rows, f.cols};
  T* const group = reinterpret_cast<T*>(w.group);
  for_each_group(args, f.rows, [&](Index first, Index count) {
    to_modes(stream, args, f.row(first), group, count, w);
    reduce_blocks<T>(stream, {group, count, f.cols, f.cols}, first, part(axis, first, count), mu, args.scale, blocks);
  });
  join_blocks(stream, mu, blocks, shown);
}

template <class T>
void transform_slab(Stream stream, const SlabArgs& args, TransformPorts<AsPorts, T> p) {
  const auto& [f, axis, mu, shown, work] = p;
  const Workspace<T> w(args, f.rows, work);
  const Blocks blocks{w.blocks, f.rows, f.cols};
  to_modes_in_place(stream, args, f, w);
  reduce_blocks<T>(stream, as_in(f), 0, axis, mu, args.scale, blocks);
  join_blocks(stream, mu, blocks, shown);
}

template <class T>
void slab_to_modes(Stream stream, const SlabArgs& args, ToModesPorts<AsPorts, T> p) {
  to_modes_in_place(stream, args, p.f, Workspace<T>(args, p.f.rows, p.work));
}

template <class T>
void solve_slab(Stream stream, const SlabArgs& args, SolvePorts<AsPorts, T> p) {
  const Workspace<T> w(args, p.f.rows, p.work);
  solve_planes(stream, args, p.f, p.means, w,
               [&] { solve(stream, p.f, p.axis, p.mu, args.scale, p.before, p.after, w.blocks); });
}

template <class T>
void solve_ring_slab(Stream stream, const SlabArgs& args, SolveRingPorts<AsPorts, T> p) {
  const Workspace<T> w(args, p.f.rows, p.work);
  solve_planes(stream, args, p.f, p.means, w,
               [&] { solve_ring(stream, p.f, p.axis, p.mu, args.scale, p.response, w.blocks); });
}

template <class T>
Index slab_scratch(const SlabArgs& args, Index rows) {
  return Workspace<T>::size(args, rows);
}

template <class T>
void plan_slabs(const SlabArgs& args) {
  for_each_transformed_axis<T>(
      args, nullptr, args.planes_at_once, [](const grid::Axis& axis, const transforms::Lines<T>& lines) {
        transforms::cuda::plan_transform(grid::transform_to_modes(axis), lines);
        transforms::cuda::plan_transform(inverse(grid::transform_to_modes(axis)), lines);
      });
}

#define ASTERISM_INSTANTIATE(T)                                             \
  template void reduce_slab(Stream, const SlabArgs&, ReducePorts<AsPorts, T>);       \
  template void transform_slab(Stream, const SlabArgs&, TransformPorts<AsPorts, T>); \
  template void slab_to_modes(Stream, const SlabArgs&, ToModesPorts<AsPorts, T>);    \
  template void solve_slab(Stream, const SlabArgs&, SolvePorts<AsPorts, T>);         \
  template void solve_ring_slab(Stream, const SlabArgs&, SolveRingPorts<AsPorts, T>); \
  template Index slab_scratch<T>(const SlabArgs&, Index);                   \
  template void plan_slabs<T>(const SlabArgs&);
ASTERISM_INSTANTIATE(float)
ASTERISM_INSTANTIATE(double)
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::poisson::cuda
