/// \file
/// Wavefront-tiled successive over-relaxation (SOR) in one, two and three dimensions: many lexicographic
/// sweeps, in place.
///
/// The loop is a DOACROSS loop: a node needs the new values of its neighbours before it and the old ones of
/// those after it.
///
///     v_i <- v_i + omega (sum over axes of a_axis (v_{i-e} + v_{i+e}) + g_i - v_i),  e along the axis, (W1)
///     sum of 2 a_axis = 1,  a_axis = h_axis^-2 / d,  g = -f / d,  d = 2 sum h_axis^-2,
///
/// as (R1) for any number of axes. With time t, the number of the sweep, and i'_axis = i_axis + t all its
/// dependences point forward along every axis of (t, i'), so that space and time can be cut into tiles of m_1
/// sweeps x m_z x m_y x m_x points. Tiles whose coordinates have the same sum do not depend on each other, an
/// inter-tile wavefront; likewise the points of a tile whose local coordinates have the same sum, an
/// intra-tile wavefront. Each point is computed from the same values by the same operations as in the
/// sequential loop, so the results are the same, bit for bit.
///
/// The grid lies in one tile of the runtime with a frame of given (Dirichlet) values around it: (nx + 2)
/// columns, the nodes along x; 1 row in one dimension, (ny + 2) in two, (nz + 2)(ny + 2) in three. g has the
/// same shape; its frame is not read.
///
/// A backward sweep visits the nodes in the opposite order: the same with every axis mirrored.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "../../runtime/codelet.hpp"
#include "../sums/sums.hpp"

namespace asterism::wavefront {

/// A tile: sweeps, then points along z, y, x, of which only the last `dimensions` are meant.
struct WavefrontTile {
  Index sweeps = 1;
  std::array<Index, 3> points = {1, 1, 1};
};

/// A tile layout: what the tile-size model chooses.
struct WavefrontLayout {
  WavefrontTile tile;
  int threads = 0;  ///< of a block, a multiple of 32
  int blocks = 0;   ///< of the grid; all of them must be on the GPU at once
};

/// All sweeps of a task. Arrays are along z, y, x; only their last `dimensions` elements are meant.
struct WavefrontArgs {
  int dimensions = 1;
  std::array<Index, 3> nodes = {1, 1, 1};
  std::array<double, 3> along = {};  ///< a_axis
  double omega = 1;
  Index sweeps = 1;
  bool has_source = false;  ///< whether there is a g; without one its tile is 1 x 1 and not looked at
  bool backward = false;
  WavefrontLayout layout;
};

/// Sums for [Czapinski 2014] (4.13): of the squares of r = b - A v over d, of v, and of b over d, where b is f with the
/// values of the frame lifted into it and d the diagonal.
enum WavefrontSum : Index {
  wavefront_residual_squares,
  wavefront_solution_squares,
  wavefront_source_squares,
  wavefront_sums
};

/// The shape of the grid's tile.
[[nodiscard]] inline Index wavefront_rows(const WavefrontArgs& args) {
  const Index planes = args.dimensions > 2 ? args.nodes[0] + 2 : 1;
  return args.dimensions > 1 ? planes * (args.nodes[1] + 2) : 1;
}
[[nodiscard]] inline Index wavefront_cols(const WavefrontArgs& args) { return args.nodes[2] + 2; }

// --- What the tile-size model counts -----------------------------------------------------------------------

/// m_1, m_z, m_y, m_x: 1 along an axis that is not meant.
[[nodiscard]] inline std::array<Index, 4> tile_extents(int dimensions, const WavefrontTile& tile) {
  return {tile.sweeps, dimensions > 2 ? tile.points[0] : 1, dimensions > 1 ? tile.points[1] : 1,
          tile.points[2]};
}

/// Points of a tile, L_TILE.
[[nodiscard]] inline Index points_of_tile(int dimensions, const WavefrontTile& tile) {
  const auto m = tile_extents(dimensions, tile);
  return m[0] * m[1] * m[2] * m[3];
}

/// Intra-tile wavefronts of a full tile: their sums are 0 ... this - 1.
[[nodiscard]] inline Index wavefronts_of_tile(int dimensions, const WavefrontTile& tile) {
  const auto m = tile_extents(dimensions, tile);
  return m[0] + m[1] + m[2] + m[3] - 3;
}

/// Values that a full tile loads from the grid, loads of g, and values that it stores there.
struct TileTraffic {
  Index loads, source_loads, stores;
  [[nodiscard]] Index total() const { return loads + source_loads + stores; }
};
[[nodiscard]] inline TileTraffic traffic_of_tile(int dimensions, const WavefrontTile& tile, bool has_source) {
  // From sweep to sweep the box moves by one node along every axis: `margin` nodes wider, it newly covers a
  // corner.
  const auto covered = [&](Index margin) {
    Index box = 1, kept = 1;
    for (int axis = 3 - dimensions; axis < 3; ++axis) {
      const Index m = tile.points[static_cast<std::size_t>(axis)] + 2 * margin;
      box *= m;
      kept *= m - 1;
    }
    return box + (tile.sweeps - 1) * (box - kept);
  };
  return {covered(1), has_source ? covered(0) : 0, covered(0)};
}

/// How the warps of a block bring a full tile's box and take it back. Its rows go round among them, once for
/// every array that is loaded or stored; an access is one of 32 values or fewer, within a row.
struct BoxAccesses {
  Index rows, accesses;
};
[[nodiscard]] BoxAccesses accesses_of_tile(int dimensions, const WavefrontTile& tile, bool has_source);

namespace cpu {

/// The loop as it is: sweep after sweep, node after node.
template <class T>
void wavefront_sequential(const WavefrontArgs& args, InOut<T> u, In<T> g);

/// One tile on a CPU, of those that are cut along the slowest axis only; the loop as it is within it. The
/// grid with its frame is a row of slices: points, rows or planes. It is cut into blocks of `height` slices,
/// each a tile of the runtime; where the sweeps are backward all of this is mirrored, and the first block may
/// be the one that is smaller. The tile has the slices first - tau ... first + height - 1 - tau in its sweep
/// tau, where `first` is that of block `number`. So it changes blocks number - 1 and number and reads the
/// first slice of number + 1, while there are no more sweeps than `height`. Blocks that do not exist are
/// tiles of any shape, not looked at.
struct WavefrontSlab {
  WavefrontArgs grid;  ///< its sweeps: those of the tile
  Index height;
  Index number;  ///< 0 ... wavefront_blocks: the last one has what is left over of the last block
};
[[nodiscard]] Index wavefront_slices(const WavefrontArgs& args);
[[nodiscard]] inline Index wavefront_blocks(const WavefrontArgs& args, Index height) {
  return (wavefront_slices(args) + height - 1) / height;
}
template <class T>
void wavefront_slab(const WavefrontSlab& slab, InOut<T> before, InOut<T> block, In<T> after, In<T> g_before,
                    In<T> g);

/// Sums of squares over the nodes of a block of slices to `sums` (1 x wavefront_sums). `before` and `after`: the blocks
/// beside it. The grid's sweeps are to be forward.
template <class T>
void wavefront_residual(const WavefrontSlab& slab, In<T> before, In<T> block, In<T> after, In<T> g,
                        Out<sums::SquareSum> sums);

}  // namespace cpu

namespace cuda {

/// Sweeps of a tile, and its points along z and y, at most: a column is told in 32 bits. And the sum of all
/// its extents: a column's turns are told in 16.
constexpr Index most_tile_extent = 1023, most_tile_sum = (1 << 16) - 1;
/// Whether the kernel can do such a tile, if there is room for it.
[[nodiscard]] inline bool is_possible(int dimensions, const WavefrontTile& tile) {
  const auto m = tile_extents(dimensions, tile);
  return *std::min_element(m.begin(), m.end()) >= 1 &&
         *std::max_element(m.begin(), m.end() - 1) <= most_tile_extent && m.back() <= most_tile_sum &&
         m[0] + m[1] + m[2] + m[3] <= most_tile_sum;
}

/// Elements of the scratch tile `meeting`: how often blocks have come to the barrier, and how many are on
/// each multiprocessor.
constexpr Index most_multiprocessors = 1023;
constexpr Index wavefront_scratch = 1 + most_multiprocessors;

/// All sweeps in one cooperative launch. args.layout is meant in full.
/// @throw Error: a layout that the GPU cannot run: too much shared memory, more blocks than can be there at
/// once.
template <class T>
void wavefront(Stream stream, const WavefrontArgs& args, InOut<T> u, In<T> g, Scratch<unsigned> meeting);

/// As cpu::wavefront_residual over the whole grid; the order of summation is fixed.
constexpr Index wavefront_residual_blocks = 512;
constexpr Index wavefront_residual_scratch = wavefront_residual_blocks * wavefront_sums;
template <class T>
void wavefront_residual(Stream stream, const WavefrontArgs& args, In<T> u, In<T> g, Out<sums::SquareSum> sums,
                        Scratch<sums::SquareSum> work);

/// Shared memory of a block, S_TB.
template <class T>
std::size_t wavefront_shared_bytes(int dimensions, const WavefrontTile& tile, bool has_source);

/// B, by the CUDA runtime's reckoning for the kernel that there is, on the current device; 0: cannot run.
template <class T>
int wavefront_blocks_per_sm(int dimensions, int threads, std::size_t shared_bytes);

/// P, of the current device.
int multiprocessors();
/// Most shared memory that a block of the current device can have.
std::size_t most_shared_bytes();

}  // namespace cuda
}  // namespace asterism::wavefront

namespace asterism::wavefront::codelets {

/// Ports: the grid, g, what the kernel's blocks meet by (1 x cuda::wavefront_scratch).
template <class T>
inline const Codelet<WavefrontArgs, InOut<T>, In<T>, Scratch<unsigned>> wavefront{
    typed_name<T>("wavefront"),
    [](const WavefrontArgs& args, InOut<T> u, In<T> g, Scratch<unsigned>) {
      cpu::wavefront_sequential(args, u, g);
    },
    ASTERISM_CUDA_KERNEL(cuda::wavefront<T>)};

/// Of block `number` of the grid: those before and after it, and g's.
template <template <class> class As, class T>
struct SlabPorts {
  As<InOut<T>> before, block;
  As<In<T>> after, g_before, g;
};
template <class T>
inline const Codelet<cpu::WavefrontSlab, SlabPorts<AsPorts, T>> wavefront_slab{
    typed_name<T>("wavefront_slab"), [](const cpu::WavefrontSlab& slab, SlabPorts<AsPorts, T> p) {
      cpu::wavefront_slab<T>(slab, p.before, p.block, p.after, p.g_before, p.g);
    }};

template <template <class> class As, class T>
struct SlabResidualPorts {
  As<In<T>> before, block, after, g;
  As<Out<sums::SquareSum>> sums;  ///< 1 x wavefront_sums
};
template <class T>
inline const Codelet<cpu::WavefrontSlab, SlabResidualPorts<AsPorts, T>> wavefront_residual_slab{
    typed_name<T>("wavefront_residual_slab"),
    [](const cpu::WavefrontSlab& slab, SlabResidualPorts<AsPorts, T> p) {
      cpu::wavefront_residual<T>(slab, p.before, p.block, p.after, p.g, p.sums);
    }};

template <template <class> class As, class T>
struct ResidualPorts {
  As<In<T>> u, g;                     ///< the grid, and g
  As<Out<sums::SquareSum>> sums;      ///< 1 x wavefront_sums
  As<Scratch<sums::SquareSum>> work;  ///< 1 x cuda::wavefront_residual_scratch
};
template <class T>
inline const Codelet<WavefrontArgs, ResidualPorts<AsPorts, T>> wavefront_residual{
    typed_name<T>("wavefront_residual"),
    [](const WavefrontArgs& args, ResidualPorts<AsPorts, T> p) {
      const cpu::WavefrontSlab whole{args, cpu::wavefront_slices(args), 0};
      cpu::wavefront_residual<T>(whole, {}, p.u, {}, p.g, p.sums);
    },
    ASTERISM_CUDA_KERNEL([](Stream stream, const WavefrontArgs& args, ResidualPorts<AsPorts, T> p) {
      cuda::wavefront_residual<T>(stream, args, p.u, p.g, p.sums, p.work);
    })};

}  // namespace asterism::wavefront::codelets
