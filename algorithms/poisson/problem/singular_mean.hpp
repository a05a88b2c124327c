/// \file
/// Mode 0 where constants solve the homogeneous problem: its system has no unique solution, and none at all unless the
/// mean of f vanishes. It is the system of the planes' means, and solved for all planes together.
#pragma once

#include <string_view>
#include <vector>

#include "../slabs/partition.hpp"

namespace asterism::poisson {

/// Sums over every plane of slabs (grid::Moment), by a task for each slab.
class PlaneMoments {
 public:
  /// The arguments have to outlive it.
  PlaneMoments(Runtime& runtime, const Grid& grid, const Layout& layout, const SlabPartition& slabs);

  /// @param axis rows of the slowest axis, of this slab
  template <class T>
  void take(Slab s, const Tile<T>& slab, const Tile<double>& axis, const Hints& hints) const;
  /// Those of all planes, those of a plane together, on every rank. Collective. @throw TaskFailure, Stall
  [[nodiscard]] std::vector<double> of_all_planes() const;

 private:
  Runtime* runtime_;
  const Grid* grid_;
  const SlabPartition* slabs_;
  Tiles<double> sums_;    // per slab,
  PerRank<double> work_;  // and working memory
};

struct SolvedMeans {
  std::vector<double> of_planes;  ///< of u, with mean zero for each problem of the batch
  std::vector<double> projected;  ///< means that were taken off f, per problem; zero: none
};
/// @param moments of f, as of PlaneMoments. @param rounding of the solver's precision. @param what f is, in messages
/// @throw Error: the mean of f does not vanish (see Mean)
SolvedMeans solve_means(const Grid& grid, const Settings& settings, const std::vector<double>& moments,
                        double rounding, std::string_view what);

}  // namespace asterism::poisson
