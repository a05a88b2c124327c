#include "tile_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

// A program that is linked with Asterism may have an Eigen of its own, compiled for other instructions. Under
// one name the linker would take the functions of either for those of both.
#define Eigen asterism_eigen
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Dense>

namespace asterism::tile_model {
namespace {

constexpr Index warp = 32;

Index ceil_of(Index a, Index b) { return (a + b - 1) / b; }

/// The axes of the space that are meant: the last ones.
std::size_t first_axis(int dimensions) { return static_cast<std::size_t>(3 - dimensions); }

std::vector<Index> extents_of(int dimensions, const WavefrontTile& tile) {
  std::vector<Index> extents{tile.sweeps};
  for (std::size_t axis = first_axis(dimensions); axis < 3; ++axis) extents.push_back(tile.points[axis]);
  return extents;
}

/// Tiles along one axis, first to last.
struct Range {
  Index first, last;
};

/// Counts of boxes by diagonals, many boxes at a time: sum over x of count(x) z^x = (sum of z^first prod (1 -
/// z^n)) / (1 - z)^d, so a box is 2^d numbers here and 1 / (1 - z) a running sum.
class DiagonalSums {
 public:
  DiagonalSums(Index diagonals, int dimensions)
      : dimensions_(dimensions), sums_(static_cast<std::size_t>(diagonals)) {}

  void add(Index offset, const std::vector<Range>& box) {
    if (std::any_of(box.begin(), box.end(), [](const Range& r) { return r.first > r.last; })) return;
    for (unsigned far = 0; far < 1U << box.size(); ++far) {
      Index at = offset, sign = 1;
      for (std::size_t axis = 0; axis < box.size(); ++axis) {
        const bool beyond = (far >> axis & 1U) != 0;
        at += beyond ? box[axis].last + 1 : box[axis].first;
        if (beyond) sign = -sign;
      }
      if (at < static_cast<Index>(sums_.size())) sums_[static_cast<std::size_t>(at)] += sign;
    }
  }

  std::vector<Index> finish() {
    for (int d = 0; d < dimensions_; ++d)
      for (std::size_t k = 1; k < sums_.size(); ++k) sums_[k] += sums_[k - 1];
    return std::move(sums_);
  }

 private:
  int dimensions_;
  std::vector<Index> sums_;
};

}  // namespace

const char* name(Term term) {
  constexpr std::array<const char*, terms> names{"warps",  "points", "accesses", "wavefronts",
                                                 "rounds", "rows",   "tile"};
  return names[term];
}

// --- Counts ---------------------------------------------------------------------------------------------

std::vector<Index> diagonals(const std::vector<Index>& extents) {
  Index count = 1;
  std::vector<Range> box;
  for (const Index extent : extents) {
    count += extent - 1;
    box.push_back({0, extent - 1});
  }
  DiagonalSums sums(count, static_cast<int>(extents.size()));
  sums.add(0, box);
  return sums.finish();
}

TileProfile::TileProfile(int dimensions, const WavefrontTile& tile, bool has_source)
    : wavefronts_(kernels::wavefronts_of_tile(dimensions, tile)),
      points_(kernels::points_of_tile(dimensions, tile)),
      memory_(kernels::traffic_of_tile(dimensions, tile, has_source).total()),
      accesses_(kernels::accesses_of_tile(dimensions, tile, has_source)) {
  for (const Index width : diagonals(extents_of(dimensions, tile))) {
    widest_ = std::max(widest_, width);
    ++wavefronts_by_warps_[ceil_of(width, warp)];
  }
}

Terms TileProfile::terms_of(int threads) const {
  Terms x{};
  const Index warps_at_once = threads / warp;
  for (const auto& [width, count] : wavefronts_by_warps_) {
    x[Term::warps] += static_cast<double>(width * count);
    x[Term::rounds] += static_cast<double>(ceil_of(width, warps_at_once) * count);
  }
  x[Term::points] = static_cast<double>(points_);
  x[Term::accesses] = static_cast<double>(accesses_.accesses);
  x[Term::wavefronts] = static_cast<double>(wavefronts_);
  x[Term::rows] = static_cast<double>(accesses_.rows);
  x[Term::tile] = 1;
  return x;
}

std::vector<TileWavefront> tile_wavefronts(const WavefrontArgs& args) {
  const WavefrontTile& tile = args.layout.tile;
  const std::size_t first = first_axis(args.dimensions);
  const Index rows = ceil_of(args.sweeps, tile.sweeps);
  // The node i of sweep t is at i + t.
  const auto tiles_at = [&](Index row, std::size_t axis) {
    const Index last_sweep = std::min(args.sweeps, (row + 1) * tile.sweeps) - 1, m = tile.points[axis];
    return Range{row * tile.sweeps / m, (last_sweep + args.nodes[axis] - 1) / m};
  };
  const auto full_at = [&](Index row, std::size_t axis) {
    const Index begin = row * tile.sweeps, m = tile.points[axis];
    return Range{ceil_of(begin + tile.sweeps - 1, m), (begin + args.nodes[axis]) / m - 1};
  };
  Index wavefronts = rows;
  for (std::size_t axis = first; axis < 3; ++axis) wavefronts += tiles_at(rows - 1, axis).last;

  DiagonalSums all(wavefronts, args.dimensions), full(wavefronts, args.dimensions);
  for (Index row = 0; row < rows; ++row) {
    std::vector<Range> box, full_box;
    for (std::size_t axis = first; axis < 3; ++axis) {
      box.push_back(tiles_at(row, axis));
      full_box.push_back(full_at(row, axis));
    }
    all.add(row, box);
    if ((row + 1) * tile.sweeps <= args.sweeps) full.add(row, full_box);
  }
  const std::vector<Index> of_all = all.finish(), of_full = full.finish();

  // Strands: those of the rows of sweeps, times the tiles along z, that a wavefront may have.
  const auto sum_of = [&](Index row, Index Range::*end) {
    Index sum = row;
    for (std::size_t axis = first; axis < 3; ++axis) sum += tiles_at(row, axis).*end;
    return sum;
  };
  std::vector<TileWavefront> counts;
  Index begin = 0, end = 0;
  for (Index w = 0; w < wavefronts; ++w) {
    while (end < rows && sum_of(end, &Range::first) <= w) ++end;
    while (begin < end && sum_of(begin, &Range::last) < w) ++begin;
    Index strands = end - begin;
    if (strands > 0 && first == 0) strands *= tiles_at(end - 1, 0).last - tiles_at(begin, 0).first + 1;
    const auto k = static_cast<std::size_t>(w);
    counts.push_back({of_all[k], of_full[k], strands});
  }
  return counts;
}

// --- Costs ----------------------------------------------------------------------------------------------

namespace {

/// A measured function of a whole number, between its arguments linear, beyond them constant.
double at(const std::map<int, double>& measured, int argument) {
  if (measured.empty()) return 0;
  const auto above = measured.lower_bound(argument);
  if (above == measured.begin()) return above->second;
  const auto below = std::prev(above);
  if (above == measured.end()) return below->second;
  const double part = static_cast<double>(argument - below->first) / (above->first - below->first);
  return below->second + part * (above->second - below->second);
}

double value_of(const TileCosts& costs, const TileProfile& tile) {
  const Terms x = tile.terms_of(costs.threads);
  double seconds = 0;
  for (std::size_t k = 0; k < terms; ++k) seconds += costs.coefficients[k] * x[k];
  return seconds;
}

/// T_0, T_1, ... T_B
std::vector<double> seconds_by_tiles_beside(const Costs& costs, const TileProfile& tile, int threads,
                                            int most) {
  std::vector<double> seconds{0};
  for (int b = 1; b <= most; ++b) seconds.push_back(costs.tile_seconds(tile, threads, b));
  return seconds;
}

/// T_total as it is linear in what `calibrate` finds: seconds, or how often.
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

Parts parts_of(const Costs& costs, const LayoutOnGrid& layout) {
  const Index blocks = layout.blocks;
  const double barrier = costs.block_barrier(layout.blocks);
  Parts parts{.fixed = costs.kernel, .columns = layout.columns};
  for (const TileWavefront& w : layout.wavefronts) {
    parts.fixed += barrier;
    parts.wavefronts += 1;
    parts.strands += static_cast<double>(ceil_of(w.strands, warp));
    if (w.tiles == 0) continue;
    const Index rounds = ceil_of(w.tiles, blocks), last = w.tiles - (rounds - 1) * blocks;
    const double full_share = static_cast<double>(w.full) / static_cast<double>(w.tiles);
    const double before_last = static_cast<double>(rounds - 1) * layout.seconds_beside.back();
    const double in_last =
        layout.seconds_beside[static_cast<std::size_t>(ceil_of(last, layout.multiprocessors))];
    parts.fixed += before_last * full_share + (w.full > 0 ? in_last : 0);
    parts.border += before_last * (1 - full_share) + (w.full > 0 ? 0 : in_last);
    if (w.full < w.tiles) parts.turns += static_cast<double>(rounds) * layout.columns;
  }
  return parts;
}

double total(const Costs& costs, const Parts& parts) {
  return parts.fixed + costs.border * parts.border + costs.turn * parts.turns + costs.column * parts.columns +
         costs.strands * parts.strands;
}

double columns_by_thread(int dimensions, const WavefrontTile& tile, int threads) {
  return static_cast<double>(kernels::points_of_tile(dimensions, tile) / tile.points[2]) / threads;
}

Parts parts_of(const Costs& costs, int multiprocessors, const WavefrontArgs& args) {
  const WavefrontLayout& layout = args.layout;
  const TileProfile tile(args.dimensions, layout.tile, args.has_source);
  const int beside = (layout.blocks + multiprocessors - 1) / multiprocessors;
  const std::vector<TileWavefront> wavefronts = tile_wavefronts(args);
  const std::vector<double> seconds = seconds_by_tiles_beside(costs, tile, layout.threads, beside);
  return parts_of(costs,
                  {wavefronts, seconds, columns_by_thread(args.dimensions, layout.tile, layout.threads),
                   multiprocessors, layout.blocks});
}

/// Lawson and Hanson's active sets: the x >= 0 that makes |a x - b| least.
Eigen::VectorXd non_negative_least_squares(Eigen::MatrixXd a, const Eigen::VectorXd& b) {
  using Eigen::Index;
  const Index unknowns = a.cols();
  Eigen::VectorXd unit(unknowns);  // columns in their own units
  for (Index k = 0; k < unknowns; ++k) {
    unit(k) = a.col(k).norm();
    if (unit(k) > 0) a.col(k) /= unit(k);
  }
  Eigen::VectorXd x = Eigen::VectorXd::Zero(unknowns);
  std::vector<Index> used;
  const auto solution = [&] {  // least squares in the columns that are used
    Eigen::MatrixXd part(a.rows(), static_cast<Index>(used.size()));
    for (std::size_t k = 0; k < used.size(); ++k) part.col(static_cast<Index>(k)) = a.col(used[k]);
    Eigen::VectorXd all = Eigen::VectorXd::Zero(unknowns);
    const Eigen::VectorXd s = part.colPivHouseholderQr().solve(b);
    for (std::size_t k = 0; k < used.size(); ++k) all(used[k]) = s(static_cast<Index>(k));
    return all;
  };
  for (Index step = 0; step < 10 * unknowns; ++step) {
    const Eigen::VectorXd gradient = a.transpose() * (b - a * x);
    Index best = -1;
    for (Index k = 0; k < unknowns; ++k)
      if (std::find(used.begin(), used.end(), k) == used.end() && gradient(k) > 1e-10 &&
          (best < 0 || gradient(k) > gradient(best)))
        best = k;
    if (best < 0) break;
    used.push_back(best);
    while (!used.empty()) {
      const Eigen::VectorXd s = solution();
      if (std::all_of(used.begin(), used.end(), [&](Index k) { return s(k) > 0; })) {
        x = s;
        break;
      }
      double part = 1;
      for (const Index k : used)
        if (s(k) <= 0) part = std::min(part, x(k) / (x(k) - s(k)));
      x += part * (s - x);
      std::erase_if(used, [&](Index k) {
        const bool out = x(k) <= 1e-14;
        if (out) x(k) = 0;
        return out;
      });
    }
  }
  for (Index k = 0; k < unknowns; ++k)
    if (unit(k) > 0) x(k) /= unit(k);
  return x;
}

}  // namespace

double Costs::thread_barriers(const TileProfile& tile, int threads) const {
  return static_cast<double>(tile.wavefronts() + 2) * at(thread, threads);
}

double Costs::block_barrier(int blocks) const { return at(block, blocks); }

double Costs::tile_seconds(const TileProfile& tile, int threads, int tiles_beside) const {
  const TileCosts *below = nullptr, *above = nullptr;
  for (const TileCosts& c : tiles) {
    if (c.threads != threads) continue;
    if (c.tiles_beside <= tiles_beside && (below == nullptr || c.tiles_beside > below->tiles_beside))
      below = &c;
    if (c.tiles_beside >= tiles_beside && (above == nullptr || c.tiles_beside < above->tiles_beside))
      above = &c;
  }
  if (below == nullptr && above == nullptr)
    throw Error("no costs of blocks of " + std::to_string(threads) + " threads were measured");
  const double fixed = thread_barriers(tile, threads);
  if (below == nullptr) return fixed + value_of(*above, tile);
  const double lower = value_of(*below, tile);
  if (above == nullptr)  // throughput is used up
    return fixed + lower * tiles_beside / below->tiles_beside;
  if (above == below) return fixed + lower;
  const double part = static_cast<double>(tiles_beside - below->tiles_beside) /
                      static_cast<double>(above->tiles_beside - below->tiles_beside);
  return fixed + lower + part * (value_of(*above, tile) - lower);
}

Terms fit(const std::vector<Terms>& counted, const std::vector<double>& seconds) {
  // Relative errors: each run's equation over its seconds.
  Eigen::MatrixXd a(static_cast<Eigen::Index>(counted.size()), static_cast<Eigen::Index>(terms));
  for (std::size_t i = 0; i < counted.size(); ++i)
    for (std::size_t k = 0; k < terms; ++k)
      a(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(k)) = counted[i][k] / seconds[i];
  const Eigen::VectorXd x = non_negative_least_squares(a, Eigen::VectorXd::Ones(a.rows()));
  Terms coefficients{};
  std::copy(x.begin(), x.end(), coefficients.begin());
  return coefficients;
}

double predicted_seconds(const Costs& costs, int multiprocessors, const WavefrontArgs& args) {
  return total(costs, parts_of(costs, multiprocessors, args));
}

void calibrate(Costs& costs, int multiprocessors, const std::vector<Run>& runs) {
  if (runs.empty()) return;
  const auto count = static_cast<Eigen::Index>(runs.size());
  Eigen::MatrixXd a(count, 5);
  Eigen::VectorXd b(count);
  const auto solve = [&](double least_border) {
    for (Eigen::Index i = 0; i < count; ++i) {
      const Run& run = runs[static_cast<std::size_t>(i)];
      const Parts parts = parts_of(costs, multiprocessors, run.args);
      a.row(i) << parts.border, parts.turns, parts.columns, parts.strands, parts.wavefronts;
      if (least_border > 0) a(i, 0) = 0;
      a.row(i) /= run.seconds;
      b(i) = (run.seconds - parts.fixed - least_border * parts.border) / run.seconds;
    }
    return non_negative_least_squares(a, b);
  };
  Eigen::VectorXd x = solve(0);
  costs.border = x(0);
  if (costs.border > 1) {
    x = solve(1);
    costs.border = 1;
  }
  costs.turn = x(1);
  costs.column = x(2);
  costs.strands = x(3);
  for (auto& [blocks, seconds] : costs.block) seconds += x(4);
}

// --- The search -----------------------------------------------------------------------------------------

namespace {

/// 1, 2, 3, 4, 6, 8, 12, ... and `most`.
std::vector<Index> steps_up_to(Index most) {
  std::vector<Index> steps;
  for (Index size = 1; size < most; size *= 2) {
    steps.push_back(size);
    if (size > 1 && size / 2 * 3 < most) steps.push_back(size / 2 * 3);
  }
  steps.push_back(most);
  return steps;
}

/// The largest extents that a tile may have.
WavefrontTile largest_tile(const WavefrontArgs& args, const Space& space) {
  WavefrontTile largest{space.sweeps.back(), {1, 1, 1}};
  for (std::size_t axis = first_axis(args.dimensions); axis < 3; ++axis)
    largest.points[axis] = space.points[axis].back();
  return largest;
}

/// Section 4.1's constraint on threads: most warps have some work to do in the largest wavefront, and not too
/// much.
bool has_sensible_threads(const TileProfile& tile, int threads) {
  constexpr Index most_rounds = 8;
  const Index warps_of_widest = ceil_of(tile.widest(), warp);
  return (threads == warp || threads / 2 < warps_of_widest * warp) && tile.widest() <= most_rounds * threads;
}

/// Looks at tiles, with all thread organisations each, and keeps the best layout.
class Searching {
 public:
  Searching(const Costs& costs, const Gpu& gpu, const WavefrontArgs& args, const Space& space)
      : costs_(costs), gpu_(gpu), args_(args), space_(space) {
    best_.seconds = std::numeric_limits<double>::infinity();
  }

  /// @return whether it has become the best
  bool consider(const WavefrontTile& tile) {
    const std::size_t bytes = gpu_.shared_bytes(tile);
    if (bytes > gpu_.most_shared_bytes) return false;
    const TileProfile profile(args_.dimensions, tile, args_.has_source);
    if (profile.reuse() < space_.least_reuse) return false;
    args_.layout.tile = tile;
    const std::vector<TileWavefront> wavefronts = tile_wavefronts(args_);
    bool better = false;
    for (std::size_t k = 0; k < costs_.tiles.size();) {
      const int threads = costs_.tiles[k].threads;
      std::vector<int> beside;  // those that were measured
      for (; k < costs_.tiles.size() && costs_.tiles[k].threads == threads; ++k)
        beside.push_back(costs_.tiles[k].tiles_beside);
      if (!has_sensible_threads(profile, threads)) continue;
      const int fitting = gpu_.blocks_per_sm(threads, bytes);
      std::erase_if(beside, [&](int b) { return b > fitting; });
      if (beside.empty()) continue;
      std::vector<double> seconds = seconds_by_tiles_beside(costs_, profile, threads, beside.back());
      const double columns = columns_by_thread(args_.dimensions, tile, threads);
      for (; !beside.empty(); beside.pop_back()) {
        seconds.resize(static_cast<std::size_t>(beside.back()) + 1);
        const LayoutOnGrid layout{wavefronts, seconds, columns, gpu_.multiprocessors,
                                  beside.back() * gpu_.multiprocessors};
        better = consider(layout, threads) || better;
      }
    }
    return better;
  }

  [[nodiscard]] const Choice& best() const { return best_; }

 private:
  bool consider(const LayoutOnGrid& layout, int threads) {
    ++best_.layouts;
    const double seconds = total(costs_, parts_of(costs_, layout));
    if (!(seconds < best_.seconds)) return false;
    best_.seconds = seconds;
    best_.layout = {args_.layout.tile, threads, layout.blocks};
    return true;
  }

  const Costs& costs_;
  const Gpu& gpu_;
  WavefrontArgs args_;
  const Space& space_;
  Choice best_;
};

}  // namespace

Space space_of(const WavefrontArgs& args) {
  // Shared memory holds a box of more than the tile's points; 32 Ki numbers are more than there is.
  constexpr Index most_points = Index{1} << 15, most_extent = kernels::cuda::most_tile_extent;
  Space space;
  space.sweeps = steps_up_to(std::min(args.sweeps, args.dimensions == 1 ? most_extent : Index{256}));
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const bool meant = axis >= first_axis(args.dimensions);
    const Index most = args.dimensions == 1 ? most_points : args.dimensions == 2 ? most_extent : 128;
    space.points[axis] = meant ? steps_up_to(std::min(args.nodes[axis], most)) : std::vector<Index>{1};
  }
  // The paper's are 300, 6 and 1, for large problems; a small one wants its wavefronts wide rather than its
  // tiles large.
  constexpr std::array<double, 3> reuse{8, 1.5, 0.4};
  TileProfile largest(args.dimensions, largest_tile(args, space), args.has_source);
  space.least_reuse = std::min(reuse[static_cast<std::size_t>(args.dimensions - 1)], largest.reuse() / 4);
  return space;
}

Choice search(const Costs& costs, const Gpu& gpu, const WavefrontArgs& args, const Space& space) {
  Searching searching(costs, gpu, args, space);
  for (const Index sweeps : space.sweeps)
    for (const Index z : space.points[0])
      for (const Index y : space.points[1])
        for (const Index x : space.points[2]) searching.consider({sweeps, {z, y, x}});
  if (searching.best().layout.threads == 0)
    throw Error("no tile layout of wavefront SOR fits in a block of the GPU " + gpu.name, Blame::machine);

  // From the best one on, extents that are not in the lists.
  const WavefrontTile largest = largest_tile(args, space);
  for (const double part : {0.2, 0.05}) {
    bool better = true;
    while (better) {
      better = false;
      const WavefrontTile from = searching.best().layout.tile;
      const auto try_sizes_of = [&](auto extent_of, Index most) {
        WavefrontTile tile = from;
        const Index extent = extent_of(tile);
        const Index step =
            std::max(Index{1}, static_cast<Index>(std::llround(static_cast<double>(extent) * part)));
        for (const Index size : {extent - step, extent + step}) {
          extent_of(tile) = size;
          if (size >= 1 && size <= most) better = searching.consider(tile) || better;
        }
      };
      try_sizes_of([](WavefrontTile& t) -> Index& { return t.sweeps; }, largest.sweeps);
      for (std::size_t axis = first_axis(args.dimensions); axis < 3; ++axis)
        try_sizes_of([axis](WavefrontTile& t) -> Index& { return t.points[axis]; }, largest.points[axis]);
    }
  }
  return searching.best();
}

std::vector<WavefrontLayout> random_layouts(const Costs& costs, const Gpu& gpu, const WavefrontArgs& args,
                                            const Space& space, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto between = [&](Index most) {
    const double exponent =
        std::generate_canonical<double, 53>(random) * std::log(static_cast<double>(most) + 1);
    return std::clamp<Index>(static_cast<Index>(std::exp(exponent)), 1, most);
  };
  const WavefrontTile largest = largest_tile(args, space);
  std::vector<WavefrontLayout> layouts;
  for (std::size_t tries = 0; layouts.size() < count && tries < 100000 + 10000 * count; ++tries) {
    WavefrontTile tile{between(largest.sweeps), {1, 1, 1}};
    for (std::size_t axis = first_axis(args.dimensions); axis < 3; ++axis)
      tile.points[axis] = between(largest.points[axis]);
    const TileCosts& organisation = costs.tiles[random() % costs.tiles.size()];
    const std::size_t bytes = gpu.shared_bytes(tile);
    if (bytes > gpu.most_shared_bytes) continue;
    if (gpu.blocks_per_sm(organisation.threads, bytes) < organisation.tiles_beside) continue;
    const TileProfile profile(args.dimensions, tile, args.has_source);
    if (profile.reuse() < space.least_reuse || !has_sensible_threads(profile, organisation.threads)) continue;
    layouts.push_back({tile, organisation.threads, organisation.tiles_beside * gpu.multiprocessors});
  }
  return layouts;
}

}  // namespace asterism::tile_model
