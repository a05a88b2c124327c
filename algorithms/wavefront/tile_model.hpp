/// \file
/// How long wavefront-tiled SOR takes on a GPU, by tile layout, and the layout that takes least: the
/// tile-size model of [Di, Xue 2011], whose equations are cited by their numbers.
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

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "../../codelets/wavefront/sweeps.hpp"
#include "../../runtime/error.hpp"

namespace asterism::tile_model {

using kernels::WavefrontArgs;
using kernels::WavefrontLayout;
using kernels::WavefrontTile;

// --- Counts ---------------------------------------------------------------------------------------------

/// The X of (T2).
enum Term : std::size_t { warps, points, accesses, wavefronts, rounds, rows, tile, terms };
using Terms = std::array<double, terms>;
const char* name(Term term);

/// The cells of a box on each of its diagonals: those whose coordinates have the sum 0, 1, 2, ...
std::vector<Index> diagonals(const std::vector<Index>& extents);

/// What the model counts of a full tile: O(E), once for all thread organisations.
class TileProfile {
 public:
  TileProfile(int dimensions, const WavefrontTile& tile, bool has_source);

  [[nodiscard]] Terms terms_of(int threads) const;
  [[nodiscard]] Index wavefronts() const { return wavefronts_; }  ///< E
  [[nodiscard]] Index points() const { return points_; }          ///< L_TILE
  [[nodiscard]] Index memory() const { return memory_; }          ///< values loaded and stored
  [[nodiscard]] Index widest() const { return widest_; }          ///< max H_e
  /// D, points for each of these values
  [[nodiscard]] double reuse() const { return static_cast<double>(points_) / static_cast<double>(memory_); }

 private:
  Index wavefronts_, points_, memory_, widest_ = 0;
  kernels::BoxAccesses accesses_;
  std::map<Index, Index> wavefronts_by_warps_;
};

/// One inter-tile wavefront: its tiles, a few of which at corners may have no points; those of them with all
/// of a tile's points, the others being border tiles; and how many strands the blocks look through for them.
struct TileWavefront {
  Index tiles, full, strands;
};
/// All of them in one go: O(tiles of the sweeps + wavefronts).
std::vector<TileWavefront> tile_wavefronts(const WavefrontArgs& args);

// --- Costs ----------------------------------------------------------------------------------------------

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

/// The coefficients of (T1) that are not negative and make the squares of relative errors least.
/// @param seconds without the barriers; positive
Terms fit(const std::vector<Terms>& counted, const std::vector<double>& seconds);

/// T_total: (T4) with (10) to (12), (T1) and (T3). args.layout is meant in full.
double predicted_seconds(const Costs& costs, int multiprocessors, const WavefrontArgs& args);

/// A run of the whole kernel.
struct Run {
  WavefrontArgs args;
  double seconds;
};
/// Sets phi, sigma_turn, sigma_col and sigma_str, in which (T4) is linear, and what sigma_blk lacks, to the
/// least squares of the relative errors of these runs; no cost is negative, and phi at most 1.
void calibrate(Costs& costs, int multiprocessors, const std::vector<Run>& runs);

// --- The search -----------------------------------------------------------------------------------------

/// What the search has to know of a GPU and of the kernel there.
struct Gpu {
  std::string name;
  int multiprocessors = 0;                                           ///< P
  std::size_t most_shared_bytes = 0;                                 ///< that a block can have
  std::function<std::size_t(const WavefrontTile&)> shared_bytes;     ///< S_TB
  std::function<int(int threads, std::size_t bytes)> blocks_per_sm;  ///< B, by Table 1 or what replaces it
};

/// The tile sizes that are looked at: the product of these lists, as far as it meets the constraints of
/// section 4.1.
struct Space {
  std::vector<Index> sweeps;
  std::array<std::vector<Index>, 3> points;  ///< along z, y, x
  double least_reuse = 0;                    ///< D
};
/// Sizes in steps of about 2^(1/2), as far as they make sense for a problem.
Space space_of(const WavefrontArgs& args);

struct Choice {
  WavefrontLayout layout;
  double seconds = 0;  ///< predicted
  Index layouts = 0;   ///< that were considered
};
/// The layout that takes least by the model: of the space and, from the best one there on, by small steps of
/// each extent.
/// @throw Error when no layout can run.
Choice search(const Costs& costs, const Gpu& gpu, const WavefrontArgs& args, const Space& space);

/// Layouts drawn at random from what the search may choose: tile extents from the whole range of the space,
/// uniformly in their logarithms, thread organisations from those that were measured.
std::vector<WavefrontLayout> random_layouts(const Costs& costs, const Gpu& gpu, const WavefrontArgs& args,
                                            const Space& space, std::size_t count, std::uint64_t seed);

}  // namespace asterism::tile_model
