#include "costs.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "../../../codelets/poisson/slabs.hpp"
#include "../../../codelets/transforms/fold.hpp"
#include "../../common/partition.hpp"

namespace asterism::poisson {
namespace {

/// Seconds, as measured on cores of 2025 (one and two of them, grids from 31 x 31 to 255 x 255 x 255, float64).
namespace cost {
constexpr double tridiagonal = 2.0e-9;  ///< of a cell, there and back
constexpr double transform = 2.5e-9;    ///< of a cell along an axis, there and back, in float64
constexpr double reduce = 0.3e-9;  ///< of a cell for each of these axes, in pass 1: planes are read once more
constexpr double miss = 0.4e-9;    ///< of a cell for each doubling of a slab beyond what stays in a core's caches
constexpr double column = 1.5e-9;  ///< of a step of the interface chain
constexpr double step = 8e-6;      ///< from one task of that chain to the next
constexpr double submission = 2.5e-6;  ///< of a task
constexpr double look = 0.4e-6;        ///< of either, for each core that looks for tasks
}  // namespace cost

/// Seconds, as measured on an H200 (grids from 3071 x 3071 to 8191 x 8191 and from 255 x 255 x 255 on).
namespace gpu_cost {
constexpr double tridiagonal = 22e-12;   ///< of a cell in float64, there and back
constexpr double power_of_two = 10e-12;  ///< of a cell along an axis, likewise, where the FFT's length is one
constexpr double other_length = 35e-12;  ///< and where it is not
}  // namespace gpu_cost

/// What stays in a core's caches: of many (16, measured) in its own; of few much in what all share, too.
double cached_bytes(const CoreWork& work) {
  constexpr Index few = 4;
  return work.workers > few ? 2 << 20 : 4 << 20;
}
/// The check of u makes f again, slab by slab: beside a large grid that is to take little memory.
constexpr double most_bytes = 32 << 20;

/// So many that none has more bytes.
Index slabs_within(const CoreWork& work, double bytes) {
  const double all = static_cast<double>(work.planes * work.columns * work.element_bytes);
  return std::clamp<Index>(static_cast<Index>(std::ceil(all / bytes)), 1, work.planes);
}

double seconds_of_cell(const CoreWork& work, Index slabs) {
  const auto axes = static_cast<double>(work.transformed_axes);
  const double share = static_cast<double>(work.element_bytes) / sizeof(double);
  const double slab = static_cast<double>(parts(work.planes, slabs) * work.columns * work.element_bytes);
  return cost::tridiagonal + cost::transform * axes * share + (slabs > 1 ? cost::reduce * axes : 0) +
         (work.workers > 1 ? cost::miss * std::max(0.0, std::log2(slab / cached_bytes(work))) : 0);
}

}  // namespace

double seconds_on_cores(const CoreWork& work, Index slabs) {
  const Index workers = work.workers;
  const double looks = cost::look * static_cast<double>(workers);
  const Index rounds = parts(work.problems * slabs, workers);
  const double slab =
      static_cast<double>(parts(work.planes, slabs) * work.columns) * seconds_of_cell(work, slabs);
  const double step = cost::step + looks + cost::column * static_cast<double>(work.columns);
  // Behind the last slabs that are worked on at a time everybody waits for the chain; before, it is work like other work.
  const Index waited_for = slabs > 1 ? 2 * std::min(slabs, workers) : 0, others = 2 * slabs - waited_for;
  const double chain = slabs > 1 ? step * (static_cast<double>(waited_for) +
                                           static_cast<double>(others) / static_cast<double>(workers))
                                 : 0;
  const auto tasks = static_cast<double>(work.problems * (4 * slabs - 3) - 1);  // that others wait for
  return std::max(static_cast<double>(rounds) * slab + chain, tasks * (cost::submission + looks));
}

Index slabs_on_cores(const CoreWork& work, Index most) {
  if (most == 0 || most > work.planes) most = work.planes;
  const Index evenly = most > work.workers ? most / work.workers * work.workers : most;
  const Index fewest = std::min(evenly, slabs_within(work, most_bytes));
  Index best = fewest;
  double least = seconds_on_cores(work, fewest);
  const auto consider = [&](Index slabs) {
    if (slabs < fewest || slabs > most) return;
    const double seconds = seconds_on_cores(work, slabs);
    if (seconds < least) best = slabs, least = seconds;
  };
  for (Index slabs = 2; slabs <= work.workers; ++slabs) consider(slabs);
  // More of them where they are to stay in the caches: as few as stay there, or nearly so, or as many for each core.
  const Index cached = std::min(slabs_within(work, cached_bytes(work)), most);
  consider(cached);
  consider(cached / work.workers * work.workers);
  consider(parts(cached, work.workers) * work.workers);
  return best;
}

double seconds_on_gpu(const Grid& grid, Index unknowns, Index element_bytes) {
  double cell = gpu_cost::tridiagonal;
  for (const grid::Axis& axis : {grid.a.y, grid.a.x}) {
    if (!is_transformed(axis)) continue;
    const Index length = transforms::fft_length(grid::transform_to_modes(axis), axis.n);
    cell += std::has_single_bit(static_cast<std::size_t>(length)) ? gpu_cost::power_of_two : gpu_cost::other_length;
  }
  return cell * static_cast<double>(unknowns) * static_cast<double>(element_bytes) / sizeof(double);
}

}  // namespace asterism::poisson
