#include "sweeps.hpp"

#include <utility>

#include "schedule.hpp"

namespace asterism::wavefront {

BoxAccesses accesses_of_tile(int dimensions, const WavefrontTile& tile, bool has_source) {
  return with_dimensions(dimensions, [&](auto dims) {
    WavefrontArgs args{.dimensions = dimensions, .sweeps = tile.sweeps, .layout = {.tile = tile}};
    int far_inside[dims];
    for (int axis = 0; axis < dims; ++axis) {
      const auto k = static_cast<std::size_t>(3 - dims + axis);
      far_inside[axis] = static_cast<int>((tile.sweeps + tile.points[k] - 1) / tile.points[k]);
      args.nodes[k] = (far_inside[axis] + 2) * tile.points[k];
    }
    const WavefrontPlan<dims> plan(args);
    const typename WavefrontPlan<dims>::Tile full = plan.tile(0, far_inside);
    const int planes = dims > 2 ? plan.width(0) : 1, rows = dims > 1 ? plan.width(dims - 2) : 1;
    const auto accesses = [&](int margin) {
      Index count = 0;
      for (int z = 0; z < planes; ++z)
        for (int y = 0; y < rows; ++y) {
          const auto span = plan.span(full, z, y, margin);
          count += (span.end - span.begin + 31) / 32;
        }
      return count;
    };
    return BoxAccesses{plan.rows_of_box(), accesses(1) + accesses(0) * (has_source ? 2 : 1)};
  });
}

namespace cpu {
namespace {

template <int dims, class T>
void sweep_nodes(const WavefrontArgs& args, InOut<T> u, In<T> g) {
  const WavefrontWeights<T> weights = wavefront_weights<T>(args);
  const SweptGrid at = swept_grid(args, u.ld), g_at = swept_grid(args, g.ld);
  const Index planes = dims > 2 ? args.nodes[0] : 1, rows = dims > 1 ? args.nodes[1] : 1;
  for (Index t = 0; t < args.sweeps; ++t)
    for (Index z = 0; z < planes; ++z)
      for (Index y = 0; y < rows; ++y)
        for (Index x = 0; x < args.nodes[2]; ++x) {
          T* const v = u.data + at.origin + z * at.plane + y * at.row + x * at.point;
          const T source =
              args.has_source ? g.data[g_at.origin + z * g_at.plane + y * g_at.row + x * g_at.point] : T{0};
          *v = relaxed_at<dims>(weights, v, at.plane, at.row, at.point, source);
        }
}

/// The nodes of a part of a row, and what lies beside them; the neighbours along y and z where there are any.
template <class T>
struct RowPart {
  T* v;
  const T *y_before, *y_after, *z_before, *z_after, *g;  ///< g: nullptr for none
  Index count;
  T after;  ///< the value after the last node
};

/// Relaxes them. All but one term of (W1) is computed for many nodes at once: only that waits for the node
/// before.
/// @param before the value before the first node @return that of the last one
template <int dims, int step, class T>
T relax_row(const WavefrontWeights<T>& weights, const RowPart<T>& part, T before) {
  constexpr Index at_once = 256;
  T sums[at_once];
  for (Index first = 0; first < part.count; first += at_once) {
    const Index count = std::min(at_once, part.count - first);
    T* const v = part.v + first * step;
    const auto sum_at = [&](Index k, T after, T g) {
      const Index at = (first + k) * step;
      T y_sum = 0, z_sum = 0;
      if constexpr (dims > 1) y_sum = part.y_before[at] + part.y_after[at];
      if constexpr (dims > 2) z_sum = part.z_before[at] + part.z_after[at];
      return relaxed_but_before<dims>(weights, v[k * step], z_sum, y_sum, after, g);
    };
    const bool last = first + count == part.count;
    const Index inner = last ? count - 1 : count;
    if (part.g == nullptr) {
      for (Index k = 0; k < inner; ++k) sums[k] = sum_at(k, v[(k + 1) * step], T{0});
      if (last) sums[inner] = sum_at(inner, part.after, T{0});
    } else {
      const T* const g = part.g + first * step;
      for (Index k = 0; k < inner; ++k) sums[k] = sum_at(k, v[(k + 1) * step], g[k * step]);
      if (last) sums[inner] = sum_at(inner, part.after, g[inner * step]);
    }
    for (Index k = 0; k < count; ++k) v[k * step] = before = multiply_add(weights.x, before, sums[k]);
  }
  return before;
}

/// Slices as the sweeps see them: [begin, end) of a block, number f at data + (f - begin) distance, or
/// mirrored.
struct Slices {
  Index begin, end;

  Slices(const WavefrontArgs& grid, Index first, Index height)
      : begin(std::max(first, Index{0})), end(std::min(first + height, wavefront_slices(grid))) {}
  [[nodiscard]] bool has(Index f) const { return f >= begin && f < end; }
  [[nodiscard]] Index row(const WavefrontArgs& grid, Index f) const {
    return grid.backward ? end - 1 - f : f - begin;
  }
};

/// Elements from a slice of a port to the next.
template <class Port>
Index slice_distance(const WavefrontArgs& grid, const Port& port) {
  return grid.dimensions == 1 ? 1 : grid.dimensions == 2 ? port.ld : (grid.nodes[1] + 2) * port.ld;
}

/// First slice of a block, of those that sweeps see: the smaller block is the one farthest along the axis.
Index first_slice(const WavefrontSlab& slab) {
  const Index beyond = wavefront_blocks(slab.grid, slab.height) * slab.height - wavefront_slices(slab.grid);
  return slab.number * slab.height - (slab.grid.backward ? beyond : 0);
}

/// Three blocks beside each other.
template <class Port>
struct Neighbourhood {
  const WavefrontArgs& grid;
  Slices slices[3];
  Port ports[3];

  Neighbourhood(const WavefrontSlab& slab, Port before, Port block, Port after)
      : grid(slab.grid),
        slices{{grid, first_slice(slab) - slab.height, slab.height},
               {grid, first_slice(slab), slab.height},
               {grid, first_slice(slab) + slab.height, slab.height}},
        ports{before, block, after} {}
  [[nodiscard]] std::size_t port_of(Index f) const { return slices[0].has(f) ? 0 : slices[1].has(f) ? 1 : 2; }
  [[nodiscard]] Index ld(Index f) const { return ports[port_of(f)].ld; }
  [[nodiscard]] auto slice(Index f) const {
    const std::size_t k = port_of(f);
    return ports[k].data + slices[k].row(grid, f) * slice_distance(grid, ports[k]);
  }
};

/// The rows of one slice in two and three dimensions.
template <int dims, int step, class T>
void relax_slice(const WavefrontArgs& grid, const WavefrontWeights<T>& weights, T* v, const T* before,
                 const T* after, const T* g, Index ld, Index before_ld, Index after_ld, Index g_ld) {
  const Index nx = grid.nodes[2], ny = grid.nodes[1], x = step > 0 ? 1 : nx;
  for (Index k = 0; k < (dims > 2 ? ny : 1); ++k) {
    const Index y = dims < 3 ? 0 : step > 0 ? k + 1 : ny - k;
    T* const row = v + y * ld + x;
    const T *const across_before = before + y * before_ld + x, *const across_after = after + y * after_ld + x;
    const T* const source = g == nullptr ? nullptr : g + y * g_ld + x;
    if constexpr (dims == 2)
      relax_row<2, step>(weights,
                         {row, across_before, across_after, nullptr, nullptr, source, nx, row[nx * step]},
                         row[-step]);
    else
      relax_row<3, step>(
          weights,
          {row, row - step * ld, row + step * ld, across_before, across_after, source, nx, row[nx * step]},
          row[-step]);
  }
}

template <int dims, int step, class T>
void relax_slab(const WavefrontSlab& slab, InOut<T> before, InOut<T> block, In<T> after, In<T> g_before,
                In<T> g) {
  const WavefrontArgs& grid = slab.grid;
  const WavefrontWeights<T> weights = wavefront_weights<T>(grid);
  const Index first = first_slice(slab), n = wavefront_slices(grid) - 2;
  const Neighbourhood<In<T>> v(slab, {before.data, before.rows, before.cols, before.ld},
                               {block.data, block.rows, block.cols, block.ld}, after);
  const Neighbourhood<In<T>> source(slab, g_before, g, g);
  const auto writable = [&](Index f) {  // a slice of `before` or of `block`
    const std::size_t k = v.slices[0].has(f) ? 0 : 1;
    return (k == 0 ? before.data : block.data) + v.slices[k].row(grid, f) * slice_distance(grid, v.ports[k]);
  };
  for (Index tau = 0; tau < grid.sweeps; ++tau) {
    const Index begin = std::max(first - tau, Index{1}), end = std::min(first + slab.height - 1 - tau, n) + 1;
    if constexpr (dims == 1) {
      // Up to the end of a block in one go.
      for (Index f = begin; f < end;) {
        const Index stop = std::min(end, v.slices[v.slices[0].has(f) ? 0 : 1].end);
        relax_row<1, step>(weights,
                           {writable(f), nullptr, nullptr, nullptr, nullptr,
                            grid.has_source ? source.slice(f) : nullptr, stop - f, *v.slice(stop)},
                           *v.slice(f - 1));
        f = stop;
      }
    } else {
      for (Index f = begin; f < end; ++f)
        relax_slice<dims, step, T>(grid, weights, writable(f), v.slice(f - 1), v.slice(f + 1),
                                   grid.has_source ? source.slice(f) : nullptr, v.ld(f), v.ld(f - 1),
                                   v.ld(f + 1), source.ld(f));
    }
  }
}

}  // namespace

template <class T>
void wavefront_sequential(const WavefrontArgs& args, InOut<T> u, In<T> g) {
  with_dimensions(args.dimensions, [&](auto dims) { sweep_nodes<dims>(args, u, g); });
}

Index wavefront_slices(const WavefrontArgs& args) {
  return args.nodes[static_cast<std::size_t>(3 - args.dimensions)] + 2;
}

template <class T>
void wavefront_slab(const WavefrontSlab& slab, InOut<T> before, InOut<T> block, In<T> after, In<T> g_before,
                    In<T> g) {
  with_dimensions(slab.grid.dimensions, [&](auto dims) {
    if (slab.grid.backward)
      relax_slab<dims, -1>(slab, before, block, after, g_before, g);
    else
      relax_slab<dims, 1>(slab, before, block, after, g_before, g);
  });
}

template <class T>
void wavefront_residual(const WavefrontSlab& slab, In<T> before, In<T> block, In<T> after, In<T> g,
                        Out<sums::SquareSum> sums) {
  const WavefrontArgs& grid = slab.grid;
  const Neighbourhood<In<T>> v(slab, before, block, after);
  const Neighbourhood<In<T>> source(slab, g, g, g);
  const int dims = grid.dimensions;
  const Index n = wavefront_slices(grid) - 2, nx = dims > 1 ? grid.nodes[2] : 1,
              rows = dims > 2 ? grid.nodes[1] : 1;
  const double slow = grid.along[static_cast<std::size_t>(3 - dims)];
  sums::SquareSum squares[wavefront_sums] = {};
  // The neighbours' sum, and the part of it that is given and belongs to the right-hand side.
  double balance = 0, given = 0;
  const auto add = [&](double weight, const T* neighbour, bool in_frame) {
    const double term = weight * static_cast<double>(*neighbour);
    balance += term;
    if (in_frame) given += term;
  };
  for (Index f = std::max(v.slices[1].begin, Index{1}); f < std::min(v.slices[1].end, n + 1); ++f) {
    const T *const here = v.slice(f), *const previous = v.slice(f - 1), *const next = v.slice(f + 1);
    const T* const s = grid.has_source ? source.slice(f) : nullptr;
    for (Index row = 0; row < rows; ++row)
      for (Index k = 0; k < nx; ++k) {
        // Where a node lies in its slice of a block.
        const auto place = [&](Index ld) { return (dims > 2 ? (row + 1) * ld : 0) + (dims > 1 ? k + 1 : 0); };
        const T* const at = here + place(block.ld);
        balance = given = 0;
        add(slow, previous + place(v.ld(f - 1)), f == 1);
        add(slow, next + place(v.ld(f + 1)), f == n);
        if (dims > 2) {
          add(grid.along[1], at - block.ld, row == 0);
          add(grid.along[1], at + block.ld, row == rows - 1);
        }
        if (dims > 1) {
          add(grid.along[2], at - 1, k == 0);
          add(grid.along[2], at + 1, k == nx - 1);
        }
        const double centre = static_cast<double>(*at),
                     b = s != nullptr ? static_cast<double>(s[place(g.ld)]) : 0;
        const double r = balance + b - centre;
        squares[wavefront_residual_squares].add(r);
        squares[wavefront_solution_squares].add(centre);
        squares[wavefront_source_squares].add(b + given);
      }
  }
  std::copy_n(squares, wavefront_sums, sums.data);
}

#define ASTERISM_INSTANTIATE(T)                                                                   \
  template void wavefront_sequential<T>(const WavefrontArgs&, InOut<T>, In<T>);                   \
  template void wavefront_slab<T>(const WavefrontSlab&, InOut<T>, InOut<T>, In<T>, In<T>, In<T>); \
  template void wavefront_residual<T>(const WavefrontSlab&, In<T>, In<T>, In<T>, In<T>, Out<sums::SquareSum>);
ASTERISM_INSTANTIATE(float)
ASTERISM_INSTANTIATE(double)
#undef ASTERISM_INSTANTIATE

}  // namespace cpu
}  // namespace asterism::wavefront
