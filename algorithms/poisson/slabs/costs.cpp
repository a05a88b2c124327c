#include "costs.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "../../../codelets/poisson/slabs.hpp"
#include "../../../codelets/transforms/fold.hpp"
#include "../../common/partition.hpp"

namespace asterism::poisson {
namespace {

/// Seconds, as measured on cores of 2025 (one and two of them, grids from 31 x 31 to 255 x 255 x 255, float64).
namespace cost {
constexpr double tridiagonal = 1.6e-9;  ///< of a cell, there and back
constexpr double transform = 2.0e-9;    ///< of a cell along an axis, there and back
constexpr double reduce = 0.5e-9;  ///< of a cell for each of these axes, in pass 1: planes are read once more
constexpr double miss = 0.4e-9;    ///< of a cell for each doubling of a slab beyond what stays in a core's caches
constexpr double end = 25e-9;      ///< of a column of a slab: what the slab tells others, and is told
constexpr double column = 1.5e-9;  ///< of a step of the interface chain
constexpr double step = 8e-6;      ///< from one task of that chain to the next
constexpr double submission = 2.5e-6;  ///< of a task
constexpr double look = 0.4e-6;        ///< of either, for each core that looks for tasks
}  // namespace cost

/// Seconds, as measured on an H200 (grids from 3071 x 3071 to 12,011 x 12,011 and from 255 x 255 x 255 to 600 x 600 x 600).
namespace gpu_cost {
constexpr double tridiagonal = 12e-12;   ///< of a cell in float64, there and back
constexpr double power_of_two = 9e-12;   ///< of a cell along an axis, likewise, where the FFT's length is one
constexpr double other_length = 30e-12;  ///< and where it is not
}  // namespace gpu_cost

constexpr double cached_bytes = 2 << 20;  ///< that stay in a core's caches
/// The check of u makes f again, slab by slab: beside a large grid that is to take little memory.
constexpr double most_bytes = 32 << 20;

/// So many that none has more bytes.
Index slabs_within(const CoreWork& work, double bytes) {
  const double all = static_cast<double>(work.planes * work.columns * work.element_bytes);
  return std::clamp<Index>(static_cast<Index>(std::ceil(all / bytes)), 1, work.planes);
}

double seconds_of_cell(const CoreWork& work, Index slabs) {
  const auto axes = static_cast<double>(work.transformed_axes);
  const double slab = static_cast<double>(parts(work.planes, slabs) * work.columns * work.element_bytes);
  return cost::tridiagonal + cost::transform * axes + (slabs > 1 ? cost::reduce * axes : 0) +
         (work.workers > 1 ? cost::miss * std::max(0.0, std::log2(slab / cached_bytes)) : 0);
}

}  // namespace

double seconds_on_cores(const CoreWork& work, Index slabs) {
  const Index workers = work.workers;
  const double looks = cost::look * static_cast<double>(workers);
  const Index rounds = parts(work.problems * slabs, workers);
  const double slab = static_cast<double>(work.columns) *
                      (static_cast<double>(parts(work.planes, slabs)) * seconds_of_cell(work, slabs) +
                       (slabs > 1 ? cost::end : 0));
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
  // More than there are cores: each core as many as the others.
  const auto evenly = [&](Index slabs, auto whole) {
    return slabs > work.workers ? whole(slabs, work.workers) * work.workers : slabs;
  };
  most = evenly(most, std::divides());
  const Index fewest = std::min(most, evenly(slabs_within(work, most_bytes), parts));
  Index best = fewest;
  double least = seconds_on_cores(work, fewest);
  for (Index slabs = fewest + 1; slabs <= most; ++slabs) {
    if (slabs > work.workers && slabs % work.workers != 0) continue;
    const double seconds = seconds_on_cores(work, slabs);
    if (seconds < least) best = slabs, least = seconds;
  }
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
