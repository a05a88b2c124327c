/// \file
/// Mode 0 where constants solve the homogeneous problem: its system has no unique solution, and none at all unless the
/// mean of f vanishes. It is the system of the planes' means, and solved for all planes together.
#pragma once

#include <string_view>
#include <vector>

#include "../../../codelets/poisson/slabs.hpp"
#include "../../../runtime/hardware/pinned_buffer.hpp"
#include "../slabs/partition.hpp"

namespace asterism::poisson {

/// The means of all planes of f, from its moments, and of u. The moments are made by a task for each slab; those of a slab that
/// is all of the grid by the task that solves it, which asks for the rest (MeanSystem).
class PlaneMeans : public MeanSystem {
 public:
  /// The first four arguments have to outlive it.
  /// @param settings,rounding where more than the moments is asked for: the solver's, and the rounding of its precision
  PlaneMeans(Runtime& runtime, const Grid& grid, const Layout& layout, const SlabPartition& slabs,
             const Settings& settings = {}, double rounding = 0);

  /// Begins with the moments of a slab of f. @param axis rows of the slowest axis, of this slab
  template <class T>
  void take(Slab s, const Tile<T>& slab, const Tile<double>& axis, const Hints& hints) const;
  /// Those of all slabs, where they have been taken, to every rank. Collective. @throw TaskFailure, Stall
  void gather();
  /// Looks at the moments of all slabs. @param what f is, in messages
  /// @return means that are to be taken off f, per problem; zero: none
  /// @throw Error: the mean of f does not vanish (see Mean)
  [[nodiscard]] std::vector<double> projected(std::string_view what) const;
  /// Of u in every plane of a problem of the batch, whose own mean is zero.
  const double* of_solution(Index problem);

  [[nodiscard]] const grid::Operator& a() const override { return grid_->a; }
  [[nodiscard]] Out<double> moments() override {
    return {moments_.as<double>(), grid_->total_planes(), grid::moments_count, grid::moments_count};
  }
  [[nodiscard]] bool is_solvable() override { return of_f(0).is_solvable; }
  [[nodiscard]] In<double> solution() override { return {of_solution(0), grid_->planes, 1, 1}; }

 private:
  /// The means of f and of |f| in a problem, and what follows from them.
  struct MeanOfF {
    double mean, magnitude;
    bool is_solvable, is_projected;
  };
  [[nodiscard]] MeanOfF of_f(Index problem) const;
  [[nodiscard]] const double* moments_of(Index problem) const {
    return moments_.as<double>() + grid::moments_count * problem * grid_->planes;
  }

  Runtime* runtime_;
  const Grid* grid_;
  const SlabPartition* slabs_;
  Mean wanted_;
  double rounding_, source_rounding_;
  Tiles<double> sums_;    // per slab,
  PerRank<double> work_;  // and working memory
  double measure_;        // of the grid
  std::vector<long double> resistances_;    // 1 / the link after every plane
  long double width_ = 0, resistance_ = 0;  // of all planes together
  // Results, and what they are made in: kept, as new memory takes longer to come than to be filled.
  PinnedBuffer moments_;  // of all slabs: grid::Moment of a plane together
  std::vector<long double> solution_;
  PinnedBuffer mean_of_planes_;
};

}  // namespace asterism::poisson
