/// \file
/// Several sweeps over a stripe in one pass through memory.
///
/// A warp walks down a chunk of rows of a strip of columns; every lane holds `width` neighbouring columns.
/// Level t, the grid after t steps of relaxation, follows t rows behind the row that is being loaded, because
/// a step at row r needs rows r-1, r and r+1 of the level before:
///
///     row y of level 0 arrives;
///     for t = 1 ... levels: level t at row y - t from level t - 1 at rows y - t - 1, y - t, y - t + 1.
///
/// The first two of these have been there since the rows before: two rows of every level live in registers,
/// in slots that the row's number chooses, known at compile time since the loop over rows is unrolled. The
/// neighbours along a row are in the same lane, or one lane further (a shuffle); only `above + below` waits
/// for the level before. There are neither barriers nor shared memory.
///
/// What lies `levels` columns from the ends of a strip, and as many rows from the ends of a chunk, is wrong
/// at the last level. So strips and chunks overlap, and what is wrong is not written. Rows are loaded `ahead`
/// of their use.
///
/// Numbers of rows and columns are ints: a tile has fewer than 2^32 elements, three rows and 16 columns at
/// least.
///
/// Here is what both kinds of relaxation share, and how a task is cut into passes; jacobi.cuh and
/// colours.cuh have the walks.
#pragma once

#include <algorithm>
#include <climits>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "../../runtime/cuda.hpp"
#include "../common/chained_launch.cuh"
#include "../common/occupancy.cuh"
#include "stripe.cuh"

namespace asterism::relaxation::cuda {

using asterism::cuda::launch_chained;

constexpr int lanes = 32;
constexpr unsigned all_lanes = 0xffffffffU;

/// A pass of several steps over a stripe, from one tile to the other.
template <class T>
struct Pass {
  using Element = T;
  static constexpr bool exchanges = false;

  const T* from;
  T* to;
  const T* source;
  int from_ld, to_ld, source_ld;
  int begin, end;             ///< rows to be written
  int read_begin, read_end;   ///< rows that may be read
  int moves_from, moves_end;  ///< rows that are not the frame's
  int columns;  ///< of a row's part that lanes are spread over: a tile's row, or a colour's half
  int numbers;  ///< of these, how many hold something
  int nodes;
  int parity;  ///< Stripe::parity(0)
  int strips, chunk_rows;
  FivePoint<T> a;
  T omega;
};

/// Rows [begin, end) of a stripe where they lie outside its tile; by default none.
template <class T>
struct RowsApart {
  T* data = nullptr;
  int ld = 0;
  int begin = INT_MAX, end = INT_MIN;
  __device__ bool have(int r) const { return begin <= r && r < end; }
  __device__ T* row(int r) const { return data + static_cast<Index>(r - begin) * ld; }
};

/// A pass that reads ghost rows where the neighbours left them, and writes what they get to see of the result
/// on the way, where kernels before and after it would cost too much.
template <class T>
struct ExchangingPass : Pass<T> {
  static constexpr bool exchanges = true;

  explicit ExchangingPass(const Pass<T>& pass) : Pass<T>(pass) {}

  RowsApart<const T> above, below;  ///< are read from there
  RowsApart<T> top, bottom;         ///< are written there too
};

/// `width` neighbouring columns.
template <class T, int width>
struct Columns {
  T v[width];
};

/// What one load or store of a lane moves.
template <class T>
struct alignas(16) Quad {
  static constexpr int count = 16 / static_cast<int>(sizeof(T));
  T v[count];
};

template <int width, class T>
__device__ inline Columns<T, width> load(const T* at) {
  Columns<T, width> columns;
#pragma unroll
  for (int q = 0; q < width; q += Quad<T>::count) {
    const Quad<T> quad = *reinterpret_cast<const Quad<T>*>(at + q);
#pragma unroll
    for (int e = 0; e < Quad<T>::count; ++e) columns.v[q + e] = quad.v[e];
  }
  return columns;
}

/// @tparam streams whether caches had better keep other things
template <bool streams, class T, int width>
__device__ inline void store(T* at, const Columns<T, width>& columns) {
#pragma unroll
  for (int q = 0; q < width; q += Quad<T>::count) {
    Quad<T> quad;
#pragma unroll
    for (int e = 0; e < Quad<T>::count; ++e) quad.v[e] = columns.v[q + e];
    if constexpr (streams)
      __stcs(reinterpret_cast<int4*>(at + q), *reinterpret_cast<const int4*>(&quad));
    else
      *reinterpret_cast<Quad<T>*>(at + q) = quad;
  }
}

/// How a pass is laid out.
struct Layout {
  int levels;
  int lost;   ///< columns at either end of a strip that are wrong at the last level
  int width;  ///< columns of a lane
  int ahead;  ///< rows, a power of 2

  int blocks;     ///< on a multiprocessor at once, at least
  int warps = 4;  ///< of a block

  /// Rows of a chunk, at most. Rows around a chunk are read and computed twice, which is for tall ones; yet
  /// where memory is the bound short ones were often quicker. Presumably the strips of a chunk, which begin
  /// together, drift apart, so that what two of them share comes from memory twice.
  int tallest = 128;

  bool streams = false;  ///< whether what is stored is the first that caches give up
};

template <Layout layout>
struct Shape {
  static constexpr int levels = layout.levels, width = layout.width, ahead = layout.ahead;
  static constexpr int warps = layout.warps, threads = warps * lanes, blocks = layout.blocks;
  static constexpr int tallest = layout.tallest;
  static constexpr bool streams = layout.streams;
  static constexpr int overlap = (layout.lost + width - 1) / width * width;  ///< at either end of a strip
  static constexpr int loaded = lanes * width;                               ///< columns of a strip
  static constexpr int advance = loaded - 2 * overlap;                       ///< from one strip to the next

  /// @param numbers columns that hold something
  static int strips(Index numbers) {
    const Index inner = numbers - 2 * overlap;
    return inner <= advance ? 1 : static_cast<int>((inner + advance - 1) / advance);
  }
};

__host__ __device__ constexpr int power_of_two(int least) {
  int power = 1;
  while (power < least) power *= 2;
  return power;
}

/// The part of a pass that a warp has.
template <class T, class S>
struct Part {
  int strip, begin, end;  ///< rows to be written
  int read_end;      ///< of the rows that are needed; what is fetched ahead of them is the last one again
  int lane, column;  ///< the lane's first
  bool writes;
  bool at_rim;  ///< whether the frame or rows apart come in

  template <class P>
  __device__ Part(const P& pass, int number) {
    strip = number % pass.strips;
    begin = pass.begin + number / pass.strips * pass.chunk_rows;
    end = min(begin + pass.chunk_rows, pass.end);
    read_end = min(end + S::levels, pass.read_end);
    lane = static_cast<int>(threadIdx.x) % lanes;
    const bool first = strip == 0, last = strip == pass.strips - 1;
    const int own = lane * S::width;
    column = strip * S::advance + own;
    writes = (first || own >= S::overlap) && (last || own < S::loaded - S::overlap) && column < pass.columns;
    column = min(column, pass.columns - S::width);
    at_rim = first || last || begin - S::levels < pass.moves_from || end + S::levels > pass.moves_end;
    if constexpr (P::exchanges)
      at_rim = at_rim || begin - S::levels < pass.above.end || end + S::levels > pass.below.begin ||
               begin < pass.top.end || end > pass.bottom.begin;
  }
};

/// Rows of an array as a lane sees them.
template <class T, class S>
struct Reader {
  const T* column;
  int ld, begin, end;
  __device__ const T* at(int r) const {
    return column + static_cast<Index>(max(min(r, end - 1), begin)) * ld;
  }
  __device__ Columns<T, S::width> row(int r, int further = 0) const {
    return load<S::width>(at(r) + further);
  }
};

/// Rows of the grid as a lane sees them where some lie apart.
template <class T, class S>
struct RimReader {
  Reader<T, S> tile;
  RowsApart<const T> above, below;
  int column;
  __device__ const T* at(int r) const {
    const int readable = max(min(r, tile.end - 1), tile.begin);
    for (const RowsApart<const T>* apart : {&above, &below})
      if (apart->have(readable)) return apart->row(readable) + column;
    return tile.at(r);
  }
  __device__ Columns<T, S::width> row(int r) const { return load<S::width>(at(r)); }
};

__device__ inline int warp_number() {
  return static_cast<int>(blockIdx.x) * (static_cast<int>(blockDim.x) / lanes) +
         static_cast<int>(threadIdx.x) / lanes;
}

// ---- The passes of a task --------------------------------------------------------------------------------

/// The numbers of sweeps, powers of 2 up to `deepest`, of the passes that make up `sweeps`: so many passes,
/// an even or odd number, that the result lies where it should.
inline std::vector<int> depths_of(Index sweeps, int deepest) {
  std::vector<int> depths;
  Index left = sweeps;
  for (int depth = deepest; depth >= 1; depth /= 2)
    for (; left >= depth; left -= depth) depths.push_back(depth);
  if ((static_cast<Index>(depths.size()) - sweeps) % 2 != 0) {
    while (depths.back() == 1) depths.pop_back();  // put back below
    const int halved = depths.back() / 2;
    depths.back() = halved;
    depths.push_back(halved);
    Index sum = 0;
    for (const int depth : depths) sum += depth;
    for (; sum < sweeps; ++sum) depths.push_back(1);
  }
  return depths;
}

/// Rows of a chunk, so that the rounds of chunks that the GPU's warps need take the least time. A chunk of
/// `overlap` more rows than it writes takes as long as so many rows.
inline int chunk_rows(Index rows, Index strips, int warps, int overlap, Index most) {
  Index best = 1, least_time = std::numeric_limits<Index>::max();
  const Index fewest = parts(rows, most);
  const Index end = std::min(rows, std::max(4 * fewest, 8 * parts(warps, strips)));
  for (Index chunks = fewest; chunks <= end; ++chunks) {
    const Index time = parts(strips * chunks, warps) * (parts(rows, chunks) + overlap);
    if (time < least_time) {
      least_time = time;
      best = chunks;
    }
  }
  return static_cast<int>(parts(rows, best));
}

/// @tparam kernel  of the shape S
template <class S, auto kernel, class P>
void launch_pass(Stream stream, P pass) {
  static const int warps = asterism::cuda::blocks_at_once(kernel, S::threads) * S::warps;
  pass.strips = S::strips(pass.numbers);
  pass.chunk_rows = chunk_rows(pass.end - pass.begin, pass.strips, warps, 2 * S::levels, S::tallest);
  const Index parts_of_pass = Index{pass.strips} * parts(pass.end - pass.begin, pass.chunk_rows);
  launch_chained<kernel>("relaxation pass", stream, static_cast<unsigned>(parts(parts_of_pass, S::warps)),
                         S::threads, pass);
}

/// Whether rows can be loaded 16 bytes at a time.
template <class Port>
bool aligned(const Port& tile) {
  constexpr std::size_t quad = 16, size = sizeof(typename Port::Element);
  return reinterpret_cast<std::uintptr_t>(tile.data) % quad == 0 &&
         static_cast<std::size_t>(tile.ld) * size % quad == 0;
}

/// A pass but for the rows to write and where it lies.
template <class T>
Pass<T> pass_over(const Stripe& stripe, const FivePoint<T>& a, T omega, In<T> g) {
  const Index begin = stripe.halo, end = stripe.halo + stripe.rows;
  const bool natural = stripe.arrangement == Arrangement::natural;
  Pass<T> pass{};
  pass.source = g.data;
  pass.source_ld = static_cast<int>(g.ld);
  pass.read_begin = static_cast<int>(stripe.first ? begin - 1 : 0);
  pass.read_end = static_cast<int>(stripe.last ? end + 1 : stripe.tile_rows());
  pass.moves_from = stripe.first ? static_cast<int>(begin) : INT_MIN;
  pass.moves_end = stripe.last ? static_cast<int>(end) : INT_MAX;
  pass.columns = static_cast<int>(natural ? stripe.tile_cols() : stripe.half());
  pass.numbers = static_cast<int>(natural ? stripe.nodes + 2 : (stripe.nodes + 3) / 2);
  pass.nodes = static_cast<int>(stripe.nodes);
  pass.parity = static_cast<int>(stripe.parity(0));
  pass.a = a;
  pass.omega = omega;
  return pass;
}

template <class T>
bool aligned(const Stripe& stripe, const Exchange<T>& with) {
  return (stripe.first || aligned(with.above)) && (stripe.last || aligned(with.below)) && aligned(with.top) &&
         aligned(with.bottom);
}

/// As many rows as a tile has, from a stripe's row `begin` on.
template <class T, class Port>
RowsApart<T> rows_apart(const Port& tile, Index begin) {
  return {tile.data, static_cast<int>(tile.ld), static_cast<int>(begin), static_cast<int>(begin + tile.rows)};
}

/// The only pass of a task, and the exchange. All that `with` has is aligned.
/// @param pass pass_over(stripe, ...)
template <class T>
ExchangingPass<T> exchanging(const Pass<T>& pass, const Stripe& stripe, const Exchange<T>& with) {
  ExchangingPass<T> only(pass);
  if (!stripe.first) only.above = rows_apart<const T>(with.above, 0);
  if (!stripe.last) only.below = rows_apart<const T>(with.below, stripe.halo + stripe.rows);
  if (with.top.data) only.top = rows_apart<T>(with.top, stripe.halo);
  if (with.bottom.data) only.bottom = rows_apart<T>(with.bottom, stripe.rows);
  return only;
}

/// Makes it one that reads `from` and writes rows [begin, end) of `to`.
template <class T>
void between(Pass<T>& pass, const InOut<T>& from, const InOut<T>& to, Index begin, Index end) {
  pass.from = from.data;
  pass.to = to.data;
  pass.from_ld = static_cast<int>(from.ld);
  pass.to_ld = static_cast<int>(to.ld);
  pass.begin = static_cast<int>(begin);
  pass.end = static_cast<int>(end);
}

/// So many sweeps over a stripe, back and forth between its tiles, in passes of up to `deepest` of them, and
/// the exchange before and after.
/// @param pass    pass_over(stripe, ...)
/// @param reach   ghost rows that a sweep consumes
/// @param launch  is called with the sweeps of each pass, and the pass
template <class T, class Launch>
void sweep_in_passes(Stream stream, const Stripe& stripe, Pass<T> pass, Index sweeps, int deepest,
                     Index reach, InOut<T> u, InOut<T> other, const Exchange<T>& with, const Launch& launch) {
  fill_ghosts<T>(stream, stripe, {u, with.above, with.below});
  Index consumed = 0;
  for (const int depth : depths_of(sweeps, deepest)) {
    consumed += reach * depth;
    between(pass, u, other, stripe.begin(consumed), stripe.end(consumed));
    launch(depth, pass);
    std::swap(u, other);
  }
  copy_edges<T>(stream, stripe, {reading(u), with.top, with.bottom});
}

}  // namespace asterism::relaxation::cuda
