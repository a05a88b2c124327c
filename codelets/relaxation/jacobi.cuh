/// \file
/// Jacobi's sweeps as a pass of pipeline.cuh: every level is a sweep.
#pragma once

#include <algorithm>

#include "pipeline.cuh"

namespace asterism::relaxation::cuda {

using asterism::cuda::wait_for_previous_kernel;

// The figures are those of an H200, whose copies reach 4.30 TB/s, on 16384^2 nodes unless they say otherwise.

/// One sweep is bound by memory. Without a source 4 rows of 16 bytes a lane on their way, strips that end
/// where the next one begins, chunks of 16 rows and streaming stores reach 90.8 % (double) and 89.7 % (float)
/// of a copy's bandwidth; 2 rows of 32 bytes reached 83 %, chunks of 64 rows 88.2 % and 84.5 %. With a source
/// 4 rows of both arrays in overlapping strips reach 93.9 % and 91.2 %. A task of one sweep is an exchanging
/// pass: as tasks of a third of the grid each, sweeps without a source so reach 89.1 % and 87.0 % of a copy,
/// with the exchange in kernels of its own 88.2 % and 84.7 %.
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
    layout.blocks = wide ? 6 : 7;
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

template <class T, int sweeps, bool has_source, bool in_cache = true>
using JacobiShape = Shape<jacobi_layout<T>(sweeps, has_source, in_cache)>;

/// Jacobi's sweeps.
template <class S, bool has_source, bool at_rim, class P, class T>
__device__ void march_jacobi(const P& pass, const Part<T, S>& part) {
  constexpr bool apart = P::exchanges && at_rim;
  constexpr int levels = S::levels, width = S::width, ahead = S::ahead;
  constexpr int ring = has_source ? power_of_two(levels + ahead) : 1;
  constexpr int turn = std::max({ring, ahead, 2});
  using Row = Columns<T, width>;

  const auto from = [&] {
    const Reader<T, S> tile{pass.from + part.column, pass.from_ld, pass.read_begin, part.read_end};
    if constexpr (apart)
      return RimReader<T, S>{tile, pass.above, pass.below, part.column};
    else
      return tile;
  }();
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
          if constexpr (at_rim)
            if (!row_moves || !moves[e]) next.v[e] = centre.v[e];
        }
        below = next;
      }
      const int r = y + i - levels;
      if (r >= part.begin && r < part.end && part.writes) {
        store<S::streams>(to + static_cast<Index>(r) * pass.to_ld, below);
        if constexpr (apart)
          for (const RowsApart<T>* shown : {&pass.top, &pass.bottom})
            if (shown->have(r)) store<false>(shown->row(r) + part.column, below);
      }
    }
  }
}

template <class S, bool has_source, class P>
__global__ void __launch_bounds__(S::threads, S::blocks) jacobi_pass_kernel(P pass) {
  wait_for_previous_kernel();
  const Part<typename P::Element, S> part(pass, warp_number());
  if (part.begin >= pass.end) return;
  if (part.at_rim)
    march_jacobi<S, has_source, true>(pass, part);
  else
    march_jacobi<S, has_source, false>(pass, part);
}

}  // namespace asterism::relaxation::cuda
