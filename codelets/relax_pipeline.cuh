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
/// Here is what both kinds of relaxation share, and how a task is cut into passes; relax_jacobi.cuh and
/// relax_colours.cuh have the walks.
#pragma once

#include <algorithm>
#include <climits>
#include <cstdint>
#include <limits>
#include <vector>

#include "../runtime/cuda.hpp"
#include "relax_stripe.cuh"

namespace asterism::kernels::cuda {

constexpr int lanes = 32;
constexpr unsigned all_lanes = 0xffffffffU;

/// A pass of several steps over a stripe, from one tile to the other.
template <class T>
struct Pass {
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
  bool at_frame;  ///< whether the frame comes in

  __device__ Part(const Pass<T>& pass, int number) {
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
    at_frame = first || last || begin - S::levels < pass.moves_from || end + S::levels > pass.moves_end;
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

/// Warps of a kernel that a GPU runs at once.
template <class S, class Kernel>
int warps_at_once(Kernel kernel) {
  int device = 0, processors = 0, blocks = 0;
  asterism::cuda::check(cudaGetDevice(&device), "cudaGetDevice");
  asterism::cuda::check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
                        "cudaDeviceGetAttribute");
  asterism::cuda::check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, S::threads, 0),
                        "occupancy");
  return std::max(1, processors * blocks * S::warps);
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
template <class S, auto kernel, class T>
void launch_pass(Stream stream, Pass<T> pass) {
  static const int warps = warps_at_once<S>(kernel);
  pass.strips = S::strips(pass.numbers);
  pass.chunk_rows = chunk_rows(pass.end - pass.begin, pass.strips, warps, 2 * S::levels, S::tallest);
  const Index parts_of_pass = Index{pass.strips} * parts(pass.end - pass.begin, pass.chunk_rows);
  kernel<<<static_cast<unsigned>(parts(parts_of_pass, S::warps)), S::threads, 0,
           asterism::cuda::native(stream)>>>(pass);
  asterism::cuda::check_launch("relaxation pass");
}

/// Whether rows can be loaded 16 bytes at a time.
template <class Port>
bool aligned(const Port& tile) {
  constexpr std::size_t quad = 16, size = sizeof(typename Port::Element);
  return reinterpret_cast<std::uintptr_t>(tile.data) % quad == 0 &&
         static_cast<std::size_t>(tile.ld) * size % quad == 0;
}

/// A pass but for the rows to write and where it lies.
/// @param alone whether the rows beyond the stripe's own are to stay as they are, like the frame
template <class T>
Pass<T> pass_over(const Stripe& stripe, const FivePoint<T>& a, T omega, In<T> g, bool alone) {
  const bool first = stripe.first || alone, last = stripe.last || alone;
  const Index begin = stripe.halo, end = stripe.halo + stripe.rows;
  const bool natural = stripe.arrangement == Arrangement::natural;
  Pass<T> pass{};
  pass.source = g.data;
  pass.source_ld = static_cast<int>(g.ld);
  pass.read_begin = static_cast<int>(first ? begin - 1 : 0);
  pass.read_end = static_cast<int>(last ? end + 1 : stripe.tile_rows());
  pass.moves_from = first ? static_cast<int>(begin) : INT_MIN;
  pass.moves_end = last ? static_cast<int>(end) : INT_MAX;
  pass.columns = static_cast<int>(natural ? stripe.tile_cols() : stripe.half());
  pass.numbers = static_cast<int>(natural ? stripe.nodes + 2 : (stripe.nodes + 3) / 2);
  pass.nodes = static_cast<int>(stripe.nodes);
  pass.parity = static_cast<int>(stripe.parity(0));
  pass.a = a;
  pass.omega = omega;
  return pass;
}

template <class T>
void between(Pass<T>& pass, const InOut<T>& from, const InOut<T>& to) {
  pass.from = from.data;
  pass.to = to.data;
  pass.from_ld = static_cast<int>(from.ld);
  pass.to_ld = static_cast<int>(to.ld);
}

}  // namespace asterism::kernels::cuda
