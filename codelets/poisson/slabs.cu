#include <algorithm>

#include "slabs.hpp"
#include "../../runtime/replay.hpp"
#include "../transforms/bias.hpp"

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
  static constexpr Index aligned(Index doubles) { return parts(doubles, alignment) * alignment; }
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

  /// Of the tridiagonal kernels and, before and after them, of moments and means.
  static Index blocks_size(const SlabArgs& args, Index rows) {
    const Index ring = args.is_periodic ? Ring::size(args.columns(), args.interface) : 0,
                of_plane = args.sets_mean ? grid::moments_count + grid::cuda::moments_scratch : 0;
    return aligned(std::max(blocks_scratch(rows, args.columns(), args.interface) + ring, rows * of_plane));
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

/// Has the moments of all planes made, and waits for them: with a task of their own, whose end the host would hear of, and
/// another one for the rest, float32 8192^2 takes 1.2 times as long on an H200.
template <class T>
bool is_solvable(Stream stream, MeanSystem& system, const InOut<T>& f, const In<double>& axis, const Workspace<T>& w) {
  const Out<double> moments = system.moments();
  const Out<double> sums{w.blocks, f.rows, grid::moments_count, grid::moments_count};  // before there are blocks
  const Index partial = f.rows * grid::cuda::moments_scratch;
  grid::cuda::moments(stream, system.a(), as_in(f), axis, sums, {sums.row(f.rows), 1, partial, partial});
  check(cudaMemcpyAsync(moments.data, sums.data, static_cast<std::size_t>(f.rows * sums.ld) * sizeof(double),
                        cudaMemcpyDeviceToHost, native(stream)),
        "moments to main memory");
  check(cudaStreamSynchronize(native(stream)), "moments");
  return system.is_solvable();
}

/// What the host solves for in the meantime. In the place of what the tridiagonal kernels need no more.
template <class T>
In<double> solution(Stream stream, MeanSystem& system, Index rows, const Workspace<T>& w) {
  check(cudaMemcpyAsync(w.blocks, system.solution().data, static_cast<std::size_t>(rows) * sizeof(double),
                        cudaMemcpyHostToDevice, native(stream)),
        "means to the GPU");
  return {w.blocks, rows, 1, 1};
}

/// A small grid's time is that of its launches, unless they are one graph.
template <class T, class Ports, class Launches>
void launch_together(Stream stream, const SlabArgs& args, const Ports& p, const Launches& launches) {
  const auto launch = [&] { launches(Workspace<T>(args, p.f.rows, p.work)); };
  const bool has_cufft = Workspace<T>::transform_size(args) > 0;
  if (has_cufft)
    launch();
  else
    asterism::cuda::replay(stream, args, p, launch);
}

/// Pass 2. @param solve_systems of the transformed planes
template <class T, class Ports, class Solve>
void solve_planes(Stream stream, const SlabArgs& args, const Ports& p, const Solve& solve_systems) {
  const InOut<T>& f = p.f;
  const auto to_solved_modes = [&](const Workspace<T>& w) {
    if (args.content == Content::grid) to_modes_in_place(stream, args, f, w);
    solve_systems(w);
  };
  const auto set_means = [&](const In<double>& means) {
    constexpr unsigned threads = 128;
    set_means_kernel<<<static_cast<unsigned>(parts(f.rows, threads)), threads, 0, native(stream)>>>(means, f);
    check_launch("set_means");
  };
  const auto to_planes = [&](const Workspace<T>& w) {
    for_each_group(in_place<T>(args, f.rows), f.rows,
                   [&](Index first, Index count) { from_modes<T>(stream, args, f.row(first), count, w); });
  };
  if (args.mean_system == nullptr) {
    launch_together<T>(stream, args, p, [&](const Workspace<T>& w) {
      to_solved_modes(w);
      if (args.sets_mean) set_means(p.means);
      to_planes(w);
    });
  } else {
    const Workspace<T> w(args, f.rows, p.work);
    if (!is_solvable(stream, *args.mean_system, f, p.axis, w)) return;
    launch_together<T>(stream, args, p, to_solved_modes);
    const In<double> means = solution(stream, *args.mean_system, f.rows, w);
    launch_together<T>(stream, args, p, [&](const Workspace<T>& same) {
      set_means(means);
      to_planes(same);
    });
  }
}

}  // namespace

template <class T>
void reduce_slab(Stream stream, const SlabArgs& args, ReducePorts<AsPorts, T> p) {
  launch_together<T>(stream, args, p, [&](const Workspace<T>& w) {
    const Blocks blocks{w.blocks, p.f.rows, p.f.cols};
    T* const group = reinterpret_cast<T*>(w.group);
    for_each_group(args, p.f.rows, [&](Index first, Index count) {
      to_modes(stream, args, p.f.row(first), group, count, w);
      reduce_blocks<T>(stream, {group, count, p.f.cols, p.f.cols}, first, part(p.axis, first, count), p.mu, args.scale,
                       blocks);
    });
    join_blocks(stream, p.mu, blocks, p.shown);
  });
}

template <class T>
void transform_slab(Stream stream, const SlabArgs& args, TransformPorts<AsPorts, T> p) {
  launch_together<T>(stream, args, p, [&](const Workspace<T>& w) {
    const Blocks blocks{w.blocks, p.f.rows, p.f.cols};
    to_modes_in_place(stream, args, p.f, w);
    reduce_blocks<T>(stream, as_in(p.f), 0, p.axis, p.mu, args.scale, blocks);
    join_blocks(stream, p.mu, blocks, p.shown);
  });
}

template <class T>
void solve_slab(Stream stream, const SlabArgs& args, SolvePorts<AsPorts, T> p) {
  solve_planes<T>(stream, args, p, [&](const Workspace<T>& w) {
    solve(stream, p.f, p.axis, p.mu, args.scale, p.before, p.after, w.blocks);
  });
}

template <class T>
void solve_ring_slab(Stream stream, const SlabArgs& args, SolveRingPorts<AsPorts, T> p) {
  solve_planes<T>(stream, args, p, [&](const Workspace<T>& w) {
    solve_ring(stream, p.f, p.axis, p.mu, args.scale, p.response, w.blocks);
  });
}

template <class T>
Index slab_scratch(const SlabArgs& args, Index rows) {
  return Workspace<T>::size(args, rows);
}

template <class T>
double plan_slabs(const SlabArgs& args) {
  double bias = 0;
  for_each_transformed_axis<T>(
      args, nullptr, args.planes_at_once, [&](const grid::Axis& axis, const transforms::Lines<T>& lines) {
        const transforms::Transform kind = grid::transform_to_modes(axis);
        transforms::cuda::plan_transform(kind, lines);
        transforms::cuda::plan_transform(inverse(kind), lines);
        bias += transforms::cuda::bias<T>(kind, axis.n, lines.care);
      });
  return bias;
}

#define ASTERISM_INSTANTIATE(T)                                             \
  template void reduce_slab(Stream, const SlabArgs&, ReducePorts<AsPorts, T>);       \
  template void transform_slab(Stream, const SlabArgs&, TransformPorts<AsPorts, T>); \
  template void solve_slab(Stream, const SlabArgs&, SolvePorts<AsPorts, T>);         \
  template void solve_ring_slab(Stream, const SlabArgs&, SolveRingPorts<AsPorts, T>); \
  template Index slab_scratch<T>(const SlabArgs&, Index);                   \
  template double plan_slabs<T>(const SlabArgs&);
ASTERISM_INSTANTIATE(float)
ASTERISM_INSTANTIATE(double)
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::poisson::cuda
