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
/// By colours, on the separated arrangement, a level is half a sweep: the reds, or the blacks, with the new
/// reds. Columns are then those of a colour's half, and a strip loses one of them a sweep.
#pragma once

#include "relax.hpp"

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

// The figures are those of an H200, whose copies reach 4.30 TB/s, on 16384^2 nodes unless they say otherwise.

/// One sweep is bound by memory. Without a source 4 rows of 16 bytes a lane on their way, strips that end
/// where the next one begins, chunks of 16 rows and streaming stores reach 90.8 % (double) and 89.7 % (float)
/// of a copy's bandwidth; 2 rows of 32 bytes reached 83 %, chunks of 64 rows 88.2 % and 84.5 %. With a source
/// 4 rows of both arrays in overlapping strips reach 93.9 % and 91.2 %.
///
/// More sweeps take columns of 16 bytes, and as many warps as registers allow without spilling. 8 sweeps
/// reach 1110 (double) and 2450 (float) 10^9 nodes a second, 4 with a source 550 and 1090. For doubles chunks
/// of 192 rows instead of 128 raised 1040 to 1100, and blocks of 2 warps instead of 4 that to 1110; on 2048^2
/// nodes they raised 702 to 708. There 8 sweeps reach 710 and 1100: to occupy the GPU chunks may have no more
/// than 42 and 19 rows, for which 58 and 35 are computed.
///
/// @param in_cache whether the grid fits in the L2 cache. What is stored is then wanted by the next pass, so
///                 stores do not stream; the height of these chunks has not been measured.
template <class T>
constexpr Layout jacobi_layout(int sweeps, bool has_source, bool in_cache) {
  constexpr int quad = Quad<T>::count;
  constexpr bool wide = sizeof(T) == 8;
  Layout layout{.levels = sweeps, .lost = sweeps, .width = quad, .ahead = 4, .blocks = has_source ? 4 : 5};
  if (sweeps <= 2) layout.tallest = 64;
  if (sweeps == 1 && !has_source) {
    layout.lost = 0;
    layout.streams = !in_cache;
    if (!in_cache) layout.tallest = 16;
  } else if (sweeps == 4) {
    layout.ahead = 2;
    layout.blocks = has_source ? 3 : 5;
  } else if (sweeps == 8) {
    layout.ahead = wide ? 1 : 2;
    layout.warps = wide ? 2 : 4;
    layout.blocks = 16 / layout.warps;
    layout.tallest = wide ? 192 : 128;
  }
  return layout;
}

/// One sweep with a source: 32 bytes a lane in chunks of 96 rows reach 89.9 % (double) and 88.5 % (float) of
/// a copy's bandwidth, 16 bytes in 64 rows 86.6 % and 83.0 %. Streaming the source and the result cost 3 %;
/// a second row ahead, which leaves 8 warps instead of 12, changed nothing.
///
/// Two sweeps with a source reach 303 and 575 10^9 nodes a second, four without one 686 and 1360; on 2048^2
/// nodes 211, 407, 414 and 663. Two without a source reach 416 and 805 with one row ahead and 16 warps, with
/// two rows and 8 warps 386 and 751; on 2048^2 nodes 289 and 651 against 260 and 494.
template <class T>
constexpr Layout colour_layout(int sweeps, bool has_source) {
  constexpr int quad = Quad<T>::count;
  Layout layout{.levels = 2 * sweeps, .lost = sweeps, .width = quad, .ahead = 1, .blocks = 2};
  if (sweeps == 1 && has_source) {
    layout.width = 2 * quad;
    layout.blocks = 3;
    layout.tallest = 96;
  } else if (sweeps == 1) {
    layout.ahead = 2;
    layout.blocks = 4;
    layout.tallest = 64;
  } else if (sweeps == 2) {
    layout.blocks = has_source ? 3 : 4;
    layout.tallest = has_source ? 128 : 96;
  }
  return layout;
}

template <class T, int sweeps, bool has_source, bool in_cache = true>
using JacobiShape = Shape<jacobi_layout<T>(sweeps, has_source, in_cache)>;
template <class T, int sweeps, bool has_source>
using ColourShape = Shape<colour_layout<T>(sweeps, has_source)>;

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

/// Jacobi's sweeps.
template <class S, bool has_source, bool at_frame, class T>
__device__ void march_jacobi(const Pass<T>& pass, const Part<T, S>& part) {
  constexpr int levels = S::levels, width = S::width, ahead = S::ahead;
  constexpr int ring = has_source ? power_of_two(levels + ahead) : 1;
  constexpr int turn = ring > ahead ? (ring > 2 ? ring : 2) : (ahead > 2 ? ahead : 2);
  using Row = Columns<T, width>;

  const Reader<T, S> from{pass.from + part.column, pass.from_ld, pass.read_begin, part.read_end};
  const Reader<T, S> source{pass.source + part.column, pass.source_ld, pass.read_begin, part.read_end};
  T* const to = pass.to + part.column;
  bool moves[width];
#pragma unroll
  for (int e = 0; e < width; ++e) moves[e] = part.column + e >= 1 && part.column + e <= pass.nodes;

  // What lies beyond the strip, for the first lane and the last one.
  constexpr bool edges = S::overlap == 0;
  static_assert(!edges || levels == 1);
  [[maybe_unused]] const bool first_lane = part.lane == 0, last_lane = part.lane == lanes - 1;
  [[maybe_unused]] const int beyond =
      first_lane ? (part.column == 0 ? 0 : -1) : (part.column + width < pass.columns ? width : 0);
  [[maybe_unused]] T edge = 0, edge_coming[ahead];
  const auto edge_of = [&](int r) { return first_lane || last_lane ? from.at(r)[beyond] : T{0}; };

  Row rows[levels][2] = {}, coming[ahead], g[ring] = {};
  int y = part.begin - levels;
#pragma unroll
  for (int i = 0; i < ahead; ++i) {
    coming[i] = from.row(y + i);
    if constexpr (edges) edge_coming[i] = edge_of(y + i);
    if constexpr (has_source) g[(i + ring - 1) % ring] = source.row(y + i - 1);
  }
  for (; y < part.end + levels; y += turn) {
#pragma unroll
    for (int i = 0; i < turn; ++i) {
      Row below = coming[i % ahead];
      coming[i % ahead] = from.row(y + i + ahead);
      if constexpr (has_source) g[(i + ring - 1 + ahead) % ring] = source.row(y + i - 1 + ahead);
#pragma unroll
      for (int t = 1; t <= levels; ++t) {
        const Row above = rows[t - 1][i % 2], centre = rows[t - 1][(i + 1) % 2];
        rows[t - 1][i % 2] = below;
        T west = __shfl_up_sync(all_lanes, centre.v[width - 1], 1);
        T east = __shfl_down_sync(all_lanes, centre.v[0], 1);
        if constexpr (edges) {
          west = first_lane ? edge : west;
          east = last_lane ? edge : east;
          edge = edge_coming[i % ahead];
          edge_coming[i % ahead] = edge_of(y + i + ahead);
        }
        [[maybe_unused]] const bool row_moves = y + i - t >= pass.moves_from && y + i - t < pass.moves_end;
        Row next;
#pragma unroll
        for (int e = 0; e < width; ++e) {
          const T left = e == 0 ? west : centre.v[e == 0 ? 0 : e - 1];
          const T right = e == width - 1 ? east : centre.v[e == width - 1 ? 0 : e + 1];
          next.v[e] = balance(pass.a, above.v[e], below.v[e], left, right);
          if constexpr (has_source) next.v[e] = next.v[e] + g[(i + 2 * ring - t) % ring].v[e];
          if constexpr (at_frame)
            if (!row_moves || !moves[e]) next.v[e] = centre.v[e];
        }
        below = next;
      }
      const int r = y + i - levels;
      if (r >= part.begin && r < part.end && part.writes)
        store<S::streams>(to + static_cast<Index>(r) * pass.to_ld, below);
    }
  }
}

/// Sweeps of red-black SOR over a separated stripe. Level h is that of the reds where h is odd, else that of
/// the blacks; a step also needs the level before the last at its own row.
///
/// The walk begins with a row of parity 0. Then at step i of a turn every level is at a row where its nodes
/// have the numbers 2 k + shift, with shift = (i + 1) mod 2, between the other colour's in columns k - 1 +
/// shift and k + shift.
template <class S, bool has_source, bool at_frame, class T>
__device__ void march_colours(const Pass<T>& pass, const Part<T, S>& part) {
  constexpr int levels = S::levels, width = S::width, ahead = S::ahead;
  constexpr int ring = has_source ? power_of_two(levels - 1 + ahead) : 1;
  constexpr int turn = ring > ahead ? (ring > 2 ? ring : 2) : (ahead > 2 ? ahead : 2);
  using Row = Columns<T, width>;

  const int black = pass.columns;  // columns on from red
  const Reader<T, S> from{pass.from + part.column, pass.from_ld, pass.read_begin, part.read_end};
  const Reader<T, S> source{pass.source + part.column, pass.source_ld, pass.read_begin, part.read_end};
  T* const to = pass.to + part.column;
  bool moves[2][width];
#pragma unroll
  for (int shift = 0; shift < 2; ++shift)
#pragma unroll
    for (int e = 0; e < width; ++e) {
      const int number = 2 * (part.column + e) + shift;
      moves[shift][e] = number >= 1 && number <= pass.nodes;
    }

  // rows[h]: of level h, but the reds of level 0 are before_first.
  Row rows[levels][2] = {}, before_first = {}, red_coming[ahead], black_coming[ahead];
  Row red_g[ring] = {}, black_g[ring] = {};
  int y = part.begin - levels;
  y -= (y + pass.parity) & 1;
#pragma unroll
  for (int i = 0; i < ahead; ++i) {
    red_coming[i] = from.row(y + i);
    black_coming[i] = from.row(y + i, black);
    if constexpr (has_source) {
      red_g[i % ring] = source.row(y + i - 1);
      black_g[i % ring] = source.row(y + i - 2, black);
    }
  }
  for (; y < part.end + levels; y += turn) {
#pragma unroll
    for (int i = 0; i < turn; ++i) {
      constexpr int colours = 2;
      const int shift = (i + 1) % colours;
      Row own = before_first, below = black_coming[i % ahead];
      before_first = red_coming[i % ahead];
      red_coming[i % ahead] = from.row(y + i + ahead);
      black_coming[i % ahead] = from.row(y + i + ahead, black);
      if constexpr (has_source) {
        red_g[(i + ahead) % ring] = source.row(y + i - 1 + ahead);
        black_g[(i + ahead) % ring] = source.row(y + i - 2 + ahead, black);
      }
#pragma unroll
      for (int h = 1; h <= levels; ++h) {
        const Row above = rows[h - 1][i % 2], centre = rows[h - 1][(i + 1) % 2];
        rows[h - 1][i % 2] = below;
        const T beyond = shift == 1 ? __shfl_down_sync(all_lanes, centre.v[0], 1)
                                    : __shfl_up_sync(all_lanes, centre.v[width - 1], 1);
        const int r = y + i - h;
        [[maybe_unused]] const bool row_moves = r >= pass.moves_from && r < pass.moves_end;
        Row next;
#pragma unroll
        for (int e = 0; e < width; ++e) {
          const T left = shift == 1 ? centre.v[e] : e == 0 ? beyond : centre.v[e == 0 ? 0 : e - 1];
          const T right = shift == 0       ? centre.v[e]
                          : e == width - 1 ? beyond
                                           : centre.v[e == width - 1 ? 0 : e + 1];
          T target = balance(pass.a, above.v[e], below.v[e], left, right);
          if constexpr (has_source) {
            // Reds of level h were first needed h - 1 rows ago, blacks h - 2.
            target = target + (h % 2 == 1 ? red_g[(i + 2 * ring - (h - 1)) % ring].v[e]
                                          : black_g[(i + 2 * ring - (h - 2)) % ring].v[e]);
          }
          next.v[e] = relaxed(pass.omega, own.v[e], target);
          if constexpr (at_frame)
            if (!row_moves || !moves[shift][e]) next.v[e] = own.v[e];
        }
        if (h >= levels - 1 && r >= part.begin && r < part.end && part.writes)
          store<S::streams>(to + (h == levels ? pass.columns : 0) + static_cast<Index>(r) * pass.to_ld, next);
        own = above;  // the level before, where the next one is
        below = next;
      }
    }
  }
}

__device__ inline int warp_number() {
  return static_cast<int>(blockIdx.x) * (static_cast<int>(blockDim.x) / lanes) +
         static_cast<int>(threadIdx.x) / lanes;
}

template <class S, bool has_source, class T>
__global__ void __launch_bounds__(S::threads, S::blocks) jacobi_pass_kernel(Pass<T> pass) {
  const Part<T, S> part(pass, warp_number());
  if (part.begin >= pass.end) return;
  if (part.at_frame)
    march_jacobi<S, has_source, true>(pass, part);
  else
    march_jacobi<S, has_source, false>(pass, part);
}

template <class S, bool has_source, class T>
__global__ void __launch_bounds__(S::threads, S::blocks) colour_pass_kernel(Pass<T> pass) {
  const Part<T, S> part(pass, warp_number());
  if (part.begin >= pass.end) return;
  if (part.at_frame)
    march_colours<S, has_source, true>(pass, part);
  else
    march_colours<S, has_source, false>(pass, part);
}

}  // namespace asterism::kernels::cuda
