/// \file
/// Mode 0 where constants solve the homogeneous problem: its system has no unique solution, and none at all unless the
/// mean of f vanishes. It is the system of the planes' means, and solved for all planes together.
#pragma once

#include <string_view>
#include <vector>

#include "../../../codelets/grid/laplacian.hpp"
#include "../slabs/partition.hpp"

namespace asterism::poisson {

/// The means of all planes of f, from its moments, by a task for each slab, and of u.
class PlaneMeans {
 public:
  /// The arguments have to outlive it.
  PlaneMeans(Runtime& runtime, const Grid& grid, const Layout& layout, const SlabPartition& slabs);

  /// Begins with the moments of a slab of f. @param axis rows of the slowest axis, of this slab
  template <class T>
  void take(Slab s, const Tile<T>& slab, const Tile<double>& axis, const Hints& hints) const;
  /// Those of all slabs, where they have been taken: grid::Moment of a plane together, on every rank. Collective.
  /// @throw TaskFailure, Stall
  const std::vector<double>& moments();
  /// Looks at them all. Collective. @param rounding of the solver's precision. @param what f is, in messages
  /// @return means that are to be taken off f, per problem; zero: none
  /// @throw Error: the mean of f does not vanish (see Mean). TaskFailure, Stall
  [[nodiscard]] std::vector<double> projected(const Settings& settings, double rounding,
                                              std::string_view what);
  /// Of u in every plane of a problem of the batch, whose own mean is zero, where all have been looked at.
  const std::vector<double>& of_solution(Index problem);

 private:
  Runtime* runtime_;
  const Grid* grid_;
  const SlabPartition* slabs_;
  Tiles<double> sums_;    // per slab,
  PerRank<double> work_;  // and working memory
  double measure_;        // of the grid
  std::vector<long double> resistances_;    // 1 / the link after every plane
  long double width_ = 0, resistance_ = 0;  // of all planes together
  // Results, and what they are made in: kept, as new memory takes longer to come than to be filled.
  std::vector<double> moments_;
  std::vector<long double> solution_;
  std::vector<double> mean_of_planes_;
};

}  // namespace asterism::poisson
