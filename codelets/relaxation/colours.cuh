/// \file
/// Sweeps by colours as a pass of pipeline.cuh, on the separated arrangement: a level is half a sweep,
/// the reds, or the blacks, with the new reds. Columns are then those of a colour's half, and a strip loses
/// one of them a sweep.
#pragma once

#include <algorithm>

#include "pipeline.cuh"

namespace asterism::relaxation::cuda {

using asterism::cuda::wait_for_previous_kernel;

// The figures are those of an H200, whose copies reach 4.30 TB/s, on 16384^2 nodes unless they say otherwise.

/// One sweep with a source: 32 bytes a lane in chunks of 96 rows reach 89.9 % (double) and 88.5 % (float) of
/// a copy's bandwidth, 16 bytes in 64 rows 86.6 % and 83.0 %. Streaming the source and the result cost 3 %;
/// a second row ahead, which leaves 8 warps instead of 12, changed nothing. As an exchanging pass the kernel
/// needs more registers, and tasks of one sweep fell from 90 % to 87 % (double) and from 85 % to 78 %
/// (float).
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

template <class T, int sweeps, bool has_source>
using ColourShape = Shape<colour_layout<T>(sweeps, has_source)>;

/// Sweeps of red-black SOR over a separated stripe. Level h is that of the reds where h is odd, else that of
/// the blacks; a step also needs the level before the last at its own row.
///
/// The walk begins with a row of parity 0. Then at step i of a turn every level is at a row where its nodes
/// have the numbers 2 k + shift, with shift = (i + 1) mod 2, between the other colour's in columns k - 1 +
/// shift and k + shift.
template <class S, bool has_source, bool at_rim, class T>
__device__ void march_colours(const Pass<T>& pass, const Part<T, S>& part) {
  constexpr int levels = S::levels, width = S::width, ahead = S::ahead;
  constexpr int ring = has_source ? power_of_two(levels - 1 + ahead) : 1;
  constexpr int turn = std::max({ring, ahead, 2});
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
          if constexpr (at_rim)
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

template <class S, bool has_source, class T>
__global__ void __launch_bounds__(S::threads, S::blocks) colour_pass_kernel(Pass<T> pass) {
  wait_for_previous_kernel();
  const Part<T, S> part(pass, warp_number());
  if (part.begin >= pass.end) return;
  if (part.at_rim)
    march_colours<S, has_source, true>(pass, part);
  else
    march_colours<S, has_source, false>(pass, part);
}

}  // namespace asterism::relaxation::cuda
