#include "singular_mean.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "../../../runtime/collectives.hpp"

namespace asterism::poisson {

namespace {

PinnedBuffer numbers(Runtime& runtime, Index count) {
  return {runtime, static_cast<std::size_t>(count) * sizeof(double)};
}

}  // namespace

PlaneMeans::PlaneMeans(Runtime& runtime, const Grid& grid, const Layout& layout, const SlabPartition& slabs,
                       const Settings& settings, double rounding)
    : runtime_(&runtime),
      grid_(&grid),
      slabs_(&slabs),
      wanted_(settings.mean),
      rounding_(rounding),
      source_rounding_(settings.source_rounding),
      sums_(slabs.per_plane(grid::moments_count)),
      work_(runtime, 1, layout.slab_planes * grid::cuda::moments_scratch),
      measure_(grid.measure()),
      moments_(numbers(runtime, grid::moments_count * grid.total_planes())),
      solution_(grid.rows.size()),
      mean_of_planes_(numbers(runtime, grid.planes)) {
  resistances_.reserve(grid.rows.size());
  for (const grid::AxisRow& row : grid.rows) {
    width_ += row.width;
    resistances_.push_back(row.after > 0 ? 1 / static_cast<long double>(row.after) : 0);
    resistance_ += resistances_.back();
  }
}

template <class T>
void PlaneMeans::take(Slab s, const Tile<T>& slab, const Tile<double>& axis, const Hints& hints) const {
  grid::codelets::moments<T>(
      grid_->a, {.f = slab, .axis = axis, .sums = sums_[s.number], .work = slabs_->mine(work_, s)}, hints);
  if (slabs_->is_mine(s)) sums_[s.number].fetch();
}

template void PlaneMeans::take(Slab, const Tile<float>&, const Tile<double>&, const Hints&) const;
template void PlaneMeans::take(Slab, const Tile<double>&, const Tile<double>&, const Hints&) const;

void PlaneMeans::gather() {
  runtime_->wait();
  const Out<double> all = moments();
  if (runtime_->ranks() > 1) std::fill_n(all.data, all.rows * all.ld, 0.0);
  for (Index number = 0; number < slabs_->count(); ++number) {
    if (!slabs_->is_mine((*slabs_)[number])) continue;
    const HostView<double> view(sums_[number], HostView<double>::Access::read);
    double* const first = all.row(slabs_->first_plane(number));
    // At once where it can be: what a GPU has brought is in no cache yet.
    const Index rows_at_once = view.ld() == grid::moments_count ? view.rows() : 1;
    for (Index i = 0; i < view.rows(); i += rows_at_once)
      std::copy_n(view.row(i), grid::moments_count * rows_at_once, first + grid::moments_count * i);
  }
  sum_over_ranks(*runtime_, all.data, all.rows * all.ld);
}

PlaneMeans::MeanOfF PlaneMeans::of_f(Index problem) const {
  MeanOfF f{};
  const double* sums = moments_of(problem);
  for (Index j = 0; j < grid_->planes; ++j, sums += grid::moments_count) {
    f.mean += sums[grid::first_moment];
    f.magnitude += sums[grid::absolute_moment];
  }
  f.mean /= measure_;
  f.magnitude /= measure_;
  // The numbers of f are rounded themselves, each by half a unit in its last place.
  const double vanishing = 16 * std::max(rounding_, source_rounding_) * f.magnitude;
  f.is_solvable = wanted_ != Mean::require || std::abs(f.mean) <= vanishing || std::isnan(f.mean);
  // What coarser numbers leave of the mean is taken away, too: it is more than rounding here.
  f.is_projected = wanted_ == Mean::project || std::abs(f.mean) > 16 * rounding_ * f.magnitude;
  return f;
}

std::vector<double> PlaneMeans::projected(std::string_view what) const {
  std::vector<double> projected;
  for (Index problem = 0; problem < grid_->batch; ++problem) {
    const MeanOfF f = of_f(problem);
    if (!f.is_solvable)
      throw Error(fmt::format(
          "the mean of {} is {:.6g}, {:.2g} of the mean of |f|, and there is no solution unless it "
          "vanishes: no end is held at a value and lambda is 0; correct f, or project its mean away "
          "(--project-mean)",
          what, f.mean, std::abs(f.mean) / f.magnitude));
    projected.push_back(f.is_projected ? f.mean : 0);
  }
  return projected;
}

/// The solution of (S1) with mu = 0 where no end of the axis is held. The flux after row j, link_after (v_{j+1} - v_j), is
/// the one before it plus width f_j; it begins with zero, or, where the axis is periodic, such that its drops around the
/// axis add up to zero.
const double* PlaneMeans::of_solution(Index problem) {
  const auto planes = static_cast<std::size_t>(grid_->planes);
  const double* const moments = moments_of(problem);
  const long double per_area = width_ / measure_;  // 1 / area of a plane
  const auto source = [&](std::size_t j) {         // width_j times the mean of f in plane j
    return moments[grid::moments_count * j + grid::first_moment] * per_area;
  };
  long double sum = 0;
  for (std::size_t j = 0; j < planes; ++j) sum += source(j);
  const long double mean = sum / width_;
  const auto flux_after = [&](std::size_t j, long double before) {
    return before + (source(j) - grid_->rows[j].width * mean);
  };
  long double first = 0;
  if (grid_->slow.periodic()) {
    long double flux = 0, drops = 0;
    for (std::size_t j = 0; j < planes; ++j) {
      flux = flux_after(j, flux);
      drops += flux * resistances_[j];
    }
    if (resistance_ > 0) first = -drops / resistance_;
  }
  long double v = 0, flux = 0, weighted = 0;
  for (std::size_t j = 0; j < planes; ++j) {
    solution_[j] = v;
    weighted += grid_->rows[j].width * v;
    flux = flux_after(j, flux);
    v += (flux + first) * resistances_[j];
  }
  const long double level = weighted / width_;
  double* const means = mean_of_planes_.as<double>();
  for (std::size_t j = 0; j < planes; ++j) means[j] = static_cast<double>(solution_[j] - level);
  return means;
}

}  // namespace asterism::poisson
