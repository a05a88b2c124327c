/// \file
/// The order in which wavefront-tiled SOR visits tiles and their points, for the CUDA kernel and for its
/// emulation in tests.
///
/// Tile (T, S) has the points with t = T m_1 + tau and i_axis + t = S_axis m_axis + a_axis, tau from 0 below
/// m_1 and a_axis from 0 below m_axis, that are among the sweeps and nodes there are. Its points at one
/// (tau, a_z, a_y) are a column: of them, the intra-tile wavefront e has the one with a_x = e - tau - a_z -
/// a_y. With the columns in the order of tau + a_z + a_y those of a wavefront follow each other, so that the
/// threads of a block take them from one list.
///
/// A block works on a box: the nodes that the tile touches, axis by axis, and one more on either side. Node
/// i_axis lies at l = i - origin + m_1, where i = origin + a - tau: from 0 to m_1 + m. In wavefront e a
/// column's point lies at a place in the box that is a constant of the column, plus e.
#pragma once

#include <array>
#include <type_traits>

#include "sweeps.hpp"

namespace asterism::wavefront {

/// Calls body with the number of dimensions as a constant.
template <class Body>
auto with_dimensions(int dimensions, Body body) {
  if (dimensions == 1) return body(std::integral_constant<int, 1>{});
  if (dimensions == 2) return body(std::integral_constant<int, 2>{});
  return body(std::integral_constant<int, 3>{});
}

/// Wavefronts, extents and places: 32 bits, because this is the arithmetic between two barriers.
template <int dims>
struct WavefrontPlan {
  int sweeps, sweeps_of_tile;     ///< m_1
  int nodes[dims], points[dims];  ///< m_z, m_y, m_x; slowest first
  int row, plane, box;            ///< of the box: distance of rows, of planes; its elements
  int columns, sums;              ///< of a tile: columns, and different tau + a_z + a_y

  static constexpr int x = dims - 1, y = dims - 2;  ///< axes

  explicit WavefrontPlan(const WavefrontArgs& args)
      : sweeps(static_cast<int>(args.sweeps)), sweeps_of_tile(static_cast<int>(args.layout.tile.sweeps)) {
    columns = sums = sweeps_of_tile;
    for (int axis = 0; axis < dims; ++axis) {
      nodes[axis] = static_cast<int>(args.nodes[static_cast<std::size_t>(3 - dims + axis)]);
      points[axis] = static_cast<int>(args.layout.tile.points[static_cast<std::size_t>(3 - dims + axis)]);
      if (axis == x) break;
      columns *= points[axis];
      sums += points[axis] - 1;
    }
    // Odd rows, and planes of an even number of them: neighbours in the list of columns then lie an odd
    // distance apart, which spreads them over the banks.
    row = dims > 1 ? width(x) | 1 : width(x);
    plane = dims > 2   ? (width(dims > 1 ? y : 0) + 1) / 2 * 2 * row
            : dims > 1 ? width(dims > 1 ? y : 0) * row
                       : row;
    box = dims > 2 ? width(0) * plane : plane;
  }

  /// Nodes of the box along an axis.
  [[nodiscard]] ASTERISM_HOST_DEVICE int width(int axis) const { return points[axis] + sweeps_of_tile + 1; }
  [[nodiscard]] ASTERISM_HOST_DEVICE int rows_of_box() const {
    return dims > 2 ? width(0) * width(y) : dims > 1 ? width(y) : 1;
  }
  [[nodiscard]] ASTERISM_HOST_DEVICE int wavefronts_of_tile() const { return sums + points[x] - 1; }

  // --- Columns ---------------------------------------------------------------------------------------------

  struct Column {
    int tau, z, y;  ///< z, y: a_z, a_y; 0 along an axis that there is not
  };
  [[nodiscard]] ASTERISM_HOST_DEVICE int points_z() const { return dims > 2 ? points[0] : 1; }
  [[nodiscard]] ASTERISM_HOST_DEVICE int points_y() const { return dims > 1 ? points[y < 0 ? 0 : y] : 1; }

  /// Column number k in lexicographic order.
  [[nodiscard]] ASTERISM_HOST_DEVICE Column column(int k) const {
    const int my = points_y(), mz = points_z();
    return {k / (mz * my), k / my % mz, k % my};
  }

  /// Columns whose sum is at most s: those of the simplex less those with a coordinate too large, by
  /// inclusion and exclusion.
  [[nodiscard]] ASTERISM_HOST_DEVICE int columns_up_to(int s) const {
    const int m[] = {sweeps_of_tile, points_z(), points_y()};
    Index count = 0;
    for (unsigned outside = 0; outside < 8; ++outside) {
      Index rest = s, sign = 1;
      for (unsigned axis = 0; axis < 3; ++axis)
        if ((outside >> axis & 1) != 0) {
          rest -= m[axis];
          sign = -sign;
        }
      if (rest >= 0) count += sign * ((rest + 1) * (rest + 2) / 2 * (rest + 3) / 3);
    }
    return static_cast<int>(count);
  }
  /// Pairs (a_z, a_y) whose sum is at most s.
  [[nodiscard]] ASTERISM_HOST_DEVICE int pairs_up_to(int s) const {
    const auto triangle = [](Index k) { return k > 0 ? k * (k + 1) / 2 : 0; };
    const int mz = points_z(), my = points_y();
    return static_cast<int>(triangle(s + 1) - triangle(s + 1 - mz) - triangle(s + 1 - my) +
                            triangle(s + 1 - mz - my));
  }
  /// Place of a column in the list: by its sum, then in lexicographic order.
  [[nodiscard]] ASTERISM_HOST_DEVICE int place(const Column& c) const {
    const int s = c.tau + c.z + c.y, rest = s - c.tau;
    const int least_z = rest - points_y() + 1;  // with this tau: a_y is less than m_y
    return columns_up_to(s - 1) + (pairs_up_to(s) - pairs_up_to(rest)) + c.z - (least_z > 0 ? least_z : 0);
  }

  /// Offset in the box of a column's point of wavefront 0, were there one: see above.
  [[nodiscard]] ASTERISM_HOST_DEVICE int offset(const Column& c) const {
    const int from = sweeps_of_tile - c.tau;  // l = a + this
    int at = from - (c.tau + c.z + c.y);
    if constexpr (dims > 1) at += (from + c.y) * row;
    if constexpr (dims > 2) at += (from + c.z) * plane;
    return at;
  }

  // --- Tiles -----------------------------------------------------------------------------------------------

  [[nodiscard]] ASTERISM_HOST_DEVICE int sweep_tiles() const {
    return (sweeps + sweeps_of_tile - 1) / sweeps_of_tile;
  }
  /// S_axis of the first tile along an axis, and of the last, at T.
  [[nodiscard]] ASTERISM_HOST_DEVICE int first_tile(int axis, int sweep_tile) const {
    return sweep_tile * sweeps_of_tile / points[axis];
  }
  [[nodiscard]] ASTERISM_HOST_DEVICE int last_tile(int axis, int sweep_tile) const {
    const int end = (sweep_tile + 1) * sweeps_of_tile;
    return ((end < sweeps ? end : sweeps) + nodes[axis] - 2) / points[axis];
  }
  /// The least and the largest sum of the coordinates of a tile, at T.
  [[nodiscard]] ASTERISM_HOST_DEVICE int first_wavefront(int sweep_tile) const {
    int sum = sweep_tile;
    for (int axis = 0; axis < dims; ++axis) sum += first_tile(axis, sweep_tile);
    return sum;
  }
  [[nodiscard]] ASTERISM_HOST_DEVICE int last_wavefront(int sweep_tile) const {
    int sum = sweep_tile;
    for (int axis = 0; axis < dims; ++axis) sum += last_tile(axis, sweep_tile);
    return sum;
  }
  [[nodiscard]] ASTERISM_HOST_DEVICE int wavefronts() const { return last_wavefront(sweep_tiles() - 1) + 1; }

  struct Tile {
    int origin[dims];                    ///< i = origin + a - tau
    int sweep_begin, sweep_end;          ///< tau of its points
    int wavefront_begin, wavefront_end;  ///< e of its points
    bool full;
    [[nodiscard]] ASTERISM_HOST_DEVICE bool empty() const { return sweep_begin >= sweep_end; }
  };
  [[nodiscard]] ASTERISM_HOST_DEVICE Tile tile(int sweep_tile, const int (&s)[dims]) const {
    Tile tile;
    const int first = sweep_tile * sweeps_of_tile, left = sweeps - first;
    tile.sweep_begin = 0;
    tile.sweep_end = left < sweeps_of_tile ? left : sweeps_of_tile;
    tile.full = left >= sweeps_of_tile;
    for (int axis = 0; axis < dims; ++axis) {
      const int origin = s[axis] * points[axis] - first;
      tile.origin[axis] = origin;
      if (origin < sweeps_of_tile - 1 || origin + points[axis] > nodes[axis]) tile.full = false;
      const int begin = origin - nodes[axis] + 1,
                end = origin + points[axis];  // else a or i is out of its range
      if (begin > tile.sweep_begin) tile.sweep_begin = begin;
      if (end < tile.sweep_end) tile.sweep_end = end;
    }
    const int last = tile.sweep_end - 1;
    tile.wavefront_begin = tile.sweep_begin;
    tile.wavefront_end = tile.sweep_end;
    for (int axis = 0; axis < dims; ++axis) {
      const int least = tile.sweep_begin - tile.origin[axis],
                most = nodes[axis] - 1 - tile.origin[axis] + last;
      tile.wavefront_begin += least > 0 ? least : 0;
      tile.wavefront_end += most < points[axis] - 1 ? most : points[axis] - 1;
    }
    return tile;
  }

  /// The intra-tile wavefronts in which a column has a point in a tile: first ... first + count - 1. Between
  /// two barriers a column is looked at as 32 bits.
  struct Turns {
    int first, count;
    static constexpr int bits = 16;  // a box in shared memory has fewer elements than that along any axis
    [[nodiscard]] ASTERISM_HOST_DEVICE unsigned packed() const {
      return static_cast<unsigned>(count) << bits | static_cast<unsigned>(first);
    }
  };
  [[nodiscard]] ASTERISM_HOST_DEVICE static bool has_turn(unsigned packed, int e) {
    constexpr unsigned mask = (1u << Turns::bits) - 1;
    return static_cast<unsigned>(e) - (packed & mask) < packed >> Turns::bits;
  }
  [[nodiscard]] ASTERISM_HOST_DEVICE Turns turns(const Tile& tile, const Column& c) const {
    const auto inside = [&](int axis, int a) {
      return static_cast<unsigned>(tile.origin[axis] + a - c.tau) < static_cast<unsigned>(nodes[axis]);
    };
    bool is = c.tau >= tile.sweep_begin && c.tau < tile.sweep_end;
    if constexpr (dims > 1) is = is && inside(y, c.y);
    if constexpr (dims > 2) is = is && inside(0, c.z);
    int begin = c.tau - tile.origin[x], end = begin + nodes[x];  // a_x
    if (begin < 0) begin = 0;
    if (end > points[x]) end = points[x];
    return is && begin < end ? Turns{c.tau + c.z + c.y + begin, end - begin} : Turns{0, 0};
  }

  /// The nodes of a row of the box, l_x = begin ... end - 1, that the tile changes (margin 0), or that it
  /// changes or reads (margin 1; along with the few between them).
  struct Span {
    int begin, end;
  };
  [[nodiscard]] ASTERISM_HOST_DEVICE Span span(const Tile& tile, int lz, int ly, int margin) const {
    int begin = tile.sweep_begin, last = tile.sweep_end - 1;  // tau at which the row is in the tile
    const auto restrict_to = [&](int axis, int l) {
      const int a = l - sweeps_of_tile, i = tile.origin[axis] + a;  // of tau = 0
      if (begin < -margin - a) begin = -margin - a;
      if (last > points[axis] - 1 + margin - a) last = points[axis] - 1 + margin - a;
      if (i < -margin || i >= nodes[axis] + margin) last = begin - 1;
    };
    if constexpr (dims > 1) restrict_to(y, ly);
    if constexpr (dims > 2) restrict_to(0, lz);
    if (begin > last) return {0, 0};
    const int from = sweeps_of_tile - tile.origin[x];  // l of node 0
    int low = sweeps_of_tile - margin - last, high = sweeps_of_tile + points[x] + margin - begin;
    if (low < from - margin) low = from - margin;
    if (high > from + nodes[x] + margin) high = from + nodes[x] + margin;
    return {low, low < high ? high : low};
  }

  // --- Inter-tile wavefronts -------------------------------------------------------------------------------

  /// The T that wavefronts have tiles at. Goes from a wavefront to the next one.
  struct SweepTiles {
    int begin = 0, end = 0;
    ASTERISM_HOST_DEVICE void advance(const WavefrontPlan& plan, int wavefront) {
      while (end < plan.sweep_tiles() && plan.first_wavefront(end) <= wavefront) ++end;
      while (begin < end && plan.last_wavefront(begin) < wavefront) ++begin;
    }
  };

  /// Tiles of a wavefront with the same T and, in three dimensions, the same S_z: S_y = first ... first +
  /// count - 1.
  struct Strand {
    int sweep_tile, z, first, count;
  };
  [[nodiscard]] ASTERISM_HOST_DEVICE int strands(const SweepTiles& at) const {
    if (at.begin >= at.end) return 0;
    const int deep = dims > 2 ? last_tile(0, at.end - 1) - first_tile(0, at.begin) + 1 : 1;
    return (at.end - at.begin) * deep;
  }
  /// The tiles of the box of S between two corners.
  struct Range {
    int first[dims], last[dims];
  };
  [[nodiscard]] ASTERISM_HOST_DEVICE Range all_tiles(int sweep_tile) const {
    Range range;
    for (int axis = 0; axis < dims; ++axis) {
      range.first[axis] = first_tile(axis, sweep_tile);
      range.last[axis] = last_tile(axis, sweep_tile);
    }
    return range;
  }
  [[nodiscard]] ASTERISM_HOST_DEVICE Range full_tiles(int sweep_tile) const {
    Range range;
    const int first = sweep_tile * sweeps_of_tile, end = first + sweeps_of_tile;
    for (int axis = 0; axis < dims; ++axis) {
      range.first[axis] = (end - 1 + points[axis] - 1) / points[axis];
      range.last[axis] = end > sweeps ? -1 : (nodes[axis] + first) / points[axis] - 1;
    }
    return range;
  }
  /// Strand number k of a wavefront, of the tiles that `range_at(T)` tells.
  template <class RangeAt>
  [[nodiscard]] ASTERISM_HOST_DEVICE Strand strand(const SweepTiles& at, int wavefront, int k,
                                                   const RangeAt& range_at) const {
    Strand strand{at.begin + k, 0, 0, 1};
    bool is = true;
    if constexpr (dims > 2) {
      const int front = first_tile(0, at.begin), deep = last_tile(0, at.end - 1) - front + 1;
      strand.sweep_tile = at.begin + k / deep;
      strand.z = front + k % deep;
    }
    const Range range = range_at(strand.sweep_tile);
    if constexpr (dims > 2) is = strand.z >= range.first[0] && strand.z <= range.last[0];
    const int rest = wavefront - strand.sweep_tile - strand.z;  // S_y + S_x
    if constexpr (dims > 1) {
      int last = rest - range.first[x];
      strand.first = rest - range.last[x];
      if (strand.first < range.first[y]) strand.first = range.first[y];
      if (last > range.last[y]) last = range.last[y];
      strand.count = last - strand.first + 1;
      is = is && strand.count > 0;
    } else {
      is = rest >= range.first[x] && rest <= range.last[x];
    }
    if (!is) strand.count = 0;
    return strand;
  }
  [[nodiscard]] ASTERISM_HOST_DEVICE Strand strand(const SweepTiles& at, int wavefront, int k) const {
    return strand(at, wavefront, k, [this](int sweep_tile) { return all_tiles(sweep_tile); });
  }
  /// Tile number k of a strand.
  [[nodiscard]] ASTERISM_HOST_DEVICE Tile tile(int wavefront, const Strand& strand, int k) const {
    int s[dims];
    int rest = wavefront - strand.sweep_tile;
    if constexpr (dims > 2) rest -= s[0] = strand.z;
    if constexpr (dims > 1) rest -= s[y] = strand.first + k;
    s[x] = rest;
    return tile(strand.sweep_tile, s);
  }
};

// --- The arithmetic ----------------------------------------------------------------------------------------

/// (W1) with the factors of its values.
template <class T>
struct WavefrontWeights {
  T old, z, y, x, source;  ///< 1 - omega, omega a_axis, omega
};
template <class T>
WavefrontWeights<T> wavefront_weights(const WavefrontArgs& args) {
  const auto weight = [&](std::size_t axis) { return static_cast<T>(args.omega * args.along[axis]); };
  return {static_cast<T>(1 - args.omega), weight(0), weight(1), weight(2), static_cast<T>(args.omega)};
}

/// a b + c: rounded once wherever the processor can do that at full speed, and then the same everywhere.
template <class T>
ASTERISM_HOST_DEVICE inline T multiply_add(T a, T b, T c) {
#if defined(__CUDA_ARCH__) || defined(__FMA__)
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}

/// (W1) but for the term of the node before this one along x, which the node before makes wait.
template <int dims, class T>
ASTERISM_HOST_DEVICE inline T relaxed_but_before(const WavefrontWeights<T>& w, T old, T z_sum, T y_sum,
                                                 T after, T g) {
  T v = multiply_add(w.source, g, w.old * old);
  if constexpr (dims > 2) v = multiply_add(w.z, z_sum, v);
  if constexpr (dims > 1) v = multiply_add(w.y, y_sum, v);
  return multiply_add(w.x, after, v);
}

/// (W1) at a node of an array; plane, row, point: the distances of neighbours, negative in a backward sweep.
template <int dims, class T, class Distance>
ASTERISM_HOST_DEVICE inline T relaxed_at(const WavefrontWeights<T>& w, const T* v, Distance plane,
                                         Distance row, Distance point, T g) {
  T z_sum = 0, y_sum = 0;
  if constexpr (dims > 2) z_sum = v[-plane] + v[plane];
  if constexpr (dims > 1) y_sum = v[-row] + v[row];
  return multiply_add(w.x, v[-point], relaxed_but_before<dims>(w, v[0], z_sum, y_sum, v[point], g));
}

/// Where a framed grid has its nodes as its sweeps see them: node (z, y, x), each from -1 to n, at origin + z
/// plane + y row + x point.
struct SweptGrid {
  Index origin, plane, row, point;
};
inline SweptGrid swept_grid(const WavefrontArgs& args, Index ld) {
  const int dims = args.dimensions;
  const Index row = dims > 1 ? ld : 0, plane = dims > 2 ? (args.nodes[1] + 2) * ld : 0;
  if (!args.backward) return {plane + row + 1, plane, row, 1};
  const Index z = dims > 2 ? args.nodes[0] : 0, y = dims > 1 ? args.nodes[1] : 0;
  return {z * plane + y * row + args.nodes[2], -plane, -row, -1};
}

}  // namespace asterism::wavefront
