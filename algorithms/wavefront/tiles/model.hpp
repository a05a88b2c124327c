/// \file
/// How long wavefront-tiled SOR takes on a GPU, by tile layout: the tile-size model of [Di, Xue 2011], whose
/// equations are cited by their numbers. What it counts is in counts.hpp, how its costs are measured in
/// probe.hpp and fitted in fit.hpp, the search for the layout that takes least in search.hpp.
///
/// The model. A tile has intra-tile wavefronts e of H_e points, which are G_e warps. In the paper
///
///     T_TILE = alpha sum_e G_e + (E + 2) sigma_thd + beta L_TILE + gamma N_mem,                 (8)
///
///     T_total = sigma_ker + sum over inter-tile wavefronts t of
///               (sum over rounds i of T_ti + sigma_blk),                                       (9), (11)
///
///     T_ti = B T_TILE in a full round, b T_TILE in the last one, b = ceil(tiles left / P),      (12)
///
/// with E intra-tile wavefronts, P multiprocessors, and B blocks on each, so that B P tiles make a full
/// round.
///
/// What differs here, and why. The paper's GPU had 8 lanes in a multiprocessor; its wavefronts were bound by
/// throughput. On one with four schedulers of 32 lanes a wavefront of a few warps is bound by the latency of
/// its chain of loads, additions and the barrier, and takes as long with b tiles beside each other as with
/// one until their warps fill the schedulers. And a tile's box comes and goes row by row, at a cost for each
/// row that does not depend on what is in it. So (8) and (12) become
///
///     T_b = (E + 2) sigma_thd + sum over terms k of c_k(threads, b) X_k(tile, threads),         (T1)
///
///     X: sum_e G_e, L_TILE, N_mem (here in accesses of a warp), E, sum_e r_e, N_row, 1,         (T2)
///
/// the time of b tiles beside each other on one multiprocessor. E stands for the latency of a wavefront, r_e
/// = ceil(H_e / threads) for that of its rounds, N_row for the rows of the box, 1 for the latency of memory.
/// T_b takes the place of b T_TILE. Its coefficients are not negative, and are fitted for every thread
/// organisation (threads, b), as the paper fits alpha, beta and gamma, to the least squares of the relative
/// errors; those of last rounds, b < B, are the coefficients of b tiles, not of B.
///
/// Border tiles (paper, 3.4): all rounds but the last take what their tiles take on average, since a block
/// begins its next tile when it likes. The last one lasts as long as its slowest tile:
///
///     T_ti = T_B (s + phi (1 - s)), not the last; T_b for the last, phi T_b if no tile is full, (T3)
///
/// and sigma_turn columns / threads more in every round of a wavefront with border tiles, s being the share
/// of full tiles in the wavefront. phi, the share of its time that a border tile still takes (the paper's
/// 0.5), is measured too, and so is sigma_turn, for a border tile tells its columns when it is their turn.
/// Two costs of the kernel the paper's does not have. Its blocks list the columns of a tile before anything
/// else, and find their tiles in a wavefront by looking through its strands, 32 at a time
/// (codelets/wavefront/schedule.hpp):
///
///     T_total = sigma_ker + sigma_col columns / threads
///             + sum over t of (sum over i of T_ti + sigma_blk + sigma_str ceil(strands / 32)).  (T4)
#pragma once

#include <map>
#include <vector>

#include "counts.hpp"

namespace asterism::wavefront::tile_model {

/// The c of (T1).
struct TileCosts {
  int threads = 0, tiles_beside = 0;  ///< the thread organisation: blockDim, B
  Terms coefficients = {};            ///< seconds
  double error = 0;                   ///< median relative error of the runs that they were fitted to
};

/// What was measured of one GPU, for the kernel of one precision, number of dimensions, with or without a
/// source.
struct Costs {
  double kernel = 0;             ///< sigma_ker
  std::map<int, double> thread;  ///< sigma_thd by threads of a block
  std::map<int, double> block;   ///< sigma_blk by blocks of the grid
  double border = 0.5;           ///< phi
  double turn = 0;               ///< sigma_turn
  double column = 0;             ///< sigma_col
  double strands = 0;            ///< sigma_str, of 32 strands
  std::vector<TileCosts> tiles;  ///< by threads, then by tiles beside each other

  /// (E + 2) sigma_thd
  [[nodiscard]] double thread_barriers(const TileProfile& tile, int threads) const;
  /// sigma_blk; between the numbers of blocks that were measured, linear
  [[nodiscard]] double block_barrier(int blocks) const;
  /// T_b of (T1); between the b that were measured, linear. @throw Error: threads that were not
  [[nodiscard]] double tile_seconds(const TileProfile& tile, int threads, int tiles_beside) const;
};

/// T_0, T_1, ... T_B
std::vector<double> seconds_by_tiles_beside(const Costs& costs, const TileProfile& tile, int threads,
                                            int most);

/// T_total as it is linear in the costs that runs of the whole kernel tell: seconds, or how often.
struct Parts {
  double fixed = 0;       ///< without the others
  double border = 0;      ///< times phi
  double turns = 0;       ///< times sigma_turn
  double columns = 0;     ///< times sigma_col
  double strands = 0;     ///< times sigma_str
  double wavefronts = 0;  ///< times what is lacking in sigma_blk
};

/// What a tile layout comes to on a grid of blocks.
struct LayoutOnGrid {
  const std::vector<TileWavefront>& wavefronts;
  const std::vector<double>& seconds_beside;  ///< T_0 ... T_B
  double columns;                             ///< of a tile, for each thread
  int multiprocessors, blocks;
};

/// Columns of a tile, for each of so many threads.
double columns_by_thread(int dimensions, const WavefrontTile& tile, int threads);

Parts parts_of(const Costs& costs, const LayoutOnGrid& layout);
/// The same of args.layout, which is meant in full.
Parts parts_of(const Costs& costs, int multiprocessors, const WavefrontArgs& args);

/// Seconds.
double total(const Costs& costs, const Parts& parts);

/// T_total: (T4) with (10) to (12), (T1) and (T3). args.layout is meant in full.
double predicted_seconds(const Costs& costs, int multiprocessors, const WavefrontArgs& args);

}  // namespace asterism::wavefront::tile_model
