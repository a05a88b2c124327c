#include "short_columns.hpp"

#include <algorithm>
#include <bit>

#include "../../runtime/cuda.hpp"
#include "../common/occupancy.cuh"
#include "boundaries.cuh"

namespace asterism::poisson::cuda {

using asterism::cuda::check_launch;
using asterism::cuda::native;

namespace {

constexpr int columns = 4;  // of a block of threads: of float64 a sector of memory
constexpr int size = short_block_rows, most_threads = columns * most_short_blocks;

/// The segments of a column, in shared memory: 1 is all of it, 2 s and 2 s + 1 are the halves of s. What lies around a segment
/// takes the place of what it shows, once that is not wanted any more.
struct Tree {
  double* column;
  int leaves;

  __device__ double& operator()(Index p, Index s) const { return column[(p * 2 * leaves + s) * columns]; }
  __device__ void put(Index s, const Around& around) const {
    store_shown(*this, s, around.before, around.after);
  }
  [[nodiscard]] __device__ Around around(Index s) const {
    return {(*this)(y_first_row, s), (*this)(y_last_row, s)};
  }
};
constexpr std::size_t tree_bytes = std::size_t{2} * joined_rows * columns * sizeof(double);  // for each leaf

/// What lies around column k, given or, in rings, by what all of the column shows.
struct Given {
  In<double> before, after;

  __device__ Around around(Index k, const Boundary& /*whole*/) const {
    return k < before.cols ? Around{before.data[k], after.data[k]} : Around{};
  }
};
struct Rings {
  __device__ Around around(Index /*k*/, const Boundary& whole) const { return close(whole); }
};

/// What lies around the rows of leaf `leaf`. All threads of the block call it, one for each leaf of each column.
template <class Ends>
__device__ Around find_around(const Tree& tree, int leaf, const Boundary& own, Index k, const Ends& ends) {
  const int leaves = tree.leaves;
  store(tree, leaves + leaf, own);
  for (int count = leaves / 2; count > 0; count /= 2) {
    __syncthreads();
    const int s = count + leaf;
    if (leaf < count) store(tree, s, join(load_boundary(tree, 2 * s), load_boundary(tree, 2 * s + 1)));
  }
  if (leaf == 0) tree.put(1, ends.around(k, load_boundary(tree, 1)));
  for (int count = 1; count < leaves; count *= 2) {
    __syncthreads();
    if (leaf >= count) continue;
    const int s = count + leaf;
    const Around around = tree.around(s);
    const Meeting meeting = meet(prefix_of(load_boundary(tree, 2 * s), around.before),
                                 prefix_of(mirrored(load_boundary(tree, 2 * s + 1)), around.after));
    tree.put(2 * s, {around.before, meeting.first});
    tree.put(2 * s + 1, {meeting.last, around.after});
  }
  __syncthreads();
  return tree.around(leaves + leaf);
}

template <class Ends, class T>
__global__ void __launch_bounds__(most_threads)
    solve_kernel(InOut<T> lines, In<double> axis, In<double> mu, double scale, Ends ends) {
  extern __shared__ double memory[];
  const int column = static_cast<int>(threadIdx.x) % columns, leaf = static_cast<int>(threadIdx.x) / columns;
  const Index k = Index{blockIdx.x} * columns + column, first = Index{leaf} * size;
  const bool is_mine = k < lines.cols;
  const int count = is_mine ? static_cast<int>(min(lines.rows - first, Index{size})) : 0;  // perhaps negative: none
  T f[size];
#pragma unroll
  for (int i = 0; i < size; ++i) f[i] = i < count ? lines.row(first + i)[k] : T{};
  const double mode = is_mine ? mu.data[k] : 1.0;
  const auto for_each_row = [&](const auto& body) {
#pragma unroll
    for (int i = 0; i < size; ++i)
      if (i < count) {
        const Row row = row_at(axis, first + i);
        body(i, row, scale * row.width * static_cast<double>(f[i]));
      }
  };
  Boundary own;
  for_each_row([&](int, const Row& row, double weighted) { own.append(row, mode, weighted); });
  const Around around =
      find_around(Tree{memory + column, static_cast<int>(blockDim.x) / columns}, leaf, own, k, ends);

  Pivot pivot;
  double y[size], m[size], y_before = around.before;
  for_each_row([&](int i, const Row& row, double weighted) {
    pivot.advance(row, mode);
    y[i] = y_before = pivot.eliminate(row, y_before, weighted);
    m[i] = pivot.m(row);
  });
  double next = around.after;
#pragma unroll
  for (int i = size - 1; i >= 0; --i)
    if (i < count) {
      next = y[i] + m[i] * next;
      lines.row(first + i)[k] = static_cast<T>(next);
    }
}

template <class Ends, class T>
void solve_columns(Stream stream, InOut<T> lines, In<double> axis, In<double> mu, double scale, const Ends& ends) {
  constexpr std::size_t least_leaves = 32 / columns;  // of a warp
  const std::size_t leaves = std::max(least_leaves, std::bit_ceil(static_cast<std::size_t>(parts(lines.rows, size))));
  const auto kernel = solve_kernel<Ends, T>;
  asterism::cuda::allow_all_shared_memory(kernel);
  kernel<<<static_cast<unsigned>(parts(lines.cols, columns)), static_cast<unsigned>(leaves) * columns, leaves * tree_bytes,
           native(stream)>>>(lines, axis, mu, scale, ends);
  check_launch("solve_short_columns");
}

}  // namespace

template <class T>
void solve_short_columns(Stream stream, InOut<T> lines, In<double> axis, In<double> mu, double scale, In<double> before,
                         In<double> after) {
  solve_columns(stream, lines, axis, mu, scale, Given{before, after});
}

template <class T>
void solve_short_rings(Stream stream, InOut<T> lines, In<double> axis, In<double> mu, double scale) {
  solve_columns(stream, lines, axis, mu, scale, Rings{});
}

template void solve_short_columns(Stream, InOut<float>, In<double>, In<double>, double, In<double>, In<double>);
template void solve_short_columns(Stream, InOut<double>, In<double>, In<double>, double, In<double>, In<double>);
template void solve_short_rings(Stream, InOut<float>, In<double>, In<double>, double);
template void solve_short_rings(Stream, InOut<double>, In<double>, In<double>, double);

}  // namespace asterism::poisson::cuda
