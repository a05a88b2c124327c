#include "models.hpp"

#include <limits>

#include "../../common/set.hpp"
#include "singular_mean.hpp"

namespace asterism::poisson {

template <class T>
void ModelProblems<T>::fill(Slab s, const Tile<T>& f, const Known& known) const {
  grid::codelets::model_rhs<T>({problem(known, s), slabs_->first_in_problem(s.place)}, (*axis_)[s.number], f,
                               slabs_->hints(s));
}

/// An operator without second differences and with lambda = 1 leaves u as it is, so that u is its right-hand side.
template <class T>
std::vector<double> ModelProblems<T>::means_of(const Known& known) const {
  const PerRank<double> unlinked(*runtime_, layout_->slab_planes, grid::axis_columns);
  for (const Tile<double>& tile : unlinked)
    set(*runtime_, tile, [](Index, Index column) { return column == grid::width_column ? 1.0 : 0.0; });
  PlaneMeans of_planes(*runtime_, *grid_, *layout_, *slabs_);
  for (Index number = 0; number < slabs_->count(); ++number) {
    const Slab s = (*slabs_)[number];
    grid::ModelProblem identity = problem(known, s);
    identity.a.x.length = identity.a.y.length = std::numeric_limits<double>::infinity();
    identity.a.lambda = 1;
    const Tile<T> u(*runtime_, slabs_->planes_of(s.place), grid_->columns(), slabs_->owner(number));
    grid::codelets::model_rhs<T>({identity, slabs_->first_in_problem(s.place)}, slabs_->mine(unlinked, s), u,
                                 slabs_->hints(s));
    of_planes.take(s, u, (*axis_)[number], slabs_->hints(s));
  }
  of_planes.gather();
  const Out<double> moments = of_planes.moments();
  const double measure = grid_->measure();
  std::vector<double> means(static_cast<std::size_t>(grid_->batch));
  for (Index plane = 0; plane < grid_->total_planes(); ++plane)
    means[static_cast<std::size_t>(plane / grid_->planes)] +=
        moments.row(plane)[grid::first_moment] / measure;
  return means;
}

template class ModelProblems<float>;
template class ModelProblems<double>;

}  // namespace asterism::poisson
