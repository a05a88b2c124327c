#include "singular_mean.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "../../../codelets/grid/laplacian.hpp"
#include "../../../runtime/collectives.hpp"

namespace asterism::poisson {
namespace {

using grid::AxisRow;

/// The solution, with mean zero, of (S1) with mu = 0 where no end of the axis is held: right-hand sides f,
/// replaced. The flux after row j, link_after (v_{j+1} - v_j), is the one before it plus width f_j; it begins
/// with zero, or, where the axis is periodic, such that its drops around the axis add up to zero.
void solve_without_mean(const std::vector<AxisRow>& rows, bool periodic, std::vector<double>& f) {
  const std::size_t m = rows.size();
  std::vector<long double> flux(m);  // after each row
  long double sum = 0, total_width = 0;
  for (std::size_t j = 0; j < m; ++j)
    total_width += rows[j].width, sum += static_cast<long double>(rows[j].width) * f[j];
  const long double mean = sum / total_width;
  long double before = 0, drops = 0, resistance = 0;
  for (std::size_t j = 0; j < m; ++j) {
    before += rows[j].width * (f[j] - mean);
    flux[j] = before;
    if (periodic) drops += flux[j] / rows[j].after, resistance += 1 / static_cast<long double>(rows[j].after);
  }
  const long double first = periodic ? -drops / resistance : 0;
  long double v = 0, weighted = 0;
  std::vector<long double> solution(m);
  for (std::size_t j = 0; j < m; ++j) {
    solution[j] = v;
    weighted += rows[j].width * v;
    if (j + 1 < m) v += (flux[j] + first) / rows[j].after;
  }
  for (std::size_t j = 0; j < m; ++j) f[j] = static_cast<double>(solution[j] - weighted / total_width);
}

}  // namespace

PlaneMoments::PlaneMoments(Runtime& runtime, const Grid& grid, const Layout& layout,
                           const SlabPartition& slabs)
    : runtime_(&runtime),
      grid_(&grid),
      slabs_(&slabs),
      sums_(slabs.per_plane(grid::moments_count)),
      work_(runtime, 1, layout.slab_planes * grid::cuda::moments_scratch) {}

template <class T>
void PlaneMoments::take(Slab s, const Tile<T>& slab, const Tile<double>& axis, const Hints& hints) const {
  grid::codelets::moments<T>(
      grid_->a, {.f = slab, .axis = axis, .sums = sums_[s.number], .work = slabs_->mine(work_, s)}, hints);
}

template void PlaneMoments::take(Slab, const Tile<float>&, const Tile<double>&, const Hints&) const;
template void PlaneMoments::take(Slab, const Tile<double>&, const Tile<double>&, const Hints&) const;

std::vector<double> PlaneMoments::of_all_planes() const {
  struct OfPlane {
    Index plane;
    std::array<double, grid::moments_count> moments;
  };
  runtime_->wait();
  std::vector<OfPlane> mine;
  for (Index number = 0; number < slabs_->count(); ++number) {
    if (!slabs_->is_mine((*slabs_)[number])) continue;
    const HostView<double> view(sums_[number], HostView<double>::Access::read);
    for (Index i = 0; i < view.rows(); ++i) {
      OfPlane& added = mine.emplace_back(OfPlane{slabs_->first_plane(number) + i, {}});
      std::copy_n(view.row(i), grid::moments_count, added.moments.begin());
    }
  }
  std::vector<double> all(static_cast<std::size_t>(grid::moments_count * grid_->total_planes()));
  for (const OfPlane& of_plane : gather_lists(*runtime_, mine))
    std::copy_n(of_plane.moments.begin(), grid::moments_count,
                all.data() + grid::moments_count * of_plane.plane);
  return all;
}

SolvedMeans solve_means(const Grid& grid, const Settings& settings, const std::vector<double>& moments,
                        double rounding, std::string_view what) {
  const auto planes = static_cast<std::size_t>(grid.planes);
  SolvedMeans means;
  means.projected.assign(static_cast<std::size_t>(grid.batch), 0);
  double width = 0;
  for (const AxisRow& row : grid.rows) width += row.width;
  const double measure = grid.measure(), plane_measure = measure / width;
  for (Index problem = 0; problem < grid.batch; ++problem) {
    const double* const sum = moments.data() + 2 * static_cast<std::size_t>(problem * grid.planes);
    std::vector<double> mean_of_plane(planes);
    double mean = 0, magnitude = 0;
    for (std::size_t j = 0; j < planes; ++j) {
      mean_of_plane[j] = sum[2 * j + grid::first_moment] / (grid.rows[j].width * plane_measure);
      mean += sum[2 * j + grid::first_moment] / measure;
      magnitude += sum[2 * j + grid::absolute_moment] / measure;
    }
    // The numbers of f are rounded themselves, each by half a unit in its last place.
    const double vanishing = 16 * std::max(rounding, settings.source_rounding) * magnitude;
    if (settings.mean == Mean::require && !(std::abs(mean) <= vanishing) && !std::isnan(mean))
      throw Error(fmt::format(
          "the mean of {} is {:.6g}, {:.2g} of the mean of |f|, and there is no solution unless it "
          "vanishes: no end is held at a value and lambda is 0; correct f, or project its mean away "
          "(--project-mean)",
          what, mean, std::abs(mean) / magnitude));
    // What coarser numbers leave of the mean is taken away, too: it is more than rounding here.
    if (settings.mean == Mean::project || std::abs(mean) > 16 * rounding * magnitude)
      means.projected[static_cast<std::size_t>(problem)] = mean;
    solve_without_mean(grid.rows, grid.slow.periodic(), mean_of_plane);
    means.of_planes.insert(means.of_planes.end(), mean_of_plane.begin(), mean_of_plane.end());
  }
  return means;
}

}  // namespace asterism::poisson
