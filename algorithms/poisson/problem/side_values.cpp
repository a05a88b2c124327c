#include "side_values.hpp"

#include <algorithm>

#include "../../../codelets/grid/lift.hpp"
#include "../../common/set.hpp"

namespace asterism::poisson {
namespace {

bool is_given(const End& end) {
  return end.value != 0 || std::any_of(end.values.begin(), end.values.end(), [](double v) { return v != 0; });
}

double value_at(const End& end, Index node) {
  return end.values.empty() ? end.value : end.values[static_cast<std::size_t>(node)];
}

}  // namespace

SideValues::SideValues(Runtime& runtime, const Problem& problem, const Grid& grid, const SlabPartition& slabs)
    : grid_(&grid), slabs_(&slabs) {
  const auto any = [](const Ends& ends) { return is_given(ends.lower) || is_given(ends.upper); };
  if (std::none_of(problem.ends.begin(), problem.ends.end(), any)) return;
  const std::size_t axes = problem.ends.size();
  const Ends none;
  const Ends &z = problem.ends[0], &y = axes == 3 ? problem.ends[1] : none, &x = problem.ends[axes - 1];

  // Tiles of one element: no values.
  z_sides_ = any(z) ? PerRank<double>(runtime, 2, grid.columns()) : PerRank<double>(runtime, 1, 1);
  for (const Tile<double>& tile : z_sides_)
    set(runtime, tile, [&](Index end, Index node) { return value_at(end == 0 ? z.lower : z.upper, node); });
  const auto along = [&](const Ends& ends, Index nodes) {  // values at the ends of a line in each plane
    Tiles<double> sides = any(ends) ? slabs.per_plane(2 * nodes) : slabs.per_slab(1, 1);
    for (Index number = 0; number < slabs.count(); ++number)
      set(runtime, sides[number], [&](Index i, Index column) {
        const Index plane = slabs.first_in_problem(slabs[number].place) + i;
        return value_at(column < nodes ? ends.lower : ends.upper, plane * nodes + column % nodes);
      });
    return sides;
  };
  y_sides_ = along(y, grid.a.x.n);
  x_sides_ = along(x, grid.a.y.n);
}

template <class T>
void SideValues::lift(Slab s, const Tile<T>& f, const Tile<double>& axis, const Hints& hints) const {
  if (!any()) return;
  const grid::LiftedSlab slab{
      grid_->a,          grid_->slow, grid_->is_equally_spaced, grid_->slow.spacing(), slabs_->is_first(s),
      slabs_->is_last(s)};
  grid::codelets::lift<T>(slab,
                          {.f = f,
                           .x_sides = x_sides_[s.number],
                           .y_sides = y_sides_[s.number],
                           .z_sides = slabs_->mine(z_sides_, s),
                           .axis = axis},
                          hints);
}

template void SideValues::lift(Slab, const Tile<float>&, const Tile<double>&, const Hints&) const;
template void SideValues::lift(Slab, const Tile<double>&, const Tile<double>&, const Hints&) const;

}  // namespace asterism::poisson
